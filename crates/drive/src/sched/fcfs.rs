//! First come, first served.

use super::{Policy, Scheduler, View, least};

pub(super) const ENTRY: Scheduler = Scheduler {
    name: "fcfs",
    summary: "first come, first served: requests are served in the order of their arrival",
    reference: "what papers assume that name no scheduler (He & Du 2014 among them)",
    reorders: false,
    build: || Box::new(Fcfs),
};

struct Fcfs;

impl Policy for Fcfs {
    fn pick(&mut self, view: &View<'_>) -> usize {
        least(view.candidates, |_| ()).unwrap_or(0)
    }
}
