//! A capture replayed in the simulator yields the media operations that the device performed.

use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::medium::Mode;
use smrlab_device::{Config, Device};
use smrlab_drive::{Drive, DriveSetup, TimedPlan};
use smrlab_stl::{BuildContext, Dir, HostRequest, MediaOp};
use smrlab_trace::{Batch, TraceSource};
use std::sync::Arc;

/// Media operations by cause and direction: operations and blocks.
#[derive(Default)]
struct Counts(std::collections::BTreeMap<(&'static str, bool), (u64, u64)>);

impl Counts {
    fn add(&mut self, executed: &TimedPlan<'_>) {
        for MediaOp { dir, cause, blocks, .. } in &executed.plan.ops()[..executed.done] {
            let n = self.0.entry((cause.name(), *dir == Dir::Write)).or_default();
            n.0 += 1;
            n.1 += blocks.0;
        }
    }
}

#[test]
fn a_capture_replays_to_the_same_media_operations() {
    for layer in ["rmw", "static-R(4123)"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("capture.parquet");
        let config = Config {
            mode: Mode::Data,
            timing: Timing::Model,
            speed: 200.0,
            record: Some(path.clone()),
            ..Config::new("c", "tiny", layer, StoreKind::Memory)
        };
        let device = Device::open(config).unwrap();
        let blocks = device.size() / 512;
        for i in 0..200u64 {
            let start = i * 7919 % (blocks - 8) * 512;
            match i % 5 {
                0 => device.read(start, &mut [0; 1024]).unwrap(),
                1 if i % 20 == 1 => device.trim(start, 2048, false).unwrap(),
                2 if i % 30 == 2 => device.flush().unwrap(),
                _ => device.write(start, &[i as u8; 4096], false).unwrap(),
            }
        }
        device.close().unwrap();
        let tiny = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
        let built = smrlab_stl::build(layer, &BuildContext::new(Arc::new(tiny))).unwrap();
        let mechanics = built.drive.mechanics(None).unwrap();
        let mut drive = Drive::new(built.layer, mechanics, DriveSetup::default());
        let mut counts = Counts::default();
        let mut source =
            smrlab_trace::open(path.to_str().unwrap(), &smrlab_trace::OpenContext::default()).unwrap();
        let (mut batch, mut requests) = (Batch::new(), 0);
        while source.next_batch(&mut batch).unwrap() {
            for r in batch.iter() {
                let blocks = smrlab_units::Blocks(u64::from(r.blocks));
                let request = HostRequest::new(r.op, r.lba, blocks);
                while let Some(step) = drive.next_step(r.arrival, &mut ()) {
                    counts.add(&step);
                }
                if let Some(step) = drive.interrupt() {
                    counts.add(&step);
                }
                counts.add(&drive.dispatch(r.arrival, &request, &mut ()));
                requests += 1;
            }
        }
        assert_eq!(requests, 200);
        let media = &device.stats()["media"]["by_cause"];
        for ((cause, write), (ops, blocks)) in &counts.0 {
            let of = |key: &str| media[cause][key].as_u64().unwrap();
            let keys = if *write { ("writes", "blocks_written") } else { ("reads", "blocks_read") };
            assert_eq!((of(keys.0), of(keys.1)), (*ops, *blocks), "{layer}: {cause}");
        }
        assert!(counts.0.keys().any(|(_, write)| *write));
        assert_eq!(device.stats()["lateness"]["requests"], 200);
    }
}

/// At 50 times the model's speed a pause of 20 ms is one of a second in the capture: its times are the model's.
#[test]
fn captured_times_are_the_models() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("capture.parquet");
    let config = Config {
        timing: Timing::Model,
        speed: 50.0,
        record: Some(path.clone()),
        ..Config::new("c", "tiny", "cmr", StoreKind::Memory)
    };
    let begun = std::time::Instant::now();
    let device = Device::open(config).unwrap();
    device.write(0, &[1; 512], false).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    device.write(0, &[2; 512], false).unwrap();
    device.close().unwrap();
    let most = begun.elapsed().as_secs_f64() * 50.0;
    let context = smrlab_trace::OpenContext::default();
    let trace =
        smrlab_trace::read_all(&mut *smrlab_trace::open(path.to_str().unwrap(), &context).unwrap()).unwrap();
    let gap = (trace.arrival[1].0 - trace.arrival[0].0) as f64 / 1e9;
    assert!((1.0..most).contains(&gap), "{gap} s between two writes, 1 to {most}");
}

/// 1.5 ms into the buffer for a write; for a FUA write 1 ms for the command, a seek of 2 ms, at most a revolution of 1 ms and a block
/// of 0.031 ms. At a fiftieth of the speed an answer that is 20 ms late shows as 0.4 ms.
#[test]
fn a_served_fua_write_takes_what_one_takes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("capture.parquet");
    let config = Config {
        timing: Timing::Model,
        speed: 0.02,
        scheduler: "sptf,depth=8".to_owned(),
        record: Some(path.clone()),
        ..Config::new("c", "tiny,rpm=60000,command=1ms,bus=1.024,write_cache=on", "cmr", StoreKind::Memory)
    };
    let device = Device::open(config).unwrap();
    let took = |start: u64, fua: bool| {
        device.reset_stats();
        device.write(start * 512, &[1; 512], fua).unwrap();
        device.stats()["response_ms"]["max"].as_f64().unwrap()
    };
    for (start, fua, from, to) in [(900, true, 3.031, 4.032), (8, false, 1.5, 1.5), (8, true, 1.531, 2.532)] {
        let ms = took(start, fua);
        assert!((from..to + 0.6).contains(&ms), "{ms} ms at {start}, FUA: {fua}");
    }
    device.close().unwrap();
    let context = smrlab_trace::OpenContext::default();
    let trace =
        smrlab_trace::read_all(&mut *smrlab_trace::open(path.to_str().unwrap(), &context).unwrap()).unwrap();
    assert_eq!(trace.fua, [true, false, true], "a capture says what was FUA");
}
