//! Building a geometry: zones and layout become runs of zones, defects become slips.

use super::{Geometry, GeometrySpec, Layout, Place, REVOLUTION, Slips, Toward, ZoneRun, ZoneSpec};
use crate::fault::DriveError;
use smrlab_units::reciprocal::{Reciprocal, RunIndex};

/// A zone in forward order: its first forward cylinder, and the first one that is not spare.
struct ForwardZone {
    spec: ZoneSpec,
    index: u32,
    first: u32,
    first_used: u32,
}

pub(super) fn build(spec: GeometrySpec) -> Result<Geometry, DriveError> {
    let zones = forward_zones(&spec);
    let mut b = Builder { spec: &spec, zone_runs: Vec::new(), last: None };
    match spec.layout {
        Layout::Cylinder { alternate } => {
            for z in &zones {
                b.push(z, Pattern { alternate, ..Pattern::groups(z, 0, z.used(), 1) });
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
    }
    let zone_runs = b.zone_runs;
    finish(spec, &zones, zone_runs)
}

fn forward_zones(spec: &GeometrySpec) -> Vec<ForwardZone> {
    let order: Vec<usize> = match spec.toward {
        Toward::Inner => (0..spec.zones.len()).collect(),
        Toward::Outer => (0..spec.zones.len()).rev().collect(),
    };
    let mut first = 0;
    order
        .into_iter()
        .map(|i| {
            let z = spec.zones[i];
            // Spares lie at the inner end, which comes first where PBAs rise outwards.
            let skip = if spec.toward == Toward::Outer { z.spare_cylinders } else { 0 };
            let zone = ForwardZone { spec: z, index: i as u32, first, first_used: first + skip };
            first += z.cylinders;
            zone
        })
        .collect()
}

impl ForwardZone {
    fn used(&self) -> u32 {
        self.spec.cylinders - self.spec.spare_cylinders
    }
}

/// What differs between the runs of zones of a zone.
struct Pattern {
    first_cylinder: u32,
    cylinders: u32,
    width: u32,
    surface: Option<u32>,
    reversed: bool,
    serpentine: bool,
    alternate: bool,
}

impl Pattern {
    fn groups(z: &ForwardZone, from: u32, cylinders: u32, width: u32) -> Self {
        Self {
            first_cylinder: z.first_used + from,
            cylinders,
            width,
            surface: None,
            reversed: false,
            serpentine: false,
            alternate: false,
        }
    }
}

struct Builder<'a> {
    spec: &'a GeometrySpec,
    zone_runs: Vec<ZoneRun>,
    /// Cylinder and skew of the last track so far.
    last: Option<(u32, u64)>,
}

impl Builder<'_> {
    fn push(&mut self, z: &ForwardZone, p: Pattern) {
        let surfaces = if p.surface.is_some() { 1 } else { self.spec.surfaces };
        let (step, head) = (self.spec.cylinder_skew, self.spec.track_skew);
        let (width, runs) = (u64::from(p.width), u64::from(surfaces));
        let run_skew = (u128::from(width - 1) * u128::from(step) + u128::from(head)) % u128::from(REVOLUTION);
        let group_skew =
            (run_skew * u128::from(runs - 1) + u128::from(width - 1) * u128::from(step) + u128::from(step))
                % u128::from(REVOLUTION);
        let (first_raw, first_track) =
            self.zone_runs.last().map_or((0, 0), |s| (s.first_raw + s.blocks(), s.first_track + s.tracks));
        let mut seg = ZoneRun {
            first_raw,
            first_track,
            tracks: u64::from(p.cylinders) * runs,
            usable: Reciprocal::new(u64::from(z.spec.sectors - z.spec.spare_sectors)),
            sectors: Reciprocal::new(u64::from(z.spec.sectors)),
            width: Reciprocal::new(width),
            group: Reciprocal::new(width * runs),
            surfaces,
            first_cylinder: p.first_cylinder,
            first_surface: p.surface.unwrap_or(0),
            reversed: p.reversed,
            serpentine: p.serpentine,
            alternate: p.alternate,
            zone: z.index,
            base_skew: 0,
            step_skew: step,
            head_skew: head,
            run_skew: run_skew as u64,
            group_skew: group_skew as u64,
        };
        if let Some((cylinder, skew)) = self.last {
            let first = seg.cylinder(Place { group: 0, run: 0, step: 0 });
            seg.base_skew = (skew + if first == cylinder { head } else { step }) % REVOLUTION;
        }
        let end = seg.place(seg.tracks - 1);
        self.last = Some((seg.cylinder(end), seg.skew(end)));
        self.zone_runs.push(seg);
    }
}

fn finish(
    spec: GeometrySpec,
    zones: &[ForwardZone],
    zone_runs: Vec<ZoneRun>,
) -> Result<Geometry, DriveError> {
    let raw_blocks = zone_runs.last().map_or(0, |s| s.first_raw + s.blocks());
    let tracks = zone_runs.last().map_or(0, |s| s.first_track + s.tracks);
    let mut grid = vec![[u32::MAX; 2]; zones.len() * spec.surfaces as usize];
    for (i, seg) in zone_runs.iter().enumerate() {
        let zone = zones.iter().position(|z| z.index == seg.zone).unwrap_or(0);
        for s in seg.first_surface..seg.first_surface + seg.surfaces {
            let cell = &mut grid[zone * spec.surfaces as usize + s as usize];
            cell[usize::from(cell[0] != u32::MAX)] = i as u32;
        }
    }
    let mut g = Geometry {
        by_raw: RunIndex::new(zone_runs.iter().map(|s| s.first_raw).collect(), raw_blocks),
        by_track: RunIndex::new(zone_runs.iter().map(|s| s.first_track).collect(), tracks),
        zone_runs,
        slips: Slips::default(),
        blocks: raw_blocks,
        raw_blocks,
        tracks,
        cylinders: zones.last().map_or(0, |z| z.first + z.spec.cylinders),
        zone_ends: zones.iter().map(|z| z.first + z.spec.cylinders).collect(),
        grid,
        spec,
    };
    // Defects on spares cost nothing.
    let slipped: Vec<u64> = g
        .spec
        .defects
        .iter()
        .filter_map(|d| g.at(d.cylinder, d.surface, d.sector))
        .map(|pba| pba.0)
        .collect();
    g.slips = Slips::new(slipped);
    g.blocks = raw_blocks - g.slips.raw().len() as u64;
    if g.blocks == 0 {
        return Err(DriveError::one("geometry.defects", "no sector is left: remove some defects"));
    }
    Ok(g)
}
