//! The registry's entry of `floating`: its page, its parameters, and building it for a drive.

use super::groups::Groups;
use super::{Floating, What};
use crate::Capabilities;
use crate::entry::{BuildContext, BuildResult, LayerEntry, does_not_fit};
use smrlab_disk::Model;
use smrlab_units::spec::{Kind, Param, SpecError, Values};

const PAGE: &str = "\
A conventional drive of a disk array whose small writes float. RAID-5 reads the old parity and then waits a whole revolution until the
place passes again where the new one belongs. This layer writes it to the free place that passes first, so that the write costs
hardly more than the read did: a small write is three accesses for four where parity floats, and two where data float, too.

The medium is divided into groups of `group` tracks (a cylinder, where the drive has many surfaces), and these into places of `unit`. Of each group
a share of `spare` is free, at first spread evenly over its angles. A write of whole units, at most `longest` of them, goes unit by unit to the free place
of its group where the head, which has mostly just read the old one, can begin first; the place that is left is free then. A write goes to its old place where that is
first, and so does what is longer, what covers part of a unit, and what does not float.

What floats is told by the reason of a request: arrays say of each whether it is for parity. Behind no array all is data:

    smrlab run --array raid5 --layer floating              # parity floats: three accesses
    smrlab run --array raid5 --layer floating,what=all     # data, too: two

Published: parity, or parity and data, go to a free place rotationally near the old one in its cylinder; a small write falls from four accesses to three
or two; the best of the four variants takes 1 % more space. *Assumed* here: whoever writes knows the drive's geometry, its angle and where its head is (the
layer asks the drive's own model); free places are a share of every cylinder, where the published variant with a parity track keeps parity on tracks of
its own, and where a drive has few surfaces neighbouring tracks stand for a cylinder; `unit`, `longest`, and which requests float. The map takes 8 bytes for each unit that is not where it began.

A power cut loses nothing that was acknowledged but, as on any disk, the one sector under the head of a write in place. Discards are accepted and do
nothing. Where requests begin is known only when they do, so schedulers that reorder cannot be used.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "floating",
    aliases: &["menon1993"],
    summary: "conventional drive of an array: small writes go to the free place of their cylinder that passes first",
    reference: "Menon, Roche & Kasson 1993, Floating Parity and Data Disk Arrays",
    page: PAGE,
    idle: "nothing, by default and with any option: a place that is left is free at once",
    params: &[
        Param::new("what", Kind::Choice(&["parity", "all"]), "parity")
            .doc("which small writes float: those of an array's parity, or all"),
        Param::new("spare", Kind::Share(0.0, 0.5), "1%")
            .doc("share of each group that is free, at least one unit"),
        Param::new("group", Kind::Count(1, 1024), "").doc(
            "tracks among which a unit floats, one after the other by address; default: as many as \
             there are surfaces; 64 of a drive with fewer than 8",
        ),
        Param::new("unit", Kind::Size, "4KiB").doc("blocks that float together"),
        Param::new("longest", Kind::Count(1, 1024), "4").doc("units of the longest write that floats"),
    ],
    capabilities: Capabilities {
        keeps_data: true,
        survives_cut: true,
        locates: false,
        stable_location: false,
        discards: false,
    },
    tested: &["what=all,spare=5%,unit=3blk", "what=all,unit=1blk,group=1,longest=50,spare=40%"],
    conventional: true,
    ..LayerEntry::new(build)
};

/// Surfaces of a drive whose cylinders have enough free places among them; else so many tracks beside each other make a group.
const SURFACES: u64 = 8;
const TRACKS: u64 = 64;

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let refuse = |e: String| SpecError::Other(format!("{}: {e}", ENTRY.name));
    let drive = &context.drive;
    let surfaces = u64::from(drive.geometry().surfaces());
    let tracks =
        values.given("group", Values::count).unwrap_or(if surfaces < SURFACES { TRACKS } else { surfaces });
    let unit = values.size("unit", drive.counted_blocks()).0;
    if unit == 0 || unit > drive.counted_blocks().0 {
        return Err(
            values.bad("unit", format!("from one block to the {} of the drive", drive.counted_blocks()))
        );
    }
    let spare = values.share("spare");
    let groups = Groups::new(drive, tracks, unit, spare).map_err(refuse)?;
    let mechanics = drive.mechanics(Some(Model::Full)).map_err(|e| does_not_fit(&ENTRY, &e))?;
    let what = if values.text("what") == Some("all") { What::All } else { What::Parity };
    Ok(Box::new(Floating::new(groups, mechanics, what, values.count("longest"))))
}
