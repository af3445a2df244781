//! A drive behind its own buffer and bus: plans are timed by the mechanics, and what the host waits for by the buffer.
//!
//! A request is served by [`Behind`], which has the drive's parts side by side; what it answers is written back to the drive in one place,
//! [`Drive::finish`].

use super::{Drive, Served, TimedPlan, Work, on_account, passes, run};
use crate::buffer::{Counters, DriveBuffer, Track};
use crate::{MemberId, Observer, OpDone, Tracks};
use smrlab_disk::Mechanics;
use smrlab_disk::model::ControllerSpec;
use smrlab_stl::{HostRequest, MediaOp, OpId, Pause, Plan, Step, TranslationLayer};
use smrlab_units::{Blocks, Dir, HostOp, Pba, SimTime};

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

/// How a request was served.
pub(super) struct Done {
    /// When the medium began with its plan.
    began: SimTime,
    served: Served,
    /// The buffer took it: the host did not wait for the plan.
    buffered: bool,
}

/// The parts of a drive with which a request is served.
pub(super) struct Behind<'a> {
    member: MemberId,
    layer: &'a mut dyn TranslationLayer,
    buffer: &'a mut DriveBuffer,
    mechanics: &'a mut Mechanics,
    plan: &'a mut Plan,
    ends: &'a mut Vec<SimTime>,
}

impl Drive {
    /// The same drive behind a buffer and a bus.
    #[must_use]
    pub fn behind(mut self, spec: Option<ControllerSpec>) -> Self {
        self.buffer = spec.map(|spec| Box::new(DriveBuffer::new(spec)));
        self
    }

    /// Buffer and bus, where there are any.
    pub fn buffer(&self) -> Option<&DriveBuffer> {
        self.buffer.as_deref()
    }

    /// The same, for who puts a queue before it.
    pub(crate) fn buffer_mut(&mut self) -> Option<&mut DriveBuffer> {
        self.buffer.as_deref_mut()
    }

    /// What the buffer has done so far.
    pub fn buffer_counters(&self) -> Option<Counters> {
        self.buffer.as_ref().map(|b| b.counters())
    }

    /// How long the blocks of a request need to pass the head where they are now, or begin: at the rate of that track.
    pub fn passing(&self, request: &HostRequest) -> SimTime {
        let at = self.layer.locate(request).map_or(self.head(), |place| place.0);
        SimTime(Track::of(&self.mechanics, at.0).block.0 * request.blocks.0)
    }

    /// The medium is needed at `at` for other work: reading ahead ends.
    pub(super) fn interfere(&mut self, at: SimTime) {
        if let Some(b) = &mut self.buffer {
            b.stop(at, &mut self.mechanics);
        }
    }

    /// Notes how far reading ahead has come at `now`, when a scheduler looks where the head is.
    pub(crate) fn look(&mut self, now: SimTime) {
        if let Some(b) = &mut self.buffer {
            b.choose(now, &mut self.mechanics);
        }
    }

    /// Whether the buffer has everything that a read asks for.
    pub(crate) fn holds(&mut self, now: SimTime, request: &HostRequest) -> bool {
        let place = self.layer.locate(request);
        let Some(b) = &mut self.buffer else { return false };
        b.note(now, &mut self.mechanics);
        place.is_some_and(|(pba, dir)| dir == Dir::Read && b.holds(pba.0, request.blocks.0))
    }

    /// Whether a request begins where the last read of the buffer ended, as reads in order do: then [`again`](Self::again) is worth a try.
    #[inline(always)]
    pub(crate) fn goes_on(&self, request: &HostRequest) -> bool {
        self.reads_in_place && self.buffer.as_ref().is_some_and(|b| b.ended_at(request.lba.0))
    }

    /// Serves a read at `now` that the buffer answers as [`DriveBuffer::again`] says, without a plan: it would be one operation, which
    /// is not done. `None`: nothing was done, [`dispatch`](Self::dispatch) is to serve it.
    #[inline]
    pub(crate) fn again(&mut self, now: SimTime, request: &HostRequest) -> Option<Served> {
        let b = self.buffer.as_deref_mut()?;
        if request.op != HostOp::Read || request.blocks == Blocks::ZERO {
            return None;
        }
        let (start, ack) = b.again(now, request.lba.0, request.blocks.0)?;
        b.engaged(self.free_at);
        self.free_at = b.free_at();
        self.idle_since = self.free_at.max(ack);
        Some(Served { start, ack, end: start.max(ack) })
    }

