//! A drive: geometry, mechanics and interference from one TOML file in which every number has its unit, source and kind.

mod cache;
mod controller;
mod fields;
mod form;
mod like;
mod places;
mod presets;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use cache::CacheSpec;
pub use controller::{BufferSpec, ControllerSpec, ReadAhead, WriteBack};
pub use fields::fields;
pub use like::{Like, like};
pub use presets::{DRIVES, DriveEntry, OVERRIDES, load};
pub use reader::{FieldDoc, Provenance};
pub use writer::{Origin, write};

use crate::bands::{BandLayout, Bands, RandomAccess};
use crate::geometry::{Geometry, GeometrySpec, Layout, TrackNo, ZoneSpec};
use crate::interference::{Interference, PhysicalProfile};
use crate::mechanics::{Distance, Mechanics, MechanicsSpec, Model, SeekCurve};
use crate::{DriveError, Result};
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, Pba, SimTime};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What layers take for their bands where the user gives nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandDefaults {
    /// Tracks in a band (cylinders on a cylinder layout).
    pub tracks: Option<u64>,
    /// Tracks from PBA 0 on that are set aside for random access.
    pub random_access: u64,
    /// Blocks in a band, for drives with a block profile.
    pub blocks: Option<Blocks>,
}

/// A drive's parts, checked together by [`DriveModel::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct DriveSpec {
    /// Short name.
    pub name: String,
    /// One line.
    pub summary: String,
    /// Where the drive comes from.
    pub reference: String,
    /// Where blocks lie.
    pub geometry: GeometrySpec,
    /// How long operations take. A seek curve's full distance of 0 stands for the whole drive.
    pub mechanics: MechanicsSpec,
    /// The model that the drive is meant for.
    pub model: Model,
    /// What a write destroys.
    pub interference: Interference,
    /// Defaults for layers.
    pub bands: BandDefaults,
    /// The drive's own cache on the medium, where it is known.
    pub cache: Option<CacheSpec>,
    /// Blocks that count as the drive's size where guards are kept outside it (Cassuto); the medium is larger.
    pub counted: Option<Blocks>,
    /// Overheads, bus and buffer; `None`: the host is served at the speed of the mechanics.
    pub controller: Option<ControllerSpec>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct DriveModel {
    spec: DriveSpec,
    geometry: Arc<Geometry>,
    provenance: Vec<Provenance>,
    overrides: Vec<(String, String)>,
}

impl DriveModel {
    /// Checks `spec` and builds the geometry.
    ///
    /// # Errors
    /// All faults at once, with the field's place in the file.
    pub fn new(mut spec: DriveSpec, provenance: Vec<Provenance>) -> Result<Self> {
        let mut faults = Problems::default();
        for part in [
            spec.geometry.check("geometry"),
            spec.mechanics.check("mechanics"),
            spec.interference.check("interference"),
            spec.controller.map_or(Ok(()), |c| c.check("controller")),
        ] {
            faults.take_from(part);
        }
        faults.finish()?;
        let geometry = Arc::new(Geometry::new(spec.geometry.clone())?);
        let counted = spec.counted.unwrap_or(geometry.blocks());
        if counted == Blocks::ZERO || counted > geometry.blocks() {
            let accepts =
                format!("{counted} is not accepted: from 1 to the {} of the geometry", geometry.blocks());
            return Err(DriveError::one("counted_blocks", accepts));
        }
        let full = match spec.mechanics.distance {
            Distance::Cylinders => u64::from(geometry.cylinders()),
            Distance::Blocks => counted.0,
        };
        for curve in [&mut spec.mechanics.read_seek, &mut spec.mechanics.write_seek] {
            if let Some(f) = curve.full_mut().filter(|f| **f == 0) {
                *f = full;
            }
        }
        spec.mechanics.check_pass(&geometry, spec.model)?;
        if let Interference::Blocks(p) = &mut spec.interference {
            p.from = first_shingled(&geometry, spec.bands.random_access)?;
        }
        Ok(Self { spec, geometry, provenance, overrides: Vec::new() })
    }

    /// Reads a drive file.
    ///
    /// # Errors
    /// All faults at once, with line or field.
    pub fn from_toml(text: &str) -> Result<Self> {
        let (spec, provenance) = fields::read(text)?;
        Self::new(spec, provenance)
    }

