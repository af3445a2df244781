//! The naive disk: a head that goes from sector to sector over a random small drive.

use smrlab_disk::geometry::{Layout, REVOLUTION};
use smrlab_disk::mechanics::Distance;
use smrlab_disk::{Geometry, GeometrySpec, MechanicsSpec, SeekCurve, ZoneSpec};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, Dir, Pba, SimTime};
use std::sync::Arc;

/// A head that goes from sector to sector. Moments are angles since time 0 (`u`: nanoseconds times rpm), so that nothing is rounded.
pub(crate) struct Disk {
    pub g: Arc<Geometry>,
    pub spec: MechanicsSpec,
    pub next: u64,
    /// The block that was under the head last, when it had passed, and whether any has.
    pub last: u64,
    passed_u: u64,
    moved: bool,
    /// Of the last transfer: when it was asked for, from when on the head was there, and when its first block came.
    pub asked: u64,
    pub arrived: u64,
    pub begun_u: u64,
}

impl Disk {
    pub(crate) fn new(g: Arc<Geometry>, spec: MechanicsSpec) -> Self {
        Self { g, spec, next: 0, last: 0, passed_u: 0, moved: false, asked: 0, arrived: 0, begun_u: 0 }
    }

    pub(crate) fn ns(&self, u: u64) -> u64 {
        u.div_ceil(u64::from(self.spec.rpm))
    }

    pub(crate) fn ready(&self) -> u64 {
        self.ns(self.passed_u)
    }

    fn seek(&self, dir: Dir, from: u64, to: u64) -> u64 {
        let (a, b) = (self.g.position(Pba(from)), self.g.position(Pba(to)));
        let curve = if dir == Dir::Read { &self.spec.read_seek } else { &self.spec.write_seek };
        let mut t = curve.time(u64::from(a.cylinder), u64::from(b.cylinder)).0;
        if a.surface != b.surface {
            t = t.max(self.spec.head_switch.0);
        }
        if t > 0 && dir == Dir::Write { t + self.spec.write_settle.0 } else { t }
    }

    /// The first moment from `u` on at which a block comes.
    fn comes(&self, pba: u64, u: u64) -> u64 {
        let angle = self.g.position(Pba(pba)).angle;
        u + (angle + REVOLUTION - u % REVOLUTION) % REVOLUTION
    }

    pub(crate) fn same_track(&self, a: u64, b: u64) -> bool {
        self.g.track_of(Pba(a)) == self.g.track_of(Pba(b))
    }

    /// When each block of a transfer that begins at `now` has passed; the first does not come before `data`.
    pub(crate) fn transfer(
        &self,
        now: u64,
        data: u64,
        dir: Dir,
        (lba, n): (u64, u64),
    ) -> (u64, u64, Vec<u64>) {
        let rpm = u64::from(self.spec.rpm);
        let (arrived, from) = if self.moved && now == self.ready() && lba == self.next {
            let seek = if self.same_track(self.last, lba) { 0 } else { self.seek(dir, self.last, lba) };
            (now, self.passed_u + seek * rpm)
        } else {
            let arrived = now + self.seek(dir, self.last, lba);
            (arrived, arrived * rpm)
        };
        let mut at = self.comes(lba, from);
        while at < data * rpm {
            at += REVOLUTION;
        }
        let begun = at;
        let ends = (lba..lba + n).map(|b| {
            if b > lba && !self.same_track(b - 1, b) {
                at = self.comes(b, at + self.seek(dir, b - 1, b) * rpm);
            }
            let here = self.g.position(Pba(b));
            let of = u64::from(self.g.sectors(self.g.track_of(Pba(b))));
            let edge = |sector: u64| sector * REVOLUTION / of;
            at += edge(u64::from(here.sector) + 1) - edge(u64::from(here.sector));
            at
        });
        let ends = ends.collect();
        (arrived, begun, ends)
    }

