//! A session after its login: commands, data, tasks, and the numbers that keep them in order.

mod answers;
mod management;
mod order;
mod out;

use crate::keys::{self, Keys, Text};
use crate::login::{Agreed, MOST_RECEIVED, MOST_TEXT, WINDOW};
use crate::pdu::{self, NO_TAG, Pdu, opcode};
use crate::target::{Seat, Target};
use order::{Order, Work};
pub(crate) use out::Out;
use parking_lot::{Condvar, Mutex};
use smrlab_device::buffer::{Buffer, Spare};
use smrlab_scsi::{Refused, Sense, data_out, execute, execute_absent, takes_exactly};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The target's tag of an exchange of text that goes on.
const TEXT_TAG: u32 = 1;
/// The command that reads a unit attention, which is its data and no refusal (SPC).
const REQUEST_SENSE: u8 = 0x03;
/// PERSISTENT RESERVE OUT, PREEMPT AND ABORT.
const PREEMPT_AND_ABORT: [u8; 2] = [0x5f, 0x05];

/// What a session reads from.
pub trait Wire: Read {
    /// Whether there is more that came already.
    fn waiting(&self) -> bool;
}

/// A command that was taken.
struct Task {
    header: Pdu,
    order: Order,
    /// How often the logical unit had been reset, and commands of this session aborted by another one.
    resets: u64,
    aborts: u64,
    /// What its CDB needs from the host, and what of that comes: no more than the host says that it sends.
    needed: u64,
    wanted: usize,
    data: Buffer,
    /// The tag of the R2T that is out, and the number of the Data-Out that comes next.
    transfer: u32,
    next_data: u32,
    ready: u32,
    /// Bytes that the R2T that is out asks for still.
    asked: usize,
}

/// See the [module](self).
pub struct Session<'a, W> {
    target: &'a Target,
    agreed: Agreed,
    seat: Seat<'a>,
    /// Where the initiator reached this target.
    address: String,
    out: Arc<Mutex<Out<W>>>,
    work: Mutex<Work>,
    more: Condvar,
    /// A task that was carried out is over.
    ended: Condvar,
    /// What commands' data are received in.
    spare: Mutex<Spare>,
    /// Text that goes on in the next request.
    text: Mutex<Vec<u8>>,
    /// How many changes of mode pages this session knows of.
    modes: AtomicU64,
    /// Bytes of data in one PDU that the initiator takes: it may say so at any time.
    most_sent: AtomicUsize,
}

/// What is done after a PDU.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

/// Sends a session's workers home when it ends, by a panic too: the session waits for them.
struct Over<'a, 'b, W>(&'a Session<'b, W>);

impl<W> Drop for Over<'_, '_, W> {
    fn drop(&mut self) {
        self.0.work.lock().over = true;
        self.0.more.notify_all();
    }
}

