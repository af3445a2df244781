//! Where every block is that was appended to a band, and what each band holds: [`homes`](super::homes) for layers that append as
//! many blocks as the host writes, not whole units.
//!
//! A map of extents leads from blocks to bands. The list of a band says what was appended to it, in order; what of that is live
//! is asked of the map. Memory follows what was written apart from each other: 36 bytes an extent and 16 an append, however many
//! blocks they have; what goes on where the append before it ended is one with it.

use super::extents::{Extent, Extents};
use crate::{Record, Sink};
use smrlab_disk::{BandId, Bands};
use smrlab_units::{Blocks, Pba};
use std::ops::Range;

/// Checkpoint: the first `words[1]` blocks of band `words[0]` are written; what is live in them follows.
const WRITTEN: u32 = 0x4501;
/// Checkpoint: blocks from `words[0]` on, `words[1]` in number, are in the band of the lower half of `words[2]`, from the offset of
/// its upper half on.
const LIVE: u32 = 0x4502;

/// Blocks that were appended together.
#[derive(Clone, Copy, Debug)]
struct Appended {
    lba: u64,
    /// Offset of the first one in the band.
    at: u32,
    blocks: u32,
}

#[derive(Clone, Debug, Default)]
struct Row {
    appended: Vec<Appended>,
    written: u32,
    live: u32,
}

/// Live blocks that lie side by side in a band, and are consecutive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRun {
    /// The first block.
    pub lba: u64,
    /// How many.
    pub blocks: u64,
    /// Offset in the band.
    pub at: u64,
}

/// What a band has lost: blocks that went elsewhere, or were discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The band.
    pub band: u32,
    /// So many blocks of it are gone.
    pub blocks: u32,
    /// So many are still live.
    pub live: u32,
    /// So many were written.
    pub written: u32,
}

/// See the [module](self).
pub struct Holdings {
    bands: Bands,
    /// Packets are bands.
    map: Extents,
    rows: Vec<Row>,
}

impl Holdings {
    /// Without any block.
    pub fn new(bands: Bands) -> Self {
        Self { bands, map: Extents::default(), rows: Vec::new() }
    }

    /// The bands.
    pub fn bands(&self) -> &Bands {
        &self.bands
    }

    /// Blocks that fit into a band.
    pub fn length(&self, band: u32) -> u32 {
        self.bands.band(BandId(u64::from(band))).blocks.0 as u32
    }

    /// Blocks of a band that are written.
    #[inline]
    pub fn written(&self, band: u32) -> u32 {
        self.rows.get(band as usize).map_or(0, |row| row.written)
    }

    /// Blocks of a band that are live.
    #[inline]
    pub fn live(&self, band: u32) -> u32 {
        self.rows.get(band as usize).map_or(0, |row| row.live)
    }

    /// The place behind what a band holds.
    #[inline]
    pub fn end(&self, band: u32) -> Pba {
        self.bands.start(BandId(u64::from(band))) + Blocks(u64::from(self.written(band)))
    }

    /// A band is written from its first block on.
    pub fn open(&mut self, band: u32) {
        if self.rows.len() <= band as usize {
            self.rows.resize(band as usize + 1, Row::default());
        }
        debug_assert_eq!(self.written(band), 0, "band {band} is in use");
    }

    /// The blocks `lbas` are behind what the band holds; `lost` is told where they were before.
    ///
    /// # Panics
    /// When the band was not opened.
    #[inline]
    pub fn append(&mut self, band: u32, lbas: Range<u64>, lost: impl FnMut(Loss)) {
        let (blocks, at) = (lbas.end - lbas.start, self.rows[band as usize].written);
        let extent = Extent { lba: lbas.start, blocks, packet: band, at: at.into() };
        let gone = Self::gone(&mut self.rows, lost);
        self.map.replace(extent, gone);
        let row = &mut self.rows[band as usize];
        row.written += blocks as u32;
        row.live += blocks as u32;
        match row.appended.last_mut() {
            Some(last) if last.lba + u64::from(last.blocks) == lbas.start && last.at + last.blocks == at => {
                last.blocks += blocks as u32;
                self.map.join(lbas.start);
            }
            _ => row.appended.push(Appended { lba: lbas.start, at, blocks: blocks as u32 }),
        }
    }

    /// The blocks `lbas` are nowhere any more.
    pub fn remove(&mut self, lbas: Range<u64>, lost: impl FnMut(Loss)) {
        let gone = Self::gone(&mut self.rows, lost);
        self.map.remove(lbas, gone);
    }

