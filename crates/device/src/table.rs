//! The table of a served device's requests, and the threads that brought them.
//!
//! Whoever holds the lock has everything done that is due, for all; the others sleep until the next decision, or until somebody
//! else's call has answered their request. What can be served at once is, by its own thread and out of its own buffer; the
//! data of what waits are in the table.

use crate::clock::Call;
use crate::error::{DeviceError, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};
use smrlab_stl::{HostBuffer, HostRequest};
use smrlab_units::{BLOCK_BYTES, SimTime};
use std::collections::BTreeMap;

/// What of a write's data a read within it asks for.
pub(crate) fn part<'a>(data: &'a [u8], write: &HostRequest, read: &HostRequest) -> &'a [u8] {
    let at = ((read.lba.0 - write.lba.0) * BLOCK_BYTES) as usize;
    &data[at..at + read.blocks.bytes() as usize]
}

/// A request that waits, or whose data are still needed.
struct Request {
    /// What it writes, or what its reads have brought.
    data: Vec<u8>,
    /// A part of it met this, of which its thread hears when it is answered.
    met: Option<DeviceError>,
    /// When it was acknowledged, or why it was not done; until its thread has heard of it.
    answer: Option<Result<SimTime>>,
    heard: bool,
    /// Its data are needed beyond its answer: it is not on the medium yet, or its work goes on.
    needed: bool,
}

/// The requests of a device by their numbers, which rise with time.
#[derive(Default)]
pub(crate) struct Requests {
    open: BTreeMap<u64, Request>,
    next: u64,
    /// Somebody was answered who may be asleep.
    news: bool,
}

impl Requests {
    /// Takes in a request, with a copy of what it writes.
    pub(crate) fn enter(&mut self, request: &HostRequest, host: &HostBuffer<'_>) {
        let data = match host {
            HostBuffer::Write(data) => data.to_vec(),
            HostBuffer::Read(_) | HostBuffer::Lend(_) => vec![0; request.blocks.bytes() as usize],
            HostBuffer::None => Vec::new(),
        };
        let entered = Request { data, met: None, answer: None, heard: false, needed: false };
        self.open.insert(request.id, entered);
    }

    /// What a request writes, or where what it reads is gathered; `None` for what is no request of the table.
    pub(crate) fn data(&self, id: u64) -> Option<&[u8]> {
        self.open.get(&id).map(|request| &*request.data)
    }

    /// The same, to be filled.
    pub(crate) fn data_mut(&mut self, id: u64) -> Option<&mut [u8]> {
        self.open.get_mut(&id).map(|request| &mut *request.data)
    }

    /// Brings a read what it asks for of `write`, which the drive's buffer has; `false`: the table does not have it.
    pub(crate) fn bring(&mut self, read: &HostRequest, write: &HostRequest) -> bool {
        let Some(held) = self.data(write.id) else { return false };
        // Of a medium whose bytes the host's own threads move there are none.
        let data = if held.is_empty() { Vec::new() } else { part(held, write, read).to_vec() };
        self.data_mut(read.id).into_iter().for_each(|out| out.copy_from_slice(&data));
        true
    }

    /// A part of a request failed; answers whether it is a request of the table.
    pub(crate) fn failed(&mut self, id: u64, e: &DeviceError) -> bool {
        self.open.get_mut(&id).map(|request| request.met = Some(e.clone())).is_some()
    }

    /// A request was acknowledged, or could not be done. Who was acknowledged before hears nothing more.
    pub(crate) fn answer(&mut self, id: u64, answer: Result<SimTime>) {
        if let Some(request) = self.open.get_mut(&id).filter(|r| !r.heard && r.answer.is_none()) {
            request.answer = Some(request.met.take().map_or(answer, Err));
            self.news = true;
        }
    }

    fn is_answered(&self, id: u64) -> bool {
        self.open.get(&id).is_some_and(|request| request.answer.is_some())
    }

    /// The data of a request are needed until they are [released](Self::release); answers whether it is a request of the
    /// table.
    pub(crate) fn needs(&mut self, id: u64) -> bool {
        self.open.get_mut(&id).map(|request| request.needed = true).is_some()
    }

    /// Nobody needs the data of a request any more but its own thread.
    pub(crate) fn release(&mut self, id: u64) {
        if let Some(request) = self.open.get_mut(&id) {
            request.needed = false;
            if request.heard {
                self.open.remove(&id);
            }
        }
    }

