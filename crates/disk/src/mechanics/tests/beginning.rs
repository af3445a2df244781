//! What goes on from the operation before, and what begins anew.

use super::*;

/// The overhead of a command is hidden only behind the one before it.
#[test]
fn a_command_that_follows_late_pays_overhead_and_rotation() {
    let g = plain(vec![ZoneSpec::plain(10, 100)]);
    let mut m = Mechanics::new(g, &spec_7200(), Model::NoRotation).unwrap();
    let end = m.service(SimTime(5), Dir::Read, Pba(0), Blocks(10));
    let next = m.target(Pba(10));
    assert_eq!(m.positioning(end, Dir::Read, &next), end);
    assert_eq!(m.positioning(end + SimTime(1), Dir::Read, &next), end + SimTime(1 + 50 * US));
    let mut m = Mechanics::new(m.geometry().clone(), &spec_7200(), Model::Full).unwrap();
    let end = m.service(SimTime(5), Dir::Read, Pba(0), Blocks(10));
    let turn = REVOLUTION.div_ceil(7200);
    assert!(m.positioning(end, Dir::Read, &next).since(end) <= SimTime(1));
    assert!(m.positioning(end + SimTime(1), Dir::Read, &next).since(end) >= SimTime(turn - 2));
}

/// The disk turns by the clock, not by where the heads were left, and nothing is under way at time 0: a command from any block on
/// has its overhead of 50 us, and waits for the block.
#[test]
fn heads_at_rest_wait_for_the_block_before_which_they_rest() {
    let g = plain(vec![ZoneSpec::plain(10, 100)]);
    for at in [0, 1, 10, 50, 99, 100, 250] {
        let mut m = Mechanics::new(g.clone(), &spec_7200(), Model::Full).unwrap();
        m.rest_at(Pba(at));
        let angle = m.target(Pba(at)).angle;
        let switch = if at % 100 == 0 && at > 0 { 1000 } else { 0 };
        let turns = u64::from(angle < (50 + switch) * US * 7200) * REVOLUTION;
        let end = m.service(SimTime::ZERO, Dir::Read, Pba(at), Blocks(1));
        assert_eq!(end.0, (turns + angle + REVOLUTION / 100).div_ceil(7200), "block {at}");
        assert_eq!(m.phases().overhead.0, 50 * US);
    }
}

/// The first operation of a drive, at time 0 on its first block: 50 us of overhead, the rest of a turn, the block. Beginning with
/// whichever block comes first it goes once round; without rotation it has its overhead and the block.
#[test]
fn nothing_goes_on_before_the_first_operation() {
    let g = plain(vec![ZoneSpec::plain(10, 100)]);
    let fresh = |model| Mechanics::new(g.clone(), &spec_7200(), model).unwrap();
    let (turn, block) = (REVOLUTION, REVOLUTION / 100);
    let first = fresh(Model::Full).service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(1));
    assert_eq!(first.0, (turn + block).div_ceil(7200));
    let mut m = fresh(Model::Full);
    assert_eq!(m.read_gathering(SimTime::ZERO, Pba(0), Blocks(1), Blocks(1)).1, first);
    let any = fresh(Model::Full).service_any(SimTime::ZERO, Dir::Read, Pba(0), Blocks(100)).1;
    assert_eq!(any.0, (turn + block).div_ceil(7200), "from the edge behind 50 us on");
    let plain = fresh(Model::NoRotation).service(SimTime::ZERO, Dir::Read, Pba(0), Blocks(1));
    assert_eq!(plain.0, 50 * US + block.div_ceil(7200));
    // What follows it at once goes on.
    let next = m.target(Pba(1));
    assert!(m.positioning(first, Dir::Read, &next) <= first);
}

/// Where the block under the head is not a whole number of angle units: with 7 sectors edges are as exact as the sectors.
#[test]
fn what_begins_in_the_middle_waits_for_the_next_sectors_edge() {
    let g = plain(vec![ZoneSpec::plain(10, 7)]);
    let spec = MechanicsSpec { read_overhead: SimTime::ZERO, ..spec_7200() };
    for sector in 1..7u64 {
        // A unit before the edge of a sector, on it, and behind it.
        for late in [-1i64, 0, 1] {
            let mut m = Mechanics::new(g.clone(), &spec, Model::Full).unwrap();
            let edge = (sector * REVOLUTION / 7).div_ceil(7200);
            let at = SimTime(edge.wrapping_add_signed(late));
            let (first, end) = m.service_any(at, Dir::Read, Pba(0), Blocks(7));
            let edges = (1..=7).map(|i| i * REVOLUTION / 7);
            let from = edges.into_iter().find(|edge| *edge >= at.0 * 7200).unwrap();
            assert_eq!(end.0, (from + REVOLUTION).div_ceil(7200), "{sector} {late}");
            assert_eq!(first.0, (REVOLUTION + REVOLUTION / 7).div_ceil(7200));
            assert_eq!(m.head().angle, from % REVOLUTION);
        }
    }
}
