//! The registry: every translation layer, one explicit line each.
//!
//! A layer is one file under `layers/` that ends in its [`LayerEntry`], and one line in [`LAYERS`].

use crate::entry::{BuildContext, LayerEntry, Metadata, does_not_fit};
use crate::layers::{
    caveat_scriptor, cmr, disk_cache, e_region, floating, log, persistent_cache, raw, rmw, s_block, segment,
    smart, static_map, steady_log, virtual_guard, zoned,
};
use crate::on_media::OnMedia;
use crate::{Capabilities, TranslationLayer};
use smrlab_disk::model::CacheSpec;
use smrlab_disk::{DriveError, DriveModel};
use smrlab_units::Blocks;
use smrlab_units::spec::{SpecError, Values, split_item};
use std::sync::Arc;

/// A layer that was built from a user's text.
pub struct Built {
    /// The text with every parameter, defaults included.
    pub resolved: String,
    /// Its entry.
    pub entry: &'static LayerEntry,
    /// What it promises as built: a layer with a `journal` parameter survives power cuts only with `journal=on`.
    pub capabilities: Capabilities,
    /// The drive on whose medium it works: with a head of one track for a conventional layer, of `tracks=` where that
    /// is given, else as it was.
    pub drive: Arc<DriveModel>,
    /// The layer itself.
    pub layer: Box<dyn TranslationLayer>,
}

impl std::fmt::Debug for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Built").field("resolved", &self.resolved).finish_non_exhaustive()
    }
}

/// Every layer.
pub static LAYERS: &[&LayerEntry] = &[
    &cmr::ENTRY,
    &floating::ENTRY,
    &raw::ENTRY,
    &caveat_scriptor::ENTRY,
    &rmw::ENTRY,
    &static_map::ENTRY,
    &static_map::ENTRY_1234,
    &static_map::ENTRY_R4123,
    &static_map::ENTRY_124R3,
    &static_map::ENTRY_14R23,
    &disk_cache::ENTRY,
    &s_block::ENTRY,
    &log::ENTRY,
    &log::ENTRY_LAZ_RAZ,
    &log::ENTRY_H_SWD,
    &segment::ENTRY,
    &persistent_cache::ENTRY,
    &virtual_guard::ENTRY,
    &smart::ENTRY,
    &e_region::ENTRY,
    &steady_log::ENTRY,
    &zoned::ENTRY,
    &zoned::ENTRY_HOST_AWARE,
];

/// The entry of this name or alias.
///
/// # Errors
/// [`SpecError::UnknownName`] with the nearest and all names.
pub fn find(name: &str) -> Result<&'static LayerEntry, SpecError> {
    let named = |e: &&&LayerEntry| e.name == name || e.aliases.contains(&name);
    LAYERS.iter().find(named).copied().ok_or_else(|| {
        let aliases = LAYERS.iter().flat_map(|e| e.aliases.iter().copied());
        SpecError::unknown("layer", name, LAYERS.iter().map(|e| e.name), aliases)
    })
}

/// The entry that `text` (`NAME[,key=value...]`) describes, and the text with its own name and keys: `zoned,model=host-aware` is `host-aware`.
///
/// # Errors
/// As [`find`].
pub fn described(text: &str) -> Result<(&'static LayerEntry, String), SpecError> {
    let (name, pairs) = split_item(text);
    let entry = find(name)?;
    Ok(match zoned::model(entry.name, &pairs) {
        Some(host_aware) => (&zoned::ENTRY_HOST_AWARE, host_aware),
        None => (entry, text.to_owned()),
    })
}

/// Builds the layer that `text` (`NAME[,key=value...]`) describes.
///
/// # Errors
/// Unknown names and keys with the nearest match, values out of range with the accepted range, and what does not fit on
/// the drive.
pub fn build(text: &str, context: &BuildContext) -> Result<Built, SpecError> {
    let (entry, text) = described(text)?;
    build_as(entry, &text, context)
}

