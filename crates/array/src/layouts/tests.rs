//! What all layouts do, work by work.

mod flushes;

use crate::plan::Outcome;
use crate::{Array, ArrayContext, Health, MemberId, MemberPlan, Phase, Records, Stop, Ticket, Work, parse};
use smrlab_stl::{Cause, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba, Zone, ZoneCondition, ZoneKind, ZoneLimits};

/// An array of drives of so many blocks, and whether it asks for as many.
fn array(text: &str, sizes: &[u64]) -> Box<dyn Array> {
    let chosen = parse(text).unwrap();
    assert_eq!(chosen.disks as usize, sizes.len(), "{text}");
    chosen.build(&ArrayContext::new(&sizes.iter().map(|n| Blocks(*n)).collect::<Vec<_>>())).unwrap().array
}

fn start(array: &mut dyn Array, work: Work) -> MemberPlan {
    let mut plan = MemberPlan::new(true);
    array.start(Ticket(0), &work, &mut plan);
    plan
}

fn complete(array: &mut dyn Array, lost: bool) -> MemberPlan {
    complete_with(array, Phase { ticket: Ticket(0), lost, untaken: None, busy: false })
}

fn complete_with(array: &mut dyn Array, phase: Phase) -> MemberPlan {
    let mut plan = MemberPlan::new(true);
    array.complete(phase, &mut plan);
    plan
}

fn host(op: HostOp, lba: u64, blocks: u64) -> Work {
    Work::Host(HostRequest::new(op, Lba(lba), Blocks(blocks)))
}

/// Does all phases of a work; why each member was asked to read or write.
fn carry_out(array: &mut dyn Array, work: Work) -> Vec<(HostOp, Cause)> {
    let (mut plan, mut asked) = (start(array, work), Vec::new());
    while !plan.ops().is_empty() {
        let data = plan.ops().iter().filter(|op| op.request.op != HostOp::Flush);
        asked.extend(data.map(|op| (op.request.op, op.request.why)));
        plan = complete(array, false);
    }
    asked
}

const STRIPED: [&str; 5] = [
    "striped,disks=4,chunk=8blk",
    "raid5,disks=4,chunk=8blk",
    "raid6,disks=4,chunk=8blk",
    "mirror,disks=4,chunk=8blk",
    "dvs,disks=4,chunk=8blk,segment=4",
];

/// Where rows go over all drives, the smallest one says how many there are, wherever it stands.
#[test]
fn the_smallest_drive_counts() {
    let others = ["raid4s,disks=4,chunk=8blk", "full-stripe,disks=4,chunk=8blk,segment=4"];
    let moving = "dvs,groups=moving,disks=4,chunk=8blk,segment=4";
    for text in STRIPED.into_iter().chain(others).chain([moving]) {
        let small = array(text, &[960; 4]).host_blocks();
        for at in 0..4 {
            let mut sizes = [1920; 4];
            sizes[at] = 960;
            assert_eq!(array(text, &sizes).host_blocks(), small, "{text}: {sizes:?}");
        }
    }
}

/// Drives one behind the other are each used to their own end.
#[test]
fn members_in_a_row_have_their_own_sizes() {
    let mut array = array("spanning,disks=3", &[480, 240, 960]);
    assert_eq!(array.host_blocks(), Blocks(1680));
    let mut asked = |lba| {
        let plan = start(&mut *array, host(HostOp::Read, lba, 20));
        let asked = plan.ops().iter().map(|op| (op.member.0, op.request.lba.0, op.request.blocks.0));
        asked.collect::<Vec<_>>()
    };
    assert_eq!(asked(470), [(0, 470, 10), (1, 0, 10)]);
    assert_eq!(asked(710), [(1, 230, 10), (2, 0, 10)]);
    assert_eq!(asked(1660), [(2, 940, 20)]);
}

/// Chunks 0 and 2 follow each other on the first drive, 1 and 3 on the second: two requests.
#[test]
fn what_follows_on_a_drive_is_one_request() {
    for text in ["striped,disks=2,chunk=1blk", "mirror,disks=4,copies=2,chunk=1blk,reads=first"] {
        let disks = parse(text).unwrap().disks as usize;
        let plan = start(&mut *array(text, &vec![480; disks]), host(HostOp::Read, 0, 4));
        let asked: Vec<_> = plan.ops().iter().map(|op| op.request.blocks.0).collect();
        assert_eq!(asked, [2, 2], "{text}");
    }
}

