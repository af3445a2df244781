//! A drive behind its own buffer and bus: plans are timed by the mechanics, and what the host waits for by the buffer.

use super::{Drive, Executed, Observer, OpDone, Served, Tracks, Work, on_account, passes, run};
use crate::onboard::{Counters, Medium, Onboard};
use smrlab_disk::model::ControllerSpec;
use smrlab_stl::{HostRequest, MediaOp, OpId, Pause, Plan, Step};
use smrlab_units::{Dir, HostOp, SimTime};

/// The direction of a request's data.
fn dir(op: HostOp) -> Dir {
    if op == HostOp::Read { Dir::Read } else { Dir::Write }
}

/// The operation of a plan that does nothing but move the request's blocks.
#[inline]
fn plain<'a>(plan: &'a Plan, request: &HostRequest) -> Option<&'a MediaOp> {
    let moves = matches!(request.op, HostOp::Read | HostOp::Write);
    let [op] = plan.ops() else { return None };
    let same = moves && op.dir == dir(request.op) && op.blocks == request.blocks;
    let at_once = plan.pauses().is_empty() && plan.ack_after() == 1 && plan.stated(OpId(0)).is_none();
    (same && at_once).then_some(op)
}

/// How a plan of several steps was carried out.
struct Walked {
    began: SimTime,
    /// The medium was needed.
    moved: bool,
    /// When the plan says that the host is done.
    ack: SimTime,
    end: SimTime,
    /// The last blocks that passed before that, and when.
    last: Option<(u64, u64, SimTime)>,
}

impl Drive {
    /// The same drive behind a buffer and a bus.
    #[must_use]
    pub fn behind(mut self, spec: Option<ControllerSpec>) -> Self {
        self.onboard = spec.map(|spec| Box::new(Onboard::new(spec)));
        self
    }

    /// Buffer and bus, where there are any.
    pub fn onboard(&self) -> Option<&Onboard> {
        self.onboard.as_deref()
    }

    /// The same, for who puts a queue before it.
    pub(crate) fn onboard_mut(&mut self) -> Option<&mut Onboard> {
        self.onboard.as_deref_mut()
    }

    /// What the buffer has done so far.
    pub fn buffer_counters(&self) -> Option<Counters> {
        self.onboard.as_ref().map(|b| b.counters())
    }

    /// How long the blocks of a request need to pass the head where they are now, or begin: at the rate of that track.
    pub fn passing(&self, request: &HostRequest) -> SimTime {
        let at = self.layer.locate(request).map_or(self.head(), |place| place.0);
        SimTime(Medium::track(&self.mechanics, at.0).block.0 * request.blocks.0)
    }

    /// The medium is needed at `at` for other work: reading ahead ends.
    pub(super) fn interfere(&mut self, at: SimTime) {
        if let Some(b) = &mut self.onboard {
            b.stop(at, &mut self.mechanics);
        }
    }

    /// Notes how far reading ahead has come at `now`, when a scheduler looks where the head is.
    pub(crate) fn look(&mut self, now: SimTime) {
        if let Some(b) = &mut self.onboard {
            b.choose(now, &mut self.mechanics);
        }
    }

    /// Whether the buffer has everything that a read asks for.
    pub(crate) fn holds(&mut self, now: SimTime, request: &HostRequest) -> bool {
        let place = self.layer.locate(request);
        let Some(b) = &mut self.onboard else { return false };
        b.note(now, &mut self.mechanics);
        place.is_some_and(|(pba, dir)| dir == Dir::Read && b.holds(pba.0, request.blocks.0))
    }

    /// Takes a write into the buffer at `now`.
    pub(crate) fn accept(&mut self, now: SimTime, request: &HostRequest) -> Served {
        let Some(b) = &mut self.onboard else { return Served { start: now, ack: now, end: now } };
        let (start, ack) = b.accept(now, request.blocks.0, &mut self.mechanics);
        Served { start, ack, end: ack }
    }

    /// Answers a read at `now` from what waits in the buffer to be written.
    pub(crate) fn answer(&mut self, now: SimTime, request: &HostRequest) -> Served {
        let Some(b) = &mut self.onboard else { return Served { start: now, ack: now, end: now } };
        let (start, ack) = b.answer(now, request.blocks.0, &mut self.mechanics);
        Served { start, ack, end: ack }
    }

