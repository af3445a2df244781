//! `[persistent_cache]` of a drive file: the log on the medium that a drive-managed drive writes to first.

use super::form::{COUNT, CYLINDERS, Form, ON, RATE, SIZE, TIME, TRACKS, TURNS, count, real};
use smrlab_units::{Blocks, SimTime};

/// What is known of a drive's cache on the medium; what is `None` is left to the layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheSpec {
    /// Size of the log.
    pub log: Option<Blocks>,
    /// Least length of a packet in the log, in tracks of the log.
    pub slot_tracks: Option<f64>,
    /// Data in a packet at most.
    pub packet: Option<Blocks>,
    /// What a packet takes in the log beside its data.
    pub overhead: Option<Blocks>,
    /// Packets between head and tail of the log beyond which cleaning begins.
    pub map_trigger: Option<u64>,
    /// Packets with live data at which requests wait for whole rounds.
    pub map_limit: Option<u64>,
    /// Fixed part of a commit, in revolutions.
    pub commit_turns: Option<f64>,
    /// What a commit adds for its data, in bytes a second.
    pub commit_rate: Option<u64>,
    /// Before a commit where the head is at the log already.
    pub commit_overhead: Option<SimTime>,
    /// Packets from one commit of the journal to the next.
    pub journal_every: Option<u64>,
    /// Time of a commit of the journal.
    pub journal: Option<SimTime>,
    /// Bands that a round of cleaning takes.
    pub round_bands: Option<u64>,
    /// Time to collect a packet, in revolutions.
    pub collect_turns: Option<f64>,
    /// Memory in which a band is merged.
    pub memory: Option<Blocks>,
    /// Idle time after which the drive cleans.
    pub idle: Option<SimTime>,
    /// Sequential writes from a band's beginning on go to the band directly.
    pub bypass: Option<bool>,
    /// A band whose blocks are all in the log is written without being read or copied first.
    pub whole_bands: Option<bool>,
    /// A native read misses the blocks that pass within so many behind the head's arrival, instead of a read overhead.
    pub read_late: Option<Blocks>,
    /// So many first cylinders, the cache's, are one place for seeks.
    pub one_place: Option<u64>,
}

/// Every field may be left out.
pub(super) fn fields(f: &mut impl Form, c: &mut CacheSpec) {
    f.doc("size of the log on the medium").optional("log", &SIZE, &mut c.log);
    f.doc("least length of a packet, in tracks of the log");
    f.optional("slot_tracks", &real(TRACKS), &mut c.slot_tracks);
    f.doc("data in a packet at most").optional("packet", &SIZE, &mut c.packet);
    f.doc("what a packet takes beside its data").optional("overhead", &SIZE, &mut c.overhead);
    f.doc("packets beyond which cleaning begins").optional("map_trigger", &count(COUNT), &mut c.map_trigger);
    f.doc("packets with live data at which requests wait for whole rounds");
    f.optional("map_limit", &count(COUNT), &mut c.map_limit);
    f.doc("fixed part of a commit").optional("commit_turns", &TURNS, &mut c.commit_turns);
    f.doc("what a commit adds for its data").optional("commit_rate", &RATE, &mut c.commit_rate);
    f.doc("before a commit where the head is at the log already");
    f.optional("commit_overhead", &TIME, &mut c.commit_overhead);
    f.doc("packets from one commit of the journal to the next");
    f.optional("journal_every", &count(COUNT), &mut c.journal_every);
    f.doc("time of a commit of the journal").optional("journal", &TIME, &mut c.journal);
    f.doc("bands that a round of cleaning takes").optional("round_bands", &count(COUNT), &mut c.round_bands);
    f.doc("time to collect a packet").optional("collect_turns", &TURNS, &mut c.collect_turns);
    f.doc("memory in which a band is merged").optional("memory", &SIZE, &mut c.memory);
    f.doc("idle time after which the drive cleans").optional("idle", &TIME, &mut c.idle);
    f.doc("1: sequential writes from a band's beginning on go to the band directly");
    f.optional("bypass", &ON, &mut c.bypass);
    f.doc("1: a band whose blocks are all in the log is written without being read");
    f.optional("whole_bands", &ON, &mut c.whole_bands);
    f.doc("a native read misses what passes within so much behind the head's arrival; it takes the place of the read overhead");
    f.optional("read_late", &SIZE, &mut c.read_late);
    f.doc("so many first cylinders, the cache's, are one place for seeks, and reads from and to there miss nothing");
    f.optional("one_place", &count(CYLINDERS), &mut c.one_place);
}
