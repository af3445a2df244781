//! What stands between the host and the mechanics: command overheads, the bus, and the buffer with its segments.

use super::reader::{BLOCKS, COUNT, Reader, SHARE, TIME, time};
use crate::Result;
use smrlab_units::problems::Problems;
use smrlab_units::{SimTime, named};

named! {
    /// How far a drive reads on after a read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReadAhead {
        /// Not at all.
        Off => "off",
        /// To the end of the track.
        Track => "track",
        /// To the end of the cylinder.
        Cylinder => "cylinder",
        /// Until the segment is full.
        Segment => "segment",
        /// To the end of the track, and of the next one where the stream of reads began on an earlier track.
        TwoTracks => "two-tracks",
    }
}

named! {
    /// Which writes are acknowledged when they are in the buffer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WriteBack {
        /// None: the host waits for the medium.
        Off => "off",
        /// Those that follow what is in the buffer already: a word of DiskSim's, modelled as [`On`](Self::On).
        Append => "append",
        /// All for which there is room.
        On => "on",
    }
}

/// The buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    /// Segments; 0: no buffer.
    pub segments: u32,
    /// Blocks of each.
    pub segment_blocks: u32,
    /// How many may hold data that are not on the medium yet.
    pub write_segments: u32,
    /// See there.
    pub read_ahead: ReadAhead,
    /// The most that is read ahead.
    pub read_ahead_blocks: u32,
    /// Reading ahead leaves what was asked for in the segment.
    pub keeps_requested: bool,
    /// What passes the head on the way to the first block of a read is kept.
    pub passing: bool,
    /// A hit makes an idle medium go on reading ahead.
    pub ahead_on_hit: bool,
    /// Reads, writes may begin in the middle of what is asked for.
    pub zero_latency: [bool; 2],
    /// See there.
    pub write_back: WriteBack,
    /// What was written can be read from the buffer.
    pub written_hits: bool,
}

impl BufferSpec {
    /// No buffer.
    pub const OFF: Self = Self {
        segments: 0,
        segment_blocks: 1,
        write_segments: 0,
        read_ahead: ReadAhead::Off,
        read_ahead_blocks: 0,
        keeps_requested: false,
        passing: false,
        ahead_on_hit: false,
        zero_latency: [false; 2],
        write_back: WriteBack::Off,
        written_hits: false,
    };

    /// What a drive of which nothing is known is taken to have where a cache is asked for: 16 MiB in segments of 512 KiB, half
    /// of them for writes.
    pub const PLAIN: Self = Self {
        segments: 32,
        segment_blocks: 1024,
        write_segments: 16,
        read_ahead: ReadAhead::Segment,
        read_ahead_blocks: 512,
        write_back: WriteBack::On,
        written_hits: true,
        ..Self::OFF
    };
}

/// See the [module](self). Times that differ by the direction of the command before are `[after a read, after a write]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerSpec {
    /// Before a read of which the buffer has the beginning.
    pub read_hit: [SimTime; 2],
    /// Before any other read positions.
    pub read_miss: [SimTime; 2],
    /// Before a write that the buffer takes.
    pub write_hit: [SimTime; 2],
    /// Before any other write positions.
    pub write_miss: [SimTime; 2],
    /// After a read's last block, after a write's.
    pub done: [SimTime; 2],
    /// What the bus needs for a block of a read, of a write.
    pub bus: [SimTime; 2],
    /// Between a write's overhead and its first block on the bus.
    pub write_delay: SimTime,
    /// Before a read of which the head is on the cylinder already.
    pub read_settle: [SimTime; 2],
    /// Of a read so many thousandths are gathered before its first block goes over the bus.
    pub read_gather: u32,
    /// The buffer.
    pub buffer: BufferSpec,
}

/// The names of the overheads in a drive file, in the order of [`ControllerSpec::overheads`].
pub(crate) const OVERHEADS: [&str; 15] = [
    "read_hit_after_read",
    "read_hit_after_write",
    "read_miss_after_read",
    "read_miss_after_write",
    "write_hit_after_read",
    "write_hit_after_write",
    "write_miss_after_read",
    "write_miss_after_write",
    "read_done",
    "write_done",
    "bus_read",
    "bus_write",
    "write_delay",
    "read_settle_after_read",
    "read_settle_after_write",
];

const SWITCH: [&str; 2] = ["off", "on"];

impl ControllerSpec {
    /// Nothing that takes time, and no buffer.
    pub const NONE: Self = Self {
        read_hit: [SimTime::ZERO; 2],
        read_miss: [SimTime::ZERO; 2],
        write_hit: [SimTime::ZERO; 2],
        write_miss: [SimTime::ZERO; 2],
        done: [SimTime::ZERO; 2],
        bus: [SimTime::ZERO; 2],
        write_delay: SimTime::ZERO,
        read_settle: [SimTime::ZERO; 2],
        read_gather: 0,
        buffer: BufferSpec::OFF,
    };