    pub(super) fn dispatch_buffered(
        &mut self,
        mut b: Box<Onboard>,
        now: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Executed<'_> {
        b.engaged(self.free_at);
        let start = b.begin(now);
        self.serve(b, start, start, request, watch)
    }

    /// Serves at `now` a request that waited in the queue since `placed`; [`look`](Self::look) was called.
    pub(crate) fn dispatch_queued(
        &mut self,
        now: SimTime,
        placed: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Executed<'_> {
        let Some(mut b) = self.onboard.take() else { return self.dispatch(now, request, watch) };
        b.engaged(self.free_at);
        self.serve(b, now, placed, request, watch)
    }

    /// Plans at `now` and serves a request whose overhead begins at `start`.
    #[inline(always)]
    fn serve(
        &mut self,
        mut b: Box<Onboard>,
        now: SimTime,
        start: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Executed<'_> {
        self.plan.clear();
        self.ends.clear();
        self.layer.submit(now, request, &mut self.plan);
        let writes = matches!(request.op, HostOp::Write | HostOp::Append);
        let taken = writes && b.takes(request.blocks.0, request.fua) && !self.plan.ops().is_empty();
        let (mut began, mut end) = (start, start);
        let ack = if let Some(&op) = plain(&self.plan, request) {
            let kind = (op.dir, request.fua);
            let ack = b.command(start, kind, op.pba.0, op.blocks.0, &mut self.mechanics);
            if b.has_passed()
                && let Some(shown) = self.show(&mut b, &op, request, watch)
            {
                (began, end) = shown;
            }
            self.ends.push(end);
            ack
        } else {
            b.catch_up(&mut self.mechanics);
            let (walked, ack) = self.several(&mut b, start, (request, taken), watch);
            (began, end) = (walked.began, walked.end);
            ack
        };
        self.finish(b, began, Served { start, ack, end: end.max(ack) }, taken)
    }

    /// Writes at `now` what the buffer took before, as `accepted` says.
    pub(crate) fn destage(
        &mut self,
        now: SimTime,
        accepted: Served,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Executed<'_> {
        let Some(mut b) = self.onboard.take() else { return self.dispatch(now, request, watch) };
        b.engaged(self.free_at);
        self.plan.clear();
        self.ends.clear();
        self.layer.submit(now, request, &mut self.plan);
        let (mut began, mut end) = (now, now);
        if let Some(&op) = plain(&self.plan, request) {
            b.destage(now, accepted.ack, (op.pba.0, op.blocks.0), &mut self.mechanics);
            if let Some(shown) = self.show(&mut b, &op, request, watch) {
                (began, end) = shown;
            }
            self.ends.push(end);
        } else {
            let walked = self.walk(&mut b, now, accepted.ack, request, watch);
            (began, end) = (walked.began, walked.end);
        }
        self.finish(b, began, Served { end, ..accepted }, true)
    }

