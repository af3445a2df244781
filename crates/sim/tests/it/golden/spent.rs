//! Where the time of each request went, worked out again from the log of the medium: seeks of 2 ms, revolutions of 10 ms
//! with 32, 24 or 16 sectors, a quarter of one from track to track.

use super::figures::track;
use crate::support::{Done, Op};

const SEEK: u64 = 2_000_000;
const TURN: u64 = 10_000_000;

fn sectors(track: u64) -> u64 {
    match track {
        0..40 => 32,
        40..80 => 24,
        _ => 16,
    }
}

/// From the first block to the last, the ways from track to track included.
fn transfer(o: &Op) -> u64 {
    let tracks = track(o.pba + o.blocks - 1) - track(o.pba);
    let each: f64 = (o.pba..o.pba + o.blocks).map(|b| TURN as f64 / sectors(track(b)) as f64).sum();
    each.round() as u64 + tracks * TURN / 4
}

fn makes_room(o: &Op) -> bool {
    ["clean", "destage", "defrag"].contains(&o.cause.as_str())
}

/// The columns of every request: seek, rotation, transfer, cleaning, other. No command of this drive has an overhead.
pub(super) fn spent(d: &Done) {
    let mut want = vec![[0u64; 5]; d.requests.len()];
    let (mut at_track, mut next, mut free) = (0, 0, 0);
    for o in &d.media {
        let at_once = o.pba == next && o.start == free;
        let seek = if at_once || track(o.pba) == at_track { 0 } else { SEEK };
        (at_track, next, free) = (track(o.pba + o.blocks - 1), o.pba + o.blocks, o.end);
        let Ok(id) = usize::try_from(o.request) else { continue };
        let until = |t: u64| t.min(d.requests[id].completion);
        let w = &mut want[id];
        if makes_room(o) {
            w[3] += until(o.end) - until(o.start);
            continue;
        }
        let (arrived, began) = (o.start + seek, o.end - transfer(o));
        assert!(began + 2 >= arrived && began < arrived + TURN, "{o:?}: less than a turn, and not before");
        w[0] += until(arrived) - until(o.start);
        w[1] += until(began.max(arrived)) - until(arrived);
        w[2] += until(o.end) - until(began.max(arrived));
    }
    for (r, want) in d.requests.iter().zip(want) {
        assert_eq!(r.spent.iter().sum::<u64>(), r.completion - r.start, "{r:?}: the parts are the whole");
        let near = r.spent.iter().zip(want).all(|(s, w)| s.abs_diff(w) < 50);
        assert!(near, "{r:?}: by hand {want:?}");
    }
}
