//! The fields of a drive file.

use super::controller::controller;
use super::reader::{ANGLE, BLOCKS, CYLINDERS, Log, RATE, RPM, Reader, SURFACES, TIME, TRACKS, rows, time};
use super::{BandDefaults, DriveModel, DriveSpec, places};
use crate::geometry::{GeometrySpec, Layout, REVOLUTION};
use crate::interference::{Interference, PhysicalProfile};
use crate::mechanics::{Distance, MechanicsSpec, Model, SeekCurve};
use crate::{DriveError, Result};
use smrlab_units::{Blocks, SimTime};
use toml::{Table, Value};

/// What the reader asks for in a file, in its order: place, what is accepted, and whether it has to be there.
pub(super) fn asked(text: &str) -> Vec<(String, String, bool)> {
    let log = Log::default();
    if let Ok(table) = text.parse::<Table>() {
        drive(&Reader::new(&table, "", &log));
    }
    log.asked.into_inner()
}

pub(super) fn parse(text: &str) -> Result<DriveModel> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(1, |s| text[..s.start].lines().count().max(1));
        DriveError::one(format!("line {line}"), e.message().to_owned())
    })?;
    let log = Log::default();
    let root = Reader::new(&table, "", &log);
    let spec = drive(&root);
    root.finish();
    log.faults.take().finish()?;
    let spec = spec.expect("a drive without faults is complete");
    DriveModel::new(spec, log.provenance.into_inner())
}

fn drive(r: &Reader<'_>) -> Option<DriveSpec> {
    r.asked("schema", "1", true);
    if r.get("schema").and_then(Value::as_integer) != Some(1) {
        r.fault("schema", "not accepted: 1 (the version of the file format)");
    }
    let (name, summary, reference) = (r.text("name"), r.text("summary"), r.text("reference"));
    let interference = r.table("interference").and_then(interference);
    let geometry = r.table("geometry").and_then(geometry);
    let mechanics = r.table("mechanics").and_then(mechanics);
    let bands = r.opt_table("bands").map(bands);
    let cache = r.opt_table("persistent_cache").map(super::cache::parse);
    let controller = r.opt_table("controller").map(controller);
    let counted = r.opt_count("counted_blocks", BLOCKS).map(Blocks);
    let interference = interference?;
    let (mechanics, model) = mechanics?;
    Some(DriveSpec {
        name: name?.to_owned(),
        summary: summary?.to_owned(),
        reference: reference?.to_owned(),
        geometry: GeometrySpec { toward: interference.toward(), ..geometry? },
        mechanics,
        model,
        interference,
        bands: bands.unwrap_or_default(),
        cache,
        counted,
        controller: match controller {
            Some(c) => Some(c?),
            None => None,
        },
    })
}

/// `[interference]`: either `blocks`, or `s_id` and `s_od` with the angular reach.
fn interference(r: Reader<'_>) -> Option<Interference> {
    let blocks = r.opt_count("blocks", BLOCKS);
    let out = if let Some(n) = blocks {
        Some(Interference::blocks(n))
    } else {
        let (s_id, s_od) = (r.count32("s_id", TRACKS), r.count32("s_od", TRACKS));
        let phi = |key| r.opt_number(key, ANGLE).map_or(0, angle);
        let (phi_cw, phi_ccw) = (phi("phi_cw"), phi("phi_ccw"));
        s_id.zip(s_od).map(|(i, o)| {
            Interference::Physical(PhysicalProfile { s_id: i, s_od: o, phi_cw, phi_ccw, wave: 0 })
        })
    };
    r.finish();
    out
}

fn angle(revolutions: f64) -> u64 {
    (revolutions * REVOLUTION as f64).round() as u64
}

fn geometry(r: Reader<'_>) -> Option<GeometrySpec> {
    let surfaces = r.count32("surfaces", SURFACES);
    let layout = r.choice(
        "layout",
        &["surface", "cylinder", "cylinder-alternate", "zone-alternate", "hybrid", "listed"],
    );
    let layout = match layout {
        Some("hybrid") => r.count32("group_cylinders", CYLINDERS).map(|width| Layout::Hybrid { width }),
        Some("cylinder") => Some(Layout::Cylinder { alternate: false }),
        Some("zone-alternate") => Some(Layout::ZoneAlternate),
        Some("listed") => Some(Layout::Listed),
        Some("cylinder-alternate") => Some(Layout::Cylinder { alternate: true }),
        Some(_) => Some(Layout::Surface),
        None => None,
    };
    let skew = |key| r.number(key, ANGLE).map(angle);
    let (track_skew, cylinder_skew) = (skew("track_skew"), skew("cylinder_skew"));
    let zones = r.table("zones").and_then(places::zones);
    let defects = places::listed(&r, &places::DEFECTS);
    let slips = places::listed(&r, &places::SLIPS);
    let groups = places::listed(&r, &places::GROUPS);
    let runs = places::listed(&r, &places::RUNS);
    let remaps = places::listed(&r, &places::REMAPS);
    r.finish();
    Some(GeometrySpec {
        surfaces: surfaces?,
        zones: zones?,
        layout: layout?,
        toward: crate::geometry::Toward::Inner,
        track_skew: track_skew?,
        cylinder_skew: cylinder_skew?,
        defects: defects?,
        slips: slips?,
        groups: groups?,
        runs: runs?,
        remaps: remaps?,
    })
}

