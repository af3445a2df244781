//! A bus that all disks of an array share, as the two actuators of a drive do: their data pass over it one after the other.
//!
//! A disk's request is timed as if it had the bus to itself. Its blocks are there evenly over the time that they need to pass the head,
//! at the end of the request; in pieces, each as soon as it could begin on the bus, they take their turns. The request ends when its
//! last piece has passed.

use super::works::Missed;
use super::{Event, EventLoop};
use crate::queue::Answer;
use crate::{MemberId, Ticket};
use smrlab_stl::Refusal;
use smrlab_units::{HostOp, SimTime};
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks that pass in one go: 64 KiB.
const PIECE: u64 = 128;

/// A bus that these drives share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedBus {
    /// The drives.
    pub disks: Range<u32>,
    /// What a block takes.
    pub block: SimTime,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Bus {
    of: SharedBus,
    free: SimTime,
}

impl Bus {
    /// Free at time 0.
    pub(super) fn new(of: SharedBus) -> Self {
        Self { of, free: SimTime::ZERO }
    }

    /// Carries blocks that come at `now`, when it is free; answers when they have passed.
    fn carry(&mut self, now: SimTime, blocks: u64) -> SimTime {
        self.free = now.max(self.free) + SimTime(self.of.block.0 * blocks);
        self.free
    }
}

/// Blocks that are to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its request's, by their number.
    turns: u64,
    blocks: u32,
    /// The last one of its request.
    last: bool,
}

/// The request of a member whose blocks are to pass, or are passing.
#[derive(Debug)]
struct Request {
    ticket: Ticket,
    member: MemberId,
    op: HostOp,
    came: SimTime,
    /// The bus.
    on: usize,
    /// When the last of them has passed, where that is known.
    end: Option<SimTime>,
}

/// Requests on buses.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// By numbers that rise with time.
    of: BTreeMap<u64, Request>,
    numbers: u64,
}

impl EventLoop {
    /// A member would have answered like this if the bus were its own; `true`: it shares it, and the request ends later, by
    /// [`Event::Passed`].
    pub(super) fn takes_turns(&mut self, member: MemberId, answer: &Answer) -> bool {
        let Answer { ticket, ref request, came, start, ack, .. } = *answer;
        let moves = matches!(request.op, HostOp::Read | HostOp::Write) && request.blocks.0 > 0;
        let on = self.buses.iter().position(|bus| bus.of.disks.contains(&member.0));
        let drive = self.members[member.at()].member.drive();
        let (Some(on), Some(drive)) = (on.filter(|_| moves && !self.instantly), drive) else {
            return false;
        };
        let block = self.buses[on].of.block.0;
        let (all, now) = (request.blocks.0, self.now);
        let dir = usize::from(request.op == HostOp::Write);
        let own = drive.buffer().map_or(0, |b| b.spec().bus[dir].0 * all);
        // What the buffer answers is there sooner than it would pass the head.
        let flow = drive.passing(request).max(SimTime(own)).min(ack.since(start));
        // When so many of the blocks are there. Exact: a product of 64 bits.
        let there = |blocks: u64| {
            let rest = u128::from(flow.0) * u128::from(all - blocks) / u128::from(all);
            ack.since(SimTime(rest as u64))
        };
        let turns = self.turns.numbers;
        self.turns.numbers += 1;
        self.turns.of.insert(turns, Request { ticket, member, op: request.op, came, on, end: None });
        let mut done = 0;
        while done < all {
            let blocks = PIECE.min(all - done);
            let begin = there(done).max(there(done + blocks).since(SimTime(block * blocks)));
            done += blocks;
            let piece = Piece { turns, blocks: blocks as u32, last: done == all };
            self.push(begin.max(now), Event::Piece(piece));
        }
        true
    }

    /// A piece has its turn now.
    pub(super) fn passes(&mut self, piece: Piece) {
        let Some(request) = self.turns.of.get_mut(&piece.turns) else { return };
        let end = self.buses[request.on].carry(self.now, u64::from(piece.blocks));
        if piece.last {
            request.end = Some(end);
            let (member, came) = (request.member, request.came);
            self.times(member, came, end);
            self.push(end, Event::Passed(piece.turns));
        }
    }

    /// All of a request's pieces have passed.
    pub(super) fn passed(&mut self, turns: u64) {
        if let Some(request) = self.turns.of.remove(&turns) {
            self.answered(request.ticket, self.now, Missed::default());
        }
    }

