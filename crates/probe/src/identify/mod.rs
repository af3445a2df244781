//! What kind of drive it is: conventional, or shingled behind a translation layer, and how that layer works.
//!
//! After Skylight (Aghayev and Desnoyers, FAST 2015), by the outcome of timed patterns alone. What is new here is that a
//! block's place is told by its angle: a block that was written somewhere else than where it lay is found at another one.

#[cfg(test)]
mod answer_tests;
mod bands;
mod fill;
mod moved;
mod pausing;
mod sittings;
mod tail;
#[cfg(test)]
mod tests;
mod turns;
mod zoned;

pub use bands::{BandAt, BandSize, Toward};
pub use fill::{CacheSize, Limit};
pub use pausing::{Idle, Order};
pub use sittings::Sittings;

use crate::Result;
use crate::dial::{Dial, Quality};
use crate::geometry::rotation;
use crate::target::TimedTarget;
use crate::watch::Watch;
use bands::View;
use fill::Fill;
use moved::{Places, SMALL};
use pausing::Pausing;
use serde::{Deserialize, Serialize};
use sittings::Stage;
use tail::Tail;
use zoned::Does;

/// Kinds of drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveKind {
    /// Conventional: every write goes to its place.
    #[default]
    Cmr,
    /// Shingled, and the drive hides it.
    DriveManaged,
    /// Shingled zones that accept any write.
    HostAware,
    /// Shingled zones that accept only writes at their write pointer.
    HostManaged,
}

/// Where written blocks lie between reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// On the disk.
    Disk,
    /// In flash: what was written lately is read without the disk.
    Flash,
}

/// How blocks find their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// A block comes back to its own place when the cache is cleaned, or never leaves it.
    Static,
    /// It goes anywhere.
    Dynamic,
}

/// When caches are cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cleaning {
    /// As soon as the drive has been idle for a while.
    Aggressive,
    /// Only when there is no room left.
    Lazy,
    /// Nothing is cached: every write rewrites what it must.
    InPlace,
}

/// One pattern: what was done and seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Its name.
    pub test: String,
    /// What was done.
    pub did: String,
    /// What was seen, and what follows.
    pub saw: String,
    /// What the numbers are: names of the two columns of `points`.
    pub axes: [String; 2],
    /// The numbers, for a picture.
    pub points: Vec<(f64, f64)>,
}

impl Evidence {
    /// Without numbers.
    fn new(test: &str, did: impl Into<String>, saw: impl Into<String>) -> Self {
        let (did, saw) = (did.into(), saw.into());
        Self { test: test.to_owned(), did, saw, axes: Default::default(), points: Vec::new() }
    }
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of this form.
    pub schema: u32,
    /// What kind of drive it is.
    pub kind: DriveKind,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// The answer in one line.
    pub answer: String,
    /// Revolutions a minute.
    pub rpm: f64,
    /// What the cache is, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheKind>,
    /// Where it lies: share of the drive's blocks, in LBA order, near which the head goes to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_place: Option<f64>,
    /// How much fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_size: Option<CacheSize>,
    /// Bands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band: Option<BandSize>,
    /// Bands elsewhere on the drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bands_along: Vec<BandAt>,
    /// Which way tracks overlap in a band, in LBA order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toward: Option<Toward>,
    /// Cleaning in idle time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// How blocks find their place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<Mapping>,
    /// When caches are cleaned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleaning: Option<Cleaning>,
    /// What was done about the drive's own cache, in the last sitting.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own_cache: String,
    /// What was done and seen.
    pub evidence: Vec<Evidence>,
    /// What was needed.
    pub quality: Quality,
}

/// Finds out what kind of drive the target is. Its data are destroyed.
///
/// # Errors
/// The target's, [`NotADisk`](crate::ProbeError::NotADisk), [`Interrupted`](crate::ProbeError::Interrupted).
pub fn identify(target: &mut dyn TimedTarget, watch: &mut dyn Watch) -> Result<Identity> {
    let mut known = Sittings::new(target.blocks().0);
    identify_further(target, watch, &mut known, &mut |_| ())?;
    Ok(known.found)
}

