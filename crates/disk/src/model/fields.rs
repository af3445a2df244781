//! The fields of a drive file, each named once: the same walk reads a file, writes one, and says what its page says.

use super::form::{ANGLE, BLOCKS, CYLINDERS, Form, LENGTH, RATE, TIME, TRACKS, count, count32};
use super::reader::{FieldDoc, Provenance, Reader};
use super::{BandDefaults, ControllerSpec, DriveSpec, cache, places};
use crate::geometry::{GeometrySpec, Layout};
use crate::interference::Interference;
use crate::mechanics::{Distance, MechanicsSpec, Model, SeekCurve};
use crate::{DriveError, Result};
use smrlab_units::{Blocks, SimTime};
use toml::Table;

/// Reads a file.
pub(super) fn read(text: &str) -> Result<(DriveSpec, Vec<Provenance>)> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(1, |s| text[..s.start].lines().count().max(1));
        DriveError::one(format!("line {line}"), e.message().to_owned())
    })?;
    let mut spec = nothing();
    let reader = Reader::read(&table, |r| drive(r, &mut spec));
    reader.faults.finish()?;
    Ok((spec, reader.provenance))
}

/// What a file is read into.
fn nothing() -> DriveSpec {
    let (none, no_seek) = (SimTime::ZERO, SeekCurve::Constant(SimTime::ZERO));
    let mechanics = MechanicsSpec {
        rpm: 0,
        distance: Distance::Cylinders,
        read_seek: no_seek.clone(),
        write_seek: no_seek,
        head_switch: none,
        write_head_switch: None,
        write_settle: none,
        read_overhead: none,
        write_overhead: none,
        read_late: Blocks::ZERO,
        one_place: 0,
        rate: None,
    };
    DriveSpec {
        name: String::new(),
        summary: String::new(),
        reference: String::new(),
        geometry: GeometrySpec::default(),
        mechanics,
        model: Model::Full,
        interference: Interference::tracks(1),
        bands: BandDefaults::default(),
        cache: None,
        counted: None,
        controller: None,
    }
}

pub(super) fn drive(f: &mut impl Form, d: &mut DriveSpec) {
    f.doc("1, the version of the format").schema();
    f.doc("short name, in lower case").text("name", &mut d.name);
    f.doc("one line for `smrlab list drives`").text("summary", &mut d.summary);
    f.doc("where the drive comes from").text("reference", &mut d.reference);
    f.doc("blocks that count as its size, where guards are kept outside: no layer gives the host more; default: all of the geometry");
    f.optional("counted_blocks", &BLOCKS, &mut d.counted);
    f.table("geometry", |f| geometry(f, &mut d.geometry));
    f.table("interference", |f| interference(f, &mut d.interference));
    d.geometry.toward = d.interference.toward();
    let some = d.bands != BandDefaults::default();
    f.opt_table("bands", some, |f| bands(f, &mut d.bands));
    f.table("mechanics", |f| mechanics(f, &mut d.mechanics, &mut d.model));
    let mut controller = d.controller.unwrap_or(ControllerSpec::NONE);
    if f.opt_table("controller", d.controller.is_some(), |f| controller.fields(f)) {
        d.controller = Some(controller);
    }
    let mut measured = d.cache.unwrap_or_default();
    if f.opt_table("persistent_cache", d.cache.is_some(), |f| cache::fields(f, &mut measured)) {
        d.cache = Some(measured);
    }
}

fn geometry(f: &mut impl Form, g: &mut GeometrySpec) {
    const LAYOUTS: [(&str, Layout); 6] = [
        ("surface", Layout::Surface),
        ("cylinder", Layout::Cylinder { alternate: false }),
        ("cylinder-alternate", Layout::Cylinder { alternate: true }),
        ("zone-alternate", Layout::ZoneAlternate),
        ("hybrid", Layout::Hybrid { width: 0 }),
        ("listed", Layout::Listed),
    ];
    f.doc("recorded surfaces (heads)").number("surfaces", &count32(&[("surfaces", 1.0)]), &mut g.surfaces);
    let mut group = 0;
    if let Layout::Hybrid { width } = &mut g.layout {
        group = std::mem::take(width);
    }
    f.doc("the order in which PBAs fill the surfaces").choice("layout", &LAYOUTS, &mut g.layout);
    if let Layout::Hybrid { width } = &mut g.layout {
        *width = group;
        f.doc("of `hybrid`: cylinders that are filled surface by surface");
        f.number("group_cylinders", &count32(CYLINDERS), width);
    }
    f.doc("how much later the next track begins where only the surface changes");
    f.number("track_skew", &ANGLE, &mut g.track_skew);
    f.doc("how much later the next track begins where the cylinder changes");
    f.number("cylinder_skew", &ANGLE, &mut g.cylinder_skew);
    f.table("zones", |f| {
        f.doc("a row a zone, from the outermost: cylinders and sectors a track; more columns below");
        f.rows(&places::ZONES, &mut g.zones);
    });
    places::listed(f, &places::DEFECTS, "slipped sectors: cylinder, surface, sector", &mut g.defects);
    let doc = "blocks left out of a zone's numbering: zone, first block in it, blocks";
    places::listed(f, &places::SLIPS, doc, &mut g.slips);
    let doc = "of `listed`, a row a zone: zone, cylinders in a group, and in 1e-6 rev where the first group starts and from each to the next";
    places::listed(f, &places::GROUPS, doc, &mut g.groups);
    let doc = "of `listed`, the tracks of a group in PBA order: zone, from cylinder, to cylinder (lower: outwards), surface, sectors, \
         spare sectors, and in 1e-6 rev where the first track starts and from each to the next";
    places::listed(f, &places::RUNS, doc, &mut g.runs);
    let doc = "blocks that lie on spare sectors: block, cylinder, surface, sector";
    places::listed(f, &places::REMAPS, doc, &mut g.remaps);
}

