//! What a geometry is made from.

use crate::Result;
use smrlab_units::problems::Problems;

/// Units of angle in one revolution: in one nanosecond a disk turns by its rpm in these units, exactly.
pub const REVOLUTION: u64 = 60_000_000_000;

/// The order in which PBAs fill the surfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Cylinder by cylinder, all surfaces of each. `alternate`: odd cylinders run through the surfaces backwards.
    Cylinder {
        /// Whether the order of surfaces alternates.
        alternate: bool,
    },
    /// As `Cylinder { alternate: true }`, but odd ones are counted from the beginning of their zone.
    ZoneAlternate,
    /// Surface serpentine: one whole surface after the other, odd ones in the opposite direction.
    #[default]
    Surface,
    /// Hybrid serpentine: groups of `width` cylinders; within a group one surface after the other, odd ones in the
    /// opposite direction. Groups do not cross recording zones; the last one of a zone may be narrower.
    Hybrid {
        /// Cylinders in a group.
        width: u32,
    },
    /// As [`GeometrySpec::runs`] say.
    Listed,
}

/// The side towards which PBAs rise on the first surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toward {
    /// The inner diameter: PBA 0 is outermost.
    #[default]
    Inner,
    /// The outer diameter: PBA 0 is innermost.
    Outer,
}

/// A recording zone: cylinders with the same number of sectors a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneSpec {
    /// Cylinders, spare ones included.
    pub cylinders: u32,
    /// Sectors (blocks) in a track, spare ones included.
    pub sectors: u32,
    /// Sectors at the end of every track that hold no PBA.
    pub spare_sectors: u32,
    /// Cylinders at the zone's inner end that hold no PBA.
    pub spare_cylinders: u32,
    /// Blocks in front of the zone's first PBA, and behind its last one, that hold none.
    pub front: u32,
    /// See [`front`](Self::front).
    pub end: u32,
    /// Spare blocks at the end of every so many cylinders, used up by what is slipped in these.
    pub range_spares: u32,
    /// Cylinders in such a range, at least 1.
    pub range_cylinders: u32,
    /// The zone's own skews and the angle at which its first track starts, where it has them.
    pub skew: Option<ZoneSkew>,
}

/// Skews of one zone, in [`REVOLUTION`] units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneSkew {
    /// When only the surface changes.
    pub track: u64,
    /// When the cylinder changes.
    pub cylinder: u64,
    /// Where the first track starts.
    pub start: u64,
}

/// Sectors of a track at most: up to some 17 500 the angle of each is exact, and no drive has a quarter of that.
pub(crate) const MOST_SECTORS: u32 = 1 << 14;

/// The angle of so many of a track's `of` sectors; never less: a skew that covers a switch still does.
pub(crate) fn angle_of(sectors: f64, of: u32) -> u64 {
    let of = of.max(1);
    if sectors.fract() == 0.0 && (0.0..=f64::from(MOST_SECTORS)).contains(&sectors) {
        return (sectors as u64 * REVOLUTION).div_ceil(u64::from(of));
    }
    // What lies within a thousandth of a unit is that one: decimals.
    (sectors * REVOLUTION as f64 / f64::from(of) - 1e-3).ceil().max(0.0) as u64
}

impl ZoneSpec {
    /// A zone without spares.
    pub const fn plain(cylinders: u32, sectors: u32) -> Self {
        Self {
            cylinders,
            sectors,
            spare_sectors: 0,
            spare_cylinders: 0,
            front: 0,
            end: 0,
            range_spares: 0,
            range_cylinders: 1,
            skew: None,
        }
    }
}

/// A sector that holds no PBA; the following ones slip by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Cylinder, 0 being outermost.
    pub cylinder: u32,
    /// Surface.
    pub surface: u32,
    /// Sector on the track.
    pub sector: u32,
}

/// Blocks that hold no PBA; the following ones slip. Places count all blocks of a zone in the order of PBAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slip {
    /// The zone, 0 being the outermost.
    pub zone: u32,
    /// The first block.
    pub first: u64,
    /// How many.
    pub blocks: u32,
}

/// Cylinders of a listed zone that follow each other group by group in the same pattern of [`RunSpec`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// The zone, 0 being the outermost.
    pub zone: u32,
    /// Cylinders in a group; the zone has a whole number of groups.
    pub cylinders: u32,
    /// The angle at which the first group starts, in [`REVOLUTION`] units.
    pub start: u64,
    /// By how much later the next group starts.
    pub step: u64,
}

/// Tracks of one surface that follow each other in PBA order, cylinder by cylinder, with equal sectors and skews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSpec {
    /// The zone.
    pub zone: u32,
    /// First and last cylinder within the group; PBAs rise outwards where the last is the lower one.
    pub from: u32,
    /// See [`from`](Self::from).
    pub to: u32,
    /// The surface.
    pub surface: u32,
    /// Sectors in a revolution.
    pub sectors: u32,
    /// Sectors at the end of each track that hold no PBA.
    pub spare_sectors: u32,
    /// Where the first track starts, from the group's start on, in [`REVOLUTION`] units.
    pub start: u64,
    /// By how much later the next track starts.
    pub step: u64,
}

/// Blocks that lie elsewhere than their neighbours: on spare sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// The block.
    pub block: u64,
    /// Where it lies: a sector that holds no other block.
    pub to: Defect,
}