    /// The answer to a request, and into `host` what it read; its thread asks.
    pub(crate) fn hear(&mut self, id: u64, host: &mut HostBuffer<'_>) -> Option<Result<SimTime>> {
        let request = self.open.get_mut(&id)?;
        let answer = request.answer.take()?;
        match (&answer, host) {
            (Ok(_), HostBuffer::Read(out)) => out.copy_from_slice(&request.data),
            (Ok(_), HostBuffer::Lend(take)) => take(0, &request.data),
            _ => {}
        }
        request.heard = true;
        if !request.needed {
            self.open.remove(&id);
        }
        Some(answer)
    }
}

/// What a server does next if no request comes.
pub(crate) enum Next {
    /// More, at once.
    More,
    /// Something at this time.
    At(SimTime),
    /// Nothing.
    Nothing,
}

/// What serves requests behind the lock: a drive, an array. Times never fall.
pub(crate) trait Server {
    /// The requests that it has not answered.
    fn requests(&mut self) -> &mut Requests;

    /// Why nothing more is done: what it keeps and what is on the medium would no longer agree.
    fn broken(&self) -> Option<&DeviceError>;

    /// Takes a request that comes at `now`. What is served at once is, with `host`, and its acknowledgement answered; else it is
    /// [entered](Requests::enter).
    ///
    /// # Errors
    /// What carrying it out met; the refusal.
    fn submit(
        &mut self,
        now: SimTime,
        request: &HostRequest,
        host: &mut HostBuffer<'_>,
    ) -> Result<Option<SimTime>>;

    /// Does what is due at `now`.
    ///
    /// # Errors
    /// What stops the device.
    fn go_on(&mut self, now: SimTime) -> Result<Next>;
}

/// See the [module](self).
pub(crate) struct Table<S> {
    server: Mutex<S>,
    /// Somebody was answered.
    answered: Condvar,
}

impl<S: Server> Table<S> {
    /// Before a server.
    pub(crate) fn new(server: S) -> Self {
        Self { server: Mutex::new(server), answered: Condvar::new() }
    }

