//! The registry's entry of `e-region`: its page, its parameters, and building it for a drive.

use super::{ERegion, ERegionOptions, Places};
use crate::entry::{BAND_OF_TRACKS, BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use crate::parts::ring::{Carver, Laid};
use crate::parts::stretches::MediumSpace;
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, Pba};

const PAGE: &str = "\
All writes go to the end of a ring on the medium, the E-region. The host's addresses have their homes in I-regions, of equal
length. A cursor passes over the I-regions in the order of their positions, again and again: in steps of `step` it reads what the
ring holds of a region, in the order in which that lies, then the region at once, over what the ring has newer, and writes both
to a spare place. The place that the region had is the spare one for the next. So cleaning is spread over time instead of being done when the ring is full.

Steps are done in idle time, from `idle` after the last request on; and after each write while more than `pace` of the ring is in
use: one there, and up to nine where it is full. While less than a quarter of the ring is free and less than half of it is needed, each
write also retires two of the ring's oldest entries: what is needed of them moves to the head. Where there is no room in spite of that, the cursor
goes on before the next request.

That last one is the cliff of this design. A block that is written costs a share of a pass, 33 blocks of I-regions where the ring is 3 %, and the cursor comes last to
where it has just been: what comes in faster than steps make room, such as a file of a tenth of the ring at once while more than half of the ring is needed, waits for hundreds of
steps. PostgreSQL making a log file waited for 27 s on a full drive of 0.5 GB. Idle time or a larger `cache` avoids it; more or earlier steps only spread it over other writes.

Published: the E-region takes all incoming writes, is circular, and 3 % of the drive or less; I-regions are refreshed in position
order in the background. *Assumed* here: regions of which the ring holds nothing are passed over; a region goes to a spare place, not
back to its own, so that a power cut loses nothing; `step`, `pace` and `idle`, and what is done with a full ring.

Blocks that were never written, or were discarded, read as zeroes.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "e-region",
    aliases: &["hall2012"],
    summary: "all writes to a ring; a cursor brings them home in position order all the time",
    reference: "Hall, Marcos & Coker 2012, Data Handling Algorithms for Autonomous Shingled Magnetic Recording HDDs",
    page: PAGE,
    idle: "it refreshes regions in position order, a step at a time, from 10 ms after the last request on (another time with `idle=TIME`) until the ring holds nothing",
    params: &[
        Param::new("cache", Kind::Share(0.0, 0.9), "3%")
            .doc("share of the medium that is the E-region; at most 2 TiB"),
        Param::new("band", Kind::Band, "").doc(BAND_OF_TRACKS),
        Param::new("step", Kind::Size, "")
            .doc("what the cursor brings home at once; default: a quarter of a region"),
        Param::new("pace", Kind::Share(0.0, 1.0), "50%")
            .doc("share of the ring in use from which on a step follows each write"),
        Param::new("idle", Kind::Time, "10ms").doc("idle time after which the cursor goes on"),
        HEAD_TRACKS,
    ],
    tested: &[
        "cache=20%,band=2,step=5blk",
        "cache=10%,pace=0%,band=3",
        "cache=30%,pace=100%,step=1blk,band=2,tracks=3",
    ],
    ..LayerEntry::new(build)
};

/// Regions fewer than this are halved where the user gave no size.
const FEW: usize = 8;
/// Most regions.
const MANY: u64 = 1 << 28;

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let refuse = |e: String| SpecError::Other(format!("{}: {e}", ENTRY.name));
    let space = MediumSpace::of(&context.drive);
    let share = values.share("cache");
    let defaults = context.drive.spec().bands;
    let own = defaults
        .blocks
        .unwrap_or_else(|| context.blocks_of(BandLength::Tracks(defaults.tracks.unwrap_or(4))));
    let asked = context.band_length(values, BandLength::Tracks).map(|b| context.blocks_of(b));
    let mut region = asked.unwrap_or(own).0.max(1);
    // Each takes 12 bytes of memory.
    if space.counted.0 / region > MANY {
        return Err(refuse(format!(
            "the drive has more than 2^28 regions of {region} blocks: use a larger band="
        )));
    }
    let mut places = lay(&space, region, share);
    while asked.is_none() && region > 8 && places.as_ref().is_none_or(|p| p.regions.len() <= FEW) {
        region /= 2;
        places = lay(&space, region, share).or(places);
    }
    let places = places.ok_or_else(|| {
        refuse(format!(
            "regions of {region} blocks leave no place beside the ring: use a smaller band= or less cache="
        ))
    })?;
    // What is known of a block has 32 bits for its place in the ring.
    if places.ring.size() > 1 << 32 {
        return Err(refuse("the ring has more than 2^32 blocks: use less cache= or a smaller band=".into()));
    }
    let step = values
        .given("step", |v, key| v.size(key, Blocks(places.region)).0)
        .unwrap_or(places.region.div_ceil(4));
    let options = ERegionOptions {
        step: step.clamp(1, places.region),
        pace: values.share("pace"),
        idle: values.given("idle", Values::time),
    };
    Ok(Box::new(ERegion::new(places, options)))
}

/// Lays the ring and behind it as many regions as there is room for.
fn lay(space: &MediumSpace, region: u64, share: f64) -> Option<Places> {
    let guard = space.guard().0;
    let all: u64 = space.stretches.iter().map(|s| s.blocks.0).sum();
    let least = (4 * guard + 16).max((all as f64 * share) as u64);
    let mut carver = Carver::new(space.stretches.clone(), space.guard());
    let ring = Laid::over(&carver.take(least.div_ceil(region), region)?);
    let mut regions: Vec<Pba> = Vec::new();
    let most = space.counted.0 / region;
    while (regions.len() as u64) <= most
        && let Some(stretch) = carver.take(1, region)
    {
        regions.push(stretch[0].first);
    }
    (regions.len() > 1).then_some(Places { ring, regions, region, guard })
}
