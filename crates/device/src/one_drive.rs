//! One drive behind the table of requests.
//!
//! First come, first served a request is dispatched by its own thread, out of its own buffer. Where a scheduler chooses, the data of
//! a request wait in the table.

use crate::error::{DeviceError, Result};
use crate::table::{Next, Requests, Server};
use smrlab_drive::{Buffered, Observer, ScheduledDrive, TimedPlan};
use smrlab_stl::{HostBuffer, HostRequest, Outcome};
use smrlab_units::{HostOp, SimTime};

/// Moves the bytes of executed plans.
pub(crate) trait MovesBytes {
    /// Carries out a request's plan.
    ///
    /// # Errors
    /// What the medium or its log answers.
    fn request(&mut self, executed: &TimedPlan<'_>, host: HostBuffer<'_>) -> Result<()>;

    /// Carries out a step of background work as far as it went.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    fn background(&mut self, step: &TimedPlan<'_>) -> Result<()>;
}

/// See the [module](self).
pub(crate) struct OneDrive<C> {
    /// The drive and its queue.
    pub(crate) scheduled: ScheduledDrive,
    /// What carries out plans.
    pub(crate) bytes: C,
    /// Why nothing more is done: layer and medium would no longer agree.
    pub(crate) broken: Option<DeviceError>,
    requests: Requests,
    /// Background work is done step by step between requests, and not all that is due before the next one.
    by_step: bool,
}

/// The effects of a call.
struct Call<'a, 'b, C> {
    bytes: &'a mut C,
    requests: &'a mut Requests,
    broken: &'a mut Option<DeviceError>,
    /// The caller's own request, where it is dispatched by the call: its buffer, and then what became of it.
    own: HostBuffer<'b>,
    outcome: Option<Result<SimTime>>,
}

impl<C: MovesBytes> Observer for Call<'_, '_, C> {
    type Error = DeviceError;

    fn dispatched(&mut self, _: SimTime, request: &HostRequest, executed: &TimedPlan<'_>) -> Result<()> {
        let Self { bytes, requests, broken, own, outcome } = self;
        let waited = requests.data_mut(request.id);
        let waits = waited.is_some();
        let host = match (waited, request.op) {
            (Some(data), HostOp::Write) => HostBuffer::Write(data),
            (Some(data), HostOp::Read) => HostBuffer::Read(data),
            (Some(_), _) => HostBuffer::None,
            (None, _) => std::mem::replace(own, HostBuffer::None),
        };
        let done = match executed.plan.outcome() {
            Outcome::Refused { why, lba } => Err(DeviceError::refused(why, Some(lba))),
            _ => bytes.request(executed, host).map(|()| executed.served.ack).inspect_err(|e| {
                if request.op != HostOp::Read {
                    **broken = Some(stopped(e));
                }
            }),
        };
        if waits {
            requests.answer(request.id, done);
            requests.release(request.id);
        } else {
            *outcome = Some(done);
        }
        Ok(())
    }

    fn accepted(&mut self, write: &Buffered<'_>) -> Result<()> {
        self.requests.needs(write.request.id);
        self.requests.answer(write.request.id, Ok(write.served.ack));
        Ok(())
    }

    fn answered(&mut self, read: &Buffered<'_>, write: &HostRequest) -> Result<()> {
        let &Buffered { request, served, .. } = read;
        let done = match self.requests.bring(request, write) {
            true => Ok(served.ack),
            false => Err(DeviceError::input("what was to be read from the drive's buffer is not there")),
        };
        self.requests.answer(request.id, done);
        Ok(())
    }

    fn background(&mut self, step: &TimedPlan<'_>) -> Result<()> {
        self.bytes.background(step).inspect_err(|e| *self.broken = Some(stopped(e)))
    }
}

impl<C: MovesBytes> OneDrive<C> {
    /// A drive behind its queue. `by_step`: background work is done only by [`step`](Self::step), as where requests take no
    /// time and all of it would be due at once.
    pub(crate) fn new(mut scheduled: ScheduledDrive, bytes: C, by_step: bool) -> Self {
        if by_step {
            scheduled.background_by_step();
        }
        Self { scheduled, bytes, broken: None, requests: Requests::default(), by_step }
    }

