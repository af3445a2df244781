//! What a served array asks of the event loop beyond a simulated one: recovery, deaths and replacements on command, background
//! work in steps.

use super::{Event, EventLoop};
use crate::member::Slot;
use crate::{ArrayObserver, Health, Member, MemberId, MemberPlan, Queue, Records, Stop, Work};
use smrlab_drive::Drive;
use smrlab_stl::zones_of;
use smrlab_units::SimTime;

impl EventLoop {
    /// Goes on until every host request is acknowledged and the array has finished what it does not want to leave
    /// unfinished.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn finish<O: ArrayObserver>(&mut self, watch: &mut O) -> Result<(), O::Error> {
        while (self.hosts > 0 || self.array.unfinished()) && self.step(None, watch)? {}
        Ok(())
    }

    /// The time up to which everything has been done.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// When [`step`](Self::step) has something to do, if no request comes before.
    pub fn next_event(&self) -> Option<SimTime> {
        let idle = (self.hosts == 0).then_some(self.idle_since);
        let wake = self.array.wake_at(idle).map(|t| t.max(self.now));
        let decision = self.next_decision().map(|d| d.0);
        self.agenda.next().into_iter().chain(wake).chain(decision).min()
    }

    /// Takes up what an array left behind: the records of its state, and how its server ended.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn recover<O: ArrayObserver>(
        &mut self,
        records: &Records,
        stop: Stop,
        watch: &mut O,
    ) -> Result<(), O::Error> {
        let mut plan = MemberPlan::new(self.plan.wants_data());
        for (i, slot) in (0..).zip(&self.members) {
            let zones = slot.member.drive().map(|drive| zones_of(drive.layer())).unwrap_or_default();
            if !zones.is_empty() {
                self.array.reported(MemberId(i), &zones);
            }
        }
        self.array.recover(records, &mut plan);
        if stop != Stop::Orderly {
            self.array.unclean(stop, &mut plan);
        }
        let mut dead = Vec::new();
        let disks = self.members.iter_mut().filter(|s| !matches!(s.member, Member::Ssd(_)));
        for (disk, slot) in (0..).map(MemberId).zip(disks) {
            slot.dead = self.array.health(disk) == Health::Dead;
            if slot.dead {
                watch.died(disk);
                dead.push(disk);
            }
        }
        // Nobody knows when they died: as far as the schedule goes, now.
        dead.into_iter().for_each(|disk| self.awaits_spare(disk));
        self.planned(|_, all| *all = plan, watch)
    }

    /// A member dies at `now`.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn fail<O: ArrayObserver>(
        &mut self,
        now: SimTime,
        member: MemberId,
        watch: &mut O,
    ) -> Result<(), O::Error> {
        self.now = self.now.max(now);
        self.members[member.at()].dies_at = Some(self.now);
        self.happens(Event::Failed(member), watch)
    }

    /// A fresh drive is in the place of a dead one.
    pub(super) fn put_in(&mut self, member: MemberId, mut fresh: Member) {
        fresh.queue().filter(|_| self.by_step).into_iter().for_each(Queue::by_step);
        let zones = fresh.drive().map(|drive| zones_of(drive.layer())).unwrap_or_default();
        self.members[member.at()] = Slot::new(member, fresh);
        if !zones.is_empty() && self.array.rebuildable(member) {
            self.array.reported(member, &zones);
        }
    }

    /// A fresh drive takes the place of a dead member at `now`.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn replace<O: ArrayObserver>(
        &mut self,
        now: SimTime,
        member: MemberId,
        fresh: Member,
        watch: &mut O,
    ) -> Result<(), O::Error> {
        self.now = self.now.max(now);
        self.put_in(member, fresh);
        self.planned(|array, plan| array.replaced(member, plan), watch)
    }

    /// Background work of members is done only by [`idle_step`](Self::idle_step): for callers without time, to whom all of
    /// it would be due at once.
    #[must_use]
    pub fn background_by_step(mut self) -> Self {
        self.members.iter_mut().filter_map(|slot| slot.member.queue()).for_each(Queue::by_step);
        Self { by_step: true, ..self }
    }

    /// Does a step of each member's background work that is due at `now`; answers whether there was one.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn idle_step<O: ArrayObserver>(&mut self, now: SimTime, watch: &mut O) -> Result<bool, O::Error> {
        let mut any = false;
        for queue in self.members.iter_mut().filter(|s| !s.dead).filter_map(|s| s.member.queue()) {
            any |= queue.idle_step(now, watch)?;
        }
        Ok(any)
    }

    /// Records wait for what the buffers of drives took before them: that is written first. For callers whose drives' buffers are lost
    /// with them.
    #[must_use]
    pub fn records_wait(self) -> Self {
        Self { records_wait: true, ..self }
    }

    /// Has written what the buffers of drives took; those of dead ones are lost with them.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn write_back<O: ArrayObserver>(&mut self, watch: &mut O) -> Result<(), O::Error> {
        for member in (0..self.members.len() as u32).map(MemberId) {
            if !self.is_dead(member)
                && let Some(queue) = self.members[member.at()].member.queue()
            {
                queue.write_back(watch)?;
                self.take_answers(member);
            }
        }
        Ok(())
    }

    /// Ends the works that are under way, so that nothing is half done, and gives up what members do in idle time; jobs that these lead
    /// to begin with the next call.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn wind_up<O: ArrayObserver>(&mut self, watch: &mut O) -> Result<(), O::Error> {
        self.held = Some(Vec::new());
        while self.step(None, watch)? {}
        self.write_back(watch)?;
        self.give_up_steps(watch)?;
        self.held.take().into_iter().flatten().for_each(|job| self.enter(Work::Job(job)));
        Ok(())
    }

    /// The power fails: takes the drives out as they are. Nothing that waits is done, and nothing is left to be asked for.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn power_lost<O: ArrayObserver>(&mut self, watch: &mut O) -> Result<Vec<Drive>, O::Error> {
        self.give_up_steps(watch)?;
        Ok(self.members.drain(..).filter_map(|slot| slot.member.into_drive()).collect())
    }

    /// What was done of background steps under way is carried out, and the rest is given up.
    fn give_up_steps<O: ArrayObserver>(&mut self, watch: &mut O) -> Result<(), O::Error> {
        for slot in self.members.iter_mut().filter(|s| !s.dead) {
            if let Some(step) = slot.member.drive_mut().and_then(Drive::interrupt) {
                watch.background(&step)?;
            }
        }
        Ok(())
    }

    /// No work is under way.
    pub fn is_at_rest(&self) -> bool {
        self.works.iter().next().is_none() && !self.members_wait()
    }

    /// All that was done and recorded so far survives a loss of power.
    pub fn durable(&mut self) {
        self.array.durable();
    }

    /// The drive of a member, to be told what became durable.
    pub fn drive_mut(&mut self, member: MemberId) -> Option<&mut Drive> {
        self.members[member.at()].member.drive_mut()
    }
}
