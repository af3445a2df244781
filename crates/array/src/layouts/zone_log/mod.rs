//! `zone-log`: what a log-structured filesystem does to a host-managed drive: the layer `log` with a zone for each of its bands.
//!
//! The layer plans as ever. Its operations become requests to the drive, in phases: reads, then what is written from them. Before a zone is
//! written from its beginning on it is reset.

mod entry;

pub use entry::ENTRY;

use crate::job::tasks;
use crate::tickets::Tickets;
use crate::{
    Array, Change as _, End, Health, Locks, MemberId, MemberPlan, Phase, Records, Sink, Ticket, Work,
};
use smrlab_stl::layers::log::{LogLayer, skipped};
use smrlab_stl::walk::Step;
use smrlab_stl::{
    Cause, Counted, Endpoint, HostRequest, OpId, Piece, Plan, Record, Refusal, TranslationLayer,
};
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, Zone, ZoneAction, ZoneKind, forward};
use std::collections::VecDeque;
use std::ops::Range;

/// The drive.
const DRIVE: MemberId = MemberId(0);
/// What the drive writes at a time: units of the map are multiples of it.
const UNIT: u64 = 8;
/// Tag of the record that the drive is dead; the layer's are smaller.
const DEAD: u32 = u32::MAX;

tasks! {
    /// What it does by itself.
    enum Task from 0 {
        /// Finishes a cleaning that was cut.
        Finish,
    }
}

/// A step of the layer's plan that is still to be done.
#[derive(Clone, Copy, Debug)]
enum Left {
    Op(OpId),
    Record(Record),
    Fence,
}

/// See the [module](self).
struct ZoneLog {
    layer: LogLayer,
    size: u64,
    /// Of each zone: whether it takes writes anywhere, and how many blocks of it are written.
    zones: Vec<(bool, u64)>,
    /// What the layer planned last, and what is left of it: of a read nothing.
    plan: Plan,
    steps: VecDeque<Left>,
    /// What reads, and the write, have of zeroes for the host.
    works: Tickets<Vec<(Blocks, Blocks)>>,
    /// The write that is being done.
    writing: Option<(Ticket, HostRequest)>,
    dead: bool,
    resets: u64,
}

impl ZoneLog {
    /// Over zones of this size.
    fn new(layer: LogLayer, size: Blocks, zones: &[Zone]) -> Self {
        let mut log = Self {
            layer,
            size: size.0,
            zones: Vec::new(),
            plan: Plan::new(true, true),
            steps: VecDeque::new(),
            works: Tickets::default(),
            writing: None,
            dead: false,
            resets: 0,
        };
        log.reported(DRIVE, zones);
        log
    }

    fn host(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        if r.op == HostOp::Flush {
            self.works.put(ticket, Vec::new());
            return plan.ask(ticket, DRIVE, *r, |_| {});
        }
        self.plan.clear();
        self.layer.submit(plan.now(), r, &mut self.plan);
        if let Some(why) = self.plan.refusal() {
            return plan.refuse(ticket, why);
        }
        self.begin(ticket, r, plan);
    }

    /// Begins what the layer planned.
    fn begin(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        self.steps = (self.plan.walk())
            .filter_map(|step| match step {
                Step::Op(id, _) => Some(Left::Op(id)),
                Step::Record(record) => Record::of(record).map(Left::Record),
                Step::Fence => Some(Left::Fence),
                Step::Acknowledge | Step::Pause(_) => None,
            })
            .collect();
        self.works.put(ticket, self.plan.zeroes().to_vec());
        for cleaning in self.plan.cleanings() {
            plan.cleaning(cleaning.kind, ticket, cleaning.relocated);
        }
        self.writing = (r.op != HostOp::Read).then_some((ticket, *r));
        self.go_on(ticket, r, plan);
    }

    /// Plans the next phase: reads, or writes; what is recorded behind it comes with the phase after it.
    fn go_on(&mut self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) {
        let mut phase = None;
        while let Some(step) = self.steps.front().copied() {
            match step {
                Left::Op(id) => {
                    let op = self.plan.ops()[id.0 as usize];
                    if phase.is_some_and(|dir| dir != op.dir) {
                        return;
                    }
                    phase = Some(op.dir);
                    if op.dir == Dir::Write {
                        self.advance(ticket, op.pba, op.blocks, plan);
                    }
                    let to = HostRequest {
                        op: if op.dir == Dir::Write { HostOp::Write } else { HostOp::Read },
                        lba: Lba(op.pba.0),
                        blocks: op.blocks,
                        why: op.cause,
                        fua: r.fua && op.cause == Cause::Host,
                        ..*r
                    };
                    let pieces = self.plan.pieces(id);
                    plan.ask(ticket, DRIVE, to, |out| {
                        pieces.iter().for_each(|piece| out.push(piece.blocks, end(op.dir, id, piece)));
                    });
                }
                Left::Record(_) | Left::Fence if phase.is_some() => return,
                Left::Record(record) => plan.record(record),
                Left::Fence => plan.fence(),
            }
            self.steps.pop_front();
        }
        if phase.is_none() {
            self.over(ticket, plan);
        }
    }

