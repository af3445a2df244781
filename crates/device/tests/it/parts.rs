//! Parts of a served device by themselves, against plain lists.

use smrlab_device::capture::Recorder;
use smrlab_device::error::DeviceError;
use smrlab_device::faults::{Fate, Faults, Injection};
use smrlab_device::stats::{Counters, Events, Responses};
use smrlab_device::tracks::Tracks;
use smrlab_disk::geometry::Layout;
use smrlab_disk::{Geometry, GeometrySpec, TrackNo, ZoneSpec};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Unreadable blocks against a set of them: a read fails at the first that it meets, a write mends what it covers.
#[test]
fn a_block_is_unreadable_until_it_is_written() {
    let (faults, mut bad, mut rng) = (Faults::default(), BTreeSet::new(), Rng::new(4));
    let mut failed = 0;
    for _ in 0..4000 {
        let start = rng.below(200);
        let end = start + 1 + rng.below(12);
        match rng.below(5) {
            0 => {
                faults.inject(&Injection { unreadable: Some((start, end)), ..Injection::default() });
                bad.extend(start..end);
            }
            1 | 2 => {
                assert_eq!(faults.pass(true, start, end).unwrap(), Fate::Done);
                bad.retain(|b| !(start..end).contains(b));
            }
            _ => {
                let first = bad.range(start..end).next();
                let got = faults.pass(false, start, end);
                assert_eq!(got.is_err(), first.is_some(), "{start}..{end}");
                failed += u64::from(first.is_some());
                let named = got.err().is_none_or(|e| {
                    let block = |b: &u64| e.to_string().contains(&format!("block {b} "));
                    e.errno() == 5 && bad.range(start..end).any(block)
                });
                assert!(named, "the block is one that was asked for, and bad");
            }
        }
    }
    assert!(failed > 300);
    faults.inject(&Injection { clear: true, ..Injection::default() });
    assert_eq!(faults.pass(false, 0, 1000).unwrap(), Fate::Done);
}

/// The third operation from now fails, once; the second is cut, once; each takes 5 ms longer until that is cleared.
#[test]
fn faults_come_at_the_operation_that_was_named_and_once() {
    let faults = Faults::default();
    let pass = || faults.pass(true, 0, 8).map_err(|e| e.errno());
    faults.inject(&Injection { error_at: Some(3), ..Injection::default() });
    assert_eq!([(); 4].map(|()| pass()), [Ok(Fate::Done), Ok(Fate::Done), Err(5), Ok(Fate::Done)]);
    faults.inject(&Injection { cut_at: Some(2), error_at: Some(1), ..Injection::default() });
    assert_eq!([(); 3].map(|()| pass()), [Err(5), Ok(Fate::Cut), Ok(Fate::Done)]);
    faults.inject(&Injection { slow_ns: Some(5_000_000), error_at: Some(2), ..Injection::default() });
    let began = std::time::Instant::now();
    assert_eq!(pass(), Ok(Fate::Done));
    assert!(began.elapsed().as_millis() >= 5);
    faults.inject(&Injection { clear: true, cut_at: Some(1), ..Injection::default() });
    assert_eq!([(); 2].map(|()| pass()), [Ok(Fate::Cut), Ok(Fate::Done)], "what was there before is mended");
}

/// Events of a server in its file, the first ten thousand of them; asked for after a number only what came later.
#[test]
fn events_are_written_down_as_they_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    std::fs::write(&path, "of the server before\n").unwrap();
    let events = Events::kept_in(&path);
    for n in 0..10_002u64 {
        events.push("error", (n % 2 == 0).then_some(n), format!("number {n}"));
    }
    let told = events.after(9_999);
    let shown: Vec<_> = told.iter().map(|e| (e.number, e.block, &*e.text)).collect();
    let want = [
        (10_000, None, "number 9999"),
        (10_001, Some(10_000), "number 10000"),
        (10_002, None, "number 10001"),
    ];
    assert_eq!(shown, want);
    assert!(told.windows(2).all(|w| w[0].time_s <= w[1].time_s && w[0].time_s > 1.7e9));
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 10_000);
    assert_eq!((&lines[0]["number"], &lines[0]["text"]), (&1.into(), &"number 0".into()));
    assert_eq!((&lines[9_999]["number"], &lines[9_998]["block"]), (&10_000.into(), &9_998.into()));
}

#[test]
fn counters_have_their_names_and_begin_again_at_zero() {
    let counters = Counters::default();
    let all = [
        ("reads", &counters.reads),
        ("writes", &counters.writes),
        ("bytes_read", &counters.bytes_read),
        ("bytes_written", &counters.bytes_written),
        ("flushes", &counters.flushes),
        ("fua", &counters.fua),
        ("trims", &counters.trims),
        ("zeroes", &counters.zeroes),
        ("destroyed_reads", &counters.destroyed_reads),
        ("errors", &counters.errors),
    ];
    for (i, (_, counter)) in (1..).zip(all) {
        Counters::add(counter, i);
        Counters::add(counter, 10);
    }
    let json = counters.json();
    assert!((11..).zip(all).all(|(n, (name, _))| json[name] == n) && json.len() == all.len(), "{json:?}");
    counters.reset();
    assert!(counters.json().values().all(|n| *n == 0));
}

