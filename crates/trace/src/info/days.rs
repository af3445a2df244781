//! How much of a device stays as it is from one day to the next: update stability (Amer et al. 2010).

use smrlab_blockmap::BlockSet;
use smrlab_units::SimTime;

/// A day of a trace.
const DAY: SimTime = SimTime::from_ms(24 * 60 * 60 * 1000);

/// Counts the different blocks that are written on each whole day from the first request on.
#[derive(Default)]
pub(super) struct Days {
    /// Blocks written on the day so far, of each device by its place.
    today: Vec<BlockSet>,
    /// The number of the day.
    day: u64,
    /// Different blocks written on all days that are over.
    written: u64,
}

impl Days {
    /// Time has come to `since_first`: days before are over.
    pub(super) fn advance(&mut self, since_first: SimTime) {
        let day = since_first.0 / DAY.0;
        if day > self.day {
            self.written += self.today.iter().map(BlockSet::count).sum::<u64>();
            self.today.iter_mut().for_each(BlockSet::clear);
            self.day = day;
        }
    }

    /// Blocks of the device at this place are written.
    pub(super) fn write(&mut self, place: usize, blocks: std::ops::Range<u64>) {
        if place >= self.today.len() {
            self.today.resize_with(place + 1, BlockSet::new);
        }
        self.today[place].insert(blocks);
    }

    /// Of `blocks` of all devices the share that is not written on a day, in the mean of all whole days; `None`: there is
    /// none.
    pub(super) fn unchanged(&self, blocks: u64) -> Option<f64> {
        let all = blocks as f64 * self.day as f64;
        (all > 0.0).then(|| 1.0 - self.written as f64 / all)
    }

    pub(super) fn bytes(&self) -> usize {
        self.today.iter().map(BlockSet::bytes).sum()
    }
}
