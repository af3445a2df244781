//! What stands between a host and a drive: the queue, and who is served next.
//!
//! The caller's time says what is known: at `wake(now)` all requests that come up to `now` have been submitted. Decisions
//! are made at times of their own (when the drive is free and a request waits), so waking late never changes one, only
//! when the caller hears of it.
//!
//! Where the drive has a buffer, what can be answered from it does not wait; writes that it took wait among the requests of
//! the host until the scheduler has them written.

use crate::buffer::DriveBuffer;
use crate::sched::{Chosen, Policy, View};
use crate::waiting::{Came, Concern, WaitingList, affected};
use crate::{Buffered, Drive, Observer, Row, Served};
use smrlab_stl::HostRequest;
use smrlab_units::{HostOp, SimTime};

/// Shows the layer where that is wanted.
#[inline]
fn show<O: Observer>(drive: &Drive, at: SimTime, watch: &mut O) {
    if watch.looks(drive.member(), at) {
        watch.looked(drive.member(), at, &drive.layer().facts());
    }
}

/// See the [module](self).
pub struct ScheduledDrive {
    drive: Drive,
    /// `None`: first come, first served; nothing waits then, because no later request changes when a request is served.
    policy: Option<Box<dyn Policy>>,
    depth: usize,
    max_wait: Option<SimTime>,
    waiting: WaitingList,
    /// Of those that wait: accepted writes and their blocks.
    accepted: (usize, u64),
    /// What left them last, and until when it is being written.
    leaving: (SimTime, u64),
    /// Background work only by [`step`](ScheduledDrive::step).
    by_step: bool,
    /// The last request was a read that the drive's buffer answered without a plan.
    goes_on: bool,
}

impl ScheduledDrive {
    /// A drive behind a queue.
    pub fn new(mut drive: Drive, chosen: &Chosen) -> Self {
        let policy = chosen.entry.build.map(|build| build());
        if let Some(buffer) = drive.buffer_mut().filter(|_| policy.is_some()) {
            buffer.behind_queue();
        }
        Self { policy, depth: chosen.depth, max_wait: chosen.max_wait, ..Self::first_come(drive) }
    }

    /// A drive without a scheduler: first come, first served.
    pub fn first_come(drive: Drive) -> Self {
        let (waiting, accepted, leaving) = Default::default();
        let (by_step, goes_on) = (false, false);
        Self { drive, policy: None, depth: 1, max_wait: None, waiting, accepted, leaving, by_step, goes_on }
    }

    /// Background work is done only where the caller asks for a [`step`](Self::step): for callers without time, to whom all
    /// of it would be due at once.
    pub fn background_by_step(&mut self) {
        self.by_step = true;
    }

    /// Whether requests may be served in another order than that in which they come.
    pub fn reorders(&self) -> bool {
        self.policy.is_some()
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// The drive, for recovery and prefill before the first request.
    pub fn drive_mut(&mut self) -> &mut Drive {
        &mut self.drive
    }

    /// The drive without what waits for it, as after a loss of power.
    pub fn into_drive(mut self) -> Drive {
        self.drive.layer_mut().power_lost();
        self.drive
    }

    /// Requests of the host that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len() - self.accepted.0
    }

