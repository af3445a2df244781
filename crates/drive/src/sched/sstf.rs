//! Shortest seek time first.

use super::{Policy, Scheduler, View, least};

pub(super) const ENTRY: Scheduler = Scheduler {
    name: "sstf",
    summary: "shortest seek first: the request that starts the fewest cylinders away; may starve others without max_wait",
    reference: "Denning 1967, Effects of scheduling on file memory operations",
    build: Some(|| Box::new(Sstf)),
};

struct Sstf;

impl Policy for Sstf {
    fn pick(&mut self, view: &View<'_>) -> usize {
        let head = view.cylinder();
        least(view.candidates, |c| c.cylinder().abs_diff(head)).unwrap_or(0)
    }
}
