//! The walk over a plan: the one order in which its steps are carried out.

use crate::AnyRecord;
use crate::plan::{MediaOp, OpId, Pause, Plan};

/// One step of a plan.
///
/// Between two operations come, in this order: records (durable now that the operations before have ended), a fence, the
/// pauses that were planned before the acknowledgement, the acknowledgement, the other pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A change of the layer's durable state.
    Record(AnyRecord<'a>),
    /// All so far must be durable before what follows reaches the medium.
    Fence,
    /// The host is told that its request is done.
    Acknowledge,
    /// Time passes.
    Pause(Pause),
    /// A media operation.
    Op(OpId, &'a MediaOp),
}

/// See [`Plan::walk`].
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    plan: &'a Plan,
    /// Operations done.
    done: u32,
    /// Before which operation there is something else; `u32::MAX`: nowhere.
    other: u32,
    record: u32,
    fence: u32,
    pause: u32,
    acknowledged: bool,
}

impl Plan {
    /// All steps of the plan in order, see [`Step`].
    #[inline]
    pub fn walk(&self) -> Walk<'_> {
        Walk::new(self)
    }
}

impl<'a> Walk<'a> {
    #[inline]
    fn new(plan: &'a Plan) -> Self {
        let plain = plan.ack().is_none()
            && plan.records().is_empty()
            && plan.fences().is_empty()
            && plan.pauses().is_empty();
        let mut walk =
            Self { plan, done: 0, other: u32::MAX, record: 0, fence: 0, pause: 0, acknowledged: false };
        walk.other = if plain { plan.ops().len() as u32 } else { walk.next_other() };
        walk
    }

    /// Where the next step is that is no operation.
    fn next_other(&self) -> u32 {
        let plan = self.plan;
        let ack = match (self.acknowledged, plan.ack()) {
            (true, _) => u32::MAX,
            (false, None) => plan.ops().len() as u32,
            (false, Some((after, _))) => after,
        };
        let record = plan.recorded_after().get(self.record as usize).copied().unwrap_or(u32::MAX);
        let fence = plan.fences().get(self.fence as usize).copied().unwrap_or(u32::MAX);
        let pause = plan.pauses().get(self.pause as usize).map_or(u32::MAX, |p| p.0);
        ack.min(record).min(fence).min(pause)
    }

    #[cold]
    fn other(&mut self) -> Option<Step<'a>> {
        let (plan, here) = (self.plan, self.done);
        let step = self.step_here(plan, here);
        self.other = self.next_other();
        step
    }

    fn step_here(&mut self, plan: &'a Plan, here: u32) -> Option<Step<'a>> {
        if plan.recorded_after().get(self.record as usize).is_some_and(|after| *after <= here) {
            let record = plan.records().get(self.record as usize);
            self.record += 1;
            return record.map(Step::Record);
        }
        if plan.fences().get(self.fence as usize).is_some_and(|f| *f <= here) {
            self.fence += 1;
            return Some(Step::Fence);
        }
        let pause = plan.pauses().get(self.pause as usize).filter(|p| p.0 <= here);
        // At the end of the plan all pauses come before an acknowledgement that was not asked for.
        let (after, pauses) = plan.ack().unwrap_or((plan.ops().len() as u32, u32::MAX));
        if !self.acknowledged && here >= after && (pause.is_none() || self.pause >= pauses) {
            self.acknowledged = true;
            return Some(Step::Acknowledge);
        }
        let (_, pause) = pause?;
        self.pause += 1;
        Some(Step::Pause(*pause))
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Step<'a>;

    #[inline]
    fn next(&mut self) -> Option<Step<'a>> {
        if self.done < self.other
            && let Some(op) = self.plan.ops().get(self.done as usize)
        {
            let id = OpId(self.done);
            self.done += 1;
            return Some(Step::Op(id, op));
        }
        if self.other == u32::MAX { None } else { self.other() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Endpoint, Record};
    use smrlab_units::{Blocks, Pba, SimTime};

    fn text(plan: &Plan) -> String {
        let each = |s: Step<'_>| match s {
            Step::Record(r) => format!("r{}", r.tag),
            Step::Fence => "fence".to_owned(),
            Step::Acknowledge => "ack".to_owned(),
            Step::Pause(p) => format!("{}ms", p.time.0 / 1_000_000),
            Step::Op(id, op) => format!("op{}@{}", id.0, op.pba.0),
        };
        plan.walk().map(each).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn steps_come_in_the_order_in_which_they_were_planned() {
        let mut plan = Plan::new(false, true);
        let record = |tag| Record { tag, words: [0; 3] };
        assert_eq!(text(&plan), "ack");
        plan.record(record(1));
        plan.fence();
        plan.write(Cause::Host, Pba(5), Blocks(1), Endpoint::Zero);
        plan.record(record(2));
        plan.pause(Cause::Journal, SimTime::from_ms(3));
        plan.acknowledge();
        plan.pause(Cause::Clean, SimTime::from_ms(4));
        plan.write(Cause::Clean, Pba(7), Blocks(1), Endpoint::Zero);
        plan.record(record(3));
        plan.pause(Cause::Clean, SimTime::from_ms(5));
        assert_eq!(text(&plan), "r1 fence op0@5 r2 3ms ack 4ms op1@7 r3 5ms");
        plan.clear();
        plan.read_staged(Cause::Clean, Pba(1), Blocks(1));
        plan.pause(Cause::Clean, SimTime::from_ms(1));
        assert_eq!(text(&plan), "op0@1 1ms ack");
        plan.clear();
        plan.acknowledge();
        plan.read_staged(Cause::Clean, Pba(1), Blocks(1));
        assert_eq!(text(&plan), "ack op0@1");
    }
}
