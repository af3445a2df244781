//! The registry's entry of `h-swd`: a log that tells hot data by a window of writes, with bands for hot and for cold data and a
//! rule for each of which is cleaned (Lin et al. 2012).
//!
//! Writes are appended to one of two open bands; which one is told by how often and how lately a unit was written within the
//! last writes. Cleaning takes the oldest hot band while there are too many of them, else the emptiest band, and asks anew where
//! each survivor belongs.

use super::Separate;
use super::entry::{GRANULARITY, OVERPROVISION, log};
use super::options::LogOptions;
use crate::entry::{BAND_OF_TRACKS, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use smrlab_units::spec::{Kind, Param, Values};

const PAGE: &str = "\
Everything is written to the end of an open band, as by `log`, but there are two kinds of bands. Hot data go to hot bands, where all
of them soon die; cold data go to cold bands, where little dies and little has to be moved.

What is hot is told by a window of the last `window` units (4 KiB) that the host wrote. Each earlier write of a unit within it counts
from 1, for the newest, down to almost 0, for the oldest: direct address counting in a window. A unit whose writes count `heat` or
more is hot. It is asked when the unit is written, and again when a cleaning moves it: so what has cooled moves to the cold bands.

Which band is cleaned depends on its kind. While more than `hot` of the bands are hot, it is the hot band whose youngest data are
oldest: its data had the longest time to die, as in a log that goes round. Else it is the band with the smallest share of live units.
A band in which nothing is live any more is free at once.

Published: hot and cold bands, a window-based identifier of hot data, used at writes and at cleanings, and less cleaning
than the S-blocks of Cassuto et al. 2010 (`smrlab paper run related`, rel-4: fewer blocks moved on each trace). *Assumed* here: a window of
units, not of requests; that it is direct address counting (which Park & Du 2011 measure others against); `heat`, `hot`, and which
hot band is cleaned. The paper's zone for random access, which keeps its maps, is `--metadata media`.

Cleaning is done before the next request. Discarded blocks read as zeroes without the medium. Power cuts lose nothing that was
acknowledged: new data never go over old ones that are needed, and the window survives with the map (`--metadata nv`).
";

/// See the page.
pub static ENTRY_H_SWD: LayerEntry = LayerEntry {
    name: "h-swd",
    aliases: &["hswd", "lin2012"],
    summary: "a log with hot and cold bands; hot is what was written often within a window of the last writes",
    reference: "Lin, Park, He & Du 2012, H-SWD: Incorporating Hot Data Identification into Shingled Write Disks; Park & Du 2011",
    page: PAGE,
    idle: "nothing, by default and with any option: bands are cleaned while a write waits",
    params: &[
        Param::new("window", Kind::Count(1, 1 << 24), "4096")
            .doc("units that the host wrote last, among which a unit's writes are counted"),
        Param::new("heat", Kind::Real(0.0, 1000.0), "0.5").doc(
            "a unit whose earlier writes within the window count so much is hot: the newest 1, the \
             oldest almost 0",
        ),
        Param::new("hot", Kind::Share(0.0, 1.0), "10%")
            .doc("share of the bands above which the oldest hot band is cleaned first"),
        Param::new("band", Kind::Band, "").doc(BAND_OF_TRACKS),
        OVERPROVISION,
        GRANULARITY,
        HEAD_TRACKS,
    ],
    tested: &["granularity=1,band=2,window=40", "granularity=2,band=2,window=300,hot=0%,heat=0.2"],
    ..LayerEntry::new(build)
};

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let length = values.count("window") as u32;
    let heat = values.real("heat") * f64::from(length);
    let options = LogOptions {
        // What was never written within the window is cold in any case.
        separate: Separate::Window { length, hot: (heat as u64).max(1) },
        hot_bands: Some(values.share("hot")),
        overprovision: values.share("overprovision"),
        most: context.drive.counted_blocks(),
        ..LogOptions::default()
    };
    log(&ENTRY_H_SWD, context, values, options)
}
