//! `cargo bench -p smrlab-disk`: nanoseconds for each operation that the simulator does for every request.

use smrlab_disk::{BandId, DRIVES, DriveModel, Model};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, Dir, Pba, SimTime};
use std::hint::black_box;
use std::time::Instant;

const N: usize = 1 << 20;

/// CPU time of this thread in nanoseconds (Linux), else wall time: other load on the machine does not count.
fn cpu_ns() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let wall = START.get_or_init(Instant::now).elapsed().as_nanos() as u64;
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(wall)
}

/// The median of nine passes over `N` calls, in nanoseconds a call.
fn time(name: &str, mut call: impl FnMut(usize)) {
    let mut passes: Vec<f64> = (0..9)
        .map(|_| {
            let start = cpu_ns();
            (0..N).for_each(&mut call);
            (cpu_ns() - start) as f64 / N as f64
        })
        .collect();
    passes.sort_by(f64::total_cmp);
    println!("  {name:<44} {:7.2} ns", passes[4]);
}

fn drive(d: &DriveModel) {
    let g = d.geometry().clone();
    let mut random = Rng::new(1);
    let pbas: Vec<Pba> =
        (0..N).map(|_| Pba(random.below(g.blocks().0.saturating_sub(50_000).max(1)))).collect();
    println!("{} ({} blocks)", d.name(), g.blocks());
    time("track_of", |i| {
        black_box(g.track_of(pbas[i]));
    });
    time("position", |i| {
        black_box(g.position(pbas[i]));
    });
    let bands = d.bands(None).expect("bands of a shipped drive");
    let data = bands.data_blocks().0;
    time("bands: data index to PBA", |i| {
        black_box(bands.locate(pbas[i].0 % data));
    });
    time("bands: PBA to band", |i| {
        black_box(bands.band_of(pbas[i]));
    });
    time("bands: band", |i| {
        black_box(bands.band(BandId(pbas[i].0 % bands.len())));
    });
    for model in [Model::Full, Model::NoRotation, Model::Instant] {
        let mut m = d.mechanics(Some(model)).expect("mechanics of a shipped drive");
        let mut now = SimTime::ZERO;
        for (what, n) in [("8", 8), ("20 000", 20_000), ("50 000", 50_000)] {
            time(&format!("service of {what} random blocks, {}", model.name()), |i| {
                let dir = if i % 10 < 7 { Dir::Write } else { Dir::Read };
                now = m.service(now, dir, pbas[i], Blocks(n));
            });
        }
        let targets: Vec<_> = pbas[..32].iter().map(|p| m.target(*p)).collect();
        time(&format!("positioning, 32 targets in turn, {}", model.name()), |i| {
            black_box(m.positioning(now, Dir::Read, &targets[i % 32]));
        });
        time(&format!("target, {}", model.name()), |i| {
            black_box(m.target(pbas[i]));
        });
    }
}

fn main() {
    // The smallest drive has no room for the transfers.
    for entry in DRIVES.iter().filter(|d| d.name != "tiny") {
        drive(&entry.drive());
    }
}
