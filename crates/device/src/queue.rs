//! Requests of many threads meet one controller.
//!
//! Whoever holds the lock has the controller do what is due, for all; who waits for its turn sleeps until the next decision
//! or until somebody else's call served it. First come, first served needs no waiting: the request is dispatched by its own
//! thread, out of its own buffer. Where a scheduler chooses, the data of a request wait in the queue.

use crate::error::{DeviceError, Result};
use crate::pace::Pace;
use parking_lot::{Condvar, Mutex, MutexGuard};
use smrlab_drive::{Controller, Effects, Executed, Observer, Served};
use smrlab_stl::{HostBuffer, HostRequest, Outcome};
use smrlab_units::{BLOCK_BYTES, HostOp, SimTime};
use std::collections::BTreeMap;

/// Does with plans what is to be done beside timing them.
pub trait Carry {
    /// Carries out a request's plan.
    ///
    /// # Errors
    /// What the medium or its log answers.
    fn request(&mut self, executed: &Executed<'_>, host: HostBuffer<'_>) -> Result<()>;

    /// Carries out a step of background work as far as it went.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    fn background(&mut self, step: &Executed<'_>) -> Result<()>;
}

/// A request in the queue.
enum Queued {
    /// It waits, with its data.
    Waits(Vec<u8>),
    /// The drive's buffer took it, and it is still to be written: its data, and when it is acknowledged, until its thread has
    /// heard of that.
    Accepted(Vec<u8>, Option<SimTime>),
    /// It was served: when it is acknowledged, and what it read.
    Done(Result<SimTime>, Vec<u8>),
}

/// See the [module](self).
pub struct Queue<C> {
    state: Mutex<State<C>>,
    /// Somebody was served.
    served: Condvar,
    /// Background work is done step by step between requests, and not all that is due before the next one.
    by_step: bool,
}

/// What is behind the lock.
pub struct State<C> {
    /// The drive and its queue.
    pub controller: Controller,
    /// What carries out plans.
    pub carry: C,
    queued: BTreeMap<u64, Queued>,
    next: u64,
    /// Why nothing more is done: layer and medium would no longer agree.
    pub broken: Option<DeviceError>,
}

/// The effects of a call.
struct Call<'a, 'b, C> {
    carry: &'a mut C,
    queued: &'a mut BTreeMap<u64, Queued>,
    broken: &'a mut Option<DeviceError>,
    /// The caller's own request, where it is dispatched by the call: its buffer, and then what became of it.
    own: HostBuffer<'b>,
    outcome: Option<Result<SimTime>>,
    /// Requests of others were served.
    others: bool,
}

impl<C> Observer for Call<'_, '_, C> {}

impl<C: Carry> Call<'_, '_, C> {
    fn carry_out(&mut self, op: HostOp, executed: &Executed<'_>, host: HostBuffer<'_>) -> Result<SimTime> {
        if let Outcome::Refused { why, lba } = executed.plan.outcome() {
            return Err(DeviceError::refused(why, Some(lba)));
        }
        self.carry.request(executed, host).map(|()| executed.served.ack).inspect_err(|e| {
            if op != HostOp::Read {
                *self.broken = Some(stopped(e));
            }
        })
    }
}

impl<C: Carry> Effects for Call<'_, '_, C> {
    type Error = DeviceError;

    fn dispatched(&mut self, _: SimTime, request: &HostRequest, executed: &Executed<'_>) -> Result<()> {
        let (mut data, heard) = match self.queued.remove(&request.id) {
            Some(Queued::Waits(data)) => (data, false),
            Some(Queued::Accepted(data, ack)) => (data, ack.is_none()),
            _ => {
                let host = std::mem::replace(&mut self.own, HostBuffer::None);
                self.outcome = Some(self.carry_out(request.op, executed, host));
                return Ok(());
            }
        };
        let host = match request.op {
            HostOp::Write => HostBuffer::Write(&data),
            HostOp::Read => HostBuffer::Read(&mut data),
            _ => HostBuffer::None,
        };
        let done = self.carry_out(request.op, executed, host);
        if !heard {
            self.queued.insert(request.id, Queued::Done(done, data));
        }
        self.others = true;
        Ok(())
    }

    fn accepted(&mut self, _: SimTime, request: &HostRequest, served: &Served) -> Result<()> {
        if let Some(Queued::Waits(data)) = self.queued.remove(&request.id) {
            self.queued.insert(request.id, Queued::Accepted(data, Some(served.ack)));
            self.others = true;
        }
        Ok(())
    }

    fn answered(
        &mut self,
        _: SimTime,
        request: &HostRequest,
        write: &HostRequest,
        served: &Served,
    ) -> Result<()> {
        let newest = match self.queued.get(&write.id) {
            // A medium whose bytes the host's own threads move.
            Some(Queued::Accepted(data, _)) if data.is_empty() => Some(Vec::new()),
            Some(Queued::Accepted(data, _)) => Some(part(data, write, request).to_vec()),
            _ => None,
        };
        let missing = || DeviceError::input("what was to be read from the drive's buffer is not there");
        let done = match newest {
            Some(data) => Queued::Done(Ok(served.ack), data),
            None => Queued::Done(Err(missing()), Vec::new()),
        };
        self.queued.insert(request.id, done);
        Ok(())
    }

    fn background(&mut self, step: &Executed<'_>) -> Result<()> {
        self.carry.background(step).inspect_err(|e| *self.broken = Some(stopped(e)))
    }
}