    /// Its parts.
    pub fn spec(&self) -> &DriveSpec {
        &self.spec
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Name and overrides as a user would write them: what results carry.
    pub fn resolved(&self) -> String {
        let more: String = self.overrides.iter().map(|(k, v)| format!(",{k}={v}")).collect();
        format!("{}{more}", self.spec.name)
    }

    /// Unit, kind and source of every number of the file.
    pub fn provenance(&self) -> &[Provenance] {
        &self.provenance
    }

    /// Where blocks lie.
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.geometry
    }

    /// What a write destroys.
    pub fn interference(&self) -> Interference {
        self.spec.interference
    }

    /// The blocks that count as the drive's size; see [`DriveSpec::counted`].
    pub fn counted_blocks(&self) -> Blocks {
        self.spec.counted.unwrap_or(self.geometry.blocks())
    }

    /// The tracks that one track write touches, itself included (`W`, `k`). Of a block profile: as many as cover it.
    pub fn head_width(&self) -> u64 {
        match self.spec.interference {
            Interference::Physical(p) => u64::from(p.s_id.max(p.s_od)),
            Interference::Blocks(p) => {
                let least = self.geometry.zone_runs().iter().map(|z| z.usable.divisor()).min().unwrap_or(1);
                1 + (p.reach - 1).div_ceil(least)
            }
        }
    }

    /// The mechanics, heads at PBA 0; `None` takes the model that the drive is meant for.
    ///
    /// # Errors
    /// As [`Mechanics::new`].
    pub fn mechanics(&self, model: Option<Model>) -> Result<Mechanics> {
        Mechanics::new(self.geometry.clone(), &self.spec.mechanics, model.unwrap_or(self.spec.model))
    }

    /// Bands of `tracks` tracks (or the drive's default, or 4) and the guards that its head needs.
    ///
    /// # Errors
    /// When no band fits.
    pub fn bands(&self, tracks: Option<u64>) -> Result<Bands> {
        let layout = BandLayout {
            tracks: tracks.or(self.spec.bands.tracks).unwrap_or(4),
            head_width: self.head_width(),
            random_access: self.spec.bands.random_access,
        };
        Bands::new(&self.geometry, layout)
    }

    /// The tracks that are set aside for random access.
    pub fn random_access(&self) -> Option<RandomAccess> {
        RandomAccess::of(&self.geometry, self.spec.bands.random_access, self.head_width())
    }

    /// Blocks of a track (of a cylinder, where PBAs go round the surfaces), on the average.
    pub fn mean_track(&self) -> Blocks {
        let unit = self.geometry.strokes().next().map_or(1, |s| s.unit);
        Blocks((self.geometry.blocks().0 * unit / self.geometry.tracks()).max(1))
    }

    /// Bands of `blocks` blocks behind the tracks set aside, with the guards that a block profile needs outside the
    /// counted blocks.
    ///
    /// # Errors
    /// When no band fits, or the medium has no room for the guards.
    pub fn block_bands(&self, blocks: Blocks) -> Result<Bands> {
        let most = self.counted_blocks().0.saturating_sub(self.unshingled().0) / blocks.0.max(1);
        self.shingled_bands(blocks, most..=most, "band")
    }

    /// The blocks before the first shingled one: those of the tracks set aside, on a drive with a block profile.
    pub fn unshingled(&self) -> Blocks {
        match self.spec.interference {
            Interference::Blocks(p) => Blocks(p.from),
            Interference::Physical(_) => Blocks::ZERO,
        }
    }

    /// As [`block_bands`](Self::block_bands), so many of them; `key`: the parameter that says how large they are.
    ///
    /// # Errors
    /// As there.
    pub fn shingled_bands(&self, blocks: Blocks, number: RangeInclusive<u64>, key: &str) -> Result<Bands> {
        let (least, most) = number.into_inner();
        let Interference::Blocks(p) = self.spec.interference else {
            let reason = format!("{} has a physical profile: give the band's size in tracks", self.spec.name);
            return Err(DriveError::one("bands.blocks", reason));
        };
        let bands = Bands::of_blocks(&self.geometry, Pba(p.from), (blocks, Blocks(p.reach - 1)), most)?;
        if self.spec.counted.is_some() && bands.len() < least {
            let reason = format!(
                "{least} {key}s of {blocks} blocks and their guards do not fit on the medium, only {}: use a larger {key}=",
                bands.len()
            );
            return Err(DriveError::one("bands.blocks", reason));
        }
        Ok(bands)
    }

