//! Building a geometry: zones and layout become runs of zones, defects become slips.

use super::builder::{Builder, ForwardZone, Pattern, forward_zones};
use super::{Geometry, GeometrySpec, Layout, Slips, ZoneRun, listed};
use crate::{DriveError, Result};
use smrlab_units::reciprocal::RunIndex;
use std::ops::Range;

pub(super) fn build(spec: GeometrySpec) -> Result<Geometry> {
    let zones = forward_zones(&spec);
    let mut b = Builder::new(&spec);
    match spec.layout {
        Layout::Cylinder { alternate } => {
            for z in &zones {
                b.push(z, Pattern { alternate, ..Pattern::groups(z, 0, z.used(), 1) });
            }
        }
        Layout::ZoneAlternate => {
            for z in &zones {
                let turned = z.first_used % 2 == 1;
                b.push(z, Pattern { alternate: true, turned, ..Pattern::groups(z, 0, z.used(), 1) });
            }
        }
        Layout::Surface => {
            for surface in 0..spec.surfaces {
                let reversed = surface % 2 == 1;
                for i in 0..zones.len() {
                    let z = &zones[if reversed { zones.len() - 1 - i } else { i }];
                    let whole = Pattern::groups(z, 0, z.used(), z.used());
                    b.push(z, Pattern { reversed, surface: Some(surface), ..whole });
                }
            }
        }
        Layout::Hybrid { width } => {
            for z in &zones {
                let width = width.min(z.used());
                let full = z.used() / width * width;
                b.push(z, Pattern { serpentine: true, ..Pattern::groups(z, 0, full, width) });
                if full < z.used() {
                    let rest = z.used() - full;
                    b.push(z, Pattern { serpentine: true, ..Pattern::groups(z, full, rest, rest) });
                }
            }
        }
        Layout::Listed => listed::lay(&spec, &zones, &mut b),
    }
    let zone_runs = b.zone_runs;
    finish(spec, &zones, zone_runs)
}

fn finish(spec: GeometrySpec, zones: &[ForwardZone], zone_runs: Vec<ZoneRun>) -> Result<Geometry> {
    let raw_blocks = zone_runs.last().map_or(0, |s| s.first_raw + s.blocks());
    let tracks = zone_runs.last().map_or(0, |s| s.first_track + s.tracks);
    let mut by_surface = vec![Vec::new(); spec.surfaces as usize];
    for (i, seg) in zone_runs.iter().enumerate() {
        for s in seg.first_surface..seg.first_surface + seg.surfaces {
            by_surface[s as usize].push((seg.first_cylinder, i as u32));
        }
    }
    by_surface.iter_mut().for_each(|runs| runs.sort_unstable());
    let mut g = Geometry {
        by_raw: RunIndex::new(zone_runs.iter().map(|s| s.first_raw).collect(), raw_blocks),
        by_track: RunIndex::new(zone_runs.iter().map(|s| s.first_track).collect(), tracks),
        zone_runs,
        slips: Slips::default(),
        blocks: raw_blocks,
        raw_blocks,
        tracks,
        cylinders: zones.last().map_or(0, |z| z.first + z.spec.cylinders),
        by_surface,
        remaps: Vec::new(),
        spec,
    };
    // Defects on spares cost nothing.
    let defects = g.spec.defects.iter().filter_map(|d| g.at(d.cylinder, d.surface, d.sector));
    let mut slipped: Vec<Range<u64>> = defects.map(|pba| pba.0..pba.0 + 1).collect();
    left_out(&g, &mut slipped);
    g.slips = Slips::of_runs(slipped);
    g.blocks = raw_blocks - g.slips.len();
    if g.blocks == 0 {
        return Err(DriveError::one("geometry.defects", "no sector is left: remove some defects"));
    }
    g.remaps = remaps(&g)?;
    Ok(g)
}

/// Remapped blocks and the raw numbers of where they lie, ascending by block.
fn remaps(g: &Geometry) -> Result<Vec<(u64, u64)>> {
    let mut out = Vec::new();
    for (i, r) in g.spec.remaps.iter().enumerate() {
        let raw = g.raw_at(r.to.cylinder, r.to.surface, r.to.sector);
        match raw.filter(|raw| r.block < g.blocks && g.slips.contains(*raw)) {
            Some(raw) => out.push((r.block, raw)),
            None => {
                let reason = "not accepted: a block of the drive, and a sector that holds none";
                return Err(DriveError::one(format!("geometry.remaps[{i}]"), reason));
            }
        }
    }
    out.sort_unstable();
    if let Some(w) = out.windows(2).find(|w| w[0].0 == w[1].0) {
        return Err(DriveError::one("geometry.remaps", format!("block {} is remapped twice", w[0].0)));
    }
    let mut sectors: Vec<(u64, u64)> = out.iter().map(|&(block, raw)| (raw, block)).collect();
    sectors.sort_unstable();
    if let Some(w) = sectors.windows(2).find(|w| w[0].0 == w[1].0) {
        let reason = format!("blocks {} and {} are on one sector", w[0].1, w[1].1);
        return Err(DriveError::one("geometry.remaps", reason));
    }
    Ok(out)
}

/// What the zones leave out: slips, the front, the end, and what slips have left of each cylinder's spares.
fn left_out(g: &Geometry, out: &mut Vec<Range<u64>>) {
    for runs in g.zone_runs.chunk_by(|a, b| a.zone == b.zone && g.spec.layout == Layout::Listed) {
        let (run, blocks) = (&runs[0], runs.iter().map(ZoneRun::blocks).sum::<u64>());
        let (first, z) = (run.first_raw, g.spec.zones[run.zone as usize]);
        if z.front > 0 {
            out.push(first..first + u64::from(z.front));
        }
        if z.end > 0 {
            out.push(first + blocks - u64::from(z.end)..first + blocks);
        }
        // Places behind the zone's end are none of its own.
        let at = |n: u64| first + n.min(blocks);
        let own = g.spec.slips.iter().filter(|s| s.zone == run.zone);
        let slipped: Vec<Range<u64>> =
            own.map(|s| at(s.first)..at(s.first.saturating_add(u64::from(s.blocks)))).collect();
        if z.range_spares > 0 {
            let slips = Slips::of_runs(slipped.clone());
            let each = run.usable.divisor() * run.group.divisor() * u64::from(z.range_cylinders);
            for range in 0..blocks / each {
                let (from, to) = (first + range * each, first + (range + 1) * each);
                let mut end = to - u64::from(z.range_spares);
                for s in slips.within(from..to) {
                    // A slip among the spares uses up none.
                    let s = s.start.max(from)..s.end.min(to);
                    end += if s.start < end { s.end - s.start } else { 0 };
                }
                out.push(end.min(to)..to);
            }
        }
        out.extend(slipped);
    }
}
