//! What `zoned` says of itself, and how it is built.

use super::Zoned;
use super::places::{Lengths, Places, lay};
use super::table::{PHYSICAL, Shape, Table};
use crate::Capabilities;
use crate::entry::{BuildContext, BuildResult, HEAD_TRACKS, LayerEntry, does_not_fit};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, ZoneKind, ZoneLimits};

const PAGE: &str = "\
A host-managed drive (ZBC, ZAC): the host writes each zone in order, and the drive refuses what is out of order. There is no
translation: a zone lies on tracks of its own, with as many free tracks behind it as the head touches beside the one that it writes, so that
no write harms another zone. Conventional zones come first; they can be written anywhere and lie on tracks that are a head's width apart, or, on
drives with a block profile, on the tracks that are set aside for random access and are not shingled.

A zone that requires sequential writes is empty, open (a write opened it, or the host did), closed, full, read-only or offline. A write must begin
at the write pointer, be whole physical blocks (4 KiB) and end in its zone. At most `max_open` zones are open: a write to one more closes the zone
that a write opened longest ago, and is refused where the host opened all of them. `max_active` limits open and closed zones together. Zone commands are
open, close, finish and reset; those for many zones take the zones to which they apply, as ZBC has it. An append writes at the write pointer.

With `capacity=` a zone ends before the next one begins, and a gap lies between them, as drives with zones of a size that is no power of two have it: the
drive's size counts the gaps, and what reads or writes a block of one is refused. With `runt=` the last zone is smaller than the others.

Reads above a write pointer bring zeroes, or are refused with `urswrz=off`. Data of a zone that was reset are never read again. A request that is
refused changes nothing; a run counts the refusals by reason: `not-at-pointer`, `crosses-zone`, `zone-full`, `too-many-open`, `above-pointer`,
`zone-read-only`, `zone-offline`, `gap`.

A power cut leaves every zone that was open closed, with its write pointer behind the last write that was done; what was written behind it by a
write that was cut is not read. Write pointers are kept at no cost (metadata=nv), also with metadata=media. Discards are accepted and do nothing.

Requests are judged in the order in which they come, before they wait or the drive's write cache takes them: a write that is refused was never
acknowledged, and zones are reported with everything in them that was acknowledged. A scheduler that reorders (`--scheduler sptf`) keeps the order of what
changes one zone; reads, and other zones, go past it. With the drive's write cache on (as the presets of host-managed drives have it) a power cut
takes a write pointer back to what is on the medium: what was written with FUA, or before a flush, is below it.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "zoned",
    aliases: &["host-managed"],
    summary: "host-managed drive: zones with write pointers, refusals for what is out of order",
    reference: "INCITS 550 (ZBC-2), INCITS 549 (ZAC-2)",
    page: PAGE,
    idle: "nothing, by default and with any option: the host does all cleaning",
    params: &[
        Param::new("model", Kind::Choice(&["host-managed", "host-aware"]), "host-managed").doc(
            "who keeps the zones in order: the host; host-aware: the drive, and the layer is \
             `host-aware` with its options",
        ),
        Param::new("zone", Kind::Size, "").doc(
            "size of a zone, whole physical blocks of 4 KiB; default: 256MiB as on drives that are \
             sold, on small drives as much less as makes 16 zones",
        ),
        Param::new("conventional", Kind::Share(0.0, 0.5), "").doc(
            "share of the zones that are conventional, at least one unless it is 0; default: 1%; on a \
             drive with a block profile as many as its random_access tracks have room for",
        ),
        Param::new("capacity", Kind::Size, "").doc(
            "what can be written of a zone that has a write pointer, whole 4 KiB; behind it lies a gap; \
             default: the whole zone",
        ),
        Param::new("runt", Kind::Size, "")
            .doc("size of the last zone, whole 4 KiB; default: that of the others"),
        Param::new("max_open", Kind::Count(1, 1 << 20), "128").doc("zones that may be open at once"),
        Param::new("max_active", Kind::Count(0, 1 << 20), "0")
            .doc("zones that may be open or closed at once; 0: all"),
        Param::new("urswrz", Kind::Switch, "on")
            .doc("reads above a write pointer bring zeroes; off: they are refused"),
        HEAD_TRACKS,
    ],
    capabilities: Capabilities {
        keeps_data: false,
        survives_cut: false,
        locates: true,
        stable_location: true,
        discards: false,
    },
    tested: &[
        "zone=16KiB,max_open=3,max_active=5,conventional=10%",
        "zone=32KiB,capacity=24KiB,max_open=3,conventional=10%",
        "zone=32KiB,runt=8KiB,max_open=3,conventional=0",
    ],
    ..LayerEntry::new(build)
};

