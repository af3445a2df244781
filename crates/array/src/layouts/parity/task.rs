//! Work of the array's own, by name.

use crate::plan::tasks;

tasks! {
    /// What the array does by itself.
    pub(super) enum Task from 0 {
        /// Rebuilds this unit of the disk whose turn it is.
        Rebuild,
        /// Makes the parities of this row fit its data.
        Resync,
        /// Puts the logs of this region into the parity.
        Apply,
        /// Does again what this place of the journal holds.
        Redo,
    }
}

/// What a task is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Its reads.
    Sources,
    /// Its writes.
    Target,
}
