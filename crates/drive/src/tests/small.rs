//! What the comparison does not reach: what takes no time, prefilling, a drive's state.

use super::made_up::{GROUP, HOST, Script};
use super::naive::Told;
use crate::buffer::tests::naive::any_disk;
use crate::waiting::{Came, WaitingList};
use crate::{Drive, DriveSetup, Observer, SavedState, ScheduledDrive, sched};
use smrlab_disk::{Mechanics, Model};
use smrlab_stl::{HostRequest, Plan, Record, Records, Refusal, Sink, TranslationLayer};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime};

fn drive(seed: u64, model: Model) -> Drive {
    let mut rng = Rng::new(seed);
    let (g, spec) = any_disk(&mut rng);
    let script = Script {
        rng,
        medium: g.blocks().0,
        moved: vec![false; (HOST / GROUP) as usize],
        moves: true,
        left: 0,
        idle: None,
        step: Vec::new(),
        last: false,
        reach: None,
    };
    Drive::new(Box::new(script), Mechanics::new(g, &spec, model).unwrap(), DriveSetup::default())
}

/// Neither pauses nor stated operations take time where nothing does.
#[test]
fn nothing_takes_time_on_an_instant_drive() {
    let (mut d, mut told) = (drive(5, Model::Instant), Told::default());
    for id in 0..200 {
        let r = HostRequest::new(HostOp::Write, Lba(id % 100), Blocks(1)).numbered(id);
        let at = SimTime(10 * id);
        let served = d.dispatch(at, &r, &mut told).served;
        assert_eq!((served.start, served.ack, served.end), (at, at, at));
    }
    assert!(told.0.iter().any(|line| line.starts_with("pause")), "there were pauses");
    assert!(
        told.0.iter().any(|line| line.contains("None") && line.starts_with("op")),
        "and stated operations"
    );
}

/// What is written instantly is planned, but moves no head and passes no time.
#[test]
fn an_instant_request_leaves_the_head_where_it_is() {
    let mut d = drive(6, Model::Full);
    let before = *d.mechanics().head();
    let mut planned = 0;
    for lba in 0..50 {
        let done = d.instantly(&HostRequest::new(HostOp::Write, Lba(lba), Blocks(2)));
        assert_eq!((done.done, done.whole, done.buffered), (done.plan.ops().len(), true, false));
        assert_eq!((done.served.ack, done.served.end), (SimTime::ZERO, SimTime::ZERO));
        planned += done.done;
    }
    assert!(planned >= 50 && *d.mechanics().head() == before);
    // Each write moved its group: they lie elsewhere now.
    assert_eq!(d.locate(&HostRequest::new(HostOp::Read, Lba(48), Blocks(1))).unwrap().0, Pba(48));
    d.instantly(&HostRequest::new(HostOp::Write, Lba(48), Blocks(1)));
    assert_eq!(d.locate(&HostRequest::new(HostOp::Read, Lba(48), Blocks(1))).unwrap().0, Pba(48 + HOST));
}

#[test]
fn the_head_of_a_drive_is_at_one_of_its_blocks() {
    let mut d = drive(7, Model::Full);
    let end = d.mechanics().geometry().blocks().0;
    for (rest, head) in [(0, 0), (17, 17), (end - 1, end - 1), (end, end - 1)] {
        d.rest_at(Pba(rest));
        assert_eq!(d.head(), Pba(head));
    }
}

/// Who observes nothing is asked to look at nothing.
#[test]
fn nobody_looks_who_does_not_say_so() {
    assert!(!().looks(crate::MemberId(0), SimTime(5)));
}

/// A layer that is nothing but three records.
struct Three(Vec<Record>);

impl TranslationLayer for Three {
    fn host_blocks(&self) -> Blocks {
        Blocks(10)
    }

