//! A drive: a translation layer and the mechanics that carry out its plans. One piece of code for the simulator and for
//! the served device; it knows nothing of traces, metrics or wall clocks.
//!
//! Time only moves by the `now` of the caller, which never falls. Background steps that were due before `now` run
//! first, each at its own time: calling late never changes when anything happens.

use smrlab_disk::{Mechanics, Target};
use smrlab_stl::{HostRequest, MediaOp, Plan, StepEnd, TranslationLayer};
use smrlab_units::{Pba, SimTime};

/// The tracks on which a media operation began and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracks {
    /// Where the head stood before.
    pub before: u64,
    /// The track of the first block.
    pub first: u64,
    /// The track of the last block.
    pub last: u64,
}

/// A media operation that was carried out.
#[derive(Clone, Copy, Debug)]
pub struct OpDone<'a> {
    /// What was done.
    pub op: &'a MediaOp,
    /// When the drive began with it.
    pub start: SimTime,
    /// When its last block had passed the head.
    pub end: SimTime,
    /// Where the head was.
    pub tracks: Tracks,
    /// Done in idle time, for no host request.
    pub background: bool,
}

/// How a host request was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When the drive began with it.
    pub start: SimTime,
    /// When the host was acknowledged.
    pub ack: SimTime,
    /// When the drive was free again.
    pub end: SimTime,
}

/// A plan, or the part of it that was carried out.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// The plan; of a step that was given up only the first [`done`](Self::done) operations hold.
    pub plan: &'a Plan,
    /// Operations carried out.
    pub done: usize,
    /// When the first operation began.
    pub start: SimTime,
    /// When each operation ended, in order.
    pub ends: &'a [SimTime],
    /// The request that it served; `None`: a background step.
    pub request: Option<&'a HostRequest>,
}

/// Is told what a drive does, in order. Metrics, logs, identity checks and byte media are observers.
pub trait Observer {
    /// A media operation was carried out; its times are final.
    fn op(&mut self, done: &OpDone<'_>) {
        let _ = done;
    }

    /// All operations of a plan, or all of a step that will be, were carried out.
    fn executed(&mut self, executed: &Executed<'_>) {
        let _ = executed;
    }
}

/// Observes nothing.
impl Observer for () {}

/// What a drive's callers need of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriveSetup {
    /// Observers need to know where bytes come from.
    pub wants_data: bool,
    /// Observers keep what survives a power cut.
    pub wants_records: bool,
    /// The layer's [`stable_location`](smrlab_stl::Capabilities::stable_location).
    pub stable_locations: bool,
    /// Background work waits for [`Drive::step`] instead of beginning when its time has come: for callers without time,
    /// where all of it would be done at once.
    pub by_step: bool,
}

/// A background step under way.
#[derive(Clone, Copy, Debug)]
struct Step {
    began: SimTime,
    next: usize,
    /// When the next operation can begin.
    at: SimTime,
}

/// See the [module](self).
pub struct Drive {
    layer: Box<dyn TranslationLayer>,
    mechanics: Mechanics,
    stable_locations: bool,
    by_step: bool,
    plan: Plan,
    ends: Vec<SimTime>,
    step: Option<Step>,
    step_plan: Plan,
    step_ends: Vec<SimTime>,
    free_at: SimTime,
    idle_since: SimTime,
}

