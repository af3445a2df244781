//! Plans by hand, some of which do not do what they should: what is wrong is found when it is read.

use super::*;
use crate::spaces::Spaces;
use smrlab_array::Term;
use smrlab_disk::Interference;
use smrlab_drive::Served;
use smrlab_stl::{Cause, Endpoint, Piece, Plan};
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime};

fn request(id: u64, op: HostOp, lba: u64, blocks: u64) -> HostRequest {
    HostRequest::new(op, Lba(lba), Blocks(blocks)).numbered(id)
}

fn says(result: Result<()>) -> String {
    result.map_err(|e| e.to_string()).err().unwrap_or_default()
}

fn conventional() -> Disk {
    let spec = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
    Disk::new(spec.geometry().clone(), Interference::tracks(1), false)
}

/// What the first drive did of a plan: all.
fn executed(plan: &Plan) -> TimedPlan<'_> {
    let at = SimTime::ZERO;
    TimedPlan {
        member: MemberId(0),
        plan,
        done: plan.ops().len(),
        served: Served { start: at, ack: at, end: at },
        began: at,
        ends: &[],
        whole: true,
        buffered: false,
    }
}

/// A conventional drive on which requests 0 and 1 wrote blocks 0 to 11, of which 4 to 7 twice, each in place.
struct Drive {
    disk: Disk,
    sent: u64,
}

impl Drive {
    fn new() -> Self {
        let mut drive = Self { disk: conventional(), sent: 0 };
        for lba in [0, 4] {
            drive.serves(HostOp::Write, (lba, 8), |p| _ = p.in_place(Dir::Write, Pba(lba), Blocks(8)));
        }
        drive
    }

    /// The answer to a request for so many blocks from this one on, for which the drive does what `does` plans.
    fn serves(&mut self, op: HostOp, (lba, blocks): (u64, u64), does: impl Fn(&mut Plan)) -> String {
        let mut plan = Plan::new(true, false);
        does(&mut plan);
        let executed = executed(&plan);
        self.sent += 1;
        says(self.disk.served(&request(self.sent - 1, op, lba, blocks), &executed))
    }

    fn reads(&mut self, lba: u64, blocks: u64) -> String {
        self.serves(HostOp::Read, (lba, blocks), |p| _ = p.in_place(Dir::Read, Pba(lba), Blocks(blocks)))
    }
}

/// A write that goes astray is found by the read of what it left as it was, and all else is as it should be.
#[test]
fn a_write_that_is_not_in_place_is_found() {
    let part = |end, blocks| Piece { blocks: Blocks(blocks), end };
    let host = |at, blocks| part(Endpoint::Host(Blocks(at)), blocks);
    let writes: [(&str, u64, Vec<Piece>, &str); 6] = [
        ("elsewhere, where something was", 40, vec![host(0, 4)], "LBA 4 from PBA 4"),
        ("a block further on", 5, vec![host(0, 4)], "LBA 4 from PBA 4"),
        ("the second half first", 4, vec![host(2, 2), host(0, 2)], "LBA 4 from PBA 4"),
        ("the last one missing", 4, vec![host(0, 3)], "LBA 7 from PBA 7"),
        ("zeroes at the end", 4, vec![host(0, 2), part(Endpoint::Zero, 2)], "LBA 6 from PBA 6"),
        ("one too many", 4, vec![host(0, 4), part(Endpoint::Zero, 1)], "LBA 8 from PBA 8"),
    ];
    for (what, pba, pieces, found) in writes {
        let mut drive = Drive::new();
        assert_eq!(drive.reads(0, 12), "");
        let blocks = Blocks(pieces.iter().map(|p| p.blocks.0).sum());
        drive.serves(HostOp::Write, (4, 4), |plan| {
            _ = plan.write_pieces(Cause::Host, Pba(pba), blocks, |out| out.extend_from_slice(&pieces));
        });
        assert_eq!(drive.reads(0, 4), "", "{what}");
        let answer = drive.reads(4, 8);
        assert!(
            answer.contains(&format!("request 5 read {found}, and not what was last")),
            "{what}: {answer}"
        );
    }
}