/// Everything that fixes where each PBA lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeometrySpec {
    /// Recorded surfaces (heads).
    pub surfaces: u32,
    /// Recording zones from the outermost to the innermost.
    pub zones: Vec<ZoneSpec>,
    /// Order of PBAs.
    pub layout: Layout,
    /// Side towards which PBAs rise.
    pub toward: Toward,
    /// Angle by which the next track starts later when only the surface changes, in [`REVOLUTION`] units.
    pub track_skew: u64,
    /// Angle by which the next track starts later when the cylinder changes, in [`REVOLUTION`] units.
    pub cylinder_skew: u64,
    /// Slipped sectors.
    pub defects: Vec<Defect>,
    /// Slipped blocks by their number in the zone; only on cylinder and listed layouts.
    pub slips: Vec<Slip>,
    /// Groups of the zones of a listed layout, one a zone, and what each consists of, in PBA order.
    pub groups: Vec<GroupSpec>,
    /// See [`groups`](Self::groups).
    pub runs: Vec<RunSpec>,
    /// Remapped blocks.
    pub remaps: Vec<Remap>,
}

impl GeometrySpec {
    /// One surface, PBAs rising inwards, no skew, no spares.
    pub fn single_surface(zones: Vec<ZoneSpec>) -> Self {
        Self { surfaces: 1, zones, ..Self::default() }
    }

    /// Checks every field; places are given relative to `at` ("geometry").
    ///
    /// # Errors
    /// All faults at once.
    pub fn check(&self, at: &str) -> Result<()> {
        let mut f = Problems::default();
        f.range(format!("{at}.surfaces"), self.surfaces, 1..=64);
        f.range(format!("{at}.zones (count)"), self.zones.len() as u64, 1..=1000);
        for (i, z) in self.zones.iter().enumerate() {
            let at = format!("{at}.zones[{i}]");
            f.range(format!("{at}.cylinders"), z.cylinders, 1..=1 << 24);
            f.range(format!("{at}.sectors"), z.sectors, 1..=u64::from(MOST_SECTORS));
            f.range(format!("{at}.spare_sectors"), z.spare_sectors, 0..=u64::from(z.sectors.max(1)) - 1);
            let most = u64::from(z.cylinders.max(1)) - 1;
            f.range(format!("{at}.spare_cylinders"), z.spare_cylinders, 0..=most);
        }
        if let Layout::Hybrid { width } = self.layout {
            f.range(format!("{at}.group_cylinders"), width, 1..=1 << 24);
        }
        for (name, skew) in [("track_skew", self.track_skew), ("cylinder_skew", self.cylinder_skew)] {
            if skew >= REVOLUTION {
                f.add(format!("{at}.{name}"), "not accepted: a share of a revolution from 0 to below 1");
            }
        }
        self.check_defects(at, &mut f);
        self.check_slips(at, &mut f);
        super::listed::check(self, at, &mut f);
        f.finish()
    }

    fn check_slips(&self, at: &str, f: &mut Problems) {
        let by_cylinder = matches!(self.layout, Layout::Cylinder { .. } | Layout::ZoneAlternate);
        for (i, z) in self.zones.iter().enumerate() {
            let at = format!("{at}.zones[{i}]");
            let each = u64::from(z.sectors.saturating_sub(z.spare_sectors)) * u64::from(self.surfaces);
            let all = each * u64::from(z.cylinders.saturating_sub(z.spare_cylinders));
            let left_out = u64::from(z.front) + u64::from(z.end);
            if (left_out > 0 || z.range_spares > 0) && !by_cylinder {
                f.add(at, "blocks left out of a zone are accepted only with a cylinder layout");
            } else if left_out >= all.max(1)
                || u64::from(z.range_spares) >= each.max(1)
                || z.range_cylinders == 0
            {
                f.add(at, format!("no block is left: it has {all}, {each} in a cylinder"));
            } else if let Some(s) = z.skew
                && [s.track, s.cylinder, s.start].iter().any(|&n| n >= REVOLUTION)
            {
                f.add(at, format!("a skew of its own is from 0 to below {} sectors", z.sectors));
            }
        }
        for (i, s) in self.slips.iter().enumerate() {
            if !(by_cylinder || self.layout == Layout::Listed) || s.zone as usize >= self.zones.len() {
                f.add(format!("{at}.slips[{i}]"), "not accepted: a zone of a cylinder or listed layout");
            }
        }
    }

    fn check_defects(&self, at: &str, f: &mut Problems) {
        for (i, d) in self.defects.iter().enumerate() {
            let zone = self.zone_of(d.cylinder);
            if d.surface >= self.surfaces || zone.is_none_or(|z| d.sector >= z.sectors) {
                f.add(
                    format!("{at}.defects[{i}]"),
                    format!(
                        "cylinder {}, surface {}, sector {} is not on this drive",
                        d.cylinder, d.surface, d.sector
                    ),
                );
            }
        }
    }

    fn zone_of(&self, cylinder: u32) -> Option<&ZoneSpec> {
        let mut end = 0u64;
        self.zones.iter().find(|z| {
            end += u64::from(z.cylinders);
            u64::from(cylinder) < end
        })
    }
}