    fn changed(&self, key: &str, value: String, change: impl FnOnce(&mut DriveSpec)) -> Result<Self> {
        let mut spec = self.spec.clone();
        change(&mut spec);
        let mut drive = Self::new(spec, self.provenance.clone())?;
        drive.overrides = self.overrides.clone();
        drive.overrides.retain(|(k, _)| k != key);
        drive.overrides.push((key.to_owned(), value));
        Ok(drive)
    }

    /// The same drive with a head of `k` tracks; 1 makes it a conventional drive.
    ///
    /// # Errors
    /// When `k` is out of range, or the drive has a block profile and `k` is not 1.
    pub fn with_tracks(&self, k: u32) -> Result<Self> {
        let interference = match self.spec.interference {
            Interference::Blocks(_) if k == 1 => Interference::blocks(1),
            Interference::Blocks(_) => {
                let reason = "this drive has a block profile: set interference_blocks, or k=1".to_owned();
                return Err(DriveError::one("k", reason));
            }
            Interference::Physical(mut p) => {
                // Outwards only where it was so before: PBAs keep their places.
                if p.s_od > 1 {
                    p.s_od = k
                } else {
                    p.s_id = k
                }
                Interference::Physical(p)
            }
        };
        self.changed("k", k.to_string(), |s| s.interference = interference)
    }

    /// The same drive with bands of `length` tracks that are shingled in opposite directions by twos and share a guard (Wan et
    /// al. 2012, wave-like recording).
    ///
    /// # Errors
    /// When the drive has a block profile, or tracks set aside for random access.
    pub fn with_waves(&self, length: u64) -> Result<Self> {
        let Interference::Physical(p) = self.spec.interference else {
            return Err(DriveError::one("wave", "this drive has a block profile and no tracks".to_owned()));
        };
        if self.spec.bands.random_access > 0 {
            return Err(DriveError::one(
                "wave",
                "this drive has tracks set aside for random access".to_owned(),
            ));
        }
        let wave = 2 * length + p.width() - 1;
        let mut spec = self.spec.clone();
        spec.interference = Interference::Physical(PhysicalProfile { wave, ..p });
        let overrides = self.overrides.clone();
        Ok(Self { overrides, ..Self::new(spec, self.provenance.clone())? })
    }

    /// The drive as its cache on the medium has measured it: what its file says of reads and of the way to the cache holds for the
    /// mechanics, too.
    ///
    /// # Errors
    /// As [`DriveModel::new`].
    pub fn with_cache_measured(&self) -> Result<Self> {
        let mut spec = self.spec.clone();
        let cache = spec.cache.unwrap_or_default();
        if let Some(late) = cache.read_late {
            (spec.mechanics.read_late, spec.mechanics.read_overhead) = (late, SimTime::ZERO);
        }
        spec.mechanics.one_place = cache.one_place.unwrap_or(0) as u32;
        let overrides = self.overrides.clone();
        Ok(Self { overrides, ..Self::new(spec, self.provenance.clone())? })
    }

    /// The same drive with `tracks` tracks (cylinders on a cylinder layout) from PBA 0 on set aside for random access.
    ///
    /// # Errors
    /// As [`DriveModel::new`].
    pub fn with_random_access(&self, tracks: u64) -> Result<Self> {
        self.changed("random_access", tracks.to_string(), |s| s.bands.random_access = tracks)
    }

