//! What a served array asks of the loop, on real layouts: steps of its drives, winding up, restarts.

use super::*;
use crate::{ArrayContext, ArrayState, Health, Records, Stop, parse};
use smrlab_drive::SavedState;

const CLEANS: &str = "disk-cache,cache=10%,idle=5ms";

/// A layout over drives with these layers, whose work in idle time is done in steps.
fn served(text: &str, layers: &[&str]) -> EventLoop {
    let members: Vec<Member> = layers.iter().map(|layer| drive(layer)).collect();
    let sizes: Vec<Blocks> = members.iter().filter_map(|m| Some(m.drive()?.layer().host_blocks())).collect();
    let array = parse(text).unwrap().build(&ArrayContext::new(&sizes)).unwrap().array;
    EventLoop::new(array, members, Vec::new(), Schedule::default(), false).background_by_step()
}

/// Writes here and there, and waits for it: caches have something to put away.
fn scatter(all: &mut EventLoop, told: &mut Told) {
    for id in 0..20 {
        let r = HostRequest::new(HostOp::Write, Lba(37 * id), Blocks(8)).numbered(id);
        let Ok(()) = all.submit(all.now(), &r, told);
        let Ok(()) = all.finish(told);
    }
    std::iter::from_fn(|| all.next_done()).for_each(|done| assert_eq!(done.refusal, None));
}

/// Which members took steps, and whether each call said that one did.
fn steps(all: &mut EventLoop, n: u64) -> (Vec<bool>, [usize; 2]) {
    let (mut told, now) = (Told::default(), all.now());
    let said = (1..=n).map(|i| {
        let Ok(any) = all.idle_step(now + SimTime::from_ms(500 * i), &mut told);
        any
    });
    let said = said.collect();
    let of = |member| told.0.iter().filter(|l| l.starts_with(&format!("step of {member:?} "))).count();
    (said, [0, 1].map(|n| of(MemberId(n))))
}

/// Work in idle time is done where it is asked for and not by itself, by drives that have some, not by dead ones.
#[test]
fn steps_are_those_of_living_drives() {
    for (layers, dead, works) in [
        ([CLEANS, CLEANS], None, [true, true]),
        ([CLEANS, "cmr"], None, [true, false]),
        (["cmr", CLEANS], None, [false, true]),
        ([CLEANS, CLEANS], Some(0), [false, true]),
        ([CLEANS, CLEANS], Some(1), [true, false]),
        (["cmr", "cmr"], None, [false, false]),
    ] {
        let (mut all, mut told) = (served("mirror,disks=2", &layers), Told::default());
        scatter(&mut all, &mut told);
        if let Some(member) = dead {
            let Ok(()) = all.fail(all.now(), MemberId(member), &mut told);
        }
        assert!(!told.0.iter().any(|line| line.starts_with("step of")), "by itself: {:?}", told.0);
        let (said, took) = steps(&mut all, 4);
        assert_eq!(took.map(|n| n > 0), works, "{layers:?}, dead: {dead:?}");
        assert_eq!(said[0], works.contains(&true), "{layers:?}, dead: {dead:?}");
    }
}

/// What living drives have done of steps under way when the server stops, or the power fails, is carried out, and no more of it.
#[test]
fn steps_under_way_are_given_up() {
    for (dead, of) in [(None, [1, 1]), (Some(0), [0, 1]), (Some(1), [1, 0])] {
        for power_fails in [false, true] {
            let (mut all, mut told) = (served("mirror,disks=2", &[CLEANS, CLEANS]), Told::default());
            scatter(&mut all, &mut told);
            let Ok(_) = all.idle_step(all.now() + SimTime::from_ms(8), &mut told);
            if let Some(member) = dead {
                let Ok(()) = all.fail(all.now(), MemberId(member), &mut told);
            }
            told.0.clear();
            if power_fails {
                let Ok(drives) = all.power_lost(&mut told);
                assert_eq!(drives.len(), 2);
            } else {
                let Ok(()) = all.wind_up(&mut told);
            }
            let given_up = |member| {
                let of = format!("step of {member:?} ");
                let lines: Vec<_> = told.0.iter().filter(|line| line.starts_with(&of)).collect();
                assert!(lines.iter().all(|l| !l.contains(": 0 ") && l.ends_with("false")), "{lines:?}");
                lines.len()
            };
            assert_eq!([0, 1].map(|n| given_up(MemberId(n))), of, "{dead:?}: {:?}", told.0);
        }
    }
}

