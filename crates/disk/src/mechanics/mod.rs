//! How long media operations take: seek, rotation, head switch, settle and transfer, in integer nanoseconds.
//!
//! The angle of the disk at time `t` is `t * rpm mod 60e9` in units of [`REVOLUTION`], exactly: no period is rounded and
//! no clock drifts. A time is the first whole nanosecond at which the angle has been reached.

mod ahead;
mod pass;
mod reach;
mod seek;
#[cfg(test)]
mod tests;
mod transfer;

pub use reach::Reach;
pub use seek::SeekCurve;

use crate::Result;
use crate::geometry::{Even, Geometry, REVOLUTION, TrackNo, wrapped};
use seek::Curve;
use smrlab_units::problems::Problems;
use smrlab_units::reciprocal::Reciprocal;
use smrlab_units::{BLOCK_BYTES, Blocks, Dir, Pba, SimTime, named};
use std::sync::Arc;
use transfer::{Advance, Aim, Swept, turn};

named! {
    /// Which parts of the mechanics count.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Model {
        /// Everything, with the exact angle.
        Full => "full",
        /// Seek and transfer only: no rotational delay, no switches within a transfer.
        NoRotation => "no-rotation",
        /// Nothing takes time.
        Instant => "instant",
    }
}

/// What seek curves take as distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// Cylinders.
    Cylinders,
    /// Blocks, from the end of the last operation.
    Blocks,
}

/// Everything that fixes how long operations take.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanicsSpec {
    /// Revolutions a minute, 1 to 100 000.
    pub rpm: u32,
    /// What the curves take.
    pub distance: Distance,
    /// Curve of reads.
    pub read_seek: SeekCurve,
    /// Curve of writes.
    pub write_seek: SeekCurve,
    /// Least time of a positioning that changes the surface.
    pub head_switch: SimTime,
    /// The same for writes; `None`: as for reads.
    pub write_head_switch: Option<SimTime>,
    /// What a write adds to every positioning that moves.
    pub write_settle: SimTime,
    /// Before a read positions.
    pub read_overhead: SimTime,
    /// Before a write positions.
    pub write_overhead: SimTime,
    /// A read misses the blocks that pass within so many behind the head's arrival.
    pub read_late: Blocks,
    /// So many first cylinders, those of a cache on the medium, are one place: seeks count from the cylinder behind them,
    /// and a read that comes from there or goes there misses nothing.
    pub one_place: u32,
    /// In the model without rotation: bytes a second everywhere. `None`: what the zone and `rpm` give.
    pub rate: Option<u64>,
}

impl MechanicsSpec {
    /// Checks every field; places are given relative to `at` ("mechanics").
    ///
    /// # Errors
    /// All faults at once.
    pub fn check(&self, at: &str) -> Result<()> {
        let mut f = Problems::default();
        f.range(format!("{at}.rpm"), self.rpm, 1..=100_000);
        let second = SimTime::from_ms(1000).0;
        for (name, t) in [
            ("head_switch", self.head_switch),
            ("write_head_switch", self.write_head_switch.unwrap_or_default()),
            ("write_settle", self.write_settle),
            ("read_overhead", self.read_overhead),
            ("write_overhead", self.write_overhead),
        ] {
            if t.0 > second {
                f.add(format!("{at}.{name}"), format!("{t} is not accepted: from 0 to 1s"));
            }
        }
        for (name, curve) in [("read_seek", &self.read_seek), ("write_seek", &self.write_seek)] {
            let t = curve.longest_stated();
            if t.0 > second {
                f.add(format!("{at}.{name}"), format!("a seek of {t} is not accepted: from 0 to 1s"));
            }
        }
        f.range(format!("{at}.read_late"), self.read_late.0, 0..=1 << 20);
        if let Some(rate) = self.rate {
            f.range(format!("{at}.rate"), rate, 1..=1 << 50);
        }
        f.finish()
    }
}

/// A block's place, computed once for a request that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pba: u64,
    angle: u64,
    track: u64,
    cylinder: u32,
    surface: u32,
}

impl Target {
    /// The block.
    pub fn pba(&self) -> Pba {
        Pba(self.pba)
    }

    /// Its track.
    pub fn track(&self) -> TrackNo {
        TrackNo(self.track)
    }