/// The longest response is told whether or not any was a stall; after a reset neither is, and time counts from there.
#[test]
fn responses_begin_anew_after_a_reset() {
    let (ms, responses) = (SimTime::from_ms, Responses::new(SimTime::from_ms(100)));
    [(0, 40), (50, 90), (100, 230)].iter().for_each(|(from, to)| responses.note(ms(*from), ms(*to)));
    let (longest, stalls) = responses.json(ms(1000));
    assert_eq!(
        (&longest["max"], &stalls["count"], &stalls["share"]),
        (&130.0.into(), &1.into(), &0.13.into())
    );
    responses.reset(ms(1000));
    assert_eq!(responses.json(ms(1500)).1["count"], 0);
    responses.note(ms(1100), ms(1150));
    responses.note(ms(1200), ms(1600));
    let (longest, stalls) = responses.json(ms(2000));
    assert_eq!(
        (&longest["max"], &stalls["first_s"], &stalls["share"]),
        (&400.0.into(), &0.2.into(), &0.4.into())
    );
}

/// A capture of more requests than are kept at once; one that got a time before the last has that of the last.
#[test]
fn a_capture_has_all_requests_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.parquet");
    let (recorder, mut rng) = (Recorder::create(&path, "test").unwrap(), Rng::new(3));
    let (mut want, mut now, mut last) = (Vec::new(), 0, 0);
    for _ in 0..20_000 {
        now = (now + rng.below(900)).saturating_sub(rng.below(300));
        last = now.max(last);
        let op = [HostOp::Read, HostOp::Write, HostOp::Discard][rng.below(3) as usize];
        let mut r = HostRequest::new(op, Lba(rng.below(1 << 40)), Blocks(1 + rng.below(99)));
        r.fua = op == HostOp::Write && rng.one_in(3);
        recorder.note(SimTime(now), &r).unwrap();
        want.push((last, op, r.lba, r.blocks.0 as u32, r.fua));
    }
    assert!(!path.exists(), "it is there when it is finished");
    recorder.finish().unwrap();
    recorder.note(SimTime(now), &HostRequest::flush()).unwrap();
    recorder.finish().unwrap();
    let context = smrlab_trace::OpenContext::default();
    let got =
        smrlab_trace::read_all(&mut *smrlab_trace::open(path.to_str().unwrap(), &context).unwrap()).unwrap();
    let got: Vec<_> = got.iter().map(|r| (r.arrival.0, r.op, r.lba, r.blocks, r.fua)).collect();
    assert_eq!(got, want);
}

#[test]
fn an_errors_number_says_what_kind_it_is() {
    for (why, errno) in [
        (Refusal::WriteProtected, libc::EPERM),
        (Refusal::NoSpace, libc::ENOSPC),
        (Refusal::Unsupported, libc::EOPNOTSUPP),
        (Refusal::NotAtPointer, libc::EIO),
    ] {
        let e = DeviceError::refused(why, Some(Lba(7)));
        assert_eq!((e.errno(), e.refusal()), (errno, Some((why, Some(Lba(7))))));
        assert!(e.to_string().contains("at block 7") && e.to_string().contains(why.name()));
        assert!(!DeviceError::refused(why, None).to_string().contains("block"));
    }
    let io = |errno| DeviceError::io("writing", &std::io::Error::from_raw_os_error(errno));
    for (errno, remedy) in [
        (libc::ENOSPC, "free some space"),
        (libc::EACCES, "owner"),
        (libc::EPERM, "owner"),
        (libc::EADDRINUSE, "served already"),
    ] {
        assert!(io(errno).errno() == errno && io(errno).to_string().contains(remedy), "{}", io(errno));
    }
    assert!(io(libc::EIO).to_string().ends_with("(os error 5)"));
}

/// Tracks of random drives as the geometry has them: by block, by number, and their neighbours both ways.
#[test]
fn tracks_lie_where_the_geometry_has_them() {
    let mut rng = Rng::new(12);
    let layouts = [
        Layout::Surface,
        Layout::Cylinder { alternate: false },
        Layout::Cylinder { alternate: true },
        Layout::Hybrid { width: 3 },
    ];
    for round in 0..60 {
        let surfaces = 1 + rng.below(3) as u32;
        let zone = |_| ZoneSpec::plain(2 + rng.below(9) as u32, 5 + rng.below(40) as u32);
        let zones: Vec<_> = (0..1 + round % 3).map(zone).collect();
        let layout = layouts[round % 4];
        let spec = GeometrySpec {
            surfaces,
            layout,
            track_skew: rng.below(7) << 31,
            ..GeometrySpec::single_surface(zones)
        };
        let g = Arc::new(Geometry::new(spec).unwrap());
        let tracks = Tracks::new(g.clone());
        assert_eq!((tracks.count(), tracks.blocks()), (g.tracks(), g.blocks().0));
        for index in 0..g.tracks() {
            let (t, no) = (tracks.by_index(index), TrackNo(index));
            let start = g.track_start(no).0;
            assert_eq!((t.index, t.start, t.end()), (index, start, start + g.track_blocks(no).0));
            assert_eq!(t.turn, u64::from(g.sectors(no)));
            assert_eq!([start, t.end() - 1].map(|block| tracks.at(block)), [t, t]);
            for distance in 1..5u64 {
                let of = |j: i64| g.neighbour(no, j).map(|n| n.0);
                let at = |t: Option<smrlab_device::tracks::Track>| t.map(|t| t.index);
                assert_eq!(at(tracks.downstream(&t, distance)), of(distance as i64), "{layout:?} {index}");
                assert_eq!(at(tracks.upstream(&t, distance)), of(-(distance as i64)), "{layout:?} {index}");
            }
            let stroke =
                |i: u64| g.strokes().find(|s| (s.first.0..s.first.0 + s.tracks).contains(&i)).unwrap().first;
            for other in (0..g.tracks()).step_by(3) {
                let same = stroke(index) == stroke(other);
                assert_eq!(
                    tracks.same_stroke(&t, &tracks.by_index(other)),
                    same,
                    "{layout:?} {index} {other}"
                );
            }
            let first = stroke(index).0 == index;
            assert_eq!([start, start + 1].map(|b| tracks.begins_stroke(b, &t)), [first, false]);
        }
    }
}