impl<C: Carry> State<C> {
    /// Has the controller do something; answers with what became of the caller's own request if that was dispatched, and
    /// whether others were served.
    fn call<'b>(
        &mut self,
        own: HostBuffer<'b>,
        act: impl FnOnce(&mut Controller, &mut Call<'_, 'b, C>) -> Result<()>,
    ) -> Result<(Option<Result<SimTime>>, bool)> {
        let Self { controller, carry, queued, broken, .. } = self;
        let mut call = Call { carry, queued, broken, own, outcome: None, others: false };
        act(controller, &mut call)?;
        Ok((call.outcome, call.others))
    }
}

impl<C: Carry> Queue<C> {
    /// A queue before a drive. `by_step`: background work is done only by [`step`](Self::step), as where requests take no
    /// time and all of it would be due at once.
    pub fn new(controller: Controller, carry: C, by_step: bool) -> Self {
        let controller = if by_step { controller.background_by_step() } else { controller };
        let state = State { controller, carry, queued: BTreeMap::new(), next: 0, broken: None };
        Self { state: Mutex::new(state), served: Condvar::new(), by_step }
    }

    /// What is behind the lock.
    pub fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock()
    }

    /// What is behind the lock, if nobody else is.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, State<C>>> {
        self.state.try_lock()
    }

    /// Serves a request that comes now; answers with the model's time of its acknowledgement.
    ///
    /// # Errors
    /// What carrying it out met; the layer's refusal; what stopped the device before.
    pub fn submit(&self, pace: &Pace, request: HostRequest, mut host: HostBuffer<'_>) -> Result<SimTime> {
        let state = &mut self.state.lock();
        if let Some(e) = &state.broken {
            return Err(e.clone());
        }
        let now = pace.arrive(&request)?;
        let id = state.next;
        state.next += 1;
        let request = request.numbered(id);
        if state.controller.reorders() {
            let data = match &host {
                HostBuffer::Write(data) => data.to_vec(),
                HostBuffer::Read(out) => vec![0; out.len()],
                HostBuffer::None => Vec::new(),
            };
            state.queued.insert(id, Queued::Waits(data));
            state.call(HostBuffer::None, |c, call| c.submit(now, &request, call).map(|_| ()))?;
            let (ack, data) = self.wait_for(id, pace, state)?;
            if let HostBuffer::Read(out) = &mut host {
                out.copy_from_slice(&data);
            }
            return Ok(ack);
        }
        let (outcome, _) = state.call(host, |c, call| c.submit(now, &request, call).map(|_| ()))?;
        outcome.unwrap_or_else(|| Err(DeviceError::input("the request was not served")))
    }

    /// Waits until the request was served, and has the controller do what is due meanwhile.
    fn wait_for(
        &self,
        id: u64,
        pace: &Pace,
        state: &mut MutexGuard<'_, State<C>>,
    ) -> Result<(SimTime, Vec<u8>)> {
        loop {
            if let Some(Queued::Done(done, data)) = state.queued.get_mut(&id) {
                let (done, data) = (done.clone(), std::mem::take(data));
                state.queued.remove(&id);
                return done.map(|ack| (ack, data));
            }
            if let Some(Queued::Accepted(_, ack)) = state.queued.get_mut(&id)
                && let Some(ack) = ack.take()
            {
                return Ok((ack, Vec::new()));
            }
            if let Some(e) = &state.broken {
                return Err(e.clone());
            }
            let now = pace.now();
            let (_, others) = state.call(HostBuffer::None, |c, call| c.wake(now, call))?;
            if others {
                self.served.notify_all();
            } else if let Some(at) = state.controller.next_wake() {
                self.served.wait_until(state, pace.instant(at));
            }
        }
    }

    /// Has everything written that the drive's buffer holds, and all served that waits.
    ///
    /// # Errors
    /// As [`Carry::request`]; what stopped the device before.
    pub fn drain(&self, state: &mut MutexGuard<'_, State<C>>) -> Result<()> {
        if let Some(e) = &state.broken {
            return Err(e.clone());
        }
        let (_, others) = state.call(HostBuffer::None, |c, call| c.drain(call))?;
        if others {
            self.served.notify_all();
        }
        state.broken.clone().map_or(Ok(()), Err)
    }

    /// Does background work that is due: one step where that is how it is done. Answers whether there was any such step.
    ///
    /// # Errors
    /// As [`Carry::background`].
    pub fn step(&self, state: &mut MutexGuard<'_, State<C>>, now: SimTime) -> Result<bool> {
        if state.broken.is_some() {
            return Ok(false);
        }
        if !self.by_step {
            let (_, others) = state.call(HostBuffer::None, |c, call| c.wake(now, call))?;
            if others {
                self.served.notify_all();
            }
            return Ok(false);
        }
        let mut more = false;
        state.call(HostBuffer::None, |c, call| {
            more = c.step(now, call)?;
            Ok(())
        })?;
        Ok(more)
    }
}

/// What of a write's data a read within it asks for.
pub(crate) fn part<'a>(data: &'a [u8], write: &HostRequest, read: &HostRequest) -> &'a [u8] {
    let at = ((read.lba.0 - write.lba.0) * BLOCK_BYTES) as usize;
    &data[at..at + read.blocks.bytes() as usize]
}

pub(crate) fn stopped(e: &DeviceError) -> DeviceError {
    let text = format!("the device stopped after an error of its store ({e}); start it again");
    DeviceError::new(libc::EIO, text)
}