    /// Serves reads that come at `times` as [`DriveBuffer::again_and_again`] says, each as [`again`](Self::again) would: how many, and how
    /// long each took.
    pub(crate) fn again_and_again(
        &mut self,
        times: &[SimTime],
        requests: &[HostRequest],
    ) -> Option<(usize, SimTime)> {
        let b = self.buffer.as_deref_mut()?;
        let (n, took) = b.again_and_again(times, requests)?;
        b.engaged(self.free_at);
        self.free_at = b.free_at();
        self.idle_since = self.free_at.max(times[n - 1] + took);
        Some((n, took))
    }

    /// Takes a write into the buffer at `now`.
    pub(crate) fn accept(&mut self, now: SimTime, request: &HostRequest) -> Served {
        let Some(b) = &mut self.buffer else { return Served { start: now, ack: now, end: now } };
        let (start, ack) = b.accept(now, request.blocks.0, &mut self.mechanics);
        Served { start, ack, end: ack }
    }

    /// Answers a read at `now` from what waits in the buffer to be written.
    pub(crate) fn answer(&mut self, now: SimTime, request: &HostRequest) -> Served {
        let Some(b) = &mut self.buffer else { return Served { start: now, ack: now, end: now } };
        let (start, ack) = b.answer(now, request.blocks.0, &mut self.mechanics);
        Served { start, ack, end: ack }
    }

    /// When a request that is refused at `now` begins, and when it is answered.
    pub(super) fn refusing(&mut self, now: SimTime, request: &HostRequest) -> (SimTime, SimTime) {
        match &mut self.buffer {
            Some(b) => {
                let start = b.begin(now);
                (start, b.refuse(start, dir(request.op), &mut self.mechanics))
            }
            None => (now, now),
        }
    }

    /// The parts that serve a request, where there is a buffer: its medium is busy with what was started before.
    #[inline(always)]
    pub(super) fn parts(&mut self) -> Option<Behind<'_>> {
        let buffer = self.buffer.as_deref_mut()?;
        buffer.engaged(self.free_at);
        let (member, layer, mechanics) = (self.member, &mut *self.layer, &mut self.mechanics);
        Some(Behind { member, layer, buffer, mechanics, plan: &mut self.plan, ends: &mut self.ends })
    }

    /// Serves at `now` a request that waited in the queue since `placed`; [`look`](Self::look) was called.
    pub(crate) fn dispatch_queued(
        &mut self,
        now: SimTime,
        placed: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> TimedPlan<'_> {
        let Some(mut behind) = self.parts() else { return self.dispatch(now, request, watch) };
        let done = behind.serve(now, placed, request, watch);
        self.finish(done)
    }

    /// Writes at `now` what the buffer took before, as `accepted` says.
    pub(crate) fn destage(
        &mut self,
        now: SimTime,
        accepted: Served,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> TimedPlan<'_> {
        let Some(mut behind) = self.parts() else { return self.dispatch(now, request, watch) };
        let done = behind.destage(now, accepted, request, watch);
        self.finish(done)
    }

    /// A request was served: when the drive is free, and idle.
    #[inline(always)]
    pub(super) fn finish(&mut self, Done { began, served, buffered }: Done) -> TimedPlan<'_> {
        self.free_at = self.buffer.as_ref().map_or(served.end, |b| b.free_at());
        self.idle_since = self.free_at.max(served.ack);
        let (plan, ends, done) = (&self.plan, &*self.ends, self.ends.len());
        TimedPlan { member: self.member, plan, done, served, began, ends, whole: true, buffered }
    }
}

/// How a plan of several steps, or of none, was carried out.
struct Walked {
    began: SimTime,
    /// The medium was needed.
    moved: bool,
    /// When the plan says that the host is done.
    ack: SimTime,
    end: SimTime,
    /// The last blocks that a read had from the medium: where they end, how many, and when they had passed.
    last: Option<(u64, u64, SimTime)>,
}

