//! Updates in place, plain or through a journal: what all in-place layers share.
//!
//! An update rewrites some runs of one band. A power cut in the middle of it destroys what interferes with the part that
//! was written. With a [`Journal`] all that will be written goes to the journal's own bands first; records then say where
//! it belongs, and [`Journal::recover`] writes it there again. Both the journal and what it held must be durable, one before
//! the update in place and the other before the journal is overwritten: fences say so.

use crate::{Cause, Endpoint, OpId, Piece, Plan, Record, Sink};
use smrlab_disk::{BandId, Bands};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, Pba};

/// `words` = PBA, blocks, index within the update: one run that the journal holds, in the journal's order.
const HOME: u32 = 0x4a01;
/// `words` = runs, place: the journal holds all of them from there on.
const COMMIT: u32 = 0x4a02;
/// All runs of the update are at home.
const DONE: u32 = 0x4a03;
/// Of a checkpoint: `words` = place and blocks of the last update.
const LAST: u32 = 0x4a04;

/// The option of layers that update in place; see [`Journal::chosen`].
pub const JOURNAL: Param = Param::new("journal", Kind::Switch, "off")
    .doc("write each update to a journal first, so that it survives a power cut");

#[derive(Clone, Copy, Debug)]
struct Home {
    pba: Pba,
    blocks: Blocks,
    first_piece: u32,
    /// All of it is the host's data.
    of_host: bool,
}

/// The writes of one update, ascending in PBA. Reused from request to request.
#[derive(Debug, Default)]
pub struct Update {
    homes: Vec<Home>,
    pieces: Vec<Piece>,
    wants_pieces: bool,
}

impl Update {
    /// Begins anew, for a plan that goes through a journal; pieces are kept where somebody will ask for them.
    pub fn begin(&mut self, journal: &Journal, plan: &Plan) {
        self.homes.clear();
        self.pieces.clear();
        self.wants_pieces = journal.is_on() || plan.wants_data();
    }

    /// A write of its own operation begins at `pba`.
    #[inline]
    pub fn start(&mut self, pba: Pba) {
        let first_piece = self.pieces.len() as u32;
        self.homes.push(Home { pba, blocks: Blocks::ZERO, first_piece, of_host: true });
    }

    /// A write of its own operation begins at `pba` with so many blocks, one at least, from one source: mostly these are all.
    #[inline]
    pub fn start_with(&mut self, pba: Pba, blocks: Blocks, source: Endpoint) {
        let (first_piece, of_host) = (self.pieces.len() as u32, matches!(source, Endpoint::Host(_)));
        self.homes.push(Home { pba, blocks, first_piece, of_host });
        if self.wants_pieces {
            self.pieces.push(Piece { blocks, end: source });
        }
    }

    /// Goes on with the write that was started last. Nothing happens where `blocks` is zero.
    ///
    /// # Panics
    /// When none was started.
    #[inline]
    pub fn piece(&mut self, blocks: Blocks, source: Endpoint) {
        if blocks.0 > 0 {
            let home = self.homes.last_mut().expect("a write was started");
            home.blocks += blocks;
            home.of_host &= matches!(source, Endpoint::Host(_));
            if self.wants_pieces {
                self.pieces.push(Piece { blocks, end: source });
            }
        }
    }

    fn pieces_of(&self, i: usize) -> &[Piece] {
        let end = self.homes.get(i + 1).map_or(self.pieces.len(), |h| h.first_piece as usize);
        &self.pieces[self.homes[i].first_piece as usize..end]
    }

    /// Plans the writes. `records` adds what becomes durable with them: behind the writes, or where there is a journal
    /// together with its commit.
    ///
    /// A write of nothing but the host's data is the host's; one that puts anything back is cleaning.
    pub fn emit(&self, journal: &mut Journal, plan: &mut Plan, records: impl FnOnce(&mut Plan)) {
        if journal.is_on() {
            let place = journal.append(&self.pieces, plan);
            for (i, home) in self.homes.iter().enumerate() {
                plan.record(Record { tag: HOME, words: [home.pba.0, home.blocks.0, i as u64] });
            }
            plan.record(Record { tag: COMMIT, words: [self.homes.len() as u64, place, 0] });
            records(plan);
            plan.fence();
            self.write_home(plan);
            plan.record(Record { tag: DONE, words: [0; 3] });
        } else {
            self.write_home(plan);
            records(plan);
        }
    }

