//! `raw`: the shingled medium itself, without translation: LBA equals PBA, and a write destroys what lies behind it.

use super::cmr::Identity;
use crate::Capabilities;
use crate::entry::{BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use smrlab_units::spec::{Kind, Param, Values};

const PAGE: &str = "\
LBA equals PBA on a medium that shingles: a write destroys the same angles of the following `tracks - 1` tracks. It
keeps no data by design: software on top must write in the order that the medium allows, or lose what lies behind. This
is what the shingled write disk emulator serves (`--layer raw`); in a simulation it costs what a conventional drive
costs, and `--verify-media` shows what would have been destroyed.

`band=` lays the disk's own bands over the medium: each is followed by the tracks that the head touches beside the one that it
writes, and none leaves its stroke, so that a write in a band destroys nothing in another one. A write that is not wholly
within one band is refused. On a drive with tracks a band has a whole number of them.

Discards are accepted and do nothing.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "raw",
    aliases: &["shingled", "identity"],
    summary: "the shingled medium without translation: writes destroy the following tracks",
    reference: "Pitchumani et al. 2012, Emulating a shingled write disk (dm-shingle)",
    page: PAGE,
    idle: "nothing, by default and with any option: there is nothing that could be put off",
    params: &[
        Param::new("band", Kind::Band, "").doc(
            "size of a band: 64tracks (cylinders on cylinder layouts), 25MB or 50000blk; give a unit, a \
             bare number means tracks; default: no bands",
        ),
        HEAD_TRACKS,
    ],
    capabilities: Capabilities {
        keeps_data: false,
        survives_cut: false,
        locates: true,
        stable_location: true,
        discards: false,
    },
    ..LayerEntry::new(build)
};

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let size = context.band_length(values, BandLength::Tracks);
    let bands = size.map(|size| context.bands(&ENTRY, Some(size))).transpose()?;
    // A head of one track damages nothing: there is nothing to keep apart.
    let bands = bands.filter(|_| context.drive.head_width() > 1);
    let blocks =
        if bands.is_some() { context.drive.geometry().blocks() } else { context.drive.counted_blocks() };
    Ok(Box::new(Identity { blocks, bands }))
}