/// Finishing ends a rebuild that has begun, and the comparing of copies and parities after a loss of power.
#[test]
fn finishing_ends_rebuilds_and_comparing() {
    for (text, disks, compares) in [
        ("mirror,disks=2", 2, true),
        ("raid5,disks=3,chunk=8blk", 3, true),
        ("raid6,disks=4,chunk=8blk", 4, true),
        ("dvs,disks=4,chunk=8blk,segment=4", 4, false),
        ("full-stripe,disks=4,chunk=8blk,segment=4", 4, false),
    ] {
        let (mut all, mut told) = (served(text, &["cmr"; 4][..disks]), Told::default());
        let Ok(()) = all.recover(&Records::default(), Stop::PowerLost, &mut told);
        assert_eq!(all.array().unfinished(), compares, "{text}");
        let Ok(()) = all.finish(&mut told);
        assert!(!all.array().unfinished(), "{text}");
        scatter(&mut all, &mut told);
        let Ok(()) = all.fail(all.now(), MemberId(1), &mut told);
        let Ok(()) = all.replace(all.now(), MemberId(1), drive("cmr"), &mut told);
        assert!(all.array().unfinished(), "{text}");
        let Ok(()) = all.finish(&mut told);
        assert!(!all.array().unfinished() && all.is_at_rest(), "{text}");
        assert_eq!(all.array().health(MemberId(1)), Health::Whole, "{text}");
    }
}

/// What is prefilled takes no time, and nobody hears of it as done.
#[test]
fn what_is_prefilled_is_not_done() {
    for text in ["mirror,disks=2", "raid5,disks=3,chunk=8blk"] {
        let layers = ["cmr"; 3];
        let (mut all, mut told) =
            (served(text, &layers[..if text.starts_with('m') { 2 } else { 3 }]), Told::default());
        for id in 0..9 {
            let r = HostRequest::new(HostOp::Write, Lba(5 * id), Blocks(12)).numbered(id);
            let Ok(()) = all.instantly(&r, &mut told);
            assert!(all.next_done().is_none() && all.is_at_rest(), "{text}");
        }
        assert_eq!((all.now(), all.in_flight()), (SimTime::ZERO, 0));
    }
}

/// A drive that was put in later does no more by itself than those before.
#[test]
fn a_fresh_drive_takes_steps_as_the_others() {
    let (mut all, mut told) = (served("mirror,disks=2", &[CLEANS, CLEANS]), Told::default());
    scatter(&mut all, &mut told);
    let Ok(()) = all.fail(all.now(), MemberId(0), &mut told);
    let Ok(()) = all.replace(all.now(), MemberId(0), drive(CLEANS), &mut told);
    let Ok(()) = all.finish(&mut told);
    while all.array().health(MemberId(0)) != Health::Whole {
        let Ok(more) = all.step(None, &mut told);
        assert!(more, "the rebuild ends");
    }
    scatter(&mut all, &mut told);
    let later = all.now() + SimTime::from_ms(60_000);
    let Ok(()) = all.advance(later, &mut told);
    scatter(&mut all, &mut told);
    assert!(!told.0.iter().any(|line| line.starts_with("step of")), "by itself: {:?}", told.0);
    assert!(steps(&mut all, 4).1[0] > 0);
}