    /// Its cylinder, counted from the side where PBA 0 lies.
    pub fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// Both.
    #[inline(always)]
    fn lies_on(&self) -> (TrackNo, u32) {
        (self.track(), self.cylinder)
    }
}

/// Where the head is after the last operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The block after the last one transferred.
    pub next: Pba,
    /// The track under the head.
    pub track: TrackNo,
    /// When the last operation ended.
    pub ready: SimTime,
    cylinder: u32,
    surface: u32,
    /// A transfer ended at `ready`: what begins then with the next block goes on with it. Before the first one none did.
    moved: bool,
    /// The angle at which the last transfer ended, exactly.
    angle: u64,
}

impl Head {
    /// The cylinder under the head, counted from the side where PBA 0 lies.
    pub fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// Whether a transfer of this block at `now` goes on with the last one.
    #[inline(always)]
    fn goes_on(&self, now: SimTime, pba: u64) -> bool {
        pba == self.next.0 && now == self.ready && self.moved
    }

    /// A transfer up to `next` ended.
    #[inline(always)]
    fn ended(&mut self, next: Pba, at: SimTime) {
        (self.next, self.ready, self.moved) = (next, at, true);
    }
}

/// Where the time of an operation went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Command overhead.
    pub overhead: SimTime,
    /// Seek, head switch and settle before the first block.
    pub seek: SimTime,
    /// Rotation until the first block.
    pub rotation: SimTime,
    /// From the first block to the last, switches included.
    pub transfer: SimTime,
}

/// A positioning: when the head has arrived, and the angle from there to the first block (negative by less than a
/// nanosecond's worth where a transfer goes on without a gap).
#[derive(Clone, Copy, Debug, Default)]
struct Positioning {
    overhead: u64,
    arrive: u64,
    wait: i64,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Mechanics {
    geometry: Arc<Geometry>,
    model: Model,
    blocks_distance: bool,
    curves: [Curve; 2],
    /// No longer way takes less time than a shorter one.
    ascends: bool,
    overhead: [u64; 2],
    read_late: u64,
    one_place: u32,
    head_switch: [u64; 2],
    settle: [u64; 2],
    rpm: u64,
    per_rpm: Reciprocal,
    /// In nanoseconds, rounded down.
    revolution: u64,
    /// Nanoseconds for a block at a fixed rate: numerator and divisor.
    rate: Option<(u64, Reciprocal)>,
    advances: Vec<[Advance; 2]>,
    head: Head,
    last: (u64, Positioning),
    /// The track and the cylinder on which the last operation began.
    began: (TrackNo, u32),
    /// A block that was looked at, mostly the last one: others are mostly on its track.
    noted: (Target, Aim),
    /// The blocks around the one that was looked at last.
    even: Even,
    swept: Swept,
}

impl Mechanics {
    /// Heads at PBA 0, time 0.
    ///
    /// # Errors
    /// All faults of `spec`, placed under `mechanics`.
    pub fn new(geometry: Arc<Geometry>, spec: &MechanicsSpec, model: Model) -> Result<Self> {
        spec.check("mechanics")?;
        let rate = spec.rate.map(|r| {
            let num = BLOCK_BYTES * 1_000_000_000;
            let g = gcd(num, r);
            (num / g, Reciprocal::new(r / g))
        });
        let head = Head {
            next: Pba(0),
            track: TrackNo(0),
            ready: SimTime::ZERO,
            cylinder: 0,
            surface: 0,
            moved: false,
            angle: 0,
        };
        let mut m = Self {
            model,
            blocks_distance: spec.distance == Distance::Blocks,
            curves: [spec.read_seek.ready(), spec.write_seek.ready()],
            ascends: spec.read_seek.ascends() && spec.write_seek.ascends(),
            overhead: [spec.read_overhead.0, spec.write_overhead.0],
            read_late: spec.read_late.0,
            one_place: spec.one_place,
            head_switch: [spec.head_switch.0, spec.write_head_switch.unwrap_or(spec.head_switch).0],
            settle: [0, spec.write_settle.0],
            rpm: u64::from(spec.rpm),
            per_rpm: Reciprocal::new(u64::from(spec.rpm)),
            revolution: REVOLUTION / u64::from(spec.rpm),
            rate,
            advances: Vec::new(),
            head,
            last: (0, Positioning::default()),
            began: (TrackNo(0), 0),
            noted: Default::default(),
            even: geometry.even(Pba(0)),
            swept: Swept::default(),
            geometry,
        };
        m.advances =
            m.geometry.zone_runs().iter().map(|s| [Dir::Read, Dir::Write].map(|d| m.advance(s, d))).collect();
        let (first, _) = m.aim_noted(Pba(0));
        (m.head.cylinder, m.head.surface) = (first.cylinder, first.surface);
        Ok(m)
    }

