//! An array of arrays as an array: what comes from the loop goes to whom it concerns.

use super::{Above, Doing, Nested, Queued, Task, Within, state};
use crate::{Array, Health, Locks, MemberId, MemberPlan, Phase, Record, Records, Sink, Stop, Ticket, Work};
use smrlab_stl::{Counted, HostRequest, Refusal};
use smrlab_units::{Blocks, Lba, SimTime, Zone, forward};
use std::ops::Range;

impl Array for Nested {
    forward! { above:
        fn host_blocks(&self) -> Blocks;
        fn spaces(&self) -> u16;
        fn prefetch(&mut self, request: &HostRequest);
        fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>));
        fn counters(&self, out: &mut Counted);
    }

    fn locks(&self, work: &Work) -> Locks {
        let Work::Job(job) = work else { return self.above.locks(work) };
        let (at, locks) = match self.queued(job) {
            Some(Queued::Request(r)) => (r.to, self.within[r.to].array.locks(&Work::Host(r.request))),
            Some(Queued::Own(at, job)) => (*at, self.within[*at].array.locks(&Work::Job(*job))),
            None => return self.above.locks(work),
        };
        Locks { stripes: self.shape.stripes(at, &locks.stripes), ..locks }
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        let task = if let Work::Job(job) = work { Task::of(*job) } else { None };
        let Some(Task::Begin(place)) = task else {
            let host = task.is_none() && matches!(work, Work::Host(_));
            self.hosts += u64::from(host);
            self.works.put(ticket, Doing::Above(Above { host, ..Above::default() }));
            return self.above(plan, |above, own| above.start(ticket, work, own));
        };
        let queued = self.queue.get_mut(place as usize).and_then(Option::take);
        self.free.push(place as usize);
        match queued {
            Some(Queued::Request(request)) => {
                let (to, asked) = (request.to, Work::Host(request.request));
                let lost = self.within[to].lost;
                self.works.put(ticket, Doing::Request(request));
                self.member(to, plan, |member, own| match lost {
                    true => own.refuse(ticket, Refusal::Lost),
                    false => member.start(ticket, &asked, own),
                });
            }
            Some(Queued::Own(at, job)) => {
                self.within[at].works += 1;
                self.works.put(ticket, Doing::Own(at));
                self.member(at, plan, |member, own| member.start(ticket, &Work::Job(job), own));
            }
            None => plan.end(ticket),
        }
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        let at = match self.works.get(phase.ticket) {
            Some(Doing::Above(_)) => return self.phase(phase, plan),
            Some(Doing::Request(request)) => request.to,
            Some(Doing::Own(at)) => *at,
            None => return plan.end(phase.ticket),
        };
        let busy = phase.busy || self.within[at].requests > 0;
        self.member(at, plan, |member, own| member.complete(Phase { busy, ..phase }, own));
    }

    fn failed(&mut self, member: MemberId, plan: &mut MemberPlan) {
        let (at, disk) = self.shape.disk(member);
        if self.within[at].fresh.remove(&disk.0) {
            plan.record(state::Event::Died(at, disk));
        }
        self.member(at, plan, |member, own| member.failed(disk, own));
        // Nothing would bring back what the disk held.
        if !self.within[at].array.rebuildable(disk) {
            self.throw_out(at, plan);
        }
    }

    fn replaced(&mut self, member: MemberId, plan: &mut MemberPlan) {
        let (at, disk) = self.shape.disk(member);
        if !self.within[at].lost {
            return self.member(at, plan, |member, own| member.replaced(disk, own));
        }
        self.within[at].fresh.insert(disk.0);
        plan.record(state::Event::Fresh(at, disk));
        self.comes_back(at, plan);
    }

    fn rebuildable(&self, member: MemberId) -> bool {
        let (at, disk) = self.shape.disk(member);
        match &self.within[at] {
            Within { lost: true, .. } => self.above.rebuildable(MemberId(at as u32)),
            member => member.array.rebuildable(disk),
        }
    }

    fn health(&self, member: MemberId) -> Health {
        let (at, disk) = self.shape.disk(member);
        let own = &self.within[at];
        match own.array.health(disk) {
            _ if own.fresh.contains(&disk.0) => Health::Whole,
            Health::Whole if !own.lost => self.above.health(MemberId(at as u32)),
            health => health,
        }
    }

    fn unclean(&mut self, stop: Stop, plan: &mut MemberPlan) {
        for at in 0..self.within.len() {
            self.member(at, plan, |member, own| member.unclean(stop, own));
        }
        self.above(plan, |above, own| above.unclean(stop, own));
    }

    fn reported(&mut self, member: MemberId, zones: &[Zone]) {
        let (at, disk) = self.shape.disk(member);
        let own = &mut self.within[at];
        if own.lost {
            own.zones.insert(disk.0, zones.to_vec());
        } else {
            own.array.reported(disk, zones);
        }
    }

    fn is_settled(&self) -> bool {
        // What a member that is thrown out remembers is not wanted any more.
        self.above.is_settled() && self.within.iter().all(|member| member.lost || member.array.is_settled())
    }

    fn durable(&mut self) {
        self.above.durable();
        self.within.iter_mut().for_each(|member| member.array.durable());
    }

    fn wake_at(&self, idle: Option<SimTime>) -> Option<SimTime> {
        let members = self.within.iter().filter_map(|member| self.member_wakes(member));
        self.above.wake_at(idle).into_iter().chain(members).min()
    }

    fn wake(&mut self, plan: &mut MemberPlan) {
        for at in 0..self.within.len() {
            if self.member_wakes(&self.within[at]).is_some_and(|t| t <= plan.now()) {
                self.member(at, plan, |member, own| member.wake(own));
            }
        }
        if self.above.wake_at(self.idle()).is_some_and(|t| t <= plan.now()) {
            self.above(plan, |above, own| above.wake(own));
        }
    }

    fn unfinished(&self) -> bool {
        self.above.unfinished() || self.within.iter().any(|member| !member.lost && member.array.unfinished())
    }

    fn recover(&mut self, records: &Records, plan: &mut MemberPlan) {
        let state::Found { above, members } = state::Found::of(records, self.within.len());
        self.above(plan, |array, own| array.recover(&above, own));
        for (at, member) in members.into_iter().enumerate() {
            let own = &mut self.within[at];
            (own.lost, own.fresh) = (member.lost, member.fresh);
            if own.lost {
                // Of what it left half done nothing is wanted any more.
                own.array.recover(&member.records, &mut MemberPlan::new(plan.wants_data()));
                self.comes_back(at, plan);
            } else {
                self.member(at, plan, |array, own| array.recover(&member.records, own));
            }
        }
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.above.checkpoint(out);
        for (at, member) in self.within.iter().enumerate() {
            member.array.checkpoint(&mut |record: Record<'_>| state::put(at, record, out));
            if member.lost {
                out.add(&state::Event::Lost(at));
                member.fresh.iter().for_each(|disk| out.add(&state::Event::Fresh(at, MemberId(*disk))));
            }
        }
    }

    fn map_bytes(&self) -> u64 {
        self.above.map_bytes() + self.within.iter().map(|member| member.array.map_bytes()).sum::<u64>()
    }

    fn members(&self) -> Vec<&dyn Array> {
        self.within.iter().map(|member| &*member.array).collect()
    }
}