/// A rebuild that is under way when a server stops goes no further than its works under way, and goes on when it is asked to.
#[test]
fn winding_up_begins_nothing_new() {
    for text in ["mirror,disks=2,rebuild_unit=8blk", "raid5,disks=3,chunk=8blk,rebuild_unit=8blk"] {
        let layers = ["cmr"; 3];
        let (mut all, mut told) =
            (served(text, &layers[..if text.starts_with('m') { 2 } else { 3 }]), Told::default());
        scatter(&mut all, &mut told);
        let Ok(()) = all.fail(all.now(), MemberId(1), &mut told);
        let Ok(()) = all.replace(all.now(), MemberId(1), drive("cmr"), &mut told);
        for _ in 0..3 {
            let Ok(_) = all.step(None, &mut told);
        }
        let Ok(()) = all.wind_up(&mut told);
        let Health::Rebuilding(done, of) = all.array().health(MemberId(1)) else {
            panic!("{text}: {:?}", all.array().health(MemberId(1)))
        };
        assert!(done < of / 2, "{text}: {done} of {of}");
        while all.array().health(MemberId(1)) != Health::Whole {
            let Ok(more) = all.step(None, &mut told);
            assert!(more, "{text}: the rebuild goes on");
        }
    }
}

/// A request that is under way when a server stops is carried out, also where it takes stripes of a member of an array for its own.
#[test]
fn winding_up_ends_requests_of_arrays_of_arrays() {
    for (text, disks, ssds) in [
        ("mirror,chunk=8blk / spanning,disks=1,ssd_read=64blk,ssd_page=8blk", 2, 2),
        ("striped,disks=2,chunk=8blk / mirror,chunk=8blk", 4, 0),
    ] {
        let mut members: Vec<Member> = (0..disks).map(|_| drive("cmr")).collect();
        let sizes: Vec<Blocks> =
            members.iter().filter_map(|m| Some(m.drive()?.layer().host_blocks())).collect();
        members.extend((0..ssds).map(|_| Member::Ssd(Ssd::new(SimTime::from_us(90), 3000, Blocks(64)))));
        let array = parse(text).unwrap().build(&ArrayContext::new(&sizes)).unwrap().array;
        let mut all = EventLoop::new(array, members, Vec::new(), Schedule::default(), false);
        let mut told = Told::default();
        for (id, op) in (0..).zip([HostOp::Write, HostOp::Read, HostOp::Read]) {
            let r = HostRequest::new(op, Lba(4), Blocks(20)).numbered(id);
            let Ok(()) = all.submit(all.now(), &r, &mut told);
        }
        let Ok(()) = all.wind_up(&mut told);
        let done: Vec<_> = std::iter::from_fn(|| all.next_done()).map(|d| d.refusal).collect();
        assert_eq!(done, [None; 3], "{text}");
    }
}

/// After a loss of power copies and parities of arrays of arrays are in doubt, whichever of the two arrays has them, and are compared.
#[test]
fn copies_of_arrays_of_arrays_are_in_doubt() {
    for text in [
        "mirror,chunk=8blk / striped,disks=2,chunk=8blk",
        "striped,disks=2,chunk=8blk / mirror,chunk=8blk",
        "raid5,disks=3,chunk=8blk / spanning,disks=1",
        "spanning,disks=1 / raid5,disks=3,chunk=8blk",
    ] {
        for (stop, doubtful) in [(Stop::Orderly, false), (Stop::PowerLost, true)] {
            let disks = parse(text).unwrap().disks as usize;
            let (mut all, mut told) = (served(text, &["cmr"; 4][..disks]), Told::default());
            let Ok(()) = all.recover(&Records::default(), stop, &mut told);
            assert_eq!(all.array().unfinished(), doubtful, "{text}: {stop:?}");
            let Ok(()) = all.finish(&mut told);
            assert!(!all.array().unfinished() && all.is_at_rest(), "{text}: {stop:?}");
        }
    }
}

