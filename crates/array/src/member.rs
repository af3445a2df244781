//! Members: drives, each with its own layer, mechanics and background work, and SSDs.

use crate::{ArrayObserver, MemberId, MemberOp, MemberPlan, Queue};
use smrlab_disk::Mechanics;
use smrlab_drive::sched::Chosen;
use smrlab_drive::{Controller, Drive, Executed, Observer, OpDone, Served};
use smrlab_stl::{Pause, Refusal};
use smrlab_units::{Blocks, HostOp, SimTime};

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
    /// A drive: first come, first served.
    Disk(Box<Drive>),
    /// A drive behind a scheduler.
    Queued(Box<Queue>),
    /// An SSD.
    Ssd(Ssd),
}

impl Member {
    /// A drive as its scheduler wants it.
    pub fn of_drive(drive: Drive, chosen: &Chosen) -> Self {
        if chosen.entry.reorders() {
            Self::Queued(Box::new(Queue::new(Controller::new(drive, chosen))))
        } else {
            Self::Disk(Box::new(drive))
        }
    }

    /// The drive, where it is one.
    pub fn drive(&self) -> Option<&Drive> {
        match self {
            Self::Disk(drive) => Some(drive),
            Self::Queued(queue) => Some(queue.drive()),
            Self::Ssd(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn drive_mut(&mut self) -> Option<&mut Drive> {
        match self {
            Self::Disk(drive) => Some(drive),
            Self::Queued(queue) => Some(queue.drive_mut()),
            Self::Ssd(_) => None,
        }
    }
}

/// When a member answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// When.
    pub end: SimTime,
    /// It was done; else the member had died by then.
    pub ok: bool,
}

/// A member at work.
pub(crate) struct Slot {
    pub member: Member,
    pub dead: bool,
    /// When it will be found dead, where that is known.
    pub dies_at: Option<SimTime>,
}

/// Tells an array's observer whose operation it is.
struct Of<'a, O>(MemberId, Option<u64>, &'a mut O);

impl<O: ArrayObserver> Observer for Of<'_, O> {
    #[inline]
    fn op(&mut self, done: &OpDone<'_>) {
        self.2.media(self.0, self.1, done);
    }

    #[inline]
    fn moved(&mut self, done: &OpDone<'_>, mechanics: &Mechanics) {
        self.2.moved(self.0, self.1, done, &mechanics.phases());
    }

    fn paused(&mut self, pause: &Pause, start: SimTime, background: bool) {
        self.2.paused(self.0, pause, start, background);
    }
}

/// Takes the background steps of a drive that were due before `now`.
#[inline]
fn catch_up(drive: &mut Drive, now: SimTime, of: &mut Of<'_, impl ArrayObserver>) {
    if !drive.idles() {
        while let Some(step) = drive.next_step(now, of) {
            let end = step.served.end;
            of.2.background(of.0, &step);
            show(drive, of.0, end, of.2);
        }
        if let Some(step) = drive.interrupt() {
            of.2.background(of.0, &step);
        }
    }
}

/// Shows a member's layer where that is wanted.
#[inline]
fn show(drive: &Drive, id: MemberId, at: SimTime, watch: &mut impl ArrayObserver) {
    if watch.looks(id, at) {
        watch.looked(id, at, &drive.layer().facts());
    }
}

/// How a request is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Without time.
    pub instantly: bool,
    /// Without the background work that is due.
    pub by_step: bool,
}

impl Slot {
    pub(crate) fn new(member: Member) -> Self {
        Self { member, dead: false, dies_at: None }
    }

    /// Does a step of the background work that is due at `now`; answers whether there was one.
    pub(crate) fn idle_step(&mut self, id: MemberId, now: SimTime, watch: &mut impl ArrayObserver) -> bool {
        let Member::Disk(drive) = &mut self.member else { return false };
        let mut of = Of(id, None, watch);
        let Some(step) = drive.next_step(now, &mut of) else { return false };
        let end = step.served.end;
        of.2.background(id, &step);
        show(drive, id, end, of.2);
        true
    }

    /// Does a request at `now`; answers when it was acknowledged. `None`: it waits for a scheduler.
    pub(crate) fn issue(
        &mut self,
        now: SimTime,
        op: &MemberOp,
        plan: &MemberPlan,
        how: How,
        watch: &mut impl ArrayObserver,
    ) -> Option<(Served, Option<Refusal>)> {
        let nothing = Served { start: now, ack: now, end: now };
        if how.instantly {
            let Some(drive) = self.member.drive_mut() else {
                watch.prefilled(op, plan, None);
                return Some((nothing, None));
            };
            drive.instantly(&op.request);
            let refusal = drive.plan().refusal();
            let done = drive.plan().ops().len();
            let plan_of = drive.plan();
            let (whole, buffered) = (true, false);
            let all =
                Executed { plan: plan_of, done, served: nothing, began: now, ends: &[], whole, buffered };
            watch.prefilled(op, plan, Some(&all));
            return Some((nothing, refusal));
        }
        match &mut self.member {
            Member::Disk(drive) => {
                if !how.by_step {
                    catch_up(drive, now, &mut Of(op.member, None, watch));
                }
                let executed =
                    drive.dispatch(now, &op.request, &mut Of(op.member, Some(op.request.id), watch));
                let answer = (executed.served, executed.plan.refusal());
                watch.issued(now, op, plan, &executed.served, Some(&executed));
                show(drive, op.member, answer.0.end, watch);
                Some(answer)
            }
            Member::Queued(queue) => {
                queue.send(now, op, plan, watch);
                None
            }
            Member::Ssd(ssd) => {
                let served = ssd.serve(now, op);
                watch.issued(now, op, plan, &served, None);
                Some((served, None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ticket;
    use smrlab_stl::HostRequest;
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

    /// Two drives behind an array; what `watch` sees of requests at their times, and when each was acknowledged.
    fn acks(
        (layer, array, scheduler): (&str, &str, &str),
        requests: &[(u64, HostOp, u64, u64)],
        watch: &mut impl ArrayObserver,
    ) -> Vec<u64> {
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
        let mut c = crate::Controller::new(all, vec![first.1, second.1], vec![], chosen.schedule, false);
        for (id, &(at, op, lba, blocks)) in (0..).zip(requests) {
            c.advance(SimTime::from_us(at), watch);
            c.submit(
                SimTime::from_us(at),
                &HostRequest::new(op, Lba(lba), Blocks(blocks)).numbered(id),
                watch,
            );
        }
        c.finish(watch);
        let mut acks = vec![0; requests.len()];
        while let Some(done) = c.next_done() {
            acks[done.request.id as usize] = done.ack.0;
        }
        acks
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

    /// Notes of each background step whether it was whole.
    #[derive(Default)]
    struct Steps(Vec<bool>);

    impl ArrayObserver for Steps {
        type Error = std::convert::Infallible;

        fn background(&mut self, _: MemberId, executed: &Executed<'_>) {
            self.0.push(executed.whole);
        }
    }

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
