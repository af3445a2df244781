//! Deaths, replacements, and the works of the array's own: rebuild and resynchronisation.

use super::*;

/// Rows in doubt after which it is remembered how far a resync is.
const REMEMBERED: u64 = 1024;

impl Raid5 {
    /// Rebuild of a unit, or resync of a row: reads all that it is made from.
    pub(super) fn start_job(&mut self, ticket: Ticket, job: u64, plan: &mut MemberPlan) {
        if job >= REDO {
            return self.start_redo(ticket, job - REDO, plan);
        }
        if (APPLY..RESYNC).contains(&job) {
            return self.start_apply(ticket, job - APPLY, plan);
        }
        let mut state = self.begin(&Work::Job(job));
        state.at = At::Sources;
        let rows = if job >= RESYNC { job - RESYNC..job - RESYNC + 1 } else { self.rows_of_unit(job) };
        let target = match job >= RESYNC {
            true => Some(self.rows.disk(rows.start, self.rows.data())),
            false => self.disks.target(),
        };
        let sources = (0..self.rows.disks).filter(|d| Some(*d) != target);
        let lost = sources.clone().any(|d| !self.has(d, rows.start));
        if target.is_none() || lost {
            if job >= RESYNC {
                self.looked_at(rows.start, plan);
            } else {
                self.disks.give_up();
            }
            self.states.put(ticket, state);
            return self.end(ticket, plan);
        }
        let place = place(rows.start * self.rows.chunk..rows.end * self.rows.chunk);
        let why = if job >= RESYNC { Cause::Parity } else { Cause::Rebuild };
        for (slot, disk) in sources.enumerate() {
            plan.read_slot(ticket, MemberId(disk as u32), why, place, slot as u32);
        }
        let whole = 0..self.rows.chunk;
        for row in rows.filter(|_| job < RESYNC) {
            let to = (self.rows.data() as u32, &mut state.olds);
            self.read_images(ticket, (row, &whole, why), to, plan);
        }
        self.states.put(ticket, state);
    }

    /// The sources are read: the target is written.
    pub(super) fn write_job(&mut self, ticket: Ticket, job: u64, plan: &mut MemberPlan) {
        if job >= REDO {
            return self.write_redo(ticket, job - REDO, plan);
        }
        if (APPLY..RESYNC).contains(&job) {
            return self.write_apply(ticket, job - APPLY, plan);
        }
        let rows = if job >= RESYNC { job - RESYNC..job - RESYNC + 1 } else { self.rows_of_unit(job) };
        let target = match job >= RESYNC {
            true => Some(self.rows.disk(rows.start, self.rows.data())),
            false => self.disks.target(),
        };
        let Some(target) = target else { return self.end(ticket, plan) };
        let (lba, blocks) = place(rows.start * self.rows.chunk..rows.end * self.rows.chunk);
        let why = if job >= RESYNC { Cause::Parity } else { Cause::Rebuild };
        let request = HostRequest { why, ..HostRequest::new(HostOp::Write, lba, blocks) };
        let (slots, chunk) = (self.rows.data() as u32, self.rows.chunk);
        let olds = self.states.get(ticket).map_or(&[][..], |state| &state.olds);
        plan.ask(ticket, MemberId(target as u32), request, |out| {
            let mut push = |at: u64, n: Blocks, images: &mut dyn Iterator<Item = Term>| {
                let sources = (0..slots).map(|slot| Term::Slot(slot, Blocks(at)));
                let terms: Vec<Term> = sources.chain(images).collect();
                let end = out.xor(&terms);
                out.push(n, end);
            };
            if olds.is_empty() {
                return push(0, blocks, &mut std::iter::empty());
            }
            for row in rows.clone() {
                for piece in Self::cut_at_images(olds, row, &(0..chunk)) {
                    let at = (row - rows.start) * chunk + piece.start;
                    let mut images = Self::image_terms(olds, slots, row, piece.start);
                    push(at, Blocks(piece.end - piece.start), &mut images);
                }
            }
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
        if job >= REDO {
            self.give(&mut vec![job - REDO], plan);
        } else if job >= RESYNC {
            plan.record(Record { tag: CLEAN, words: [job - RESYNC, job - RESYNC + 1, 0] });
            self.void(job - RESYNC..job - RESYNC + 1, &(0..self.rows.chunk), plan);
            self.looked_at(job - RESYNC, plan);
        } else if job >= APPLY {
            return self.applied(ticket, job - APPLY, true, plan);
        } else {
            self.disks.rebuilt(now, job, changes, plan);
        }
        self.end(ticket, plan);
    }

    /// What the rebuild of a disk begins with.
    pub(super) fn rebuilds(&self, now: SimTime) -> impl Fn(u64) -> Rebuild + use<> {
        let (units, Options { order, seed, .. }) = (self.units(), self.options);
        move |disk| Rebuild::new(disk, units, order, seed, now)
    }
}