/// After a restart a dead drive is dead, and said to be; one that is being rebuilt is not, nor is what holds all that it should.
#[test]
fn a_restart_tells_of_dead_drives() {
    for (replaced, text) in [
        (false, "raid5,disks=3,chunk=8blk"),
        (true, "raid5,disks=3,chunk=8blk"),
        (false, "raid5,disks=3,chunk=8blk,ssd_write=64blk,ssd_page=8blk"),
    ] {
        let fresh = || {
            let mut members: Vec<Member> = (0..3).map(|_| drive("cmr")).collect();
            let sizes: Vec<Blocks> =
                members.iter().filter_map(|m| Some(m.drive()?.layer().host_blocks())).collect();
            let array = parse(text).unwrap().build(&ArrayContext::new(&sizes)).unwrap().array;
            if text.contains("ssd") {
                members.push(Member::Ssd(Ssd::new(SimTime::from_us(90), 3000, Blocks(4000))));
            }
            EventLoop::new(array, members, Vec::new(), Schedule::default(), false)
        };
        let (mut all, mut told) = (fresh(), Told::default());
        let Ok(()) = all.fail(SimTime::ZERO, MemberId(1), &mut told);
        if replaced {
            let Ok(()) = all.replace(SimTime::ZERO, MemberId(1), drive("cmr"), &mut told);
        }
        let mut records = Records::default();
        all.array().checkpoint(&mut records);
        let (mut again, mut told) = (fresh(), Told::default());
        let Ok(()) = again.recover(&records, Stop::Orderly, &mut told);
        let died: Vec<_> = told.0.iter().filter(|line| line.starts_with("died")).cloned().collect();
        let expected = if replaced { Vec::new() } else { vec![format!("died {:?}", MemberId(1))] };
        assert_eq!(died, expected, "{text}");
        let dead: Vec<bool> =
            (0..again.members().count() as u32).map(|n| again.is_dead(MemberId(n))).collect();
        assert_eq!(dead.iter().filter(|dead| **dead).count(), usize::from(!replaced), "{text}");
        assert_eq!(dead[1], !replaced, "{text}");
    }
}

/// Of a state with a dead drive a spare takes its place so long after the beginning, and is filled; without `replace` none does.
#[test]
fn what_was_dead_before_is_replaced_as_what_dies() {
    for (text, replaced) in [("mirror,disks=2,replace=5s", true), ("mirror,disks=2", false)] {
        let chosen = parse(text).unwrap();
        let fresh = || {
            let sizes = [drive("cmr").drive().unwrap().layer().host_blocks(); 2];
            let array = chosen.build(&ArrayContext::new(&sizes)).unwrap().array;
            let (members, spares) = (vec![drive("cmr"), drive("cmr")], vec![drive("cmr")]);
            EventLoop::new(array, members, spares, chosen.schedule.clone(), false)
        };
        let (mut all, mut told) = (fresh(), Told::default());
        let Ok(()) = all.fail(SimTime::ZERO, MemberId(1), &mut told);
        let state = ArrayState::take(&mut all, SavedState::default(), &SavedState::default());
        let (mut again, mut told) = (fresh(), Told::default());
        let Ok(()) = state.give(&mut again, &mut told);
        let Ok(()) = again.advance(SimTime::from_ms(4999), &mut told);
        assert_eq!(again.array().health(MemberId(1)), Health::Dead, "{text}");
        let Ok(()) = again.advance(SimTime::from_ms(5000), &mut told);
        assert_eq!(again.array().unfinished(), replaced, "{text}");
        let Ok(()) = again.finish(&mut told);
        let after = if replaced { Health::Whole } else { Health::Dead };
        assert_eq!(again.array().health(MemberId(1)), after, "{text}");
    }
}