/// A read that got nothing although no drive died would get nothing again: the request is refused.
#[test]
fn what_cannot_be_read_though_no_drive_died_is_refused() {
    for text in &STRIPED[1..] {
        let mut array = array(text, &[480; 4]);
        carry_out(&mut *array, host(HostOp::Write, 0, 8));
        let plan = start(&mut *array, host(HostOp::Read, 0, 8));
        assert_eq!(plan.ops().len(), 1, "{text}");
        let plan = complete(&mut *array, true);
        assert_eq!(plan.outcomes(), [Outcome::Refused(Ticket(0), Refusal::Lost)], "{text}");
    }
}

/// All that a rebuild asks for counts as such.
#[test]
fn a_rebuild_reads_and_writes_for_itself() {
    for text in &STRIPED[1..] {
        let mut array = array(text, &[480; 4]);
        carry_out(&mut *array, host(HostOp::Write, 0, 8));
        let mut plan = MemberPlan::new(true);
        for disk in [0, 1, 2, 3] {
            plan.clear();
            array.failed(MemberId(disk), &mut plan);
            array.replaced(MemberId(disk), &mut plan);
            while array.wake_at(None).is_some() {
                plan.clear();
                array.wake(&mut plan);
                for job in plan.jobs().to_vec() {
                    let asked = carry_out(&mut *array, Work::Job(job));
                    assert!(
                        !asked.is_empty() && asked.iter().all(|a| a.1 == Cause::Rebuild),
                        "{text}: {asked:?}"
                    );
                }
            }
        }
    }
}

/// Of four drives in pairs one is dead: of the chunks that are written those are degraded that have a copy there.
#[test]
fn a_mirror_counts_chunks_with_fewer_copies() {
    let mut array = array("mirror,disks=4,copies=2,chunk=8blk", &[480; 4]);
    let degraded = |array: &dyn Array| crate::counted(array).get("degraded_chunks").unwrap_or(0);
    carry_out(&mut *array, host(HostOp::Write, 0, 32));
    assert_eq!(degraded(&*array), 0);
    array.failed(MemberId(1), &mut MemberPlan::new(true));
    carry_out(&mut *array, host(HostOp::Write, 0, 32));
    assert_eq!(degraded(&*array), 2);
}

/// With one disk too many dead nobody knows where a write would have to be: it is refused, and not acknowledged and lost.
#[test]
fn a_write_to_what_cannot_be_kept_is_refused() {
    for text in [
        "raid5,disks=4,chunk=8blk",
        "dvs,disks=4,chunk=8blk,segment=4",
        "full-stripe,disks=4,chunk=8blk,segment=4",
    ] {
        let mut array = array(text, &[960; 4]);
        carry_out(&mut *array, host(HostOp::Write, 0, 8));
        [0, 2].into_iter().for_each(|disk| array.failed(MemberId(disk), &mut MemberPlan::new(true)));
        for lba in [0, 8, 16, 24] {
            let plan = start(&mut *array, host(HostOp::Write, lba, 8));
            assert_eq!(plan.outcomes(), [Outcome::Refused(Ticket(0), Refusal::Lost)], "{text}: {lba}");
        }
    }
}

/// Drives die while a write is on its way to them: where what was written is on none of the others, it is refused.
#[test]
fn a_write_that_is_lost_with_its_drives_is_refused() {
    for (text, losses) in [
        ("striped,disks=4,chunk=8blk", 0),
        ("spanning,disks=4", 0),
        ("dedicated,disks=4", 0),
        ("mirror,disks=4,copies=2,chunk=8blk", 1),
        ("raid5,disks=4,chunk=8blk", 1),
        ("raid6,disks=4,chunk=8blk", 2),
        ("raid4s,disks=4,chunk=8blk", 1),
        ("dvs,disks=4,chunk=8blk,segment=4", 1),
        ("full-stripe,disks=4,chunk=8blk,segment=4", 1),
    ] {
        for deaths in 0..=losses + 1 {
            let mut array = array(text, &[960; 4]);
            let mut plan = start(&mut *array, host(HostOp::Write, 0, 8));
            while plan.ops().iter().all(|op| op.request.op != HostOp::Write) {
                plan = complete(&mut *array, false);
            }
            let to: Vec<_> = plan.ops().iter().map(|op| op.member).take(deaths).collect();
            assert_eq!(to.len(), deaths, "{text}");
            to.iter().for_each(|m| array.failed(*m, &mut MemberPlan::new(true)));
            let untaken = (deaths > 0).then_some(Refusal::Lost);
            let plan =
                complete_with(&mut *array, Phase { ticket: Ticket(0), lost: false, untaken, busy: false });
            let expected = match deaths > losses {
                true => Outcome::Refused(Ticket(0), Refusal::Lost),
                false => Outcome::Ended(Ticket(0)),
            };
            assert_eq!(plan.outcomes(), [expected], "{text}: {deaths} died");
        }
    }
}