    fn gone(rows: &mut [Row], mut lost: impl FnMut(Loss)) -> impl FnMut(Extent) {
        move |e| {
            let row = &mut rows[e.packet as usize];
            row.live -= e.blocks as u32;
            lost(Loss { band: e.packet, blocks: e.blocks as u32, live: row.live, written: row.written });
        }
    }

    /// Forgets what was written to a band, all of which must be dead.
    ///
    /// # Panics
    /// When something in it is live.
    pub fn free(&mut self, band: u32) {
        let row = &mut self.rows[band as usize];
        assert_eq!(row.live, 0, "band {band} is freed with live blocks");
        *row = Row::default();
    }

    /// Calls `each` with the blocks of `lbas`, in order: those that lie side by side, and where; `None`: they are nowhere.
    #[inline]
    pub fn locate(&self, lbas: Range<u64>, mut each: impl FnMut(Range<u64>, Option<Pba>)) {
        let mut at = lbas.start;
        for e in self.map.within(lbas.clone()) {
            if e.lba > at {
                each(at..e.lba, None);
            }
            at = e.lba + e.blocks;
            each(e.lba..at, Some(self.bands.start(BandId(u64::from(e.packet))) + Blocks(e.at)));
        }
        if at < lbas.end {
            each(at..lbas.end, None);
        }
    }

    /// The first live runs between two offsets of a band, in order of their places: up to `most` blocks, of which the last run may be
    /// a part.
    pub fn live_in(&self, band: u32, offsets: Range<u64>, most: Blocks) -> Vec<LiveRun> {
        let (mut runs, mut left): (Vec<LiveRun>, u64) = (Vec::new(), most.0);
        let Some(row) = self.rows.get(band as usize) else { return runs };
        let first = row.appended.partition_point(|a| u64::from(a.at) + u64::from(a.blocks) <= offsets.start);
        for a in row.appended[first..].iter().take_while(|a| u64::from(a.at) < offsets.end) {
            let skipped = offsets.start.saturating_sub(a.at.into());
            let blocks = u64::from(a.blocks).min(offsets.end - u64::from(a.at));
            let lbas = a.lba + skipped..a.lba + blocks;
            let here = |e: &Extent| e.packet == band && e.at == u64::from(a.at) + (e.lba - a.lba);
            for e in self.map.within(lbas).filter(here) {
                let blocks = e.blocks.min(left);
                match runs.last_mut() {
                    _ if blocks == 0 => return runs,
                    Some(run) if run.lba + run.blocks == e.lba && run.at + run.blocks == e.at => {
                        run.blocks += blocks
                    }
                    _ => runs.push(LiveRun { lba: e.lba, blocks, at: e.at }),
                }
                left -= blocks;
            }
        }
        runs
    }

    /// Which of the blocks `lbas` are somewhere, ascending.
    pub fn allocated(&self, lbas: Range<u64>, out: &mut dyn FnMut(Range<u64>)) {
        let mut open: Option<Range<u64>> = None;
        for e in self.map.within(lbas) {
            match &mut open {
                Some(run) if run.end == e.lba => run.end += e.blocks,
                _ => open.replace(e.lba..e.lba + e.blocks).into_iter().for_each(&mut *out),
            }
        }
        open.into_iter().for_each(out);
    }

    /// The bands in use as records, from which [`take`](Self::take) makes the same.
    pub fn checkpoint(&self, out: &mut dyn Sink) {
        for (band, row) in self.rows.iter().enumerate().filter(|(_, row)| row.written > 0) {
            out.push(WRITTEN, [band as u64, u64::from(row.written), 0]);
            for run in self.live_in(band as u32, 0..u64::MAX, Blocks(u64::MAX)) {
                out.push(LIVE, [run.lba, run.blocks, band as u64 | run.at << 32]);
            }
        }
    }

    /// Takes a record of a checkpoint's; `false`: it is not one.
    pub fn take(&mut self, record: &Record) -> bool {
        let [a, b, c] = record.words;
        match record.tag {
            WRITTEN => {
                self.open(a as u32);
                self.rows[a as usize].written = b as u32;
            }
            LIVE => {
                let (packet, at) = (c as u32, c >> 32);
                self.map.insert(Extent { lba: a, blocks: b, packet, at });
                let row = &mut self.rows[packet as usize];
                row.appended.push(Appended { lba: a, at: at as u32, blocks: b as u32 });
                row.live += b as u32;
            }
            _ => return false,
        }
        true
    }

