//! Members behind schedulers: their decisions are events of the loop, and a phase is over when the last of its requests is answered.

use super::EventLoop;
use crate::{ArrayObserver, Member, MemberId};
use smrlab_units::SimTime;

impl EventLoop {
    /// The next decision of a member's scheduler.
    pub(super) fn next_decision(&self) -> Option<(SimTime, MemberId)> {
        if self.queued { self.decisions().min() } else { None }
    }

    /// Of each member with requests that wait, when its scheduler is to choose one.
    fn decisions(&self) -> impl Iterator<Item = (SimTime, MemberId)> {
        (0..).map(MemberId).zip(&self.members).filter_map(|(id, slot)| match &slot.member {
            Member::Drive(queue) if !slot.dead => Some((queue.next_decision()?, id)),
            _ => None,
        })
    }

    /// Members behind schedulers serve requests only where the caller has them: for tests that want any order.
    #[must_use]
    pub fn decided_by_caller(self) -> Self {
        Self { queued: false, ..self }
    }

    /// Members behind schedulers that have requests.
    pub fn waiting(&self) -> impl Iterator<Item = MemberId> {
        self.decisions().map(|(_, id)| id)
    }

    /// Has a member's scheduler choose a request, and the member serve it.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn decides<O: ArrayObserver>(&mut self, member: MemberId, watch: &mut O) -> Result<(), O::Error> {
        let due = self.decisions().find(|(_, id)| *id == member);
        due.map_or(Ok(()), |(at, _)| self.decide(at.max(self.now), member, watch))
    }

    /// Whether a member still has to write what it has acknowledged.
    pub fn members_wait(&self) -> bool {
        self.next_decision().is_some()
    }

    pub(super) fn decide<O: ArrayObserver>(
        &mut self,
        at: SimTime,
        member: MemberId,
        watch: &mut O,
    ) -> Result<(), O::Error> {
        self.now = self.now.max(at);
        if let Some(queue) = self.members[member.at()].member.queue() {
            queue.decide(at, watch)?;
        }
        self.take_answers(member);
        Ok(())
    }

    /// Takes what a member has answered.
    pub(super) fn take_answers(&mut self, member: MemberId) {
        let Some(queue) = self.members[member.at()].member.queue() else { return };
        let waits = self.schedule.timeout.and_then(|_| queue.unanswered_since());
        let (could_not, answers, free) = (queue.could_not(), queue.answers(), queue.drive().free_at());
        // What waits has no answer before the drive is free: where that is too late, it is known by now.
        if let Some(came) = waits {
            self.times(member, came, free);
        }
        if could_not {
            self.dies(member, self.now);
        }
        answers.into_iter().for_each(|answer| self.answer(member, answer));
    }

    /// A member is dead: nothing of what it had comes back.
    pub(super) fn bury(&mut self, member: MemberId) {
        let now = self.now;
        if let Some(queue) = self.members[member.at()].member.queue() {
            queue.dies(now);
        }
        self.take_answers(member);
        self.cut_turns(member);
    }
}