impl Behind<'_> {
    /// Serves a request that comes at `now`.
    #[inline(always)]
    pub(super) fn dispatch(
        &mut self,
        now: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Done {
        let start = self.buffer.begin(now);
        self.serve(start, start, request, watch)
    }

    /// Has the layer plan a request at `now`.
    #[inline(always)]
    fn plan(&mut self, now: SimTime, request: &HostRequest) {
        self.plan.clear();
        self.ends.clear();
        self.layer.submit(now, request, self.plan);
    }

    /// Plans at `now` and serves a request whose overhead begins at `start`.
    #[inline(always)]
    fn serve(
        &mut self,
        now: SimTime,
        start: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Done {
        self.plan(now, request);
        if self.plan.refusal().is_some() {
            let ack = self.buffer.refuse(start, dir(request.op), self.mechanics);
            return Done { began: start, served: Served { start, ack, end: ack }, buffered: false };
        }
        let writes = matches!(request.op, HostOp::Write | HostOp::Append);
        let buffered =
            writes && self.buffer.takes(request.blocks.0, request.fua) && !self.plan.ops().is_empty();
        let Some(&op) = plain(self.plan, request) else {
            self.buffer.catch_up(self.mechanics);
            let (walked, ack) = self.several(start, request, buffered, watch);
            let served = Served { start, ack, end: walked.end.max(ack) };
            return Done { began: walked.began, served, buffered };
        };
        let kind = (op.dir, request.fua);
        let ack = self.buffer.command(start, kind, op.pba.0, op.blocks.0, self.mechanics);
        let (began, end) = self.show(&op, request, watch).unwrap_or((start, start));
        self.ends.push(end);
        Done { began, served: Served { start, ack, end: end.max(ack) }, buffered }
    }

    fn destage(
        &mut self,
        now: SimTime,
        accepted: Served,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Done {
        self.plan(now, request);
        let (began, end) = if let Some(&op) = plain(self.plan, request) {
            self.buffer.destage(now, accepted.ack, (op.pba.0, op.blocks.0), self.mechanics);
            let shown = self.show(&op, request, watch).unwrap_or((now, now));
            self.ends.push(shown.1);
            shown
        } else {
            let walked = self.walk(now, accepted.ack, request, watch);
            (walked.began, walked.end)
        };
        Done { began, served: Served { end, ..accepted }, buffered: true }
    }

    /// Tells the observer what passed the head for a command; from when until when. `None`: nothing did.
    #[inline(always)]
    fn show(
        &self,
        op: &MediaOp,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Option<(SimTime, SimTime)> {
        let passed = self.buffer.passed()?;
        let op = MediaOp { pba: Pba(passed.lba), blocks: Blocks(passed.blocks), ..*op };
        let ((first, began), (before, cylinder)) = (self.mechanics.began(), passed.before);
        let tracks = Tracks {
            before,
            first: first.0,
            last: self.mechanics.head().track.0,
            cylinders: began.abs_diff(cylinder),
        };
        let cause = on_account(&op, request);
        let (start, end) = (passed.start, passed.end);
        let (member, request, timed) = (self.member, Some(request.id), Some(&*self.mechanics));
        watch.op(&OpDone { member, request, op: &op, cause, start, end, tracks, timed });
        Some((start, end))
    }

    /// Serves a request whose plan is more, or less, than one operation; `buffered`: the buffer takes it. Answers also when it
    /// completes.
    #[inline(never)]
    fn several(
        &mut self,
        start: SimTime,
        request: &HostRequest,
        buffered: bool,
        watch: &mut impl Observer,
    ) -> (Walked, SimTime) {
        let kind = dir(request.op);
        let blocks = request.blocks.0;
        let bus = self.buffer.bus(kind, blocks);
        let (walked, done, medium) = match request.op {
            HostOp::Read => {
                let over = self.read_over(start);
                let walked = self.walk(over, over, request, watch);
                let done = self.drained(&walked).max(over + bus);
                let moved = walked.moved;
                (walked, done, moved)
            }
            HostOp::Write | HostOp::Append if buffered => {
                let over = self.buffer.take_several(start, blocks);
                let walked = self.walk(over, over + bus, request, watch);
                self.buffer.took_several(walked.ack, blocks);
                (walked, over + bus, false)
            }
            HostOp::Write | HostOp::Append => {
                let over = self.buffer.several_through(start);
                let walked = self.walk(over, over + bus, request, watch);
                let (done, moved) = (walked.ack.max(over + bus), walked.moved);
                (walked, done, moved)
            }
            HostOp::Flush | HostOp::Discard | HostOp::Zone(_) => {
                let waits = request.op == HostOp::Flush;
                // Not before a scheduler chose it: what came before it to the same zone is done then.
                let start = self.buffer.chosen(start);
                let from = if waits { start.max(self.buffer.free_at()) } else { start };
                let walked = self.walk(from, start, request, watch);
                let (done, moved) = (walked.ack, walked.moved);
                (walked, done, moved)
            }
        };
        let ack = self.buffer.answered(kind, done, medium);
        (walked, ack)
    }

    /// When the overhead of a planned read is over: that of a hit where the buffer has all of its operations.
    fn read_over(&mut self, start: SimTime) -> SimTime {
        let ops = self.plan.ops();
        let held = ops.iter().filter(|op| self.buffer.holds(op.pba.0, op.blocks.0)).count();
        self.buffer.several_read(start, held, ops.len())
    }

    /// When what a read had from the medium has gone over the bus, where it waited for that.
    fn drained(&mut self, walked: &Walked) -> SimTime {
        match walked.last.filter(|last| last.2 == walked.ack) {
            Some((end, blocks, at)) => self.buffer.drained(blocks, end, at, self.mechanics),
            None => walked.ack,
        }
    }

    /// Carries out the plan from `at` on; nothing of the request is written before `data`.
    fn walk(
        &mut self,
        at: SimTime,
        data: SimTime,
        request: &HostRequest,
        watch: &mut impl Observer,
    ) -> Walked {
        let mut w = Walked { began: at, moved: false, ack: at, end: at, last: None };
        let member = self.member;
        let Self { buffer, mechanics, plan, ends, .. } = self;
        let mut rest = plan.ops().len();
        for step in plan.walk() {
            match step {
                Step::Op(id, op) => {
                    rest -= 1;
                    let reads = request.op == HostOp::Read && op.dir == Dir::Read;
                    if !(reads && buffer.holds(op.pba.0, op.blocks.0)) {
                        w.needs_medium(buffer, mechanics);
                        let stated = plan.stated(id);
                        // A stated time was measured with the bus in it.
                        if op.dir == Dir::Write && stated.is_none() {
                            w.end = w.end.max(data);
                        }
                        let work = Work { op, stated, of: (member, Some(request)) };
                        w.end = run(mechanics, work, w.end, watch);
                        if op.dir == Dir::Write {
                            w.end = w.end.max(data);
                        }
                        buffer.carried_out(op);
                        if reads {
                            buffer.was_read(op.pba.0, op.blocks.0, w.end, rest == 0, mechanics);
                            w.last = Some(((op.pba + op.blocks).0, op.blocks.0, w.end));
                        }
                    }
                    ends.push(w.end);
                }
                Step::Acknowledge => w.ack = w.end,
                Step::Pause(pause) => {
                    let pause = Pause { time: passes(mechanics, pause.time), ..pause };
                    w.needs_medium(buffer, mechanics);
                    watch.paused(member, Some(request.id), &pause, w.end);
                    w.end += pause.time;
                }
                Step::Record(_) | Step::Fence => {}
            }
        }
        if w.moved {
            buffer.engaged(w.end);
        }
        w
    }
}

impl Walked {
    /// From now on the medium is needed: it has to be free for the first time.
    fn needs_medium(&mut self, buffer: &mut DriveBuffer, mechanics: &mut Mechanics) {
        if !self.moved {
            self.end = buffer.stop(self.end, mechanics).max(buffer.free_at());
            self.began = self.end;
            self.moved = true;
        }
    }
}
