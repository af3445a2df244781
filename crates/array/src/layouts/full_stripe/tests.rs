//! Hand-worked groups and stripes, and an independent model of them.

use super::records::Event;
use super::shape::{LEFT, Shape};
use super::table::{Cell, Holds, Opened, Stream, Table};
use super::{FullStripe, FullStripeOptions, Stripes};
use crate::plan::Outcome;
use crate::{Array as _, MemberPlan, Phase, Records, Ticket, Work};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

fn shape(disks: u64, length: u64, groups: u64) -> Shape {
    let shape =
        Shape { chunk: 2, disks, length, spacing: 2 * length, groups, filled: 1, logical: 0, unit: length };
    Shape { logical: shape.logical(0.0), ..shape }
}

fn cells(cells: &[Cell]) -> Vec<(Holds, u32)> {
    cells.iter().map(|c| (c.holds, c.at)).collect()
}

/// Of 12 groups of 3 disks and 5 rows the host sees 5 groups of 3 rows of 2 chunks: 7 groups are kept back, and 2 rows of each.
#[test]
fn the_host_sees_what_can_always_be_collected() {
    let shape = shape(3, 5, 12);
    assert_eq!((shape.kept(), LEFT), (7, 3));
    assert_eq!((shape.logical, shape.logical(0.5)), (30, 15));
    // Units of 2 places: 3 of a segment, those of group 2 from the sixth on.
    let shape = Shape { unit: 2, ..shape };
    assert_eq!((shape.units(), shape.units_of(2)), (3, 6..9));
    assert_eq!((shape.locked(), Shape { chunk: 200, ..shape }.locked()), (64, 1));
}

/// Three disks. Full stripes: the parity goes round, and a lone chunk is padded. Then stripes as wide as there are chunks: the
/// shortest segments first.
#[test]
fn stripes_go_behind_the_pointers() {
    use Holds::{Chunk, Nothing, Pad, Parity};
    let mut table = Table::new(shape(3, 3, 12));
    assert_eq!(table.append(Stream::Host, &[1], true), None);
    assert_eq!(table.open(Stream::Host), Some(Opened { group: 0, was_used: false, needed: false }));
    let mut stripe = |lcns: &[u64], full| cells(&table.append(Stream::Host, lcns, full).unwrap().cells);
    assert_eq!(stripe(&[7, 8, 9][..2], true), [(Parity, 0), (Chunk(7), 0), (Chunk(8), 0)]);
    assert_eq!(stripe(&[9], true), [(Pad, 1), (Parity, 1), (Chunk(9), 1)]);
    // The third begins with disk 2, and takes two disks of three.
    assert_eq!(stripe(&[5], false), [(Chunk(5), 2), (Nothing, 0), (Parity, 2)]);
    // No stripe of three disks fits any more: the group is sealed, and stays as its stripes are on their way.
    assert_eq!(table.append(Stream::Host, &[5], true), None);
    assert!(table.group(0).is_some_and(|g| g.writing == 3));
}

/// A chunk that is written again leaves its group; the group is free when it holds nothing and nobody uses it, and is needed
/// until that is durable.
#[test]
fn a_group_is_free_when_nothing_of_it_is_current() {
    let mut table = Table::new(shape(3, 4, 12));
    let write = |table: &mut Table, lcns: &[u64]| {
        let stripe = table.append(Stream::Host, lcns, true).unwrap();
        table.written(stripe, |_, _| true).group
    };
    table.open(Stream::Host);
    assert_eq!(write(&mut table, &[1, 2]), 0);
    table.pin(0);
    table.seal_all();
    assert_eq!(table.victim(), Some(0));
    table.open(Stream::Host);
    assert_eq!((write(&mut table, &[1, 2]), table.live(), table.free()), (1, 2, 10));
    assert_eq!(table.victim(), None);
    table.unpin(0);
    assert_eq!((table.free(), table.place(1).unwrap().group), (11, 1));
    table.seal_all();
    assert_eq!(table.open(Stream::Cold), Some(Opened { group: 0, was_used: true, needed: true }));
    table.durable();
    // A discard frees group 1.
    [1, 2].iter().for_each(|lcn| table.unmap(*lcn));
    assert_eq!((table.live(), table.free(), table.place(2)), (0, 11, None));
    // The host leaves three groups to the collector.
    for lcn in 3.. {
        table.seal_all();
        if table.open(Stream::Host).is_none() {
            break;
        }
        write(&mut table, &[lcn]);
    }
    assert_eq!((table.free(), table.open(Stream::Cold).is_some()), (LEFT, true));
}

