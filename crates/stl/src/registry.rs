//! The registry: every translation layer, one explicit line each.
//!
//! A layer is one file under `layers/` that ends in its [`LayerEntry`], and one line in [`LAYERS`]. Parsing, errors,
//! `smrlab list`, `smrlab explain`, the reference pages and the tests of all layers are made from the entry.

use crate::layers::{cmr, raw, rmw};
use crate::{Capabilities, TranslationLayer};
use smrlab_disk::{BandLayout, DriveError, Geometry};
use smrlab_units::spec::{Param, SpecError, Values, nearest, split_item};
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
    /// Where blocks lie.
    pub geometry: Arc<Geometry>,
    /// The drive's own bands: tracks in a band, head width, tracks set aside for random access.
    pub bands: BandLayout,
    /// Seed of whatever a layer draws.
    pub seed: u64,
    /// Where metadata live.
    pub metadata: Metadata,
}

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
    /// Its parameters.
    pub params: &'static [Param],
    /// What it promises with its best options; [`Built::capabilities`] has what holds for the options given.
    pub capabilities: Capabilities,
    /// The medium is not shingled: its head width is 1 whatever the drive's is.
    pub conventional: bool,
    /// Builds it from checked values.
    pub build: fn(&BuildContext, &Values) -> BuildResult,
}

/// A layer that was built from a user's text.
pub struct Built {
    /// The text with every parameter, defaults included.
    pub resolved: String,
    /// Its entry.
    pub entry: &'static LayerEntry,
    /// What it promises as built: a layer with a `journal` parameter survives power cuts only with `journal=on`.
    pub capabilities: Capabilities,
    /// Head width of the medium that it expects: 1 for a conventional drive, else `tracks=` or the drive's own.
    pub head_width: u64,
    /// The layer itself.
    pub layer: Box<dyn TranslationLayer>,
}

impl std::fmt::Debug for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Built").field("resolved", &self.resolved).finish_non_exhaustive()
    }
}

/// Every layer.
pub static LAYERS: &[&LayerEntry] = &[&cmr::ENTRY, &raw::ENTRY, &rmw::ENTRY];

/// The entry of this name or alias.
///
/// # Errors
/// [`SpecError::UnknownName`] with the nearest and all names.
pub fn find(name: &str) -> Result<&'static LayerEntry, SpecError> {
    let named = |e: &&&LayerEntry| e.name == name || e.aliases.contains(&name);
    LAYERS.iter().find(named).copied().ok_or_else(|| {
        let names = || LAYERS.iter().map(|e| e.name);
        SpecError::UnknownName {
            what: "layer",
            name: name.to_owned(),
            nearest: nearest(name, LAYERS.iter().flat_map(|e| e.aliases.iter().copied().chain([e.name]))),
            known: names().collect::<Vec<_>>().join(", "),
        }
    })
}

/// Builds the layer that `text` (`NAME[,key=value...]`) describes.
///
/// # Errors
/// Unknown names and keys with the nearest match, values out of range with the accepted range, and what does not fit on
/// the drive.
pub fn build(text: &str, context: &BuildContext) -> Result<Built, SpecError> {
    let (name, pairs) = split_item(text);
    let entry = find(name)?;
    let values = Values::check(entry.name, entry.params, &pairs)?;
    let mut context = context.clone();
    let has = |key: &str| entry.params.iter().any(|p| p.name == key);
    if entry.conventional {
        context.bands.head_width = 1;
    } else if has("tracks") {
        context.bands.head_width = values.count("tracks").unwrap_or(context.bands.head_width);
    }
    let mut capabilities = entry.capabilities;
    if has("journal") {
        capabilities.survives_cut &= values.on("journal");
    }
    let layer = (entry.build)(&context, &values)?;
    let head_width = context.bands.head_width;
    Ok(Built { resolved: values.resolved(), entry, capabilities, head_width, layer })
}

/// What a drive cannot hold, as an error of the layer that asked for it.
pub fn does_not_fit(entry: &LayerEntry, error: &DriveError) -> SpecError {
    SpecError::Other(format!("{}: {error}", entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_disk::GeometrySpec;
    use smrlab_disk::geometry::ZoneSpec;

    fn context() -> BuildContext {
        let spec = GeometrySpec::single_surface(vec![ZoneSpec::plain(50, 10)]);
        BuildContext {
            geometry: Arc::new(Geometry::new(spec).unwrap()),
            bands: BandLayout { tracks: 4, head_width: 2, random_access: 0 },
            seed: 0,
            metadata: Metadata::Nv,
        }
    }

    #[test]
    fn unknown_names_and_keys_come_with_the_nearest() {
        let e = build("cmmr", &context()).unwrap_err().to_string();
        assert!(e.contains("unknown layer 'cmmr' (did you mean 'cmr'?)") && e.contains("raw"), "{e}");
        let e = build("raw,track=3", &context()).unwrap_err().to_string();
        assert!(e.contains("did you mean 'tracks'?"), "{e}");
        let e = build("raw,tracks=0", &context()).unwrap_err().to_string();
        assert!(e.contains("from 1 to 1024"), "{e}");
    }

    #[test]
    fn the_medium_has_the_head_that_the_layer_expects() {
        let head = |text: &str| build(text, &context()).unwrap().head_width;
        assert_eq!((head("cmr"), head("raw"), head("raw,tracks=5")), (1, 2, 5));
        assert_eq!(build("hdd", &context()).unwrap().entry.name, "cmr");
    }

    #[test]
    fn names_are_unique_and_every_entry_is_documented() {
        let mut seen = std::collections::BTreeSet::new();
        for e in LAYERS {
            for name in e.aliases.iter().chain([&e.name]) {
                assert!(seen.insert(*name), "{name} twice");
            }
            assert!(e.page.len() > 200 && !e.summary.is_empty() && !e.reference.is_empty(), "{}", e.name);
            assert!(e.params.iter().all(|p| !p.doc.is_empty()), "{}", e.name);
            Values::check(e.name, e.params, &[]).unwrap_or_else(|err| panic!("{}: {err}", e.name));
        }
    }
}
