//! What is known without this project: queueing theory, and what a maker states.

use smrlab_drive::{Observer, ScheduledDrive, TimedPlan, Wanted, assemble};
use smrlab_stl::HostRequest;
use smrlab_units::problems::Problems;
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime};
use std::convert::Infallible;

/// (service, response) of each request, in ms.
#[derive(Default)]
struct Times(Vec<(f64, f64)>);

impl Observer for Times {
    type Error = Infallible;

    fn dispatched(&mut self, came: SimTime, _: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        let ms = |t: SimTime| t.0 as f64 / 1e6;
        self.0.push((ms(e.served.ack.since(e.served.start)), ms(e.served.ack.since(came))));
        Ok(())
    }
}

fn drive(text: &str, scheduler: &str) -> ScheduledDrive {
    let mut problems = Problems::default();
    let (layer, metadata) = ("cmr", "nv");
    let wanted = Wanted { drive: text, layer, scheduler, metadata, mechanics: None, medium: None, seed: 1 };
    let drive = assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems);
    let (drive, chosen) = drive.unwrap_or_else(|| panic!("{problems}")).start(false, false);
    ScheduledDrive::new(drive, &chosen)
}

fn read(rng: &mut Rng, blocks: u64) -> HostRequest {
    HostRequest::new(HostOp::Read, Lba(rng.below(blocks / 8) * 8), Blocks(8))
}

/// Random reads that arrive at random: the mean response follows from the first two moments of the service times (Pollaczek and
/// Khinchine).
#[test]
fn random_load_waits_as_queueing_theory_says() {
    for (text, mean_gap_ms) in [("modern-7200", 40.0), ("modern-7200", 20.0), ("seagate-exos-x24", 25.0)] {
        let (mut c, mut rng, mut times) = (drive(text, "fcfs"), Rng::new(5), Times::default());
        let (blocks, mut at, n) = (30_000_000_000, 0.0f64, 200_000);
        for _ in 0..n {
            let u = (rng.below(1 << 52) + 1) as f64 / (1u64 << 52) as f64;
            at -= mean_gap_ms * u.ln();
            let r = read(&mut rng, blocks);
            let Ok(_) = c.submit(SimTime((at * 1e6) as u64), &r, &mut times);
        }
        let mean = |f: &dyn Fn(&(f64, f64)) -> f64| times.0.iter().map(f).sum::<f64>() / f64::from(n);
        let (s, s2, response) = (mean(&|t| t.0), mean(&|t| t.0 * t.0), mean(&|t| t.1));
        let (rate, load) = (1.0 / mean_gap_ms, s / mean_gap_ms);
        let expected = s + rate * s2 / (2.0 * (1.0 - load));
        println!("{text}: load {load:.2}, response {response:.3} ms, M/G/1 {expected:.3} ms");
        assert!((response / expected - 1.0).abs() < 0.02, "{text}: {response} ms, M/G/1 {expected} ms");
    }
}

/// Random 4 KiB reads a second with so many outstanding.
fn iops(text: &str, scheduler: &str, depth: usize) -> f64 {
    let (mut c, mut rng) = (drive(text, scheduler), Rng::new(9));
    let (mut times, blocks, n) = (Times::default(), 17_000_000_000, 20_000);
    let mut now = SimTime::ZERO;
    for _ in 0..depth {
        let r = read(&mut rng, blocks);
        let Ok(_) = c.submit(now, &r, &mut times);
    }
    for _ in 0..n {
        let at = c.next_decision().map_or(now, |at| at.max(now));
        let Ok(served) = c.decide_once(at, &mut times);
        // The next request is there when the medium is free again: what the bus adds passes beside it.
        now = served.map_or(at, |_| at);
        let r = read(&mut rng, blocks);
        let Ok(_) = c.submit(now, &r, &mut times);
    }
    f64::from(n) / now.as_secs_f64()
}

/// Reads a second where each is the nearest in time of `depth` that were just drawn. What a scheduler leaves over is farther away than
/// what is new, so that none does better with a queue of that depth.
fn nearest_of_new(text: &str, depth: usize) -> f64 {
    let c = drive(text, "fcfs");
    let mut m = c.drive().mechanics().clone();
    let (mut rng, mut now, n) = (Rng::new(9), SimTime::ZERO, 20_000);
    for _ in 0..n {
        let new = (0..depth).map(|_| Pba(rng.below(17_000_000_000 / 8) * 8));
        let at = |pba: &Pba| m.positioning(now, Dir::Read, &m.target(*pba));
        let Some(nearest) = new.min_by_key(at) else { return 0.0 };
        now = m.service(now, Dir::Read, nearest, Blocks(8));
    }
    f64::from(n) / now.as_secs_f64()
}

/// The maker of the dual-actuator drive states 304 random reads of 4 KiB a second at depth 16 (Tom's Hardware, ComputerBase
/// 2022-11): 152 for an actuator with 8. The seek curve is assumed, and not made for this.
#[test]
fn a_scheduler_serves_as_much_more_as_deeper_queues_allow() {
    let half = "seagate-exos-2x18-half";
    let one = iops(half, "sptf,depth=1", 1);
    let mut last = one;
    for depth in [4, 8, 16, 32, 64] {
        let got = iops(half, &format!("sptf,depth={depth}"), depth);
        let bound = nearest_of_new(half, depth);
        println!(
            "depth {depth}: {got:.0} reads a second, {:.2} times depth 1; {:.2} of the bound",
            got / one,
            got / bound
        );
        assert!((0.85..1.0).contains(&(got / bound)), "depth {depth}: {got}, at most {bound}");
        assert!(got > last * 1.05, "depth {depth}: {got}, before {last}");
        if depth == 8 {
            assert!((got / 152.0 - 1.0).abs() < 0.15, "{got} at depth 8, stated 152");
        }
        last = got;
    }
    assert!((2.0..4.0).contains(&(last / one)), "depth 64: {}", last / one);
}
