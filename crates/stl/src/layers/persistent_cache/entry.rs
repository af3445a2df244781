//! The registry's entry of the persistent cache: its page, its parameters, and building it for a drive.

use super::layout::Layout;
use super::log::Sizes;
use super::{Bypass, PersistentCache, PersistentCacheOptions};
use crate::entry::{BAND_OF_TRACKS, BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use smrlab_disk::Bands;
use smrlab_disk::model::CacheSpec;
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, SimTime, parse_time};

const PAGE: &str = "\
A drive-managed drive as seen from outside. Bands lie natively at fixed places; every write goes first to a log on the medium,
the *persistent cache*, as a *packet*: one entry of a map that holds only so many. Reads take each block from where its
newest copy lies.

A commit of a packet takes a fixed time, whatever its size (`commit`, in revolutions; `commit_rate` adds what the data take
on drives where that was seen). Every `journal_every` packets the journal is committed, which stalls one write for `journal_time`.

When the log is longer than `map_trigger` packets (dead ones included), a *round* of cleaning begins: `round` bands, each that of
the highest block of the oldest packet. All cached blocks of a band are taken, and their map entries are free at once. The
band goes home in phases of `memory` bytes: its tracks are read from the lowest cached block on, the packets are collected
(`collect` each, in the phase of their last block), the merged tracks go to a scratch band, then home. Each of these is a *sub-step*, and a request waits for one
of them (a read opens a round that is due, but does not wait for that); requests are what brings a round forward, and where
the host is idle the drive does (`idle`). With `map_limit` packets in use a request waits for the whole round instead: the
*pressure* that turns a drive of 13 writes a second into one of 3. A further packet of the same request waits then until bands are
home and an entry is free. Where the log is full in bytes, a write waits band by band until there is room for it; what was taken of the log has
no room to give until it is home. `rounds_waited_for` counts both.

From packet to packet of the log a read waits for the turn between their beginnings. It counts from the packet that was read last, also
where others were written meanwhile, as in the published model.

So what matters is the density of writes. With w packets a band the long-run mean of a small write is the time of a band
(0.05 to 0.85 s) divided by w, and a commit on top.

Options beyond the published model:
- `idle=TIME` (or `off`): after so long without a request the drive cleans band by band until the log is empty.
- `bypass=on`: a write that begins with a band of which nothing lies natively, and whatever follows it without a gap, goes to the
  band directly and takes cached copies of its blocks out of the log. FUA writes never do. Bands that hold data natively are
  written through the log: without memory for a whole band they cannot be overwritten safely.
- `readahead=off`: as in the published model a read that follows another one, or begins on the track under the head, and each
  change to the next track lose a revolution. With `on` such reads pass at the rate of the medium.
- `queued=N`: the host is taken to keep N writes queued, which share a packet as far as `packet` allows. The layer does not
  see the queue: with `queued=1` every write is a packet of its own.
- `whole_bands=on`: a band all of whose blocks are cached is written from the log, without being read or copied.
- `waits=running`: a request is acknowledged before the sub-step that it brings forward; only one that comes while it
  runs waits.

Values that are not given are the drive file's (`[persistent_cache]`), else those of the published model of a 5 TB drive. Passes of
cleaning, and commits with the head at the log already, take the times of that model whatever the mechanics say; seeks to
and from the native bands are the mechanics'.

Power cuts lose nothing that was acknowledged: a packet counts when its write has ended, packets that were taken are kept until
their band is home, and a band is written in place only from a copy. After a cut a round goes on where it was; that the memory
has to be read again takes no time here. Discards free packets and read as zeroes.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "persistent-cache",
    aliases: &["drive-managed", "dm-smr"],
    summary: "drive-managed drive: a log on the medium with a limited map, cleaned band by band while requests wait",
    reference: "Shafaei, Hajkazemi, Desnoyers, Aghayev 2017, Modeling Drive-Managed SMR Performance, ACM TOS 13(4), and the released model",
    page: PAGE,
    idle: "by default, 1.2 s after the last request (or what the drive's file says) it cleans band after band until its log is empty. `idle=TIME` changes the wait; `idle=off`: nothing",
    params: PARAMS,
    tested: &[
        "map_trigger=6,map_limit=9,memory=16blk,slot=0.1,packet=6blk,idle=10ms,readahead=off",
        "bypass=on,queued=4,packet=12blk,waits=running,idle=10ms,map_trigger=9,map_limit=12",
        "whole_bands=on,round=3,map_trigger=4,map_limit=4,overhead=1blk,slot=0.3,bypass=on",
    ],
    ..LayerEntry::new(build)
};

// What `host-aware` has too.
pub(in crate::layers) const LOG: Param =
    Param::new("log", Kind::Size, "").doc("size of the log; default: the drive's, else 0.5 % of the bands");
