//! Which units go together: the note that goes with each unit, the class that follows from it, and the head of the class.

use super::LogLayer;
use super::options::{Separate, classes};
use crate::parts::victim::Victim;

impl LogLayer {
    /// The note that a unit gets when the host writes it, and its class then.
    #[inline]
    pub(super) fn noted(&self, unit: u64) -> (u32, u32) {
        let now = self.clock as u32;
        match self.options.separate {
            Separate::None if self.options.victim != Victim::ColdWeight => (0, 0),
            Separate::Recency(window) => {
                let hot = self.homes.find(unit).is_some_and(|old| now.wrapping_sub(old.note) <= window);
                (now, u32::from(hot))
            }
            Separate::Window { .. } => (0, self.class(unit, 0)),
            Separate::None | Separate::Frequency(_) => {
                let count = self.homes.find(unit).map_or(0, |old| old.note + 1).min(255);
                (count, self.class(unit, count))
            }
        }
    }

    /// 1: hot, 0: cold or not told apart.
    #[inline]
    pub(super) fn class(&self, unit: u64, note: u32) -> u32 {
        match self.options.separate {
            Separate::None => 0,
            Separate::Frequency(hot) => u32::from(note >= hot),
            Separate::Recency(window) => u32::from((self.clock as u32).wrapping_sub(note) <= window),
            Separate::Window { hot, .. } => {
                u32::from(self.window.as_ref().is_some_and(|window| window.heat(unit) >= hot))
            }
        }
    }

    /// The head to which the host's units of a stream and class go.
    #[inline]
    pub(super) fn host_head(&self, stream: u16, class: u32) -> u32 {
        let stream = if self.options.streams == 1 { 0 } else { u32::from(stream) % self.options.streams };
        stream * classes(self.options.separate) + class
    }
}