    #[inline]
    fn write_home(&self, plan: &mut Plan) {
        for (i, home) in self.homes.iter().enumerate() {
            let cause = if home.of_host { Cause::Host } else { Cause::Clean };
            plan.write_pieces(cause, home.pba, home.blocks, |out| out.extend_from_slice(self.pieces_of(i)));
        }
    }
}

/// Bands at the end of the medium that hold one update at a time: its plan is over before the next request starts. Yet an
/// update goes behind the one before as long as there is room: then what makes the new one durable in the journal makes
/// the old one so at home, and only where the journal begins anew it has to wait for that.
///
/// A journal without bands is off: updates go home at once.
#[derive(Debug, Default)]
pub struct Journal {
    extents: Vec<(Pba, Blocks)>,
    /// Where the last update begins, and how long it is; places count through all extents.
    last: (u64, Blocks),
    /// Runs of the update that was read back last, and whether it was committed.
    pending: Vec<(Pba, Blocks)>,
    committed: bool,
    /// What the last update wrote may not be durable at home.
    needed: bool,
}

impl Journal {
    /// What [`JOURNAL`] says; answers it and the number of bands that remain. Where it is on it takes as many of the last
    /// bands as hold the largest one.
    ///
    /// # Errors
    /// When no band would remain.
    pub fn chosen(values: &Values, layer: &str, bands: &Bands) -> Result<(Self, u64), SpecError> {
        if !values.on(JOURNAL.name) {
            return Ok((Self::default(), bands.len()));
        }
        let largest = (0..bands.len()).map(|b| bands.band(BandId(b)).blocks).max().unwrap_or_default();
        let (mut remain, mut held, mut extents) = (bands.len(), Blocks::ZERO, Vec::new());
        while held < largest && remain > 0 {
            remain -= 1;
            let band = bands.band(BandId(remain));
            held += band.blocks;
            extents.push((band.first, band.blocks));
        }
        if remain == 0 {
            return Err(SpecError::Other(format!(
                "{layer}: journal=on takes {} of the drive's {} bands and leaves none: use a smaller band= or a \
                 larger drive",
                extents.len(),
                bands.len()
            )));
        }
        extents.reverse();
        Ok((Self { extents, ..Self::default() }, remain))
    }

    /// Whether updates go through it.
    pub fn is_on(&self) -> bool {
        !self.extents.is_empty()
    }

    /// Where an update of `blocks` begins, as a place.
    fn place(&self, blocks: Blocks) -> u64 {
        let size: u64 = self.extents.iter().map(|e| e.1.0).sum();
        let behind = self.last.0 + self.last.1.0;
        if behind + blocks.0 <= size { behind } else { 0 }
    }

    /// Where an update of `blocks` begins whose home begins at `home`.
    pub fn first(&self, home: Pba, blocks: Blocks) -> Pba {
        if !self.is_on() {
            return home;
        }
        self.runs(self.place(blocks), blocks).next().expect("an update has blocks").0
    }

