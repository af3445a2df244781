//! Members: drives, each with its own queue, layer, mechanics and background work, and SSDs.

use crate::queue::{Asked, Queue};
use crate::{ArrayObserver, MemberId, MemberOp};
use smrlab_drive::sched::Chosen;
use smrlab_drive::{Drive, ScheduledDrive, Served};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, SimTime};
use std::ops::Range;

/// A medium without interference: every request takes the latency, and one after the other takes the bandwidth.
#[derive(Clone, Debug)]
pub struct Ssd {
    /// Time of a request beside its transfer.
    pub latency: SimTime,
    /// Time of a block, ns.
    pub block_ns: u64,
    /// Its size.
    pub blocks: Blocks,
    free_at: SimTime,
}

impl Ssd {
    /// Idle at time 0.
    pub fn new(latency: SimTime, block_ns: u64, blocks: Blocks) -> Self {
        Self { latency, block_ns, blocks, free_at: SimTime::ZERO }
    }

    fn serve(&mut self, now: SimTime, op: &MemberOp) -> Served {
        let moves = matches!(op.request.op, HostOp::Read | HostOp::Write);
        let transfer = SimTime(if moves { self.block_ns * op.request.blocks.0 } else { 0 });
        let start = now.max(self.free_at);
        self.free_at = start + transfer;
        let end = self.free_at + self.latency;
        Served { start, ack: end, end }
    }
}

/// What a member is.
pub enum Member {
    /// A drive behind its queue.
    Drive(Box<Queue>),
    /// An SSD.
    Ssd(Ssd),
}

impl Member {
    /// A drive with the scheduler that was chosen for it.
    pub fn of_drive(drive: Drive, chosen: &Chosen) -> Self {
        Self::Drive(Box::new(Queue::new(ScheduledDrive::new(drive, chosen))))
    }

    /// Its queue, where it is a drive.
    pub(crate) fn queue(&mut self) -> Option<&mut Queue> {
        if let Self::Drive(queue) = self { Some(queue) } else { None }
    }

    /// The drive, where it is one.
    pub fn drive(&self) -> Option<&Drive> {
        if let Self::Drive(queue) = self { Some(queue.drive()) } else { None }
    }

    /// The drive alone.
    pub(crate) fn into_drive(self) -> Option<Drive> {
        if let Self::Drive(queue) = self { Some(queue.into_drive()) } else { None }
    }

    /// The drive, to be changed.
    pub fn drive_mut(&mut self) -> Option<&mut Drive> {
        self.queue().map(Queue::drive_mut)
    }
}

/// A member at work.
pub(crate) struct Slot {
    pub member: Member,
    pub dead: bool,
    /// When it will be found dead, where that is known.
    pub dies_at: Option<SimTime>,
    /// A run that was written without time, and that nobody was told of yet.
    untold: Range<u64>,
}

impl Slot {
    pub(crate) fn new(id: MemberId, mut member: Member) -> Self {
        if let Some(drive) = member.drive_mut() {
            drive.set_member(id);
        }
        Self { member, dead: false, dies_at: None, untold: 0..0 }
    }

    /// Whether a request lies within it.
    pub(crate) fn holds(&self, request: &HostRequest) -> bool {
        let blocks = match &self.member {
            Member::Drive(queue) => queue.drive().layer().host_blocks(),
            Member::Ssd(ssd) => ssd.blocks,
        };
        request.span().end <= blocks.0
    }

    /// Does a request without time whose data nobody follows; answers why it was refused if it was. Writes that follow one another are
    /// told as one, the last of them by [`tell`](Self::tell).
    pub(crate) fn instantly<O: ArrayObserver>(
        &mut self,
        id: MemberId,
        request: &HostRequest,
        watch: &mut O,
    ) -> Option<Refusal> {
        let refusal = self.member.drive_mut().and_then(|drive| drive.instantly(request).plan.refusal());
        if request.op == HostOp::Write {
            let span = request.span();
            if self.untold.end != span.start {
                self.tell(id, watch);
                self.untold.start = span.start;
            }
            self.untold.end = span.end;
        }
        refusal
    }

    /// Tells what was written without time since the last run that was told.
    pub(crate) fn tell<O: ArrayObserver>(&mut self, id: MemberId, watch: &mut O) {
        let run = std::mem::take(&mut self.untold);
        if !run.is_empty() {
            watch.filled(id, run);
        }
    }

