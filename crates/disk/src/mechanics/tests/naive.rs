//! A second model of operations: a head that goes from sector to sector, with exact angles and nothing done in one step.

use super::*;
use crate::geometry::{Layout, Toward};
use smrlab_units::rng::Rng;

/// Moments are angles since time 0 (`u`: nanoseconds times rpm), so that nothing is rounded.
struct Head<'a> {
    g: &'a Geometry,
    spec: &'a MechanicsSpec,
    model: Model,
    next: u64,
    /// The block that was under the head last, when it had passed, and whether any has.
    last: u64,
    passed: u64,
    ready: u64,
    moved: bool,
}

/// What an operation comes to: times in ns, but when its first block comes and when each has passed as the head keeps them.
struct Done {
    overhead: u64,
    arrived: u64,
    begun: u64,
    ends: Vec<u64>,
}

impl Head<'_> {
    fn rpm(&self) -> u64 {
        self.spec.rpm.into()
    }

    fn ns(&self, u: u64) -> u64 {
        u.div_ceil(self.rpm())
    }

    /// The cylinder from the side of block 0.
    fn cylinder(&self, pba: u64) -> u64 {
        let outermost = u64::from(self.g.position(Pba(pba)).cylinder);
        match self.g.spec().toward {
            Toward::Inner => outermost,
            Toward::Outer => u64::from(self.g.cylinders()) - 1 - outermost,
        }
    }

    /// A seek and what comes with it from the place of a block to that of another one; `within` a transfer nothing is far.
    fn seek(&self, dir: Dir, from: u64, to: u64, within: bool) -> u64 {
        let s = self.spec;
        let curve = if dir == Dir::Read { &s.read_seek } else { &s.write_seek };
        let place = |pba| self.cylinder(pba).max(if within { 0 } else { s.one_place.into() });
        let mut t = match s.distance {
            Distance::Cylinders => curve.time(place(from), place(to)).0,
            Distance::Blocks if within => 0,
            Distance::Blocks => curve.time(self.next, to).0,
        };
        if self.g.position(Pba(from)).surface != self.g.position(Pba(to)).surface {
            let of_writes = s.write_head_switch.unwrap_or(s.head_switch);
            t = t.max(if dir == Dir::Write { of_writes.0 } else { s.head_switch.0 });
        }
        if t > 0 && dir == Dir::Write { t + s.write_settle.0 } else { t }
    }

    /// The first moment from `u` on at which a block comes.
    fn comes(&self, pba: u64, u: u64) -> u64 {
        u + (self.g.position(Pba(pba)).angle + REVOLUTION - u % REVOLUTION) % REVOLUTION
    }

    /// A block's length, as an angle from edge to edge.
    fn passes(&self, pba: u64) -> u64 {
        let (sector, n) = (u64::from(self.g.position(Pba(pba)).sector), self.sectors(pba));
        (sector + 1) * REVOLUTION / n - sector * REVOLUTION / n
    }

    fn sectors(&self, pba: u64) -> u64 {
        self.g.sectors(self.g.track_of(Pba(pba))).into()
    }

    fn same_track(&self, a: u64, b: u64) -> bool {
        self.g.track_of(Pba(a)) == self.g.track_of(Pba(b))
    }

    fn goes_on(&self, now: u64, pba: u64) -> bool {
        self.moved && now == self.ready && pba == self.next
    }

    /// What it would come to; the first block does not come before `data`.
    fn look(&self, now: u64, data: u64, dir: Dir, pba: u64, n: u64) -> Done {
        let s = self.spec;
        if self.model == Model::Instant {
            return Done { overhead: 0, arrived: now, begun: now, ends: vec![now; n as usize] };
        }
        let goes_on = self.goes_on(now, pba);
        let far = self.cylinder(self.last).min(self.cylinder(pba)) >= s.one_place.into();
        let late = match dir {
            Dir::Read if far => s.read_late.0 * REVOLUTION / (self.sectors(pba) * self.rpm()),
            _ => 0,
        };
        let overhead = match dir {
            _ if goes_on => 0,
            Dir::Read => s.read_overhead.0 + late,
            Dir::Write => s.write_overhead.0,
        };
        if self.model == Model::NoRotation {
            let seek = if pba == self.next { 0 } else { self.seek(dir, self.last, pba, false) };
            let arrived = (now + overhead + seek).max(data);
            // Of each zone the sectors that passed, the slipped ones too.
            let (mut whole, mut at, mut ends) = (0, (self.sectors(pba), self.g.raw(Pba(pba))), Vec::new());
            for b in pba..pba + n {
                let (sectors, end) = (self.sectors(b), self.g.raw(Pba(b)) + 1);
                if sectors != at.0 {
                    let before = self.g.raw(Pba(b - 1)) + 1;
                    whole += (before - at.1) * REVOLUTION / at.0;
                    at = (sectors, before);
                }
                let angle = whole + (end - at.1) * REVOLUTION / at.0;
                let time = s.rate.map(|rate| ((b + 1 - pba) * 512_000_000_000).div_ceil(rate));
                ends.push(arrived + time.unwrap_or(self.ns(angle)));
            }
            return Done { overhead, arrived, begun: arrived, ends };
        }
        let (arrived, from) = if goes_on {
            let switch =
                if self.same_track(self.last, pba) { 0 } else { self.seek(dir, self.last, pba, false) };
            (now, self.passed + switch * self.rpm())
        } else {
            let arrived = now + overhead + self.seek(dir, self.last, pba, false);
            (arrived, arrived * self.rpm())
        };
        let mut at = self.comes(pba, from);
        while data > now && at < data * self.rpm() {
            at += REVOLUTION;
        }
        let begun = at;
        let ends = (pba..pba + n).map(|b| {
            if b > pba && !self.same_track(b - 1, b) {
                at += self.seek(dir, b - 1, b, true) * self.rpm();
            }
            at = if b > pba { self.comes(b, at) } else { at } + self.passes(b);
            at
        });
        let ends = ends.collect();
        Done { overhead, arrived, begun, ends }
    }

    fn time(&self, end: u64) -> u64 {
        if self.model == Model::Full { self.ns(end) } else { end }
    }

    fn leave(&mut self, pba: u64, n: u64, end: u64) {
        (self.next, self.last, self.moved) = (pba + n, pba + n - 1, true);
        (self.passed, self.ready) = (end, self.time(end));
    }
}

