//! Where the log, the scratch bands and the native bands lie, and what passes of the drive's own take.

use crate::entry::BuildContext;
use crate::parts::stretches::MediumSpace;
use smrlab_disk::bands::BandId;
use smrlab_disk::mechanics::Distance;
use smrlab_disk::{Bands, Interference, Mechanics};
use smrlab_units::reciprocal::RunIndex;
use smrlab_units::{Blocks, Dir, Pba, SimTime};
use std::ops::Range;

/// What the bands are for, at least.
const LEAST: &str = "a log of at least 3, two scratch bands and a native one";

/// A band of the medium, its guard left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsableBand {
    pub first: Pba,
    pub blocks: u64,
    /// Blocks in one of its tracks, on the average.
    pub track: u64,
    /// What seek curves take as the place of its beginning.
    pub seek: u64,
}

/// See the [module](self).
pub(super) struct Layout {
    pub bands: Bands,
    /// The log, in the order in which its bands are filled.
    pub log: Vec<UsableBand>,
    /// Two scratch bands, as large as the largest native one, and how many tracks each of them has.
    pub scratch: [UsableBand; 2],
    pub scratch_tracks: u64,
    pub native: Vec<UsableBand>,
    /// The host's first block of each native band, and the end.
    starts: RunIndex,
    /// Blocks that a write may damage behind its end.
    pub reach: u64,
    /// Blocks in a track of the log.
    pub track: u64,
    /// Nanoseconds of a revolution, times a thousand.
    turn: u64,
    /// What passes at the end of a track of the log before a write goes on.
    track_end: SimTime,
    /// From each native band to the log, which counts as lying where the native bands begin.
    ways: Vec<SimTime>,
}

/// The way from each of these bands to the log.
fn ways(mechanics: &Mechanics, native: &[UsableBand]) -> Vec<SimTime> {
    let base = native[0].seek;
    let way = |band: &UsableBand| match band.seek.checked_sub(base) {
        Some(away) => mechanics.read_seek(away + 1, 0),
        None => mechanics.read_seek(base - band.seek, 0),
    };
    native.iter().map(way).collect()
}

/// What passes at the end of the first track of a band before a write goes on.
fn track_end(mechanics: &Mechanics, band: &UsableBand) -> SimTime {
    let passing = |blocks| {
        let mut head = mechanics.clone();
        head.service(SimTime::ZERO, Dir::Write, band.first + Blocks(band.track - 1), Blocks(blocks));
        head.phases().transfer
    };
    if band.blocks > band.track { passing(2).since(passing(1) + passing(1)) } else { SimTime::ZERO }
}

