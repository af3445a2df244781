//! `seagate-st8000as0002` with the buffer that it ships with: what it changes, and what it leaves as it was measured.

use smrlab_drive::{Drive, Wanted, assemble};
use smrlab_stl::HostRequest;
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

const MIB: u64 = 2048;

fn drive(text: &str) -> Drive {
    let (layer, scheduler, metadata) = ("persistent-cache,idle=off", "fcfs", "nv");
    let wanted = Wanted { drive: text, layer, scheduler, metadata, mechanics: None, medium: None, seed: 1 };
    let mut problems = Problems::default();
    let drive = assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems);
    drive.unwrap_or_else(|| panic!("{problems}")).start(false, false).0
}

/// Requests one after the other: what each took, in ms.
fn one_by_one(drive: &mut Drive, requests: impl Iterator<Item = HostRequest>) -> Vec<f64> {
    let mut now = SimTime::ZERO;
    requests
        .map(|r| {
            let ack = drive.dispatch(now, &r, &mut ()).served.ack;
            let took = ack.since(now).as_ms_f64();
            now = ack;
            took
        })
        .collect()
}

fn write(lba: u64, blocks: u64, fua: bool) -> HostRequest {
    HostRequest { fua, ..HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks)) }
}

fn scattered(i: u64) -> u64 {
    (i * 7919 % 7_000_000) * MIB
}

fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}

/// Of 4 KiB writes the first are acknowledged from the buffer: 50 us and 8 blocks at 931 ns; when its 16 write segments are taken each
/// waits for a commit, as without it. A flush waits for all of them.
#[test]
fn writes_are_acknowledged_from_the_buffer_until_it_is_full() {
    let mut shipped = drive("seagate-st8000as0002");
    let requests = (0..400).map(|i| write(scattered(i), 8, false));
    let took = one_by_one(&mut shipped, requests);
    assert!(took[..16].iter().all(|t| (t - 0.057_448).abs() < 1e-6), "{:?}", &took[..20]);
    assert!(took[16] > 1.0, "{:?}", &took[..20]);
    let without = (0..400).map(|i| write(scattered(i), 8, false));
    let alone = one_by_one(&mut drive("seagate-st8000as0002,cache=off"), without);
    let (shipped_ms, alone_ms) = (mean(&took[40..280]), mean(&alone[40..280]));
    println!("4 KiB writes, the buffer full: {shipped_ms:.3} ms, without it {alone_ms:.3} ms");
    assert!((shipped_ms / alone_ms - 1.0).abs() < 0.01);
    let busy = shipped.free_at();
    let acked = SimTime((took.iter().sum::<f64>() * 1e6).round() as u64);
    let flush =
        shipped.dispatch(acked, &HostRequest::new(HostOp::Flush, Lba(0), Blocks(0)), &mut ()).served.ack;
    assert!(busy > acked + SimTime::from_ms(100) && flush >= busy, "{acked} {busy} {flush}");
}

/// R3 and R6 with the buffer as it ships: synchronous writes take what they took without it, and streams bypass the log.
#[test]
fn what_was_measured_on_the_drive_holds_with_its_buffer() {
    let sync =
        one_by_one(&mut drive("seagate-st8000as0002"), (0..4800).map(|i| write(scattered(i), MIB, true)));
    let without = one_by_one(
        &mut drive("seagate-st8000as0002,cache=off"),
        (0..4800).map(|i| write(scattered(i), MIB, true)),
    );
    println!(
        "synchronous writes of 1 MiB: {:.3} ms, without the buffer {:.3} ms",
        mean(&sync),
        mean(&without)
    );
    assert!((mean(&sync) / 24.0 - 1.0).abs() < 0.05, "{} ms, seen 24", mean(&sync));
    let stream =
        one_by_one(&mut drive("seagate-st8000as0002"), (0..8000).map(|i| write(i * MIB, MIB, false)));
    let rate = 1e3 / mean(&stream[1000..]);
    println!("stream with the write cache on: {rate:.1} MiB/s");
    assert!((rate / 194.0 - 1.0).abs() < 0.05, "{rate} MiB/s, seen 187 to 201");
}