    /// Bytes on the heap, estimated.
    pub fn bytes(&self) -> u64 {
        let lists: usize = self.rows.iter().map(|row| row.appended.capacity() * size_of::<Appended>()).sum();
        self.map.bytes() + (lists + self.rows.capacity() * size_of::<Row>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Records;
    use smrlab_disk::model;

    /// Bands of three tracks of 24 blocks.
    fn tiny() -> Holdings {
        let drive = model::load("tiny", |_| Err(String::new())).unwrap();
        Holdings::new(drive.bands(Some(3)).unwrap())
    }

    fn run(lba: u64, blocks: u64, at: u64) -> LiveRun {
        LiveRun { lba, blocks, at }
    }

    #[test]
    fn blocks_live_where_they_were_appended_last() {
        let mut h = tiny();
        (0..2).for_each(|band| h.open(band));
        h.append(0, 10..20, |_| panic!("nothing was there"));
        h.append(0, 20..24, |_| panic!("nothing was there"));
        let mut lost = Vec::new();
        h.append(1, 14..16, |loss| lost.push(loss));
        assert_eq!(lost, [Loss { band: 0, blocks: 2, live: 12, written: 14 }]);
        assert_eq!((h.live(0), h.live(1), h.written(0)), (12, 2, 14));
        assert_eq!(h.live_in(0, 0..99, Blocks(99)), [run(10, 4, 0), run(16, 8, 6)]);
        assert_eq!(h.live_in(0, 1..99, Blocks(5)), [run(11, 3, 1), run(16, 2, 6)]);
        assert_eq!(h.live_in(0, 1..7, Blocks(5)), [run(11, 3, 1), run(16, 1, 6)]);
        assert_eq!(h.live_in(0, 4..6, Blocks(5)), []);
        let (mut seen, first) = (Vec::new(), |band| h.bands().start(BandId(band)));
        h.locate(8..18, |lbas, pba| seen.push((lbas, pba)));
        let at = |band, n| Some(first(band) + Blocks(n));
        assert_eq!(seen, [(8..10, None), (10..14, at(0, 0)), (14..16, at(1, 0)), (16..18, at(0, 6))]);
        seen.clear();
        h.remove(12..20, |_| ());
        h.allocated(0..30, &mut |lbas| seen.push((lbas, None)));
        assert_eq!((seen, h.live(0), h.live(1)), (vec![(10..12, None), (20..24, None)], 6, 0));
        // What was appended twice to one band is in one place of it.
        h.append(0, 20..22, |_| ());
        assert_eq!(h.live_in(0, 0..99, Blocks(99)), [run(10, 2, 0), run(22, 2, 12), run(20, 2, 14)]);
        h.free(1);
        assert_eq!((h.written(1), h.end(0)), (0, h.bands().start(BandId(0)) + Blocks(16)));
    }

    #[test]
    fn what_goes_on_takes_no_more_memory() {
        let mut h = tiny();
        h.open(0);
        let bytes = |h: &mut Holdings, lba: u64| {
            h.append(0, lba..lba + 1, |_| ());
            h.bytes()
        };
        // The second one is put beside the first before it is joined to it; from then on there is room for that.
        let joined = [40, 41].map(|lba| bytes(&mut h, lba))[1];
        assert!((42..60).all(|lba| bytes(&mut h, lba) == joined));
        assert!((0..5).map(|i| bytes(&mut h, 2 * i)).last() > Some(joined));
    }

    #[test]
    fn a_checkpoint_makes_the_same() {
        let (mut h, mut again) = (tiny(), tiny());
        [0, 2].into_iter().for_each(|band| h.open(band));
        for (band, lbas) in [(0, 5..9), (2, 100..107), (0, 7..8), (2, 9..12), (0, 50..60), (2, 50..51)] {
            h.append(band, lbas, |_| ());
        }
        let records = |h: &Holdings| {
            let mut out = Records::default();
            h.checkpoint(&mut out);
            out
        };
        assert!(records(&h).changes().all(|r| again.take(&r)) && !again.take(&Record::default()));
        assert_eq!(records(&again), records(&h));
        assert!(
            (0..3).all(|band| (h.live(band), h.written(band)) == (again.live(band), again.written(band)))
        );
    }
}