    /// The heads rest before block `next`, where a transfer ended long before time 0.
    pub fn rest_at(&mut self, next: Pba) {
        let end = self.geometry.blocks().0;
        let at = self.target(Pba(next.0.min(end).saturating_sub(1)));
        self.head = Head {
            next,
            track: TrackNo(at.track),
            ready: SimTime::ZERO,
            cylinder: at.cylinder,
            surface: at.surface,
            moved: false,
            angle: 0,
        };
    }

    /// The geometry that it moves over.
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.geometry
    }

    /// Revolutions a minute.
    pub fn rpm(&self) -> u32 {
        self.rpm as u32
    }

    /// A revolution, rounded down to a nanosecond.
    pub fn revolution(&self) -> SimTime {
        SimTime(self.revolution)
    }

    /// Which model it is.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Where the head is.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The angle of the disk at a time.
    pub fn angle(&self, t: SimTime) -> u64 {
        (t.0 % REVOLUTION) * self.rpm % REVOLUTION
    }

    /// A block's place, for [`positioning`](Self::positioning).
    #[inline]
    pub fn target(&self, pba: Pba) -> Target {
        self.aim(pba).0
    }

    /// The track and the cylinder of the first of several blocks, and the track of the last one.
    #[inline]
    pub fn passed(&self, pba: Pba, blocks: Blocks) -> (TrackNo, u32, TrackNo) {
        let loc = self.geometry.locate(self.geometry.raw(pba));
        let first = TrackNo(loc.seg.first_track + loc.track);
        let within = loc.sector + blocks.0 <= loc.seg.usable.divisor() && self.geometry.slips().is_empty();
        let last = if within { first } else { self.target(pba + (blocks - Blocks(1))).track() };
        (first, loc.seg.cylinder(loc.seg.place(loc.track)), last)
    }

    /// How long a read's seek takes from one cylinder (or block) to another.
    pub fn read_seek(&self, from: u64, to: u64) -> SimTime {
        SimTime(self.curves[Dir::Read as usize].between(from, to))
    }

    /// Duration of the positioning proper, overhead and rotation excluded.
    #[inline(always)]
    fn seek(&self, dir: Dir, t: &Target) -> u64 {
        let curve = &self.curves[dir as usize];
        let seek = if self.blocks_distance {
            curve.between(self.head.next.0, t.pba)
        } else {
            let place = |cylinder: u32| u64::from(cylinder.max(self.one_place));
            curve.between(place(self.head.cylinder), place(t.cylinder))
        };
        self.moved(dir, seek, t.surface != self.head.surface)
    }

    /// A seek with the switch to another surface at the same time, and settling where that takes any time.
    #[inline(always)]
    fn moved(&self, dir: Dir, seek: u64, surface_changes: bool) -> u64 {
        let least = if surface_changes { self.head_switch[dir as usize] } else { 0 };
        let seek = seek.max(least);
        seek + if seek > 0 { self.settle[dir as usize] } else { 0 }
    }

    /// How long what passes the head is missed by a read that begins with `t`.
    #[inline(always)]
    fn late(&self, dir: Dir, t: &Target) -> u64 {
        let here = self.head.cylinder.min(t.cylinder) >= self.one_place;
        if self.read_late == 0 || dir == Dir::Write || !here {
            return 0;
        }
        self.read_late * REVOLUTION / (u64::from(self.geometry.sectors(t.track())) * self.rpm)
    }

    /// With the angle of the disk at `now`, which only the full model asks for.
    #[inline(always)]
    fn position(&self, now: SimTime, angle: u64, dir: Dir, t: &Target) -> Positioning {
        let at_once = self.head.goes_on(now, t.pba);
        let overhead = if at_once { 0 } else { self.overhead[dir as usize] + self.late(dir, t) };
        if self.model == Model::NoRotation {
            let seek = if t.pba == self.head.next.0 { 0 } else { self.seek(dir, t) };
            return Positioning { overhead, arrive: now.0 + overhead + seek, wait: 0 };
        }
        if at_once {
            return self.go_on(now, angle, dir, *t);
        }
        let delay = overhead + self.seek(dir, t);
        let arrive = now.0 + delay;
        let angle = (angle + delay * self.rpm) % REVOLUTION;
        let wait = wrapped(t.angle + REVOLUTION - angle, REVOLUTION);
        Positioning { overhead, arrive, wait: wait as i64 }
    }

