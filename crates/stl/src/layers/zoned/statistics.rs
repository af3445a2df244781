//! What is counted of zones since the drive was switched on.

use super::table::Table;
use crate::Refusal;
use smrlab_units::{HostOp, Lba, ZoneAction, ZoneStatistics};

use Refusal::{AbovePointer, CrossesZone, Gap, NotAtPointer, TooManyOpen, ZoneFull};

impl Table {
    /// The drive is switched on with its zones as they are.
    pub(super) fn count_anew(&mut self) {
        self.statistics = ZoneStatistics { least_empty: u32::MAX, ..ZoneStatistics::default() };
        self.count_conditions();
    }

    /// A zone is in another condition than before.
    pub(super) fn count_conditions(&mut self) {
        let (now, s) = (self.counts(), &mut self.statistics);
        s.most_open = s.most_open.max(now.open as u32);
        s.most_explicit = s.most_explicit.max(self.explicit as u32);
        s.most_implicit = s.most_implicit.max((now.open - self.explicit) as u32);
        s.least_empty = s.least_empty.min(now.empty as u32);
    }

    /// The zones refuse a request.
    pub(super) fn refused(&mut self, op: HostOp, why: Refusal) {
        let s = &mut self.statistics;
        let count = match (op, why) {
            (HostOp::Zone(ZoneAction::Open), TooManyOpen) => &mut s.failed_opens,
            (HostOp::Read, CrossesZone | AbovePointer | Gap) => &mut s.refused_reads,
            (HostOp::Write | HostOp::Append, NotAtPointer | CrossesZone | ZoneFull | TooManyOpen | Gap) => {
                &mut s.refused_writes
            }
            _ => return,
        };
        *count = count.saturating_add(1);
    }

    /// So many zones have blocks out of order, after a write that left some so where `more` are than are recommended.
    pub(super) fn count_non_sequential(&mut self, zones: u32, more: bool) {
        let s = &mut self.statistics;
        s.most_non_sequential = s.most_non_sequential.max(zones);
        s.over_recommended = s.over_recommended.saturating_add(u32::from(more));
    }

    /// Zones that take writes anywhere are written from this block on.
    pub(super) fn count_write(&mut self, lba: Lba) {
        let zone = self.shape.zone_of(lba.0);
        let elsewhere = self.state(zone).is_some() && self.readable(zone) != lba.0;
        let count = &mut self.statistics.suboptimal;
        *count = count.saturating_add(u32::from(elsewhere));
    }
}
