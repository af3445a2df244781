//! `[persistent_cache]` of a drive file: the log on the medium that a drive-managed drive writes to first.

use super::reader::{ANGLE, COUNT, CYLINDERS, RATE, Reader, SIZE, SWITCH, TIME, TRACKS, time};
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

fn whole(bytes: f64) -> Blocks {
    Blocks((bytes / 512.0).round() as u64)
}

/// Every field may be left out.
pub(super) fn parse(r: Reader<'_>) -> CacheSpec {
    let size = |key| r.opt_number(key, SIZE).map(whole);
    let count = |key| r.opt_count(key, COUNT);
    let switch = |key| r.opt_number(key, SWITCH).map(|n| n > 0.0);
    let spec = CacheSpec {
        log: size("log"),
        slot_tracks: r.opt_number("slot_tracks", TRACKS),
        packet: size("packet"),
        overhead: size("overhead"),
        map_trigger: count("map_trigger"),
        map_limit: count("map_limit"),
        commit_turns: r.opt_number("commit_turns", ANGLE),
        commit_rate: r.opt_number("commit_rate", RATE).map(|n| n as u64),
        commit_overhead: r.opt_number("commit_overhead", TIME).map(time),
        journal_every: count("journal_every"),
        journal: r.opt_number("journal", TIME).map(time),
        round_bands: count("round_bands"),
        collect_turns: r.opt_number("collect_turns", ANGLE),
        memory: size("memory"),
        idle: r.opt_number("idle", TIME).map(time),
        bypass: switch("bypass"),
        whole_bands: switch("whole_bands"),
        read_late: size("read_late"),
        one_place: r.opt_count("one_place", CYLINDERS),
    };
    r.finish();
    spec
}