    /// Has the scheduled do something; answers with what became of the caller's own request if that was dispatched.
    fn call<'b, T>(
        &mut self,
        own: HostBuffer<'b>,
        act: impl FnOnce(&mut ScheduledDrive, &mut Call<'_, 'b, C>) -> Result<T>,
    ) -> Result<(T, Option<Result<SimTime>>)> {
        let Self { scheduled, bytes, requests, broken, .. } = self;
        let mut call = Call { bytes, requests, broken, own, outcome: None };
        let done = act(scheduled, &mut call)?;
        Ok((done, call.outcome))
    }

    /// Has everything written that the drive's buffer holds, and all served that waits; what fails then stops the device.
    pub(crate) fn drain(&mut self) {
        if self.broken.is_none() {
            let _ = self.call(HostBuffer::None, |c, call| c.drain(call));
        }
    }

    /// Does background work that is due: one step where that is how it is done. Answers whether there was any such step.
    ///
    /// # Errors
    /// As [`MovesBytes::background`].
    pub(crate) fn step(&mut self, now: SimTime) -> Result<bool> {
        if self.broken.is_some() {
            return Ok(false);
        }
        let by_step = self.by_step;
        let act = |c: &mut ScheduledDrive, call: &mut Call<'_, '_, C>| match by_step {
            true => c.step(now, call),
            false => c.wake(now, call).map(|()| false),
        };
        self.call(HostBuffer::None, act).map(|(more, _)| more)
    }
}

impl<C: MovesBytes> Server for OneDrive<C> {
    fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    fn broken(&self) -> Option<&DeviceError> {
        self.broken.as_ref()
    }

    fn submit(
        &mut self,
        now: SimTime,
        request: &HostRequest,
        host: &mut HostBuffer<'_>,
    ) -> Result<Option<SimTime>> {
        let own = if self.scheduled.reorders() {
            self.requests.enter(request, host);
            HostBuffer::None
        } else {
            std::mem::replace(host, HostBuffer::None)
        };
        let (_, outcome) = self.call(own, |c, call| c.submit(now, request, call))?;
        outcome.transpose()
    }

    fn go_on(&mut self, now: SimTime) -> Result<Next> {
        self.call(HostBuffer::None, |c, call| c.wake(now, call))?;
        Ok(self.scheduled.next_wake().map_or(Next::Nothing, Next::At))
    }
}

/// What a device answers after an error of its store that left layer and medium apart.
pub(crate) fn stopped(e: &DeviceError) -> DeviceError {
    let text = format!("the device stopped after an error of its store ({e}); start it again");
    DeviceError::new(libc::EIO, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StoreKind, Timing};
    use crate::disk::assembled;
    use smrlab_units::{Blocks, Lba};

    struct NoBytes;

    impl MovesBytes for NoBytes {
        fn request(&mut self, _: &TimedPlan<'_>, _: HostBuffer<'_>) -> Result<()> {
            Ok(())
        }

        fn background(&mut self, _: &TimedPlan<'_>) -> Result<()> {
            Ok(())
        }
    }

    /// Data that the drive's buffer holds are let go when the drive has written them and the host has its answer.
    #[test]
    fn what_is_written_is_let_go() {
        let drive = "tiny,write_cache=on,segments=8,cache_size=32KiB";
        let (timing, scheduler) = (Timing::Model, "sptf".to_owned());
        let config = Config { timing, scheduler, ..Config::new("d", drive, "cmr", StoreKind::Memory) };
        let (drive, scheduler) = assembled(&config, None).unwrap().start(false, false);
        let mut server = OneDrive::new(ScheduledDrive::new(drive, &scheduler), NoBytes, false);
        for id in 0..20 {
            let write = HostRequest::new(HostOp::Write, Lba(id * 64), Blocks(8)).numbered(id);
            server.submit(SimTime::ZERO, &write, &mut HostBuffer::Write(&[7; 4096])).unwrap();
        }
        server.drain();
        for id in 0..20 {
            assert!(
                server.requests.hear(id, &mut HostBuffer::None).is_some_and(|answer| answer.is_ok()),
                "{id}"
            );
            assert!(server.requests.data(id).is_none(), "{id}");
        }
    }
}