    /// A transfer that continues the last one at once: measured from the exact angle at which that ended, so that two
    /// commands take as long as one.
    fn go_on(&self, now: SimTime, angle: u64, dir: Dir, t: Target) -> Positioning {
        let late = turn(self.head.angle, angle);
        let gap = turn(self.head.angle, t.angle);
        let switch = if t.track == self.head.track.0 { 0 } else { self.seek(dir, &t) };
        let lost = (switch * self.rpm).saturating_sub(gap).div_ceil(REVOLUTION);
        Positioning { overhead: 0, arrive: now.0, wait: (gap + lost * REVOLUTION) as i64 - late as i64 }
    }

    /// Does an operation that starts at `start`; returns when it ends and leaves the head there.
    pub fn service(&mut self, start: SimTime, dir: Dir, pba: Pba, blocks: Blocks) -> SimTime {
        self.serve(start, None, dir, pba, blocks)
    }

    /// As [`service`](Self::service), but the first block does not pass before `data`: each revolution too early is let
    /// go by, as where a write's data are still on the bus.
    pub fn service_from(
        &mut self,
        start: SimTime,
        data: SimTime,
        dir: Dir,
        pba: Pba,
        blocks: Blocks,
    ) -> SimTime {
        self.serve(start, Some(data), dir, pba, blocks)
    }

    /// In place, so that what has no data to wait for does not look for them.
    #[inline(always)]
    fn serve(
        &mut self,
        start: SimTime,
        data: Option<SimTime>,
        dir: Dir,
        pba: Pba,
        blocks: Blocks,
    ) -> SimTime {
        debug_assert!(blocks.0 > 0 && start >= self.head.ready);
        let (target, aim) = match self.swept.begun(pba) {
            Some(place) => place,
            None if data.is_some() => self.aim_near(pba),
            None => self.aim_at(pba),
        };
        let end = match self.model {
            Model::Instant => {
                self.last = (start.0, Positioning { overhead: 0, arrive: start.0, wait: 0 });
                self.head_to_last(target, aim, pba, blocks);
                start.0
            }
            Model::NoRotation => {
                let mut p = self.position(start, 0, dir, &target);
                p.arrive = p.arrive.max(data.unwrap_or_default().0);
                self.last = (start.0, p);
                let time = self.plain_transfer(aim, pba, blocks);
                self.head_to_last(target, aim, pba, blocks);
                p.arrive + time
            }
            Model::Full => {
                let mut p = self.position(start, self.angle(start), dir, &target);
                if let Some(data) = data.filter(|data| *data > start) {
                    let missing =
                        (data.since(SimTime(p.arrive)).0 * self.rpm).saturating_sub(p.wait.max(0) as u64);
                    p.wait += (missing.div_ceil(REVOLUTION) * REVOLUTION) as i64;
                }
                // Noted before it has to be kept for the transfer: put together from parts it is slow to copy.
                self.last = (start.0, p);
                let (units, place) = self.sweep_over(dir, &target, aim, pba, blocks);
                place.leave(&mut self.head);
                p.arrive + self.per_rpm.div_ceil((p.wait + units as i64) as u64)
            }
        };
        self.head.ended(pba + blocks, SimTime(end));
        self.began = target.lies_on();
        SimTime(end)
    }

    /// The track and the cylinder on which the last operation began.
    pub fn began(&self) -> (TrackNo, u32) {
        self.began
    }

    /// Where the time of the last operation went.
    #[inline]
    pub fn phases(&self) -> Phases {
        let (start, p) = self.last;
        let rotation = self.per_rpm.div_ceil(p.wait.max(0) as u64);
        Phases {
            overhead: SimTime(p.overhead),
            seek: SimTime(p.arrive - start - p.overhead),
            rotation: SimTime(rotation),
            transfer: self.head.ready.since(SimTime(p.arrive + rotation)),
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
