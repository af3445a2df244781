//! What stands between a host and a drive: the queue, and who is served next.
//!
//! The caller's time says what is known: at `wake(now)` all requests that come up to `now` have been submitted. Decisions
//! are made at times of their own (when the drive is free and a request waits), so waking late never changes one, only
//! when the caller hears of it.

use crate::sched::{Chosen, Policy, View};
use crate::waiting::{WaitingList, affected};
use crate::{Drive, Executed, Observer, Served};
use smrlab_stl::{Facts, HostRequest};
use smrlab_units::SimTime;

/// Is told what the controller had the drive do, in the order in which it was done.
pub trait Effects: Observer {
    /// What keeps the caller from going on.
    type Error;

    /// A request that came at `arrival` was dispatched: its plan is to be carried out now, its times are final.
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn dispatched(
        &mut self,
        arrival: SimTime,
        request: &HostRequest,
        executed: &Executed<'_>,
    ) -> Result<(), Self::Error>;

    /// A step of background work was carried out, all of it or what a request left of it.
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn background(&mut self, executed: &Executed<'_>) -> Result<(), Self::Error>;

    /// Whether it wants to see what the layer is like at `at`.
    fn looks(&self, at: SimTime) -> bool {
        let _ = at;
        false
    }

    /// The layer is like this at `at`.
    fn looked(&mut self, at: SimTime, facts: &Facts<'_>) {
        let _ = (at, facts);
    }
}

/// Shows the layer where that is wanted.
#[inline]
fn show<E: Effects>(drive: &Drive, at: SimTime, effects: &mut E) {
    if effects.looks(at) {
        effects.looked(at, &drive.layer().facts());
    }
}

/// See the [module](self).
pub struct Controller {
    drive: Drive,
    /// `None`: first come, first served; nothing waits then, because no later request changes when a request is served.
    policy: Option<Box<dyn Policy>>,
    depth: usize,
    max_wait: Option<SimTime>,
    waiting: WaitingList,
    /// Background work only by [`step`](Controller::step).
    by_step: bool,
}

impl Controller {
    /// A drive behind a queue.
    pub fn new(drive: Drive, chosen: &Chosen) -> Self {
        let policy = chosen.entry.reorders.then(|| (chosen.entry.build)());
        let (depth, max_wait) = (chosen.depth, chosen.max_wait);
        Self { drive, policy, depth, max_wait, waiting: WaitingList::default(), by_step: false }
    }

    /// Background work is done only where the caller asks for a [`step`](Self::step): for callers without time, to whom all
    /// of it would be due at once.
    #[must_use]
    pub fn background_by_step(self) -> Self {
        Self { by_step: true, ..self }
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

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether another request may be submitted: the queue has its depth.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.waiting.len() < self.depth
    }

    /// A request comes at `now`. First come, first served: it is dispatched at once, to start when the drive is free, and
    /// its times are answered.
    ///
    /// # Errors
    /// Those of `effects`.
    #[inline]
    pub fn submit<E: Effects>(
        &mut self,
        now: SimTime,
        request: &HostRequest,
        effects: &mut E,
    ) -> Result<Option<Served>, E::Error> {
        if self.policy.is_none() {
            self.catch_up(now, effects)?;
            return self.dispatch(now, now, request, effects).map(Some);
        }
        self.decide(now, false, effects)?;
        self.catch_up(now, effects)?;
        self.waiting.admit(now, *request, &self.drive);
        Ok(None)
    }

    /// Makes all decisions, and takes all background steps, that are due at `now`.
    ///
    /// # Errors
    /// Those of `effects`.
    pub fn wake<E: Effects>(&mut self, now: SimTime, effects: &mut E) -> Result<(), E::Error> {
        self.decide(now, true, effects)?;
        if self.waiting.is_empty() { self.catch_up(now, effects) } else { Ok(()) }
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
    /// drive for longer.
    ///
    /// # Errors
    /// Those of `effects`.
    pub fn decide_once<E: Effects>(
        &mut self,
        now: SimTime,
        effects: &mut E,
    ) -> Result<Option<Served>, E::Error> {
        self.catch_up(now, effects)?;
        if self.drive.free_at() > now { Ok(None) } else { self.choose(now, effects).map(Some) }
    }

    /// Does one step of the background work that is due at `now`; answers whether there was one.
    ///
    /// # Errors
    /// Those of `effects`.
    pub fn step<E: Effects>(&mut self, now: SimTime, effects: &mut E) -> Result<bool, E::Error> {
        match self.drive.next_step(now, effects) {
            Some(step) => effects.background(&step).map(|()| true),
            None => Ok(false),
        }
    }

    fn decide<E: Effects>(&mut self, now: SimTime, at_now: bool, effects: &mut E) -> Result<(), E::Error> {
        let last = if at_now { now } else { SimTime(now.0.saturating_sub(1)) };
        if at_now || now > SimTime::ZERO {
            while let Some(at) = self.next_decision().filter(|at| *at <= last) {
                self.decide_once(at, effects)?;
            }
        }
        Ok(())
    }

    fn choose<E: Effects>(&mut self, now: SimTime, effects: &mut E) -> Result<Served, E::Error> {
        let overdue = self.max_wait.and_then(|limit| self.waiting.overdue(now, limit));
        let pick = overdue.or_else(|| {
            let mechanics = self.drive.mechanics();
            let view = View { now, mechanics, candidates: self.waiting.candidates() };
            self.policy.as_mut().map(|p| p.pick(&view))
        });
        let w = self.waiting.take(pick.unwrap_or(0), &self.drive);
        let served = self.dispatch(now, w.arrival, &w.request, effects)?;
        if !self.drive.stable_locations() {
            self.waiting.relocate(&self.drive, affected(&self.drive, &w.request));
        }
        Ok(served)
    }

    /// Takes the background steps that are due before `now`.
    #[inline]
    fn catch_up<E: Effects>(&mut self, now: SimTime, effects: &mut E) -> Result<(), E::Error> {
        if self.by_step || self.drive.idles() {
            return Ok(());
        }
        let mut moved = false;
        while let Some(step) = self.drive.next_step(now, effects) {
            let end = step.served.end;
            effects.background(&step)?;
            show(&self.drive, end, effects);
            moved = true;
        }
        if moved && !self.drive.stable_locations() {
            self.waiting.relocate(&self.drive, 0..u64::MAX);
        }
        Ok(())
    }

    #[inline]
    fn dispatch<E: Effects>(
        &mut self,
        now: SimTime,
        arrival: SimTime,
        request: &HostRequest,
        effects: &mut E,
    ) -> Result<Served, E::Error> {
        if let Some(step) = self.drive.interrupt() {
            effects.background(&step)?;
        }
        let executed = self.drive.dispatch(now, request, effects);
        let served = executed.served;
        effects.dispatched(arrival, request, &executed)?;
        show(&self.drive, served.end, effects);
        Ok(served)
    }
}