/// As [`identify`], from where `known` ends, which keeps what was found out when it is stopped or fails. `keep` is called
/// after every stage, to save it.
///
/// # Errors
/// As [`identify`], and [`ProbeError::Input`](crate::ProbeError::Input) where `known` is of another drive.
pub fn identify_further(
    target: &mut dyn TimedTarget,
    watch: &mut dyn Watch,
    known: &mut Sittings,
    keep: &mut dyn FnMut(&Sittings),
) -> Result<()> {
    known.check(target.blocks().0)?;
    known.found.own_cache = target.own_cache();
    let does = if known.begun() { zoned::said(target) } else { zoned::look(target, &mut known.found)? };
    if does == Does::Refuses {
        // It would refuse nearly all of the patterns that tell others apart.
        known.found.answer = answer(&known.found);
        return Ok(());
    }
    let before = known.found.quality;
    let mut dial = Dial::new(target, watch);
    let done = stages(&mut dial, known, keep);
    known.found.quality = before.and(dial.quality());
    if does == Does::Prefers && done.is_ok() {
        known.found.kind = DriveKind::HostAware;
        known.found.answer = answer(&known.found);
    }
    if known.begun() {
        keep(known);
    }
    done
}

fn stages(dial: &mut Dial<'_>, known: &mut Sittings, keep: &mut dyn FnMut(&Sittings)) -> Result<()> {
    rotation::plausible(dial)?;
    // A drive that cleans when it is idle does so first, else its turning would be measured while it is at work.
    dial.pause(600e9);
    moved::calm(dial)?;
    known.found.rpm = rotation::find(dial, false)?.value;
    let places = known.look(dial)?;
    keep(known);
    let (moved, slow) = (places.moved_share(), places.slow_share());
    let out = &mut known.found;
    if moved > 0.5 {
        out.kind = DriveKind::DriveManaged;
        out.confidence = moved;
        cached(dial, known, &places, keep)?;
    } else if slow >= 0.04 {
        out.kind = DriveKind::DriveManaged;
        out.confidence = 1.0 - 0.5f64.powi((slow * places.len() as f64) as i32);
        out.mapping = Some(Mapping::Static);
        out.cleaning = Some(Cleaning::InPlace);
        known.once(Stage::Bands, keep, |known| in_place(dial, &mut known.found, &places))?;
    } else {
        out.confidence = 1.0 - slow - moved;
    }
    known.found.answer = answer(&known.found);
    Ok(())
}

/// What there is to know of a layer that writes elsewhere first.
fn cached(
    dial: &mut Dial<'_>,
    known: &mut Sittings,
    places: &Places,
    keep: &mut dyn FnMut(&Sittings),
) -> Result<()> {
    let quick = places.quick_reads(dial)?;
    known.found.cache = Some(if quick { CacheKind::Flash } else { CacheKind::Disk });
    known.once(Stage::Place, keep, |known| {
        if !quick {
            known.found.cache_place = moved::place(dial, places, &mut known.found.evidence)?;
        }
        Ok(())
    })?;
    known.once(Stage::Rest, keep, |known| {
        let (cleaning, home) = moved::after_rest(dial, places, &mut known.found.evidence)?;
        (known.found.cleaning, known.found.mapping) = (Some(cleaning), home);
        Ok(())
    })?;
    let lazy = known.found.cleaning == Some(Cleaning::Lazy);
    known.once(Stage::Fill, keep, |known| {
        let held = known.held(lazy);
        let mut fill = Fill::new(dial.blocks(), places, &mut known.filling);
        known.found.cache_size = fill.until_it_breaks(dial, held, &mut known.found.evidence)?;
        Ok(())
    })?;
    known.once(Stage::Mapping, keep, |known| {
        let out = &mut known.found;
        if out.mapping.is_none() {
            out.mapping = moved::after_cleaning(dial, places, &mut out.evidence)?;
        }
        if let (Some(Mapping::Dynamic), Some(size)) = (out.mapping, out.cache_size)
            && lazy
            && Fill::new(dial.blocks(), places, &mut known.filling).rest_helps(
                dial,
                size,
                &mut out.evidence,
            )?
        {
            out.cleaning = Some(Cleaning::Aggressive);
        }
        Ok(())
    })?;
    // Only a layer that brings blocks home has bands that show.
    if known.found.mapping == Some(Mapping::Static) {
        known.once(Stage::Bands, keep, |known| cached_bands(dial, &mut known.found, places))?;
    }
    Ok(())
}

