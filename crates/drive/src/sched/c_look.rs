//! C-LOOK: the elevator that only serves on its way up.

use super::{Policy, Scheduler, View, least};

pub(super) const ENTRY: Scheduler = Scheduler {
    name: "c-look",
    summary: "circular elevator: serves upwards only, then returns to the lowest request",
    reference: "Worthington, Ganger, Patt 1994, Scheduling algorithms for modern disk drives (C-LOOK)",
    build: Some(|| Box::new(CLook)),
};

struct CLook;

impl Policy for CLook {
    fn pick(&mut self, view: &View<'_>) -> usize {
        let head = view.cylinder();
        least(view.candidates, |c| (c.cylinder() < head, c.cylinder())).unwrap_or(0)
    }
}
