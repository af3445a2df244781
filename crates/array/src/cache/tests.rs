//! What is destaged and when, request by request.

use super::DirtyChange;
use crate::plan::Outcome;
use crate::{Array, ArrayContext, Change, Job, MemberId, MemberPlan, Phase, Records, Ticket, Work, parse};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba};

struct Rig {
    array: Box<dyn Array>,
    disks: u32,
}

impl Rig {
    fn new(text: &str) -> Self {
        let chosen = parse(text).unwrap();
        let sizes = vec![Blocks(960); chosen.disks as usize];
        let disks = chosen.disks;
        Self { array: chosen.build(&ArrayContext::new(&sizes)).unwrap().array, disks }
    }

    /// Begins a work; the blocks of the SSD that it asks for first, and the jobs that it plans.
    fn begin(&mut self, ticket: u32, work: Work) -> (Vec<u64>, Vec<Job>) {
        let mut plan = MemberPlan::new(true);
        self.array.start(Ticket(ticket), &work, &mut plan);
        let on_ssd = plan.ops().iter().filter(|op| op.member.0 == self.disks).map(|op| op.request.lba.0);
        (on_ssd.collect(), plan.jobs().to_vec())
    }

    /// Writes to the cache; the jobs that this leads to.
    fn write(&mut self, lba: u64, blocks: u64) -> Vec<Job> {
        let request = HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks));
        let (_, mut jobs) = self.begin(0, Work::Host(request));
        let mut plan = MemberPlan::new(true);
        let phase = Phase { ticket: Ticket(0), lost: false, untaken: None, busy: false };
        self.array.complete(phase, &mut plan);
        jobs.extend(plan.jobs());
        jobs
    }
}

/// Pages of one block, destaged two at a time from more than four dirty ones on: of pages 0 to 4, of which 0 was written again,
/// 1 and 2 are the oldest. They lie on the SSD in the order in which they came.
#[test]
fn of_a_group_the_oldest_pages_go_first() {
    let mut rig = Rig::new(
        "striped,disks=2,chunk=8blk,ssd_write=8blk,ssd_page=1blk,ssd_group=8blk,ssd_high=50%,ssd_low=25%,ssd_batch=2",
    );
    for page in [0, 1, 2, 3, 0] {
        assert_eq!(rig.write(page, 1), []);
    }
    let jobs = rig.write(4, 1);
    assert_eq!(jobs.len(), 1);
    assert_eq!(rig.begin(1, Work::Job(jobs[0])).0, [1, 2]);
}

/// The same, where page 2 came before page 1: what goes out together goes in the order of the disks.
#[test]
fn a_batch_is_destaged_in_the_order_of_its_pages() {
    let mut rig = Rig::new(
        "striped,disks=2,chunk=8blk,ssd_write=8blk,ssd_page=1blk,ssd_group=8blk,ssd_high=50%,ssd_low=25%,ssd_batch=2",
    );
    for page in [2, 1, 3, 0] {
        assert_eq!(rig.write(page, 1), []);
    }
    let jobs = rig.write(4, 1);
    assert_eq!(rig.begin(1, Work::Job(jobs[0])).0, [1, 0]);
}

/// Requests that reach over three pages: each is one hit or one miss.
#[test]
fn a_request_over_several_pages_hits_once() {
    let mut rig = Rig::new(
        "striped,disks=2,chunk=8blk,ssd_write=8blk,ssd_read=8blk,ssd_page=1blk,ssd_high=90%,ssd_low=80%",
    );
    let counts = |rig: &Rig| {
        let counted = crate::counted(&*rig.array);
        ["ssd_write_hits", "ssd_read_hits"].map(|name| counted.get(name).unwrap_or(0))
    };
    rig.write(4, 3);
    assert_eq!(counts(&rig), [0, 0]);
    rig.write(4, 3);
    assert_eq!(counts(&rig), [1, 0]);
    let read = HostRequest::new(HostOp::Read, Lba(4), Blocks(3));
    assert_eq!(rig.begin(7, Work::Host(read)).0, [0, 1, 2]);
    assert_eq!(counts(&rig), [1, 1]);
}

/// An SSD is as large as it likes: places are kept for what the array can ask of it. Two drives of 960 blocks have 240 pages of eight;
/// of 2^60 bytes each place would take memory.
#[test]
fn places_are_those_that_the_array_can_fill() {
    let with = |size: &str| {
        let text = format!("striped,disks=2,chunk=8blk,ssd_page=8blk,ssd_write={size},ssd_read={size}");
        let mut rig = Rig::new(&text);
        assert!((0..100).all(|page| rig.write(8 * page, 8).is_empty()), "below the high mark");
        rig.array.map_bytes()
    };
    assert_eq!(with("64MiB"), with("100%"));
    assert_eq!(with("1048576TiB"), with("100%"));
}