/// Where bands are looked at: shares of the drive.
const ALONG: [f64; 3] = [1.0 / 3.0, 0.02, 0.97];

/// Bands of a drive that rewrites in place.
fn in_place(dial: &mut Dial<'_>, out: &mut Identity, places: &Places) -> Result<()> {
    dial.stage("bands");
    let mut slow: Vec<u64> = places.slow().collect();
    slow.sort_unstable();
    let n = slow.len();
    let start = slow[n / 2];
    out.band = bands::in_place(dial, start, &mut out.evidence)?;
    let Some(band) = out.band else { return Ok(()) };
    out.toward = bands::toward(dial, &band, &mut out.evidence)?;
    out.evidence.push(said(&band, "writes of growing length, and writes along the drive"));
    for at in [slow[n / 32], slow[n - 1 - n / 16]] {
        if let Some(found) = bands::in_place(dial, at, &mut Vec::new())? {
            out.bands_along.push(BandAt { lba: at, blocks: found.blocks });
        }
    }
    Ok(())
}

/// How bands of a cache are told.
enum How {
    Turns,
    Pausing(Pausing),
    Tail(Tail),
}

impl How {
    /// What cleaning one piece costs, in revolutions, and how exactly that is known.
    fn cost(&self, dial: &mut Dial<'_>, lba: u64) -> Result<Option<(f64, f64)>> {
        match self {
            Self::Turns => Ok(None),
            Self::Pausing(p) => p.cost(dial, lba),
            Self::Tail(t) => t.cost(dial, lba),
        }
    }

    /// Which way tracks seem to overlap.
    fn leaning(&self, dial: &mut Dial<'_>, start: u64) -> Result<Option<Toward>> {
        if let Self::Pausing(p) = self {
            p.empty(dial);
        }
        bands::leaning(dial, start, &mut |dial, lba| self.cost(dial, lba))
    }

    fn band(&self, dial: &mut Dial<'_>, start: u64, view: View) -> Result<Option<BandSize>> {
        match self {
            Self::Turns => turns::two_spots(dial, start),
            Self::Pausing(p) => p.band(dial, start, view),
            Self::Tail(t) => t.band(dial, start, view),
        }
    }

    /// Which way tracks overlap: what lies behind a piece is rewritten with it, so cleaning takes longest at one end.
    fn toward(
        &self,
        dial: &mut Dial<'_>,
        band: &BandSize,
        evidence: &mut Vec<Evidence>,
    ) -> Result<Option<Toward>> {
        let Some((front, _)) = self.cost(dial, band.end - band.blocks + SMALL)? else { return Ok(None) };
        let end = self.cost(dial, band.end - 2 * SMALL)?;
        Ok(end.and_then(|(end, _)| Toward::of(front, end, evidence)))
    }

    fn did(&self) -> &'static str {
        match self {
            Self::Turns => "two spots at growing distance written in turn until the drive had to clean",
            Self::Pausing(_) => {
                "two spots at growing distance written, and a rest that is just long enough to clean one band"
            }
            Self::Tail(_) => "two spots at growing distance written, then a third one until the log was full",
        }
    }
}