    /// A zone is written on: reset before, where it holds what was freed.
    fn advance(&mut self, ticket: Ticket, pba: Pba, blocks: Blocks, plan: &mut MemberPlan) {
        let (zone, offset) = (pba.0 / self.size, pba.0 % self.size);
        let (anywhere, written) = self.zones[zone as usize];
        if offset == 0 && written > 0 && !anywhere {
            let reset = HostOp::Zone(ZoneAction::Reset);
            let r = HostRequest::new(reset, Lba(zone * self.size), Blocks(self.size));
            plan.ask(ticket, DRIVE, r.because(Cause::Metadata), |_| {});
            self.resets += 1;
        }
        self.zones[zone as usize].1 = offset + blocks.0;
    }

    fn over(&mut self, ticket: Ticket, plan: &mut MemberPlan) {
        for (at, blocks) in self.works.take(ticket).unwrap_or_default() {
            plan.deliver(ticket, at, blocks, &[]);
        }
        self.writing.take_if(|of| of.0 == ticket);
        plan.end(ticket);
    }
}

/// Where the bytes of a piece are.
fn end(dir: Dir, id: OpId, piece: &Piece) -> End {
    match piece.end {
        Endpoint::Host(at) => End::Host(at),
        _ if dir == Dir::Read => End::Slot(id.0, Blocks::ZERO),
        Endpoint::Staged(op, at) => End::Slot(op.0, at),
        Endpoint::Records => End::Records,
        Endpoint::Zero | Endpoint::Held(_) => End::Zero,
    }
}

impl Array for ZoneLog {
    forward! { layer:
        fn host_blocks(&self) -> Blocks;
        fn prefetch(&mut self, request: &HostRequest);
        fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>));
        fn map_bytes(&self) -> u64;
    }

    fn locks(&self, work: &Work) -> Locks {
        match work {
            Work::Host(r) => Locks::of_host(r, |_| 0..1),
            Work::Job(_) => Locks { stripes: 0..1, shared: false },
        }
    }

    fn start(&mut self, ticket: Ticket, work: &Work, plan: &mut MemberPlan) {
        match work {
            _ if self.dead => plan.refuse(ticket, Refusal::Lost),
            Work::Host(r) => self.host(ticket, r, plan),
            Work::Job(job) => match Task::of(*job) {
                Some(Task::Finish(_)) => self.begin(ticket, &FINISH, plan),
                None => plan.end(ticket),
            },
        }
    }

    fn complete(&mut self, phase: Phase, plan: &mut MemberPlan) {
        let ticket = phase.ticket;
        if self.dead || phase.lost || phase.untaken.is_some() {
            self.writing.take_if(|of| of.0 == ticket);
            plan.refuse(ticket, Refusal::Lost);
        } else if let Some((_, request)) = self.writing.filter(|of| of.0 == ticket) {
            self.go_on(ticket, &request, plan);
        } else {
            self.over(ticket, plan);
        }
    }

    fn failed(&mut self, _: MemberId, plan: &mut MemberPlan) {
        self.dead = true;
        plan.records_mut().push(DEAD, []);
    }

    fn health(&self, _: MemberId) -> Health {
        if self.dead { Health::Dead } else { Health::Whole }
    }

    fn reported(&mut self, _: MemberId, zones: &[Zone]) {
        let of =
            |z: &Zone| (z.kind == ZoneKind::Conventional, z.pointer.map_or(z.blocks.0, |p| p.0 - z.start.0));
        self.zones = zones.iter().map(of).collect();
    }

    fn durable(&mut self) {
        // What is planned and not done is not covered.
        if self.writing.is_none() {
            self.layer.durable();
        }
    }

    fn is_settled(&self) -> bool {
        self.writing.is_none()
    }

    fn recover(&mut self, records: &Records, plan: &mut MemberPlan) {
        self.dead = records.iter().any(|r| r.tag == DEAD);
        let known = records.changes().filter(|r: &Record| r.tag != DEAD);
        // A write that was cut is behind what the layer knows.
        let pointers = (0..).zip(&self.zones).filter(|(_, zone)| !zone.0 && zone.1 > 0);
        let skips: Vec<Record> =
            pointers.map(|(zone, of): (u64, _)| skipped(Pba(zone * self.size + of.1 - 1))).collect();
        self.plan.clear();
        self.layer.recover(&known.chain(skips.iter().copied()).collect(), &mut self.plan);
        skips.into_iter().for_each(|skip| plan.record(skip));
        if self.plan.walk().any(|step| !matches!(step, Step::Acknowledge)) {
            self.writing = Some((Ticket(u32::MAX), FINISH));
            plan.job(Task::Finish(0));
        }
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.layer.checkpoint(out);
        if self.dead {
            out.push(DEAD, []);
        }
    }

    fn counters(&self, out: &mut Counted) {
        self.layer.counters(out);
        out.count("zone_resets", self.resets);
    }
}

/// What stands for the host's request where a cleaning is finished that was cut.
const FINISH: HostRequest = HostRequest::new(HostOp::Write, Lba(0), Blocks::ZERO);