    /// What is on and what it costs, for `explain`: names and words.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let both = |t: [SimTime; 2]| {
            if t[0] == t[1] { t[0].to_string() } else { format!("{} ({} after a write)", t[0], t[1]) }
        };
        let (b, bus) = (&self.buffer, self.bus);
        let rate = |t: SimTime| match t.0 {
            0 => "no time".to_owned(),
            ns => format!("{:.1} MB/s", 512e3 / ns as f64),
        };
        let mut out = vec![
            (
                "command",
                format!(
                    "once a command: read {}, in the buffer {}; write {}, into the buffer {}; at the end {} and {}",
                    both(self.read_miss),
                    both(self.read_hit),
                    both(self.write_miss),
                    both(self.write_hit),
                    self.done[0],
                    self.done[1]
                ),
            ),
            ("bus", format!("reads {}, writes {}, beside the medium", rate(bus[0]), rate(bus[1]))),
        ];
        let kib = |blocks: u32| f64::from(blocks) / 2.0;
        out.push(match b.segments {
            0 => ("cache", "off".to_owned()),
            n => ("cache", format!("{n} segments of {} KiB", kib(b.segment_blocks))),
        });
        if b.segments > 0 {
            let most = format!(", {} KiB at most", kib(b.read_ahead_blocks));
            let far = if b.read_ahead == ReadAhead::Off { String::new() } else { most };
            out.push(("read-ahead", format!("{}{far}", b.read_ahead.name())));
            out.push((
                "write cache",
                match b.write_back {
                    WriteBack::Off => "off: a write is answered when it is on the medium".to_owned(),
                    _ => format!(
                        "on, {} writes; flush and FUA wait for the medium, what was not flushed may be lost with the power",
                        b.write_segments
                    ),
                },
            ));
        }
        let on: Vec<&str> =
            ["reads", "writes"].into_iter().zip(b.zero_latency).filter(|z| z.1).map(|z| z.0).collect();
        if !on.is_empty() {
            out.push(("zero latency", on.join(" and ")));
        }
        out
    }

    /// All times, in the order of the fields in a drive file.
    pub(crate) fn overheads(&self) -> [SimTime; 15] {
        let [a, b, c, d, e] = [self.read_hit, self.read_miss, self.write_hit, self.write_miss, self.done];
        let (f, g) = (self.bus, self.read_settle);
        let pairs = [a, b, c, d, e, f, [self.write_delay, g[0]]];
        let mut out = [g[1]; 15];
        out.iter_mut().zip(pairs.as_flattened()).for_each(|(t, v)| *t = *v);
        out
    }

    pub(crate) fn of_overheads(t: [SimTime; 15], read_gather: u32, buffer: BufferSpec) -> Self {
        Self {
            read_hit: [t[0], t[1]],
            read_miss: [t[2], t[3]],
            write_hit: [t[4], t[5]],
            write_miss: [t[6], t[7]],
            done: [t[8], t[9]],
            bus: [t[10], t[11]],
            write_delay: t[12],
            read_settle: [t[13], t[14]],
            read_gather,
            buffer,
        }
    }

    /// Checks every field; places are given relative to `at` ("controller").
    ///
    /// # Errors
    /// All faults at once.
    pub fn check(&self, at: &str) -> Result<()> {
        let mut f = Problems::default();
        for (name, t) in OVERHEADS.iter().zip(self.overheads()) {
            if t > SimTime::from_ms(1000) {
                f.add(format!("{at}.{name}"), format!("{t} is not accepted: from 0 to 1s"));
            }
        }
        f.range(format!("{at}.read_gather"), self.read_gather, 0..=1000);
        let b = &self.buffer;
        f.range(format!("{at}.buffer.segments"), b.segments, 0..=65_536);
        f.range(format!("{at}.buffer.segment_blocks"), b.segment_blocks, 1..=1 << 24);
        let least = u64::from(b.write_back != WriteBack::Off);
        f.range(format!("{at}.buffer.write_segments"), b.write_segments, least..=u64::from(b.segments));
        f.finish()
    }
}

/// `[controller]`, a time of 0 where nothing is given, with `[controller.buffer]` where there is one.
pub(super) fn controller(r: Reader<'_>) -> Option<ControllerSpec> {
    let times = OVERHEADS.map(|key| r.opt_number(key, TIME).map_or(SimTime::ZERO, time));
    let gather = r.opt_number("read_gather", SHARE).map_or(0, |n| n.round() as u32);
    let buffer = match r.opt_table("buffer") {
        Some(table) => buffer(table),
        None => Some(BufferSpec::OFF),
    };
    r.finish();
    Some(ControllerSpec::of_overheads(times, gather, buffer?))
}

fn buffer(r: Reader<'_>) -> Option<BufferSpec> {
    let count = |key| r.count32(key, COUNT);
    let blocks = |key| r.count32(key, BLOCKS);
    let (segments, write_segments) = (count("segments"), count("write_segments"));
    let (segment_blocks, read_ahead_blocks) = (blocks("segment_blocks"), blocks("read_ahead_blocks"));
    let read_ahead = r.choice("read_ahead", ReadAhead::NAMES).and_then(ReadAhead::named);
    let write_back = r.choice("write_back", WriteBack::NAMES).and_then(WriteBack::named);
    let switch = |key| r.choice(key, &SWITCH).map(|word| word == "on");
    let zero = (switch("zero_latency_reads"), switch("zero_latency_writes"));
    let written_hits = switch("written_hits");
    let ahead_on_hit = switch("ahead_on_hit");
    let passing = switch("passing_blocks");
    let keeps_requested = r.opt_choice("keeps_requested", &SWITCH).is_some_and(|w| w == "on");
    r.finish();
    Some(BufferSpec {
        segments: segments?,
        segment_blocks: segment_blocks?,
        write_segments: write_segments?,
        read_ahead: read_ahead?,
        read_ahead_blocks: read_ahead_blocks?,
        keeps_requested,
        passing: passing?,
        ahead_on_hit: ahead_on_hit?,
        zero_latency: [zero.0?, zero.1?],
        write_back: write_back?,
        written_hits: written_hits?,
    })
}
