//! Deaths, replacements, and the works of the array's own: rebuild and resynchronisation.

use super::*;

/// Rows in doubt after which it is remembered how far a resync is.
const REMEMBERED: u64 = 1024;

impl Raid5 {
    /// Rebuild of a unit, or resync of a row: reads all that it is made from.
    pub(super) fn start_job(&mut self, ticket: Ticket, job: u64, plan: &mut MemberPlan) {
        let mut state = self.begin(&Work::Job(job));
        state.at = At::Sources;
        let rows = if job >= RESYNC { job - RESYNC..job - RESYNC + 1 } else { self.rows_of_unit(job) };
        let target = match job >= RESYNC {
            true => Some(self.rows.disk(rows.start, self.rows.data())),
            false => self.rebuild.as_ref().map(|r| r.disk),
        };
        let sources = (0..self.rows.disks).filter(|d| Some(*d) != target);
        let lost = sources.clone().any(|d| !self.has(d, rows.start));
        if target.is_none() || lost {
            if job >= RESYNC {
                self.looked_at(rows.start, plan);
            } else {
                self.rebuild = None;
            }
            self.states.put(ticket, state);
            return self.end(ticket, plan);
        }
        let place = place(rows.start * self.rows.chunk..rows.end * self.rows.chunk);
        let why = if job >= RESYNC { Cause::Parity } else { Cause::Rebuild };
        for (slot, disk) in sources.enumerate() {
            plan.read_slot(ticket, MemberId(disk as u32), why, place, slot as u32);
        }
        self.states.put(ticket, state);
    }

    /// The sources are read: the target is written.
    pub(super) fn write_job(&mut self, ticket: Ticket, job: u64, plan: &mut MemberPlan) {
        let rows = if job >= RESYNC { job - RESYNC..job - RESYNC + 1 } else { self.rows_of_unit(job) };
        let target = match job >= RESYNC {
            true => Some(self.rows.disk(rows.start, self.rows.data())),
            false => self.rebuild.as_ref().map(|r| r.disk),
        };
        let Some(target) = target else { return self.end(ticket, plan) };
        let (lba, blocks) = place(rows.start * self.rows.chunk..rows.end * self.rows.chunk);
        let why = if job >= RESYNC { Cause::Parity } else { Cause::Rebuild };
        let request = HostRequest { why, ..HostRequest::new(HostOp::Write, lba, blocks) };
        plan.ask(ticket, MemberId(target as u32), request, |out| {
            let terms: Vec<Term> =
                (0..self.rows.data()).map(|slot| Term::Slot(slot as u32, Blocks::ZERO)).collect();
            let end = out.xor(&terms);
            out.push(blocks, end);
        });
    }

    /// The next row in doubt was looked at: it fits, or a disk that it needs is dead. Every so often that is remembered.
    fn looked_at(&mut self, row: u64, plan: &mut MemberPlan) {
        if self.resyncing && self.doubt.start == row {
            self.resyncing = false;
            self.doubt.start += 1;
            if self.doubt.is_empty() || self.doubt.start.is_multiple_of(REMEMBERED) {
                plan.record(Record { tag: DOUBT, words: [self.doubt.start, 0, 0] });
            }
        }
    }

    pub(super) fn job_done(
        &mut self,
        now: SimTime,
        ticket: Ticket,
        job: u64,
        changes: u64,
        plan: &mut MemberPlan,
    ) {
        if job >= RESYNC {
            plan.record(Record { tag: CLEAN, words: [job - RESYNC, job - RESYNC + 1, 0] });
            self.looked_at(job - RESYNC, plan);
        } else if let Some(rebuild) = self.rebuild.as_mut().filter(|_| changes == self.changes) {
            rebuild.under_way = rebuild.under_way.saturating_sub(1);
            plan.record(Record { tag: REBUILT, words: [job, 0, 0] });
            if rebuild.finished(job) {
                self.rebuilds += 1;
                self.rebuild_ns += now.since(rebuild.began).0;
                self.whole();
                plan.record(Record { tag: WHOLE, words: [0; 3] });
            }
        }
        self.end(ticket, plan);
    }

    /// The rebuilt disk is as good as any.
    pub(super) fn whole(&mut self) {
        if let Some(rebuild) = self.rebuild.take() {
            self.dead[rebuild.disk as usize] = false;
        }
        if self.dead.iter().all(|d| !d) {
            self.deaths = 0;
        }
    }

    pub(super) fn lose(&mut self, disk: u64) {
        self.rebuild = self.rebuild.take().filter(|r| r.disk != disk);
        self.dead[disk as usize] = true;
        self.deaths += 1;
        self.changes += 1;
    }

    pub(super) fn replace(&mut self, disk: u64, now: SimTime) -> bool {
        let alone = self.dead.iter().filter(|d| **d).count() == 1 && self.dead[disk as usize];
        if alone {
            let Options { order, seed, .. } = self.options;
            self.rebuild = Some(Rebuild::new(disk, self.units(), order, seed, now));
        }
        alone
    }
}