impl Layout {
    /// Takes bands for a log of `log` blocks (and two more, so that one can be filled while the oldest is emptied) and for
    /// two scratch bands; all others are native. The log takes those at the beginning, beginning with the one that lies
    /// nearest to the native bands.
    ///
    /// # Errors
    /// When the drive has too few bands.
    pub(super) fn new(
        context: &BuildContext,
        bands: Bands,
        log: Option<Blocks>,
        overhead: u64,
    ) -> Result<Self, String> {
        let drive = &context.drive;
        let blocks_alone = matches!(drive.interference(), Interference::Blocks(_));
        let over_blocks = drive.spec().mechanics.distance == Distance::Blocks;
        let mechanics = drive.mechanics(None).map_err(|e| e.to_string())?;
        let mut all: Vec<UsableBand> = (0..bands.len())
            .map(|i| {
                let b = bands.band(BandId(i));
                let seek =
                    if over_blocks { b.first.0 } else { u64::from(mechanics.target(b.first).cylinder()) };
                // Zones need not be whole tracks, and do not say how many they have.
                let track = if b.tracks == 0 && !blocks_alone {
                    drive.geometry().track_blocks(drive.geometry().track_of(b.first)).0
                } else {
                    (b.blocks.0 / b.tracks.max(1)).max(1)
                };
                UsableBand { first: b.first, blocks: b.blocks.0, track, seek }
            })
            .filter(|place| place.blocks > 0) // all its sectors may be spare
            .collect();
        let mut largest: Vec<usize> = (0..all.len()).collect();
        largest.sort_by_key(|&i| (u64::MAX - all[i].blocks, i));
        let count = all.len();
        let few = || format!("too few bands, {count}, for {LEAST}: use smaller ones or a larger drive");
        let [a, b] = *largest.get(..2).ok_or_else(few)? else { return Err(few()) };
        let scratch = [all[a.min(b)], all[a.max(b)]];
        all.remove(a.max(b));
        all.remove(a.min(b));
        let wanted = log.map_or(all.iter().map(|p| p.blocks).sum::<u64>() / 200, |b| b.0).max(1);
        let (mut size, mut taken) = (0, 0);
        while size < wanted && taken < all.len() {
            // Packets do not cross bands: with an overhead they are long, and the ends of bands stay empty.
            size += all[taken].blocks.saturating_sub(3 * overhead).max(1);
            taken += 1;
        }
        taken += 2;
        if taken >= all.len() {
            return Err(format!(
                "a log of {wanted} blocks leaves no native band of {}: use a smaller log= or smaller bands",
                all.len()
            ));
        }
        let native = all.split_off(taken);
        all.reverse();
        let mut starts = vec![0];
        let mut end = 0;
        for n in &native {
            end += n.blocks;
            starts.push(end);
        }
        Ok(Self {
            bands,
            track: all[0].track,
            track_end: track_end(&mechanics, &all[0]),
            scratch_tracks: (scratch[0].blocks / all[0].track).max(1),
            log: all,
            scratch,
            ways: ways(&mechanics, &native),
            native,
            starts: RunIndex::new(starts, end),
            reach: MediumSpace::of(drive).guard().0,
            turn: 60_000_000_000_000 / u64::from(drive.spec().mechanics.rpm),
        })
    }

    /// Blocks in all native bands.
    pub(super) fn blocks(&self) -> u64 {
        self.starts.start(self.native.len())
    }

    /// The native band of a block of the host's, and the offset in it.
    #[inline]
    pub(super) fn native_of(&self, lba: u64) -> (usize, u64) {
        let band = self.starts.find(lba);
        (band, lba - self.starts.start(band))
    }

    /// The host's blocks of a native band.
    pub(super) fn host(&self, band: usize) -> Range<u64> {
        self.starts.start(band)..self.starts.start(band + 1)
    }

    /// Where the block lies natively.
    pub(super) fn home(&self, lba: u64) -> Pba {
        let (band, offset) = self.native_of(lba);
        self.native[band].first + Blocks(offset)
    }

    /// Blocks in the bands of the log, the two that are kept free left out.
    pub(super) fn log_blocks(&self) -> u64 {
        let mut each: Vec<u64> = self.log.iter().map(|p| p.blocks).collect();
        each.sort_unstable();
        each[2..].iter().sum()
    }

    /// Blocks in a band of the log, at least.
    pub(super) fn least_log_band(&self) -> u64 {
        self.log.iter().map(|p| p.blocks).min().unwrap_or(1)
    }

    /// `turns / of` revolutions.
    pub(super) fn turns(&self, turns: u64, of: u64) -> SimTime {
        match self.turn.checked_mul(turns) {
            Some(whole) => SimTime(whole / (of * 1000)),
            None => SimTime((u128::from(self.turn) * u128::from(turns) / u128::from(of * 1000)) as u64),
        }
    }

    /// How long so many blocks at an offset in a band of the log pass.
    pub(super) fn passing(&self, offset: u64, blocks: u64) -> SimTime {
        let ends = (offset + blocks - 1) / self.track - offset / self.track;
        self.turns(blocks, self.track) + SimTime(ends * self.track_end.0)
    }

    /// The way from a native band to the log.
    pub(super) fn way_from(&self, band: usize) -> SimTime {
        self.ways[band]
    }
}