/// Of reads the same: from another place, of another length, of nothing.
#[test]
fn a_read_that_is_not_in_place_is_found() {
    let reads: [(fn(&mut Plan), &str); 5] = [
        (|p| _ = p.in_place(Dir::Read, Pba(2), Blocks(4)), "LBA 4 from PBA 2"),
        (
            |p| _ = p.in_place(Dir::Read, Pba(40), Blocks(4)),
            "LBA 4 from PBA 40, and not what was last written there: it was read as never",
        ),
        (
            |p| _ = p.in_place(Dir::Read, Pba(4), Blocks(2)),
            "LBA 6 without the medium, and not what was last written there: the layer delivered nothing",
        ),
        (|p| p.zero_to_host(Blocks::ZERO, Blocks(4)), "LBA 4 without the medium"),
        (|_| {}, "LBA 4 without the medium"),
    ];
    for (does, found) in reads {
        let mut drive = Drive::new();
        let answer = drive.serves(HostOp::Read, (4, 4), does);
        assert!(answer.contains(&format!("request 2 read {found}")), "{answer}");
    }
    // In two pieces, which is right.
    let mut drive = Drive::new();
    let both = |p: &mut Plan| {
        for at in [4, 0] {
            p.read_to_host(Cause::Host, Pba(at), Blocks(4), Blocks(at));
        }
    };
    assert_eq!(drive.serves(HostOp::Read, (0, 8), both), "");
}

/// An array's drive keeps nothing as long as it does all in place. The array tells it what was written, blocks 0 to 11, before a
/// write goes astray, and before a step that moves what nobody asked it to: both are found, and nothing else is.
#[test]
fn a_drive_of_an_array_is_told_what_was_written() {
    let mut write_astray = Plan::new(true, false);
    write_astray.write_pieces(Cause::Host, Pba(40), Blocks(4), |out| {
        out.push(Piece { blocks: Blocks(4), end: Endpoint::Host(Blocks::ZERO) });
    });
    let mut step = Plan::new(true, false);
    let read = step.read_staged(Cause::Defrag, Pba(0), Blocks(4));
    step.write(Cause::Defrag, Pba(4), Blocks(4), Endpoint::Staged(read, Blocks::ZERO));
    for astray in [Some(&write_astray), None] {
        let discards = Discards { of_disk: false, of_array: false };
        let host = HostData::new(1, discards, Spaces::one(Blocks(64)));
        let mut verify = Verify::new(1, Box::new(|_| conventional()), Some(host));
        let mut sent = 0;
        let mut serves = |verify: &mut Verify, op, lba, blocks, other: Option<&Plan>| {
            let r = request(sent, op, lba, blocks);
            let ticket = Ticket(sent as u32);
            sent += 1;
            verify.arrived(&r);
            verify.began(ticket, &r);
            let mut asked = MemberPlan::new(true);
            asked.ask(ticket, MemberId(0), r, |parts| {
                let end = parts.sum(&[Term::host(0)]);
                parts.push(Blocks(blocks), end);
            });
            verify.planned(&asked);
            asked.ops().iter().for_each(|op| verify.asked(op, Some(&asked)));
            let mut plan = Plan::new(true, false);
            let dir = if op == HostOp::Write { Dir::Write } else { Dir::Read };
            plan.in_place(dir, Pba(lba), Blocks(blocks));
            says(verify.dispatched(&r, &executed(other.unwrap_or(&plan))))
        };
        for lba in [0, 4] {
            assert_eq!(serves(&mut verify, HostOp::Write, lba, 8, None), "");
        }
        assert_eq!(serves(&mut verify, HostOp::Read, 0, 12, None), "");
        assert_eq!(verify.disks[0].bytes(), 0, "nothing is kept");
        match astray {
            Some(plan) => assert_eq!(serves(&mut verify, HostOp::Write, 4, 4, Some(plan)), ""),
            None => verify.background(&executed(&step)),
        }
        for right in [0, 8] {
            assert_eq!(serves(&mut verify, HostOp::Read, right, 4, None), "");
        }
        let wrong = serves(&mut verify, HostOp::Read, 4, 4, None);
        let found = "disk 0: verify-media: request";
        assert!(wrong.starts_with(found) && wrong.contains("read LBA 4 from PBA 4"), "{wrong}");
    }
}

/// Two disks with a chunk of four blocks each and one with parity; what an array does there is planned by hand.
struct Three {
    host: HostData,
    sent: u32,
}

impl Three {
    fn new() -> Self {
        let discards = Discards { of_disk: true, of_array: true };
        Self { host: HostData::new(3, discards, Spaces::one(Blocks(64))), sent: 0 }
    }

    /// The answer to a request, for which the array does what `phases` plan.
    fn does(
        &mut self,
        op: HostOp,
        lba: u64,
        phases: &[&dyn Fn(&mut MemberPlan, Ticket, HostRequest)],
    ) -> String {
        let (r, ticket) = (request(self.sent.into(), op, lba, 4), Ticket(self.sent));
        self.sent += 1;
        self.host.arrived(&r);
        self.host.began(ticket, r.id);
        for phase in phases {
            let mut plan = MemberPlan::new(true);
            phase(&mut plan, ticket, r);
            self.host.planned(&plan);
            plan.ops().iter().for_each(|op| self.host.asked(op, Some(&plan)));
        }
        says(self.host.done(&r, false))
    }

