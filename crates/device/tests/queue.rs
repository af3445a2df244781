//! Schedulers before a served drive: requests of many threads, in modelled time.

use smrlab_device::config::{StoreKind, Timing};
use smrlab_device::{Config, Device};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn served(layer: &str, scheduler: &str, speed: f64) -> Arc<Device> {
    let scheduler = scheduler.to_owned();
    let timing = Timing::Model;
    let config = Config { timing, speed, scheduler, ..Config::new("q", "tiny", layer, StoreKind::Memory) };
    Device::open(config).unwrap()
}

/// 16 threads write 4 KiB blocks of their own in a scattered order and read them back; answers the model's time.
fn scattered(device: &Arc<Device>, rounds: u64) -> f64 {
    let begun = std::time::Instant::now();
    let bad = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..16u64 {
            let (device, bad) = (device.clone(), &bad);
            scope.spawn(move || {
                let units = device.size() / 4096 / 16;
                for i in 0..rounds {
                    let unit = (thread * 5 + i * 7) % units * 16 + thread;
                    let data = [(thread * 31 + i) as u8; 4096];
                    device.write(unit * 4096, &data, false).unwrap();
                    let mut out = [0xee; 4096];
                    device.read(unit * 4096, &mut out).unwrap();
                    bad.fetch_add(u64::from(out != data), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(bad.load(Ordering::Relaxed), 0, "a read gave something else than the write before it");
    begun.elapsed().as_secs_f64()
}

#[test]
fn what_waits_in_the_queue_keeps_its_data() {
    for layer in ["cmr", "s-block", "disk-cache", "static-R(4123)"] {
        for scheduler in ["sptf,depth=32", "c-look,depth=4", "fcfs"] {
            let device = served(layer, scheduler, 300.0);
            scattered(&device, 12);
            device.close().unwrap();
        }
    }
}

#[test]
fn a_scheduler_serves_more_of_many_waiting_requests() {
    // In modelled time, so that the machine's load matters little: the same requests take less of it.
    let time = |scheduler: &str| {
        let device = served("cmr", scheduler, 20.0);
        scattered(&device, 8)
    };
    let (fcfs, sptf) = (time("fcfs"), time("sptf,depth=32"));
    assert!(sptf < fcfs * 0.9, "sptf {sptf} s, fcfs {fcfs} s");
}

#[test]
fn a_layer_that_cannot_say_where_requests_start_is_not_reordered() {
    let scheduler = "sptf,depth=0".to_owned();
    let timing = Timing::Model;
    let config = Config { timing, scheduler, ..Config::new("q", "tiny", "cmr", StoreKind::Memory) };
    let text = Device::open(config).err().unwrap().to_string();
    assert!(text.contains("scheduler") && text.contains("from 1 to 4096"), "{text}");
}
