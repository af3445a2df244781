//! What a served array asks of the event loop beyond a simulated one: recovery, deaths and replacements on command, background
//! work in steps.

use super::{Controller, Event};
use crate::member::Slot;
use crate::{ArrayObserver, Health, Member, MemberId, MemberPlan};
use smrlab_drive::Drive;
use smrlab_stl::Record;
use smrlab_units::SimTime;

impl Controller {
    /// When [`step`](Self::step) has something to do, if no request comes before.
    pub fn next_event(&self) -> Option<SimTime> {
        let idle = (self.hosts == 0).then_some(self.idle_since);
        let wake = self.array.wake_at(idle).map(|t| t.max(self.now));
        self.events.peek().map(|e| e.0.0).into_iter().chain(wake).min()
    }

    /// Takes up what an array left behind: the records of its state, `unclean` after a loss of power of the host.
    pub fn recover(
        &mut self,
        mut records: impl Iterator<Item = Record>,
        unclean: bool,
        watch: &mut impl ArrayObserver,
    ) {
        let mut plan = MemberPlan::new(self.plan.wants_data());
        self.array.recover(&mut records, &mut plan);
        if unclean {
            self.array.unclean(&mut plan);
        }
        for (i, slot) in self.members.iter_mut().enumerate() {
            slot.dead = self.array.health(MemberId(i as u32)) == Health::Dead;
        }
        self.planned(|_, all| *all = plan, watch);
    }

    /// A member dies at `now`.
    pub fn fail(&mut self, now: SimTime, member: MemberId, watch: &mut impl ArrayObserver) {
        self.now = self.now.max(now);
        self.members[member.at()].dies_at = Some(self.now);
        self.happens(Event::Failed(member), watch);
    }

    /// A fresh drive takes the place of a dead member at `now`.
    pub fn replace(&mut self, now: SimTime, member: MemberId, fresh: Member, watch: &mut impl ArrayObserver) {
        self.now = self.now.max(now);
        self.members[member.at()] = Slot::new(fresh);
        let now = self.now;
        self.planned(|array, plan| array.replaced(now, member, plan), watch);
    }

    /// Background work of members is done only by [`idle_step`](Self::idle_step): for callers without time, to whom all of
    /// it would be due at once.
    #[must_use]
    pub fn background_by_step(self) -> Self {
        Self { by_step: true, ..self }
    }

    /// Does a step of each member's background work that is due at `now`; answers whether there was one.
    pub fn idle_step(&mut self, now: SimTime, watch: &mut impl ArrayObserver) -> bool {
        let mut any = false;
        for (i, slot) in self.members.iter_mut().enumerate().filter(|(_, s)| !s.dead) {
            any |= slot.idle_step(MemberId(i as u32), now, watch);
        }
        any
    }

    /// The drive of a member, to be told what became durable.
    pub fn drive_mut(&mut self, member: MemberId) -> Option<&mut Drive> {
        self.members[member.at()].member.drive_mut()
    }
}