/// A drive with zones that were written before its array knew of it: the array goes on behind what the drive has.
#[test]
fn a_restart_asks_drives_for_their_zones() {
    let member = drive("zoned,zone=32KiB,conventional=0%");
    let zones = [smrlab_stl::zones_of(member.drive().unwrap().layer())];
    let over = |member: Member| {
        let sizes = [member.drive().unwrap().layer().host_blocks()];
        let array = parse("zone-log").unwrap().build(&ArrayContext::new(&sizes).zoned(&zones)).unwrap().array;
        EventLoop::new(array, vec![member], Vec::new(), Schedule::default(), false)
    };
    let write = |all: &mut EventLoop, told: &mut Told, n: u64| {
        for id in 0..n {
            let r = HostRequest::new(HostOp::Write, Lba(8 * id), Blocks(8)).numbered(id);
            let Ok(()) = all.submit(all.now(), &r, told);
            let Ok(()) = all.finish(told);
        }
        let done: Vec<_> = std::iter::from_fn(|| all.next_done()).map(|done| done.refusal).collect();
        assert_eq!(done, vec![None; n as usize]);
    };
    let (mut all, mut told) = (over(member), Told::default());
    write(&mut all, &mut told, 5);
    let Ok(mut drives) = all.power_lost(&mut told);
    let fcfs = smrlab_drive::sched::parse("fcfs").unwrap();
    let mut again = over(Member::of_drive(drives.remove(0), &fcfs));
    let Ok(()) = again.recover(&Records::default(), Stop::Killed, &mut told);
    write(&mut again, &mut told, 9);
}

/// Who carries out requests, and cannot do those of one drive.
struct Fails {
    drive: MemberId,
    failed: bool,
}

impl Observer for Fails {
    type Error = Infallible;

    fn dispatched(&mut self, _: SimTime, _: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.failed = e.member == self.drive;
        Ok(())
    }
}

impl ArrayObserver for Fails {
    fn issued(
        &mut self,
        _: SimTime,
        op: &MemberOp,
        _: &MemberPlan,
        _: Option<&TimedPlan<'_>>,
    ) -> Result<(), Infallible> {
        self.failed = op.member == self.drive;
        Ok(())
    }

    fn throws_out(&mut self) -> bool {
        std::mem::take(&mut self.failed)
    }
}

/// A drive whose requests cannot be carried out is dead from then on, with a scheduler and without; its array goes on with the other.
#[test]
fn a_drive_that_cannot_do_its_requests_is_thrown_out() {
    for scheduler in ["fcfs", "sptf,depth=64"] {
        for of in [0, 1] {
            let members = vec![behind("cmr", scheduler), behind("cmr", scheduler)];
            let sizes = [0, 1].map(|n: usize| members[n].drive().unwrap().layer().host_blocks());
            let array = parse("mirror,disks=2").unwrap().build(&ArrayContext::new(&sizes)).unwrap().array;
            let mut all = EventLoop::new(array, members, Vec::new(), Schedule::default(), false);
            let mut fails = Fails { drive: MemberId(of), failed: false };
            for id in 0..2 {
                let r = HostRequest::new(HostOp::Write, Lba(9 * id), Blocks(4)).numbered(id);
                let Ok(()) = all.submit(all.now(), &r, &mut fails);
                let Ok(()) = all.finish(&mut fails);
                assert_eq!(all.next_done().map(|done| done.refusal), Some(None), "{scheduler}");
            }
            let dead = [0, 1].map(|n| all.is_dead(MemberId(n)));
            assert_eq!((dead, all.deaths()), ([of == 0, of == 1], 1), "{scheduler}");
        }
    }
}