    /// The drive cut to its first cylinders (in PBA order of the zones), so that at least `blocks` count as its size.
    /// Tracks that are set aside and not shingled keep their share, unless their number was given.
    /// A seek curve over cylinders stays as it is; one over blocks is relative to the size and shrinks with it (C2).
    ///
    /// # Errors
    /// When `blocks` is zero or more than the drive has.
    pub fn shorten(&self, blocks: Blocks) -> Result<Self> {
        let counted = self.counted_blocks();
        if blocks == Blocks::ZERO || blocks > counted {
            let reason = format!("{blocks} blocks are not accepted: from 1 to {counted}");
            return Err(DriveError::one("capacity", reason));
        }
        let scaled = |n: u64| (u128::from(n) * u128::from(blocks.0)).div_ceil(u128::from(counted.0)) as u64;
        let medium = scaled(self.geometry.blocks().0);
        let aside_given = self.overrides.iter().any(|(key, _)| key == "random_access");
        self.changed("capacity", format!("{blocks}blk"), |s| {
            cut(&mut s.geometry, medium);
            s.counted = s.counted.map(|_| blocks);
            if matches!(s.interference, Interference::Blocks(_)) && !aside_given {
                s.bands.random_access = scaled(s.bands.random_access);
            }
            if s.mechanics.distance == Distance::Blocks {
                for curve in [&mut s.mechanics.read_seek, &mut s.mechanics.write_seek] {
                    if let Some(full) = curve.full_mut() {
                        *full = scaled(*full).max(1);
                    }
                }
            }
        })
    }
}

/// The first block behind `aside` tracks (cylinders on a cylinder layout).
fn first_shingled(geometry: &Geometry, aside: u64) -> Result<u64> {
    let unit = geometry.strokes().next().map_or(1, |s| s.unit);
    let rows = geometry.rows();
    if aside >= rows {
        let reason = format!("{aside} tracks are not accepted: from 0 to {}", rows.saturating_sub(1));
        return Err(DriveError::one("bands.random_access", reason));
    }
    Ok(geometry.track_start(TrackNo(aside * unit)).0)
}

/// Keeps the first cylinders, as few as hold `blocks`; slipped sectors are made up for.
fn cut(g: &mut GeometrySpec, blocks: u64) {
    // The spare sectors may be among what is cut off.
    g.remaps.clear();
    if g.layout == Layout::Listed {
        return g.keep_groups(blocks);
    }
    let toward = g.toward;
    let slipped: u64 = g.slips.iter().map(|s| u64::from(s.blocks)).sum();
    let left_out: u64 = g.zones.iter().map(|z| u64::from(z.front) + u64::from(z.end)).sum();
    let mut left = blocks + g.defects.len() as u64 + slipped + left_out;
    let mut keep = |zones: &mut dyn Iterator<Item = ZoneSpec>| -> Vec<ZoneSpec> {
        let mut kept = Vec::new();
        for mut z in zones {
            let each = u64::from(z.sectors - z.spare_sectors) * u64::from(g.surfaces)
                - u64::from(z.range_spares.div_ceil(z.range_cylinders.max(1)));
            let used = u64::from(z.cylinders - z.spare_cylinders);
            if left.div_ceil(each) < used {
                // Spares lie at the inner end: behind what is left, or before it where blocks rise outwards.
                if toward == crate::geometry::Toward::Inner {
                    z.spare_cylinders = 0;
                }
                (z.cylinders, z.end) = (left.div_ceil(each) as u32 + z.spare_cylinders, 0);
            }
            left = left.saturating_sub(each * used);
            if z.cylinders > 0 {
                kept.push(z);
            }
            if left == 0 {
                break;
            }
        }
        kept
    };
    match toward {
        crate::geometry::Toward::Inner => {
            g.zones = keep(&mut g.zones.clone().into_iter());
            let end: u32 = g.zones.iter().map(|z| z.cylinders).sum();
            g.defects.retain(|d| d.cylinder < end);
            g.slips.retain(|s| (s.zone as usize) < g.zones.len());
        }
        crate::geometry::Toward::Outer => {
            let before: u32 = g.zones.iter().map(|z| z.cylinders).sum();
            let mut zones = keep(&mut g.zones.clone().into_iter().rev());
            zones.reverse();
            let lost = (g.zones.len() - zones.len()) as u32;
            g.slips.retain(|s| s.zone >= lost);
            g.slips.iter_mut().for_each(|s| s.zone -= lost);
            g.zones = zones;
            let gone = before - g.zones.iter().map(|z| z.cylinders).sum::<u32>();
            g.defects.retain(|d| d.cylinder >= gone);
            for d in &mut g.defects {
                d.cylinder -= gone;
            }
        }
    }
}

impl SeekCurve {
    /// The full distance of curves that have one.
    fn full_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Sqrt { full, .. } | Self::ThreePoint { full, .. } => Some(full),
            Self::Constant(_) | Self::Table(_) | Self::Directed { .. } | Self::Nearest { .. } => None,
        }
    }
}