/// STOW's control destages from the low mark on: four groups of one page each, marks at two and six pages of eight.
#[test]
fn destaging_by_rate_begins_at_the_low_mark() {
    let with = |control: &str| {
        let text =
            "striped,disks=2,chunk=8blk,ssd_write=8blk,ssd_page=1blk,ssd_group=1blk,ssd_high=75%,ssd_low=25%";
        let mut rig = Rig::new(&format!("{text},ssd_depth=2,ssd_control={control}"));
        (0..8).map(|page| rig.write(page, 1).len()).collect::<Vec<_>>()
    };
    // At three pages one of two destages at a time, from five on both; nothing ends here.
    assert_eq!(with("rate"), [0, 0, 1, 0, 1, 0, 0, 0]);
    assert_eq!(with("threshold"), [0, 0, 0, 0, 0, 0, 2, 0]);
}

/// A page of three chunks, of which two would make a full stripe of three drives: it waits until the cache is full.
#[test]
fn a_page_waits_for_all_of_its_chunks() {
    let mut rig = Rig::new(
        "dvs,overprovision=0%,disks=3,chunk=2blk,segment=9,stripes=wait,ssd_write=36blk,ssd_page=6blk,ssd_high=20%,ssd_low=10%",
    );
    assert_eq!(rig.write(0, 6), []);
    assert_eq!(rig.write(36, 6), [], "two pages of two groups, above the high mark");
    // The next page's three chunks and these are three stripes.
    assert_eq!(rig.write(6, 6).len(), 1);
}

/// Pages of one block in groups of two, destaged from the seventh on. Pages 4 to 7 are a stream's by then, and go first with STOW; with
/// WOW all groups were touched twice, and the first goes. Pages lie on the SSD in the order in which they came.
#[test]
fn stow_destages_streams_by_themselves() {
    let first = |policy: &str, pages: &[u64]| {
        let text = "striped,disks=2,chunk=8blk,ssd_write=12blk,ssd_page=1blk,ssd_group=2blk,ssd_high=50%,ssd_low=25%";
        let mut rig = Rig::new(&format!("{text},ssd_write_policy={policy}"));
        let jobs: Vec<Job> = pages.iter().flat_map(|page| rig.write(*page, 1)).collect();
        rig.begin(1, Work::Job(jobs[0])).0
    };
    let stream = [20, 20, 2, 3, 4, 5, 6, 7];
    assert_eq!((first("stow", &stream), first("wow", &stream)), (vec![3, 4], vec![1, 2]));
    // No stream: page 20 was written again, and the next one goes.
    let random = [20, 20, 30, 40, 50, 60, 70, 80];
    assert_eq!((first("stow", &random), first("scan", &random)), (vec![1], vec![0]));
}

/// Eight pages in groups of one. Above six dirty ones as many groups go as leave two. Where the marks are at seven, the eighth sends one:
/// a full cache is emptied no further than any other.
#[test]
fn so_many_groups_go_as_leave_the_low_mark() {
    let jobs = |high: u64, low: u64| {
        let text = "striped,disks=2,chunk=8blk,ssd_write=8blk,ssd_page=1blk,ssd_group=1blk,ssd_depth=8";
        let mut rig = Rig::new(&format!("{text},ssd_high={high}%,ssd_low={low}%"));
        (0..8).map(|page| rig.write(page, 1).len()).collect::<Vec<_>>()
    };
    assert_eq!(jobs(75, 25), [0, 0, 0, 0, 0, 0, 5, 1]);
    assert_eq!(jobs(90, 90), [0, 0, 0, 0, 0, 0, 0, 1]);
}

/// Pages of which each alone is no full stripe wait, whoever looks for a group to go, until the cache is full; the oldest one goes then.
#[test]
fn what_waits_for_its_chunks_is_not_forgotten() {
    let mut rig = Rig::new(
        "dvs,overprovision=0%,disks=3,chunk=2blk,segment=9,stripes=wait,ssd_write=36blk,ssd_page=6blk,ssd_high=20%,ssd_low=10%",
    );
    let jobs: Vec<Vec<Job>> = (0..6).map(|page| rig.write(36 * page, 6)).collect();
    assert_eq!(jobs.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 1]);
    assert_eq!(rig.begin(1, Work::Job(jobs[5][0])).0, [0]);
}

/// Without `ssd_group` what goes together is what the array writes together: of RAID-5 a row, here of two chunks of eight blocks. Behind
/// the journal, where there is one on the same SSD.
#[test]
fn groups_are_the_arrays_and_lie_behind_its_journal() {
    for journal in ["off", "on"] {
        let text = format!("raid5,disks=3,chunk=8blk,journal={journal}");
        let behind = parse(&text)
            .unwrap()
            .build(&ArrayContext::new(&[Blocks(960); 3]))
            .unwrap()
            .array
            .journal_blocks()
            .0;
        assert_eq!(behind > 0, journal == "on");
        let mut rig = Rig::new(&format!("{text},ssd_write=20blk,ssd_page=1blk,ssd_high=85%,ssd_low=50%"));
        let jobs: Vec<Job> = (0..18).flat_map(|page| rig.write(page, 1)).collect();
        let first: Vec<u64> = (behind..behind + 16).collect();
        assert_eq!(rig.begin(1, Work::Job(jobs[0])).0, first, "{journal}");
    }
}

