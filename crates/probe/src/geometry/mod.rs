//! Geometry from outside: rotation, tracks, recording zones, skews, the order of surfaces, seek curves.
//!
//! The method follows what is published: Gim and Won (ACM TOS 6(2), 2010; DIG), Worthington et al. (SIGMETRICS 1995) for
//! least access times, and H. Wong's microbenchmarks of 17 drives (2019), which show that several head switches may come
//! before a seek and that skews reach a fifth of a revolution.

mod cache;
mod lines;
mod order;
pub(crate) mod rotation;
mod seek;
mod tracks;
mod zones;

pub use cache::BoardCache;
pub use order::{Order, Skews};
pub use seek::Seeks;

use crate::dial::{Dial, Quality};
use crate::target::TimedTarget;
use crate::watch::Watch;
use crate::{ProbeError, Result};
use serde::{Deserialize, Serialize};

/// A measured number and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The number.
    pub value: f64,
    /// Its standard error.
    pub spread: f64,
}

/// Tracks that follow each other in LBA order with the same number of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Zone {
    /// First block.
    pub first_lba: u64,
    /// Blocks.
    pub blocks: u64,
    /// First track, counted from LBA 0.
    pub first_track: u64,
    /// Tracks.
    pub tracks: u64,
    /// Blocks on a track without slipped sectors.
    pub usable: u64,
    /// Sectors in a revolution.
    pub sectors: u64,
    /// The same as measured.
    pub sectors_exact: f64,
    /// Sectors that hold no block on tracks that otherwise would be full.
    pub slips: u64,
    /// The angle from the end of a track to the begin of the next, in revolutions.
    pub jump: f64,
}

impl Zone {
    /// The block behind the last one.
    pub fn end(&self) -> u64 {
        self.first_lba + self.blocks
    }
}

/// What to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtractOptions {
    /// Only rotation and zones.
    pub zones_only: bool,
    /// Writes are allowed.
    pub destroy: bool,
}

/// What is known of a drive's geometry; stages that are not done are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extraction {
    /// Version of this form.
    pub schema: u32,
    /// Blocks of the drive.
    pub blocks: u64,
    /// Revolutions a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<Measured>,
    /// Recording zones in LBA order.
    #[serde(default)]
    pub zones: Vec<Zone>,
    /// Whether the zones reach the drive's end.
    #[serde(default)]
    pub complete: bool,
    /// Skews and the order of surfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skews>,
    /// Seek curves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek: Option<Seeks>,
    /// The drive's own cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<BoardCache>,
    /// What was done about the drive's own cache, in the last sitting.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own_cache: String,
    /// What could not be told, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What was needed, and what disturbed it; sums over all sittings.
    pub quality: Quality,
}

impl Extraction {
    /// Nothing is known.
    pub fn new(blocks: u64) -> Self {
        Self { schema: 1, blocks, ..Self::default() }
    }

    /// Whether everything that `options` ask for is there.
    pub fn done(&self, options: ExtractOptions) -> bool {
        self.complete
            && (options.zones_only || self.skew.is_some() && self.seek.is_some() && self.cache.is_some())
    }
}

/// Measures what is missing in `known`, which keeps what was measured when it is stopped or fails. `keep` is called after
/// every stage and every zone, to save it.
///
/// # Errors
/// The target's, [`ProbeError::NotADisk`], [`ProbeError::Interrupted`]; and [`ProbeError::Input`] where `known` is of another
/// drive.
pub fn extract(
    target: &mut dyn TimedTarget,
    watch: &mut dyn Watch,
    options: ExtractOptions,
    known: &mut Extraction,
    keep: &mut dyn FnMut(&Extraction),
) -> Result<()> {
    if known.blocks != target.blocks().0 {
        return Err(ProbeError::Input(format!(
            "what was measured before is of a drive of {} blocks, this one has {}: use another --out",
            known.blocks,
            target.blocks().0
        )));
    }
    known.own_cache = target.own_cache();
    let before = known.quality;
    let mut dial = Dial::new(target, watch);
    let done = stages(&mut dial, options, known, keep);
    known.quality = before.and(dial.quality());
    if known.rpm.is_some() {
        keep(known);
    }
    done
}

fn stages(
    dial: &mut Dial<'_>,
    options: ExtractOptions,
    known: &mut Extraction,
    keep: &mut dyn FnMut(&Extraction),
) -> Result<()> {
    // The dial has to be set in every sitting.
    known.rpm = Some(rotation::find(dial, options.zones_only)?);
    keep(known);
    dial.stage("zones");
    let mut finder = zones::Finder::new(dial, &known.zones, options.zones_only)?;
    if finder.counted() && !known.notes.iter().any(|n| n == lines::UNTOLD) {
        known.notes.push(lines::UNTOLD.to_owned());
    }
    while !known.complete {
        known.complete = !finder.next(dial)?;
        // The last one may be joined by the next.
        let found = finder.zones();
        known.zones = if known.complete { found.to_vec() } else { found[..found.len() - 1].to_vec() };
        keep(known);
    }
    if options.zones_only {
        return Ok(());
    }
    if known.skew.is_none() {
        known.skew = told(known, order::find(dial, finder.zones(), &finder.jumps))?;
        keep(known);
    }
    if let Some(skews) = known.skew.filter(|_| known.seek.is_none()) {
        known.seek = Some(seek::find(dial, &known.zones.clone(), &skews, options.destroy)?);
        keep(known);
    }
    if known.cache.is_none() {
        known.cache = Some(cache::find(dial)?);
    }
    Ok(())
}

/// What cannot be told becomes a note.
fn told<T>(known: &mut Extraction, result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ProbeError::Unclear(why)) => {
            known.notes.push(why);
            Ok(None)
        }
        Err(e) => Err(e),
    }
}
