//! The zones as a layer keeps them: in the order in which requests reach the medium, and in that in which they come.

use super::record;
use super::table::Table;
use crate::{Counted, Plan};
use smrlab_units::{Lba, ZoneCondition};

/// See the [module](self).
pub(super) struct Zones {
    /// As the requests leave them that were submitted.
    pub done: Table,
    /// Behind a queue that reorders: as all requests leave them that were admitted. It alone knows limits of open zones, because it alone
    /// sees requests in the order in which they come.
    admitted: Option<Table>,
}

impl Zones {
    pub(super) fn new(table: Table) -> Self {
        Self { done: table, admitted: None }
    }

    /// As the host knows them.
    pub(super) fn known(&self) -> &Table {
        self.admitted.as_ref().unwrap_or(&self.done)
    }

    /// For a request that a queue admits; the limits of open zones go over to this table with the first one.
    pub(super) fn admitting(&mut self) -> &mut Table {
        let done = &mut self.done;
        self.admitted.get_or_insert_with(|| {
            let earlier = done.clone();
            (done.shape.most_open, done.shape.most_active) = (u64::MAX, u64::MAX);
            earlier
        })
    }

    /// The queue is lost. Zones are open no longer, of which there may have been more than can be.
    pub(super) fn power_lost(&mut self) {
        let Some(admitted) = self.admitted.take() else { return };
        self.done.shape = admitted.shape;
        self.done.close_open();
    }

    /// Makes the zone with this block read-only or offline; `false`: it has no write pointer.
    pub(super) fn fail(&mut self, at: Lba, condition: ZoneCondition, plan: &mut Plan) -> bool {
        let zone = self.done.shape.zone_of(at.0);
        let failed = self.done.fail(zone, condition);
        self.admitted.iter_mut().for_each(|t| _ = t.fail(zone, condition));
        if let Some(state) = self.done.state(zone) {
            plan.record(record(zone, state));
        }
        failed
    }

    /// Zones by condition, as counters.
    pub(super) fn levels(&self, out: &mut Counted) {
        let counts = self.known().counts();
        out.level("open_zones", counts.open);
        out.level("free_zones", counts.empty);
        out.level("used_zones_closed", counts.closed);
        out.level("used_zones_full", counts.full);
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        self.done.bytes() + self.admitted.as_ref().map_or(0, Table::bytes)
    }
}
