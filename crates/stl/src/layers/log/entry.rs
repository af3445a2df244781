//! The registry's entry of the log: its page, its parameters, and building it for a drive.

use super::{Idle, LogLayer, LogOptions, Separate};
use crate::entry::{BAND_OF_TRACKS, BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use crate::parts::slots::Slots;
use crate::parts::victim::Victim;
use smrlab_disk::Bands;
use smrlab_units::spec::{Kind, Param, SpecError, Values};

const PAGE: &str = "\
Everything is written to the end of an open band, wherever the host's address is; a map says where each unit (4 KiB) is
now. When a band is full the next free one is taken, oldest first. As soon as fewer than the reserve are free, a band is
compacted: its live units are read, appended to an open band, and the band is free (cause `defrag`). Compaction is done
before the next request.

Which band (`policy`):

- `greedy`: the one with the smallest share of live units.
- `cost-benefit`: the largest (1 - u) * age / (1 + u), u the share of live units, age in units that the host wrote since the
  band's youngest data (Rosenblum & Ousterhout 1992).
- `cold-weight`: the smallest (live units + their write counts) / dead units: hot data are left alone, for they die soon.
- `empty-separation`: greedy, and what survives a compaction goes to empty bands of its own, never behind new data.
- `separation-cold-weight`: both.

The last three are named by Jones et al. (2015, 2016), who segregate by write frequency; the exact weights are this
project's. A band in which nothing is live any more is free at once, without a compaction.

Published: 1.81 times fewer moves than greedy with cold-weight, 135 with empty-separation, 319 with both. *Not reproduced here*: with the
weights above `compare --drive he2014-example --arrivals closed --prefill 100% --wrap capacity` and 20 % overprovision give, for
`synth:hotcold,requests=300000,interarrival=1ms`, `traces/sqlite.parquet` and `traces/postgres.parquet`, 1.07, 0.93 and 0.98 times fewer
relocated blocks with cold-weight, 1.06, 1.57 and 1.03 with empty-separation, 1.78, 1.55 and 0.84 with both. Which traces the
authors used is not known here.

What goes together (`streams`, `separate`): with `streams=4` requests of stream i go to bands of stream i mod 4, and stay
there when they are moved. `separate=frequency` sends units that were written at least `hot_writes` times to bands of their
own; a compaction that moves a unit halves its count. `separate=recency` does so with units that were written before within
the last `window` units of the host's writes (the window of H-SWD, Lin et al. 2012).

Space: the host sees the drive's bands without the open ones and the reserve, less `overprovision`. Two free bands are
enough for progress where all bands are equally long and nothing is separated; else the layer keeps what it needs.

`idle=TIME` also compacts when the drive has been idle for so long, one band a step, until `idle_free` of the bands are
free, only bands of which `idle_dead` is dead; a request that comes in the middle makes it give the band up.

Writes that cover only a part of a unit read the rest first (cause `fill`). Units that were never written are read from
where a drive filled in order would have them, and read as zeroes. Discarded blocks read as zeroes without the medium.

Power cuts lose nothing that was acknowledged: new data never go over old ones that are needed. A compaction that was cut is
finished before the first request. The map is assumed to survive (`--metadata nv`).
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "log",
    aliases: &["log-structured", "lfs"],
    summary: "log-structured bands: writes are appended, bands with dead data compacted",
    reference: "Amer et al. 2010; Rosenblum & Ousterhout 1992; Lin et al. 2012 (H-SWD); Jones et al. 2015, 2016",
    page: PAGE,
    idle: "nothing by default. With `idle=TIME` it compacts band after band, from so long after the last request until `idle_free` of the bands are free or none is left of which `idle_dead` is dead",
    params: PARAMS,
    tested: &[
        "granularity=1,band=2",
        "policy=cost-benefit,granularity=1,streams=2",
        "policy=cold-weight,granularity=2,overprovision=30%",
        "policy=separation-cold-weight,granularity=1,separate=frequency,band=2",
        "policy=empty-separation,granularity=1,separate=recency,window=40,band=2",
        "granularity=1,idle=10ms,idle_free=50%,idle_dead=10%,band=2",
    ],
    ..LayerEntry::new(build)
};

