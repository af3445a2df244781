//! What drives do, as one stream of typed events: metrics, logs, verification, captures and what moves bytes all read it.
//!
//! Each event names the drive, a [`MemberId`] (0 where there is one), and the request that it happened for. Their order is that in
//! which the drive did things. What an array does above its drives are events of one more trait, in `array`.

use crate::{Served, TimedPlan};
use smrlab_disk::{Mechanics, Phases};
use smrlab_stl::{Cause, Facts, HostRequest, MediaOp, Pause};
use smrlab_units::SimTime;
use std::convert::Infallible;

/// A member of an array: its disks from 0, then its SSDs. A drive alone is member 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(pub u32);

impl MemberId {
    /// As an index.
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

/// The tracks on which a media operation began and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracks {
    /// Where the head stood before.
    pub before: u64,
    /// The track of the first block.
    pub first: u64,
    /// The track of the last block.
    pub last: u64,
    /// Cylinders that the head moved before the first block.
    pub cylinders: u32,
}

/// A media operation that was carried out; its times are final.
#[derive(Clone, Copy)]
pub struct OpDone<'a> {
    /// The drive.
    pub member: MemberId,
    /// The request that it was done for; `None`: it was done in idle time.
    pub request: Option<u64>,
    /// What was done.
    pub op: &'a MediaOp,
    /// On whose account: the operation's own cause, or that of the request where the operation serves that directly.
    pub cause: Cause,
    /// When the drive began with it.
    pub start: SimTime,
    /// When its last block had passed the head.
    pub end: SimTime,
    /// Where the head was.
    pub tracks: Tracks,
    /// What timed it; `None`: the plan stated how long it takes.
    pub timed: Option<&'a Mechanics>,
}

impl OpDone<'_> {
    /// Where its time went, worked out by this call; `None`: the plan stated its duration as a whole.
    pub fn phases(&self) -> Option<Phases> {
        self.timed.map(Mechanics::phases)
    }
}

/// A request that a drive's buffer did without the medium.
#[derive(Clone, Copy, Debug)]
pub struct Buffered<'a> {
    /// The drive.
    pub member: MemberId,
    /// When it came.
    pub came: SimTime,
    /// What was asked.
    pub request: &'a HostRequest,
    /// When it was done.
    pub served: Served,
}

/// Reads that a drive's buffer answered one after the other without the medium: each begins where the one before ended, asks for as many blocks,
/// and came when that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// When they came.
    pub came: &'a [SimTime],
    /// What was asked, as many.
    pub requests: &'a [HostRequest],
    /// How long each took.
    pub took: SimTime,
}

impl<'a> Row<'a> {
    /// Each of them with when it came and how it was served.
    pub fn each(self) -> impl Iterator<Item = (SimTime, &'a HostRequest, Served)> {
        let one = move |(came, request): (&SimTime, &'a HostRequest)| {
            let ack = *came + self.took;
            (*came, request, Served { start: *came, ack, end: ack })
        };
        self.came.iter().zip(self.requests).map(one)
    }
}

/// Is told what drives do.
pub trait Observer {
    /// What keeps the caller from going on.
    type Error;

    /// Whether it looks at the plan of a read that a drive's buffer answers; else [`held`](Self::held) may tell of it.
    const PLANS: bool = true;

    /// The host will send this request soon.
    fn coming(&self, _request: &HostRequest) {}

    /// The host will send its first request at `at`: what is done until then is before the run.
    fn first_at(&mut self, _at: SimTime) {}

    /// The host sends a request at `at`.
    fn arrived(&mut self, _at: SimTime, _request: &HostRequest) {}

    /// A media operation was carried out.
    fn op(&mut self, _done: &OpDone<'_>) {}

    /// A drive spent time without a media operation; `request`: what for, `None` in idle time.
    fn paused(&mut self, _member: MemberId, _request: Option<u64>, _pause: &Pause, _start: SimTime) {}

    /// A request that came at `came` was dispatched: its plan is to be carried out now, its times are final.
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn dispatched(
        &mut self,
        _came: SimTime,
        _request: &HostRequest,
        _executed: &TimedPlan<'_>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A read that came at `came` was answered from a drive's buffer, and nothing was done on the medium: in place of
    /// [`dispatched`](Self::dispatched), for who looks at no [plan](Self::PLANS).
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn held(&mut self, _came: SimTime, _request: &HostRequest, _served: &Served) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The host sent these reads, and they were answered: in place of [`arrived`](Self::arrived) and [`held`](Self::held) for each.
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn held_in_order(&mut self, row: &Row<'_>) -> Result<(), Self::Error> {
        row.each().try_for_each(|(came, request, served)| {
            self.arrived(came, request);
            self.held(came, request, &served)
        })
    }

    /// A drive's buffer took a write: it is acknowledged; [`dispatched`](Self::dispatched) follows when it is written.
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn accepted(&mut self, _write: &Buffered<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A read was answered from a write that was accepted and is still to be dispatched: the newest that concerns its blocks; it has
    /// all of them.
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn answered(&mut self, _read: &Buffered<'_>, _write: &HostRequest) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A step of background work was carried out, all of it or what a request left of it.
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn background(&mut self, _step: &TimedPlan<'_>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether it wants to see what a drive's layer is like at `at`.
    fn looks(&self, _member: MemberId, _at: SimTime) -> bool {
        false
    }

    /// A drive's layer is like this at `at`.
    fn looked(&mut self, _member: MemberId, _at: SimTime, _facts: &Facts<'_>) {}
}

/// Observes nothing.
impl Observer for () {
    type Error = Infallible;
}