/// As [`build`], of an entry that need not be in the registry; `text` has its options.
///
/// # Errors
/// As [`build`].
pub fn build_as(entry: &'static LayerEntry, text: &str, context: &BuildContext) -> Result<Built, SpecError> {
    let (_, pairs) = split_item(text);
    let values = Values::check(entry.name, entry.params, &pairs)?;
    let mut context = context.clone();
    let has = |key: &str| entry.params.iter().any(|p| p.name == key);
    let tracks = if entry.conventional {
        Some(1)
    } else {
        has("tracks").then(|| values.given("tracks", Values::count)).flatten()
    };
    if let Some(tracks) = tracks.filter(|t| *t != context.drive.head_width()) {
        let drive = context.drive.with_tracks(tracks as u32).map_err(|e| does_not_fit(entry, &e))?;
        context.drive = Arc::new(drive);
    }
    let mut capabilities = entry.capabilities;
    if has("journal") {
        capabilities.survives_cut &= values.on("journal");
    }
    let on_media = context.metadata == Metadata::Media && !entry.conventional && capabilities.keeps_data;
    if on_media {
        context.drive = Arc::new(with_log(&context.drive).map_err(|e| does_not_fit(entry, &e))?);
    }
    if has("guards")
        && let Some(length) = segment::shared_guards(&context, &values)
    {
        let drive = context.drive.with_waves(length).map_err(|e| does_not_fit(entry, &e))?;
        context.drive = Arc::new(drive);
    }
    let measured = |c: CacheSpec| c.read_late.is_some() || c.one_place.is_some();
    if has("readahead") && context.drive.spec().cache.is_some_and(measured) {
        let drive = context.drive.with_cache_measured().map_err(|e| does_not_fit(entry, &e))?;
        context.drive = Arc::new(drive);
    }
    let mut layer = (entry.build)(&context, &values)?;
    if on_media {
        let zone = context.drive.random_access();
        layer = OnMedia::new(layer, context.drive.geometry(), zone).map(Box::new).ok_or_else(|| {
            SpecError::Other(format!("{}: metadata=media needs a larger random-access zone", entry.name))
        })?;
    }
    if layer.host_blocks() == Blocks::ZERO {
        let name = entry.name;
        return Err(SpecError::Other(format!(
            "{name}: the drive has no room for a band: nothing is left for the host"
        )));
    }
    Ok(Built { resolved: values.resolved(), entry, capabilities, drive: context.drive, layer })
}