const PARAMS: &[Param] = &[
    Param::new(
        "policy",
        Kind::Choice(&[
            "greedy",
            "cost-benefit",
            "cold-weight",
            "empty-separation",
            "separation-cold-weight",
        ]),
        "greedy",
    )
    .doc("which band is compacted, and whether what survives goes to bands of its own"),
    Param::new("band", Kind::Band, "").doc(BAND_OF_TRACKS),
    OVERPROVISION,
    Param::new("streams", Kind::Count(1, 1024), "1")
        .doc("append streams: requests of stream i go to bands of stream i mod this"),
    Param::new("separate", Kind::Choice(&["none", "frequency", "recency"]), "none")
        .doc("hot units go to bands of their own, told by how often or how lately they were written"),
    Param::new("hot_writes", Kind::Count(1, 255), "2")
        .doc("separate=frequency: a unit that was written so many times before is hot"),
    Param::new("window", Kind::Count(1, 1 << 31), "4096")
        .doc("separate=recency: a unit that was written within so many units of the host's writes is hot"),
    Param::new("reserve", Kind::Count(1, 1 << 20), "")
        .doc("bands that are kept free; default, and least: what progress needs"),
    Param::new("idle", Kind::Time, "")
        .doc("idle time after which bands are compacted in the background; default: never"),
    Param::new("idle_free", Kind::Share(0.0, 1.0), "10%")
        .doc("idle compaction rests when this share of the bands is free"),
    Param::new("idle_dead", Kind::Share(0.0, 1.0), "25%")
        .doc("idle compaction takes bands of which at least this share is dead"),
    GRANULARITY,
    HEAD_TRACKS,
];

/// The space that a log keeps for itself.
pub(super) const OVERPROVISION: Param = Param::new("overprovision", Kind::Share(0.0, 0.9), "10%")
    .doc("share of the space that the host does not see, beside open bands and reserve");

/// What a log maps at once.
pub(super) const GRANULARITY: Param = Param::new("granularity", Kind::Count(1, 1 << 15), "")
    .doc("blocks in a unit of the map; default: 8, or as many as a map of 2^32 units needs");

/// Blocks in a unit: as asked, or as the map allows.
pub(super) fn unit(values: &Values, bands: &Bands) -> u64 {
    values.given("granularity", Values::count).unwrap_or_else(|| {
        let needed = bands.data_blocks().0 >> 32;
        (needed + 1).next_power_of_two().max(8)
    })
}

/// The log of an entry with `band=` and `granularity=`.
pub(super) fn log(
    entry: &LayerEntry,
    context: &BuildContext,
    values: &Values,
    options: LogOptions,
) -> BuildResult {
    let refuse = |e: String| SpecError::Other(format!("{}: {e}", entry.name));
    let size = context.band_length(values, BandLength::Tracks);
    let bands = context.bands(entry, size)?;
    let unit = unit(values, &bands);
    let slots = Slots::new(bands, unit).map_err(refuse)?;
    Ok(Box::new(LogLayer::new(slots, options).map_err(refuse)?))
}

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let policy = values.text("policy").unwrap_or_default();
    let idle = values.given("idle", Values::time).map(|after| Idle {
        after,
        free: values.share("idle_free"),
        dead: values.share("idle_dead"),
    });
    let options = LogOptions {
        victim: match policy {
            "cost-benefit" => Victim::CostBenefit,
            "cold-weight" | "separation-cold-weight" => Victim::ColdWeight,
            _ => Victim::Greedy,
        },
        own: policy.contains("separation"),
        streams: values.count("streams") as u32,
        separate: match values.text("separate") {
            Some("frequency") => Separate::Frequency(values.count("hot_writes") as u32),
            Some("recency") => Separate::Recency(values.count("window") as u32),
            _ => Separate::None,
        },
        hot_bands: None,
        overprovision: values.share("overprovision"),
        most: context.drive.counted_blocks(),
        reserve: values.given("reserve", Values::count).map(|n| n as u32),
        idle,
    };
    log(&ENTRY, context, values, options)
}