/// After a loss of power a chunk is read from its first copy until its copies were made equal, then from each in turn.
#[test]
fn copies_in_doubt_are_not_read_in_turn() {
    let mut mirror = array("mirror,chunk=8blk,reads=turns", &[480; 2]);
    let mut plan = MemberPlan::new(true);
    mirror.unclean(Stop::PowerLost, &mut plan);
    let read = |mirror: &mut dyn Array, lba| {
        let asked = start(mirror, host(HostOp::Read, lba, 8)).ops().iter().map(|op| op.member.0).collect();
        complete(mirror, false);
        asked
    };
    let reads = |mirror: &mut dyn Array, lba| {
        (0..4).flat_map(|_| -> Vec<_> { read(mirror, lba) }).collect::<Vec<u32>>()
    };
    assert_eq!(reads(&mut *mirror, 0), [0; 4]);
    mirror.wake(&mut plan);
    let resync = plan.jobs()[0];
    carry_out(&mut *mirror, Work::Job(resync));
    let mut both = reads(&mut *mirror, 0);
    both.sort_unstable();
    assert_eq!((both, reads(&mut *mirror, 8)), (vec![0, 0, 1, 1], vec![0; 4]));
}

/// After a loss of power all other copies of a chunk are made equal to the first one, however many there are.
#[test]
fn all_copies_in_doubt_are_made_equal() {
    for copies in [2, 3, 5] {
        let text = format!("mirror,disks={copies},copies={copies},chunk=8blk");
        let mut mirror = array(&text, &vec![480; copies]);
        let mut plan = MemberPlan::new(true);
        mirror.unclean(Stop::PowerLost, &mut plan);
        mirror.wake(&mut plan);
        let asked = |plan: &MemberPlan| -> Vec<_> {
            plan.ops().iter().map(|op| (op.request.op, op.member.at())).collect()
        };
        let job = plan.jobs()[0];
        assert_eq!(asked(&start(&mut *mirror, Work::Job(job))), [(HostOp::Read, 0)]);
        let others: Vec<_> = (1..copies).map(|disk| (HostOp::Write, disk)).collect();
        assert_eq!(asked(&complete(&mut *mirror, false)), others);
    }
}

/// Chunks 1 and 2 are being written when a checkpoint is made: whoever begins with that makes their copies equal. Of a write that is over
/// nothing is left to do.
#[test]
fn a_mirrors_checkpoint_says_what_is_being_written() {
    let made = || array("mirror,chunk=8blk,intent=on", &[480; 2]);
    let mut mirror = made();
    carry_out(&mut *mirror, host(HostOp::Write, 80, 8));
    start(&mut *mirror, host(HostOp::Write, 12, 10));
    let mut kept = Records::default();
    mirror.checkpoint(&mut kept);
    let (mut again, mut plan) = (made(), MemberPlan::new(true));
    again.recover(&kept, &mut plan);
    let locked: Vec<_> = plan.jobs().iter().map(|job| again.locks(&Work::Job(*job)).stripes).collect();
    assert_eq!(locked, [1..2, 2..3]);
    for job in plan.jobs().to_vec() {
        let asked = carry_out(&mut *again, Work::Job(job));
        assert_eq!(asked, [(HostOp::Read, Cause::Rebuild), (HostOp::Write, Cause::Rebuild)]);
    }
}

