//! The registries as JSON: what `smrlab list` and `smrlab explain` show.

use crate::error::{Result, RunError};
use crate::keys;
use crate::spec::FIELDS;
use serde_json::{Value, json};
use smrlab_disk::model::OVERRIDES;
use smrlab_disk::{DRIVES, DriveModel};
use smrlab_drive::sched::{PARAMS, SCHEDULERS};
use smrlab_stl::LAYERS;
use smrlab_trace::formats::FORMATS;
use smrlab_trace::generators::GENERATORS;
use smrlab_trace::read_drive;
use smrlab_units::spec::{Param, SpecError, hint, split_item};
use std::sync::LazyLock;

/// What can be listed.
pub const KINDS: &[&str] = &[
    "drives",
    "layers",
    "arrays",
    "formats",
    "generators",
    "schedulers",
    "fields",
    "metrics",
    "drive-fields",
];

fn params(all: &[Param]) -> Value {
    all.iter()
        .map(|p| json!({"name": p.name, "accepts": p.kind.accepts(), "default": p.default, "doc": p.doc}))
        .collect()
}

fn layers() -> Vec<Value> {
    let entry = |l: &&smrlab_stl::LayerEntry| {
        let c = &l.capabilities;
        let journal = c.survives_cut && l.params.iter().any(|p| p.name == "journal");
        json!({
            "kind": "layer", "name": l.name, "aliases": l.aliases, "summary": l.summary, "reference": l.reference,
            "page": l.page, "idle": l.idle, "params": params(l.params),
            "capabilities": {
                "keeps_data": c.keeps_data,
                "survives_cut": if journal { json!("with journal=on") } else { json!(c.survives_cut) },
                "locates": c.locates,
                "stable_location": c.stable_location, "discards": c.discards,
            },
        })
    };
    LAYERS.iter().map(entry).collect()
}

fn drives() -> Vec<Value> {
    DRIVES.iter().map(|e| of_drive(e.name, &e.drive())).collect()
}

/// What is on where a drive's file has no controller.
const NO_CACHE: &str = "none in the drive's file: a write is answered when it is on the medium, nothing is read ahead, commands and bus \
    take no time; cache=on behind the drive's name gives it 16 MiB with write cache";

fn of_drive(name: &str, d: &DriveModel) -> Value {
    let provenance = d.provenance().iter();
    let numbers: Vec<Value> = provenance
        .map(|p| json!({"field": p.field, "value": p.value, "kind": p.kind, "source": p.source}))
        .collect();
    let mut out = json!({
        "kind": "drive", "name": name, "summary": d.spec().summary, "reference": d.spec().reference,
        "blocks": d.counted_blocks().0, "bytes": d.counted_blocks().bytes(), "tracks": d.geometry().tracks(),
        "surfaces": d.geometry().surfaces(), "head_width": d.head_width(),
        "mechanics": d.spec().model.name(), "numbers": numbers, "params": params(OVERRIDES),
    });
    out["controller"] = match &d.spec().controller {
        Some(c) => {
            let on = c.describe().into_iter().map(|(name, words)| (name.to_owned(), words.into()));
            Value::Object(on.collect())
        }
        None => json!({ "cache": NO_CACHE }),
    };
    out
}

/// A drive with overrides, or a drive file.
fn own_drive(text: &str) -> Option<Result<Value>> {
    let (name, pairs) = split_item(text);
    let preset = DRIVES.iter().any(|d| d.name == name);
    if !preset && !name.ends_with(".toml") || preset && pairs.is_empty() {
        return None;
    }
    let model = smrlab_disk::model::load(text, read_drive);
    Some(model.map(|d| of_drive(text, &d)).map_err(|e| RunError::field("name", e)))
}

/// The fields of a drive file.
fn drive_fields() -> Vec<Value> {
    let entry = |f: smrlab_disk::model::FieldDoc| json!({"kind": "drive-field", "name": f.path, "summary": f.doc, "accepts": f.accepts, "needed": f.needed});
    smrlab_disk::model::fields().into_iter().map(entry).collect()
}

fn formats() -> Vec<Value> {
    let entry = |f: &smrlab_trace::formats::Format| {
        json!({
            "kind": "format", "name": f.name, "aliases": f.aliases, "summary": f.summary,
            "reference": f.reference, "params": params(&f.parameters()),
        })
    };
    FORMATS.iter().map(entry).collect()
}

fn generators() -> Vec<Value> {
    let entry = |g: &smrlab_trace::generators::Generator| {
        json!({
            "kind": "generator", "name": format!("synth:{}", g.name), "summary": g.summary,
            "reference": g.reference, "params": params(&g.parameters()),
        })
    };
    GENERATORS.iter().map(entry).collect()
}

fn schedulers() -> Vec<Value> {
    let entry = |s: &smrlab_drive::sched::Scheduler| {
        json!({
            "kind": "scheduler", "name": s.name, "summary": s.summary, "reference": s.reference,
            "params": params(PARAMS),
        })
    };
    SCHEDULERS.iter().map(entry).collect()
}

