//! What the comparison does not reach: what takes no time, prefilling, a drive's state.

use super::made_up::{GROUP, HOST, Script};
use super::naive::Told;
use crate::buffer::tests::naive::any_disk;
use crate::{Drive, DriveSetup, Observer, SavedState};
use smrlab_disk::{Mechanics, Model};
use smrlab_stl::{HostRequest, Plan, Record, TranslationLayer};
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

    fn checkpoint(&self, out: &mut dyn FnMut(Record)) {
        self.0.iter().for_each(|r| out(*r));
    }

    fn recover(&mut self, records: &mut dyn Iterator<Item = Record>, _: &mut Plan) {
        self.0 = records.collect();
    }
}

#[test]
fn a_state_is_taken_unless_it_is_too_large_and_brings_another_drive_there() {
    let records: Vec<_> = (1..4).map(|tag| Record { tag, words: [u64::from(tag); 3] }).collect();
    let with = |records| {
        let (g, spec) = any_disk(&mut Rng::new(8));
        let m = Mechanics::new(g, &spec, Model::Full).unwrap();
        Drive::new(Box::new(Three(records)), m, DriveSetup::default())
    };
    let mut d = with(records.clone());
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
    SavedState { records: Vec::new(), ..state }.give(&mut full, &mut plan);
    assert_eq!(SavedState::take(&full, SavedState::default()).records.len(), 1);
}
