//! What stands between the host and the mechanics: command overheads, the bus, and the buffer with its segments.

use super::reader::{BLOCKS, COUNT, Reader, SHARE, TIME, time};
use crate::fault::{DriveError, Faults};
use smrlab_units::{Blocks, SimTime};

/// How far a drive reads on after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// Not at all.
    Off,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track, and of the next one where the stream of reads began on an earlier track.
    TwoTracks,
}

/// Which writes are acknowledged when they are in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBack {
    /// None: the host waits for the medium.
    Off,
    /// Those that follow what is in the buffer already.
    Append,
    /// All for which there is room.
    On,
}

/// The buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    /// Segments.
    pub segments: u32,
    /// Blocks of each.
    pub segment_blocks: u32,
    /// How many may hold data that are not on the medium yet.
    pub write_segments: u32,
    /// See there.
    pub read_ahead: ReadAhead,
    /// The most that is read ahead.
    pub read_ahead_blocks: u32,
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
    /// Of a read so many thousandths are gathered before its first block goes over the bus.
    pub read_gather: u32,
    /// The buffer.
    pub buffer: BufferSpec,
}

/// The names of the overheads in a drive file, in the order of [`ControllerSpec::overheads`].
pub(crate) const OVERHEADS: [&str; 13] = [
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
];

/// The words for [`ReadAhead`] and [`WriteBack`] in a drive file.
const READ_AHEAD: [&str; 5] = ["off", "track", "cylinder", "segment", "two-tracks"];
const WRITE_BACK: [&str; 3] = ["off", "append", "on"];
const SWITCH: [&str; 2] = ["off", "on"];

impl ReadAhead {
    const ALL: [Self; 5] = [Self::Off, Self::Track, Self::Cylinder, Self::Segment, Self::TwoTracks];

    /// The word in a drive file.
    pub fn name(self) -> &'static str {
        READ_AHEAD[self as usize]
    }
}

impl WriteBack {
    const ALL: [Self; 3] = [Self::Off, Self::Append, Self::On];

    /// The word in a drive file.
    pub fn name(self) -> &'static str {
        WRITE_BACK[self as usize]
    }
}

impl ControllerSpec {
    /// All times, in the order of the fields in a drive file.
    pub(crate) fn overheads(&self) -> [SimTime; 13] {
        let [a, b, c, d, e] = [self.read_hit, self.read_miss, self.write_hit, self.write_miss, self.done];
        let f = self.bus;
        [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1], e[0], e[1], f[0], f[1], self.write_delay]
    }

    pub(crate) fn of_overheads(t: [SimTime; 13], read_gather: u32, buffer: BufferSpec) -> Self {
        Self {
            read_hit: [t[0], t[1]],
            read_miss: [t[2], t[3]],
            write_hit: [t[4], t[5]],
            write_miss: [t[6], t[7]],
            done: [t[8], t[9]],
            bus: [t[10], t[11]],
            write_delay: t[12],
            read_gather,
            buffer,
        }
    }

    /// Checks every field; places are given relative to `at` ("controller").
    ///
    /// # Errors
    /// All faults at once.
    pub fn check(&self, at: &str) -> Result<(), DriveError> {
        let mut f = Faults::default();
        for (name, t) in OVERHEADS.iter().zip(self.overheads()) {
            if t > SimTime::from_ms(1000) {
                f.add(format!("{at}.{name}"), format!("{t} is not accepted: from 0 to 1s"));
            }
        }
        f.range(format!("{at}.read_gather"), u64::from(self.read_gather), 0, 1000);
        let b = &self.buffer;
        f.range(format!("{at}.buffer.segments"), u64::from(b.segments), 1, 65_536);
        f.range(format!("{at}.buffer.segment_blocks"), u64::from(b.segment_blocks), 1, 1 << 24);
        f.range(format!("{at}.buffer.write_segments"), u64::from(b.write_segments), 1, u64::from(b.segments));
        f.finish()
    }
}

/// `[controller]` with `[controller.buffer]`.
pub(super) fn controller(r: Reader<'_>) -> Option<ControllerSpec> {
    let times = OVERHEADS.map(|key| r.number(key, TIME).map(time));
    let gather = r.number("read_gather", SHARE).map(|n| n.round() as u32);
    let buffer = r.table("buffer").and_then(buffer);
    r.finish();
    let mut all = [SimTime::ZERO; 13];
    for (to, from) in all.iter_mut().zip(times) {
        *to = from?;
    }
    Some(ControllerSpec::of_overheads(all, gather?, buffer?))
}

fn buffer(r: Reader<'_>) -> Option<BufferSpec> {
    let count = |key| r.number(key, COUNT).map(|n| n as u32);
    let blocks = |key| r.number(key, BLOCKS).map(|n| Blocks(n as u64).0 as u32);
    let (segments, write_segments) = (count("segments"), count("write_segments"));
    let (segment_blocks, read_ahead_blocks) = (blocks("segment_blocks"), blocks("read_ahead_blocks"));
    let index = |key, words: &[&'static str]| {
        let word = r.choice(key, words)?;
        words.iter().position(|w| *w == word)
    };
    let read_ahead = index("read_ahead", &READ_AHEAD).map(|i| ReadAhead::ALL[i]);
    let write_back = index("write_back", &WRITE_BACK).map(|i| WriteBack::ALL[i]);
    let switch = |key| index(key, &SWITCH).map(|i| i == 1);
    let zero = (switch("zero_latency_reads"), switch("zero_latency_writes"));
    let written_hits = switch("written_hits");
    let ahead_on_hit = switch("ahead_on_hit");
    let passing = switch("passing_blocks");
    r.finish();
    Some(BufferSpec {
        segments: segments?,
        segment_blocks: segment_blocks?,
        write_segments: write_segments?,
        read_ahead: read_ahead?,
        read_ahead_blocks: read_ahead_blocks?,
        passing: passing?,
        ahead_on_hit: ahead_on_hit?,
        zero_latency: [zero.0?, zero.1?],
        write_back: write_back?,
        written_hits: written_hits?,
    })
}
