//! What stands between the host and the mechanics: command overheads, the bus, and the buffer with its segments.

use super::form::{COUNT, Form, LENGTH, SHARE, TIME, count32};
use crate::Result;
use smrlab_units::problems::Problems;
use smrlab_units::{SimTime, counted, named};

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
            n => ("cache", format!("{} of {} KiB", counted(n.into(), "segment"), kib(b.segment_blocks))),
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

    /// All times: the name of each in a drive file, and what it is.
    pub(super) fn overheads(&mut self, mut each: impl FnMut(&'static str, &mut SimTime, &'static str)) {
        each(
            "read_hit_after_read",
            &mut self.read_hit[0],
            "before a read of which the buffer has the beginning, where the command before was a read",
        );
        each("read_hit_after_write", &mut self.read_hit[1], "the same, after a write");
        each("read_miss_after_read", &mut self.read_miss[0], "before any other read positions, after a read");
        each("read_miss_after_write", &mut self.read_miss[1], "the same, after a write");
        each(
            "write_hit_after_read",
            &mut self.write_hit[0],
            "before a write that the buffer takes, after a read",
        );
        each("write_hit_after_write", &mut self.write_hit[1], "the same, after a write");
        each(
            "write_miss_after_read",
            &mut self.write_miss[0],
            "before any other write positions, after a read",
        );
        each("write_miss_after_write", &mut self.write_miss[1], "the same, after a write");
        each("read_done", &mut self.done[0], "after a read's last block");
        each("write_done", &mut self.done[1], "after a write's last block");
        each("bus_read", &mut self.bus[0], "what the bus needs for a block of a read");
        each("bus_write", &mut self.bus[1], "what the bus needs for a block of a write");
        each(
            "write_delay",
            &mut self.write_delay,
            "how long a write in the buffer is left there before the medium takes it",
        );
        each(
            "read_settle_after_read",
            &mut self.read_settle[0],
            "before a read of which the head is on the cylinder already, after a read, beside the overhead",
        );
        each(
            "read_settle_after_write",
            &mut self.read_settle[1],
            "the same, after a write: reading and writing elements lie apart",
        );
    }

    /// Checks every field; places are given relative to `at` ("controller").
    ///
    /// # Errors
    /// All faults at once.
    pub fn check(&self, at: &str) -> Result<()> {
        let mut f = Problems::default();
        let mut times = *self;
        times.overheads(|name, t, _| {
            if *t > SimTime::from_ms(1000) {
                f.add(format!("{at}.{name}"), format!("{t} is not accepted: from 0 to 1s"));
            }
        });
        f.range(format!("{at}.read_gather"), self.read_gather, 0..=1000);
        let b = &self.buffer;
        f.range(format!("{at}.buffer.segments"), b.segments, 0..=65_536);
        f.range(format!("{at}.buffer.segment_blocks"), b.segment_blocks, 1..=1 << 24);
        let least = u64::from(b.write_back != WriteBack::Off);
        f.range(format!("{at}.buffer.write_segments"), b.write_segments, least..=u64::from(b.segments));
        f.finish()
    }

    /// `[controller]`, a time of 0 where nothing is given, with `[controller.buffer]` where there is one.
    pub(super) fn fields(&mut self, f: &mut impl Form) {
        self.overheads(|name, time, doc| f.doc(doc).defaulted(name, &TIME, time));
        f.doc("share of a read's blocks that are in the buffer before the bus begins");
        f.defaulted("read_gather", &SHARE, &mut self.read_gather);
        f.opt_table("buffer", true, |f| self.buffer.fields(f));
    }
}

impl BufferSpec {
    fn fields(&mut self, f: &mut impl Form) {
        const SWITCH: [(&str, bool); 2] = [("off", false), ("on", true)];
        let (number, blocks) = (count32(COUNT), count32(LENGTH));
        f.doc("segments of the buffer").number("segments", &number, &mut self.segments);
        f.doc("length of a segment").number("segment_blocks", &blocks, &mut self.segment_blocks);
        f.doc("segments that may hold data which are not on the medium yet");
        f.number("write_segments", &number, &mut self.write_segments);
        let words = ReadAhead::ALL.map(|word| (word.name(), word));
        f.doc("how far the drive reads on after a read").choice("read_ahead", &words, &mut self.read_ahead);
        f.doc("the most that is read ahead");
        f.number("read_ahead_blocks", &blocks, &mut self.read_ahead_blocks);
        f.doc("reading ahead leaves what was asked for in the segment");
        f.choice_or("keeps_requested", false, &SWITCH, &mut self.keeps_requested);
        f.doc("what passes the head on the way to the first block of a read is kept");
        f.choice("passing_blocks", &SWITCH, &mut self.passing);
        f.doc("a hit makes an idle medium go on reading ahead");
        f.choice("ahead_on_hit", &SWITCH, &mut self.ahead_on_hit);
        f.doc("reads may begin in the middle of what is asked for");
        f.choice("zero_latency_reads", &SWITCH, &mut self.zero_latency[0]);
        f.doc("writes may begin in the middle of what is to be written");
        f.choice("zero_latency_writes", &SWITCH, &mut self.zero_latency[1]);
        let words = WriteBack::ALL.map(|word| (word.name(), word));
        f.doc("which writes are acknowledged when they are in the buffer; append is modelled as on");
        f.choice("write_back", &words, &mut self.write_back);
        f.doc("what was written can be read from the buffer");
        f.choice("written_hits", &SWITCH, &mut self.written_hits);
    }
}
