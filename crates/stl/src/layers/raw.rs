//! `raw`: the shingled medium itself, without translation.

use super::cmr::Identity;
use crate::Capabilities;
use crate::registry::{BuildContext, BuildResult, LayerEntry};
use smrlab_units::spec::{Kind, Param, Values};

const PAGE: &str = "\
LBA equals PBA on a medium that shingles: a write destroys the same angles of the following `tracks - 1` tracks. It
keeps no data by design: software on top must write in the order that the medium allows, or lose what lies behind. This
is what the shingled write disk emulator serves (`--layer raw`); in a simulation it costs what a conventional drive
costs, and `--verify-media` shows what would have been destroyed.

Discards are accepted and do nothing.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "raw",
    aliases: &["shingled", "identity"],
    summary: "the shingled medium without translation: writes destroy the following tracks",
    reference: "Pitchumani et al. 2012, Emulating a shingled write disk (dm-shingle)",
    page: PAGE,
    params: &[Param {
        name: "tracks",
        kind: Kind::Count(1, 1024),
        default: "",
        doc: "k: tracks that one track write touches, itself included; default: the drive's head width",
    }],
    capabilities: Capabilities {
        keeps_data: false,
        survives_cut: false,
        locates: true,
        stable_location: true,
        discards: false,
    },
    tested: &[],
    conventional: false,
    build,
};

fn build(context: &BuildContext, _: &Values) -> BuildResult {
    Ok(Box::new(Identity { blocks: context.drive.geometry().blocks() }))
}
