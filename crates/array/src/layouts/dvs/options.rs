//! What is set by parameters beside the shape.

use super::victim::Rule;
use smrlab_units::{SimTime, named};

named! {
    /// What becomes of a stripe that is not full: the three choices of Luo et al., who take the first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Stripes {
        /// It is written as narrow as it is.
        Variable => "variable",
        /// Old chunks are read and written again to make it full.
        Fill => "fill",
        /// Its chunks wait in the write cache until there are enough.
        Wait => "wait",
    }
}

/// How an array behaves beyond its shape.
#[derive(Clone, Copy, Debug)]
pub struct DvsOptions {
    /// Idle time before groups are collected; `None`: never.
    pub idle: Option<SimTime>,
    /// Only groups of whose written data chunks at least this share is obsolete.
    pub obsolete: f64,
    /// Which of them goes first.
    pub victim: Rule,
    /// What becomes of narrow stripes.
    pub stripes: Stripes,
    /// Tables that the SSD has room for; `None`: all.
    pub tables: Option<u64>,
    /// Groups rebuilt at a time.
    pub depth: u64,
    /// Collections are journalled on an SSD.
    pub journal: bool,
    /// Seed of what is drawn.
    pub seed: u64,
}

#[cfg(test)]
impl DvsOptions {
    /// What tests begin with: nothing in idle time, and all else as users get it.
    pub fn plain() -> Self {
        Self {
            idle: None,
            obsolete: 0.25,
            victim: super::victim::named("most-invalid"),
            stripes: Stripes::Variable,
            tables: None,
            depth: 1,
            journal: false,
            seed: 1,
        }
    }
}
