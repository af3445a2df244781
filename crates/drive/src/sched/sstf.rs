//! Shortest seek time first.

use super::{Policy, Scheduler, View, least};

pub(super) const ENTRY: Scheduler = Scheduler {
    name: "sstf",
    summary: "shortest seek first: the request that starts the fewest tracks away; may starve others without max_wait",
    reference: "Denning 1967, Effects of scheduling on file memory operations",
    reorders: true,
    build: || Box::new(Sstf),
};

struct Sstf;

impl Policy for Sstf {
    fn pick(&mut self, view: &View<'_>) -> usize {
        least(view.candidates, |c| c.track.abs_diff(view.track)).unwrap_or(0)
    }
}
