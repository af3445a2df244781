//! First come, first served.

use super::Scheduler;

pub(super) const ENTRY: Scheduler = Scheduler {
    name: "fcfs",
    summary: "first come, first served: requests are served in the order of their arrival",
    reference: "what papers assume that name no scheduler (He & Du 2014 among them)",
    build: None,
};
