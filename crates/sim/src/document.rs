//! What every result tells, of one drive as of an array: its head, and what belongs to the run and not to one metric.

use crate::engine::Feed;
use crate::spec::Spec;
use crate::table::Table;
use serde_json::{Map, Value, json};
use smrlab_disk::{Bands, TrackNo};
use smrlab_drive::Assembled;

/// The version of the result's schema.
pub(crate) const SCHEMA: u32 = 1;

/// What a run found.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The document, as `result.json` has it.
    pub json: Value,
    /// `timeline`, `histogram` and `heatmap`.
    pub tables: Vec<Table>,
}

/// What every result begins with.
pub(crate) fn document(spec: &Spec, feed: &Feed) -> Map<String, Value> {
    let mut json = Map::new();
    json.insert("schema".into(), json!(SCHEMA));
    json.insert("spec".into(), serde_json::to_value(spec).unwrap_or(Value::Null));
    json.insert("provenance".into(), provenance(spec, feed));
    json
}

fn provenance(spec: &Spec, feed: &Feed) -> Value {
    let mut p = Map::new();
    p.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
    // Told by who runs this, when it runs: compiled in, each commit would build everything anew.
    if let Ok(git) = std::env::var("SMRLAB_GIT") {
        p.insert("git".into(), json!(git));
    }
    p.insert("trace_digest".into(), json!(format!("{:016x}", feed.digest())));
    p.insert("seed".into(), json!(spec.seed));
    if feed.skipped() > 0 {
        p.insert("skipped_bad".into(), json!(feed.skipped()));
    }
    p.into()
}

/// The bands of a shingled medium: the layer's, or the drive's default.
pub(crate) fn layer_bands(drive: &Assembled) -> Option<Bands> {
    let own = || drive.built.layer.facts().bands.cloned();
    (!drive.built.entry.conventional).then(|| own().or_else(|| drive.built.drive.bands(None).ok())).flatten()
}

/// Space gain and efficiency of a host's space of `own` blocks a drive: those among the drive's blocks that are not set
/// aside for random access (among all where it has some of these, too), and that times the head width.
pub(crate) fn efficiency(assembled: &Assembled, own: f64) -> (f64, f64) {
    let (drive, geometry) = (&assembled.built.drive, assembled.built.drive.geometry());
    let unit = geometry.strokes().next().map_or(1, |s| s.unit);
    // Conventional zones lie on them where they are not shingled.
    let zones = drive.unshingled().0 > 0 && assembled.built.layer.facts().zones.is_some();
    let aside =
        if assembled.built.entry.conventional || zones { 0 } else { drive.spec().bands.random_access * unit };
    let aside = geometry.track_start(TrackNo(aside.min(geometry.tracks()))).0;
    let counted = drive.counted_blocks().0 as f64;
    let outside = counted - aside as f64;
    let efficiency = own / if own > outside { counted } else { outside };
    (efficiency * drive.head_width() as f64, efficiency)
}