    /// A member is dead: what has not passed yet never does.
    pub(super) fn cut_turns(&mut self, member: MemberId) {
        let now = self.now;
        let cut = |r: &Request| r.member == member && r.end.is_none_or(|end| end > now);
        let cut: Vec<u64> = self.turns.of.iter().filter(|(_, r)| cut(r)).map(|(turns, _)| *turns).collect();
        for turns in cut {
            let Some(Request { ticket, op, .. }) = self.turns.of.remove(&turns) else { continue };
            self.answered(ticket, now, Missed::of(Some(Refusal::Lost), op));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{ArrayContext, EventLoop, Member};
    use smrlab_drive::{Wanted, assemble};
    use smrlab_stl::HostRequest;
    use smrlab_units::problems::Problems;
    use smrlab_units::{Blocks, HostOp, Lba, SimTime};

    /// Two halves of a drive behind one array; when requests that all come at 0 are acknowledged, in microseconds.
    fn acks(drive: &str, array: &str, scheduler: &str, requests: &[Half]) -> Vec<u64> {
        let mut problems = Problems::default();
        let wanted =
            Wanted { drive, layer: "cmr", scheduler, metadata: "nv", mechanics: None, medium: None, seed: 1 };
        let mut half = || {
            let built = assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems).unwrap();
            let size = built.built.layer.host_blocks();
            let (drive, chosen) = built.start(false, false);
            (size, Member::of_drive(drive, &chosen))
        };
        let (first, second) = (half(), half());
        let chosen = crate::parse(array).unwrap();
        let all = chosen.build(&ArrayContext::new(&[first.0, second.0])).unwrap().array;
        let mut c = EventLoop::new(all, vec![first.1, second.1], vec![], chosen.schedule, false);
        for (id, &(op, half, lba, blocks)) in (0..).zip(requests) {
            let lba = Lba(half * first.0.0 + lba);
            let Ok(()) =
                c.submit(SimTime::ZERO, &HostRequest::new(op, lba, Blocks(blocks)).numbered(id), &mut ());
        }
        let Ok(()) = c.finish(&mut ());
        let mut acks = vec![0; requests.len()];
        while let Some(done) = c.next_done() {
            acks[done.request.id as usize] = done.ack.0.div_ceil(1000);
        }
        acks
    }

    /// What is asked of which half, from which of its blocks on, and of how many.
    type Half = (HostOp, u64, u64, u64);

    const OWN: &str = "spanning,disks=2";
    /// 0.5 ms a block, as the buffers' own.
    const SHARED: &str = "spanning,disks=2,bus=1.024";

    use HostOp::{Read, Write};

    #[test]
    fn what_both_have_at_once_passes_one_after_the_other() {
        let drive = "tiny,command=1ms,bus=1.024,write_cache=on,cache_size=1024blk,segments=4";
        for scheduler in ["fcfs", "sptf,depth=8"] {
            let both = [(Write, 0, 8, 4), (Write, 1, 8, 4)];
            assert_eq!(acks(drive, OWN, scheduler, &both), [3000, 3000], "{scheduler}");
            assert_eq!(acks(drive, SHARED, scheduler, &both), [3000, 5000], "{scheduler}");
            assert_eq!(acks(drive, SHARED, scheduler, &both[..1]), [3000], "{scheduler}");
            // One after the other on one half anyhow.
            let one = [(Write, 0, 8, 4), (Write, 0, 100, 4)];
            assert_eq!(
                acks(drive, SHARED, scheduler, &one),
                acks(drive, OWN, scheduler, &one),
                "{scheduler}"
            );
            // In turns of 64 ms: first, second, first, second.
            let long = [(Write, 0, 8, 256), (Write, 1, 8, 256)];
            assert_eq!(acks(drive, SHARED, scheduler, &long), [193_000, 257_000], "{scheduler}");
        }
    }

    #[test]
    fn what_comes_from_the_medium_passes_while_it_comes() {
        let drive = "tiny,command=1ms,bus=100";
        let both = [(Read, 0, 0, 256), (Read, 1, 0, 256)];
        let alone = acks(drive, OWN, "fcfs", &both);
        assert_eq!(alone[0], alone[1]);
        // 150 us a block, where the head takes 312.5: the halves of both requests take 19.2 ms each, and a half of each is there 40 ms
        // before the end.
        assert_eq!(
            acks(drive, "spanning,disks=2,bus=3.4133333333", "fcfs", &both),
            [alone[0], alone[0] + 19_200]
        );
        assert_eq!(acks(drive, "spanning,disks=2,bus=3.4133333333", "fcfs", &both[..1]), [alone[0]]);
        // The last two blocks of 130 pass in the time of two.
        let odd = [(Read, 0, 0, 130)];
        let end = acks(drive, OWN, "fcfs", &odd);
        assert_eq!(acks(drive, "spanning,disks=2,bus=3.4133333333", "fcfs", &odd), end);
        // Each with a bus of its own: neither waits for the other.
        let each = acks(drive, "spanning,disks=2 / spanning,disks=1,bus=3.4133333333", "fcfs", &both);
        assert_eq!(each, [alone[0], alone[0]]);
        // A flush has no data to wait with.
        let flush = [(Read, 1, 0, 4), (HostOp::Flush, 0, 0, 0)];
        let slow = acks(drive, "spanning,disks=2,bus=0.0512", "fcfs", &flush);
        assert!(slow[0] > 50_000 && slow[1] == acks(drive, OWN, "fcfs", &flush)[1], "{slow:?}");
    }

    /// A bus slower than the medium is the limit.
    #[test]
    fn a_slow_bus_is_the_limit() {
        let drive = "tiny,command=1ms,bus=100,cache=on,read_ahead=off";
        let both = [(Read, 0, 0, 128), (Read, 1, 0, 128)];
        let (own, shared) =
            (acks(drive, OWN, "fcfs", &both), acks(drive, "spanning,disks=2,bus=0.512", "fcfs", &both));
        // 1 ms a block, from when the first one is there: 128 blocks pass the head in 40 ms.
        assert_eq!(shared, [own[0] - 40_000 + 128_000, own[0] - 40_000 + 256_000]);
    }
}