pub(in crate::layers) const PACKET: Param =
    Param::new("packet", Kind::Size, "").doc("data in a packet at most; default: the drive's, else 512KiB");
pub(in crate::layers) const MAP_TRIGGER: Param = Param::new("map_trigger", Kind::Count(1, 1 << 31), "")
    .doc("packets from head to tail beyond which cleaning begins; default: the drive's, else 22986");
pub(in crate::layers) const MAP_LIMIT: Param = Param::new("map_limit", Kind::Count(1, 1 << 31), "")
    .doc("packets with live data at which requests wait for whole rounds; default: the drive's, else 23000");
pub(in crate::layers) const ROUND: Param = Param::new("round", Kind::Count(1, 64), "")
    .doc("bands in a round of cleaning; default: the drive's, else 2");
pub(in crate::layers) const MEMORY: Param = Param::new("memory", Kind::Size, "")
    .doc("memory in which a band is merged; default: the drive's, else 14MiB");
pub(in crate::layers) const IDLE: Param = Param::new("idle", Kind::Text, "")
    .doc("idle time after which the drive cleans, or off; default: the drive's, else 1.2s");

const PARAMS: &[Param] = &[
    LOG,
    Param::new("slot", Kind::Real(0.0, 1000.0), "").doc(
        "least length of a packet in the log, in tracks; default: the drive's, else 0.4 (fitted by the \
         model's authors)",
    ),
    PACKET,
    Param::new("overhead", Kind::Size, "")
        .doc("what a packet takes in the log beside its data; default: the drive's, else 0"),
    Param::new("queued", Kind::Count(1, 64), "1").doc(
        "consecutive writes that share a packet: those that the host keeps queued (drives take up to \
         8)",
    ),
    MAP_TRIGGER,
    MAP_LIMIT,
    Param::new("commit", Kind::Real(0.0, 1000.0), "")
        .doc("fixed time of a commit, in revolutions; default: the drive's, else 2.4"),
    Param::new("commit_rate", Kind::Real(1.0, 100_000.0), "")
        .doc("MB/s at which a commit's data add to its time; default: the drive's, else they add nothing"),
    Param::new("commit_overhead", Kind::Time, "")
        .doc("before a commit with the head at the log already; default: the drive's, else 700us"),
    Param::new("journal_every", Kind::Count(1, 1 << 31), "")
        .doc("packets between commits of the journal; default: the drive's, else 240"),
    Param::new("journal_time", Kind::Time, "")
        .doc("time of a commit of the journal; default: the drive's, else 300ms"),
    ROUND,
    Param::new("collect", Kind::Real(0.0, 1000.0), "")
        .doc("time to collect a packet, in revolutions; default: the drive's, else 0.2"),
    MEMORY,
    Param::new("readahead", Kind::Choice(&["on", "off"]), "on").doc(
        "a read that follows another one costs what passes the head; off: it waits for the next turn, \
         as in the published model",
    ),
    Param::new("log_late", Kind::Real(0.0, 1.0), "0.2").doc(
        "a read of a packet that begins less than so many revolutions before or behind the last one, by their \
         places along the track, takes a whole turn",
    ),
    IDLE,
    Param::new("bypass", Kind::Choice(&["on", "off"]), "")
        .doc("sequential writes from a band's beginning on skip the log; default: the drive's, else off"),
    Param::new("whole_bands", Kind::Choice(&["on", "off"]), "")
        .doc("bands that are cached whole are not read or copied; default: the drive's, else off"),
    Param::new("waits", Kind::Choice(&["sub-step", "running"]), "sub-step").doc(
        "each request waits for the sub-step that it brings forward, or only for one that runs when it \
         comes",
    ),
    Param::new("band", Kind::Band, "").doc(BAND_OF_TRACKS),
    HEAD_TRACKS,
];

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let bands = context.bands(&ENTRY, context.band_length(values, BandLength::Tracks))?;
    let given = values.given("bypass", Values::on);
    let bypass = given.or(context.drive.spec().cache.and_then(|c| c.bypass)).unwrap_or(false);
    let bypass = if bypass { Bypass::Stream } else { Bypass::Never };
    Ok(Box::new(cache(context, ENTRY.name, bands, values, bypass)?))
}

/// A cache before the zones of the layer `owner`, which are these bands but for those that the log takes; `pairs` are options of the
/// persistent cache.
///
/// # Errors
/// When the drive has too few bands; options that contradict each other.
pub(in crate::layers) fn before_zones(
    context: &BuildContext,
    owner: &str,
    bands: Bands,
    pairs: &[(&str, &str)],
) -> Result<PersistentCache, SpecError> {
    cache(context, owner, bands, &Values::check(owner, PARAMS, pairs)?, Bypass::EachBand)
}

