//! The registry entry.

use super::{UNIT, ZoneLog};
use crate::entry::{ArrayContext, ArrayEntry, BuildResult, Takes};
use smrlab_stl::layers::log::{LogLayer, LogOptions};
use smrlab_stl::parts::slots::Slots;
use smrlab_stl::parts::victim::Victim;
use smrlab_units::Pba;
use smrlab_units::spec::{Kind, Param, SpecError, Values};

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "zone-log",
    summary: "a host that logs on a host-managed drive: appends to open zones, greedy or cost-benefit cleaning, resets",
    reference: "Rosenblum & Ousterhout (1992); as in zoned modes of log-structured filesystems",
    page: "\
One drive with the layer `zoned` below it: `--stack 'zone-log / zoned'`. The host sees an ordinary drive. It is the layer `log` above the drive instead of in it: \
what is written goes to the open zone, wherever it belongs; a map in units of 4 KiB, larger ones on drives of 17 TB and more, says where each unit is. When fewer zones are free than the reserve, \
the one with the smallest share of live units is cleaned (`policy=greedy`), or the one that is best by age and share \
(`policy=cost-benefit`): what is live in it is read and appended, then the zone is free. It is reset when it is written again. With `separate=on` what cleaning moves goes \
to an open zone of its own. All zones are used, conventional ones as if they had a write pointer.

Writes are done one after the other, with the cleaning that they cause; reads wait for them. Units that are written in part are completed by a read. \
The map is kept at no cost. What was acknowledged survives a power cut: a write that was cut leaves the write pointer \
behind what the map knows, and these units count as dead. A drive that refuses reads above a write pointer (`urswrz=off`) is refused: what was never written is read there.",
    params: &[
        Param::new("policy", Kind::Choice(&["greedy", "cost-benefit"]), "greedy")
            .doc("which zone is cleaned"),
        Param::new("separate", Kind::Switch, "off")
            .doc("what survives a cleaning goes to an open zone of its own"),
        Param::new("overprovision", Kind::Share(0.0, 0.9), "10%")
            .doc("share of the space that the host does not see, beside open zones and reserve"),
        Param::new("granularity", Kind::Count(UNIT, 1 << 15), "")
            .doc("blocks in a unit of the map, a multiple of 8; default: 8, or as many as a map of 2^32 \
                  units needs"),
    ],
    takes: Takes::Zones,
    reads_unwritten: true,
    ..ArrayEntry::new(build)
};

fn build(context: &ArrayContext<'_>, values: &Values) -> BuildResult {
    let wrong = |e: String| SpecError::Other(format!("{}: {e}", ENTRY.name));
    let zones = context.zones(0);
    let size = zones[0].blocks;
    // A shorter one can only be the last.
    let equal = zones.iter().take_while(|z| z.blocks == size).count();
    let starts: Vec<Pba> = zones[..equal].iter().map(|z| Pba(z.start.0)).collect();
    let options = LogOptions {
        victim: if values.text("policy") == Some("cost-benefit") {
            Victim::CostBenefit
        } else {
            Victim::Greedy
        },
        own: values.on("separate"),
        overprovision: values.share("overprovision"),
        ..LogOptions::default()
    };
    let unit = values.given("granularity", Values::count).unwrap_or_else(|| {
        let needed = (equal as u64 * size.0) >> 32;
        (needed + 1).next_power_of_two().max(UNIT)
    });
    if !unit.is_multiple_of(UNIT) {
        return Err(values.bad("granularity", "a multiple of 8: zones are written in whole 4 KiB"));
    }
    let layer =
        Slots::at(&starts, size, unit).and_then(|slots| LogLayer::new(slots, options)).map_err(wrong)?;
    Ok(Box::new(ZoneLog::new(layer, size, zones)))
}

#[cfg(test)]
mod tests {
    use crate::{ArrayContext, MemberPlan, Phase, Ticket, Work, parse};
    use smrlab_stl::HostRequest;
    use smrlab_units::{Blocks, HostOp, Lba, Zone, ZoneCondition, ZoneKind};

    /// Blocks of a unit on a drive of so many zones of 2^28 blocks: a write of fewer reads what is beside it.
    fn unit(zones: u64) -> u64 {
        let zone = |at: u64| {
            let (start, blocks) = (Lba(at << 28), Blocks(1 << 28));
            let (kind, condition) = (ZoneKind::SequentialRequired, ZoneCondition::Empty);
            Zone { start, blocks, kind, condition, pointer: Some(start), non_sequential: false }
        };
        let zones: [Vec<Zone>; 1] = [(0..zones).map(zone).collect()];
        let size = [Blocks(zones[0].len() as u64 * (1 << 28))];
        let context = ArrayContext::new(&size).zoned(&zones);
        let mut array = parse("zone-log").unwrap().build(&context).unwrap().array;
        let mut is_whole = |blocks: u64| {
            let (ticket, mut plan, mut whole) = (Ticket(0), MemberPlan::new(false), true);
            let write = HostRequest::new(HostOp::Write, Lba(0), Blocks(blocks));
            array.start(ticket, &Work::Host(write), &mut plan);
            while !plan.ops().is_empty() {
                whole &= plan.ops().iter().all(|op| op.request.op == HostOp::Write);
                plan.clear();
                array.complete(Phase { ticket, lost: false, untaken: None, busy: false }, &mut plan);
            }
            whole
        };
        assert!(is_whole(1 << 12));
        (3..12).map(|bits| 1 << bits).find(|blocks| is_whole(*blocks)).unwrap_or(0)
    }

    /// A map numbers fewer than 2^32 units: those of 8 blocks are enough for 127 of these zones.
    #[test]
    fn units_are_as_small_as_the_map_has_numbers_for() {
        assert_eq!([40, 127, 128, 129, 255, 256, 257].map(unit), [8, 8, 16, 16, 16, 32, 32]);
    }
}
