//! The registry entry.

use super::table::{Shape, Table, UNIT};
use super::{DmZoned, DmZonedOptions};
use crate::entry::{ArrayContext, ArrayEntry, BuildResult, Takes};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, Zone, ZoneKind};

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "dm-zoned",
    summary: "a host-managed drive as an ordinary one: chunks in sequential zones, random zones for what is out of order, reclaim",
    reference: "Linux kernel documentation, device-mapper/dm-zoned; dmzadm(8); what a drive below Linux 6.12 was asked for (docs/zones-tested.md)",
    page: "\
One drive with the layer `zoned` below it, conventional zones and all: `--stack 'dm-zoned / zoned,conventional=2%'`. The host sees an ordinary \
drive in chunks as large as a zone. A chunk has a zone of its own, which is a conventional one (random) or a sequential one. A write that begins \
at the write pointer of its chunk's sequential zone goes there; any other goes to a random zone, its chunk's buffer, and what it overwrites is valid \
no more in the sequential zone. A chunk that is written for the first time gets a random zone, and waits for one where none is free \
(`map=sequential`: a sequential one wherever it is written from its beginning on and one is free). Reads take each block from the zone in which it is valid; what \
was never written or was discarded reads as zeroes. A zone in which nothing is valid any more is free; it is reset when the metadata on the drive say so, or when it is taken again before that, \
and of free zones that is taken first which was freed first.

Reclaim frees random zones, one at a time: when no request has come for `idle` and fewer than `high` of the random zones are free, and from a write on that takes a random zone \
of which fewer than `low` are free, until as many are. A pause has it begin only where it has not been at work before: so Linux 6.12 was seen to do (`pauses=all`: each pause does). First come chunks that have a random zone alone, the one written longest ago first: what is valid goes to a free sequential zone. Then come \
chunks with a buffer: the one with most valid blocks in its sequential zone, or, while that is being written, the one written longest ago. A buffer whose blocks all lie above the write pointer is appended to that zone, gaps \
as zeroes; else what is valid in the sequential zone goes to the buffer, which is then the chunk's only zone. Reclaim copies one run of valid blocks after the other, `copy` at a time; a gap is one write of zeroes. \
Reads of the chunk go on meanwhile. A write to it makes reclaim give up behind the run, unless others wait for a random zone; \
then it waits. What was given up begins again another time, except what was appended. A write that needs a random zone waits until one is free.

The first conventional zones hold two sets of metadata: a superblock, the map of chunks, and a bitmap of each zone. A flush writes the metadata blocks that \
changed since the last one to the second set, its superblock with FUA, and then the same to the first set; writes that come meanwhile \
wait. The end of a reclaim does the same. Here that costs time and space, and nothing else: what is recorded survives by itself. What was acknowledged survives a power cut at any \
request of the drive's, where the kernel promises that only for what was flushed. Validity is kept by blocks of 512 bytes and not of 4 KiB; a write of \
less than 4 KiB reads what completes it, as a page cache does (cause `fill`). What the drive is told is in the order in which it is planned; a \
scheduler that reorders keeps that order within each zone. The last zone is left out where it is shorter than the others.",
    params: &[
        Param::new("reserved", Kind::Count(1, 1 << 20), "16")
            .doc("sequential zones that the host does not see: where reclaim copies to (dmzadm --seq)"),
        Param::new("map", Kind::Choice(&["random", "sequential"]), "random")
            .doc("what a chunk gets that is written for the first time, from its beginning on"),
        Param::new("idle", Kind::Time, "10s").doc("time without a request after which reclaim begins"),
        Param::new("high", Kind::Share(0.0, 1.0), "100%")
            .doc("in idle time reclaim goes on until this share of the random zones is free"),
        Param::new("pauses", Kind::Choice(&["first", "all"]), "first")
            .doc("in which pauses reclaim begins: in the first that is as long as idle=, if it has not been at \
                  work before, as Linux 6.12 does, or in all"),
        Param::new("low", Kind::Share(0.0, 1.0), "30%")
            .doc("where a write takes a random zone and a smaller share of them is free, reclaim begins, and goes on \
                  until as many are"),
        Param::new("copy", Kind::Size, "4MiB")
            .doc("how much of a run of valid blocks reclaim reads and writes at a time, between which \
                  requests have their turn (the kernel: eight parts of 512 KiB)"),
    ],
    takes: Takes::Zones,
    ..ArrayEntry::new(build)
};

