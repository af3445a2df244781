//! LOOK: the elevator.

use super::{Candidate, Policy, Scheduler, View, least};

pub(super) const ENTRY: Scheduler = Scheduler {
    name: "look",
    summary: "elevator: serves what lies ahead, turns round where nothing does",
    reference: "Worthington, Ganger, Patt 1994, Scheduling algorithms for modern disk drives (LOOK)",
    build: Some(|| Box::new(Look { up: true })),
};

struct Look {
    up: bool,
}

impl Policy for Look {
    fn pick(&mut self, view: &View<'_>) -> usize {
        let head = view.cylinder();
        for _ in 0..2 {
            let ahead = |c: &Candidate| if self.up { c.cylinder() >= head } else { c.cylinder() <= head };
            let nearest = least(view.candidates, |c| (!ahead(c), c.cylinder().abs_diff(head))).unwrap_or(0);
            if ahead(&view.candidates[nearest]) {
                return nearest;
            }
            self.up = !self.up;
        }
        0
    }
}