    /// Writes four blocks to these disks.
    fn writes(&mut self, lba: u64, to: &[u32]) {
        let write = |plan: &mut MemberPlan, ticket, r: HostRequest| {
            to.iter().for_each(|m| whole(plan, ticket, (*m, r), &[Term::host(0)]));
        };
        self.does(HostOp::Write, lba, &[&write]);
    }

    /// Reads them from this disk.
    fn reads(&mut self, lba: u64, from: u32) -> String {
        let read = |plan: &mut MemberPlan, ticket, r| whole(plan, ticket, (from, r), &[Term::host(0)]);
        self.does(HostOp::Read, lba, &[&read])
    }

    /// Makes those of disk 0 from the others.
    fn makes(&mut self) -> String {
        let read = |plan: &mut MemberPlan, ticket, _| (1..3).for_each(|disk| slot(plan, ticket, disk, 0));
        let sum = |plan: &mut MemberPlan, ticket, _| {
            plan.deliver(ticket, Blocks::ZERO, Blocks(4), &[1, 2].map(|s| Term::slot(s, Blocks::ZERO)));
        };
        self.does(HostOp::Read, 0, &[&read, &sum])
    }
}

/// Asks a disk for the chunk that the host asks for, which is the first one there.
fn whole(plan: &mut MemberPlan, ticket: Ticket, (disk, r): (u32, HostRequest), terms: &[Term]) {
    plan.ask(ticket, MemberId(disk), HostRequest { lba: Lba(0), ..r }, |parts| {
        let end = parts.sum(terms);
        parts.push(Blocks(4), end);
    });
}

/// Reads four blocks of a disk into the slot of its number.
fn slot(plan: &mut MemberPlan, ticket: Ticket, disk: u32, lba: u64) {
    plan.read_slot(ticket, MemberId(disk), Cause::Parity, (Lba(lba), Blocks(4)), disk);
}

/// Both copies are right until one of them is not written again, or is another's.
#[test]
fn a_copy_that_is_old_or_another_block_is_found() {
    let mut array = Three::new();
    array.writes(0, &[0, 1]);
    assert_eq!([0, 1].map(|disk| array.reads(0, disk)), ["", ""]);
    array.writes(0, &[0]);
    assert_eq!(array.reads(0, 0), "");
    let stale = array.reads(0, 1);
    assert!(stale.contains("read LBA 0 from the array") && stale.ends_with("it is other data"), "{stale}");
    let mut array = Three::new();
    array.writes(0, &[0, 1]);
    array.writes(8, &[1]);
    assert!(array.reads(0, 1).ends_with("it is other data"));
    let never = array.reads(8, 2);
    assert!(never.contains("LBA 8") && never.ends_with("read as never written"), "{never}");
}

/// Parity that does not fit is found when a chunk is made from it, and parity that fits makes the right one.
#[test]
fn parity_that_does_not_fit_is_found() {
    let zero = Blocks::ZERO;
    let cases: [(&str, u64, Vec<Term>, bool); 5] = [
        ("as it should be", 0, vec![Term::slot(0, zero), Term::host(0)], true),
        ("of another place", 4, vec![Term::slot(0, zero), Term::host(0)], false),
        ("without the new chunk", 0, vec![Term::slot(0, zero)], false),
        ("without the other one", 0, vec![Term::host(0)], false),
        ("with it twice", 0, vec![Term::slot(0, zero), Term::host(0), Term::slot(0, zero)], false),
    ];
    for (what, from, terms, right) in cases {
        let mut array = Three::new();
        array.writes(0, &[0]);
        let read = |plan: &mut MemberPlan, ticket, _| slot(plan, ticket, 0, from);
        let write = |plan: &mut MemberPlan, ticket, r| {
            whole(plan, ticket, (1, r), &[Term::host(0)]);
            whole(plan, ticket, (2, r), &terms);
        };
        array.does(HostOp::Write, 4, &[&read, &write]);
        assert_eq!((array.reads(0, 0), array.reads(4, 1)), (String::new(), String::new()), "{what}");
        let made = array.makes();
        assert_eq!(made.is_empty(), right, "{what}: {made}");
        // The chunk is written, and its parity is not.
        array.writes(4, &[1]);
        assert!(array.makes().contains("read LBA 0 from the array"), "{what}");
    }
}