/// Whoever begins with the checkpoint of an array that lost a drive knows that.
#[test]
fn a_checkpoint_says_which_drives_are_dead() {
    let zones = [zones()];
    let zoned = ["zone-log", "dm-zoned,reserved=1"].map(|text| (text, 1));
    let others = [
        "mirror,disks=4,copies=2",
        "raid5,disks=4,chunk=8blk",
        "raid6,disks=4,chunk=8blk",
        "raid4s,disks=4,chunk=8blk",
        "dvs,disks=4,chunk=8blk,segment=4",
        "full-stripe,disks=4,chunk=8blk,segment=4",
    ];
    for (text, disks) in zoned.into_iter().chain(others.map(|text| (text, 4))) {
        let made = || -> Box<dyn Array> {
            if disks > 1 {
                return array(text, &[960; 4]);
            }
            let context = ArrayContext::new(&[Blocks(60 * 64)]).zoned(&zones);
            parse(text).unwrap().build(&context).unwrap().array
        };
        let mut lost = made();
        lost.failed(MemberId(0), &mut MemberPlan::new(true));
        let mut kept = Records::default();
        lost.checkpoint(&mut kept);
        let mut again = made();
        again.recover(&kept, &mut MemberPlan::new(true));
        let health = |array: &dyn Array| (0..disks).map(|d| array.health(MemberId(d))).collect::<Vec<_>>();
        assert_eq!(health(&*again), health(&*lost), "{text}");
        assert_eq!(again.health(MemberId(0)), Health::Dead, "{text}");
    }
}

/// A log over 40 zones that are written in order resets each before it is written again, and none that is empty.
#[test]
fn zones_are_reset_before_they_are_written_again() {
    let zones = [zones()];
    let context = ArrayContext::new(&[Blocks(60 * 64)]).zoned(&zones);
    let mut log = parse("zone-log").unwrap().build(&context).unwrap().array;
    let resets = |log: &mut dyn Array, n: u64| {
        let write = |i: u64| host(HostOp::Write, i % 8 * 64, 64);
        let asked = (0..n).flat_map(|i| carry_out(log, write(i))).collect::<Vec<_>>();
        asked.iter().filter(|a| matches!(a.0, HostOp::Zone(_))).count()
    };
    assert_eq!(resets(&mut *log, 30), 0);
    assert!(resets(&mut *log, 300) > 100);
}

/// What is durable in the midst of a write, of which nobody knows how far it came, frees no zone that could not be written again without
/// waiting before; between two writes it does.
#[test]
fn what_is_durable_in_the_midst_of_a_write_frees_no_zone() {
    #[derive(Clone, Copy, PartialEq)]
    enum Durable {
        Never,
        Amid,
        Between,
    }
    let zones = [zones()];
    let fences = |durable: Durable| {
        let context = ArrayContext::new(&[Blocks(60 * 64)]).zoned(&zones);
        let mut log = parse("zone-log").unwrap().build(&context).unwrap().array;
        let mut fences = Vec::new();
        for i in 0..400 {
            let mut plan = start(&mut *log, host(HostOp::Write, i % 8 * 64, 64));
            while !plan.ops().is_empty() {
                if durable == Durable::Amid {
                    log.durable();
                }
                fences.push(plan.is_fence());
                plan = complete(&mut *log, false);
            }
            fences.push(plan.is_fence());
            if durable == Durable::Between {
                log.durable();
            }
        }
        fences
    };
    let never = fences(Durable::Never);
    assert!(never.contains(&true), "zones are written again");
    assert_eq!(fences(Durable::Amid), never);
    assert!(!fences(Durable::Between).contains(&true));
}

/// Each zone in reserve is one that the host does not see.
#[test]
fn zones_in_reserve_are_not_the_hosts() {
    let zones = [zones()];
    let host = |reserved: u64| {
        let context = ArrayContext::new(&[Blocks(60 * 64)]).zoned(&zones);
        let built = parse(&format!("dm-zoned,reserved={reserved}")).unwrap().build(&context).unwrap();
        built.array.host_blocks().0
    };
    assert_eq!([host(1) - host(3), host(3) - host(10)], [2 * 64, 7 * 64]);
    assert!(host(1) < 59 * 64, "its own tables take some, too");
}

/// 20 zones that take any write and 40 that are written in order, of 64 blocks.
fn zones() -> Vec<Zone> {
    let zone = |at: u64| {
        let (start, kind) =
            (Lba(at * 64), [ZoneKind::SequentialRequired, ZoneKind::Conventional][usize::from(at < 20)]);
        let condition = if at < 20 { ZoneCondition::NotWritePointer } else { ZoneCondition::Empty };
        let pointer = (at >= 20).then_some(start);
        Zone { start, blocks: Blocks(64), kind, condition, pointer, non_sequential: false }
    };
    (0..60).map(zone).collect()
}

