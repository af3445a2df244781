//! What a run watches besides its metrics: logs and identities, where they are asked for.

mod array;

pub(crate) use array::ArrayWatch;

use crate::engine::HostObserver;
use crate::error::RunError;
use crate::logs::Logs;
use crate::metrics::updates::Updates;
use crate::metrics::{Metrics, Work};
use crate::prefill::PrefillObserver;
use crate::spent::Spent;
use crate::verify::Verify;
use smrlab_disk::Mechanics;
use smrlab_drive::{Effects, Executed, Observer, OpDone, Served};
use smrlab_stl::{Facts, HostRequest, Pause, Plan};
use smrlab_units::SimTime;
use std::ops::Range;

/// Metrics alone: the fast way.
impl Effects for Metrics {
    type Error = RunError;

    #[inline]
    fn dispatched(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        executed: &Executed<'_>,
    ) -> Result<(), RunError> {
        self.served(arrival, request, executed);
        Ok(())
    }

    fn answered(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        _: &HostRequest,
        served: &Served,
    ) -> Result<(), RunError> {
        self.counted(arrival, request, served, Work::default());
        Ok(())
    }

    fn background(&mut self, executed: &Executed<'_>) -> Result<(), RunError> {
        self.executed(executed);
        Ok(())
    }

    #[inline]
    fn looks(&self, at: SimTime) -> bool {
        self.fill.due(at)
    }

    fn looked(&mut self, at: SimTime, facts: &Facts<'_>) {
        Metrics::looked(self, at, facts);
    }
}

impl HostObserver for Metrics {
    #[inline]
    fn coming(&self, request: &HostRequest) {
        Metrics::coming(self, request);
    }

    #[inline]
    fn arrived(&mut self, at: SimTime, request: &HostRequest) {
        Metrics::arrived(self, at, request);
    }
}

impl PrefillObserver for Metrics {
    fn prefilled(&mut self, request: &HostRequest, _: &Plan) {
        self.updates.prefilled(request.lba, request.blocks, false);
    }

    fn prefilled_apart(&mut self) -> Option<&mut Updates> {
        Some(&mut self.updates)
    }

    fn written_within(&mut self, most: usize) -> Option<Vec<Range<u64>>> {
        self.updates.written_within(most)
    }
}

/// Metrics and whatever else was asked for.
pub(crate) struct Watch {
    pub metrics: Metrics,
    pub logs: Logs,
    pub verify: Option<Verify>,
    /// What was done since the last request, where requests are logged.
    pub spent: Spent,
}

impl Watch {
    fn spent(&mut self) -> Option<&mut Spent> {
        self.logs.requests.is_some().then_some(&mut self.spent)
    }

    fn log(&mut self, arrival: SimTime, request: &HostRequest, served: &Served) -> Result<(), RunError> {
        match &mut self.logs.requests {
            Some(log) => log.add(arrival, request, served, self.spent.of(served.start, served.ack)),
            None => Ok(()),
        }
    }
}

impl Observer for Watch {
    fn op(&mut self, done: &OpDone<'_>) {
        self.metrics.op(done);
        if let Some(log) = &mut self.logs.media {
            log.add(done);
        }
        if let Some(spent) = self.spent() {
            spent.op(done);
        }
    }

    fn moved(&mut self, done: &OpDone<'_>, mechanics: &Mechanics) {
        if let Some(spent) = self.spent() {
            spent.moved(done, mechanics);
        }
    }

    fn paused(&mut self, pause: &Pause, start: SimTime, background: bool) {
        self.metrics.paused(pause, start, background);
        if let Some(spent) = self.spent() {
            spent.paused(pause, start, background);
        }
    }
}

impl Effects for Watch {
    type Error = RunError;

    fn dispatched(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        executed: &Executed<'_>,
    ) -> Result<(), RunError> {
        self.metrics.served(arrival, request, executed);
        if let Some(log) = &mut self.logs.media {
            log.served(request.id)?;
        }
        if let Some(verify) = &mut self.verify {
            verify.served(request, executed)?;
        }
        if executed.buffered
            && let Some(spent) = self.spent()
        {
            spent.hidden();
        }
        self.log(arrival, request, &executed.served)
    }

    fn accepted(&mut self, _: SimTime, request: &HostRequest, _: &Served) -> Result<(), RunError> {
        if let Some(verify) = &mut self.verify {
            verify.accepted(request);
        }
        Ok(())
    }

    fn answered(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        write: &HostRequest,
        served: &Served,
    ) -> Result<(), RunError> {
        self.metrics.counted(arrival, request, served, Work::default());
        if let Some(verify) = &self.verify {
            verify.answered(request, write)?;
        }
        self.log(arrival, request, served)
    }

    fn background(&mut self, executed: &Executed<'_>) -> Result<(), RunError> {
        self.metrics.executed(executed);
        if let Some(verify) = &mut self.verify {
            verify.background(executed);
        }
        Ok(())
    }

    fn looks(&self, at: SimTime) -> bool {
        self.metrics.fill.due(at)
    }

    fn looked(&mut self, at: SimTime, facts: &Facts<'_>) {
        self.metrics.looked(at, facts);
    }
}

impl HostObserver for Watch {
    fn coming(&self, request: &HostRequest) {
        self.metrics.coming(request);
    }

    fn arrived(&mut self, at: SimTime, request: &HostRequest) {
        self.metrics.arrived(at, request);
    }
}

impl PrefillObserver for Watch {
    fn prefilled(&mut self, request: &HostRequest, plan: &Plan) {
        PrefillObserver::prefilled(&mut self.metrics, request, plan);
        if let Some(verify) = &mut self.verify {
            verify.prefilled(request, plan);
        }
    }

    fn written_within(&mut self, most: usize) -> Option<Vec<Range<u64>>> {
        self.metrics.updates.written_within(most)
    }
}