/// Bands of a drive with a cache.
fn cached_bands(dial: &mut Dial<'_>, out: &mut Identity, places: &Places) -> Result<()> {
    let aggressive = out.cleaning == Some(Cleaning::Aggressive);
    let mut how = Vec::new();
    if aggressive && let Some(pausing) = Pausing::new(dial, places)? {
        out.idle = Some(pausing.idle());
        how.push(How::Pausing(pausing));
    }
    dial.stage("bands");
    if !aggressive && let Some(size) = out.cache_size {
        tail::drain(dial, places, size)?;
    }
    let starts = ALONG.map(|share| (share * dial.blocks() as f64) as u64 / SMALL * SMALL);
    how.push(How::Turns);
    let mut found = None;
    while let Some(way) = how.pop() {
        found = first_band(dial, way, starts[0])?;
        if found.is_some() {
            break;
        }
    }
    if found.is_none()
        && !aggressive
        && let Some(size) = out.cache_size
        && let Some(tail) = Tail::new(dial, places, size)?
    {
        found = first_band(dial, How::Tail(tail), starts[0])?;
    }
    let Some((way, view, band)) = found else { return Ok(()) };
    out.band = Some(band);
    out.toward = way.toward(dial, &band, &mut out.evidence)?;
    out.evidence.push(said(&band, way.did()));
    for &start in &starts[1..] {
        if let Some(found) = way.band(dial, start, view)? {
            out.bands_along.push(BandAt { lba: start, blocks: found.blocks });
        }
    }
    Ok(())
}

/// A band near `start`, the way it was told, and from which side.
fn first_band(dial: &mut Dial<'_>, way: How, start: u64) -> Result<Option<(How, View, BandSize)>> {
    let toward = way.leaning(dial, start)?;
    let view = View::new(dial, toward);
    // A piece over a boundary is now cleaned so and now otherwise: then one elsewhere is looked at.
    for start in [start, start + (1 << 14) + 5 * SMALL] {
        if let Some(band) = way.band(dial, start, view)? {
            return Ok(Some((way, view, band)));
        }
    }
    Ok(None)
}

fn said(band: &BandSize, did: &str) -> Evidence {
    Evidence::new(
        "bands",
        did,
        format!("what is rewritten together has {} blocks; that takes {:.2} s", band.blocks, band.rewrite_s),
    )
}

/// So many blocks in the unit that fits, as drives are sold.
fn size(blocks: u64) -> String {
    let bytes = blocks as f64 * 512.0;
    // From where on they are rounded up to one of the next unit.
    match bytes {
        _ if bytes >= 999.5e6 => format!("{:.1} GB", bytes / 1e9),
        _ if bytes >= 999.5e3 => format!("{:.0} MB", bytes / 1e6),
        _ => format!("{:.0} kB", bytes / 1e3),
    }
}

fn answer(id: &Identity) -> String {
    match id.kind {
        DriveKind::HostManaged => {
            return "shingled, host-managed: it reports zones, and refuses a write that is not at a zone's write pointer".to_owned();
        }
        DriveKind::HostAware => {
            let inside = answer(&Identity { kind: DriveKind::DriveManaged, ..id.clone() });
            let inside = inside.strip_prefix("shingled, drive-managed, ").unwrap_or("").to_owned();
            return format!(
                "shingled, host-aware: it reports zones that prefer sequential writes, and takes others {inside}"
            );
        }
        DriveKind::Cmr | DriveKind::DriveManaged => {}
    }
    match (id.kind, id.cleaning) {
        (DriveKind::Cmr, _) => {
            "conventional (CMR), or shingled without a cache and so empty that it does not show".to_owned()
        }
        (_, Some(Cleaning::InPlace)) => {
            let band = id.band.map_or_else(String::new, |b| format!(" in bands of {}", size(b.blocks)));
            format!(
                "shingled, drive-managed, without a cache: small writes rewrite what lies behind them{band}"
            )
        }
        _ => {
            let cache = id
                .cache_size
                .map_or_else(|| "a cache".to_owned(), |c| format!("a cache of {}", size(c.blocks)));
            let stall = id.cache_size.map_or_else(String::new, |c| {
                format!("; random writes stall after {} of them without rest", size(c.blocks))
            });
            let place = if id.cache == Some(CacheKind::Flash) { "in flash" } else { "on the disk" };
            format!("shingled, drive-managed, with {cache} {place}{stall}")
        }
    }
}