fn broken(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl<'a, W: Write + Send> Session<'a, W> {
    /// A session as it was agreed on.
    pub fn new(target: &'a Target, agreed: Agreed, address: String, to: W) -> Self {
        let out = Arc::new(Mutex::new(Out::new(&agreed, to)));
        Self::with(target, agreed, address, out)
    }

    /// The same with a sending side that others have, too.
    pub(crate) fn with(target: &'a Target, agreed: Agreed, address: String, out: Arc<Mutex<Out<W>>>) -> Self {
        let modes = AtomicU64::new(target.mode_changes.load(Relaxed));
        let (work, spare, text) = (Mutex::default(), Mutex::default(), Mutex::default());
        let seat = target.seat(agreed.port(), !agreed.discovery);
        let (more, ended) = (Condvar::new(), Condvar::new());
        let most_sent = AtomicUsize::new(agreed.most_sent);
        Self { target, agreed, seat, address, out, work, more, ended, spare, text, modes, most_sent }
    }

    /// Serves it until one of the two sides ends it.
    ///
    /// # Errors
    /// What reading and writing met, and what breaks the protocol.
    pub fn serve(&self, mut from: impl Wire) -> io::Result<()> {
        if self.target.workers < 2 {
            return self.receive(&mut from);
        }
        std::thread::scope(|scope| {
            for _ in 0..self.target.workers {
                scope.spawn(|| self.worker());
            }
            let _over = Over(self);
            self.receive(&mut from)
        })
    }

    /// Carries out tasks until the session is over.
    fn worker(&self) {
        loop {
            let mut work = self.work.lock();
            let task = loop {
                if work.over {
                    return;
                }
                match work.next() {
                    Some(task) => break task,
                    None => self.more.wait(&mut work),
                }
            };
            drop(work);
            // A connection that is gone ends at the reader.
            let _ = self.run(task).and_then(|()| self.out.lock().to.flush());
        }
    }

    /// Carries out all tasks that may begin.
    fn carry_out(&self) -> io::Result<()> {
        loop {
            let task = self.work.lock().next();
            let Some(task) = task else { return Ok(()) };
            self.run(task)?;
        }
    }

    fn receive(&self, from: &mut impl Wire) -> io::Result<()> {
        let mut tasks = BTreeMap::new();
        let mut resets = self.target.resets.load(Relaxed);
        loop {
            if !from.waiting() {
                self.out.lock().to.flush()?;
            }
            let pdu = pdu::head(from, self.agreed.digests, MOST_RECEIVED)?;
            let mut data = self.place(&pdu, &mut tasks);
            let whole = data.len() + pdu.length();
            pdu::body(from, self.agreed.digests, data.more(pdu::padded(pdu.length())))?;
            data.truncate(whole);
            let next = self.take(pdu, data, &mut tasks, &mut resets)?;
            if self.target.workers < 2 {
                self.carry_out()?;
            }
            if next == Next::End {
                return self.out.lock().to.flush();
            }
        }
    }

    /// Where the data of a PDU go: those that an R2T asked for behind what came before.
    fn place(&self, pdu: &Pdu, tasks: &mut BTreeMap<u32, Task>) -> Buffer {
        match tasks.get_mut(&pdu.tag()) {
            Some(task) if pdu.opcode() == opcode::DATA_OUT && pdu.length() <= task.asked => {
                std::mem::take(&mut task.data)
            }
            _ => self.spare.lock().take(),
        }
    }

    fn take(
        &self,
        pdu: Pdu,
        data: Buffer,
        tasks: &mut BTreeMap<u32, Task>,
        resets: &mut u64,
    ) -> io::Result<Next> {
        let numbered = !pdu.immediate() && !matches!(pdu.opcode(), opcode::DATA_OUT | opcode::SNACK);
        // What is not the next one, or outside the window, is not heard.
        if numbered && !self.out.lock().takes(pdu.word(24)) {
            return Ok(Next::GoOn);
        }
        match pdu.opcode() {
            opcode::COMMAND if !self.agreed.discovery => self.command(pdu, data, tasks, resets)?,
            opcode::DATA_OUT if !self.agreed.discovery => self.data(&pdu, data, tasks)?,
            opcode::NOP_OUT => self.nop(&pdu, &data)?,
            opcode::TASK if !self.agreed.discovery => return self.task(&pdu, tasks),
            opcode::TEXT => self.text(&pdu, &data)?,
            opcode::LOGOUT => return self.logout(&pdu),
            // Nothing is sent again at error recovery level 0.
            opcode::SNACK => self.reject(&pdu, 0x04)?,
            _ => self.reject(&pdu, 0x05)?,
        }
        Ok(Next::GoOn)
    }

    /// Ends the session, or its connection: the only one. Connections are not recovered.
    fn logout(&self, pdu: &Pdu) -> io::Result<Next> {
        let (reason, connection) = (pdu.flags() & 0x7f, (pdu.word(20) >> 16) as u16);
        let (answer, next) = match reason {
            0 => (0, Next::End),
            1 if connection == self.agreed.connection => (0, Next::End),
            // There is no such connection; recovery is not supported; other reasons are reserved.
            1 => (1, Next::GoOn),
            2 => (2, Next::GoOn),
            _ => return self.reject(pdu, 0x09).map(|()| Next::GoOn),
        };
        let mut response = Pdu::new(opcode::LOGOUT_RESPONSE).with(16, pdu.tag());
        response.header[2] = answer;
        self.send(response, &[])?;
        Ok(next)
    }

    /// Sends a response that has a status number.
    fn send(&self, pdu: Pdu, data: &[u8]) -> io::Result<()> {
        self.out.lock().send(pdu, data)
    }

    fn command(
        &self,
        pdu: Pdu,
        mut data: Buffer,
        tasks: &mut BTreeMap<u32, Task>,
        resets: &mut u64,
    ) -> io::Result<()> {
        let (disk, cdb) = (&*self.target.disk, &pdu.header[32..48]);
        let writes = pdu.flags() & 0x20 != 0;
        if tasks.contains_key(&pdu.tag()) || writes && pdu.flags() & 0x80 == 0 {
            return Err(broken("a tag that is in use, or data that were not asked for"));
        }
        let most = if writes && self.agreed.immediate { self.agreed.first_burst } else { 0 };
        if data.len() > most {
            return Err(broken("more immediate data than was agreed"));
        }
        if pdu.immediate() && self.out.lock().open >= 2 * WINDOW {
            // They go past the window, and have an end, too.
            return self.reject(&pdu, 0x06);
        }
        self.out.lock().open += 1;
        let (here, asks) = (unit_0(&pdu), cdb[0] == REQUEST_SENSE);
        // Of another unit there is nothing to tell.
        if here
            && !matches!(cdb[0], 0x12 | 0xa0)
            && let Some(attention) = self.attention(resets)
        {
            let (described, most) = (cdb[1] & 1 != 0, usize::from(cdb[4]));
            let sense = || attention.data(described).into_iter().take(most).collect::<Vec<u8>>();
            let told = if asks { Ok(sense()) } else { Err(attention.into()) };
            return self.answer(&pdu, 0, told);
        }
        let needed = if here { data_out(disk, cdb) } else { 0 };
        if here && takes_exactly(disk, cdb) && u64::from(pdu.word(20)) != needed {
            return self.answer(&pdu, 0, Err(Sense::INVALID_FIELD.into()));
        }
        let wanted = if writes { needed.min(u64::from(pdu.word(20))) as usize } else { 0 };
        data.truncate(wanted);
        data.reserve(wanted);
        let (order, resets) = (self.work.lock().place(&pdu), self.target.resets.load(Relaxed));
        let mut task = Task {
            header: pdu,
            order,
            resets,
            aborts: self.seat.came(),
            needed,
            wanted,
            data,
            transfer: 0,
            next_data: 0,
            ready: 0,
            asked: 0,
        };
        if task.data.len() < task.wanted {
            self.ask(&mut task)?;
            tasks.insert(task.header.tag(), task);
            return Ok(());
        }
        self.start(task);
        Ok(())
    }

    /// What others did to the logical unit since this session's last command, said once.
    fn attention(&self, resets: &mut u64) -> Option<Sense> {
        let now = self.target.resets.load(Relaxed);
        let modes = self.target.mode_changes.load(Relaxed);
        if std::mem::replace(resets, now) != now {
            return Some(Sense::WAS_RESET);
        }
        if self.modes.swap(modes, Relaxed) != modes {
            return Some(Sense::MODES_CHANGED);
        }
        let disk = &*self.target.disk;
        let mut told = None;
        disk.reserved(&mut |all| told = all.attention(&self.seat.port));
        if told.is_some() {
            disk.reserve(&mut |all| told = all.take_attention(&self.seat.port));
        }
        told
    }

    /// Sends an R2T for what comes next.
    fn ask(&self, task: &mut Task) -> io::Result<()> {
        task.asked = (task.wanted - task.data.len()).min(self.agreed.burst);
        task.transfer = task.transfer.wrapping_add(1);
        task.next_data = 0;
        let mut pdu = Pdu::new(opcode::READY);
        pdu.header[8..16].copy_from_slice(&task.header.header[8..16]);
        let pdu = pdu
            .with(16, task.header.tag())
            .with(20, task.transfer)
            .with(36, task.ready)
            .with(40, task.data.len() as u32)
            .with(44, task.asked as u32);
        task.ready += 1;
        self.out.lock().send_ready(pdu)
    }

    /// Data that an R2T asked for.
    fn data(&self, pdu: &Pdu, data: Buffer, tasks: &mut BTreeMap<u32, Task>) -> io::Result<()> {
        // Of a task that was aborted.
        let Some(task) = tasks.get_mut(&pdu.tag()) else { return Ok(()) };
        let last = pdu.flags() & 0x80 != 0;
        let fits = pdu.length() <= task.asked && (last == (pdu.length() == task.asked));
        let behind = pdu.word(40) as usize == data.len() - pdu.length();
        let wrong = [
            (pdu.word(20) != task.transfer, Sense::TRANSFER_TAG),
            (!fits, Sense::DATA_AMOUNT),
            // One that came before it was lost.
            (pdu.word(36) != task.next_data, Sense::DATA_LOST),
            (!behind, Sense::DATA_OFFSET),
        ];
        if let Some((_, why)) = wrong.into_iter().find(|(wrong, _)| *wrong) {
            let Some(task) = tasks.remove(&pdu.tag()) else { return Ok(()) };
            self.seat.leaves(task.aborts);
            self.leave(task.order);
            return self.answer(&task.header, 0, Err(why.into()));
        }
        task.data = data;
        task.asked -= pdu.length();
        task.next_data += 1;
        if !last {
            return Ok(());
        }
        if task.data.len() < task.wanted {
            return self.ask(task);
        }
        if let Some(task) = tasks.remove(&pdu.tag()) {
            self.start(task);
        }
        Ok(())
    }

    /// Has a task carried out in its turn.
    fn start(&self, task: Task) {
        let mut work = self.work.lock();
        work.running.insert(task.header.tag(), true);
        work.queue.insert(task.order, task);
        drop(work);
        self.more.notify_one();
    }

    /// A task is answered, or aborted: others may have waited for that.
    fn leave(&self, order: Order) {
        if self.work.lock().leave(order) {
            self.more.notify_all();
        }
    }

    fn run(&self, task: Task) -> io::Result<()> {
        let (disk, cdb) = (&*self.target.disk, &task.header.header[32..48]);
        // What aborts others' commands waits for those that began, and none begins meanwhile.
        let alone = (cdb[..2] == PREEMPT_AND_ABORT).then(|| self.target.at_work.write());
        let together = alone.is_none().then(|| self.target.at_work.read());
        // Another session may have reset the logical unit, or aborted what waits.
        let ended = self.seat.leaves(task.aborts) || task.resets != self.target.resets.load(Relaxed);
        let answer = (!ended).then(|| match unit_0(&task.header) {
            true => self.executed(cdb, &task.data),
            false => execute_absent(disk, cdb),
        });
        if alone.is_some() {
            self.abort_preempted();
        }
        drop((alone, together));
        let wanted = self.work.lock().running.remove(&task.header.tag()) != Some(false);
        self.ended.notify_all();
        self.spare.lock().give(task.data);
        let done = match answer.filter(|_| wanted) {
            Some(answer) => self.answer(&task.header, task.needed, answer),
            None => self.out.lock().give_back(),
        };
        self.leave(task.order);
        done
    }

    /// Carries a command out; others hear of it where it changes mode pages.
    fn executed(&self, cdb: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
        let disk = &*self.target.disk;
        let before = disk.modes();
        let answer = execute(disk, &self.seat.port, cdb, data);
        if matches!(cdb[0], 0x15 | 0x55) && disk.modes() != before {
            self.target.mode_changes.fetch_add(1, Relaxed);
            self.modes.fetch_add(1, Relaxed);
        }
        answer
    }

    fn nop(&self, pdu: &Pdu, data: &[u8]) -> io::Result<()> {
        if pdu.tag() == NO_TAG {
            return Ok(());
        }
        let mut response = Pdu::new(opcode::NOP_IN).with(16, pdu.tag()).with(20, NO_TAG);
        response.header[8..16].copy_from_slice(&pdu.header[8..16]);
        self.send(response, &data[..data.len().min(self.most_sent.load(Relaxed))])
    }

    /// A text request, whose text may go on in the next one (C).
    fn text(&self, pdu: &Pdu, data: &[u8]) -> io::Result<()> {
        let mut text = Text::default();
        let mut held = self.text.lock();
        if pdu.word(20) == NO_TAG {
            held.clear();
        }
        held.extend_from_slice(data);
        if held.len() > MOST_TEXT {
            return Err(broken("a text request that does not end"));
        }
        if pdu.flags() & 0x40 != 0 {
            let mut response = Pdu::new(opcode::TEXT_RESPONSE).with(16, pdu.tag()).with(20, TEXT_TAG);
            response.header[1] = 0;
            return self.send(response, &[]);
        }
        let keys = Keys::parse(&std::mem::take(&mut *held));
        let keys = keys.ok_or_else(|| broken("a text request that is no text"))?;
        for (key, value) in keys.pairs() {
            let whom =
                self.agreed.discovery && value == "All" || value == self.target.name() || value.is_empty();
            match key {
                "SendTargets" if whom => {
                    text.add("TargetName", self.target.name());
                    text.add("TargetAddress", format!("{},1", self.address));
                }
                "SendTargets" => {}
                "MaxRecvDataSegmentLength" => match keys::length(value) {
                    Some(length) => self.most_sent.store(length, Relaxed),
                    None => text.add(key, "Reject"),
                },
                _ => text.add(key, if keys::of_logins(key) { "Reject" } else { "NotUnderstood" }),
            }
        }
        // The initiator says when the exchange is over (F).
        let last = pdu.flags() & 0x80 != 0;
        let tag = if last { NO_TAG } else { TEXT_TAG };
        let mut response = Pdu::new(opcode::TEXT_RESPONSE).with(16, pdu.tag()).with(20, tag);
        response.header[1] = u8::from(last) << 7;
        self.send(response, &text.0)
    }

    fn reject(&self, pdu: &Pdu, reason: u8) -> io::Result<()> {
        let mut answer = Pdu::new(opcode::REJECT).with(16, NO_TAG);
        answer.header[2] = reason;
        self.send(answer, &pdu.header)
    }
}

/// Whether a PDU is for logical unit 0, in one of the ways of writing that.
fn unit_0(pdu: &Pdu) -> bool {
    pdu.header[8] & 0x3f == 0 && pdu.header[9..16] == [0; 7]
}