/// Of a state the drives come first: the array sees which of their zones are written, and resets those that it writes anew.
#[test]
fn a_state_is_given_to_drives_first() {
    let fresh = || {
        let member = drive("zoned,zone=32KiB,conventional=0%");
        let layer = member.drive().unwrap().layer();
        let (sizes, zones) = ([layer.host_blocks()], [smrlab_stl::zones_of(layer)]);
        let array = parse("zone-log").unwrap().build(&ArrayContext::new(&sizes).zoned(&zones)).unwrap().array;
        EventLoop::new(array, vec![member], Vec::new(), Schedule::default(), false)
    };
    let write_all = |all: &mut EventLoop, told: &mut Told| {
        for at in 0..all.array().host_blocks().0 / 64 {
            let r = HostRequest::new(HostOp::Write, Lba(64 * at), Blocks(64));
            let Ok(()) = all.submit(all.now(), &r, told);
            let Ok(()) = all.finish(told);
        }
        std::iter::from_fn(|| all.next_done()).for_each(|done| assert_eq!(done.refusal, None));
    };
    let (mut all, mut told) = (fresh(), Told::default());
    write_all(&mut all, &mut told);
    let state = ArrayState::take(&mut all, SavedState::default(), &SavedState::default());
    let mut again = fresh();
    let Ok(()) = state.give(&mut again, &mut told);
    (0..2).for_each(|_| write_all(&mut again, &mut told));
}

/// Notes which drives wrote, and when something was recorded.
#[derive(Default)]
struct Wrote(Vec<MemberId>, Vec<usize>);

impl Observer for Wrote {
    type Error = Infallible;

    fn dispatched(&mut self, _: SimTime, _: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        self.0.push(e.member);
        Ok(())
    }
}

impl ArrayObserver for Wrote {
    fn planned(&mut self, _: SimTime, plan: &MemberPlan) {
        if !plan.records().is_empty() {
            self.1.push(self.0.len());
        }
    }
}

/// Two drives of a mirror whose buffers have taken three writes.
fn buffered(wrote: &mut Wrote) -> EventLoop {
    let member = || of("tiny,write_cache=on,cache_size=1024blk,segments=4", "cmr", "sptf,depth=8");
    let members = vec![member(), member()];
    let sizes = [0, 1].map(|n: usize| members[n].drive().unwrap().layer().host_blocks());
    let array = parse("mirror,disks=2").unwrap().build(&ArrayContext::new(&sizes)).unwrap().array;
    let mut all = EventLoop::new(array, members, Vec::new(), Schedule::default(), false);
    for id in 0..3 {
        let r = HostRequest::new(HostOp::Write, Lba(90 * id), Blocks(4)).numbered(id);
        let Ok(()) = all.submit(all.now(), &r, wrote);
    }
    while all.in_flight() > 0 {
        let Ok(_) = all.step(None, wrote);
    }
    all
}

/// Where records wait, what buffers took before one of them is written when that is told: here that a drive died.
#[test]
fn what_waits_in_buffers_is_written_before_it_is_recorded() {
    for (waits, behind) in [(false, false), (true, true)] {
        let mut wrote = Wrote::default();
        let mut all = buffered(&mut wrote);
        all = if waits { all.records_wait() } else { all };
        let before = wrote.0.len();
        let Ok(()) = all.fail(all.now(), MemberId(1), &mut wrote);
        assert_eq!(wrote.1.last().map(|recorded| *recorded > before), Some(behind), "{:?}", wrote.1);
        assert!(!all.members_wait() || !waits);
    }
}

/// What a drive's buffer took goes with the drive where it dies; the others write theirs.
#[test]
fn a_dead_drive_writes_nothing_back() {
    for dead in [None, Some(0), Some(1)] {
        let mut wrote = Wrote::default();
        let mut all = buffered(&mut wrote);
        wrote.0.clear();
        if let Some(member) = dead {
            let Ok(()) = all.fail(all.now(), MemberId(member), &mut wrote);
        }
        let Ok(()) = all.write_back(&mut wrote);
        let wrote = [0, 1].map(|n| wrote.0.contains(&MemberId(n)));
        assert_eq!(wrote, [0, 1].map(|n| dead != Some(n)), "{dead:?}");
    }
}
