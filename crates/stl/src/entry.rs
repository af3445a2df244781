//! What a layer says of itself for the registry, and what it is built from.
//!
//! A layer ends in its [`LayerEntry`]: parsing, errors, `smrlab list`, `smrlab explain`, the reference pages and the
//! tests of all layers are made from it.

use crate::{Capabilities, TranslationLayer};
use smrlab_disk::{Bands, DriveError, DriveModel, Interference};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{BandSize, Blocks};
use std::sync::Arc;

/// How a layer keeps its maps, pointers and tables; every result says which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metadata {
    /// In memory that survives a power cut, at no cost: what the papers assume.
    #[default]
    Nv,
    /// On the medium: planned, costed and recoverable.
    Media,
}

/// What a layer is built for.
#[derive(Clone, Debug)]
pub struct BuildContext {
    /// The drive, with the head that the layer's `tracks=` asks for.
    pub drive: Arc<DriveModel>,
    /// Seed of whatever a layer draws.
    pub seed: u64,
    /// Where metadata live.
    pub metadata: Metadata,
}

impl BuildContext {
    /// For a drive, with seed 0 and metadata that survive at no cost.
    pub fn new(drive: Arc<DriveModel>) -> Self {
        Self { drive, seed: 0, metadata: Metadata::default() }
    }

    /// Bands as the user asked for them, or the drive's own: on a drive with a block profile bands of blocks where the
    /// size is in blocks or bytes, else bands of tracks, as many as come nearest to the size.
    ///
    /// # Errors
    /// When no band fits, or one is so long that 32 bits do not number its blocks; `entry` is the layer that asks.
    pub fn bands(&self, entry: &LayerEntry, size: Option<BandLength>) -> Result<Bands, SpecError> {
        let drive = &self.drive;
        let of_blocks = matches!(drive.interference(), Interference::Blocks(p) if p.reach > 1);
        let bands = match (size, drive.spec().bands.blocks) {
            (Some(BandLength::Blocks(n)), _) if of_blocks => drive.block_bands(n),
            (None, Some(n)) if of_blocks => drive.block_bands(n),
            (Some(size), _) => drive.bands(Some(self.tracks_of(size))),
            (None, _) => drive.bands(None),
        };
        let bands = bands.map_err(|e| does_not_fit(entry, &e))?;
        if bands.longest().0 > u64::from(u32::MAX) {
            return Err(SpecError::Other(format!(
                "{}: a band has more than 2^32 blocks: use a smaller band=",
                entry.name
            )));
        }
        Ok(bands)
    }

    /// How many of the bands count: guards may lie outside the blocks that count as the drive's size.
    pub fn counted(&self, bands: &Bands) -> u64 {
        bands.within(self.drive.counted_blocks())
    }

    /// What a user wrote for the size of a band; `bare` says what a number without a unit is.
    pub fn band_length(&self, values: &Values, bare: fn(u64) -> BandLength) -> Option<BandLength> {
        values.given("band", Values::band).map(|size| match size {
            BandSize::Tracks(n) => BandLength::Tracks(n),
            BandSize::Blocks(n) => BandLength::Blocks(Blocks(n)),
            BandSize::Bare(n) => bare(n),
        })
    }

    /// A length in tracks, the nearest whole number but at least one; tracks of the average length.
    pub fn tracks_of(&self, length: BandLength) -> u64 {
        let track = self.drive.mean_track().0;
        match length {
            BandLength::Tracks(n) => n,
            BandLength::Blocks(n) => ((n.0 + track / 2) / track).max(1),
        }
    }

    /// A length in blocks, of tracks of the average length.
    pub fn blocks_of(&self, length: BandLength) -> Blocks {
        match length {
            BandLength::Tracks(n) => Blocks(n.saturating_mul(self.drive.mean_track().0)),
            BandLength::Blocks(n) => n,
        }
    }
}

impl LayerEntry {
    /// One that `build` builds, without names yet; what most layers promise, on a shingled medium.
    pub const fn new(build: fn(&BuildContext, &Values) -> BuildResult) -> Self {
        Self {
            name: "",
            aliases: &[],
            summary: "",
            reference: "",
            page: "",
            idle: "",
            params: &[],
            capabilities: Capabilities::OF_TRANSLATION,
            tested: &[],
            conventional: false,
            build,
        }
    }

    /// Refuses a drive that has no tracks, for a layer that moves or keeps whole ones.
    ///
    /// # Errors
    /// The drive's interference is a profile of blocks.
    pub fn needs_tracks(&self, drive: &DriveModel) -> Result<(), SpecError> {
        match drive.interference() {
            Interference::Physical(_) => Ok(()),
            Interference::Blocks(_) => Err(SpecError::Other(format!(
                "{}: it works on whole tracks: this drive has a block profile and no tracks",
                self.name
            ))),
        }
    }

    /// What the tests of all layers build: the layer with its defaults, then with each of [`tested`](Self::tested).
    pub fn texts(&self) -> Vec<String> {
        let with = self.tested.iter().map(|options| format!("{},{options}", self.name));
        [self.name.to_owned()].into_iter().chain(with).collect()
    }

    /// The same for power cuts: of a layer with a `journal` parameter with `journal=on`, each once.
    pub fn durable_texts(&self) -> Vec<String> {
        let journal = self.params.iter().any(|p| p.name == "journal");
        let mut texts = self.texts();
        if journal {
            texts.iter_mut().filter(|t| !t.contains("journal=on")).for_each(|t| t.push_str(",journal=on"));
        }
        let mut seen = std::collections::BTreeSet::new();
        texts.retain(|t| self.capabilities.survives_cut && seen.insert(t.clone()));
        texts
    }
}

/// The length of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandLength {
    /// In tracks (cylinders, where PBAs go round the surfaces).
    Tracks(u64),
    /// In blocks.
    Blocks(Blocks),
}

/// The option by which a layer's bands are laid out for another head than the drive's.
pub const HEAD_TRACKS: Param = Param::new("tracks", Kind::Count(1, 1024), "")
    .doc("k: tracks that one track write touches, itself included; default: the drive's head width");

/// What is said of `band=` wherever a bare number means tracks.
pub const BAND_OF_TRACKS: &str = "size of a band: 64tracks (cylinders on cylinder layouts), 25MB or 50000blk; give a unit, a \
    bare number means tracks; default: the drive's";

/// What a layer's constructor answers.
pub type BuildResult = Result<Box<dyn TranslationLayer>, SpecError>;

/// One layer of the registry.
pub struct LayerEntry {
    /// The name that users write.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// One line.
    pub summary: &'static str,
    /// Where it was published, or what it models.
    pub reference: &'static str,
    /// The user's page: what it does, what it costs, what it promises.
    pub page: &'static str,
    /// What it does when the drive is idle: by default, and with which option.
    pub idle: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// What it promises with its best options; [`Built::capabilities`](crate::Built::capabilities) has what holds for the options given.
    pub capabilities: Capabilities,
    /// Options under which the tests of all layers prove it, beside its defaults: each as a user would write them.
    pub tested: &'static [&'static str],
    /// The medium is not shingled: its head width is 1 whatever the drive's is.
    pub conventional: bool,
    /// Builds it from checked values.
    pub build: fn(&BuildContext, &Values) -> BuildResult,
}

/// What a drive cannot hold, as an error of the layer that asked for it.
pub fn does_not_fit(entry: &LayerEntry, error: &DriveError) -> SpecError {
    SpecError::Other(format!("{}: {error}", entry.name))
}