    fn submit(&mut self, _: SimTime, _: &HostRequest, _: &mut Plan) {}

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.0.iter().for_each(|r| out.add(r));
    }

    fn recover(&mut self, records: &Records, _: &mut Plan) {
        self.0 = records.changes().collect();
    }

    fn power_lost(&mut self) {
        self.0.clear();
    }

    fn background_after(&self) -> Option<SimTime> {
        Some(SimTime(10))
    }
}

fn with(records: Vec<Record>) -> Drive {
    let (g, spec) = any_disk(&mut Rng::new(8));
    let m = Mechanics::new(g, &spec, Model::Full).unwrap();
    Drive::new(Box::new(Three(records)), m, DriveSetup::default())
}

/// Background work waits for 10 ns after the last answer, which may be that nothing was done.
#[test]
fn a_drive_that_refuses_is_not_idle() {
    let mut d = with(Vec::new());
    assert_eq!(d.next_wake(), Some(SimTime(10)));
    let flush = HostRequest::flush();
    let served = d.refuse(SimTime(100), &flush, (Refusal::Unsupported, Lba(0))).served;
    assert_eq!((served.start, served.ack, served.end), (SimTime(100), SimTime(100), SimTime(100)));
    assert_eq!((d.next_wake(), d.free_at()), (Some(SimTime(110)), SimTime::ZERO));
    d.refuse(SimTime(60), &flush, (Refusal::Unsupported, Lba(0)));
    assert_eq!(d.next_wake(), Some(SimTime(110)));
}

#[test]
fn a_layer_hears_of_a_loss_of_power() {
    let queue =
        ScheduledDrive::new(with(vec![Record { tag: 1, words: [0; 3] }]), &sched::parse("sstf").unwrap());
    assert!(SavedState::take(&queue.into_drive(), SavedState::default()).records.is_empty());
}

/// A request is as old as it is, however long it stood outside of the queue.
#[test]
fn a_request_is_overdue_by_when_it_came() {
    let (d, mut list) = (drive(9, Model::Full), WaitingList::default());
    for (came, placed) in [(30, 30), (0, 50)] {
        let came = Came { at: SimTime(came), placed: SimTime(placed), order: 0..0 };
        list.admit(&came, HostRequest::new(HostOp::Read, Lba(placed), Blocks(1)), None, &d);
    }
    let overdue = |list: &WaitingList, now| list.overdue(SimTime(now), SimTime(40));
    assert_eq!([60, 69, 70].map(|now| overdue(&list, now)), [None, None, Some(0)], "the oldest by its place");
    list.take(0);
    assert_eq!([39, 40, 60].map(|now| overdue(&list, now)), [None, Some(0), Some(0)]);
}

#[test]
fn a_state_is_taken_unless_it_is_too_large_and_brings_another_drive_there() {
    let three: Vec<_> = (1..4).map(|tag| Record { tag, words: [u64::from(tag); 3] }).collect();
    let mut d = with(three.clone());
    let records: Records = three.into_iter().collect();
    d.rest_at(Pba(33));
    let who = SavedState { layer: "three".into(), ..SavedState::default() };
    assert_eq!(SavedState::take_within(&d, who.clone(), 2), None);
    let state = SavedState::take_within(&d, who.clone(), 3).unwrap();
    assert_eq!(state, SavedState::take(&d, who));
    let blocks = d.mechanics().geometry().blocks().0;
    assert_eq!((&*state.layer, state.head, state.blocks, &state.records), ("three", 33, blocks, &records));
    let (mut other, mut plan) = (with(Vec::new()), Plan::new(false, false));
    state.give(&mut other, &mut plan);
    assert_eq!((SavedState::take(&other, SavedState::default()).records, other.head()), (records, Pba(33)));
    // A state without records leaves the layer as it is.
    let mut full = with(vec![Record { tag: 9, words: [0; 3] }]);
    SavedState { records: Records::default(), ..state }.give(&mut full, &mut plan);
    assert_eq!(SavedState::take(&full, SavedState::default()).records.len(), 1);
}
