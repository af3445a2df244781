//! One drive.

use super::{Found, Ran, Rig};
use crate::control::Control;
use crate::engine::{self, Arrivals, Feed, HostObserver};
use crate::error::RunError;
use crate::metrics::Metrics;
use crate::prefill::{Prefill, PrefillObserver};
use crate::result::{Facts, summary, tables};
use crate::watch::Watch;
use smrlab_array::ArrayState;
use smrlab_blockmap::BlockSet;
use smrlab_drive::{Controller, Effects, State};
use smrlab_stl::{Counted, HostRequest, Plan, Record, counted};
use smrlab_units::{Blocks, HostOp, Lba};

/// What observes one drive.
pub(crate) trait DriveWatch: HostObserver + PrefillObserver + Effects<Error = RunError> {
    /// Ends the logs; answers what was counted, and the bytes that verification took, where there was one.
    ///
    /// # Errors
    /// A log that cannot be written.
    fn finish(self) -> Result<(Metrics, Option<usize>), RunError>;
}

/// Metrics alone: the fast way.
impl DriveWatch for Metrics {
    fn finish(self) -> Result<(Metrics, Option<usize>), RunError> {
        Ok((self, None))
    }
}

impl DriveWatch for Watch {
    fn finish(self) -> Result<(Metrics, Option<usize>), RunError> {
        self.logs.finish()?;
        Ok((self.metrics, self.verify.map(|verify| verify.bytes())))
    }
}

/// See the [module](self).
pub(crate) struct One<O> {
    controller: Controller,
    observer: O,
    before: Counted,
}

impl<O> One<O> {
    pub(crate) fn new(controller: Controller, observer: O) -> Self {
        Self { controller, observer, before: Counted::default() }
    }
}

impl<O: DriveWatch> Rig for One<O> {
    fn restore(&mut self, state: &ArrayState) {
        let mut plan = Plan::new(false, false);
        if let Some(own) = state.members.first() {
            own.give(self.controller.drive_mut(), &mut plan);
        }
        plan.clear();
        for r in &state.array.written {
            let request = HostRequest::new(HostOp::Write, Lba(r.start), Blocks(r.end - r.start));
            self.observer.prefilled(&request, &plan);
        }
    }

    fn prefill(&mut self, prefill: &Prefill, reads: &BlockSet, control: &Control) -> Result<(), RunError> {
        prefill.write(self.controller.drive_mut(), &mut self.observer, reads, control)
    }

    fn begins(&mut self) {
        self.before = counted(self.controller.drive().layer());
    }

    fn run(
        &mut self,
        feed: &mut Feed,
        arrivals: Arrivals,
        control: &Control,
    ) -> Result<Option<u64>, RunError> {
        engine::run(&mut self.controller, feed, arrivals, &mut self.observer, control)
    }

    fn state(&mut self, array: State, drive: &State, most: usize) -> Option<ArrayState> {
        // Each neighbourhood in a cache is a record: a look at a large checkpoint takes long, too.
        let cached = self.controller.drive().layer().facts().cached;
        if cached.is_some_and(|n| n.0 / 8 > most as u64) {
            return None;
        }
        let written = self.observer.written_within(most)?;
        self.controller.drive_mut().interrupt();
        let drive_now = self.controller.drive();
        let records = checkpoint(drive_now, most - written.len())?;
        let members = vec![State {
            blocks: drive_now.mechanics().geometry().blocks().0,
            head: drive_now.mechanics().head().next.0,
            records,
            ..drive.clone()
        }];
        Some(ArrayState { array: State { written, ..array }, members })
    }

    fn finish(self, run: Ran) -> Result<Found, RunError> {
        let (mut metrics, verified) = self.observer.finish()?;
        let idles = metrics.background.commands > 0;
        let facts = Facts {
            backlog: run.backlog,
            host_blocks: run.host,
            gain: Some(run.space.0),
            efficiency: Some(run.space.1),
            ..run.of_drive(self.controller.drive(), &self.before, idles)
        };
        let keys = summary(&mut metrics, &facts);
        Ok(Found { tables: tables(&metrics), keys, verified })
    }
}

/// The layer's checkpoint, unless it has more than `most` records.
fn checkpoint(drive: &smrlab_drive::Drive, most: usize) -> Option<Vec<Record>> {
    let (mut records, mut more) = (Vec::new(), false);
    drive.layer().checkpoint(&mut |record| {
        more |= records.len() >= most;
        if !more {
            records.push(record);
        }
    });
    (!more).then_some(records)
}