    /// Whether another request may be submitted: the queue has its depth.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.waiting() < self.depth
    }

    /// A request comes at `now`. First come, first served: it is dispatched at once, to start when the drive is free, and
    /// its times are answered. Behind a scheduler they are answered where the drive's buffer does the request.
    ///
    /// # Errors
    /// Those of `watch`.
    #[inline]
    pub fn submit<O: Observer>(
        &mut self,
        now: SimTime,
        request: &HostRequest,
        watch: &mut O,
    ) -> Result<Option<Served>, O::Error> {
        self.submit_waited(now, (now, request), watch)
    }

    /// The same for a request that came when the queue was full, and has a place in it since `now`: nothing is done with it
    /// before.
    ///
    /// # Errors
    /// Those of `watch`.
    #[inline]
    pub fn submit_waited<O: Observer>(
        &mut self,
        now: SimTime,
        (came, request): (SimTime, &HostRequest),
        watch: &mut O,
    ) -> Result<Option<Served>, O::Error> {
        if self.policy.is_none() {
            self.catch_up(now, watch)?;
            if !O::PLANS
                && self.drive.goes_on(request)
                && let Some(served) = self.again(now, (came, request), watch)?
            {
                return Ok(Some(served));
            }
            return self.dispatch(now, (came, request), How::AtOnce, watch).map(Some);
        }
        self.decide(now, false, watch)?;
        self.catch_up(now, watch)?;
        let order = match self.drive.admit(request) {
            Ok(order) => order,
            Err(refused) => {
                let executed = self.drive.refuse(now, request, refused);
                let served = executed.served;
                return watch.dispatched(came, request, &executed).map(|()| Some(served));
            }
        };
        let came = Came { at: came, placed: now, order };
        if self.drive.buffer().is_some()
            && let Some(served) = self.at_once(&came, request, watch)?
        {
            return Ok(Some(served));
        }
        self.waiting.admit(&came, *request, None, &self.drive);
        Ok(None)
    }

    /// Serves a read that goes on with the one before where the buffer answers it without a plan; `None`: nothing was done.
    // A call, so that what comes in any order has nothing of it in its way.
    #[inline(never)]
    fn again<O: Observer>(
        &mut self,
        now: SimTime,
        (came, request): (SimTime, &HostRequest),
        watch: &mut O,
    ) -> Result<Option<Served>, O::Error> {
        let Some(served) = self.drive.again(now, request) else { return Ok(None) };
        self.goes_on = true;
        watch.held(came, request, &served)?;
        show(&self.drive, served.end, watch);
        Ok(Some(served))
    }

    /// Whether [`submit_in_order`](Self::submit_in_order) is worth a try: the request before was answered as it would answer them.
    #[inline(always)]
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Serves the first ones of requests that come at `times`, which do not fall, where the drive's buffer answers them without a plan and each
    /// before the next one comes: how many, and when the last one was acknowledged. `watch` is told of their arrival too. All that came before must
    /// have been acknowledged by the time of the first one. `None`: nothing was done.
    ///
    /// # Errors
    /// Those of `watch`.
    #[inline(never)]
    pub fn submit_in_order<O: Observer>(
        &mut self,
        times: &[SimTime],
        requests: &[HostRequest],
        watch: &mut O,
    ) -> Result<Option<(usize, SimTime)>, O::Error> {
        // Nothing is looked at or done in between: after the last of them it would be, if at all.
        let watched = |drive: &Drive| times.last().is_some_and(|last| watch.looks(drive.member(), *last));
        let goes_on = requests.first().is_some_and(|r| self.policy.is_none() && self.drive.goes_on(r));
        if O::PLANS || !goes_on || !(self.by_step || self.drive.idles()) || watched(&self.drive) {
            return Ok(None);
        }
        let Some((n, took)) = self.drive.again_and_again(times, requests) else { return Ok(None) };
        let row = Row { came: &times[..n], requests: &requests[..n], took };
        watch.held_in_order(&row)?;
        let ack = times[n - 1] + took;
        show(&self.drive, ack, watch);
        Ok(Some((n, ack)))
    }

    /// Does with the buffer what it can do without the medium.
    fn at_once<O: Observer>(
        &mut self,
        place: &Came,
        request: &HostRequest,
        watch: &mut O,
    ) -> Result<Option<Served>, O::Error> {
        let (now, came) = (place.placed, place.at);
        match request.op {
            HostOp::Write if self.takes(now, request) => {
                let served = self.drive.accept(now, request);
                self.waiting.admit(place, *request, Some(served), &self.drive);
                self.accepted.0 += 1;
                self.accepted.1 += request.blocks.0;
                watch.accepted(&self.buffered(came, request, served)).map(|()| Some(served))
            }
            HostOp::Read => {
                let held = self.drive.holds(now, request);
                if !held && self.accepted.0 == 0 {
                    return Ok(None);
                }
                match self.waiting.concerns(request) {
                    Concern::Whole(write) => {
                        let served = self.drive.answer(now, request);
                        watch.answered(&self.buffered(came, request, served), &write).map(|()| Some(served))
                    }
                    Concern::Nothing if held => {
                        let served = self.dispatch(now, (came, request), How::AtOnce, watch)?;
                        self.look_behind(request);
                        Ok(Some(served))
                    }
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn buffered<'a>(&self, came: SimTime, request: &'a HostRequest, served: Served) -> Buffered<'a> {
        Buffered { member: self.drive.member(), came, request, served }
    }

    /// Whether the buffer takes a write now.
    fn takes(&self, now: SimTime, request: &HostRequest) -> bool {
        let Some(b) = self.drive.buffer() else { return false };
        b.takes(request.blocks.0, request.fua)
            && self.write_room(now, b).is_some_and(|n| request.blocks.0 <= n)
    }

    /// How many blocks of another write have room in the buffer; `None`: there is no room for one.
    fn write_room(&self, now: SimTime, b: &DriveBuffer) -> Option<u64> {
        let (most, blocks) = b.write_room();
        let leaving = if self.leaving.0 > now { self.leaving.1 } else { 0 };
        let room = self.accepted.0 + usize::from(leaving > 0) < most;
        room.then(|| blocks.saturating_sub(self.accepted.1 + leaving))
    }

    /// Makes all decisions, and takes all background steps, that are due at `now`.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn wake<O: Observer>(&mut self, now: SimTime, watch: &mut O) -> Result<(), O::Error> {
        self.decide(now, true, watch)?;
        if self.waiting.is_empty() { self.catch_up(now, watch) } else { Ok(()) }
    }

    /// When [`wake`](Self::wake) has something to do, if no request comes before.
    pub fn next_wake(&self) -> Option<SimTime> {
        self.next_decision().or_else(|| self.drive.next_wake())
    }

    /// When it will be decided who is next, if a request waits.
    #[inline]
    pub fn next_decision(&self) -> Option<SimTime> {
        self.waiting.oldest().map(|came| came.max(self.drive.free_at()))
    }

    /// Makes the decision that is due at `now`; what was served. `None`: background work that began before holds the
    /// drive for longer, or what was chosen had been acknowledged before.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn decide_once<O: Observer>(
        &mut self,
        now: SimTime,
        watch: &mut O,
    ) -> Result<Option<Served>, O::Error> {
        self.catch_up(now, watch)?;
        if self.drive.free_at() > now {
            return Ok(None);
        }
        if self.waiting() > 0
            && let Some(served) = self.accept_waiting(now, watch)?
        {
            return Ok(Some(served));
        }
        self.choose(now, watch)
    }

    /// Makes all decisions that are left, as if nothing came any more.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn drain<O: Observer>(&mut self, watch: &mut O) -> Result<(), O::Error> {
        while let Some(at) = self.next_decision() {
            self.decide_once(at, watch)?;
        }
        Ok(())
    }

    /// Makes decisions until nothing that the drive's buffer took is unwritten.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn write_back<O: Observer>(&mut self, watch: &mut O) -> Result<(), O::Error> {
        while self.accepted.0 > 0
            && let Some(at) = self.next_decision()
        {
            self.decide_once(at, watch)?;
        }
        Ok(())
    }

    /// Does one step of the background work that is due at `now`; answers whether there was one.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn step<O: Observer>(&mut self, now: SimTime, watch: &mut O) -> Result<bool, O::Error> {
        let due = !self.waiting.is_empty() && self.drive.next_wake().is_some_and(|at| at < now);
        let Some(step) = self.drive.next_step(now, watch) else {
            // One that found nothing to do may have ended all the same.
            self.look_again(due);
            return Ok(false);
        };
        // With one that only records something what is due ends, as with one that finds nothing to do.
        let works = !step.plan.ops().is_empty() || !step.plan.pauses().is_empty();
        let end = step.served.end;
        watch.background(&step)?;
        if works {
            show(&self.drive, end, watch);
        }
        self.look_again(due);
        Ok(works)
    }

    /// What waits may start elsewhere behind a request that was carried out.
    fn look_behind(&mut self, request: &HostRequest) {
        if !self.waiting.is_empty() && !self.drive.stable_locations() {
            self.waiting.relocate(&self.drive, affected(&self.drive, request));
        }
    }

    /// What waits may start elsewhere where it came in a pause of background work that went on.
    fn look_again(&mut self, went_on: bool) {
        if went_on && !self.drive.stable_locations() {
            self.waiting.relocate(&self.drive, 0..u64::MAX);
        }
    }

    fn decide<O: Observer>(&mut self, now: SimTime, at_now: bool, watch: &mut O) -> Result<(), O::Error> {
        let last = if at_now { now } else { SimTime(now.0.saturating_sub(1)) };
        if at_now || now > SimTime::ZERO {
            while let Some(at) = self.next_decision().filter(|at| *at <= last) {
                self.decide_once(at, watch)?;
            }
        }
        Ok(())
    }

    /// Takes a write into the buffer that waited for room.
    fn accept_waiting<O: Observer>(
        &mut self,
        now: SimTime,
        watch: &mut O,
    ) -> Result<Option<Served>, O::Error> {
        if self.drive.buffer().is_none_or(|b| !b.takes(0, false) || self.write_room(now, b).is_none()) {
            return Ok(None);
        }
        let Some(w) = self.waiting.oldest_write().copied().filter(|w| self.takes(now, &w.request)) else {
            return Ok(None);
        };
        let served = self.drive.accept(now, &w.request);
        self.waiting.accepted(w.seq, served);
        self.accepted.0 += 1;
        self.accepted.1 += w.request.blocks.0;
        watch.accepted(&self.buffered(w.arrival, &w.request, served)).map(|()| Some(served))
    }

    /// Has the scheduler choose, and the drive do that; `None`: a write that was acknowledged before.
    fn choose<O: Observer>(&mut self, now: SimTime, watch: &mut O) -> Result<Option<Served>, O::Error> {
        self.drive.look(now);
        let overdue = self.max_wait.and_then(|limit| self.waiting.overdue(now, limit));
        let pick = overdue.or_else(|| {
            let mechanics = self.drive.mechanics();
            let view = View { now, mechanics, candidates: self.waiting.candidates() };
            self.policy.as_mut().map(|p| p.pick(&view))
        });
        let w = self.waiting.take(pick.unwrap_or(0));
        let how = w.accepted.map_or(How::Queued(w.placed), How::Accepted);
        let served = self.dispatch(now, (w.arrival, &w.request), how, watch)?;
        if w.accepted.is_some() {
            self.accepted.0 -= 1;
            self.accepted.1 -= w.request.blocks.0;
            self.leaving = (self.drive.free_at(), w.request.blocks.0);
        }
        self.waiting.free_behind(&w, &self.drive);
        self.look_behind(&w.request);
        debug_assert!(self.waiting.is_fresh(&self.drive), "places of waiting requests are stale");
        Ok(w.accepted.is_none().then_some(served))
    }

    /// Takes the background steps that are due before `now`.
    #[inline(always)]
    fn catch_up<O: Observer>(&mut self, now: SimTime, watch: &mut O) -> Result<(), O::Error> {
        if self.by_step || self.drive.idles() { Ok(()) } else { self.take_steps(now, watch) }
    }

    fn take_steps<O: Observer>(&mut self, now: SimTime, watch: &mut O) -> Result<(), O::Error> {
        while self.step(now, watch)? {}
        debug_assert!(self.waiting.is_fresh(&self.drive), "places of waiting requests are stale");
        Ok(())
    }

    /// Has the drive do a request that came at `came`.
    #[inline(always)]
    fn dispatch<O: Observer>(
        &mut self,
        now: SimTime,
        (came, request): (SimTime, &HostRequest),
        how: How,
        watch: &mut O,
    ) -> Result<Served, O::Error> {
        if let Some(step) = self.drive.interrupt() {
            watch.background(&step)?;
        }
        self.goes_on = false;
        let executed = match how {
            How::AtOnce => self.drive.dispatch(now, request, watch),
            How::Queued(placed) => self.drive.dispatch_queued(now, placed, request, watch),
            How::Accepted(accepted) => self.drive.destage(now, accepted, request, watch),
        };
        let served = executed.served;
        watch.dispatched(came, request, &executed)?;
        show(&self.drive, served.end, watch);
        Ok(served)
    }
}

/// What a request that is dispatched did before. The request itself stays where it is: put together anew, it would be slow
/// to copy.
enum How {
    /// Nothing: it comes now.
    AtOnce,
    /// It waited in the queue since then.
    Queued(SimTime),
    /// It waited, and the buffer had taken it.
    Accepted(Served),
}
