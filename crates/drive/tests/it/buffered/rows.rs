//! Reads in order that are taken many at a time.

use super::*;
use HostOp::{Read, Write};

/// Reads in order at times of their own, mostly of one length, now and then a jump, a write or several at once: taken in rows they are served as
/// one by one, in as many commands.
#[test]
fn reads_in_rows_are_served_alike() {
    let mut rng = Rng::new(9);
    let (mut longest, mut rows) = (0, 0);
    for round in 0..60 {
        let text = format!("{COSTS},cache=on,read_ahead=track,write_cache={}", ["on", "off"][round % 2]);
        let [mut one, mut all] = [(); 2].map(|()| drive(&text, "cmr", "fcfs", None));
        let (mut plain, mut in_rows) = (Plain::default(), Plain::default());
        let (mut times, mut requests, mut at, mut lba) = (Vec::new(), Vec::new(), SimTime::ZERO, 0);
        for id in 0..300 {
            at += us([20_000, 20_000, 20_000, rng.below(4000)][rng.below(4) as usize]);
            if rng.one_in(25) || lba > 300 {
                lba = rng.below(300);
            }
            let op = if rng.one_in(40) { Write } else { Read };
            let blocks = if rng.one_in(15) { 2 } else { 1 };
            times.push(at);
            requests.push(request(op, lba, blocks).numbered(id));
            lba += blocks;
        }
        let (mut i, mut acked) = (0, SimTime::ZERO);
        while i < times.len() {
            let row = (acked <= times[i] && all.goes_on())
                .then(|| all.submit_in_order(&times[i..], &requests[i..], &mut in_rows).unwrap());
            let n = match row.flatten() {
                Some((n, ack)) => {
                    (longest, rows, acked) = (longest.max(n), rows + 1, ack);
                    n
                }
                None => {
                    in_rows.arrived += 1;
                    let Ok(served) = all.submit(times[i], &requests[i], &mut in_rows);
                    acked = acked.max(served.unwrap().ack);
                    1
                }
            };
            for j in i..i + n {
                plain.arrived += 1;
                let Ok(_) = one.submit(times[j], &requests[j], &mut plain);
            }
            i += n;
            let state =
                |c: &ScheduledDrive| (c.drive().buffer_counters(), c.drive().free_at(), c.next_wake());
            assert_eq!(state(&one), state(&all), "{round}: the {n} before {i}");
        }
        assert_eq!((plain.served, plain.ops), (in_rows.served, in_rows.ops), "{round}");
        assert_eq!((plain.arrived, plain.held), (in_rows.arrived, in_rows.held), "{round}");
    }
    assert!(longest > 10 && rows > 1000, "{longest} in {rows}");
}

/// Nothing is taken in a row from behind a scheduler, for who looks at plans, or where background work may be due.
#[test]
fn rows_are_for_drives_that_do_nothing_else() {
    let text = format!("{COSTS},cache=on,read_ahead=track");
    let row: Vec<_> = (0..9).map(|i| request(Read, i, 1).numbered(i)).collect();
    let times: Vec<_> = (0..9).map(|i| us(100_000 * i)).collect();
    let rows = |scheduler: &str| {
        let mut c = drive(&text, "cmr", scheduler, None);
        for (at, r) in times.iter().zip(&row).take(3) {
            let Ok(_) = c.submit(*at, r, &mut Plain::default());
            let Ok(()) = c.drain(&mut Plain::default());
        }
        let goes_on = c.goes_on();
        let Ok(seen) = c.submit_in_order(&times[3..], &row[3..], &mut Seen::default());
        let Ok(plain) = c.submit_in_order(&times[3..], &row[3..], &mut Plain::default());
        (goes_on, seen.map(|row| row.0), plain.map(|row| row.0))
    };
    assert_eq!(rows("fcfs"), (true, None, Some(6)));
    assert_eq!(rows("sptf"), (false, None, None));
}
