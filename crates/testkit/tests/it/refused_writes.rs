//! Layers that refuse writes, on drives that reorder and have a write cache: what is refused is what a drive refuses that takes one after the
//! other, and nothing that was acknowledged.

use smrlab_drive::{Buffered, Observer, ScheduledDrive, TimedPlan, Wanted, assemble};
use smrlab_stl::HostRequest;
use smrlab_testkit::Rng;
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::BTreeSet;
use std::convert::Infallible;

#[derive(Default)]
struct Seen {
    acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    /// Requests that were dispatched after a later one.
    overtaken: u64,
    newest: u64,
}

impl Observer for Seen {
    type Error = Infallible;

    fn dispatched(&mut self, _: SimTime, r: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        if e.plan.refusal().is_some() {
            assert!(!self.acknowledged.contains(&r.id), "{r:?} is refused after it was acknowledged");
            self.refused.insert(r.id);
        } else {
            self.overtaken += u64::from(r.id < self.newest);
            self.newest = self.newest.max(r.id);
        }
        Ok(())
    }

    fn accepted(&mut self, write: &Buffered<'_>) -> Result<(), Infallible> {
        self.acknowledged.insert(write.request.id);
        Ok(())
    }
}

/// Which of the same random writes and discards are refused, what holds data in the end, and what was met.
fn refused(layer: &str, (drive, scheduler): (&str, &str), seed: u64) -> (BTreeSet<u64>, Vec<u64>, Seen) {
    let wanted = Wanted { drive, layer, scheduler, metadata: "nv", mechanics: None, medium: None, seed: 1 };
    let made =
        assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut Problems::default()).unwrap();
    let (drive, chosen) = made.start(true, true);
    let (mut drive, mut seen) = (ScheduledDrive::new(drive, &chosen), Seen::default());
    let (mut rng, mut now) = (Rng::new(seed), SimTime::ZERO);
    for id in 0..600 {
        let op = if rng.one_in(4) { HostOp::Discard } else { HostOp::Write };
        let request = HostRequest::new(op, Lba(rng.below(900)), Blocks(1 + rng.below(24))).numbered(id);
        now += SimTime::from_us(rng.below(9_000));
        let Ok(()) = drive.wake(now, &mut seen);
        while !drive.has_room() {
            now = now.max(drive.next_decision().expect("a request waits"));
            let Ok(_) = drive.decide_once(now, &mut seen);
        }
        let Ok(_) = drive.submit(now, &request, &mut seen);
    }
    let Ok(()) = drive.drain(&mut seen);
    let mut live = Vec::new();
    drive.drive().layer().allocated(Lba(0), Blocks(1000), &mut |run| live.extend(run));
    (seen.refused.clone(), live, seen)
}

#[test]
fn a_write_that_waits_or_is_buffered_is_refused_as_if_it_came_alone() {
    const CACHED: &str = "tiny,write_cache=on,cache_size=64KiB,segments=8,command=200us,bus=5";
    for layer in ["caveat-scriptor,guard=refuse", "raw,band=4tracks"] {
        let mut met = (0, 0);
        for seed in 0..6 {
            let (alone, live, _) = refused(layer, ("tiny", "fcfs"), seed);
            assert!(!alone.is_empty());
            for how in [("tiny", "sstf"), (CACHED, "sptf"), (CACHED, "c-look")] {
                let (queued, held, seen) = refused(layer, how, seed);
                assert_eq!((queued, held), (alone.clone(), live.clone()), "{layer} {how:?} {seed}");
                met = (met.0 + seen.overtaken, met.1 + seen.acknowledged.len());
            }
        }
        assert!(met.0 > 100 && met.1 > 100, "{layer}: {met:?}");
    }
}
