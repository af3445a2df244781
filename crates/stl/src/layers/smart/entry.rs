//! The registry's entry of `smart`: its page, its parameters, and building it for a drive.

use super::Smart;
use super::space::Space;
use crate::entry::{BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use crate::parts::rows::Rows;
use smrlab_units::spec::{Kind, Param, SpecError, Values};

const PAGE: &str = "\
There are no bands and no guards between them: a map says on which track of the medium each of the host's tracks is. A track is
updated in place as long as the next track (the next `W - 1` for a head of W tracks) is free. Otherwise it moves to a free track,
with what of it the host does not write, and the track that it left is the gap behind the one before. So what is
updated often soon lies apart and costs one operation, and what is never updated stays together.

A free track can be written only if those behind it that the head reaches are free, too. When too few can be, *gathering* moves the
shortest run of used tracks between two gaps away, so that the gaps become one. What it moves goes to the first free tracks
of the drive: there, where tracks are longest, the cold data gather.

Published: in place where the next track is free, else to a free track; cold data progress; free tracks are consolidated, small runs of
used ones first; equals a conventional drive below a usage threshold. *Assumed* here:

- an updated track goes to the next free track behind a cursor, and keeps `W - 1` tracks of distance from the used one before it
  while more than `spread` of the tracks can be written: then both can be updated in place;
- gathering takes the shortest of 256 runs from the cursor on, and is done before the next request;
- tracks do not leave their recording zone (those of a zone have one length; tracks with slipped sectors are left out where that
  gives more space), and `overprovision` of them are no track of the host's.

On cylinder layouts a track here is a whole cylinder. A power cut loses nothing that was acknowledged: an update in place destroys
nothing that is used, and a track that moved was written whole before the one it left is free.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "smart",
    aliases: &["SMaRT"],
    summary: "tracks updated in place while the next one is free, and moved to free tracks else",
    reference: "He & Du 2017, SMaRT: An Approach to Shingled Magnetic Recording Translation",
    page: PAGE,
    idle: "nothing, by default and with any option: free tracks are gathered while a write waits",
    params: &[
        Param::new("overprovision", Kind::Share(0.0, 0.9), "5%")
            .doc("share of the tracks that the host does not see"),
        Param::new("spread", Kind::Share(0.0, 1.0), "10%").doc(
            "updated tracks keep their distance while more than this share of the tracks can be written",
        ),
        HEAD_TRACKS,
    ],
    tested: &["overprovision=0%,spread=100%", "tracks=3,spread=0%", "overprovision=40%"],
    ..LayerEntry::new(build)
};

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    ENTRY.needs_tracks(&context.drive)?;
    let refuse = |e: String| SpecError::Other(format!("{}: {e}", ENTRY.name));
    let rows = Rows::of(&context.drive);
    let overprovision = values.share("overprovision");
    let space = Space::new(&context.drive, &rows, overprovision).map_err(refuse)?;
    Ok(Box::new(Smart::new(rows, space, values.share("spread"))))
}
