//! The drives that ship with the project, and how a user's text becomes a drive.

use super::{BufferSpec, ControllerSpec, DriveModel, ReadAhead, WriteBack};
use crate::interference::Interference;
use crate::{DriveError, Result};
use smrlab_units::spec::{Kind, Param, SpecError, Values, nearest, split_item};
use smrlab_units::{Blocks, SimTime};

/// A drive of the registry.
#[derive(Clone, Copy, Debug)]
pub struct DriveEntry {
    /// What users write.
    pub name: &'static str,
    /// The drive file.
    pub toml: &'static str,
}

impl DriveEntry {
    /// Reads the file.
    ///
    /// # Panics
    /// When the shipped file has a fault: a test reads all of them.
    pub fn drive(&self) -> DriveModel {
        DriveModel::from_toml(self.toml).unwrap_or_else(|e| panic!("drives/{}.toml: {e}", self.name))
    }
}

macro_rules! drives {
    ($($name:literal,)*) => {
        &[$(DriveEntry { name: $name, toml: include_str!(concat!("../../../../drives/", $name, ".toml")) },)*]
    };
}

/// The registry: one file, one line.
pub const DRIVES: &[DriveEntry] = drives![
    "he2014-example",
    "cassuto2010-307gb",
    "modern-7200",
    "tiny",
    "seagate-st5000as0011",
    "seagate-st8000as0002",
    "seagate-st8000dm004",
    "seagate-exos-x24",
    "seagate-exos-2x18-half",
    "wd-ultrastar-dc-hc680",
    "wd-ultrastar-dc-hc690",
    "arrays-interleaving",
    "dvs-raid",
];

/// What may follow a drive's name as `key=value`.
pub const OVERRIDES: &[Param] = &[
    Param::new("k", Kind::Count(1, 64), "")
        .doc("head width: tracks that a track write touches, itself included; 1 = conventional drive"),
    Param::new("interference_blocks", Kind::Count(1, 1 << 32), "")
        .doc("block profile I_b: blocks damaged from the written one on, itself included"),
    Param::new("capacity", Kind::Size, "").doc("cut the drive to its first cylinders that hold this"),
    Param::new("rpm", Kind::Count(1, 100_000), "").doc("revolutions a minute"),
    Param::new("band_tracks", Kind::Count(1, 1 << 32), "")
        .doc("tracks in a band, where the layer is given none"),
    Param::new("random_access", Kind::Count(0, 1 << 32), "")
        .doc("tracks from PBA 0 on that are set aside for random access"),
    Param::new("head_switch", Kind::Time, "").doc("time to change the surface"),
    Param::new("write_settle", Kind::Time, "").doc("what a moving write adds"),
    Param::new("read_overhead", Kind::Time, "").doc("before a read positions"),
    Param::new("write_overhead", Kind::Time, "").doc("before a write positions"),
    Param::new("command", Kind::Time, "")
        .doc("overhead of every host command, once, whatever it leads to on the medium"),
    Param::new("bus", Kind::Real(0.001, 1e6), "")
        .doc("bus between host and drive, in MB/s (10^6 bytes), beside the medium in both directions"),
    Param::new("cache", Kind::Switch, "").doc(
        "the drive's own cache. On: as the drive's file says, else 16 MiB with read-ahead and write \
         cache; off: none",
    ),
    Param::new("cache_size", Kind::Size, "").doc("size of that cache: the segments keep their number"),
    Param::new("segments", Kind::Count(1, 65_536), "")
        .doc("segments of that cache, its size being kept, half of them for writes"),
    Param::new("write_cache", Kind::Switch, "")
        .doc("on: writes are answered when they are in the cache; FLUSH and FUA wait for the medium"),
    Param::new("read_ahead", Kind::Choice(ReadAhead::NAMES), "")
        .doc("how far the drive reads on by itself after a read, until another command needs the head"),
    Param::new("zero_latency", Kind::Switch, "")
        .doc("reads and writes on one track begin with whichever block comes first"),
];

/// The overrides that concern the drive's own controller, in the order in which they are applied.
const CONTROLLER: [&str; 8] =
    ["cache", "segments", "cache_size", "command", "bus", "write_cache", "read_ahead", "zero_latency"];