/// A group of which a disk did not take a stripe gets nothing more and is free when it holds nothing; others are filled before it.
#[test]
fn a_group_that_was_refused_is_filled_last() {
    let mut table = Table::new(shape(3, 4, 12));
    table.open(Stream::Host);
    let [own, beside] = [[1, 2], [3, 4]].map(|lcns| table.append(Stream::Host, &lcns, true).unwrap());
    table.given_up(own.group);
    assert_eq!((table.append(Stream::Host, &[5, 6], true), table.free()), (None, 11));
    table.written(beside, |_, _| true);
    [3, 4].iter().for_each(|lcn| table.unmap(*lcn));
    assert_eq!((table.free(), table.live()), (12, 0));
    let mut opened = || {
        table.seal_all();
        table.open(Stream::Cold).map(|opened| opened.group)
    };
    assert_eq!([opened(), opened()], [Some(1), Some(1)]);
    // Each of the others is needed for good.
    for group in 1..12 {
        table.seal_all();
        assert_eq!(table.open(Stream::Cold).map(|opened| opened.group), Some(group));
        let stripe = table.append(Stream::Cold, &[group], true).unwrap();
        table.written(stripe, |_, _| true);
    }
    table.seal_all();
    let last = Opened { group: 0, was_used: true, needed: true };
    assert_eq!((table.open(Stream::Cold), table.free()), (Some(last), 0));
}

/// Each stripe of three disks takes three cells of eight bytes.
#[test]
fn memory_is_that_of_cells() {
    let mut table = Table::new(shape(3, 100, 12));
    table.open(Stream::Host);
    let mut write = |stripes: u64| {
        for _ in 0..stripes {
            let stripe = table.append(Stream::Host, &[1, 2], true).unwrap();
            table.written(stripe, |_, _| true);
        }
        table.bytes()
    };
    let one = write(1);
    assert_eq!(write(49) - one, 49 * 3 * 8);
}

/// What was moved while the host wrote it again is out of date when the copy is there, also for who reads the record.
#[test]
fn a_copy_of_what_was_written_meanwhile_is_dead() {
    let mut table = Table::new(shape(3, 4, 12));
    table.open(Stream::Host);
    let put = |table: &mut Table, lcns: &[u64]| {
        let stripe = table.append(Stream::Host, lcns, true).unwrap();
        table.written(stripe, |_, _| true);
    };
    put(&mut table, &[1, 2]);
    let from = [1, 2].map(|lcn| table.place(lcn));
    table.open(Stream::Cold);
    let copy = table.append(Stream::Cold, &[1, 2], true).unwrap();
    put(&mut table, &[2, 3]);
    let copy = table.written(copy, |table, lcn| table.place(lcn) == from[lcn as usize - 1]);
    assert_eq!(copy.cells.map_holds(), [Holds::Parity, Holds::Chunk(1), Holds::Dead]);
    assert_eq!([1, 2, 3].map(|lcn| table.place(lcn).unwrap().group), [1, 0, 0]);
}

/// A group that got its last stripe and of which nothing is current when that is written is free then.
#[test]
fn a_group_of_dead_copies_is_free_when_they_are_written() {
    let mut table = Table::new(shape(3, 4, 12));
    table.open(Stream::Cold);
    let copy = table.append(Stream::Cold, &[1, 2], true).unwrap();
    table.seal_all();
    assert_eq!(table.free(), 11);
    table.written(copy, |_, _| false);
    assert_eq!((table.free(), table.live()), (12, 0));
}

trait MapHolds {
    fn map_holds(&self) -> Vec<Holds>;
}

impl MapHolds for Vec<Cell> {
    fn map_holds(&self) -> Vec<Holds> {
        self.iter().map(|c| c.holds).collect()
    }
}