fn any_mechanics(rng: &mut Rng, cylinders: u32) -> MechanicsSpec {
    let time = |rng: &mut Rng, most: u64| SimTime(if rng.one_in(3) { 0 } else { rng.below(most) });
    let curve = |rng: &mut Rng| match rng.below(3) {
        0 => SeekCurve::Constant(time(rng, 9_000_000)),
        1 => SeekCurve::Sqrt { base: time(rng, 900_000), span: SimTime(5_000_000), full: 40 },
        _ => SeekCurve::Directed {
            rising: vec![(1, SimTime(300_000)), (9, SimTime(1 + rng.below(3_000_000)))],
            falling: vec![(2, SimTime(500_000)), (5, SimTime(1 + rng.below(3_000_000)))],
        },
    };
    MechanicsSpec {
        rpm: 3000 + rng.below(9000) as u32,
        distance: if rng.one_in(4) { Distance::Blocks } else { Distance::Cylinders },
        read_seek: curve(rng),
        write_seek: curve(rng),
        head_switch: time(rng, 3_000_000),
        write_head_switch: rng.one_in(2).then(|| time(rng, 3_000_000)),
        write_settle: time(rng, 900_000),
        read_overhead: time(rng, 200_000),
        write_overhead: time(rng, 200_000),
        read_late: Blocks(rng.below(3)),
        one_place: if rng.one_in(2) { rng.below(u64::from(cylinders)) as u32 } else { 0 },
        rate: rng.one_in(2).then(|| 1_000_000 + rng.below(90_000_000)),
    }
}

fn any_geometry(rng: &mut Rng) -> Arc<Geometry> {
    let layouts = [
        Layout::Surface,
        Layout::Cylinder { alternate: false },
        Layout::Cylinder { alternate: true },
        Layout::Hybrid { width: 1 + rng.below(4) as u32 },
    ];
    let zone = |rng: &mut Rng| ZoneSpec {
        spare_sectors: rng.below(3) as u32,
        spare_cylinders: rng.below(2) as u32,
        ..ZoneSpec::plain(2 + rng.below(8) as u32, 4 + rng.below(20) as u32)
    };
    let zones = (0..3).map(|_| zone(rng)).collect();
    let g = GeometrySpec {
        surfaces: 1 + rng.below(3) as u32,
        layout: layouts[rng.below(4) as usize],
        toward: if rng.one_in(2) { Toward::Outer } else { Toward::Inner },
        track_skew: rng.below(REVOLUTION / 2),
        cylinder_skew: rng.below(REVOLUTION / 2),
        ..GeometrySpec::single_surface(zones)
    };
    Arc::new(Geometry::new(g).unwrap())
}

/// An operation that is asked of both: when it begins and where.
#[derive(Clone, Copy, Debug)]
struct Asked {
    now: u64,
    dir: Dir,
    pba: u64,
    n: u64,
}