/// Makes a drive of `NAME` or `PATH`, with overrides `,key=value`. `read` brings the text of a path (this crate touches
/// no file); a text with a slash or ending in `.toml` is a path.
///
/// # Errors
/// Unknown name or key with the nearest match; faults of the file with their place; what `read` says.
pub fn load(text: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<DriveModel, SpecError> {
    let (mut name, mut pairs) = split_item(text);
    let preset = DRIVES.iter().any(|d| d.name == name);
    if let Some((path, overrides)) = (!preset).then(|| after_path(text)).flatten() {
        (name, pairs) = (path, split_item(overrides).1);
    }
    let drive = if let Some(entry) = DRIVES.iter().find(|d| d.name == name) {
        entry.drive()
    } else if name.contains('/') || name.ends_with(".toml") {
        let toml = read(name).map_err(|e| SpecError::Other(format!("{name}: {e}")))?;
        DriveModel::from_toml(&toml).map_err(|e| placed(name, &e))?
    } else {
        return Err(SpecError::UnknownName {
            what: "drive",
            name: name.to_owned(),
            nearest: nearest(name, DRIVES.iter().map(|d| d.name)),
            known: DRIVES
                .iter()
                .map(|d| d.name)
                .chain(["or the path of a .toml file"])
                .collect::<Vec<_>>()
                .join(", "),
        });
    };
    let values = Values::check(name, OVERRIDES, &pairs)?;
    apply(drive, &values).map_err(|e| placed(name, &e))
}

/// A path that ends in `.toml`, and what follows it: commas in the path separate nothing.
fn after_path(text: &str) -> Option<(&str, &str)> {
    let mut ends = text.match_indices(".toml").map(|(at, ending)| text.split_at(at + ending.len()));
    ends.find(|(_, rest)| rest.is_empty() || rest.starts_with(','))
}

fn placed(name: &str, e: &DriveError) -> SpecError {
    let lines = e.0.iter().map(|f| format!("{name}: {f}"));
    SpecError::Other(lines.collect::<Vec<_>>().join("\n"))
}

fn apply(mut drive: DriveModel, values: &Values) -> Result<DriveModel> {
    if let Some(k) = values.given("k", Values::count) {
        drive = drive.with_tracks(k as u32)?;
    }
    if let Some(n) = values.given("interference_blocks", Values::count) {
        drive = drive.changed("interference_blocks", n.to_string(), |s| {
            s.interference = Interference::blocks(n);
        })?;
    }
    if let Some(blocks) = values.given("capacity", |v, key| v.size(key, drive.counted_blocks())) {
        if blocks == Blocks::ZERO {
            let text = values.text("capacity").unwrap_or_default();
            let problem =
                format!("{text} is less than a block of 512 bytes: write 2TB, 25GiB, 100000blk or 10%");
            return Err(DriveError::one("capacity", problem));
        }
        drive = drive.shorten(Blocks(blocks.0))?;
    }
    for key in ["rpm", "band_tracks", "random_access"] {
        if let Some(n) = values.given(key, Values::count) {
            drive = drive.changed(key, n.to_string(), |s| match key {
                "rpm" => s.mechanics.rpm = n as u32,
                "band_tracks" => s.bands.tracks = Some(n),
                _ => s.bands.random_access = n,
            })?;
        }
    }
    for key in ["head_switch", "write_settle", "read_overhead", "write_overhead"] {
        if let Some(t) = values.given(key, Values::time) {
            drive = drive.changed(key, t.to_string(), |s| *time_field(s, key) = t)?;
        }
    }
    for key in CONTROLLER {
        if let Some(text) = values.text(key) {
            let mut spec = drive.spec().controller.unwrap_or(ControllerSpec::NONE);
            control(&mut spec, key, values);
            drive = drive.changed(key, text.to_owned(), |s| s.controller = Some(spec))?;
        }
    }
    Ok(drive)
}

/// Applies one override to a controller.
fn control(c: &mut ControllerSpec, key: &str, values: &Values) {
    let needs_cache = !matches!(key, "cache" | "command" | "bus");
    if needs_cache && c.buffer.segments == 0 {
        c.buffer = BufferSpec { read_ahead: ReadAhead::Off, write_back: WriteBack::Off, ..BufferSpec::PLAIN };
    }
    let b = &mut c.buffer;
    match key {
        "cache" if !values.on(key) => *b = BufferSpec::OFF,
        "cache" if b.segments == 0 => *b = BufferSpec::PLAIN,
        "cache_size" => {
            let blocks = values.size(key, Blocks(1 << 20)).0;
            b.segment_blocks = (blocks / u64::from(b.segments)).clamp(1, 1 << 24) as u32;
            b.read_ahead_blocks = b.read_ahead_blocks.min(b.segment_blocks);
        }
        "segments" => {
            let size = u64::from(b.segments) * u64::from(b.segment_blocks);
            b.segments = values.count(key) as u32;
            b.segment_blocks = (size / u64::from(b.segments)).clamp(1, 1 << 24) as u32;
            b.write_segments = b.segments.div_ceil(2);
        }
        "command" => {
            let t = values.time(key);
            (c.read_hit, c.read_miss, c.write_hit, c.write_miss) = ([t; 2], [t; 2], [t; 2], [t; 2]);
        }
        "bus" => {
            let ns = 512e3 / values.real(key);
            c.bus = [SimTime(ns.round() as u64); 2];
        }
        "write_cache" => b.write_back = if values.on(key) { WriteBack::On } else { WriteBack::Off },
        "read_ahead" => {
            b.read_ahead = values.word(key, ReadAhead::named);
            if b.read_ahead_blocks == 0 {
                b.read_ahead_blocks = b.segment_blocks;
            }
        }
        "zero_latency" => b.zero_latency = [values.on(key); 2],
        _ => {}
    }
}

fn time_field<'a>(s: &'a mut super::DriveSpec, key: &str) -> &'a mut SimTime {
    match key {
        "head_switch" => &mut s.mechanics.head_switch,
        "write_settle" => &mut s.mechanics.write_settle,
        "read_overhead" => &mut s.mechanics.read_overhead,
        _ => &mut s.mechanics.write_overhead,
    }
}
