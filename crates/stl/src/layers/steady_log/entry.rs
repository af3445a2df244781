//! The registry's entry of `steady-log`: its page, its parameters, and building it for a drive.

use super::{SteadyLog, SteadyLogOptions, space};
use crate::entry::{BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use smrlab_disk::Bands;
use smrlab_units::spec::{Kind, Param, SpecError, Values};

const PAGE: &str = "\
What this project would build today, out of the ideas of the other layers. Everything is written to the end of the open band, as by
`log`, and five things are different:

- *It maps blocks, not units.* A map of extents says where each block is, so a write of part of a unit need not read the rest first.
  Memory follows what was written apart: 36 bytes an extent, whatever its length.
- *Bands are long.* The layer lays them out itself, as long as leaves the host most space: fewer guards, and more spare space in which
  data die before they must be moved.
- *Cleaning is spread.* It moves at most `step` of live data at a time, and passes at most twice as much of the band. While few bands are free, each write is followed by as many steps
  as win back what it wrote, behind its acknowledgement. No request waits for a whole band
  while some of the space is spare; where the host fills all of it little is dead in any band, and a write waits for as many steps as it takes.
- *What survives a cleaning stays apart.* It goes to bands of its own, so that old data and new do not mix again, and the host's writes
  still go to one place.
- *Reads go in the order of the medium.* The parts of a read are read as they lie, not as the host counts.

Which band is cleaned: the one with the smallest share of live blocks. A band in which nothing is live any more is free at once.

Idle time is used: from `idle` after the last request on it takes step after step until `idle_free` of the bands are free, only in
bands of which `idle_dead` is dead. A request that comes in the middle makes it give the step up.

Blocks that were never written are read from where a drive filled in order would have them, and read as zeroes. Discarded blocks
read as zeroes without the medium. Power cuts lose nothing that was acknowledged: new data never go over old ones that are needed. A
cleaning that was cut goes on where it was. The map is assumed to survive (`--metadata nv`).
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "steady-log",
    summary: "a log of blocks in long bands, cleaned in short steps that keep pace with the writes",
    reference: "This project's own; after Rosenblum & Ousterhout 1992 (logs), Hall et al. 2012 (cleaning all the time), Jones et al. 2015 (survivors apart)",
    page: PAGE,
    idle: "it cleans a step at a time, from 100 ms after the last request on (another time with `idle=TIME`), until `idle_free` of the bands are free or none is left of which `idle_dead` is dead",
    params: &[
        Param::new("band", Kind::Band, "").doc(BEST_BAND),
        Param::new("step", Kind::Size, "")
            .doc("live data that a step of cleaning moves; default: an average track"),
        Param::new("idle", Kind::Time, "100ms").doc("idle time after which a step of cleaning is done"),
        Param::new("idle_free", Kind::Share(0.0, 1.0), "20%").doc(
            "idle cleaning rests when this share of the bands is free, and as many as writes need \
             without cleaning",
        ),
        Param::new("idle_dead", Kind::Share(0.0, 1.0), "25%")
            .doc("idle cleaning takes bands of which at least this share is dead"),
        Param::new("overprovision", Kind::Share(0.0, 0.9), "7%")
            .doc("share of the space that the host does not see, beside open bands and reserve"),
        HEAD_TRACKS,
    ],
    tested: &[
        "band=2,step=3blk",
        "band=2,step=1blk,overprovision=20%",
        "band=3,tracks=3,idle=10ms,idle_free=90%,idle_dead=1%",
    ],
    ..LayerEntry::new(build)
};

const BEST_BAND: &str = "size of a band: 64tracks (cylinders on cylinder layouts), 25MB or 50000blk; give a unit, a bare \
    number means tracks; default: of 4 to 256 tracks, doubled from one to the next, and the drive's own bands what leaves the host most space";

/// Lengths that are tried, in tracks.
const LENGTHS: [u64; 7] = [4, 8, 16, 32, 64, 128, 256];

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let overprovision = values.share("overprovision");
    let asked = context.band_length(values, BandLength::Tracks);
    let bands = match asked {
        Some(_) => context.bands(&ENTRY, asked)?,
        None => best(context, overprovision)?,
    };
    let track = context.drive.mean_track();
    let options = SteadyLogOptions {
        most: context.drive.counted_blocks(),
        overprovision,
        step: values.given("step", |v, key| v.size(key, track)).unwrap_or(track).0.max(1),
        idle: values.given("idle", Values::time),
        idle_free: values.share("idle_free"),
        idle_dead: values.share("idle_dead"),
    };
    let refuse = |e: String| SpecError::Other(format!("{}: {e}", ENTRY.name));
    Ok(Box::new(SteadyLog::new(bands, options).map_err(refuse)?))
}

/// The bands that leave the host most space; the drive's own where that is as good.
fn best(context: &BuildContext, overprovision: f64) -> Result<Bands, SpecError> {
    let own = context.bands(&ENTRY, None)?;
    let host = |bands: &Bands| space(bands, overprovision).0;
    let others = LENGTHS.iter().filter_map(|&n| context.bands(&ENTRY, Some(BandLength::Tracks(n))).ok());
    let more = |best: Bands, bands: Bands| if host(&bands) > host(&best) { bands } else { best };
    Ok(others.fold(own, more))
}
