//! `caveat-scriptor` against the plain medium, which knows nothing of its map: after each of many random writes, reads and discards, what
//! the layer calls live holds what was written last, and what it calls lost was destroyed.

use smrlab_disk::DriveModel;
use smrlab_stl::{BuildContext, Executor, HostBuffer, HostRequest, Plan, Refusal, TranslationLayer};
use smrlab_testkit::medium::DESTROYED;
use smrlab_testkit::{PlainMedium, Rng, drives};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::sync::Arc;

const BLOCK: usize = 512;

struct Host {
    layer: Box<dyn TranslationLayer>,
    medium: PlainMedium,
    /// What the host wrote last to each block, unless it discarded it since.
    wrote: Vec<Option<u8>>,
    exec: Executor,
}

/// How a request ended.
type Ended = Option<(Refusal, Lba)>;

impl Host {
    fn new(text: &str, drive: &Arc<DriveModel>) -> Self {
        let built = smrlab_stl::build(text, &BuildContext::new(Arc::clone(drive))).unwrap();
        let medium = PlainMedium::new(built.drive.geometry(), built.drive.interference());
        let wrote = vec![None; built.layer.host_blocks().0 as usize];
        Self { layer: built.layer, medium, wrote, exec: Executor::default() }
    }

    fn request(&mut self, op: HostOp, lba: u64, data: &mut [u8]) -> Ended {
        let blocks = (data.len() / BLOCK) as u64;
        let mut plan = Plan::new(true, true);
        self.layer.submit(SimTime::ZERO, &HostRequest::new(op, Lba(lba), Blocks(blocks)), &mut plan);
        if let smrlab_stl::Outcome::Refused { why, lba } = plan.outcome() {
            assert!(plan.ops().is_empty() && plan.records().is_empty());
            return Some((why, lba));
        }
        let of_host = &mut self.wrote[lba as usize..][..blocks as usize];
        let buffer = match op {
            HostOp::Write => {
                of_host.iter_mut().zip(data.chunks(BLOCK)).for_each(|(w, b)| *w = Some(b[0]));
                HostBuffer::Write(data)
            }
            HostOp::Read => HostBuffer::Read(data),
            _ => {
                of_host.fill(None);
                HostBuffer::None
            }
        };
        let Ok(()) = self.exec.run(&plan, buffer, &mut self.medium);
        None
    }

    fn held(&self, block: usize) -> u8 {
        self.medium.bytes()[block * BLOCK]
    }

    /// The map of the layer is that of the medium, block by block.
    fn compare(&mut self) {
        let mut live = vec![false; self.wrote.len()];
        let all = Blocks(self.wrote.len() as u64);
        self.layer.allocated(Lba(0), all, &mut |run| live[run.start as usize..run.end as usize].fill(true));
        for (block, live) in live.into_iter().enumerate() {
            let read = self.request(HostOp::Read, block as u64, &mut [0; BLOCK]);
            match self.wrote[block] {
                // The host wrote no block with the byte of destroyed ones.
                Some(_) if self.held(block) == DESTROYED => {
                    assert_eq!(read, Some((Refusal::Lost, Lba(block as u64))), "block {block} is destroyed");
                    assert!(!live);
                }
                Some(byte) => {
                    assert_eq!((self.held(block), read, live), (byte, None, true), "block {block}");
                }
                None => assert_eq!((read, live), (None, false), "block {block} was discarded"),
            }
        }
    }
}

fn run(text: &str, drive: &Arc<DriveModel>, seed: u64) -> (Host, u64) {
    let mut host = Host::new(text, drive);
    let (mut rng, all, mut refused) = (Rng::new(seed), host.wrote.len() as u64, 0);
    for i in 0..300 {
        let lba = rng.below(all);
        let blocks = 1 + rng.below((all - lba).min(30));
        let op = if rng.below(5) == 0 { HostOp::Discard } else { HostOp::Write };
        let mut data = vec![1 + rng.below(u64::from(DESTROYED) - 1) as u8; blocks as usize * BLOCK];
        let before = host.medium.clone();
        if let Some((why, at)) = host.request(op, lba, &mut data) {
            assert_eq!((why, op), (Refusal::WriteProtected, HostOp::Write));
            // The block that it names would be the first to be destroyed.
            let kept = std::mem::replace(&mut host.medium, before);
            smrlab_stl::Medium::write(&mut host.medium, smrlab_units::Pba(lba), &data).unwrap();
            let victim = |b: &usize| host.wrote[*b].is_some() && host.held(*b) == DESTROYED;
            assert_eq!((0..all as usize).find(victim), Some(at.0 as usize), "{text}: request {i}");
            host.medium = kept;
            refused += 1;
        }
        if i % 10 == 0 {
            host.compare();
        }
    }
    host.compare();
    (host, refused)
}

#[test]
fn what_the_layer_calls_lost_is_what_the_medium_destroyed() {
    for (name, drive) in drives::all() {
        let (host, refused) = run("caveat-scriptor", &drive, 3);
        let lost = smrlab_stl::counted(&*host.layer).get("blocks_lost");
        assert!(lost > Some(0) && refused == 0, "{name}: {lost:?} lost, {refused} refused");
    }
}

#[test]
fn with_a_guard_nothing_is_ever_lost() {
    for (name, drive) in drives::all() {
        let (host, refused) = run("caveat-scriptor,guard=refuse", &drive, 4);
        let counted = smrlab_stl::counted(&*host.layer);
        assert!(refused > 0 && counted.get("writes_refused") == Some(refused), "{name}");
        assert_eq!(counted.get("blocks_lost"), Some(0), "{name}");
    }
}

/// A host that leaves as many tracks free as the drive publishes loses nothing, and one that leaves fewer does.
#[test]
fn the_isolation_distance_is_enough_and_no_more_than_that() {
    let drive = drives::plain(60, 8, 5, 4);
    let distance =
        smrlab_stl::counted(&*Host::new("caveat-scriptor", &drive).layer).get("isolation_distance");
    assert_eq!(distance, Some(4));
    for (gap, lost) in [(4, 0), (3, 8)] {
        let mut host = Host::new("caveat-scriptor", &drive);
        let mut track = |n: u64| host.request(HostOp::Write, n * 8, &mut [7; 8 * BLOCK]);
        // Data behind a gap, then the track before the gap in place, over and over.
        assert_eq!([track(20), track(19 - gap), track(19 - gap)], [None; 3]);
        assert_eq!(smrlab_stl::counted(&*host.layer).get("blocks_lost"), Some(lost), "a gap of {gap} tracks");
    }
}
