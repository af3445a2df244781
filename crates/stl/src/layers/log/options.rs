//! What can be chosen about the log.

use crate::parts::victim::Victim;
use smrlab_units::{Blocks, SimTime};

/// How units that are written often are told from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separate {
    /// They are not.
    None,
    /// Hot: written at least so many times; a compaction that moves a unit halves its count.
    Frequency(u32),
    /// Hot: written not longer ago than the host needed to write so many units.
    Recency(u32),
    /// Hot: its [heat](crate::parts::window::Window::heat) within the last so many units written is at least so much.
    Window {
        /// Units in the window.
        length: u32,
        /// The least heat.
        hot: u64,
    },
}

/// What can be chosen about the layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogOptions {
    /// Which band is cleaned.
    pub victim: Victim,
    /// Survivors of a compaction go to bands of their own.
    pub own: bool,
    /// Append streams: requests of stream `i` go to bands of stream `i mod streams`.
    pub streams: u32,
    /// Hot units go to other bands than cold ones.
    pub separate: Separate,
    /// While more than this share of the bands holds hot units, the oldest of those bands is cleaned.
    pub hot_bands: Option<f64>,
    /// Share of the space that the host does not see, beside the reserve.
    pub overprovision: f64,
    /// The host gets no more than this: what the drive counts as its size.
    pub most: Blocks,
    /// Bands that are kept free; fewer than progress needs are not taken.
    pub reserve: Option<u32>,
    /// Work in idle time.
    pub idle: Option<Idle>,
}

/// What is done when the drive is idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idle {
    /// For so long.
    pub after: SimTime,
    /// Until this share of the bands is free.
    pub free: f64,
    /// Only bands of which this share is dead.
    pub dead: f64,
}

impl Default for LogOptions {
    fn default() -> Self {
        let (victim, separate) = (Victim::Greedy, Separate::None);
        Self {
            victim,
            own: false,
            streams: 1,
            separate,
            hot_bands: None,
            overprovision: 0.1,
            most: Blocks(u64::MAX),
            reserve: None,
            idle: None,
        }
    }
}

impl Separate {
    /// The note that a unit keeps when a compaction moves it.
    #[inline]
    pub(super) fn cooled(self, note: u32) -> u32 {
        if matches!(self, Self::Recency(_)) { note } else { note / 2 }
    }
}

/// Into how many classes units are sorted.
pub(super) fn classes(separate: Separate) -> u32 {
    if separate == Separate::None { 1 } else { 2 }
}