    #[inline(always)]
    fn finish(&mut self, b: Box<Onboard>, began: SimTime, served: Served, buffered: bool) -> Executed<'_> {
        self.free_at = b.free_at();
        self.idle_since = self.free_at.max(served.ack);
        self.onboard = Some(b);
        let (plan, ends, done) = (&self.plan, &*self.ends, self.ends.len());
        Executed { plan, done, served, began, ends, whole: true, buffered }
    }

    /// Tells the observer what passed the head for a command; from when until when.
    fn show(
        &mut self,
        b: &mut Onboard,
        op: &MediaOp,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Option<(SimTime, SimTime)> {
        let passed = b.take_passed()?;
        let op = MediaOp {
            pba: smrlab_units::Pba(passed.lba),
            blocks: smrlab_units::Blocks(passed.blocks),
            ..*op
        };
        let (began, (before, cylinder)) = (*self.mechanics.began(), passed.before);
        let tracks = Tracks {
            before,
            first: began.track().0,
            last: self.mechanics.head().track.0,
            cylinders: began.cylinder().abs_diff(cylinder),
        };
        let cause = on_account(&op, request);
        let (start, end) = (passed.start, passed.end);
        let done = OpDone { op: &op, cause, start, end, tracks, background: false };
        watch.op(&done);
        watch.moved(&done, &self.mechanics);
        Some((start, end))
    }

    /// Serves a request whose plan is more, or less, than one operation, and which the buffer may have `taken`; answers when it
    /// completes, too.
    fn several(
        &mut self,
        b: &mut Onboard,
        start: SimTime,
        (request, taken): (&HostRequest, bool),
        watch: &mut impl Observer,
    ) -> (Walked, SimTime) {
        let kind = dir(request.op);
        let bus = b.bus(kind, request.blocks.0);
        match request.op {
            HostOp::Read => {
                let ops = self.plan.ops();
                let held = ops.iter().filter(|op| b.holds(op.pba.0, op.blocks.0)).count();
                let over = b.several_read(start, (held, ops.len()));
                let walked = self.walk(b, over, over, request, watch);
                let last = walked.last.filter(|l| l.2 == walked.ack);
                let drained =
                    last.map_or(walked.ack, |(lba, n, at)| b.drained(n, lba + n, at, &self.mechanics));
                let ack = b.answered(kind, drained.max(over + bus), walked.moved);
                (walked, ack)
            }
            HostOp::Write | HostOp::Append if taken => {
                let over = b.take_several(start, request.blocks.0);
                let walked = self.walk(b, over, over + bus, request, watch);
                b.took_several(walked.ack, request.blocks.0);
                (walked, b.answered(kind, over + bus, false))
            }
            HostOp::Write | HostOp::Append => {
                let over = b.several_through(start);
                let walked = self.walk(b, over, over + bus, request, watch);
                let ack = walked.ack.max(over + bus);
                let moved = walked.moved;
                (walked, b.answered(kind, ack, moved))
            }
            HostOp::Flush => {
                let walked = self.walk(b, start.max(b.free_at()), start, request, watch);
                let ack = walked.ack;
                let moved = walked.moved;
                (walked, b.answered(kind, ack, moved))
            }
            HostOp::Discard | HostOp::Zone(_) => {
                let walked = self.walk(b, start, start, request, watch);
                let ack = walked.ack;
                let moved = walked.moved;
                (walked, b.answered(kind, ack, moved))
            }
        }
    }

    /// Carries out a plan from `at` on; nothing of the request is written before `data`.
    fn walk(
        &mut self,
        b: &mut Onboard,
        at: SimTime,
        data: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Walked {
        let mut w = Walked { began: at, moved: false, ack: at, end: at, last: None };
        let last_op = self.plan.ops().len();
        let reads = request.op == HostOp::Read;
        for step in self.plan.walk() {
            match step {
                Step::Op(id, op) => {
                    let held = reads && op.dir == Dir::Read && b.holds(op.pba.0, op.blocks.0);
                    if !held {
                        if !w.moved {
                            w.end = b.stop(w.end, &mut self.mechanics).max(b.free_at());
                            w.began = w.end;
                            w.moved = true;
                        }
                        let stated = self.plan.stated(id);
                        // A stated time was measured with the bus in it.
                        if op.dir == Dir::Write && stated.is_none() {
                            w.end = w.end.max(data);
                        }
                        let cause = on_account(op, request);
                        let work = Work { op, stated, cause, background: false };
                        w.end = run(&mut self.mechanics, work, w.end, watch);
                        if op.dir == Dir::Write {
                            w.end = w.end.max(data);
                        }
                        b.carried_out(op);
                        if reads && op.dir == Dir::Read {
                            let last = id.0 as usize + 1 == last_op;
                            b.was_read(op.pba.0, op.blocks.0, w.end, last, &self.mechanics);
                            w.last = Some((op.pba.0, op.blocks.0, w.end));
                        }
                    }
                    self.ends.push(w.end);
                }
                Step::Acknowledge => w.ack = w.end,
                Step::Pause(pause) => {
                    let pause = Pause { time: passes(&self.mechanics, pause.time), ..pause };
                    if !w.moved {
                        w.end = b.stop(w.end, &mut self.mechanics).max(b.free_at());
                        w.began = w.end;
                        w.moved = true;
                    }
                    watch.paused(&pause, w.end, false);
                    w.end += pause.time;
                }
                Step::Record(_) | Step::Fence => {}
            }
        }
        if w.moved {
            b.engaged(w.end);
        }
        w
    }
}