/// Either `blocks`, or `s_id` and `s_od` with the angular reach.
fn interference(f: &mut impl Form, i: &mut Interference) {
    let mut reach = match i {
        Interference::Blocks(p) => Some(p.reach),
        Interference::Physical(_) => None,
    };
    f.doc(
        "block profile: blocks damaged by a write from its first one on, itself included; instead of tracks",
    );
    f.optional("blocks", &count(LENGTH), &mut reach);
    if let Some(reach) = reach {
        *i = Interference::blocks(reach);
    }
    if let Interference::Physical(p) = i {
        let tracks = count32(TRACKS);
        f.doc("tracks that a write touches towards the inner diameter, its own included: the head width");
        f.number("s_id", &tracks, &mut p.s_id);
        f.doc("tracks that a write touches towards the outer diameter, its own included");
        f.number("s_od", &tracks, &mut p.s_od);
        f.doc("how far along the track damage reaches behind a write");
        f.unless_zero("phi_cw", &ANGLE, &mut p.phi_cw);
        f.doc("how far along the track damage reaches in front of a write");
        f.unless_zero("phi_ccw", &ANGLE, &mut p.phi_ccw);
    }
}

/// What layers take where the user gives nothing.
fn bands(f: &mut impl Form, b: &mut BandDefaults) {
    let tracks = count(TRACKS);
    f.doc("tracks in a band where a layer is given none; default: 4");
    f.optional("tracks", &tracks, &mut b.tracks);
    f.doc("tracks from PBA 0 on that are set aside for random access, not shingled on a drive with a block profile; default: none");
    f.unless_zero("random_access", &tracks, &mut b.random_access);
    f.doc("blocks in a band, on drives with a block profile").optional("blocks", &BLOCKS, &mut b.blocks);
}

fn mechanics(f: &mut impl Form, m: &mut MechanicsSpec, model: &mut Model) {
    const DISTANCES: [(&str, Distance); 2] =
        [("cylinders", Distance::Cylinders), ("blocks", Distance::Blocks)];
    let models = Model::ALL.map(|model| (model.name(), model));
    f.doc("the model that the drive is meant for: `--mechanics` overrides it");
    f.choice("model", &models, model);
    f.doc("speed of rotation").number("rpm", &count32(&[("1/min", 1.0)]), &mut m.rpm);
    f.doc("what distances of the seek curve count").choice("seek_over", &DISTANCES, &mut m.distance);
    f.doc("time to change the surface").number("head_switch", &TIME, &mut m.head_switch);
    f.doc("the same before a write, where it differs");
    f.optional("write_head_switch", &TIME, &mut m.write_head_switch);
    f.doc("what a write adds after a seek or a head switch");
    f.number("write_settle", &TIME, &mut m.write_settle);
    f.doc("before a read positions").number("read_overhead", &TIME, &mut m.read_overhead);
    f.doc("before a write positions").number("write_overhead", &TIME, &mut m.write_overhead);
    f.doc("bytes a second of any transfer, where that is not the rotation's; a pass over the medium may take 50 days");
    f.optional("rate", &RATE, &mut m.rate);
    let doc = "the form of the seek curve; `write_seek` is a table of the same form, default: as for reads";
    f.table("read_seek", |f| seek(f, &mut m.read_seek, doc));
    let doc = "the form of the curve for writes, with the fields of `read_seek`";
    if !f.opt_table("write_seek", m.write_seek != m.read_seek, |f| seek(f, &mut m.write_seek, doc)) {
        m.write_seek = m.read_seek.clone();
    }
}

/// The words of seek curves.
const CURVES: [&str; 6] = ["constant", "sqrt", "three-point", "table", "directed", "nearest"];

