//! Busy stretches with idle gaps.

use super::{Common, Drawn, Generator, Pattern};
use smrlab_units::SimTime;
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "idle-gaps",
    summary: "uniform requests in busy stretches of fixed length with idle gaps of fixed length between",
    reference: "Idle gaps decide when a layer can clean in the background (Cassuto et al., MSST 2010, on workloads); the form is ours",
    params: &[
        Param::new("busy", Kind::Time, "10s").doc("length of a busy stretch"),
        Param::new("idle", Kind::Time, "30s").doc("length of the gap behind it"),
    ],
    defaults: &[],
    make: |v, _| {
        let busy = v.time("busy");
        Ok(Box::new(IdleGaps { busy, idle: v.time("idle"), used: SimTime::ZERO }))
    },
};

struct IdleGaps {
    busy: SimTime,
    idle: SimTime,
    /// Time used of the busy stretch.
    used: SimTime,
}

impl Pattern for IdleGaps {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let blocks = common.size();
        let lba = common.place(0, common.span, blocks);
        let mut drawn = common.at(lba, blocks);
        self.used = SimTime(self.used.0.saturating_add(drawn.gap.0));
        if self.used > self.busy {
            drawn.gap = SimTime(drawn.gap.0.saturating_add(self.idle.0));
            self.used = SimTime::ZERO;
        }
        Some(drawn)
    }
}