/// Random writes and discards against a map of versions: each chunk is where it was written last, counts agree, and so do a table
/// from its own records and one from those of a checkpoint.
#[test]
fn the_table_agrees_with_a_plain_map() {
    let shape = shape(4, 5, 14);
    for seed in 0..20 {
        let (mut rng, mut table, mut records) = (Rng::new(seed), Table::new(shape), Records::default());
        let mut plain: BTreeMap<u64, (u64, Cell)> = BTreeMap::new();
        for _ in 0..400 {
            let lcns: BTreeSet<u64> = (0..1 + rng.below(3)).map(|_| rng.below(shape.logical)).collect();
            if rng.one_in(6) {
                for lcn in lcns {
                    table.unmap(lcn);
                    records.add(&Event::Unmap(lcn));
                    plain.remove(&lcn);
                }
                continue;
            }
            let lcns: Vec<u64> = lcns.into_iter().collect();
            let full = rng.one_in(2);
            let stripe = table.append(Stream::Host, &lcns, full).or_else(|| {
                // Where the host would wait it takes what is the collector's here.
                let opened = table.open(Stream::Host)?;
                records.add(&Event::Opened(opened.group));
                table.append(Stream::Host, &lcns, full)
            });
            let Some(stripe) = stripe else { continue };
            let stripe = table.written(stripe, |_, _| true);
            for cell in &stripe.cells {
                if let Holds::Chunk(lcn) = cell.holds {
                    plain.insert(lcn, (stripe.group, *cell));
                }
            }
            records.add(&Event::Stripe(stripe.group, stripe.cells));
        }
        let found = |table: &Table| {
            let of = |lcn: u64| {
                let place = table.place(lcn)?;
                let group = table.group(u64::from(place.group))?;
                let cell = group.stripe(place.stripe).nth(place.disk as usize)?;
                Some((lcn, (u64::from(place.group), cell)))
            };
            (0..shape.logical).filter_map(of).collect::<BTreeMap<_, _>>()
        };
        assert_eq!((&found(&table), table.live()), (&plain, plain.len() as u64));
        let options = FullStripeOptions { stripes: Stripes::Pad, batch: 1, depth: 1 };
        let mut again = FullStripe::new(shape, options, 1, &[]);
        again.restore(&records);
        assert_eq!((found(&again.table), again.table.live()), (plain.clone(), table.live()));
        let mut kept = Records::default();
        again.checkpoint(&mut kept);
        let mut third = FullStripe::new(shape, options, 1, &[]);
        third.restore(&kept);
        assert_eq!((found(&third.table), third.table.free()), (plain, again.table.free()));
    }
}

/// Waiting chunks are offered in whole stripes of three, round and round from where the last offer ended.
#[test]
fn what_makes_no_full_stripe_waits() {
    let options = FullStripeOptions { stripes: Stripes::Wait, batch: 1, depth: 1 };
    let mut array = FullStripe::new(shape(4, 5, 14), options, 1, &[]);
    let ripe = |array: &FullStripe, runs: &[Range<u64>]| array.ripe(runs).unwrap();
    let two = 0..4;
    assert_eq!(ripe(&array, std::slice::from_ref(&two)), []);
    // Chunks 0, 1, 4 and 9: half a chunk is one.
    let dirty = [0..4, 8..10, 19..20];
    assert_eq!(ripe(&array, &dirty), [0..2, 2..4, 8..10]);
    array.hand = 5;
    assert_eq!(ripe(&array, &dirty), [0..2, 2..4, 19..20]);
}

/// What the disks are asked for when a request begins, and how it ends.
fn start(array: &mut FullStripe, ticket: u32, op: HostOp, blocks: Range<u64>) -> MemberPlan {
    let mut plan = MemberPlan::new(true);
    let request = HostRequest::new(op, Lba(blocks.start), Blocks(blocks.end - blocks.start));
    array.start(Ticket(ticket), &Work::Host(request), &mut plan);
    plan
}

fn complete(array: &mut FullStripe, ticket: u32, lost: bool) -> MemberPlan {
    let mut plan = MemberPlan::new(true);
    array.complete(Phase { ticket: Ticket(ticket), lost, untaken: None, busy: false }, &mut plan);
    plan
}

/// What is asked for, and of which work.
fn asked(plan: &MemberPlan) -> Vec<(u32, HostOp)> {
    plan.ops().iter().map(|op| (op.ticket.0, op.request.op)).collect()
}

/// A write of half a chunk reads the other half, and gets nothing, though no disk died: it is refused. The one that waited for its chunk has
/// its turn then, and would wait for ever otherwise.
#[test]
fn who_waits_for_a_chunk_has_its_turn_when_the_other_is_refused() {
    let options = FullStripeOptions { stripes: Stripes::Wait, batch: 1, depth: 1 };
    let mut array = FullStripe::new(shape(4, 5, 14), options, 1, &[]);
    assert_eq!(asked(&start(&mut array, 0, HostOp::Write, 0..2)).len(), 4);
    assert_eq!(complete(&mut array, 0, false).outcomes(), [Outcome::Ended(Ticket(0))]);
    assert_eq!(asked(&start(&mut array, 1, HostOp::Write, 0..1)), [(1, HostOp::Read)]);
    assert_eq!(asked(&start(&mut array, 2, HostOp::Write, 1..2)), []);
    let plan = complete(&mut array, 1, true);
    assert_eq!(plan.outcomes(), [Outcome::Refused(Ticket(1), Refusal::Lost)]);
    assert_eq!(asked(&plan), [(2, HostOp::Read)]);
}

