//! The drives that ship with the project, and how a user's text becomes a drive.

use super::DriveModel;
use crate::fault::DriveError;
use crate::interference::Interference;
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

/// The registry: one file, one line.
pub const DRIVES: &[DriveEntry] = &[
    DriveEntry { name: "he2014-example", toml: include_str!("../../../../drives/he2014-example.toml") },
    DriveEntry { name: "cassuto2010-307gb", toml: include_str!("../../../../drives/cassuto2010-307gb.toml") },
    DriveEntry { name: "modern-7200", toml: include_str!("../../../../drives/modern-7200.toml") },
    DriveEntry { name: "tiny", toml: include_str!("../../../../drives/tiny.toml") },
    DriveEntry {
        name: "seagate-st5000as0011",
        toml: include_str!("../../../../drives/seagate-st5000as0011.toml"),
    },
    DriveEntry {
        name: "seagate-st8000as0002",
        toml: include_str!("../../../../drives/seagate-st8000as0002.toml"),
    },
    DriveEntry {
        name: "arrays-interleaving",
        toml: include_str!("../../../../drives/arrays-interleaving.toml"),
    },
    DriveEntry { name: "dvs-raid", toml: include_str!("../../../../drives/dvs-raid.toml") },
];

/// What may follow a drive's name as `key=value`.
pub const OVERRIDES: &[Param] = &[
    Param {
        name: "k",
        kind: Kind::Count(1, 64),
        default: "",
        doc: "head width: tracks that a track write touches, itself included; 1 = conventional drive",
    },
    Param {
        name: "interference_blocks",
        kind: Kind::Count(1, 1 << 32),
        default: "",
        doc: "block profile I_b: blocks damaged from the written one on, itself included",
    },
    Param {
        name: "capacity",
        kind: Kind::Size,
        default: "",
        doc: "cut the drive to its first cylinders that hold this",
    },
    Param { name: "rpm", kind: Kind::Count(1, 100_000), default: "", doc: "revolutions a minute" },
    Param {
        name: "band_tracks",
        kind: Kind::Count(1, 1 << 32),
        default: "",
        doc: "tracks in a band, where the layer is given none",
    },
    Param {
        name: "random_access",
        kind: Kind::Count(0, 1 << 32),
        default: "",
        doc: "tracks from PBA 0 on that are set aside for random access",
    },
    Param { name: "head_switch", kind: Kind::Time, default: "", doc: "time to change the surface" },
    Param { name: "write_settle", kind: Kind::Time, default: "", doc: "what a moving write adds" },
    Param { name: "read_overhead", kind: Kind::Time, default: "", doc: "before a read positions" },
    Param { name: "write_overhead", kind: Kind::Time, default: "", doc: "before a write positions" },
];

/// Makes a drive of `NAME` or `PATH`, with overrides `,key=value`. `read` brings the text of a path (this crate touches
/// no file); a text with a slash or ending in `.toml` is a path.
///
/// # Errors
/// Unknown name or key with the nearest match; faults of the file with their place; what `read` says.
pub fn load(text: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<DriveModel, SpecError> {
    let (name, pairs) = split_item(text);
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

fn placed(name: &str, e: &DriveError) -> SpecError {
    let lines = e.0.iter().map(|f| format!("{name}: {}: {}", f.place, f.problem));
    SpecError::Other(lines.collect::<Vec<_>>().join("\n"))
}

fn apply(mut drive: DriveModel, values: &Values) -> Result<DriveModel, DriveError> {
    if let Some(k) = values.count("k") {
        drive = drive.with_tracks(k as u32)?;
    }
    if let Some(n) = values.count("interference_blocks") {
        drive = drive.changed("interference_blocks", n.to_string(), |s| {
            s.interference = Interference::Blocks(n);
        })?;
    }
    if let Some(blocks) = values.size("capacity", drive.counted_blocks()) {
        drive = drive.shorten(Blocks(blocks.0))?;
    }
    for key in ["rpm", "band_tracks", "random_access"] {
        if let Some(n) = values.count(key) {
            drive = drive.changed(key, n.to_string(), |s| match key {
                "rpm" => s.mechanics.rpm = n as u32,
                "band_tracks" => s.bands.tracks = Some(n),
                _ => s.bands.random_access = n,
            })?;
        }
    }
    for key in ["head_switch", "write_settle", "read_overhead", "write_overhead"] {
        if let Some(t) = values.time(key) {
            drive = drive.changed(key, t.to_string(), |s| *time_field(s, key) = t)?;
        }
    }
    Ok(drive)
}

fn time_field<'a>(s: &'a mut super::DriveSpec, key: &str) -> &'a mut SimTime {
    match key {
        "head_switch" => &mut s.mechanics.head_switch,
        "write_settle" => &mut s.mechanics.write_settle,
        "read_overhead" => &mut s.mechanics.read_overhead,
        _ => &mut s.mechanics.write_overhead,
    }
}
