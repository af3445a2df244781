//! What `host-aware` says of itself, and how it is built.

use super::aware::HostAware;
use super::entry::{HOST_AWARE, LEAST, ZONE};
use super::places::all_bands;
use super::table::{PHYSICAL, Shape, Table};
use crate::entry::{BuildContext, BuildResult, LayerEntry, does_not_fit};
use crate::layers::persistent_cache::{
    IDLE, LOG, MAP_LIMIT, MAP_TRIGGER, MEMORY, PACKET, PersistentCache, ROUND, before_zones,
};
use crate::{Capabilities, TranslationLayer};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{PreferredZones, ZoneKind, ZoneLimits};

const PAGE: &str = "\
A host-aware drive (ZBC, ZAC): all zones prefer sequential writes and take any. It looks like an ordinary disk, and says which zones it
has and where each is to be written next. Nothing is refused that an ordinary disk does not refuse.

A write that begins where the data of its zone end goes to the zone directly, as many zones as are written in turn: a host that writes its
zones in order and resets one before it writes it again never makes the drive clean. Any other write goes to a log on the medium, as on a
drive-managed drive, and zones go home from there: log, map and cleaning are those of `persistent-cache` with a zone for a band
(`smrlab explain persistent-cache`), and so are the options `log`, `packet`, `map_trigger`, `map_limit`, `round`, `memory` and `idle`.
While a zone is on its way home writes to it take the log too.

The write pointer of a zone stands behind the last block that was written since it was reset, wherever writes began; a zone whose last block was
written is full. A zone of which the log holds blocks has *non-sequential write resources active*; that ends when it is home. `optimal_open` and
`optimal_nonseq` are the numbers that the drive recommends (VPD page B6h): of zones that are open, and of zones that were not written in
order. With more open zones than that the one that a write opened longest ago is closed, which costs nothing; only the command
OPEN is refused. Discards are free; they move no write pointer. A reset discards the zone.

Conventional zones (`conventional=`) come first and have no write pointer; they lie on tracks like the others', and what is written there out of order
takes the log, too. Appends are refused. Behind the drive's write cache or a scheduler zones are reported, and commands refused, in the order
in which they arrive. A power cut loses nothing that was acknowledged but what only the write cache held; zones that were open are closed then.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: HOST_AWARE,
    summary: "host-aware drive: zones that prefer sequential writes; others go through a log on the medium",
    reference: "INCITS 536 (ZBC), INCITS 537 (ZAC); cache and cleaning: Shafaei, Hajkazemi, Desnoyers, Aghayev 2017, ACM TOS 13(4)",
    page: PAGE,
    idle: "by default, 1.2 s after the last request it brings zones home until its log is empty. `idle=TIME` changes the wait; `idle=off`: nothing",
    params: &[
        Param::new("zone", Kind::Size, "").doc(
            "size of a zone, whole physical blocks of 4 KiB; default: 256MiB as on drives that are \
             sold, on small drives as much less as makes 16 zones",
        ),
        Param::new("conventional", Kind::Share(0.0, 0.5), "0%").doc(
            "share of the zones, at the beginning, that are conventional: without a write pointer, on \
             tracks like the others",
        ),
        Param::new("optimal_open", Kind::Count(1, 1 << 20), "128")
            .doc("zones that the drive recommends to have open at once (assumed)"),
        Param::new("optimal_nonseq", Kind::Count(1, 1 << 20), "8")
            .doc("zones not written in order that the drive recommends at most (assumed)"),
        LOG,
        PACKET,
        MAP_TRIGGER,
        MAP_LIMIT,
        ROUND,
        MEMORY,
        IDLE,
    ],
    capabilities: Capabilities {
        keeps_data: true,
        survives_cut: true,
        locates: true,
        stable_location: false,
        discards: true,
    },
    tested: &[
        "zone=16KiB,log=32KiB,optimal_open=2,map_trigger=6,map_limit=9,memory=16blk,packet=6blk,idle=10ms",
        "zone=32KiB,log=32KiB,map_trigger=4,map_limit=4,round=3,idle=10ms,conventional=20%",
    ],
    ..LayerEntry::new(build)
};

/// Zones beyond which smaller ones are not tried.
const MANY: u64 = 1 << 16;

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let options = [LOG, PACKET, MAP_TRIGGER, MAP_LIMIT, ROUND, MEMORY, IDLE];
    let pairs: Vec<_> = options.iter().filter_map(|p| Some((p.name, values.text(p.name)?))).collect();
    let with = |size: u64| {
        let bands = all_bands(context, size).map_err(|e| does_not_fit(&ENTRY, &e))?;
        before_zones(context, ENTRY.name, bands, &pairs)
    };
    let drive = context.drive.counted_blocks();
    let (size, cache) = match values.given("zone", |v, key| v.size(key, drive)) {
        Some(size) if size.0 == 0 || !size.0.is_multiple_of(PHYSICAL) => {
            return Err(values.bad("zone", "a multiple of 4KiB, such as 256MiB"));
        }
        Some(size) => (size.0, with(size.0)?),
        None => {
            let mut size = ZONE;
            while size > PHYSICAL && drive.0 / size < LEAST {
                size /= 2;
            }
            loop {
                match with(size) {
                    Ok(cache) => break (size, cache),
                    // What an option does not accept it does not accept with smaller zones; where there are very many, more do not help.
                    Err(e @ SpecError::BadValue { .. }) => return Err(e),
                    Err(e) if size == PHYSICAL || drive.0 / size > MANY => return Err(e),
                    Err(_) => size /= 2,
                }
            }
        }
    };
    Ok(Box::new(layer(size, cache, values)))
}

fn layer(size: u64, cache: PersistentCache, values: &Values) -> HostAware {
    let blocks = cache.host_blocks().0;
    let share = values.share("conventional");
    let zones = blocks / size;
    let wanted = if share > 0.0 { ((zones as f64 * share).round() as u64).max(1) } else { 0 };
    let shape = Shape {
        size,
        capacity: size,
        conventional: wanted.min(zones.saturating_sub(1)),
        kind: ZoneKind::SequentialPreferred,
        blocks,
        most_open: values.count("optimal_open"),
        most_active: u64::MAX,
    };
    let preferred = PreferredZones {
        open: values.count("optimal_open") as u32,
        non_sequential: values.count("optimal_nonseq") as u32,
    };
    let limits =
        ZoneLimits { unrestricted_reads: true, most_open: None, pitch: None, preferred: Some(preferred) };
    HostAware::new(cache, Table::new(shape), limits)
}