/// A write to a drive with zones got nothing, or it did and the drive died before that was known: it is refused, and not acknowledged
/// and lost; and so is all that comes after a death.
#[test]
fn a_write_to_zones_that_cannot_be_kept_is_refused() {
    let zones = [zones()];
    for text in ["zone-log", "dm-zoned,reserved=1"] {
        for (lost, dies) in [(true, false), (false, true), (true, true)] {
            let context = ArrayContext::new(&[Blocks(60 * 64)]).zoned(&zones);
            let mut array = parse(text).unwrap().build(&context).unwrap().array;
            array.reported(MemberId(0), &zones[0]);
            let plan = start(&mut *array, host(HostOp::Write, 0, 8));
            assert_eq!((plan.ops().len(), plan.outcomes().len()), (1, 0), "{text}");
            if dies {
                array.failed(MemberId(0), &mut MemberPlan::new(true));
            }
            let refused = [Outcome::Refused(Ticket(0), Refusal::Lost)];
            assert_eq!(complete(&mut *array, lost).outcomes(), refused, "{text}: {lost} {dies}");
            if dies {
                for op in [HostOp::Read, HostOp::Write, HostOp::Flush] {
                    assert_eq!(start(&mut *array, host(op, 0, 8)).outcomes(), refused, "{text}: {op:?}");
                }
            }
        }
    }
}

/// Host-managed drives refuse what is out of order: arrays of them are refused, but for those that write in order.
#[test]
fn arrays_of_host_managed_drives_are_those_that_write_in_order() {
    for (text, fits) in [
        ("striped,disks=2", false),
        ("mirror,disks=2", false),
        ("raid5,disks=3,chunk=8blk", false),
        ("dvs,disks=4,chunk=8blk,segment=4", false),
        ("full-stripe,disks=3,chunk=8blk,batch=5", true),
        ("zone-log", true),
        ("dm-zoned,reserved=1", true),
        ("spanning,disks=1", false),
    ] {
        let chosen = parse(text).unwrap();
        let sizes = vec![Blocks(60 * 64); chosen.disks as usize];
        let zones = vec![zones(); chosen.disks as usize];
        let built = chosen.build(&ArrayContext::new(&sizes).zoned(&zones)).map(drop);
        let said = built.as_ref().err().map(ToString::to_string).unwrap_or_default();
        assert_eq!((built.is_ok(), said.contains("host-managed")), (fits, !fits), "{text}: {said}");
    }
}

/// Who reads what it never wrote wants drives that answer such reads, below other arrays as well.
#[test]
fn drives_that_refuse_reads_above_write_pointers_fit_who_asks_for_none() {
    for text in [
        "zone-log",
        "raid5,disks=3,chunk=8blk / zone-log",
        "full-stripe,disks=3,chunk=8blk,batch=5",
        "dm-zoned,reserved=1",
    ] {
        let chosen = parse(text).unwrap();
        let sizes = vec![Blocks(60 * 64); chosen.disks as usize];
        let zones = vec![zones(); chosen.disks as usize];
        let built = |unrestricted_reads| {
            let limits = ZoneLimits { unrestricted_reads, most_open: None, pitch: None, preferred: None };
            let context = ArrayContext::new(&sizes).zoned(&zones).limited(Some(limits));
            chosen.build(&context).map(drop).map_err(|e| e.to_string())
        };
        assert_eq!(built(true), Ok(()), "{text}");
        let fits = !text.contains("zone-log");
        assert!(
            built(false).map_or_else(|e| !fits && e.contains("leave urswrz=off out"), |()| fits),
            "{text}"
        );
    }
}

/// An array, what it asks for, and works whose phases end one after the other; jobs that it plans are begun.
struct Driven {
    array: Box<dyn Array>,
    tickets: u32,
    /// Works with a phase under way.
    open: std::collections::VecDeque<Ticket>,
    asked: Vec<(MemberId, HostRequest)>,
}

impl Driven {
    fn new(text: &str, sizes: &[u64]) -> Self {
        Self {
            array: array(text, sizes),
            tickets: 0,
            open: std::collections::VecDeque::new(),
            asked: Vec::new(),
        }
    }

    /// Begins a work, and the jobs that come of it.
    fn begin(&mut self, work: Work) {
        self.tickets += 1;
        let (ticket, mut plan) = (Ticket(self.tickets), MemberPlan::new(true));
        self.array.start(ticket, &work, &mut plan);
        self.take(&plan);
    }

    fn end_phase(&mut self, ticket: Ticket) {
        let mut plan = MemberPlan::new(true);
        self.array.complete(Phase { ticket, lost: false, untaken: None, busy: false }, &mut plan);
        self.take(&plan);
    }

