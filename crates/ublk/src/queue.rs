//! The queue of a device: one thread that takes the kernel's requests and hands back how they ended.
#![allow(unsafe_code)]

use crate::abi::{self, REQUEST_BYTES, Request};
use crate::answer::{Answer, Disk};
use io_uring::{IoUring, opcode, types};
use parking_lot::Mutex;
use smrlab_device::{DeviceError, Result};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Marks the completion that says that workers have answers.
const ANSWERS: u64 = u64::MAX;

/// Of prctl(2); the crate libc does not have it yet.
const PR_SET_IO_FLUSHER: i32 = 57;

/// The kernel's table of requests, one for each tag.
struct Requests {
    at: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the mapping is the queue's own and read by its thread alone.
unsafe impl Send for Requests {}

impl Requests {
    fn map(data: &File, depth: u16) -> std::io::Result<Self> {
        let bytes = (usize::from(depth) * REQUEST_BYTES).next_multiple_of(4096);
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping of a file that is open.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read, shared, data.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(Self { at, bytes }) }
    }

    /// The request with this tag, which is less than the depth.
    fn get(&self, tag: u16) -> Request {
        let at = self.at.cast::<[u8; REQUEST_BYTES]>();
        // SAFETY: within the mapping; the kernel leaves the request alone until it is answered.
        Request::parse(unsafe { at.add(usize::from(tag)).read_volatile() })
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

/// Who carries out requests while the queue takes others, where they take time.
struct Workers {
    jobs: Sender<(u16, Request)>,
    answers: Arc<Mutex<Vec<(u16, Answer)>>>,
    /// Counts answers: an eventfd.
    bell: File,
}

/// Lets this thread write out pages of others without waiting for its own disk.
fn as_flusher() {
    // SAFETY: no memory is involved. Without the right to do so everything goes on as before.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
}

/// Lets a client on the same processor send what it has before this thread takes it: one change of threads for several requests.
fn after_clients() {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: `priority` lives as long as the call. Where it is refused everything goes on as before.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &priority) };
}

impl Workers {
    fn start(disk: &Arc<Disk>, number: usize) -> std::io::Result<Self> {
        // SAFETY: a new file descriptor, owned here alone.
        let bell = match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) } {
            -1 => return Err(std::io::Error::last_os_error()),
            fd => unsafe { File::from_raw_fd(fd) },
        };
        let (jobs, taken) = channel();
        let taken: Arc<Mutex<Receiver<(u16, Request)>>> = Arc::new(Mutex::new(taken));
        let answers = Arc::default();
        for _ in 0..number {
            let (disk, taken, answers) = (disk.clone(), taken.clone(), Arc::clone(&answers));
            let bell = bell.try_clone()?;
            let work = move || {
                as_flusher();
                let mut buffer = Vec::new();
                loop {
                    // Ends with the queue.
                    let Ok((tag, request)) = taken.lock().recv() else { break };
                    let answer = disk.answer(tag, request, &mut buffer);
                    let list: &Mutex<Vec<(u16, Answer)>> = &answers;
                    list.lock().push((tag, answer));
                    let _ = (&bell).write_all(&1_u64.to_ne_bytes());
                }
            };
            std::thread::Builder::new().name("ublk".into()).spawn(work)?;
        }
        Ok(Self { jobs, answers, bell })
    }
}

/// A queue at work.
struct Queue {
    disk: Arc<Disk>,
    requests: Requests,
    ring: IoUring,
    workers: Option<Workers>,
    /// Requests that the kernel may still send.
    live: usize,
}

/// Starts the thread of a queue; `workers` carry out its requests, or itself where there are none. It ends with the device.
///
/// # Errors
/// What the operating system answers.
pub(crate) fn start(disk: Arc<Disk>, depth: u16, workers: usize) -> Result<JoinHandle<()>> {
    let fail = |e| DeviceError::io("ublk: making a queue", &e);
    let requests = Requests::map(&disk.data, depth).map_err(fail)?;
    let ring = IoUring::new(u32::from(depth) * 2).map_err(fail)?;
    let helpers = if workers > 0 { Some(Workers::start(&disk, workers).map_err(fail)?) } else { None };
    let mut queue = Queue { disk, requests, ring, workers: helpers, live: usize::from(depth) };
    let run = move || {
        as_flusher();
        if queue.workers.is_none() {
            after_clients();
        }
        // The kernel takes a queue's commands from the thread that sent the first one.
        if let Err(e) = queue.serve(depth) {
            eprintln!("smrlab: ublk: the queue ends: {e}");
        }
    };
    std::thread::Builder::new().name("ublk".into()).spawn(run).map_err(fail)
}

impl Queue {
    fn serve(&mut self, depth: u16) -> std::io::Result<()> {
        for tag in 0..depth {
            self.command(abi::FETCH, tag, Answer::default())?;
        }
        self.listen()?;
        let mut buffer = Vec::new();
        while self.live > 0 {
            match self.ring.submit_and_wait(1) {
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => continue,
                other => other?,
            };
            let done: Vec<(u64, i32)> = self.ring.completion().map(|c| (c.user_data(), c.result())).collect();
            for (what, result) in done {
                match what {
                    ANSWERS => self.hand_back()?,
                    tag if result == 0 => self.take(tag as u16, &mut buffer)?,
                    // The device ends: no request comes with this tag any more.
                    _ => self.live -= 1,
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, tag: u16, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        let request = self.requests.get(tag);
        match &self.workers {
            Some(workers) => workers.jobs.send((tag, request)).map_err(std::io::Error::other),
            None => {
                let answer = self.disk.answer(tag, request, buffer);
                self.command(abi::COMMIT_AND_FETCH, tag, answer)
            }
        }
    }

    /// Waits for the bell of the workers.
    fn listen(&mut self) -> std::io::Result<()> {
        let Some(workers) = &self.workers else { return Ok(()) };
        let bell = types::Fd(workers.bell.as_raw_fd());
        let entry = opcode::PollAdd::new(bell, libc::POLLIN as u32).build().user_data(ANSWERS);
        self.push(&entry)
    }

    /// Hands the workers' answers back to the kernel.
    fn hand_back(&mut self) -> std::io::Result<()> {
        let Some(workers) = &mut self.workers else { return Ok(()) };
        let mut count = [0; 8];
        workers.bell.read_exact(&mut count)?;
        let answers = std::mem::take(&mut *workers.answers.lock());
        for (tag, answer) in answers {
            self.command(abi::COMMIT_AND_FETCH, tag, answer)?;
        }
        self.listen()
    }

    fn command(&mut self, command: u32, tag: u16, answer: Answer) -> std::io::Result<()> {
        let fd = types::Fd(self.disk.data.as_raw_fd());
        let cmd = abi::done(tag, answer.result, answer.appended);
        self.push(&opcode::UringCmd16::new(fd, command).cmd(cmd).build().user_data(u64::from(tag)))
    }

    fn push(&mut self, entry: &io_uring::squeue::Entry) -> std::io::Result<()> {
        // SAFETY: the entry refers to no memory.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}
