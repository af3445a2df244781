//! What is told of a drive, and the second one that tells the same.

use super::made_up::{Item, Script};
use crate::TimedPlan;
use crate::buffer::tests::naive::Naive;
use crate::events::{Buffered, MemberId, Observer, OpDone};
use smrlab_stl::{Cause, Facts, HostRequest, Pause, StepEnd};
use smrlab_units::{Dir, HostOp, Pba, SimTime};
use std::convert::Infallible;

/// What was told, as lines.
#[derive(Default)]
pub(super) struct Told(pub Vec<String>);

impl Observer for Told {
    type Error = Infallible;

    fn op(&mut self, d: &OpDone<'_>) {
        let phases = d.phases().map(|p| [p.seek, p.rotation, p.transfer].map(|t| t.0));
        let t = d.tracks;
        let tracks = (t.before, t.first, t.last, t.cylinders);
        let op = (d.op.dir, d.op.pba.0, d.op.blocks.0, d.cause);
        self.0.push(format!("op {:?} {op:?} {}..{} {tracks:?} {phases:?}", d.request, d.start.0, d.end.0));
    }

    fn paused(&mut self, _: MemberId, request: Option<u64>, pause: &Pause, start: SimTime) {
        self.0.push(format!("pause {request:?} {:?} {} at {}", pause.cause, pause.time.0, start.0));
    }

    fn dispatched(&mut self, came: SimTime, r: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        let ends: Vec<_> = e.ends.iter().map(|t| t.0).collect();
        let s = e.served;
        let served = (s.start.0, s.ack.0, s.end.0, e.began.0);
        self.0.push(format!("served {} came {} {served:?} {ends:?} {}", r.id, came.0, e.buffered));
        assert_eq!((e.done, e.whole), (ends.len(), true));
        Ok(())
    }

    fn accepted(&mut self, write: &Buffered<'_>) -> Result<(), Infallible> {
        let Buffered { came, request: r, served: s, .. } = write;
        self.0.push(format!("accepted {} came {} {} {}", r.id, came.0, s.start.0, s.ack.0));
        Ok(())
    }

    fn answered(&mut self, read: &Buffered<'_>, w: &HostRequest) -> Result<(), Infallible> {
        let Buffered { came, request: r, served: s, .. } = read;
        self.0.push(format!("answered {} from {} came {} {} {}", r.id, w.id, came.0, s.start.0, s.ack.0));
        Ok(())
    }

    fn background(&mut self, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        let ends: Vec<_> = e.ends.iter().map(|t| t.0).collect();
        let s = e.served;
        let times = (e.began.0, s.start.0, s.ack.0, s.end.0);
        self.0.push(format!("step {times:?} {ends:?} {} {}", e.done, e.whole));
        Ok(())
    }

    fn looks(&self, _: MemberId, _: SimTime) -> bool {
        true
    }

    fn looked(&mut self, _: MemberId, at: SimTime, _: &Facts<'_>) {
        self.0.push(format!("looked {}", at.0));
    }
}

/// A request that waits: when it came, when it had its place, and when the buffer took it.
#[derive(Clone)]
pub(super) struct Waits {
    pub came: u64,
    pub placed: u64,
    pub r: HostRequest,
    pub taken: Option<(u64, u64)>,
}

pub(super) fn conflict(a: &HostRequest, b: &HostRequest) -> bool {
    let meet = a.lba.0 < b.lba.0 + b.blocks.0 && b.lba.0 < a.lba.0 + a.blocks.0;
    let reads = a.op == HostOp::Read && b.op == HostOp::Read;
    a.op == HostOp::Flush || b.op == HostOp::Flush || meet && !reads
}

/// A plan under way in idle time: when it began, what is left, and the ends so far.
pub(super) struct Step {
    pub began: u64,
    pub items: Vec<Item>,
    pub next: usize,
    pub at: u64,
    pub ends: Vec<u64>,
}

pub(super) struct World {
    pub script: Script,
    /// Without a buffer of its own it has one that nobody asks.
    pub b: Naive,
    pub buffered: bool,
    pub policy: &'static str,
    pub up: bool,
    pub max_wait: Option<u64>,
    pub waiting: Vec<Waits>,
    pub leaving: (u64, u64),
    pub free: u64,
    pub idle_since: u64,
    pub step: Option<Step>,
    pub told: Vec<String>,
}

impl World {
    fn track(&self, pba: u64) -> u64 {
        self.b.disk.g.track_of(Pba(pba)).0
    }

