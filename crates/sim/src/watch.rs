//! What a run watches besides its metrics: logs and identities, where they are asked for.

use crate::engine::HostObserver;
use crate::error::RunError;
use crate::logs::{MediaLog, RequestLog};
use crate::metrics::Metrics;
use crate::verify::Verify;
use smrlab_drive::{Executed, Observer, OpDone, Served};
use smrlab_stl::{HostRequest, Plan};
use smrlab_units::SimTime;

/// Metrics alone: the fast way.
impl HostObserver for Metrics {
    #[inline]
    fn arrived(&mut self, at: SimTime, request: &HostRequest) {
        Metrics::arrived(self, at, request);
    }

    #[inline]
    fn served(
        &mut self,
        _: u64,
        arrival: SimTime,
        request: &HostRequest,
        served: &Served,
        plan: &Plan,
    ) -> Result<(), RunError> {
        let (ops, extents) = (plan.ops().len() as u64, u64::from(plan.extents()));
        Metrics::served(self, arrival, request, served, ops, extents);
        Ok(())
    }

    fn prefilled(&mut self, request: &HostRequest, _: &Plan) {
        self.updates.prefilled(request.lba, request.blocks);
    }
}

/// Metrics and whatever else was asked for.
pub(crate) struct Watch {
    pub metrics: Metrics,
    pub requests: Option<RequestLog>,
    pub media: Option<MediaLog>,
    pub verify: Option<Verify>,
}

impl Observer for Watch {
    fn op(&mut self, done: &OpDone<'_>) {
        self.metrics.op(done);
        if let Some(log) = &mut self.media {
            log.add(done);
        }
    }

    fn executed(&mut self, executed: &Executed<'_>) {
        self.metrics.executed(executed);
        if let Some(verify) = &mut self.verify {
            verify.executed(executed);
        }
    }
}

impl HostObserver for Watch {
    fn arrived(&mut self, at: SimTime, request: &HostRequest) {
        self.metrics.arrived(at, request);
    }

    fn served(
        &mut self,
        id: u64,
        arrival: SimTime,
        request: &HostRequest,
        served: &Served,
        plan: &Plan,
    ) -> Result<(), RunError> {
        HostObserver::served(&mut self.metrics, id, arrival, request, served, plan)?;
        if let Some(log) = &mut self.media {
            log.served(id)?;
        }
        if let Some(verify) = &mut self.verify {
            verify.served(id)?;
        }
        match &mut self.requests {
            Some(log) => log.add(id, arrival, request, served),
            None => Ok(()),
        }
    }

    fn prefilled(&mut self, request: &HostRequest, plan: &Plan) {
        HostObserver::prefilled(&mut self.metrics, request, plan);
        if let Some(verify) = &mut self.verify {
            verify.prefilled(request, plan);
        }
    }
}