fn mechanics(r: Reader<'_>) -> Option<(MechanicsSpec, Model)> {
    let rpm = r.count32("rpm", RPM);
    let model = r.choice("model", Model::NAMES).and_then(Model::named);
    let distance = match r.choice("seek_over", &["cylinders", "blocks"]) {
        Some("blocks") => Distance::Blocks,
        _ => Distance::Cylinders,
    };
    let read_seek = r.table("read_seek").and_then(seek);
    let write_seek = match r.opt_table("write_seek") {
        Some(t) => seek(t),
        None => read_seek.clone(),
    };
    let t = |key| r.number(key, TIME).map(time);
    let (head_switch, write_settle) = (t("head_switch"), t("write_settle"));
    let (read_overhead, write_overhead) = (t("read_overhead"), t("write_overhead"));
    let write_head_switch = r.opt_number("write_head_switch", TIME).map(time);
    let rate = r.opt_number("rate", RATE).map(|n| n as u64);
    r.finish();
    let spec = MechanicsSpec {
        rpm: rpm?,
        distance,
        read_seek: read_seek?,
        write_seek: write_seek?,
        head_switch: head_switch?,
        write_head_switch,
        write_settle: write_settle?,
        read_overhead: read_overhead?,
        write_overhead: write_overhead?,
        read_late: Blocks::ZERO,
        one_place: 0,
        rate,
    };
    Some((spec, model?))
}

/// `[mechanics.read_seek]`: `curve` says which numbers belong to it. A full distance of 0 stands for the whole drive.
fn seek(r: Reader<'_>) -> Option<SeekCurve> {
    let t = |key| r.number(key, TIME).map(time);
    let curve = match r.choice("curve", &["constant", "sqrt", "three-point", "table", "directed", "nearest"])
    {
        Some("constant") => t("time").map(SeekCurve::Constant),
        Some("sqrt") => t("base").zip(t("span")).map(|(base, span)| SeekCurve::Sqrt { base, span, full: 0 }),
        Some("three-point") => {
            let (single, average, full_stroke) = (t("single"), t("average"), t("full_stroke"));
            (|| {
                Some(SeekCurve::ThreePoint {
                    single: single?,
                    average: average?,
                    full_stroke: full_stroke?,
                    full: 0,
                })
            })()
        }
        Some(curve @ ("directed" | "nearest")) => {
            let points = |key| r.table(key).and_then(points);
            let (rising, falling) = (points("rising"), points("falling"));
            rising.zip(falling).map(|(rising, falling)| match curve {
                "directed" => SeekCurve::Directed { rising, falling },
                _ => SeekCurve::Nearest { rising, falling },
            })
        }
        Some(_) => listed(&r).map(SeekCurve::Table),
        None => None,
    };
    if let Some(SeekCurve::ThreePoint { single, average, full_stroke, .. }) = &curve
        && !(single <= average && average <= full_stroke)
    {
        r.fault("average", "not accepted: single <= average <= full_stroke");
    }
    r.finish();
    curve
}

/// Points of one direction: kind and source are those of the whole list.
fn points(r: Reader<'_>) -> Option<Vec<(u64, SimTime)>> {
    let points = listed(&r);
    r.finish();
    points
}

/// Pairs of distance and time.
fn listed(r: &Reader<'_>) -> Option<Vec<(u64, SimTime)>> {
    let rows = rows(r, &["distance", "time in ns"], 2);
    r.provenance(rows.as_ref().map(|n| n.len().to_string()), "points");
    let points: Vec<(u64, SimTime)> = rows?.iter().map(|p| (p[0], SimTime(p[1]))).collect();
    let ascending = points.windows(2).all(|w| w[0].0 < w[1].0);
    if points.is_empty() || points[0].0 == 0 || !ascending {
        r.fault("list", "not accepted: at least one point, distances from 1 rising");
        return None;
    }
    Some(points)
}

/// `[bands]`: what layers take where the user gives nothing.
fn bands(r: Reader<'_>) -> BandDefaults {
    let n = |key| r.opt_count(key, TRACKS);
    let (tracks, random_access) = (n("tracks"), n("random_access"));
    let blocks = r.opt_count("blocks", BLOCKS).map(Blocks);
    r.finish();
    BandDefaults { tracks, random_access: random_access.unwrap_or(0), blocks }
}