    pub(crate) fn leave(
        &mut self,
        asked: u64,
        (arrived, begun): (u64, u64),
        (lba, n): (u64, u64),
        passed_u: u64,
    ) {
        (self.next, self.last, self.passed_u, self.moved) = (lba + n, lba + n - 1, passed_u, true);
        (self.asked, self.arrived, self.begun_u) = (asked, arrived, begun);
    }

    /// Does all of a transfer; when each of its blocks has passed.
    pub(crate) fn serve(&mut self, now: u64, data: u64, dir: Dir, span: (u64, u64)) -> Vec<u64> {
        let (arrived, begun, ends) = self.transfer(now, data, dir, span);
        self.leave(now, (arrived, begun), span, ends[ends.len() - 1]);
        ends.into_iter().map(|u| self.ns(u)).collect()
    }

    /// The same from whichever block comes first, where all are on one track and the head arrives among them; when the first one and when
    /// all have passed.
    pub(crate) fn serve_any(&mut self, now: u64, dir: Dir, span: (u64, u64)) -> (u64, u64) {
        let (lba, n) = span;
        let goes_on = self.moved && now == self.ready() && lba == self.next;
        let (arrived, begun, ends) = self.transfer(now, 0, dir, span);
        let all = ends[ends.len() - 1];
        let from = arrived * u64::from(self.spec.rpm);
        if goes_on || !self.same_track(lba, lba + n - 1) || all - from <= REVOLUTION {
            let ends = self.serve(now, 0, dir, span);
            return (ends[0], ends[ends.len() - 1]);
        }
        // The first edge of a sector from the arrival on, a turn before it comes again.
        let edges = [begun].into_iter().chain(ends.iter().copied());
        let edge = edges.map(|u| u - REVOLUTION).find(|u| *u >= from).unwrap();
        self.leave(now, (arrived, begun), span, edge + REVOLUTION);
        (self.ns(ends[0]), self.ns(edge + REVOLUTION))
    }

    /// How long a block of a track takes, as a drive knows it: in whole nanoseconds.
    pub(crate) fn block(&self, pba: u64) -> u64 {
        REVOLUTION / u64::from(self.spec.rpm) / u64::from(self.g.sectors(self.g.track_of(Pba(pba))))
    }

    pub(crate) fn track(&self, pba: u64) -> (u64, u64) {
        let track = self.g.track_of(Pba(pba.min(self.g.blocks().0 - 1)));
        (self.g.track_start(track).0, self.g.track_start(track).0 + self.g.track_blocks(track).0)
    }

    pub(crate) fn cylinder(&self, pba: u64) -> u32 {
        self.g.position(Pba(pba)).cylinder
    }
}

pub(crate) fn us(n: u64) -> SimTime {
    SimTime::from_us(n)
}

pub(crate) fn any_disk(rng: &mut Rng) -> (Arc<Geometry>, MechanicsSpec) {
    let surfaces = 1 + rng.below(3) as u32;
    let layouts =
        [Layout::Surface, Layout::Cylinder { alternate: false }, Layout::Cylinder { alternate: true }];
    let g = GeometrySpec {
        surfaces,
        layout: layouts[rng.below(3) as usize],
        track_skew: rng.below(REVOLUTION / 4),
        cylinder_skew: rng.below(REVOLUTION / 4),
        ..GeometrySpec::single_surface(vec![ZoneSpec::plain(7, 40), ZoneSpec::plain(9, 23)])
    };
    let points = vec![(1, us(300 + rng.below(700))), (4, us(1500)), (15, us(2500))];
    let spec = MechanicsSpec {
        rpm: [6000, 7200, 5401][rng.below(3) as usize],
        distance: Distance::Cylinders,
        read_seek: SeekCurve::Table(points.clone()),
        write_seek: SeekCurve::Table(points.into_iter().map(|(d, t)| (d, t + us(90))).collect()),
        head_switch: us(rng.below(900)),
        write_head_switch: None,
        write_settle: us(rng.below(2) * 120),
        read_overhead: SimTime::ZERO,
        write_overhead: SimTime::ZERO,
        read_late: Blocks::ZERO,
        one_place: 0,
        rate: None,
    };
    (Arc::new(Geometry::new(g).unwrap()), spec)
}