/// A curve of this word without numbers. A full distance of 0 stands for the whole drive.
fn curve(word: &str) -> SeekCurve {
    let (none, full) = (SimTime::ZERO, 0);
    match word {
        "constant" => SeekCurve::Constant(none),
        "sqrt" => SeekCurve::Sqrt { base: none, span: none, full },
        "three-point" => SeekCurve::ThreePoint { single: none, average: none, full_stroke: none, full },
        "table" => SeekCurve::Table(Vec::new()),
        "directed" => SeekCurve::Directed { rising: Vec::new(), falling: Vec::new() },
        _ => SeekCurve::Nearest { rising: Vec::new(), falling: Vec::new() },
    }
}

/// The curve's word says which numbers belong to it.
fn seek(f: &mut impl Form, c: &mut SeekCurve, doc: &'static str) {
    let same = |word: &str, c: &SeekCurve| std::mem::discriminant(&curve(word)) == std::mem::discriminant(c);
    let mut word = CURVES.into_iter().find(|word| same(word, c)).expect("each curve has a word");
    if !f.doc(doc).word("curve", true, &CURVES, &mut word) {
        return;
    }
    if !same(word, c) {
        *c = curve(word);
    }
    match c {
        SeekCurve::Constant(time) => {
            f.doc("of `constant`: the time of every seek").number("time", &TIME, time);
        }
        SeekCurve::Sqrt { base, span, .. } => {
            f.doc("of `sqrt`: the shortest seek").number("base", &TIME, base);
            f.doc("of `sqrt`: what the longest seek adds").number("span", &TIME, span);
        }
        SeekCurve::ThreePoint { single, average, full_stroke, .. } => {
            let right = [
                f.doc("of `three-point`: to the next cylinder").number("single", &TIME, single),
                f.doc("of `three-point`: over a third of the drive").number("average", &TIME, average),
                f.doc("of `three-point`: over the whole drive").number("full_stroke", &TIME, full_stroke),
            ];
            if right == [true; 3] && !(single <= average && average <= full_stroke) {
                f.fault("average", "not accepted: single <= average <= full_stroke");
            }
        }
        SeekCurve::Table(list) => {
            points(
                f,
                list,
                "of `table`: rows of distance and nanoseconds, distances rising; straight lines between and beyond, never below 0",
            );
        }
        SeekCurve::Directed { rising, falling } | SeekCurve::Nearest { rising, falling } => {
            let doc = "of `directed` and `nearest`: the same for seeks to higher cylinders; of `nearest` only the nearest row counts";
            f.table("rising", |f| points(f, rising, doc));
            f.table("falling", |f| {
                points(f, falling, "of `directed` and `nearest`: the same for seeks back")
            });
        }
    }
}

fn points(f: &mut impl Form, list: &mut Vec<(u64, SimTime)>, doc: &'static str) {
    let ascending = |list: &[(u64, SimTime)]| list.windows(2).all(|w| w[0].0 < w[1].0);
    if f.doc(doc).rows(&places::POINTS, list) && !(list.first().is_some_and(|p| p.0 > 0) && ascending(list)) {
        f.fault("list", "not accepted: at least one point, distances from 1 rising");
    }
}

/// Every table, so that the reader asks for what may stand in it.
const TABLES: &str = "[geometry.zones]\n[geometry.defects]\n[geometry.slips]\n[geometry.groups]\n[geometry.runs]\n\
    [geometry.remaps]\n[interference]\n[bands]\n[mechanics.write_seek]\n[controller.buffer]\n[persistent_cache]\n";

/// All fields, in the order in which the reader asks for them.
pub fn fields() -> Vec<FieldDoc> {
    let mut out: Vec<FieldDoc> = Vec::new();
    let whole = format!("{TABLES}[geometry]\nlayout = \"hybrid\"\n[mechanics.read_seek]\n");
    let curves = CURVES.iter().map(|curve| {
        format!("[mechanics.read_seek]\ncurve = \"{curve}\"\n[mechanics.read_seek.rising]\n[mechanics.read_seek.falling]\n")
    });
    for text in [whole].into_iter().chain(curves) {
        let table: Table = text.parse().expect("a text of tables");
        let asked = Reader::read(&table, |r| drive(r, &mut nothing())).asked;
        for mut field in asked {
            let curve = field.path.starts_with("mechanics.read_seek.") && !field.path.ends_with(".curve");
            field.needed &= !curve && field.path != "geometry.group_cylinders";
            match out.iter_mut().find(|f| f.path == field.path) {
                Some(known) => known.needed |= field.needed,
                None => {
                    let table = |f: &FieldDoc| f.path.rsplit_once('.').map(|(table, _)| table.to_owned());
                    let behind = out.iter().rposition(|f| table(f) == table(&field));
                    out.insert(behind.map_or(out.len(), |i| i + 1), field);
                }
            }
        }
    }
    out
}
