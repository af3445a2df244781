//! The contract of whatever answers commands in simulated time: a drive behind its queue, an array.
//!
//! Time moves by the commands and steps of the caller, and never falls. Decisions are made at times of their own, so a
//! caller that asks late never moves one. Generic over who watches, so that one drive and its metrics become one loop.

use crate::{ArrayObserver, EventLoop};
use smrlab_drive::{Observer, ScheduledDrive as Drive};
use smrlab_stl::HostRequest;
use smrlab_units::SimTime;

/// A command on its way to a volume.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// When its host sent it.
    pub at: SimTime,
    /// From when on there is room for it: later where the queue was full.
    pub placed: SimTime,
    /// What is asked.
    pub request: &'a HostRequest,
}

/// See the [module](self). `done` hears of every acknowledgement that became known, and when it is.
pub trait Volume<O: Observer> {
    /// A hint that `request` will be sent soon.
    fn prefetch(&mut self, request: &HostRequest);

    /// Whether another command may be sent.
    fn has_room(&self) -> bool;

    /// Takes a command, after the [steps](Self::step) that are due before it.
    ///
    /// # Errors
    /// Those of `watch`.
    fn submit(
        &mut self,
        sent: Sent<'_>,
        watch: &mut O,
        done: &mut impl FnMut(SimTime),
    ) -> Result<(), O::Error>;

    /// Whether [`submit_in_order`](Self::submit_in_order) is worth a try, which is asked before each command.
    #[inline(always)]
    fn goes_on(&self) -> bool {
        false
    }

    /// Takes the first ones of commands that come at `times` where each is acknowledged before the next one comes, and nothing else is to be
    /// done meanwhile: how many, and when the last one was acknowledged. `watch` is told of their arrival too. All that came before must have been
    /// acknowledged by the time of the first one. `None`: nothing was done, they are to be taken one by one.
    ///
    /// # Errors
    /// Those of `watch`.
    fn submit_in_order(
        &mut self,
        _times: &[SimTime],
        _requests: &[HostRequest],
        _watch: &mut O,
    ) -> Result<Option<(usize, SimTime)>, O::Error> {
        Ok(None)
    }

    /// Does the next thing that is due before a command that comes at `until` (`None`: no command comes), and answers when
    /// that was; `None`: there is none.
    ///
    /// # Errors
    /// Those of `watch`.
    fn step(
        &mut self,
        until: Option<SimTime>,
        watch: &mut O,
        done: &mut impl FnMut(SimTime),
    ) -> Result<Option<SimTime>, O::Error>;

    /// No command comes any more: does the next thing that was begun, or `false`.
    ///
    /// # Errors
    /// Those of `watch`.
    fn settle(&mut self, watch: &mut O, done: &mut impl FnMut(SimTime)) -> Result<bool, O::Error>;
}

impl<O: Observer> Volume<O> for Drive {
    #[inline]
    fn prefetch(&mut self, request: &HostRequest) {
        self.drive().layer().prefetch(request);
    }

    #[inline]
    fn has_room(&self) -> bool {
        Self::has_room(self)
    }

    #[inline(always)]
    fn submit(
        &mut self,
        sent: Sent<'_>,
        watch: &mut O,
        done: &mut impl FnMut(SimTime),
    ) -> Result<(), O::Error> {
        if let Some(served) = self.submit_waited(sent.placed, (sent.at, sent.request), watch)? {
            done(served.ack);
        }
        Ok(())
    }

    #[inline(always)]
    fn goes_on(&self) -> bool {
        Self::goes_on(self)
    }

    fn submit_in_order(
        &mut self,
        times: &[SimTime],
        requests: &[HostRequest],
        watch: &mut O,
    ) -> Result<Option<(usize, SimTime)>, O::Error> {
        Self::submit_in_order(self, times, requests, watch)
    }

    #[inline]
    fn step(
        &mut self,
        until: Option<SimTime>,
        watch: &mut O,
        done: &mut impl FnMut(SimTime),
    ) -> Result<Option<SimTime>, O::Error> {
        let Some(at) = self.next_decision().filter(|at| until.is_none_or(|until| *at < until)) else {
            return Ok(None);
        };
        if let Some(served) = self.decide_once(at, watch)? {
            done(served.ack);
        }
        Ok(Some(at))
    }

    fn settle(&mut self, watch: &mut O, done: &mut impl FnMut(SimTime)) -> Result<bool, O::Error> {
        Volume::step(self, None, watch, done).map(|step| step.is_some())
    }
}

/// Tells of the requests that an array has done.
fn completed<O: ArrayObserver>(
    array: &mut EventLoop,
    watch: &mut O,
    done: &mut impl FnMut(SimTime),
) -> Result<(), O::Error> {
    while let Some(completion) = array.next_done() {
        watch.completed(&completion)?;
        done(completion.ack);
    }
    Ok(())
}

impl<O: ArrayObserver> Volume<O> for EventLoop {
    fn prefetch(&mut self, request: &HostRequest) {
        Self::prefetch(self, request);
    }

    fn has_room(&self) -> bool {
        true
    }

    fn submit(
        &mut self,
        sent: Sent<'_>,
        watch: &mut O,
        done: &mut impl FnMut(SimTime),
    ) -> Result<(), O::Error> {
        Self::submit(self, sent.placed.max(self.now()), sent.request, watch)?;
        completed(self, watch, done)
    }

    fn step(
        &mut self,
        until: Option<SimTime>,
        watch: &mut O,
        done: &mut impl FnMut(SimTime),
    ) -> Result<Option<SimTime>, O::Error> {
        if !Self::step(self, until, watch)? {
            return Ok(None);
        }
        completed(self, watch, done)?;
        Ok(Some(self.now()))
    }

    fn settle(&mut self, watch: &mut O, done: &mut impl FnMut(SimTime)) -> Result<bool, O::Error> {
        let busy = self.in_flight() > 0 || self.array().unfinished() || self.members_wait();
        // Drives that had nothing to do at the end were idle meanwhile.
        let any = (busy && Self::step(self, None, watch)?) || self.idle_step(self.now(), watch)?;
        completed(self, watch, done).map(|()| any)
    }
}
