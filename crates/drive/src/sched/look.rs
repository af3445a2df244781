//! LOOK: the elevator.

use super::{Policy, Scheduler, View, least};

pub(super) const ENTRY: Scheduler = Scheduler {
    name: "look",
    summary: "elevator: serves what lies ahead, turns round where nothing does",
    reference: "Worthington, Ganger, Patt 1994, Scheduling algorithms for modern disk drives (LOOK)",
    reorders: true,
    build: || Box::new(Look { up: true }),
};

struct Look {
    up: bool,
}

impl Policy for Look {
    fn pick(&mut self, view: &View<'_>) -> usize {
        for _ in 0..2 {
            let ahead = |track: u64| if self.up { track >= view.track } else { track <= view.track };
            let nearest =
                least(view.candidates, |c| (!ahead(c.track), c.track.abs_diff(view.track))).unwrap_or(0);
            if ahead(view.candidates[nearest].track) {
                return nearest;
            }
            self.up = !self.up;
        }
        0
    }
}
