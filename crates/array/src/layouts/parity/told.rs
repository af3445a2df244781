//! Writes told as they are, without plans, phases and locks: for callers to whom neither time nor data matter, as before a run.

use super::Parity;
use super::journal::ROWS;
use super::operation::WriteOp;
use crate::{MemberId, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use std::ops::Range;

/// Is told who reads or writes what.
type Tell<'a> = dyn FnMut(MemberId, &HostRequest) + 'a;

/// Tells what is planned, and empties the plan.
fn hand_over(plan: &mut MemberPlan, tell: &mut Tell<'_>) {
    plan.ops().iter().for_each(|op| tell(op.member, &op.request));
    plan.clear();
}

impl Parity {
    /// Does a write to whole disks that leaves nothing behind but what they hold: tells who reads and writes what, in the order in which
    /// it would be done; `false`: nothing was done, it is more than that.
    pub(super) fn tell_write(&mut self, r: &HostRequest, tell: &mut Tell<'_>) -> bool {
        let remembers = self.intent.left_dirty().next().is_some() || self.places.open().next().is_some();
        if remembers || self.logs_parity() || self.disks.degraded() {
            return false;
        }
        let (all, whole) = (self.rows.rows_of(r.span()), self.told_at_once(r));
        let (mut op, mut plan) = (self.new_write(Ticket(0), *r), std::mem::take(&mut self.scratch));
        let mut parts = all.clone().filter(|row| !whole.contains(row));
        let planned = parts.all(|row| self.plan_row(row, &mut op).is_ok());
        debug_assert!(planned, "no disk is dead");
        self.counts.full += whole.end - whole.start;
        self.read_old(&op, &mut plan);
        hand_over(&mut plan, tell);
        let mut next = all.start;
        while next < all.end {
            let rows = next..all.end.min(next + if self.options.journal { ROWS } else { all.end });
            self.tell_journal(rows.clone(), &mut op, &mut plan, tell);
            for row in rows.clone() {
                if whole.contains(&row) {
                    self.tell_row(row, r, tell);
                    continue;
                }
                self.write_chunks(row, &op, &mut plan);
                self.write_parities(row, &op, &mut plan);
                hand_over(&mut plan, tell);
            }
            op.places.drain(..).for_each(|place| _ = self.places.give(place));
            next = rows.end;
        }
        self.scratch = plan;
        self.pool.push(op);
        true
    }

    /// The rows of a write that nothing need be planned of: whole ones that do not go to a journal.
    fn told_at_once(&self, r: &HostRequest) -> Range<u64> {
        let whole = self.whole_rows(r);
        if self.options.journal || whole.is_empty() { 0..0 } else { whole }
    }

    /// A whole row.
    fn tell_row(&self, row: u64, r: &HostRequest, tell: &mut Tell<'_>) {
        let rows = self.rows;
        let (lba, blocks) = rows.on_member(row, &(0..rows.chunk));
        for role in 0..rows.disks {
            let why = if role < rows.data() { r.why } else { Cause::Parity };
            tell(rows.member(row, role), &HostRequest { lba, blocks, why, ..*r });
        }
    }

    /// Rows go to the journal, where there is one; it has room for them.
    fn tell_journal(
        &mut self,
        rows: Range<u64>,
        op: &mut WriteOp,
        plan: &mut MemberPlan,
        tell: &mut Tell<'_>,
    ) {
        if !self.options.journal {
            return;
        }
        for row in rows {
            let Some(place) = self.take_place(row, plan) else { continue };
            op.places.push(place);
            self.write_place(row, place, op, plan);
        }
        self.counts.journalled += op.places.len() as u64;
        self.places.durable();
        hand_over(plan, tell);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Array, ArrayContext, MemberId, MemberPlan, Phase, Records, Ticket, Work, counted, parse};
    use smrlab_stl::HostRequest;
    use smrlab_units::rng::Rng;
    use smrlab_units::{Blocks, HostOp, Lba};

    type Asked = Vec<(MemberId, HostRequest)>;

    fn array(text: &str) -> Box<dyn Array> {
        let chosen = parse(text).unwrap();
        let disks = vec![Blocks(1600); chosen.disks as usize];
        chosen.build(&ArrayContext::new(&disks)).unwrap().array
    }

    /// What a write asks for, phase by phase, and before which of these requests a fence stood.
    fn planned(array: &mut dyn Array, r: &HostRequest) -> (Asked, Vec<usize>) {
        let (mut plan, mut asked, mut fences) = (MemberPlan::new(false), Vec::new(), Vec::new());
        array.start(Ticket(0), &Work::Host(*r), &mut plan);
        loop {
            fences.extend(plan.is_fence().then_some(asked.len()));
            asked.extend(plan.ops().iter().map(|op| (op.member, op.request)));
            if plan.ops().is_empty() {
                assert_eq!(plan.outcomes().len(), 1, "{r:?}");
                return (asked, fences);
            }
            plan = MemberPlan::new(false);
            array.complete(Phase { ticket: Ticket(0), lost: false, untaken: None, busy: false }, &mut plan);
        }
    }

    fn told(array: &mut dyn Array, r: &HostRequest) -> Option<Asked> {
        let mut all = Vec::new();
        array.writes(r, &mut |member, own| all.push((member, *own))).then_some(all)
    }

    fn state(array: &dyn Array) -> (String, Records) {
        let mut records = Records::default();
        array.checkpoint(&mut records);
        (format!("{:?}", counted(array)), records)
    }

    /// Two arrays get the same writes, one of them told and one planned, and now and then both planned: the disks and the SSD are asked
    /// for the same in the same order, and what the arrays count and keep is the same, the places of the journal that a cut would need too.
    #[test]
    fn a_write_is_told_as_it_is_planned() {
        let shapes = [
            "raid5,disks=4,layout=left-symmetric",
            "raid5,disks=5,write=modify",
            "raid6,disks=6,layout=right-asymmetric",
            "raid5,disks=3,layout=parity-last",
        ];
        for (i, shape) in shapes.into_iter().enumerate() {
            for more in ["", ",intent=on", ",journal=on"] {
                let text = format!("{shape},chunk=8blk{more}");
                let (mut one, mut other, mut rng) = (array(&text), array(&text), Rng::new(i as u64));
                let host = one.host_blocks().0;
                for _ in 0..300 {
                    let lba = rng.below(host) & if rng.one_in(2) { !7 } else { !0 };
                    let most = [20, 200, host][rng.below(3) as usize].min(host - lba);
                    let blocks = 1 + rng.below(most);
                    let r = HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks));
                    let (asked, fences) = planned(&mut *one, &r);
                    if rng.one_in(4) {
                        assert_eq!(planned(&mut *other, &r), (asked, fences), "{text}: {r:?}");
                    } else {
                        assert_eq!(told(&mut *other, &r), Some(asked), "{text}: {r:?}");
                    }
                    assert_eq!(state(&*one), state(&*other), "{text}: {r:?}");
                }
            }
        }
    }

    /// Where a disk is dead, parity is logged, or records say that rows may not fit, a write is more than what disks are asked for.
    #[test]
    fn what_leaves_more_behind_is_not_told() {
        let r = HostRequest::new(HostOp::Write, Lba(0), Blocks(24));
        let mut degraded = array("raid5,disks=4,chunk=8blk");
        degraded.failed(MemberId(1), &mut MemberPlan::new(false));
        let logs = array("raid5,disks=4,chunk=8blk,parity=log,log=8blk,log_region=40blk");
        let mut cut = array("raid5,disks=4,chunk=8blk,intent=on");
        let mut plan = MemberPlan::new(false);
        cut.start(Ticket(0), &Work::Host(r), &mut plan);
        let mut again = array("raid5,disks=4,chunk=8blk,intent=on");
        again.recover(plan.records(), &mut MemberPlan::new(false));
        for mut array in [degraded, logs, again] {
            assert_eq!(told(&mut *array, &r), None);
        }
    }
}
