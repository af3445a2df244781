//! A drive: a translation layer and the mechanics that carry out its plans. One piece of code for the simulator and for
//! the served device; it knows nothing of traces, metrics, bytes or wall clocks.
//!
//! Time only moves by the `now` of the caller, which never falls. Before a request is dispatched the caller takes the
//! background steps that were due before it ([`Drive::next_step`], each at its own time) and what a step under way leaves
//! ([`Drive::interrupt`]): calling late never changes when anything happens. Every plan that was carried out in time is
//! handed to the caller, who does with it what else is to be done: bytes, identities, logs.

mod buffered;

use crate::buffer::DriveBuffer;
use crate::{MemberId, Observer, OpDone, Tracks};
use smrlab_disk::mechanics::Model;
use smrlab_disk::{Mechanics, Target};
use smrlab_stl::{Cause, HostRequest, MediaOp, OpId, Pause, Plan, Refusal, Step, StepEnd, TranslationLayer};
use smrlab_units::{Dir, Lba, Pba, SimTime};
use std::ops::Range;

/// When a host request was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When the drive began with it.
    pub start: SimTime,
    /// When the host was acknowledged.
    pub ack: SimTime,
    /// When the drive was free again.
    pub end: SimTime,
}

/// A plan, or the part of it that was carried out in time; the rest is up to the caller.
///
/// Of a step that was given up only the first [`done`](Self::done) operations hold, and no record.
#[derive(Clone, Copy, Debug)]
pub struct TimedPlan<'a> {
    /// The drive.
    pub member: MemberId,
    /// The plan.
    pub plan: &'a Plan,
    /// Operations carried out.
    pub done: usize,
    /// When the host's request was served. Of a write that a buffer took it was acknowledged long before the plan was carried
    /// out.
    pub served: Served,
    /// When the first operation, or the pause before it, began.
    pub began: SimTime,
    /// When each operation ended, in order.
    pub ends: &'a [SimTime],
    /// The whole plan was carried out, so that its records hold.
    pub whole: bool,
    /// A buffer answered the host's write, which waited for nothing of the plan.
    pub buffered: bool,
}

/// What a drive's callers need of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriveSetup {
    /// Callers need to know where bytes come from.
    pub wants_data: bool,
    /// Callers keep what survives a power cut.
    pub wants_records: bool,
    /// The layer's [`stable_location`](smrlab_stl::Capabilities::stable_location).
    pub stable_locations: bool,
}

/// A background step under way.
#[derive(Clone, Copy, Debug)]
struct Under {
    began: SimTime,
    /// Operations begun, and pauses.
    next: (usize, usize),
    /// When the next operation can begin.
    at: SimTime,
}

/// See the [module](self).
pub struct Drive {
    member: MemberId,
    layer: Box<dyn TranslationLayer>,
    mechanics: Mechanics,
    stable_locations: bool,
    heeds_head: bool,
    reads_in_place: bool,
    /// Its own buffer and bus, where it has any.
    buffer: Option<Box<DriveBuffer>>,
    plan: Plan,
    ends: Vec<SimTime>,
    step: Option<Under>,
    step_plan: Plan,
    step_ends: Vec<SimTime>,
    free_at: SimTime,
    idle_since: SimTime,
}

impl Drive {
    /// A drive at time 0.
    pub fn new(layer: Box<dyn TranslationLayer>, mechanics: Mechanics, setup: DriveSetup) -> Self {
        let DriveSetup { wants_data, wants_records, stable_locations } = setup;
        Self {
            member: MemberId::default(),
            heeds_head: layer.heeds_head(),
            reads_in_place: layer.reads_in_place(),
            layer,
            mechanics,
            stable_locations,
            buffer: None,
            plan: Plan::new(wants_data, wants_records),
            ends: Vec::new(),
            step: None,
            step_plan: Plan::new(wants_data, wants_records),
            step_ends: Vec::new(),
            free_at: SimTime::ZERO,
            idle_since: SimTime::ZERO,
        }
    }

    /// Which one of an array it is.
    pub fn member(&self) -> MemberId {
        self.member
    }

    /// From now on it is this member of an array.
    pub fn set_member(&mut self, member: MemberId) {
        self.member = member;
    }

    /// The layer.
    pub fn layer(&self) -> &dyn TranslationLayer {
        &*self.layer
    }

    /// Whether what [`locate`](Self::locate) answers for a waiting request never changes.
    pub fn stable_locations(&self) -> bool {
        self.stable_locations
    }

    /// The layer, for recovery before the first request.
    pub fn layer_mut(&mut self) -> &mut dyn TranslationLayer {
        &mut *self.layer
    }

    /// The mechanics.
    pub fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// The heads rest before `next`, as if a transfer had ended there before time 0.
    pub fn rest_at(&mut self, next: Pba) {
        self.mechanics.rest_at(next);
    }

    /// The block at the head, or the last one of the drive.
    pub fn head(&self) -> Pba {
        let end = self.mechanics.geometry().blocks().0;
        Pba(self.mechanics.head().next.0.min(end - 1))
    }