fn arrays() -> Vec<Value> {
    let entry = |a: &&smrlab_array::ArrayEntry| {
        let c = &a.capabilities;
        json!({
            "kind": "array", "name": a.name, "summary": a.summary, "reference": a.reference, "page": a.page,
            "params": params(&a.parameters()),
            "capabilities": {
                "survives_a_lost_drive": c.losses > 0, "survives_cut": c.survives_cut, "discards": c.discards,
            },
        })
    };
    smrlab_array::ARRAYS.iter().map(entry).collect()
}

fn fields() -> Vec<Value> {
    FIELDS
        .iter()
        .map(|f| json!({"kind": "field", "name": f.name, "summary": f.doc, "default": f.default, "accepts": f.accepts}))
        .collect()
}

/// All entries of a kind (see [`KINDS`]; `policies` is the same as `schedulers`).
///
/// # Errors
/// An unknown kind.
pub fn list_json(kind: &str) -> Result<Value> {
    Ok(match kind {
        "drives" => drives(),
        "layers" => layers(),
        "arrays" => arrays(),
        "formats" => formats(),
        "generators" => generators(),
        "schedulers" | "policies" => schedulers(),
        "fields" => fields(),
        "drive-fields" => drive_fields(),
        "metrics" => keys::all().map(keys::json).collect(),
        other => return Err(not_known("kind", other, KINDS.iter().copied())),
    }
    .into())
}

/// A drive, a preset or a file, with overrides where they are given: as it is listed, with its zones and bands.
///
/// # Errors
/// As loading a drive.
pub fn drive_json(text: &str) -> Result<Value> {
    let d = smrlab_disk::model::load(text, read_drive).map_err(|e| RunError::field("drive", e))?;
    let mut doc = of_drive(d.name(), &d);
    let mechanics = &d.spec().mechanics;
    let rate = |sectors: u32| {
        mechanics.rate.map_or(f64::from(sectors) * 512.0 * f64::from(mechanics.rpm) / 60.0, |r| r as f64)
    };
    let zones: Vec<Value> = d.geometry().zones().map(|z| json!({
        "first_pba": z.first.0, "tracks": z.tracks, "blocks_a_track": z.sectors, "mb_per_s": rate(z.sectors) / 1e6,
    })).collect();
    doc["zones"] = zones.into();
    doc["rpm"] = mechanics.rpm.into();
    doc["medium_blocks"] = d.geometry().blocks().0.into();
    doc["bands"] = match d.bands(None) {
        Ok(b) => {
            json!({"count": b.len(), "data_blocks": b.data_blocks().0, "mean_blocks": b.data_blocks().0 / b.len().max(1)})
        }
        Err(e) => json!({"problem": e.to_string()}),
    };
    Ok(doc)
}

/// Everything that has a name: made once, for a drive takes milliseconds.
static ALL: LazyLock<Vec<Value>> = LazyLock::new(|| {
    [layers(), drives(), formats(), generators(), schedulers(), arrays(), fields()].concat()
});

/// The entry of this name, whatever it is (what follows it as parameters counts for drives only); several keys of a result where `name` means several.
///
/// # Errors
/// An unknown name, with the nearest known one.
pub fn explain_json(name: &str) -> Result<Value> {
    if let Some(drive) = own_drive(name) {
        return drive;
    }
    let name = split_item(name).0;
    let is = |v: &Value, key: &str, name: &str| match &v[key] {
        Value::Array(names) => names.iter().any(|n| n == name),
        one => one == name,
    };
    let found = |name: &str| ALL.iter().find(|v| is(v, "name", name) || is(v, "aliases", name)).cloned();
    found(name).or_else(|| found(&format!("synth:{name}"))).or_else(|| metrics(name)).ok_or_else(|| {
        let other = |v: &'static Value| v["aliases"].as_array().into_iter().flatten();
        let names = ALL.iter().flat_map(|v| std::iter::once(&v["name"]).chain(other(v)));
        let names = names
            .filter_map(Value::as_str)
            .flat_map(|n| [n, n.trim_start_matches("synth:")])
            .map(str::to_owned);
        let words = keys::all().flat_map(|k| [k.path, k.name].into_iter().chain(k.aliases.iter().copied()));
        let params = ALL.iter().filter_map(|v| v["params"].as_array()).flatten();
        let params = params.filter_map(|p| p["name"].as_str().map(str::to_owned));
        let names: Vec<String> = names.chain(words.map(str::to_owned)).chain(params).collect();
        let hint = hint(name, names.iter().map(String::as_str));
        RunError::field("name", format!("nothing is called '{name}'{hint}; smrlab list names everything"))
    })
}

/// The keys of a result that `words` mean.
fn metrics(words: &str) -> Option<Value> {
    match keys::meant(words).as_slice() {
        [] => None,
        [one] => Some(keys::json(one)),
        several => Some(json!({
            "kind": "metrics", "name": words, "metrics": several.iter().map(|k| keys::json(k)).collect::<Vec<_>>(),
        })),
    }
}

fn not_known<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> RunError {
    RunError::field(what, SpecError::unknown(what, name, known, []))
}
