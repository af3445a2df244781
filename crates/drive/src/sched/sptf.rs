//! Shortest positioning time first.

use super::{Policy, Scheduler, View};
use smrlab_disk::Reach;
use smrlab_units::SimTime;

pub(super) const ENTRY: Scheduler = Scheduler {
    name: "sptf",
    summary: "shortest positioning first: seek and rotation together; may starve others without max_wait",
    reference: "Jacobson and Wilkes 1991, Disk scheduling algorithms based on rotational position; Seltzer 1990",
    build: Some(|| Box::new(Sptf::default())),
};

/// Most of what waits is too far away to be the soonest, which is seen by the cylinder alone.
#[derive(Default)]
struct Sptf {
    reach: Option<Reach>,
    /// How far off a read, and a write, could be that was as soon as the last one that was chosen.
    within: [u32; 2],
    /// Those that are worked out, by number.
    near: Vec<u32>,
}

impl Policy for Sptf {
    fn pick(&mut self, view: &View<'_>) -> usize {
        let reach = self.reach.get_or_insert_with(|| view.mechanics.reach());
        let positioning = view.mechanics.positionings(view.now);
        let head = view.cylinder();
        self.near.resize(view.candidates.len(), 0);
        let mut best = (SimTime::MAX, u64::MAX, 0);
        let (mut from, mut to) = ([0; 2], self.within);
        loop {
            // Without a branch: which of them are near cannot be predicted.
            let mut n = 0;
            for (i, c) in (0..).zip(view.candidates) {
                let (way, dir) = (c.cylinder().abs_diff(head), c.dir as usize);
                self.near[n] = i;
                n += usize::from((from[dir] <= way) & (way <= to[dir]));
            }
            for &i in &self.near[..n] {
                let c = &view.candidates[i as usize];
                let t = positioning(c.dir, &c.target);
                if (t < best.0) | ((t == best.0) & (c.seq < best.1)) {
                    best = (t, c.seq, i as usize);
                }
            }
            let none = best.1 == u64::MAX;
            let soon = reach.within(best.0.since(view.now));
            let wider =
                [0, 1].map(|dir| if none { to[dir].saturating_mul(4) | 3 } else { soon[dir].max(to[dir]) });
            if wider == to {
                self.within = soon;
                return best.2;
            }
            (from, to) = (to.map(|far| far.saturating_add(1)), wider);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::Candidate;
    use smrlab_disk::mechanics::Distance;
    use smrlab_disk::{Geometry, GeometrySpec, Mechanics, MechanicsSpec, Model, SeekCurve, ZoneSpec};
    use smrlab_units::rng::Rng;
    use smrlab_units::{Blocks, Dir, Pba};
    use std::sync::Arc;

    fn curve(rng: &mut Rng) -> SeekCurve {
        let us = |rng: &mut Rng, n| SimTime::from_us(rng.below(n));
        let ascending = rng.below(3) > 0;
        let mut points = |n: u64| {
            let mut times: Vec<SimTime> = (0..n).map(|_| us(rng, 9000)).collect();
            if ascending {
                times.sort();
            }
            let mut at = 0;
            let mut next = |time| {
                at += 1 + rng.below(150);
                (at, time)
            };
            times.into_iter().map(&mut next).collect::<Vec<_>>()
        };
        match points(2)[0].0 % 6 {
            0 => SeekCurve::Constant(points(1)[0].1),
            1 => SeekCurve::Sqrt { base: points(1)[0].1, span: points(1)[0].1, full: 400 },
            2 => {
                let [single, average, full_stroke] = [0, 1, 2].map({
                    let times = points(3);
                    move |i: usize| times[i].1
                });
                SeekCurve::ThreePoint { single, average, full_stroke, full: 400 }
            }
            3 => SeekCurve::Table(points(4)),
            4 => SeekCurve::Directed { rising: points(4), falling: points(3) },
            _ => SeekCurve::Nearest { rising: points(4), falling: points(3) },
        }
    }

    fn mechanics(rng: &mut Rng) -> Mechanics {
        let zones = vec![ZoneSpec::plain(250, 100), ZoneSpec::plain(150, 60)];
        let geometry = GeometrySpec { surfaces: 2, ..GeometrySpec::single_surface(zones) };
        let us = |rng: &mut Rng, n| SimTime::from_us(rng.below(n));
        let spec = MechanicsSpec {
            rpm: 6000 + rng.below(4000) as u32,
            distance: if rng.below(6) == 0 { Distance::Blocks } else { Distance::Cylinders },
            read_seek: curve(rng),
            write_seek: curve(rng),
            head_switch: us(rng, 900),
            write_head_switch: None,
            write_settle: us(rng, 700),
            read_overhead: us(rng, 3000),
            write_overhead: us(rng, 3000),
            read_late: Blocks(rng.below(3)),
            one_place: if rng.below(4) == 0 { 90 } else { 0 },
            rate: None,
        };
        let model = [Model::Full, Model::Full, Model::Full, Model::NoRotation, Model::Instant];
        Mechanics::new(Arc::new(Geometry::new(geometry).unwrap()), &spec, model[rng.below(5) as usize])
            .unwrap()
    }

    /// Beside all that wait, each worked out: on drives with seek curves of every kind, some with longer ways that take less time, with the
    /// block behind the last transfer among what waits.
    #[test]
    fn what_is_left_out_is_not_the_soonest() {
        let (mut left_out, mut looked_at) = (0, 0);
        for seed in 0..400 {
            let rng = &mut Rng::new(seed);
            let mut m = mechanics(rng);
            let (mut policy, blocks) = (Sptf::default(), m.geometry().blocks().0);
            let mut now = SimTime::ZERO;
            for _ in 0..40 {
                let head = m.head().next.0;
                let mut place = || match rng.below(8) {
                    0 => head % blocks,
                    1 => (head + rng.below(400)) % blocks,
                    _ => rng.below(blocks - 8),
                };
                let mut candidates: Vec<_> = (0..1 + (seed + now.0) % 40)
                    .map(|i| (i * 7 + now.0) % 41)
                    .map(|seq| Candidate { seq, target: m.target(Pba(place())), dir: Dir::Read })
                    .collect();
                candidates.iter_mut().for_each(|c| {
                    if rng.below(3) == 0 {
                        c.dir = Dir::Write;
                    }
                });
                let time = |c: &Candidate| m.positioning(now, c.dir, &c.target);
                let want = (0..candidates.len()).min_by_key(|i| (time(&candidates[*i]), candidates[*i].seq));
                let view = View { now, mechanics: &m, candidates: &candidates };
                let got = policy.pick(&view);
                assert_eq!(Some(got), want, "{seed}");
                let c = &candidates[got];
                let near = m.reach().within(time(c).since(now));
                let far = |c: &&Candidate| c.cylinder().abs_diff(view.cylinder()) > near[c.dir as usize];
                left_out += candidates.iter().filter(far).count();
                looked_at += candidates.len();
                let n = 1 + rng.below(8);
                now = m.service(now, c.dir, c.target.pba(), Blocks(n.min(blocks - c.target.pba().0)));
                now += SimTime(rng.below(2) * rng.below(9_000_000));
            }
        }
        assert!(left_out * 20 > looked_at, "{left_out} of {looked_at}");
    }
}