impl Drive {
    /// A drive at time 0.
    pub fn new(layer: Box<dyn TranslationLayer>, mechanics: Mechanics, setup: DriveSetup) -> Self {
        let DriveSetup { wants_data, wants_records, stable_locations, by_step } = setup;
        Self {
            layer,
            mechanics,
            stable_locations,
            by_step,
            plan: Plan::new(wants_data, wants_records),
            ends: Vec::new(),
            step: None,
            step_plan: Plan::new(wants_data, wants_records),
            step_ends: Vec::new(),
            free_at: SimTime::ZERO,
            idle_since: SimTime::ZERO,
        }
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

    /// The block at the head, or the last one of the drive.
    pub fn head(&self) -> Pba {
        let end = self.mechanics.geometry().blocks().0;
        Pba(self.mechanics.head().next.0.min(end - 1))
    }

    /// When the drive is free of everything that was started.
    #[inline]
    pub fn free_at(&self) -> SimTime {
        self.free_at
    }

    /// The plan of the last request.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where the request would start if it were dispatched now; `None`: no media operation, or unknown.
    #[inline]
    pub fn locate(&self, request: &HostRequest) -> Option<Pba> {
        self.layer.locate(request)
    }

    /// The place of a block as the mechanics keep it.
    #[inline]
    pub fn target(&self, pba: Pba) -> Target {
        self.mechanics.target(pba)
    }

    /// Serves a request that arrives at `now`, after everything that was submitted before it.
    #[inline]
    pub fn submit(&mut self, now: SimTime, request: &HostRequest, observer: &mut impl Observer) -> Served {
        self.advance(now, observer);
        self.give_up(observer);
        let start = now.max(self.free_at);
        self.plan.clear();
        self.layer.submit(start, request, &mut self.plan);
        self.ends.clear();
        let mut at = start;
        for op in self.plan.ops() {
            at = run(&mut self.mechanics, op, at, false, observer);
            self.ends.push(at);
        }
        let ack = match self.plan.ack_after() {
            0 => start,
            n => self.ends[n - 1],
        };
        self.free_at = at;
        self.idle_since = at;
        let (plan, done, ends) = (&self.plan, self.ends.len(), &self.ends[..]);
        observer.executed(&Executed { plan, done, start, ends, request: Some(request) });
        Served { start, ack, end: at }
    }

    /// Serves a request without time, as prefilling does: the heads stay where they are. Its [`plan`](Self::plan) is
    /// there for who follows the data.
    pub fn instantly(&mut self, request: &HostRequest) {
        self.plan.clear();
        self.layer.submit(self.free_at, request, &mut self.plan);
    }

    /// When [`advance`](Self::advance) has something to do, if no request comes before.
    pub fn next_wake(&self) -> Option<SimTime> {
        match &self.step {
            Some(step) => Some(step.at),
            None => self.layer.background_after().map(|idle| (self.idle_since + idle).max(self.free_at)),
        }
    }

    /// Runs background work up to `now`: operations that begin before `now` are begun, and those end.
    ///
    /// Steps follow each other without a pause once the drive has been idle (of host requests) for as long as the layer
    /// asks.
    #[inline]
    pub fn advance(&mut self, now: SimTime, observer: &mut impl Observer) {
        if self.step.is_some() || self.layer.background_after().is_some() {
            self.work_in_background(now, observer);
        }
    }

    /// Does one step of the background work that is due at `now`; answers whether there was one. Only for drives that
    /// were [set up](DriveSetup::by_step) for it.
    pub fn step(&mut self, now: SimTime, observer: &mut impl Observer) -> bool {
        debug_assert!(self.by_step);
        let Some(due) = self.next_wake().filter(|due| *due < now) else { return false };
        self.begin_step(due);
        let mut at = due;
        for op in self.step_plan.ops() {
            at = run(&mut self.mechanics, op, at, true, observer);
            self.step_ends.push(at);
        }
        self.free_at = at;
        let done = self.step_ends.len();
        self.step = Some(Step { began: due, next: done, at });
        self.end_step(StepEnd::Done, observer);
        done > 0
    }

    #[cold]
    fn work_in_background(&mut self, now: SimTime, observer: &mut impl Observer) {
        while !self.by_step {
            let Some(step) = &mut self.step else {
                match self.next_wake() {
                    Some(due) if due < now => self.begin_step(due),
                    _ => return,
                }
                continue;
            };
            let ops = self.step_plan.ops();
            while step.next < ops.len() {
                if step.at >= now {
                    return;
                }
                step.at = run(&mut self.mechanics, &ops[step.next], step.at, true, observer);
                self.step_ends.push(step.at);
                self.free_at = step.at;
                step.next += 1;
            }
            let empty = ops.is_empty();
            self.end_step(StepEnd::Done, observer);
            if empty {
                return;
            }
        }
    }

    fn begin_step(&mut self, due: SimTime) {
        self.step_plan.clear();
        self.step_ends.clear();
        self.layer.background(due, &mut self.step_plan);
        self.step = Some(Step { began: due, next: 0, at: due });
    }

    /// A request is there: what has not started of a step is given up.
    #[inline]
    fn give_up(&mut self, observer: &mut impl Observer) {
        if self.step.is_some() {
            self.end_step(StepEnd::GivenUp, observer);
        }
    }

    fn end_step(&mut self, end: StepEnd, observer: &mut impl Observer) {
        let Some(step) = self.step.take() else { return };
        self.layer.background_end(end);
        let (plan, ends) = (&self.step_plan, &self.step_ends[..]);
        observer.executed(&Executed { plan, done: step.next, start: step.began, ends, request: None });
    }
}

/// Carries out one operation from `at` on; returns its end.
#[inline]
fn run(
    mechanics: &mut Mechanics,
    op: &MediaOp,
    at: SimTime,
    background: bool,
    observer: &mut impl Observer,
) -> SimTime {
    let before = mechanics.head().track.0;
    let end = mechanics.service(at, op.dir, op.pba, op.blocks);
    let tracks = Tracks { before, first: mechanics.began().0, last: mechanics.head().track.0 };
    observer.op(&OpDone { op, start: at, end, tracks, background });
    end
}