impl Head<'_> {
    /// The same as [`Mechanics::service_any`]: when the first block and when all have passed, `end` as this head keeps it.
    fn any_first(&self, a: Asked, plain: &Done) -> (u64, u64) {
        let (last, from) = (plain.ends[a.n as usize - 1], plain.arrived * self.rpm());
        let within = self.model == Model::Full
            && !self.goes_on(a.now, a.pba)
            && self.same_track(a.pba, a.pba + a.n - 1)
            && last - from > REVOLUTION;
        if !within {
            return (plain.ends[0], last);
        }
        // Up to the first edge of a sector from the arrival on, and once round.
        let mut edges = [plain.begun].into_iter().chain(plain.ends.iter().copied());
        (plain.ends[0], edges.find(|u| *u >= from + REVOLUTION).unwrap())
    }

    /// Has both do it, one way or another; answers what is to be equal.
    fn both(&mut self, m: &mut Mechanics, a: Asked, rng: &mut Rng) -> [(u64, u64); 2] {
        let Asked { now, dir, pba, n } = a;
        let (at, first, blocks) = (SimTime(now), Pba(pba), Blocks(n));
        let plain = self.look(now, 0, dir, pba, n);
        let ends: Vec<u64> = plain.ends.iter().map(|u| self.time(*u)).collect();
        let last = n as usize - 1;
        match rng.below(5) {
            0 => {
                let data = now + if self.model == Model::Instant { 0 } else { rng.below(30_000_000) };
                let end = self.look(now, data, dir, pba, n).ends[last];
                let told = m.service_from(at, SimTime(data), dir, first, blocks);
                self.leave(pba, n, end);
                [(told.0, 0), (self.time(end), 0)]
            }
            1 if dir == Dir::Read => {
                let until = now + rng.below(30_000_000);
                let there = plain.arrived < until || self.model == Model::Instant;
                let done = if there { ends.iter().filter(|end| **end <= until).count() } else { 0 };
                let (blocks, end) = m.read_until(at, first, blocks, SimTime(until));
                if done > 0 {
                    self.leave(pba, done as u64, plain.ends[done - 1]);
                }
                [(blocks.0, end.0), (done as u64, if done > 0 { ends[done - 1] } else { now })]
            }
            2 if dir == Dir::Read => {
                let gather = 1 + rng.below(n);
                let (gathered, end) = m.read_gathering(at, first, blocks, Blocks(gather));
                self.leave(pba, n, plain.ends[last]);
                [(gathered.0, end.0), (ends[gather as usize - 1], ends[last])]
            }
            3 => {
                let wanted = self.any_first(a, &plain);
                let (one, all) = m.service_any(at, dir, first, blocks);
                self.leave(pba, n, wanted.1);
                [(one.0, all.0), (self.time(wanted.0), self.time(wanted.1))]
            }
            _ => {
                let end = m.service(at, dir, first, blocks);
                self.leave(pba, n, plain.ends[last]);
                let told = m.phases();
                assert_eq!(told.seek.0, plain.arrived - now - plain.overhead);
                [(end.0, told.overhead.0), (ends[last], plain.overhead)]
            }
        }
    }
}

/// Random operations of every kind, asked of both, on drives whose tracks, zones and surfaces are many.
#[test]
fn operations_take_as_long_as_a_head_that_goes_from_sector_to_sector() {
    let mut rng = Rng::new(7);
    for round in 0..250 {
        let g = any_geometry(&mut rng);
        let spec = any_mechanics(&mut rng, g.cylinders());
        let model = [Model::Full, Model::Full, Model::NoRotation, Model::Instant][round % 4];
        let mut m = Mechanics::new(g.clone(), &spec, model).unwrap();
        let mut head =
            Head { g: &g, spec: &spec, model, next: 0, last: 0, passed: 0, ready: 0, moved: false };
        let all = g.blocks().0;
        for _ in 0..30 {
            let pba = if rng.one_in(3) && head.next < all { head.next } else { rng.below(all) };
            let most = if rng.one_in(3) { 80 } else { 6 };
            let n = 1 + rng.below(most).min(all - pba - 1);
            let dir = if rng.one_in(2) { Dir::Read } else { Dir::Write };
            let now = head.ready + if rng.one_in(2) { 0 } else { rng.below(9_000_000) };
            let asked = Asked { now, dir, pba, n };
            let of = format!("{asked:?} of round {round}: {model:?} {spec:?} {:?}", g.spec());
            let plain = head.look(now, 0, dir, pba, n);
            let begun = SimTime(head.time(plain.begun).max(now));
            assert_eq!(m.positioning(SimTime(now), dir, &m.target(Pba(pba))), begun, "{of}");
            let ends = [0, n as usize - 1].map(|i| SimTime(head.time(plain.ends[i])));
            assert_eq!(m.preview(SimTime(now), dir, Pba(pba), Blocks(n)), ends.into(), "{of}");
            let [told, wanted] = head.both(&mut m, asked, &mut rng);
            assert_eq!(told, wanted, "{of}");
            let (there, under) = (m.head(), head.cylinder(head.last));
            let there = (there.next.0, there.ready.0, there.cylinder().into());
            assert_eq!(there, (head.next, head.ready, under), "{of}");
        }
    }
}