    /// Tells of an operation; `timed`: by the mechanics.
    pub(super) fn tell(
        &mut self,
        r: Option<&HostRequest>,
        op: (Dir, u64, u64, Cause),
        (start, end): (u64, u64),
        before: u64,
        timed: bool,
    ) {
        let d = &self.b.disk;
        let phases = timed.then(|| {
            let rotation = d.ns(d.begun_u.saturating_sub(d.arrived * u64::from(d.spec.rpm)));
            [d.arrived - d.asked, rotation, d.ready() - (d.arrived + rotation)]
        });
        let cause = if op.3 == Cause::Host { r.map_or(Cause::Host, |r| r.why) } else { op.3 };
        let cylinders = d.cylinder(before).abs_diff(d.cylinder(op.1));
        let tracks = (self.track(before), self.track(op.1), self.track(op.1 + op.2 - 1), cylinders);
        let op = (op.0, op.1, op.2, cause);
        self.told.push(format!("op {:?} {op:?} {start}..{end} {tracks:?} {phases:?}", r.map(|r| r.id)));
    }

    pub(super) fn run(&mut self, r: Option<&HostRequest>, item: &Item, at: u64) -> u64 {
        match *item {
            Item::Op { dir, pba, n, cause, stated } => {
                let before = self.b.disk.last;
                let end = match stated {
                    Some(ns) => at + ns,
                    None => *self.b.disk.serve(at, 0, dir, (pba, n)).last().unwrap(),
                };
                self.tell(r, (dir, pba, n, cause), (at, end), before, stated.is_none());
                end
            }
            Item::Pause(cause, ns) => {
                self.told.push(format!("pause {:?} {cause:?} {ns} at {at}", r.map(|r| r.id)));
                at + ns
            }
            Item::Acknowledge => at,
        }
    }

    /// Background work that is due before `now`.
    pub(super) fn background(&mut self, now: u64) {
        loop {
            if self.step.is_none() {
                let Some(idle) = self.script.wait() else { return };
                let due = (self.idle_since + idle.0).max(self.free);
                if due >= now {
                    return;
                }
                let items = self.script.work();
                if self.buffered {
                    self.b.stop(due);
                }
                self.step = Some(Step { began: due, items, next: 0, at: due, ends: Vec::new() });
            }
            let mut s = self.step.take().unwrap();
            let is_op = |item: &&Item| matches!(item, Item::Op { .. });
            let ack = s.items.iter().position(|item| matches!(item, Item::Acknowledge));
            let commits = ack.map(|at| s.items[..at].iter().filter(is_op).count());
            while s.next < s.items.len() {
                let item = s.items[s.next];
                let committed = commits.is_some_and(|ops| s.ends.len() >= ops);
                if s.at >= now && !committed && !matches!(item, Item::Acknowledge) {
                    break;
                }
                s.at = self.run(None, &item, s.at);
                if let Item::Op { dir, pba, n, .. } = item {
                    s.ends.push(s.at);
                    if dir == Dir::Write {
                        self.b.forget(pba, pba + n);
                    }
                }
                s.next += 1;
                self.free = s.at;
            }
            if s.next < s.items.len() {
                self.step = Some(s);
                return;
            }
            self.script.worked(StepEnd::Done);
            if s.items.is_empty() {
                return;
            }
            self.told_step(&s, true);
            self.told.push(format!("looked {}", s.at));
        }
    }

    fn told_step(&mut self, s: &Step, whole: bool) {
        let times = (s.began, s.began, s.at, s.at);
        self.told.push(format!("step {times:?} {:?} {} {whole}", s.ends, s.ends.len()));
    }

    pub(super) fn serve(&mut self, now: u64, w: &Waits, waited: bool) {
        if let Some(s) = self.step.take() {
            self.script.worked(StepEnd::GivenUp);
            self.told_step(&s, false);
        }
        let (served, ends, buffered) = match (self.buffered, w.taken) {
            (false, _) => self.plainly(now, &w.r),
            (true, None) => self.through_buffer(now, w, waited),
            (true, Some(taken)) => self.destage(now, taken, &w.r),
        };
        self.idle_since = self.free.max(if self.buffered { served.1 } else { 0 });
        self.told.push(format!("served {} came {} {served:?} {ends:?} {buffered}", w.r.id, w.came));
        self.told.push(format!("looked {}", served.2));
    }

    fn plainly(&mut self, now: u64, r: &HostRequest) -> ((u64, u64, u64, u64), Vec<u64>, bool) {
        let start = now.max(self.free);
        let (mut at, mut ack, mut ends) = (start, None, Vec::new());
        for item in self.script.request(r) {
            at = self.run(Some(r), &item, at);
            match item {
                Item::Op { .. } => ends.push(at),
                Item::Acknowledge => ack = Some(at),
                Item::Pause(..) => {}
            }
        }
        self.free = at;
        ((start, ack.unwrap_or(at), at, start), ends, false)
    }
}
