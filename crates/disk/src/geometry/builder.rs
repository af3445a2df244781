//! Runs of zones, one behind the other.

use super::{GeometrySpec, REVOLUTION, RunSpec, Toward, TrackPlace, ZoneRun, ZoneSpec};
use smrlab_units::reciprocal::Reciprocal;

/// A zone in forward order: its first forward cylinder, and the first one that is not spare.
pub(super) struct ForwardZone {
    pub(super) spec: ZoneSpec,
    index: u32,
    pub(super) first: u32,
    pub(super) first_used: u32,
}

/// The zones in forward order.
pub(super) fn forward_zones(spec: &GeometrySpec) -> Vec<ForwardZone> {
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
    pub(super) fn used(&self) -> u32 {
        self.spec.cylinders - self.spec.spare_cylinders
    }
}

/// What differs between the runs of zones of a zone.
pub(super) struct Pattern {
    pub first_cylinder: u32,
    pub cylinders: u32,
    pub width: u32,
    pub surface: Option<u32>,
    pub reversed: bool,
    pub serpentine: bool,
    pub alternate: bool,
    pub turned: bool,
}

impl Pattern {
    pub(super) fn groups(z: &ForwardZone, from: u32, cylinders: u32, width: u32) -> Self {
        Self {
            first_cylinder: z.first_used + from,
            cylinders,
            width,
            surface: None,
            reversed: false,
            serpentine: false,
            alternate: false,
            turned: false,
        }
    }
}

pub(super) struct Builder<'a> {
    spec: &'a GeometrySpec,
    pub(super) zone_runs: Vec<ZoneRun>,
    /// Cylinder and skew of the last track so far.
    last: Option<(u32, u64)>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(spec: &'a GeometrySpec) -> Self {
        Self { spec, zone_runs: Vec::new(), last: None }
    }

    /// A run of a listed layout: its sectors, and the angles, are its own.
    pub(super) fn push_listed(&mut self, z: &ForwardZone, p: Pattern, run: &RunSpec, start: u64) {
        let own = ZoneSpec { sectors: run.sectors, spare_sectors: run.spare_sectors, ..z.spec };
        let z = ForwardZone { spec: own, index: z.index, first: z.first, first_used: z.first_used };
        self.push_with(&z, p, (run.step, 0));
        if let Some(seg) = self.zone_runs.last_mut() {
            seg.base_skew = start;
        }
    }

    pub(super) fn push(&mut self, z: &ForwardZone, p: Pattern) {
        let skews = match z.spec.skew {
            Some(s) => (s.cylinder, s.track),
            None => (self.spec.cylinder_skew, self.spec.track_skew),
        };
        self.push_with(z, p, skews);
    }

    fn push_with(&mut self, z: &ForwardZone, p: Pattern, (step, head): (u64, u64)) {
        let surfaces = if p.surface.is_some() { 1 } else { self.spec.surfaces };
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
            turned: p.turned,
            cylinder_spares: if z.spec.range_cylinders == 1 { u64::from(z.spec.range_spares) } else { 0 },
            zone: z.index,
            base_skew: 0,
            step_skew: step,
            head_skew: head,
            run_skew: run_skew as u64,
            group_skew: group_skew as u64,
        };
        if let Some((cylinder, skew)) = self.last {
            let first = seg.cylinder(TrackPlace { group: 0, run: 0, step: 0 });
            seg.base_skew = (skew + if first == cylinder { head } else { step }) % REVOLUTION;
        }
        if let Some(s) = z.spec.skew {
            seg.base_skew = s.start;
        }
        let end = seg.place(seg.tracks - 1);
        self.last = Some((seg.cylinder(end), seg.start(end)));
        self.zone_runs.push(seg);
    }
}