    /// When the drive is free of everything that was started.
    pub fn free_at(&self) -> SimTime {
        self.free_at
    }

    /// The plan of the last request.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where the request would start if it were dispatched now, and in which direction; `None`: no media operation, or
    /// unknown.
    #[inline]
    pub fn locate(&self, request: &HostRequest) -> Option<(Pba, Dir)> {
        self.layer.locate(request)
    }

    /// The place of a block as the mechanics keep it.
    #[inline]
    pub fn target(&self, pba: Pba) -> Target {
        self.mechanics.target(pba)
    }

    /// Serves a request at `now`, or when everything dispatched before it has ended. Steps that were due before must have
    /// been taken ([`next_step`](Self::next_step), [`interrupt`](Self::interrupt)).
    #[inline(always)]
    pub fn dispatch(
        &mut self,
        now: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> TimedPlan<'_> {
        debug_assert!(self.step.is_none(), "a step is under way");
        if let Some(mut behind) = self.parts() {
            let done = behind.dispatch(now, request, watch);
            return self.finish(done);
        }
        let start = now.max(self.free_at);
        self.plan.clear();
        if self.heeds_head {
            self.layer.head(self.mechanics.head().next);
        }
        self.layer.submit(start, request, &mut self.plan);
        self.ends.clear();
        let mut at = start;
        // The walk of a plan of operations only, without the cost of looking for what else there might be.
        if let Some(ops) = self.plan.plain() {
            for op in ops {
                let work = Work { op, stated: None, of: (self.member, Some(request)) };
                at = run(&mut self.mechanics, work, at, watch);
                self.ends.push(at);
            }
            return self.executed(start, at, at);
        }
        self.dispatch_steps(start, request, watch)
    }

    /// Carries out the plan of a request, from `start` on, with all that it has besides operations.
    #[inline(never)]
    fn dispatch_steps(
        &mut self,
        start: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> TimedPlan<'_> {
        let (mut at, mut ack) = (start, start);
        for step in self.plan.walk() {
            match step {
                Step::Op(id, op) => {
                    let work = Work { op, stated: self.plan.stated(id), of: (self.member, Some(request)) };
                    at = run(&mut self.mechanics, work, at, watch);
                    self.ends.push(at);
                }
                Step::Acknowledge => ack = at,
                Step::Pause(pause) => {
                    let pause = Pause { time: passes(&self.mechanics, pause.time), ..pause };
                    watch.paused(self.member, Some(request.id), &pause, at);
                    at += pause.time;
                }
                Step::Record(_) | Step::Fence => {}
            }
        }
        self.executed(start, ack, at)
    }

