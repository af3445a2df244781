//! Shortest positioning time first.

use super::{Policy, Scheduler, View};
use smrlab_units::SimTime;

pub(super) const ENTRY: Scheduler = Scheduler {
    name: "sptf",
    summary: "shortest positioning first: seek and rotation together; may starve others without max_wait",
    reference: "Jacobson and Wilkes 1991, Disk scheduling algorithms based on rotational position; Seltzer 1990",
    build: Some(|| Box::new(Sptf)),
};

struct Sptf;

impl Policy for Sptf {
    fn pick(&mut self, view: &View<'_>) -> usize {
        let positioning = view.mechanics.positionings(view.now);
        let mut best = (SimTime::MAX, u64::MAX, 0);
        for (i, c) in view.candidates.iter().enumerate() {
            let t = positioning(c.dir, &c.target);
            if (t, c.seq) < (best.0, best.1) {
                best = (t, c.seq, i);
            }
        }
        best.2
    }
}
