//! Controllers: what they say of themselves, and their bounds.

use super::*;

/// All that is said of a controller, by hand: blocks are of half a KiB, 512 bytes in 4 us are 128 MB/s.
#[test]
fn what_a_controller_says_of_itself() {
    let us = |a, b| [SimTime::from_us(a), SimTime::from_us(b)];
    let buffer = BufferSpec {
        segments: 7,
        segment_blocks: 257,
        read_ahead_blocks: 96,
        write_segments: 3,
        zero_latency: [true, true],
        ..BufferSpec::PLAIN
    };
    let c = ControllerSpec {
        read_miss: us(1, 2),
        read_hit: us(3, 3),
        write_miss: us(4, 5),
        write_hit: us(6, 7),
        done: us(8, 9),
        bus: us(4, 0),
        buffer,
        ..ControllerSpec::NONE
    };
    let told: Vec<String> =
        c.describe().into_iter().map(|(name, words)| format!("{name}: {words}")).collect();
    assert_eq!(
        told,
        [
            "command: once a command: read 1us (2us after a write), in the buffer 3us; write 4us (5us after a write), \
             into the buffer 6us (7us after a write); at the end 8us and 9us",
            "bus: reads 128.0 MB/s, writes no time, beside the medium",
            "cache: 7 segments of 128.5 KiB",
            "read-ahead: segment, 48 KiB at most",
            "write cache: on, 3 writes; flush and FUA wait for the medium, what was not flushed may be lost with the power",
            "zero latency: reads and writes",
        ]
    );
}

/// A buffer's segments have blocks, and what it costs is told for reads and for writes.
#[test]
fn a_buffer_is_checked_and_described() {
    let mut spec = preset("seagate-exos-x24").spec().clone();
    let mut c = spec.controller.unwrap();
    c.done = [SimTime::from_us(10), SimTime::from_us(20)];
    let told = c.describe().into_iter().find(|d| d.0 == "command").unwrap().1;
    assert!(told.ends_with(&format!("at the end {} and {}", c.done[0], c.done[1])), "{told}");
    let of = |c: &ControllerSpec, name: &str| {
        c.describe().into_iter().find(|d| d.0 == name).map(|d| d.1.chars().take(24).collect::<String>())
    };
    c.buffer.zero_latency = [false, true];
    let some = ["cache", "read-ahead", "write cache", "zero latency"].map(|name| of(&c, name).unwrap());
    assert!(some[0].contains(" segments of ") && some[2].starts_with("on, "), "{some:?}");
    assert_eq!(
        (c.buffer.read_ahead.name(), some[3].as_str()),
        (some[1].split(',').next().unwrap(), "writes")
    );
    let off = ControllerSpec { buffer: BufferSpec::OFF, ..c };
    assert_eq!(
        (of(&off, "cache").unwrap().as_str(), of(&off, "read-ahead"), of(&off, "write cache")),
        ("off", None, None)
    );
    c.buffer.segment_blocks = 0;
    spec.controller = Some(c);
    let e = DriveModel::new(spec, Vec::new()).unwrap_err().to_string();
    assert!(e.contains("controller.buffer.segment_blocks: 0 is not accepted"), "{e}");
}

/// What a controller accepts ends where it is said to.
#[test]
fn bounds_of_a_controller_are_accepted_and_no_more() {
    let accepts = |change: &dyn Fn(&mut ControllerSpec)| {
        let mut c = ControllerSpec { buffer: BufferSpec::PLAIN, ..ControllerSpec::NONE };
        change(&mut c);
        c.check("controller").is_ok()
    };
    let second = SimTime::from_ms(1000);
    for more in [0, 1] {
        let fits = more == 0;
        assert_eq!(accepts(&|c| c.read_settle[1] = second + SimTime(more)), fits);
        assert_eq!(accepts(&|c| c.read_gather = 1000 + more as u32), fits);
        assert_eq!(accepts(&|c| c.buffer.segments = 65_536 + more as u32), fits);
        assert_eq!(accepts(&|c| c.buffer.write_segments = 32 + more as u32), fits, "of 32 segments");
        assert_eq!(accepts(&|c| c.buffer.segment_blocks = (1 << 24) + more as u32), fits);
    }
    assert!(!accepts(&|c| c.buffer.write_segments = 0), "room for a write at least");
    assert!(accepts(&|c| (c.buffer.write_segments, c.buffer.write_back) = (0, WriteBack::Off)));
}