/// 256 MiB.
pub(super) const ZONE: u64 = 1 << 19;
/// As many zones as the default makes, at least.
pub(super) const LEAST: u64 = 16;

/// The name of the layer of the other model.
pub(super) const HOST_AWARE: &str = "host-aware";

/// What `zoned` with these pairs describes where it is host-aware: the layer of that name, with its keys.
pub(crate) fn model(name: &str, pairs: &[(&str, &str)]) -> Option<String> {
    let aware = name == ENTRY.name && pairs.contains(&("model", "host-aware"));
    aware.then(|| {
        let others = pairs.iter().filter(|(key, _)| *key != "model");
        // What is a limit of open zones here is a recommendation there.
        let key = |key| if key == "max_open" { "optimal_open" } else { key };
        others.fold(HOST_AWARE.to_owned(), |text, (k, value)| format!("{text},{}={value}", key(k)))
    })
}

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let fail = |e| does_not_fit(&ENTRY, &e);
    let share = values.given("conventional", Values::share);
    let drive = context.drive.counted_blocks();
    let places = match values.given("zone", |v, key| v.size(key, drive)) {
        Some(size) if size.0 == 0 || !size.0.is_multiple_of(PHYSICAL) => {
            return Err(values.bad("zone", "a multiple of 4KiB, such as 256MiB"));
        }
        Some(size) => lay(context, lengths(size.0, drive, values)?, share).map_err(fail)?,
        None => {
            let mut size = ZONE;
            while size > PHYSICAL && drive.0 / size < LEAST {
                size /= 2;
            }
            loop {
                match lay(context, lengths(size, drive, values)?, share) {
                    Ok(places) => break places,
                    Err(e) if size == PHYSICAL => return Err(fail(e)),
                    Err(_) => size /= 2,
                }
            }
        }
    };
    Ok(Box::new(layer(places, values)))
}

/// How long zones of `size` blocks are.
fn lengths(size: u64, drive: Blocks, values: &Values) -> Result<Lengths, SpecError> {
    let within = |key: &str, most: u64| match values.given(key, |v, key| v.size(key, drive)) {
        Some(length) if !(1..=most).contains(&length.0) || !length.0.is_multiple_of(PHYSICAL) => {
            Err(values.bad(key, format!("a multiple of 4KiB, at most a zone's {most} blocks of 512 bytes")))
        }
        length => Ok(length.map(|l| l.0)),
    };
    let (capacity, runt) = (within("capacity", size)?, within("runt", size)?);
    if capacity.is_some_and(|c| c < size) && runt.is_some() {
        return Err(values.bad("runt", "left out where zones have less capacity= than their size"));
    }
    Ok(Lengths { size, capacity: capacity.unwrap_or(size), runt })
}

fn layer(places: Places, values: &Values) -> Zoned {
    let most_open = values.count("max_open");
    let most_active = Some(values.count("max_active")).filter(|n| *n > 0).unwrap_or(u64::MAX);
    let shape = Shape {
        size: places.size,
        capacity: places.capacity,
        conventional: places.conventional(),
        kind: ZoneKind::SequentialRequired,
        blocks: places.blocks(),
        most_open,
        most_active: most_active.max(most_open),
    };
    let limits = ZoneLimits {
        unrestricted_reads: values.on("urswrz"),
        most_open: u32::try_from(most_open).ok(),
        pitch: (shape.capacity < shape.size).then_some(Blocks(shape.size)),
        preferred: None,
    };
    Zoned::new(places, Table::new(shape), limits)
}