    /// What is behind the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        self.server.lock()
    }

    /// What is behind the lock, if nobody else is.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, S>> {
        self.server.try_lock()
    }

    /// Has the server do something, and wakes those whom that answers.
    pub(crate) fn call<T>(&self, server: &mut S, act: impl FnOnce(&mut S) -> T) -> T {
        let done = act(server);
        if std::mem::take(&mut server.requests().news) || server.broken().is_some() {
            self.answered.notify_all();
        }
        done
    }

    /// Serves a request that comes now; answers with the model's time of its acknowledgement.
    ///
    /// # Errors
    /// What carrying it out met; the refusal; what stopped the device before.
    pub(crate) fn serve(
        &self,
        call: Call<'_>,
        request: HostRequest,
        mut host: HostBuffer<'_>,
    ) -> Result<SimTime> {
        let mut server = self.lock();
        if let Some(e) = server.broken() {
            return Err(e.clone());
        }
        let now = call.arrive(&request)?;
        let requests = server.requests();
        let id = requests.next;
        requests.next += 1;
        let request = request.numbered(id);
        if let Some(ack) = self.call(&mut *server, |s| s.submit(now, &request, &mut host))? {
            return Ok(ack);
        }
        loop {
            if let Some(answer) = server.requests().hear(id, &mut host) {
                return answer;
            }
            if let Some(e) = server.broken() {
                return Err(e.clone());
            }
            let next = self.call(&mut *server, |s| s.go_on(call.clock.now()))?;
            if server.requests().is_answered(id) {
                continue;
            }
            match next {
                Next::More => {}
                Next::At(at) => _ = self.answered.wait_until(&mut server, call.clock.instant(at)),
                Next::Nothing => {
                    return Err(DeviceError::new(libc::EIO, "the device does not answer the request"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ModelClock;
    use crate::config::Timing;
    use smrlab_units::{Blocks, HostOp, Lba};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    /// Answers the request before with each one; the first sleeps for twenty seconds.
    #[derive(Default)]
    struct Late {
        requests: Requests,
        last: Option<u64>,
        broken: Option<DeviceError>,
    }

    impl Server for Late {
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
            if request.op == HostOp::Flush {
                self.broken = Some(DeviceError::input("broken"));
                return Ok(Some(now));
            }
            self.requests.enter(request, host);
            if let Some(last) = self.last.replace(request.id) {
                self.requests.data_mut(last).unwrap().fill(7);
                self.requests.answer(last, Ok(now));
                return Ok(Some(now));
            }
            Ok(None)
        }

        fn go_on(&mut self, _: SimTime) -> Result<Next> {
            Ok(Next::At(SimTime::from_ms(20_000)))
        }
    }

    /// A read waits; what `then` sends answers it, or not.
    fn waits(then: HostRequest) -> (Result<SimTime>, [u8; 512]) {
        let (table, clock) =
            (Arc::new(Table::new(Late::default())), Arc::new(ModelClock::new(Timing::Model, 1.0, None)));
        let read = HostRequest::new(HostOp::Read, Lba(0), Blocks(1));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut out = [0; 512];
                (table.serve(clock.call(), read, HostBuffer::Read(&mut out)), out)
            });
            while table.lock().last.is_none() {
                std::thread::yield_now();
            }
            table.serve(clock.call(), then, HostBuffer::None).unwrap();
            waiting.join().unwrap()
        })
    }

    /// Whose request another thread's call answers, or who waits for a device that stops, does not sleep on.
    #[test]
    fn who_sleeps_is_woken() {
        let begun = Instant::now();
        let (answer, out) = waits(HostRequest::new(HostOp::Write, Lba(0), Blocks(0)));
        assert!(answer.is_ok() && out == [7; 512], "{answer:?}");
        let (answer, out) = waits(HostRequest::flush());
        assert!(answer.is_err_and(|e| e.to_string().contains("broken")) && out == [0; 512]);
        assert!(begun.elapsed() < Duration::from_secs(15));
    }

    /// A write of two blocks, 1 and 2, of which the second is read back; then it is on the medium.
    #[test]
    fn data_stay_until_nobody_needs_them() {
        let mut requests = Requests::default();
        let data: Vec<u8> = [1, 2].iter().flat_map(|n| [*n; 512]).collect();
        let write = HostRequest::new(HostOp::Write, Lba(10), Blocks(2)).numbered(4);
        let read = HostRequest::new(HostOp::Read, Lba(11), Blocks(1)).numbered(5);
        let mut out = [0; 512];
        requests.enter(&write, &HostBuffer::Write(&data));
        requests.enter(&read, &HostBuffer::Read(&mut out));
        assert!(requests.needs(4) && !requests.needs(6));
        assert!(requests.hear(4, &mut HostBuffer::None).is_none(), "nothing is known yet");
        requests.answer(4, Ok(SimTime(9)));
        requests.answer(4, Ok(SimTime(10)));
        assert_eq!(requests.hear(4, &mut HostBuffer::None).unwrap().unwrap(), SimTime(9), "the first counts");
        requests.answer(4, Ok(SimTime(11)));
        assert!(requests.hear(4, &mut HostBuffer::None).is_none(), "once");
        assert!(requests.bring(&read, &write), "acknowledged, and still there");
        requests.answer(5, Ok(SimTime(12)));
        assert!(requests.hear(5, &mut HostBuffer::Read(&mut out)).unwrap().is_ok() && out == [2; 512]);
        requests.release(4);
        assert!(requests.open.is_empty() && !requests.bring(&read, &write));
    }

    /// A request is forgotten once its thread has heard of it and nobody needs its data, whichever comes first.
    #[test]
    fn nothing_is_kept_that_nobody_asks_for_any_more() {
        let write = HostRequest::new(HostOp::Write, Lba(10), Blocks(1));
        for released_first in [false, true] {
            let mut requests = Requests::default();
            for id in 0..4 {
                requests.enter(&write.numbered(id), &HostBuffer::Write(&[1; 512]));
                requests.needs(id);
                requests.answer(id, Ok(SimTime(9)));
                if released_first {
                    requests.release(id);
                }
                assert!(requests.hear(id, &mut HostBuffer::None).is_some());
                assert_eq!(requests.open.len(), usize::from(!released_first));
                if !released_first {
                    requests.release(id);
                }
                assert!(requests.open.is_empty(), "{released_first}");
            }
        }
    }

    /// Of a request that failed in part its thread hears that, and gets no data.
    #[test]
    fn what_failed_in_part_has_failed() {
        let (mut requests, mut out) = (Requests::default(), [3; 512]);
        let read = HostRequest::new(HostOp::Read, Lba(0), Blocks(1));
        requests.enter(&read, &HostBuffer::Read(&mut out));
        assert!(
            requests.failed(0, &DeviceError::input("bad")) && !requests.failed(1, &DeviceError::input("bad"))
        );
        requests.answer(0, Ok(SimTime(1)));
        assert!(requests.hear(0, &mut HostBuffer::Read(&mut out)).unwrap().is_err());
        assert_eq!(out, [3; 512]);
    }
}
