//! What runs: a volume with what observes it, and what the result says of it. One drive, or an array.

pub(crate) mod array;
pub(crate) mod drive;

use crate::control::Control;
use crate::engine::{Arrivals, Feed};
use crate::error::RunError;
use crate::prefill::Prefill;
use crate::result::Facts;
use crate::table::Table;
use serde_json::{Map, Value};
use smrlab_array::ArrayState;
use smrlab_blockmap::BlockSet;
use smrlab_drive::{Drive, State};
use smrlab_stl::{Counted, counted};
use smrlab_units::Blocks;

/// What was found, beside the document's head.
pub(crate) struct Found {
    /// The tables of the result.
    pub tables: Vec<Table>,
    /// The keys of the result.
    pub keys: Map<String, Value>,
    /// Bytes that verification took, where blocks were followed.
    pub verified: Option<usize>,
}

/// See the [module](self).
pub(crate) trait Rig: Sized {
    /// Brings fresh drives to a state; what was written there counts as written before.
    fn restore(&mut self, state: &ArrayState);

    /// Writes a part of the host's space before the run; `reads`: what the trace reads first, where that is to be written.
    ///
    /// # Errors
    /// A cancelled run.
    fn prefill(&mut self, prefill: &Prefill, reads: &BlockSet, control: &Control) -> Result<(), RunError>;

    /// What comes from here on is the run.
    fn begins(&mut self);

    /// Runs all requests of `feed`; answers the largest number of them in the system, where it was counted exactly.
    ///
    /// # Errors
    /// Those of [`engine::run`](crate::engine::run).
    fn run(
        &mut self,
        feed: &mut Feed,
        arrivals: Arrivals,
        control: &Control,
    ) -> Result<Option<u64>, RunError>;

    /// The state at rest, unless it has more than `most` records and ranges; `drive` says who each drive is, and `array`
    /// who they are together.
    fn state(&mut self, array: State, drive: &State, most: usize) -> Option<ArrayState>;

    /// Ends the logs and puts the result together.
    ///
    /// # Errors
    /// A log that cannot be written.
    fn finish(self, run: Ran) -> Result<Found, RunError>;
}

/// What the result says of the run as a whole.
#[derive(Clone, Copy)]
pub(crate) struct Ran {
    /// When requests were sent.
    pub arrivals: Arrivals,
    /// The most of them that were in the system, where it was counted exactly.
    pub backlog: Option<u64>,
    /// The host's space.
    pub host: Blocks,
    /// Gain and efficiency of the space.
    pub space: (f64, f64),
}

impl Ran {
    /// What the result says of a drive beside its metrics; `before`: what its layer had counted before the run; `idles`: some
    /// drive of the run worked in idle time.
    fn of_drive(&self, drive: &Drive, before: &Counted, idles: bool) -> Facts {
        let layer = drive.layer();
        Facts {
            host_blocks: layer.host_blocks(),
            last_tracks: layer.facts().last_tracks,
            counters: counted(layer).since(before),
            buffer: drive.buffer_counters(),
            map_bytes: layer.map_bytes(),
            background: layer.background_after().is_some() || idles,
            ..Facts::none(self.arrivals)
        }
    }
}

/// Records and written ranges of a state, all in all.
pub(crate) fn size(state: &ArrayState) -> usize {
    let parts = std::iter::once(&state.array).chain(&state.members);
    parts.map(|part| part.records.len() + part.written.len()).sum()
}