    #[inline]
    fn executed(&mut self, start: SimTime, ack: SimTime, end: SimTime) -> TimedPlan<'_> {
        self.free_at = end;
        self.idle_since = end;
        let served = Served { start, ack, end };
        let (plan, ends, done) = (&self.plan, &*self.ends, self.ends.len());
        let member = self.member;
        TimedPlan { member, plan, done, served, began: start, ends, whole: true, buffered: false }
    }

    /// Serves a request without time, as prefilling does: the heads stay where they are. What it answers is there for who follows
    /// the data.
    #[inline]
    pub fn instantly(&mut self, request: &HostRequest) -> TimedPlan<'_> {
        let at = self.free_at;
        self.plan.clear();
        self.layer.submit(at, request, &mut self.plan);
        let (plan, done, member) = (&self.plan, self.plan.ops().len(), self.member);
        let served = Served { start: at, ack: at, end: at };
        TimedPlan { member, plan, done, served, began: at, ends: &[], whole: true, buffered: false }
    }

    /// Has the layer judge a request that comes to the queue; answers the blocks within which it keeps its order.
    ///
    /// # Errors
    /// Why the layer refuses it, and the block that stands against it.
    #[inline]
    pub(crate) fn admit(&mut self, request: &HostRequest) -> Result<Range<u64>, (Refusal, Lba)> {
        self.layer.admit(request)
    }

    /// Answers a request at `now` that the layer did not [admit](Self::admit): that takes nothing of the medium, and of time what the
    /// drive's controller needs, where its file describes one.
    pub(crate) fn refuse(
        &mut self,
        now: SimTime,
        request: &HostRequest,
        (why, lba): (Refusal, Lba),
    ) -> TimedPlan<'_> {
        self.plan.clear();
        self.plan.refuse(why, lba);
        self.ends.clear();
        let (start, ack) = self.refusing(now, request);
        self.idle_since = self.idle_since.max(ack);
        let served = Served { start, ack, end: ack };
        let (plan, ends, member) = (&self.plan, &*self.ends, self.member);
        TimedPlan { member, plan, done: 0, served, began: start, ends, whole: true, buffered: false }
    }

    /// When [`next_step`](Self::next_step) has something to do, if no request comes before.
    pub fn next_wake(&self) -> Option<SimTime> {
        match &self.step {
            Some(step) => Some(step.at),
            None => self.layer.background_after().map(|idle| (self.idle_since + idle).max(self.free_at)),
        }
    }

    /// Whether there may be background work at all.
    #[inline]
    pub fn idles(&self) -> bool {
        self.step.is_none() && self.layer.background_after().is_none()
    }

    /// Runs background work up to `now`: operations that begin before `now` are begun, and those end. Answers with the
    /// first step that is done by that; call it again until it answers `None`.
    ///
    /// Steps follow each other without a pause once the drive has been idle (of host requests) for as long as the layer
    /// asks.
    pub fn next_step(&mut self, now: SimTime, watch: &mut impl Observer) -> Option<TimedPlan<'_>> {
        if self.step.is_none() {
            let due = self.next_wake().filter(|due| *due < now)?;
            self.step_plan.clear();
            self.step_ends.clear();
            self.layer.background(due, &mut self.step_plan);
            self.interfere(due);
            self.step = Some(Under { began: due, next: (0, 0), at: due });
        }
        self.go_on(now, watch).then(|| self.end_step(StepEnd::Done)).filter(|done| {
            // A step without operations says that there is nothing to do after all, or records something.
            let plan = done.plan;
            !plan.ops().is_empty() || !plan.pauses().is_empty() || !plan.records().is_empty()
        })
    }

    /// Begins what can begin before `now` of the step under way, and what cannot be given up any more; `true`: all of it.
    fn go_on(&mut self, now: SimTime, watch: &mut impl Observer) -> bool {
        let Some(step) = &mut self.step else { return false };
        let plan = &self.step_plan;
        loop {
            let pause = plan.pauses().get(step.next.1).filter(|p| p.0 as usize <= step.next.0);
            let op = plan.ops().get(step.next.0);
            if pause.is_none() && op.is_none() {
                return true;
            }
            if step.at >= now && !plan.is_committed(step.next.0) {
                return false;
            }
            if let Some((_, pause)) = pause {
                let pause = Pause { time: passes(&self.mechanics, pause.time), ..*pause };
                watch.paused(self.member, None, &pause, step.at);
                step.at += pause.time;
                step.next.1 += 1;
            } else if let Some(op) = op {
                let stated = plan.stated(OpId(step.next.0 as u32));
                let work = Work { op, stated, of: (self.member, None) };
                step.at = run(&mut self.mechanics, work, step.at, watch);
                if let Some(b) = &mut self.buffer {
                    b.carried_out(op);
                }
                self.step_ends.push(step.at);
                step.next.0 += 1;
            }
            self.free_at = step.at;
        }
    }

    /// A request is there: what has not started of the step under way is given up. Answers with what was done of it.
    #[inline]
    pub fn interrupt(&mut self) -> Option<TimedPlan<'_>> {
        self.step.is_some().then(|| self.end_step(StepEnd::GivenUp))
    }

    fn end_step(&mut self, end: StepEnd) -> TimedPlan<'_> {
        let Under { began, next, at } =
            self.step.take().unwrap_or(Under { began: self.free_at, next: (0, 0), at: self.free_at });
        self.layer.background_end(end);
        let served = Served { start: began, ack: at, end: at };
        TimedPlan {
            member: self.member,
            plan: &self.step_plan,
            done: next.0,
            served,
            began,
            ends: &self.step_ends,
            whole: end == StepEnd::Done,
            buffered: false,
        }
    }
}

/// What serves the request directly is counted as what the request is for.
fn on_account(op: &MediaOp, request: &HostRequest) -> Cause {
    // As a number: read as the byte that it was written as.
    if op.cause as usize == Cause::Host as usize { request.why } else { op.cause }
}

/// An operation to be carried out.
struct Work<'a> {
    op: &'a MediaOp,
    /// Its duration, where the plan states it.
    stated: Option<SimTime>,
    /// Who does it, and for which request; `None`: in idle time.
    of: (MemberId, Option<&'a HostRequest>),
}

/// What a stated time takes: nothing where nothing takes time.
#[inline]
fn passes(mechanics: &Mechanics, time: SimTime) -> SimTime {
    if mechanics.model() == Model::Instant { SimTime::ZERO } else { time }
}

/// Carries out one operation from `at` on; returns its end. Always in place: what it hands over is small parts that are
/// slow to copy.
#[inline(always)]
fn run(mechanics: &mut Mechanics, work: Work<'_>, at: SimTime, watch: &mut impl Observer) -> SimTime {
    let Work { op, stated, of: (member, request) } = work;
    let (before, cylinder) = (mechanics.head().track.0, mechanics.head().cylinder());
    let (end, began, last) = if let Some(time) = stated {
        let (first, cylinder, last) = mechanics.passed(op.pba, op.blocks);
        (at + passes(mechanics, time), (first, cylinder), last.0)
    } else {
        let end = mechanics.service(at, op.dir, op.pba, op.blocks);
        (end, mechanics.began(), mechanics.head().track.0)
    };
    let tracks = Tracks { before, first: began.0.0, last, cylinders: began.1.abs_diff(cylinder) };
    let cause = request.map_or(op.cause, |request| on_account(op, request));
    let (request, timed) = (request.map(|r| r.id), stated.is_none().then_some(&*mechanics));
    watch.op(&OpDone { member, request, op, cause, start: at, end, tracks, timed });
    end
}
