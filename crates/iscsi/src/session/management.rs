//! Task management: tasks that are aborted, and resets.

use super::order::{Order, Work};
use super::{Next, Session, Task, unit_0};
use crate::pdu::{Pdu, opcode};
use smrlab_scsi::Sense;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::Ordering::Relaxed;

impl<W: Write + Send> Session<'_, W> {
    /// Task management: what was asked for is not answered any more. A cold reset ends all sessions.
    pub(super) fn task(&self, pdu: &Pdu, tasks: &mut BTreeMap<u32, Task>) -> io::Result<Next> {
        let function = pdu.flags() & 0x7f;
        let response = match (function, unit_0(pdu)) {
            (1, _) => {
                let tag = pdu.word(20);
                let waited = tasks.remove(&tag);
                // 1: the task does not exist.
                u8::from(
                    !self.forget(waited.map(|task| (task.order, task.aborts)))
                        && !self.abort(|running| running == tag),
                )
            }
            // There is no logical unit but one; sets of tasks are those of this session (TST of the control mode page).
            (2 | 4 | 5, false) => 2,
            (how @ (2 | 4 | 5 | 6 | 7), _) => {
                self.forget(std::mem::take(tasks).into_values().map(|task| (task.order, task.aborts)));
                self.abort(|_| true);
                if how > 4 {
                    let disk = &self.target.disk;
                    // What other sessions have at work comes to its end; what waits there is not carried out.
                    let _alone = self.target.at_work.write();
                    disk.reserve(&mut smrlab_scsi::Reservations::reset);
                    disk.set_modes(disk.saved().unwrap_or_default());
                    // All hear of it with their next command, this one's initiator too.
                    self.target.resets.fetch_add(1, Relaxed);
                }
                0
            }
            // A task goes on by no other connection.
            (8, _) => 4,
            // Function not supported: auto contingent allegiance.
            _ => 5,
        };
        let mut answer = Pdu::new(opcode::TASK_RESPONSE).with(16, pdu.tag());
        answer.header[2] = response;
        self.send(answer, &[])?;
        if function != 7 {
            return Ok(Next::GoOn);
        }
        self.out.lock().to.flush()?;
        self.target.end_sessions();
        Ok(Next::End)
    }

    /// Aborts tasks by their tags: those that wait for a worker are not carried out, those that are carried out have come to their end on return, so
    /// that none changes the disk behind that. Answers whether there were any.
    fn abort(&self, which: impl Fn(u32) -> bool) -> bool {
        let mut work = self.work.lock();
        let Work { queue, running, .. } = &mut *work;
        let mut waited = Vec::new();
        queue.retain(|order, task| {
            let ends = which(task.header.tag()) && running.remove(&task.header.tag()).is_some();
            waited.extend(ends.then_some((*order, task.aborts)));
            !ends
        });
        let carried_out: Vec<u32> = running.keys().copied().filter(|tag| which(*tag)).collect();
        for tag in &carried_out {
            running.insert(*tag, false);
        }
        while carried_out.iter().any(|tag| work.running.contains_key(tag)) {
            self.ended.wait(&mut work);
        }
        drop(work);
        self.forget(waited) || !carried_out.is_empty()
    }

    /// What PREEMPT AND ABORT asked for: commands of hosts that lost their registration, and that have not begun, are neither carried out nor
    /// answered. Another initiator's next command hears of that (SAM-5; TAS is 0).
    pub(super) fn abort_preempted(&self) {
        self.target.disk.reserve(&mut |all| {
            for port in all.take_aborted() {
                if self.target.abort(&port) && port != self.seat.port {
                    all.tell(&port, Sense::COMMANDS_CLEARED);
                }
            }
        });
    }

    /// Tasks that are neither carried out nor answered. Whether there are any.
    fn forget(&self, tasks: impl IntoIterator<Item = (Order, u64)>) -> bool {
        let mut any = false;
        for (order, aborts) in tasks {
            self.seat.leaves(aborts);
            self.leave(order);
            self.out.lock().open -= 1;
            any = true;
        }
        any
    }
}