/// How the drive's zones can be used.
fn shape(zones: &[Zone], reserved: u32) -> Result<Shape, String> {
    let size = zones.first().map_or(Blocks::ZERO, |z| z.blocks);
    // A shorter one can only be the last.
    let equal = zones.iter().take_while(|z| z.blocks == size).count();
    let conventional = zones.iter().take_while(|z| z.kind == ZoneKind::Conventional).count();
    let others = |z: &Zone| matches!(z.kind, ZoneKind::SequentialRequired | ZoneKind::SequentialPreferred);
    if equal + 1 < zones.len()
        || !zones[conventional..equal].iter().all(others)
        || !size.0.is_multiple_of(UNIT)
    {
        return Err("dm-zoned: needs zones of one size, whole 4 KiB, the conventional ones first".to_owned());
    }
    let shape = Shape::new(size.0, (conventional as u32, equal as u32), reserved);
    if shape.random().is_empty() {
        let remedy = match conventional {
            0 => {
                "give zoned some with conventional=, and a drive with a block profile tracks for them with random_access="
            }
            _ => "give zoned more with conventional=, or smaller ones with zone=",
        };
        return Err(format!(
            "dm-zoned: the drive has {conventional} conventional zones, and two sets of metadata and one random zone need \
             {}: {remedy}",
            2 * shape.set + 1
        ));
    }
    if shape.chunks() == 0 {
        return Err(format!(
            "dm-zoned: {} sequential zones are fewer than the reserve: give less with reserved=, or smaller zones with zone=",
            shape.sequential().len()
        ));
    }
    Ok(shape)
}

fn build(context: &ArrayContext<'_>, values: &Values) -> BuildResult {
    let zones = context.zones(0);
    let reserved = values.count("reserved") as u32;
    let shape = shape(zones, reserved).map_err(SpecError::Other)?;
    let random = shape.random().len() as f64;
    let share = |name| (values.share(name) * random).ceil() as u64;
    let copy = values.size("copy", Blocks(shape.size)).0;
    if copy == 0 || !copy.is_multiple_of(UNIT) {
        return Err(values.bad("copy", "a multiple of 4KiB, such as 4MiB"));
    }
    let options = DmZonedOptions {
        sequential_first: values.text("map") == Some("sequential"),
        idle: values.time("idle"),
        all_pauses: values.text("pauses") == Some("all"),
        high: share("high"),
        low: share("low"),
        copy,
    };
    let mut table = Table::new(shape);
    table.reported(zones);
    Ok(Box::new(DmZoned::new(table, options)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::{Lba, ZoneCondition};

    /// Zones of so many blocks, of which these are conventional.
    fn zones(blocks: &[u64], conventional: impl Fn(usize) -> bool) -> Vec<Zone> {
        let mut start = 0;
        let zone = |(i, &blocks): (usize, &u64)| {
            let kind = if conventional(i) { ZoneKind::Conventional } else { ZoneKind::SequentialRequired };
            let zone = Zone {
                start: Lba(start),
                blocks: Blocks(blocks),
                kind,
                condition: ZoneCondition::Empty,
                pointer: Some(Lba(start)),
                non_sequential: false,
            };
            start += blocks;
            zone
        };
        blocks.iter().enumerate().map(zone).collect()
    }

    /// The last zone may be shorter; another one may not, nor may a conventional one follow the others, nor a zone end within 4 KiB.
    #[test]
    fn zones_are_of_one_size_and_the_conventional_ones_are_first() {
        let said = |zones: &[Zone], reserved| shape(zones, reserved).err().unwrap_or_default();
        let even = vec![64; 40];
        assert_eq!(said(&zones(&even, |i| i < 16), 4), "");
        let change = |at: usize, to: u64| {
            even.iter().enumerate().map(|(i, n)| if i == at { to } else { *n }).collect::<Vec<_>>()
        };
        assert_eq!(said(&zones(&change(39, 32), |i| i < 16), 4), "");
        // Those of a host-aware drive will do.
        let mut aware = zones(&even, |i| i < 16);
        aware[16..].iter_mut().for_each(|zone| zone.kind = ZoneKind::SequentialPreferred);
        assert_eq!(said(&aware, 4), "");
        for wrong in [
            zones(&change(38, 32), |i| i < 16),
            zones(&change(0, 32), |i| i < 16),
            zones(&even, |i| i < 16 || i == 20),
            zones(&vec![60; 40], |i| i < 16),
        ] {
            assert!(said(&wrong, 4).contains("needs zones of one size"), "{}", said(&wrong, 4));
        }
        // Two sets of metadata of six zones and a random zone; four more and 24 others are 28 chunks, of which one is left.
        let all = |conventional: usize, reserved| said(&zones(&even, |i| i < conventional), reserved);
        assert!(all(0, 4).contains("has 0 conventional zones") && all(0, 4).contains("give zoned some"));
        assert!(all(2, 4).contains("has 2 conventional zones") && all(2, 4).contains("give zoned more"));
        assert!(all(12, 4).contains("one random zone need 13"), "{}", all(12, 4));
        assert_eq!([all(13, 4), all(16, 27)], ["", ""]);
        assert!(all(16, 28).contains("24 sequential zones are fewer than the reserve"), "{}", all(16, 28));
    }
}