    fn take(&mut self, plan: &MemberPlan) {
        for op in plan.ops() {
            self.asked.push((op.member, op.request));
            if !self.open.contains(&op.ticket) {
                self.open.push_back(op.ticket);
            }
        }
        plan.jobs().iter().for_each(|job| self.begin(Work::Job(*job)));
    }

    /// Ends all phases.
    fn settle(&mut self) {
        while let Some(ticket) = self.open.pop_front() {
            self.end_phase(ticket);
        }
    }

    /// Blocks written since it was asked last, by why: the host's, parity, padding, anything else.
    fn written(&mut self) -> [u64; 4] {
        let mut sums = [0; 4];
        for (_, r) in self.asked.drain(..).filter(|(_, r)| r.op == HostOp::Write) {
            let of = [Cause::Host, Cause::Parity, Cause::Fill].iter().position(|why| *why == r.why);
            sums[of.unwrap_or(3)] += r.blocks.0;
        }
        sums
    }
}

/// Six chunks of eight blocks that make whole stripes, and one alone: what is written for the host is what it wrote, whatever lies beside it on
/// a drive; the rest is parity, and padding where only whole stripes are written.
#[test]
fn blocks_are_written_for_what_they_are_for() {
    for (text, whole, alone) in [
        ("striped,disks=4,chunk=8blk", [48, 0, 0, 0], [8, 0, 0, 0]),
        ("raid5,disks=4,chunk=8blk", [48, 16, 0, 0], [8, 8, 0, 0]),
        ("raid6,disks=4,chunk=8blk", [48, 48, 0, 0], [8, 16, 0, 0]),
        ("full-stripe,disks=4,chunk=8blk,segment=4", [48, 16, 0, 0], [8, 8, 16, 0]),
    ] {
        let mut driven = Driven::new(text, &[960; 4]);
        for (lba, blocks, expected) in [(0, 48, whole), (96, 8, alone), (144, 48, whole)] {
            driven.begin(host(HostOp::Write, lba, blocks));
            driven.settle();
            // Parity goes from drive to drive: no two rows of it lie together, but of two parities.
            let parity = driven.asked.iter().filter(|(_, r)| r.why == Cause::Parity && r.op == HostOp::Write);
            let longest = parity.map(|(_, r)| r.blocks.0).max().unwrap_or(0);
            assert!(longest <= 8 || text.starts_with("raid6"), "{text}: {longest}");
            assert_eq!(driven.written(), expected, "{text}: {blocks} blocks");
        }
    }
}

/// Two drives cannot have three copies.
#[test]
fn more_copies_than_drives_are_refused() {
    let built = |text: &str| {
        let context = ArrayContext::new(&[Blocks(480); 2]);
        parse(text).unwrap().build(&context).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(built("mirror,disks=2,copies=2"), Ok(()));
    let e = built("mirror,disks=2,copies=3").unwrap_err();
    assert!(e.contains("copies=3 is not accepted: at most the 2 drives of disks="), "{e}");
}

/// Zones of 112 blocks hold four chunks of 24 and 16 blocks that no chunk fits: a zone is reset as a whole all the same, as drives ask for.
#[test]
fn a_zone_that_is_no_multiple_of_the_chunk_is_reset_as_a_whole() {
    let zone = |at: u64| {
        let (start, kind) = (Lba(at * 112), ZoneKind::SequentialRequired);
        let condition = ZoneCondition::Empty;
        Zone { start, blocks: Blocks(112), kind, condition, pointer: Some(start), non_sequential: false }
    };
    let zones = vec![(0..20).map(zone).collect::<Vec<_>>(); 3];
    let context = ArrayContext::new(&[Blocks(20 * 112); 3]).zoned(&zones);
    let text = "full-stripe,disks=3,chunk=24blk,batch=2";
    let array = parse(text).unwrap().build(&context).unwrap().array;
    let (tickets, open, asked) = Default::default();
    let mut driven = Driven { array, tickets, open, asked };
    for i in 0..100 {
        driven.begin(host(HostOp::Write, i % 4 * 48, 48));
        driven.settle();
    }
    let resets = driven.asked.iter().filter(|(_, r)| matches!(r.op, HostOp::Zone(_)));
    let resets: Vec<_> = resets.map(|(_, r)| (r.lba.0 % 112, r.blocks.0)).collect();
    assert!(resets.len() > 10 && resets.iter().all(|r| *r == (0, 112)), "{resets:?}");
}