fn cache(
    context: &BuildContext,
    owner: &str,
    bands: Bands,
    values: &Values,
    bypass: Bypass,
) -> Result<PersistentCache, SpecError> {
    let refuse = |e: String| SpecError::Other(format!("{owner}: {e}"));
    let spec = context.drive.spec().cache.unwrap_or_default();
    let whole = context.drive.counted_blocks();
    let log = values.given("log", |v, key| v.size(key, whole)).or(spec.log);
    let overhead = values.given("overhead", |v, key| v.size(key, whole)).or(spec.overhead).map_or(0, |b| b.0);
    // Zones are bands, too; a packet has 32 bits for its place in one.
    if bands.longest().0 > u64::from(u32::MAX) {
        return Err(refuse("a band has more than 2^32 blocks: use smaller ones".into()));
    }
    let layout = Layout::new(context, bands, log, overhead).map_err(refuse)?;
    let options = PersistentCacheOptions { bypass, ..options(values, &spec, &layout, whole)? };
    let counted = context.drive.spec().counted.map_or(u64::MAX, |b| b.0);
    let host = layout.blocks().min(counted);
    Ok(PersistentCache::new(layout, options, host))
}

fn options(
    values: &Values,
    spec: &CacheSpec,
    layout: &Layout,
    whole: Blocks,
) -> Result<PersistentCacheOptions, SpecError> {
    let size = |key: &str, own: Option<Blocks>, default: u64| {
        values.given(key, |v, key| v.size(key, whole)).or(own).map_or(default, |b| b.0)
    };
    let count =
        |key: &str, own: Option<u64>, default| values.given(key, Values::count).or(own).unwrap_or(default);
    let real =
        |key: &str, own: Option<f64>, default| values.given(key, Values::real).or(own).unwrap_or(default);
    let time =
        |key: &str, own: Option<SimTime>, default| values.given(key, Values::time).or(own).unwrap_or(default);
    let on = |key: &str, own: Option<bool>| values.given(key, Values::on).or(own).unwrap_or(false);
    // In billionths, so that times are whole numbers from here on.
    let turns = |turns: f64| layout.turns((turns * 1e9).round() as u64, 1_000_000_000);
    let band = layout.least_log_band();
    let slot = (real("slot", spec.slot_tracks, 0.4) * layout.track as f64 * 1e3).round() as u64;
    let overhead = size("overhead", spec.overhead, 0).min(band - 1);
    let rate = values.given("commit_rate", Values::real).map(|mb| (mb * 1e6) as u64).or(spec.commit_rate);
    let trigger = count("map_trigger", spec.map_trigger, 22_986);
    let limit = count("map_limit", spec.map_limit, 23_000.max(trigger));
    if limit < trigger {
        return Err(values.bad("map_limit", format!("not below map_trigger={trigger}")));
    }
    let log = values
        .given("log", |v, key| v.size(key, whole))
        .or(spec.log)
        .map_or_else(|| layout.log_blocks(), |b| b.0);
    Ok(PersistentCacheOptions {
        log: log.max(1),
        sizes: Sizes { slot: slot.clamp(1000, 1000 * band), overhead },
        packet: size("packet", spec.packet, 1024).clamp(1, band - overhead),
        queued: values.count("queued"),
        map_trigger: trigger,
        map_limit: limit,
        commit: turns(real("commit", spec.commit_turns, 2.4)),
        commit_rate: rate.filter(|r| *r > 0),
        commit_overhead: time("commit_overhead", spec.commit_overhead, SimTime::from_us(700)),
        journal: time("journal_time", spec.journal, SimTime::from_ms(300)),
        journal_every: count("journal_every", spec.journal_every, 240),
        round_bands: count("round", spec.round_bands, 2),
        collect: turns(real("collect", spec.collect_turns, 0.2)),
        memory: size("memory", spec.memory, 14 * 2048).max(1),
        idle: idle(values, spec)?,
        bypass: Bypass::Never,
        whole_bands: on("whole_bands", spec.whole_bands),
        read_ahead: values.text("readahead") != Some("off"),
        log_late: (values.real("log_late") * layout.track as f64).round() as u64,
        running_only: values.text("waits") == Some("running"),
    })
}

fn idle(values: &Values, spec: &CacheSpec) -> Result<Option<SimTime>, SpecError> {
    match values.text("idle") {
        None | Some("") => Ok(spec.idle.or(Some(SimTime::from_ms(1200)))),
        Some("off") => Ok(None),
        Some(text) => match parse_time(text) {
            Ok(time) => Ok(Some(time)),
            Err(_) => Err(values.bad("idle", "a time such as 1.2s, or off")),
        },
    }
}