    /// Does a request at `now`; answers when it was acknowledged, and why it was refused if it was. `None`: it waits for a scheduler.
    pub(crate) fn issue<O: ArrayObserver>(
        &mut self,
        now: SimTime,
        asked: Asked<'_>,
        instantly: bool,
        watch: &mut O,
    ) -> Result<Option<(Served, Option<Refusal>)>, O::Error> {
        let Asked { op, plan } = asked;
        if instantly {
            let served = Served { start: now, ack: now, end: now };
            if !plan.wants_data() {
                return Ok(Some((served, self.instantly(op.member, &op.request, watch))));
            }
            let executed = self.member.drive_mut().map(|drive| drive.instantly(&op.request));
            watch.prefilled(op, plan, executed.as_ref());
            return Ok(Some((served, executed.and_then(|e| e.plan.refusal()))));
        }
        match &mut self.member {
            Member::Drive(queue) => queue.ask(now, asked, self.dies_at, watch),
            Member::Ssd(ssd) => {
                let served = ssd.serve(now, op);
                watch.issued(now, op, plan, None)?;
                Ok(Some((served, None)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ticket;
    use smrlab_drive::{Observer, OpDone, TimedPlan};
    use smrlab_units::Lba;

    /// Latencies of requests pass side by side, their data one after the other: 100 us, and 1 us a block.
    #[test]
    fn an_ssd_takes_the_next_request_while_the_last_ones_latency_passes() {
        let us = SimTime::from_us;
        let mut ssd = Ssd::new(us(100), 1000, Blocks(1000));
        let mut serve = |now: u64, op: HostOp, blocks: u64| {
            let request = HostRequest::new(op, Lba(0), Blocks(blocks));
            let op = MemberOp {
                ticket: Ticket(0),
                member: MemberId(0),
                request,
                buffers: Ticket(0),
                parts: (0, 0),
            };
            let served = ssd.serve(us(now), &op);
            assert_eq!(served.ack, served.end);
            (served.start.0 / 1000, served.ack.0 / 1000)
        };
        assert_eq!(serve(0, HostOp::Write, 10), (0, 110));
        assert_eq!(serve(0, HostOp::Read, 20), (10, 130));
        assert_eq!(serve(5, HostOp::Flush, 0), (30, 130), "a flush has no data");
        assert_eq!(serve(5, HostOp::Discard, 40), (30, 130), "nor has a discard");
        assert_eq!(serve(200, HostOp::Read, 1), (200, 301));
    }

    /// Writes of blocks 0 to 7 and 8 to 15 are told as one run when one of blocks 32 to 39 comes, and that is told when it is asked for;
    /// reads are not, nor is anything twice.
    #[test]
    fn runs_that_are_written_without_time_are_told_once() {
        #[derive(Default)]
        struct Runs(Vec<Range<u64>>);
        impl Observer for Runs {
            type Error = std::convert::Infallible;
        }
        impl ArrayObserver for Runs {
            fn filled(&mut self, _: MemberId, blocks: Range<u64>) {
                self.0.push(blocks);
            }
        }
        let mut slot = Slot::new(MemberId(0), Member::Ssd(Ssd::new(SimTime::from_us(90), 3000, Blocks(100))));
        let mut runs = Runs::default();
        for (op, lba, told) in
            [(HostOp::Write, 0, 0), (HostOp::Read, 60, 0), (HostOp::Write, 8, 0), (HostOp::Write, 32, 1)]
        {
            let request = HostRequest::new(op, Lba(lba), Blocks(8));
            assert_eq!(slot.instantly(MemberId(0), &request, &mut runs), None);
            assert_eq!(runs.0.len(), told);
        }
        (0..2).for_each(|_| slot.tell(MemberId(0), &mut runs));
        assert_eq!(runs.0, [0..16, 32..40]);
    }

    /// Two drives behind an array; what `watch` sees of requests at their times, and when each was acknowledged.
    fn acks(
        how: (&str, &str, &str),
        requests: &[(u64, HostOp, u64, u64)],
        watch: &mut impl ArrayObserver<Error = std::convert::Infallible>,
    ) -> Vec<u64> {
        answers(how, requests, watch).into_iter().map(|(ack, _)| ack).collect()
    }

    /// The same, and why each was refused that was.
    fn answers(
        (layer, array, scheduler): (&str, &str, &str),
        requests: &[(u64, HostOp, u64, u64)],
        watch: &mut impl ArrayObserver<Error = std::convert::Infallible>,
    ) -> Vec<(u64, Option<Refusal>)> {
        let mut problems = smrlab_units::problems::Problems::default();
        let drive = "tiny";
        let (metadata, mechanics, medium) = ("nv", Some("no-rotation"), None);
        let wanted = smrlab_drive::Wanted { drive, layer, scheduler, metadata, mechanics, medium, seed: 1 };
        let mut member = || {
            let read = |_: &str| Err(String::new());
            let made = smrlab_drive::assemble(&wanted, read, &smrlab_stl::build, &mut problems).unwrap();
            let size = made.built.layer.host_blocks();
            let (drive, chosen) = made.start(false, false);
            (size, Member::of_drive(drive, &chosen))
        };
        let (first, second) = (member(), member());
        let chosen = crate::parse(array).unwrap();
        let all = chosen.build(&crate::ArrayContext::new(&[first.0, second.0])).unwrap().array;
        let mut c = crate::EventLoop::new(all, vec![first.1, second.1], vec![], chosen.schedule, false);
        for (id, &(at, op, lba, blocks)) in (0..).zip(requests) {
            let Ok(()) = c.advance(SimTime::from_us(at), watch);
            let Ok(()) = c.submit(
                SimTime::from_us(at),
                &HostRequest::new(op, Lba(lba), Blocks(blocks)).numbered(id),
                watch,
            );
        }
        let Ok(()) = c.finish(watch);
        let mut answers = vec![(0, None); requests.len()];
        while let Some(done) = c.next_done() {
            answers[done.request.id as usize] = (done.ack.0, done.refusal);
        }
        answers
    }

    /// Two blocks, one on each disk; the first one's head is a seek of 2 ms away: the request ends with the later of the two.
    #[test]
    fn a_request_ends_with_the_last_of_its_parts() {
        for scheduler in ["fcfs", "sptf,depth=8"] {
            let of = |requests: &[(u64, HostOp, u64, u64)]| {
                acks(("cmr", "striped,disks=2,stripe_unit=1blk", scheduler), requests, &mut ())
            };
            let both = of(&[(0, HostOp::Read, 1600, 1), (100_000, HostOp::Read, 0, 2)])[1];
            let near = of(&[(0, HostOp::Read, 1600, 1), (100_000, HostOp::Read, 1, 1)])[1];
            let far = of(&[(0, HostOp::Read, 1600, 1), (100_000, HostOp::Read, 0, 1)])[1];
            assert!(far > near && both == far, "{scheduler}: {both}, {near} and {far}");
        }
    }

    /// A host-managed drive takes a write where its zone is empty, and none behind the gap; the array says why.
    #[test]
    fn what_a_drive_refuses_its_array_refuses() {
        for scheduler in ["fcfs", "sptf,depth=8"] {
            let how = ("zoned,zone=32KiB,conventional=0%", "spanning,disks=2", scheduler);
            let writes = [(0, HostOp::Write, 0, 8), (100_000, HostOp::Write, 16, 8)];
            let refusals: Vec<_> = answers(how, &writes, &mut ()).into_iter().map(|(_, why)| why).collect();
            assert_eq!(refusals, [None, Some(Refusal::NotAtPointer)], "{scheduler}");
            // A write that the first disk has no pointer for, and the second, whose zone is full, no room: the first one says why.
            let how = ("zoned,zone=32KiB,conventional=0%", "striped,disks=2,chunk=32KiB", scheduler);
            let writes = [(0, HostOp::Write, 64, 64), (100_000, HostOp::Write, 8, 120)];
            let refusals: Vec<_> = answers(how, &writes, &mut ()).into_iter().map(|(_, why)| why).collect();
            assert_eq!(refusals, [None, Some(Refusal::NotAtPointer)], "{scheduler}");
        }
    }

    /// Notes who died, and when each request that was dispatched had come.
    #[derive(Default)]
    struct Noted {
        died: Vec<u32>,
        came: Vec<u64>,
    }

    impl Observer for Noted {
        type Error = std::convert::Infallible;

        fn dispatched(
            &mut self,
            came: SimTime,
            _: &HostRequest,
            _: &TimedPlan<'_>,
        ) -> Result<(), Self::Error> {
            self.came.push(came.0 / 1000);
            Ok(())
        }
    }

    impl ArrayObserver for Noted {
        fn died(&mut self, member: MemberId) {
            self.died.push(member.0);
        }
    }

    /// A drive that answers when its time is up is in time.
    #[test]
    fn a_drive_is_thrown_out_for_what_takes_longer_than_the_limit() {
        let read = [(0, HostOp::Read, 1600, 1)];
        for scheduler in ["fcfs", "sptf,depth=8"] {
            let took = acks(("cmr", "spanning,disks=2", scheduler), &read, &mut ())[0];
            for (limit, died) in [(took + 1, vec![]), (took, vec![]), (took - 1, vec![0])] {
                let (array, mut noted) = (format!("spanning,disks=2,timeout={limit}ns"), Noted::default());
                acks(("cmr", &array, scheduler), &read, &mut noted);
                assert_eq!(noted.died, died, "{scheduler}: {limit} of {took} ns");
            }
        }
    }

    /// Of requests for which a queue of one has no place it is told when they came, and not when they got one.
    #[test]
    fn what_waits_before_a_queue_is_as_old_as_it_is() {
        let reads = [0, 10, 20, 30].map(|at| (at, HostOp::Read, at * 20, 1));
        let mut noted = Noted::default();
        acks(("cmr", "spanning,disks=2", "sptf,depth=1"), &reads, &mut noted);
        assert_eq!(noted.came, [0, 10, 20, 30]);
    }

    /// Of two striped drives one dies while both write: the request is not acknowledged as done.
    #[test]
    fn what_a_drive_did_not_take_before_it_died_is_refused() {
        for scheduler in ["fcfs", "sptf,depth=8"] {
            let how = ("cmr", "striped,disks=2,chunk=1blk,fail=1@100ms", scheduler);
            let writes = [(0, HostOp::Write, 0, 2), (99_999, HostOp::Write, 1600, 2)];
            let refusals: Vec<_> = answers(how, &writes, &mut ()).into_iter().map(|(_, why)| why).collect();
            assert_eq!(refusals, [None, Some(Refusal::Lost)], "{scheduler}");
        }
    }

    /// Notes when each media operation of the second drive ended.
    #[derive(Default)]
    struct Ends(Vec<u64>);

    impl Observer for Ends {
        type Error = std::convert::Infallible;

        fn op(&mut self, done: &OpDone<'_>) {
            if done.member == MemberId(1) {
                self.0.push(done.end.0);
            }
        }
    }

    impl ArrayObserver for Ends {}

    /// Forty requests of one drive come at once, and it dies when it has done some: what it had not finished by then it never does.
    #[test]
    fn a_drive_does_nothing_after_its_death() {
        let requests: Vec<_> = (0..40).map(|i| (0, HostOp::Write, 1 + i * 80, 1)).collect();
        let mut ends = [Ends::default(), Ends::default()];
        for (ends, array) in ends.iter_mut().zip(["", ",fail=1@50ms"]) {
            let array = format!("striped,disks=2,chunk=1blk{array}");
            acks(("cmr", &array, "fcfs"), &requests, ends);
        }
        let [whole, cut] = ends.map(|e| e.0);
        let before = whole.iter().take_while(|end| **end <= 50_000_000).count();
        assert!((1..40).contains(&before) && whole.len() == 40, "{whole:?}");
        assert_eq!(cut, whole[..before]);
    }

    /// Notes of each background step whether it was whole.
    #[derive(Default)]
    struct Steps(Vec<bool>);

    impl Observer for Steps {
        type Error = std::convert::Infallible;

        fn background(&mut self, step: &TimedPlan<'_>) -> Result<(), Self::Error> {
            self.0.push(step.whole);
            Ok(())
        }
    }

    impl ArrayObserver for Steps {}

    /// A request comes 1 us after a step has begun, 5 ms after the disk was free: what was done of it is told.
    #[test]
    fn what_a_request_leaves_of_a_step_is_told() {
        let mut steps = Steps::default();
        let how = ("disk-cache,cache=10%,idle=5ms", "spanning,disks=2", "fcfs");
        let write = (0, HostOp::Write, 3, 4);
        let free = acks(how, &[write], &mut ())[0] / 1000;
        acks(how, &[write, (free + 5002, HostOp::Read, 600, 1)], &mut steps);
        assert_eq!(steps.0.first(), Some(&false), "{:?}", steps.0);
    }
}
