//! What a geometry is made from.

use crate::fault::{DriveError, Faults};

/// Units of angle in one revolution: in one nanosecond a disk turns by its rpm in these units, exactly.
pub const REVOLUTION: u64 = 60_000_000_000;

/// The order in which PBAs fill the surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Cylinder by cylinder, all surfaces of each. `alternate`: odd cylinders run through the surfaces backwards.
    Cylinder {
        /// Whether the order of surfaces alternates.
        alternate: bool,
    },
    /// Surface serpentine: one whole surface after the other, odd ones in the opposite direction.
    Surface,
    /// Hybrid serpentine: groups of `width` cylinders; within a group one surface after the other, odd ones in the
    /// opposite direction. Groups do not cross recording zones; the last one of a zone may be narrower.
    Hybrid {
        /// Cylinders in a group.
        width: u32,
    },
}

/// The side towards which PBAs rise on the first surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// The inner diameter: PBA 0 is outermost.
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
}

impl ZoneSpec {
    /// A zone without spares.
    pub const fn plain(cylinders: u32, sectors: u32) -> Self {
        Self { cylinders, sectors, spare_sectors: 0, spare_cylinders: 0 }
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

/// Everything that fixes where each PBA lies.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

impl GeometrySpec {
    /// One surface, PBAs rising inwards, no skew, no spares.
    pub fn single_surface(zones: Vec<ZoneSpec>) -> Self {
        Self {
            surfaces: 1,
            zones,
            layout: Layout::Surface,
            toward: Toward::Inner,
            track_skew: 0,
            cylinder_skew: 0,
            defects: Vec::new(),
        }
    }

    /// Checks every field; places are given relative to `at` ("geometry").
    ///
    /// # Errors
    /// All faults at once.
    pub fn check(&self, at: &str) -> Result<(), DriveError> {
        let mut f = Faults::default();
        f.range(format!("{at}.surfaces"), u64::from(self.surfaces), 1, 64);
        f.range(format!("{at}.zones (count)"), self.zones.len() as u64, 1, 1000);
        for (i, z) in self.zones.iter().enumerate() {
            let at = format!("{at}.zones[{i}]");
            f.range(format!("{at}.cylinders"), u64::from(z.cylinders), 1, 1 << 24);
            f.range(format!("{at}.sectors"), u64::from(z.sectors), 1, 65_535);
            f.range(
                format!("{at}.spare_sectors"),
                u64::from(z.spare_sectors),
                0,
                u64::from(z.sectors.max(1)) - 1,
            );
            let most = u64::from(z.cylinders.max(1)) - 1;
            f.range(format!("{at}.spare_cylinders"), u64::from(z.spare_cylinders), 0, most);
        }
        if let Layout::Hybrid { width } = self.layout {
            f.range(format!("{at}.group_cylinders"), u64::from(width), 1, 1 << 24);
        }
        for (name, skew) in [("track_skew", self.track_skew), ("cylinder_skew", self.cylinder_skew)] {
            if skew >= REVOLUTION {
                f.add(format!("{at}.{name}"), "not accepted: a share of a revolution from 0 to below 1");
            }
        }
        self.check_defects(at, &mut f);
        f.finish()
    }

    fn check_defects(&self, at: &str, f: &mut Faults) {
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
