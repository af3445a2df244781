//! How far off a request may be that is to begin within some time: what is farther away need not be looked at.

use super::{Mechanics, Model};
use smrlab_units::{Dir, SimTime};

/// So many steps of time are told apart.
const STEPS: u64 = 128;

/// What rounding to nanoseconds may make a longer seek shorter, and more.
const SLACK: u64 = 2;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Reach {
    /// By steps of time: how many cylinders off a read, and a write, may be. Within a time that is not there it may be anywhere.
    farthest: Vec<[u32; 2]>,
    shift: u32,
}

impl Reach {
    /// A read (0), or a write (1), that is more cylinders off than this begins later than `delay` after it was dispatched.
    #[inline]
    pub fn within(&self, delay: SimTime) -> [u32; 2] {
        let step = (delay.0 >> self.shift) as usize;
        self.farthest.get(step).copied().unwrap_or([u32::MAX; 2])
    }
}

impl Mechanics {
    /// How far the heads come in which time, wherever they are; everywhere at once where a longer way may take less time, or where the
    /// way is not counted in cylinders from where the heads are.
    pub fn reach(&self) -> Reach {
        let most = self.geometry.cylinders().saturating_sub(1);
        let longest = [Dir::Read, Dir::Write].map(|dir| self.least(dir, most)).into_iter().max().unwrap_or(0);
        let mut shift = 0;
        while longest >> shift >= STEPS {
            shift += 1;
        }
        let plain = self.model == Model::Full && !self.blocks_distance && self.one_place == 0;
        let steps = if plain && self.ascends { (longest >> shift) + 1 } else { 0 };
        let by = |until: u64| [Dir::Read, Dir::Write].map(|dir| self.farthest_by(dir, most, until));
        Reach { farthest: (1..=steps).map(|step| by((step << shift) + SLACK)).collect(), shift }
    }

    /// The least time of a positioning over so many cylinders. Without overhead: what goes on with the last transfer has none.
    fn least(&self, dir: Dir, cylinders: u32) -> u64 {
        let ways = [(0, cylinders), (cylinders, 0)];
        ways.map(|way| self.switch_time(dir, way, false)).into_iter().min().unwrap_or(0)
    }

    /// The most of up to `most` cylinders that are passed in at most `time`.
    fn farthest_by(&self, dir: Dir, most: u32, time: u64) -> u32 {
        let (mut near, mut far) = (0, most + 1);
        while far - near > 1 {
            let middle = near + (far - near) / 2;
            if self.least(dir, middle) <= time { near = middle } else { far = middle }
        }
        near
    }
}