/// A cache of two pages has read both. A write of the first one that is told as it is goes past it, and the next read of that page needs
/// the disks. With a write cache nothing goes past.
#[test]
fn what_goes_past_a_read_cache_is_forgotten_there() {
    let tell = |rig: &mut Rig| {
        let mut disks = Vec::new();
        let page = HostRequest::new(HostOp::Write, Lba(0), Blocks(8));
        (rig.array.writes(&page, &mut |member, own| disks.push((own.op, member.0))), disks)
    };
    let text = "raid5,disks=3,chunk=8blk,layout=parity-last,write=modify,ssd_page=8blk";
    let mut rig = Rig::new(&format!("{text},ssd_read=16blk"));
    let read = |lba: u64, blocks: u64| Work::Host(HostRequest::new(HostOp::Read, Lba(lba), Blocks(blocks)));
    let (on_ssd, jobs) = rig.begin(0, read(0, 16));
    assert_eq!(on_ssd, []);
    rig.begin(1, Work::Job(jobs[0]));
    for _ in 0..2 {
        let phase = Phase { ticket: Ticket(0), lost: false, untaken: None, busy: false };
        rig.array.complete(phase, &mut MemberPlan::new(true));
    }
    assert_eq!(rig.begin(2, read(0, 16)).0, [0, 8]);
    let [old, new] = [HostOp::Read, HostOp::Write].map(|op| [(op, 0), (op, 2)]);
    assert_eq!(tell(&mut rig), (true, [old, new].concat()));
    assert_eq!(rig.begin(3, read(8, 8)).0, [8]);
    assert_eq!(rig.begin(4, read(0, 8)).0, []);
    let mut rig = Rig::new(&format!("{text},ssd_read=16blk,ssd_write=16blk"));
    assert_eq!(tell(&mut rig), (false, vec![]));
}

/// Of two blocks one is dirty on the SSD and the other was on a disk that is dead, with one more: the read is refused at once. Read alone the
/// dirty one is there.
#[test]
fn a_read_is_refused_though_part_of_it_is_dirty() {
    let mut rig = Rig::new("raid5,disks=3,chunk=8blk,ssd_write=8blk,ssd_page=1blk,ssd_high=90%,ssd_low=80%");
    assert_eq!(rig.write(1, 1), []);
    [0, 1].map(MemberId).into_iter().for_each(|disk| rig.array.failed(disk, &mut MemberPlan::new(true)));
    let read = |lba, blocks| Work::Host(HostRequest::new(HostOp::Read, Lba(lba), Blocks(blocks)));
    assert_eq!(rig.begin(1, read(1, 1)), (vec![0], vec![]));
    for (ticket, lba) in [(2, 0), (4, 1)] {
        let (on_ssd, jobs) = rig.begin(ticket, read(lba, 2));
        assert_eq!((on_ssd.len(), jobs.len()), (0, 1));
        let mut plan = MemberPlan::new(true);
        rig.array.start(Ticket(ticket + 1), &Work::Job(jobs[0]), &mut plan);
        let over = [Outcome::Refused(Ticket(ticket), Refusal::Lost), Outcome::Ended(Ticket(ticket + 1))];
        assert_eq!((plan.outcomes(), plan.ops().len()), (&over[..], 0), "{lba}");
    }
}

/// Of caches with any number of pages, before arrays of any size, what is recorded of a page comes back.
#[test]
fn every_page_in_every_place_comes_back_from_its_record() {
    let ends = |bits: u32| [0, 1 << 16, (1 << bits) - 1, 1 << bits, 1 << (bits + 9)];
    for page in ends(40) {
        for (slot, valid) in ends(24).into_iter().zip([1, 1 << 63, 1 << 64, 1 << 127, u128::MAX]) {
            for change in [DirtyChange::Put { page, slot, valid }, DirtyChange::Gone(page)] {
                let mut records = Records::default();
                records.add(&change);
                assert_eq!(records.iter().filter_map(DirtyChange::of).collect::<Vec<_>>(), [change]);
            }
        }
    }
}

/// A cache of less than a page would be none, and nobody would be told.
#[test]
fn a_cache_of_less_than_a_page_is_refused() {
    let says = |sizes: &str| {
        let chosen = parse(&format!("striped,disks=2,chunk=8blk,ssd_page=8blk,{sizes}")).unwrap();
        chosen.build(&ArrayContext::new(&[Blocks(960); 2])).err().map(|e| e.to_string())
    };
    for (sizes, key) in [
        ("ssd_read=64blk,ssd_write=7blk", "ssd_write"),
        ("ssd_read=7blk,ssd_write=64blk", "ssd_read"),
        ("ssd_read=7blk", "ssd_read"),
        ("ssd_write=0.1%", "ssd_write"),
        ("ssd_read=64blk,ssd_write=0.01%", "ssd_write"),
    ] {
        let text = says(sizes).unwrap_or_default();
        assert!(text.contains(key) && text.contains("at least a page of 8 blocks"), "{sizes}: {text}");
    }
    for sizes in ["ssd_read=8blk", "ssd_read=64blk,ssd_write=0blk", "ssd_write=8blk,ssd_read=0%"] {
        assert_eq!(says(sizes), None, "{sizes}");
    }
}