/// Three disks, groups of four stripes of two chunks. Groups 0, 1 and 2 are filled, 0 is freed and filled once more in part, and then 2 is
/// freed. The disks are told that what they hold of it is void before it is filled again, by who was there as by who begins with a checkpoint.
#[test]
fn what_a_group_held_is_void_before_it_is_filled_again_also_after_a_restart() {
    let options = FullStripeOptions { stripes: Stripes::Pad, batch: 1, depth: 1 };
    let made = || FullStripe::new(shape(3, 4, 14), options, 1, &[]);
    let mut array = made();
    let write = |array: &mut FullStripe, stripe: u64| {
        let mut plan = start(array, 0, HostOp::Write, 4 * stripe..4 * stripe + 4);
        let first: Vec<_> = plan.ops().iter().map(|op| (op.request.op, op.request.lba.0)).collect();
        while !plan.ops().is_empty() {
            plan = complete(array, 0, false);
        }
        first
    };
    (0..12).for_each(|stripe| _ = write(&mut array, stripe));
    start(&mut array, 0, HostOp::Discard, 0..16);
    let of = |lba: u64| [[(HostOp::Discard, lba); 3], [(HostOp::Write, lba); 3]].concat();
    assert_eq!(write(&mut array, 12), of(0), "group 0 once more");
    start(&mut array, 0, HostOp::Discard, 32..48);
    let mut kept = Records::default();
    array.checkpoint(&mut kept);
    let mut again = made();
    again.restore(&kept);
    // Who was there fills group 0 up before.
    (13..16).for_each(|stripe| assert_ne!(write(&mut array, stripe % 14)[0].0, HostOp::Discard));
    for (array, who) in [(&mut array, "who was there"), (&mut again, "after a restart")] {
        assert_eq!(write(array, 0), of(16), "{who}");
    }
}

/// Destages lock nothing: of those that meet each has its turn, also when some are refused because a disk gave or took nothing. None waits
/// where nothing is under way, and what is discarded leaves nothing.
#[test]
fn destages_that_meet_all_end_whatever_is_refused() {
    for seed in 0..20 {
        let options = FullStripeOptions { stripes: Stripes::Wait, batch: 3, depth: 1 };
        let (mut array, mut rng) = (FullStripe::new(shape(4, 5, 14), options, 1, &[]), Rng::new(seed));
        let (space, most) = (array.host_blocks().0, 2 + seed as usize % 5);
        // Phases under way and whether they read, and works that are not over.
        let (mut open, mut works) = (BTreeMap::<u32, bool>::new(), BTreeSet::new());
        let (mut ticket, mut refused, mut met) = (0, 0, false);
        let mut jobs: Vec<Work> = Vec::new();
        for step in 0.. {
            let waits = open.is_empty() && jobs.is_empty() && !works.is_empty();
            assert!(!waits, "{seed}: {works:?} wait for nobody");
            let mut plan = MemberPlan::new(true);
            if step < 600 && works.len() < most && (open.is_empty() || rng.one_in(3)) {
                let first = rng.below(space - 8);
                let runs = [first..first + 1 + rng.below(3), first + 5..first + 6 + rng.below(3)];
                works.insert(ticket);
                array.start_runs(Ticket(ticket), &runs, &mut plan);
                ticket += 1;
            } else if let Some(job) = jobs.pop() {
                works.insert(ticket);
                array.start(Ticket(ticket), &job, &mut plan);
                ticket += 1;
            } else {
                let Some(n) = (open.len() as u64).checked_sub(1) else { break };
                let (&of, &reads) = open.iter().nth(rng.below(n + 1) as usize).unwrap();
                open.remove(&of);
                let fails = step < 600 && rng.one_in(6);
                let untaken = (fails && !reads).then_some(Refusal::NoSpace);
                let phase = Phase { ticket: Ticket(of), lost: fails && reads, untaken, busy: false };
                array.complete(phase, &mut plan);
            }
            for outcome in plan.outcomes() {
                refused += u64::from(matches!(outcome, Outcome::Refused(..)));
                assert!(works.remove(&outcome.ticket().0), "{outcome:?} of what is over");
            }
            for op in plan.ops() {
                *open.entry(op.ticket.0).or_default() |= op.request.op == HostOp::Read;
            }
            jobs.extend(plan.jobs().iter().map(|job| Work::Job(*job)));
            met |= !array.parked.is_empty();
        }
        assert!(met && refused > 10, "{seed}: {refused} refused");
        assert!(array.parked.is_empty() && array.claims.is_empty(), "{seed}");
        let plan = start(&mut array, ticket, HostOp::Discard, 0..space);
        assert_eq!(plan.outcomes(), [Outcome::Ended(Ticket(ticket))], "{seed}");
        assert_eq!(array.table.live(), 0);
    }
}