/// The drive with a random-access zone for the logs of metadata: its own, or one track of a thousand, at least four and
/// at most 256.
fn with_log(drive: &DriveModel) -> Result<DriveModel, DriveError> {
    let usable = (drive.geometry().tracks() / 1000).clamp(4, 256);
    let rows = drive.geometry().strokes().next().map_or(0, |s| s.tracks / s.unit);
    let wanted = (usable * drive.head_width()).min(rows / 2);
    let own = drive.spec().bands.random_access;
    if own >= wanted { Ok(drive.clone()) } else { drive.with_random_access(wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> BuildContext {
        let tiny = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
        BuildContext::new(Arc::new(tiny))
    }

    /// What an entry says of idle time is what the layer does: one that says it does nothing by default has nothing to do
    /// after writes, and one that names an option has something to do with it.
    #[test]
    fn layers_do_in_idle_time_what_they_say() {
        for entry in LAYERS {
            let idles = |text: &str| {
                let mut layer = build(text, &context()).unwrap().layer;
                let mut plan = crate::Plan::new(false, false);
                let host = layer.host_blocks().0;
                (0..2000).any(|i| {
                    let lba = smrlab_units::Lba(i * 977 * 8 % (host - 8));
                    let request = crate::HostRequest::new(smrlab_units::HostOp::Write, lba, Blocks(8));
                    plan.clear();
                    layer.submit(smrlab_units::SimTime::ZERO, &request, &mut plan);
                    layer.background_after().is_some()
                })
            };
            let says_nothing = entry.idle.starts_with("nothing");
            assert_eq!(idles(entry.name), !says_nothing, "{}: {}", entry.name, entry.idle);
            let option = entry.params.iter().any(|p| p.name == "idle");
            assert_eq!(option, entry.idle.contains("idle=TIME"), "{}: {}", entry.name, entry.idle);
            if option {
                let soon =
                    if entry.params.iter().any(|p| p.name == "idle_free") { ",idle_free=90%" } else { "" };
                assert!(idles(&format!("{},idle=10ms{soon}", entry.name)), "{}", entry.name);
            }
        }
    }

    /// Smaller zones are tried where they may help, and not down to 3000 million of the smallest.
    #[test]
    fn a_host_aware_drive_that_cannot_be_is_refused_soon() {
        let drive = smrlab_disk::model::load("seagate-exos-x24", |_| Err(String::new())).unwrap();
        let e = build("host-aware,log=30TB", &BuildContext::new(Arc::new(drive)))
            .map(drop)
            .unwrap_err()
            .to_string();
        let bands = e.split_once("leaves no native band of ").unwrap().1.split_once(':').unwrap().0;
        assert!((1 << 16..1 << 18).contains(&bands.parse::<u64>().unwrap()), "{e}");
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

    /// Maps number the blocks of a band, and those of the ring of `e-region`, in 32 bits.
    #[test]
    fn what_32_bits_do_not_number_is_refused() {
        let drive = smrlab_disk::model::load("wd-ultrastar-dc-hc690", |_| Err(String::new())).unwrap();
        let context = BuildContext::new(Arc::new(drive));
        let refused = |text: &str| build(text, &context).err().map(|e| e.to_string());
        for layer in
            LAYERS.iter().filter(|l| l.params.iter().any(|p| p.name == "band") && l.name != "e-region")
        {
            let e = refused(&format!("{},band=4TB", layer.name)).unwrap_or_else(|| panic!("{}", layer.name));
            assert!(
                e.contains("2^32") || e.contains("more than the map can number") || e.contains("tracks"),
                "{e}"
            );
        }
        let e = refused("host-aware,zone=4TB").expect("zones are bands of its cache");
        assert!(e.contains("2^32"), "{e}");
        let e = refused("e-region,cache=7.1%").expect("4.4e9 of 62e9 blocks");
        assert!(e.contains("2^32 blocks: use less cache="), "{e}");
        let e = refused("e-region,band=2blk").expect("31e9 regions");
        assert!(e.contains("more than 2^28 regions of 2 blocks"), "{e}");
        for fits in ["e-region,cache=6.8%", "e-region,band=1TB", "rmw,band=2TB", "steady-log,band=2TB"] {
            assert_eq!(refused(fits), None, "{fits}");
        }
    }

    /// On a drive that has tracks set aside for random access the zones of host-aware drives lie behind them.
    #[test]
    fn where_no_zone_fits_it_is_said_what_would() {
        for (drive, layer, remedy) in [
            ("tiny", "host-aware,zone=1GiB", "a smaller zone= or a larger drive"),
            ("tiny", "zoned,zone=1GiB", "a smaller zone= or a larger drive"),
            (
                "tiny,random_access=119",
                "host-aware,zone=64KiB",
                "a smaller zone= or a drive with a smaller random_access= or a larger drive",
            ),
            (
                "tiny,random_access=120",
                "host-aware",
                "a drive with a smaller random_access= or a larger drive",
            ),
            ("tiny,k=64", "host-aware", "smaller ones or a larger drive"),
            ("cassuto2010-307gb", "host-aware,zone=1TB", "smaller ones or a larger drive"),
        ] {
            let model = smrlab_disk::model::load(drive, |_| Err(String::new())).unwrap();
            let e = build(layer, &BuildContext::new(Arc::new(model))).map(drop).unwrap_err().to_string();
            assert!(e.ends_with(&format!(": use {remedy}")), "{drive} {layer}: {e}");
        }
    }

    /// The log before the zones of a host-aware drive is that of `persistent-cache`; its faults are told as the user's.
    #[test]
    fn a_layer_in_another_refuses_in_the_name_of_the_one_that_was_asked_for() {
        for text in ["host-aware,map_limit=1", "host-aware,log=99TB"] {
            let e = build(text, &context()).unwrap_err().to_string();
            assert!(e.contains("host-aware: ") && !e.contains("persistent-cache"), "{e}");
        }
    }

    #[test]
    fn the_medium_has_the_head_that_the_layer_expects() {
        let head = |text: &str| build(text, &context()).unwrap().drive.head_width();
        let own = context().drive.head_width();
        assert_eq!((head("cmr"), head("raw"), head("raw,tracks=5")), (1, own, 5));
        assert_eq!(build("hdd", &context()).unwrap().entry.name, "cmr");
    }

    /// A block profile with guards outside the size: no layer has more than the size, and bands of blocks are the drive's.
    #[test]
    fn no_layer_has_more_than_the_counted_blocks() {
        let drive = smrlab_disk::model::load("cassuto2010-307gb", |_| Err(String::new())).unwrap();
        let counted = drive.counted_blocks();
        let context = BuildContext::new(Arc::new(drive));
        for entry in LAYERS {
            let built = match build(entry.name, &context) {
                Err(e) if e.to_string().contains("block profile") => continue,
                built => built.unwrap_or_else(|e| panic!("{}: {e}", entry.name)),
            };
            assert!(built.layer.host_blocks() <= counted, "{} has {}", entry.name, built.layer.host_blocks());
        }
        let band_of = |text: &str| {
            let built = build(text, &context).unwrap();
            built.layer.facts().bands.map(|b| b.band(smrlab_disk::BandId(7)).blocks.0)
        };
        assert_eq!(band_of("rmw"), Some(50_000));
        assert_eq!(band_of("rmw,band=25.6MB"), Some(50_000));
        assert_eq!(band_of("rmw,band=20000blk"), Some(20_000));
        assert_eq!(band_of("disk-cache"), Some(50_000));
        assert_eq!(band_of("disk-cache,band=25.6MB"), band_of("disk-cache,band=50000"));
        for (layer, remedy) in [("disk-cache,band=5000", "larger band="), ("zoned,zone=4096", "larger zone=")]
        {
            let e = build(layer, &context).unwrap_err().to_string();
            assert!(e.contains("do not fit on the medium") && e.contains(remedy), "{e}");
        }
    }

    /// A drive that counts fewer of its blocks than a band has: what is beyond is spare room of the layers.
    #[test]
    fn layers_take_spare_room_from_what_is_not_counted() {
        let counted = Blocks(40);
        let mut spec = context().drive.spec().clone();
        spec.counted = Some(counted);
        let drive = smrlab_disk::DriveModel::new(spec, Vec::new()).unwrap();
        let context = BuildContext::new(Arc::new(drive));
        let host = |name: &str| Some(build(name, &context).ok()?.layer.host_blocks());
        for entry in LAYERS {
            let fits = |host: Blocks| Blocks::ZERO < host && host <= counted;
            assert!(host(entry.name).is_none_or(fits), "{} has nothing, or more", entry.name);
        }
        for name in ["cmr", "log", "laz-raz", "h-swd", "smart", "steady-log"] {
            assert_eq!(host(name), Some(counted), "{name}");
        }
    }

    #[test]
    fn bands_have_the_same_size_in_every_unit() {
        let tracks = |text: &str| {
            let built = build(text, &context()).unwrap();
            built.layer.facts().bands.map(|b| b.band(smrlab_disk::BandId(0)).tracks)
        };
        // Tracks of 24 blocks on the average.
        for text in
            ["rmw,band=6", "rmw,band=6tracks", "rmw,band=144blk", "rmw,band=72KiB", "raw,band=6tracks"]
        {
            assert_eq!(tracks(text), Some(6), "{text}");
        }
        assert!(build("rmw,band=none", &context()).unwrap_err().to_string().contains("64tracks"));
    }

    #[test]
    fn metadata_find_a_place_on_small_and_large_drives() {
        let large = smrlab_disk::model::load("modern-7200", |_| Err(String::new())).unwrap();
        let small = large.shorten(Blocks(1 << 21)).unwrap();
        for (drive, most) in [(small, 16), (large, 512)] {
            let context = BuildContext { metadata: Metadata::Media, ..BuildContext::new(Arc::new(drive)) };
            for layer in ["rmw,band=4tracks", "s-block", "disk-cache", "static-1234"] {
                let built = build(layer, &context).unwrap_or_else(|e| panic!("{layer}: {e}"));
                assert!(built.drive.spec().bands.random_access <= most, "{layer}");
            }
        }
    }

    #[test]
    fn names_are_unique_and_every_entry_is_documented() {
        let mut seen = std::collections::BTreeSet::new();
        for e in LAYERS {
            for name in e.aliases.iter().chain([&e.name]) {
                assert!(seen.insert(*name), "{name} twice");
            }
            assert!(
                e.page.len() > 200,
                "{}: a user's page of {} characters says too little",
                e.name,
                e.page.len()
            );
            assert!(
                !e.summary.is_empty() && !e.reference.is_empty(),
                "{}: no summary, or no reference",
                e.name
            );
            assert!(e.params.iter().all(|p| !p.doc.is_empty()), "{}: a parameter without a text", e.name);
            Values::check(e.name, e.params, &[]).unwrap_or_else(|err| panic!("{}: {err}", e.name));
        }
    }
}