    /// The parts of the medium that `blocks` from a place on take.
    fn runs(&self, place: u64, blocks: Blocks) -> impl Iterator<Item = (Pba, Blocks)> + use<'_> {
        let (end, mut start) = (place + blocks.0, 0);
        self.extents.iter().filter_map(move |&(pba, room)| {
            let (from, to) = (place.max(start), end.min(start + room.0));
            let run = (from < to).then(|| (pba + Blocks(from - start), Blocks(to - from)));
            start += room.0;
            run
        })
    }

    /// Everything so far has become durable.
    pub fn durable(&mut self) {
        self.needed = false;
    }

    /// Writes all of `pieces`, cut where one band of the journal ends; answers where they begin.
    fn append(&mut self, pieces: &[Piece], plan: &mut Plan) -> u64 {
        let blocks = Blocks(pieces.iter().map(|p| p.blocks.0).sum());
        let place = self.place(blocks);
        if self.needed && place == 0 {
            plan.fence();
        }
        let mut done = Blocks::ZERO;
        for (pba, n) in self.runs(place, blocks) {
            plan.write_pieces(Cause::Journal, pba, n, |out| slice(pieces, done, n, out));
            done += n;
        }
        debug_assert_eq!(done, blocks, "the journal holds the largest update");
        (self.last, self.needed) = ((place, blocks), true);
        place
    }

    /// What a fresh journal has to know of this one.
    pub fn checkpoint(&self, out: &mut dyn Sink) {
        if self.last.1.0 > 0 {
            out.push(LAST, [self.last.0, self.last.1.0, 0]);
        }
    }

    /// Takes a record of the journal's; `false`: it is not one.
    pub fn take(&mut self, record: &Record) -> bool {
        match record.tag {
            HOME => {
                if record.words[2] == 0 {
                    self.forget();
                }
                self.pending.push((Pba(record.words[0]), Blocks(record.words[1])));
            }
            COMMIT => {
                self.committed = record.words[0] == self.pending.len() as u64;
                self.last = (record.words[1], Blocks(self.pending.iter().map(|(_, n)| n.0).sum()));
            }
            LAST => self.last = (record.words[0], Blocks(record.words[1])),
            DONE => self.forget(),
            _ => return false,
        }
        true
    }

    fn forget(&mut self) {
        self.pending.clear();
        self.committed = false;
    }

    /// Plans the replay of an update that was committed and not done.
    pub fn recover(&mut self, plan: &mut Plan) {
        if !self.committed {
            return self.forget();
        }
        let read = |(pba, blocks): (Pba, Blocks)| {
            let op = plan.read_staged(Cause::Journal, pba, blocks);
            Piece { blocks, end: Endpoint::Staged(op, Blocks::ZERO) }
        };
        let held: Vec<_> = self.runs(self.last.0, self.last.1).map(read).collect();
        let mut from = Blocks::ZERO;
        for &(pba, blocks) in &self.pending {
            plan.write_pieces(Cause::Journal, pba, blocks, |out| slice(&held, from, blocks, out));
            from += blocks;
        }
        plan.record(Record { tag: DONE, words: [0; 3] });
        self.needed = true;
        self.forget();
    }
}

/// `source`, `by` blocks further on.
pub(crate) fn advanced(source: Endpoint, by: Blocks) -> Endpoint {
    match source {
        Endpoint::Host(at) => Endpoint::Host(at + by),
        Endpoint::Staged(op, at) => Endpoint::Staged(op, at + by),
        Endpoint::Held(pba) => Endpoint::Held(pba + by),
        Endpoint::Zero | Endpoint::Records => source,
    }
}

/// Adds the part of `pieces` from block `from` on that is `blocks` long.
fn slice(pieces: &[Piece], from: Blocks, blocks: Blocks, out: &mut Vec<Piece>) {
    let (mut at, end) = (0, from.0 + blocks.0);
    for p in pieces {
        let (lo, hi) = (at.max(from.0), (at + p.blocks.0).min(end));
        if lo < hi {
            out.push(Piece { blocks: Blocks(hi - lo), end: advanced(p.end, Blocks(lo - at)) });
        }
        at += p.blocks.0;
    }
}

/// How far the place that [`TranslationLayer::locate`](crate::TranslationLayer::locate) tells may change with an update
/// elsewhere: what is live in a band decides.
pub(crate) fn two_bands(bands: &Bands) -> Blocks {
    Blocks(2 * bands.longest().0)
}

/// Stages a run and answers where it is.
pub(crate) fn stage(plan: &mut Plan, pba: Pba, blocks: Blocks) -> OpId {
    plan.read_staged(Cause::Clean, pba, blocks)
}
