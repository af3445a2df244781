//! Writes a drive file: the reader gives back the same parts.

use super::controller::{ControllerSpec, OVERHEADS};
use super::places::{self, Rows};
use super::{CacheSpec, DriveSpec};
use crate::geometry::{GeometrySpec, Layout, REVOLUTION};
use crate::interference::Interference;
use crate::mechanics::{Distance, MechanicsSpec, SeekCurve};
use smrlab_units::SimTime;
use std::fmt::Write;

/// Where the numbers of a written file come from: `kind` and `source` of a field.
pub type Origin<'a> = &'a dyn Fn(&str) -> (&'static str, String);

/// Writes `spec` as a drive file.
pub fn write(spec: &DriveSpec, origin: Origin<'_>) -> String {
    let mut w = Writer { out: String::new(), table: String::new(), origin };
    w.line("schema = 1");
    w.text("name", &spec.name);
    w.text("summary", &spec.summary);
    w.text("reference", &spec.reference);
    if let Some(n) = spec.counted {
        w.number("counted_blocks", &n.0.to_string(), "blk");
    }
    w.geometry(&spec.geometry);
    w.interference(&spec.interference);
    if spec.bands.tracks.is_some() || spec.bands.blocks.is_some() || spec.bands.random_access > 0 {
        w.begin("bands");
        if let Some(n) = spec.bands.tracks {
            w.number("tracks", &n.to_string(), "tracks");
        }
        if spec.bands.random_access > 0 {
            w.number("random_access", &spec.bands.random_access.to_string(), "tracks");
        }
        if let Some(n) = spec.bands.blocks {
            w.number("blocks", &n.0.to_string(), "blk");
        }
    }
    w.mechanics(spec);
    if let Some(c) = &spec.controller {
        w.controller(c);
    }
    if let Some(c) = &spec.cache {
        w.cache(c);
    }
    w.out
}

struct Writer<'a> {
    out: String,
    table: String,
    origin: Origin<'a>,
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn begin(&mut self, table: &str) {
        table.clone_into(&mut self.table);
        let _ = write!(self.out, "\n[{table}]\n");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {}", quoted(value)));
    }

    fn number(&mut self, key: &str, value: &str, unit: &str) {
        let field = if self.table.is_empty() { key.to_owned() } else { format!("{}.{key}", self.table) };
        let (kind, source) = (self.origin)(&field);
        let source = quoted(&source);
        self.line(&format!(
            "{key} = {{ value = {value}, unit = \"{unit}\", kind = \"{kind}\", source = {source} }}"
        ));
    }

    fn time(&mut self, key: &str, t: SimTime) {
        self.number(key, &t.0.to_string(), "ns");
    }

    /// Kind and source of a whole table.
    fn whole(&mut self) {
        let (kind, source) = (self.origin)(&self.table);
        self.text("kind", kind);
        self.text("source", &source);
    }

    fn rows<N: ToString>(&mut self, rows: impl Iterator<Item = Vec<N>>) {
        self.line("list = [");
        for row in rows {
            let cells: Vec<String> = row.iter().map(N::to_string).collect();
            self.line(&format!("    [{}],", cells.join(", ")));
        }
        self.line("]");
        self.whole();
    }

    fn geometry(&mut self, g: &GeometrySpec) {
        self.begin("geometry");
        self.number("surfaces", &g.surfaces.to_string(), "surfaces");
        let layout = match g.layout {
            Layout::Cylinder { alternate: false } => "cylinder",
            Layout::Cylinder { alternate: true } => "cylinder-alternate",
            Layout::ZoneAlternate => "zone-alternate",
            Layout::Surface => "surface",
            Layout::Hybrid { .. } => "hybrid",
            Layout::Listed => "listed",
        };
        self.text("layout", layout);
        if let Layout::Hybrid { width } = g.layout {
            self.number("group_cylinders", &width.to_string(), "cylinders");
        }
        for (key, angle) in [("track_skew", g.track_skew), ("cylinder_skew", g.cylinder_skew)] {
            self.number(key, &format!("{:?}", angle as f64 / REVOLUTION as f64), "rev");
        }
        self.begin("geometry.zones");
        self.line("# cylinders, sectors a track, spare sectors, spare cylinders, left out at the front and at the end,");
        self.line("# spares a range of cylinders, cylinders in a range, track skew, cylinder skew, start of the first track");
        self.rows(g.zones.iter().map(|z| {
            let mut row = vec![z.cylinders, z.sectors, z.spare_sectors, z.spare_cylinders];
            row.extend([z.front, z.end, z.range_spares, z.range_cylinders]);
            let skew = z.skew.iter().flat_map(|s| [s.track, s.cylinder, s.start]);
            row.iter().map(u32::to_string).chain(skew.map(|s| places::in_sectors(s, z.sectors))).collect()
        }));
        self.places(&places::DEFECTS, &g.defects);
        self.places(&places::SLIPS, &g.slips);
        self.places(&places::GROUPS, &g.groups);
        self.places(&places::RUNS, &g.runs);
        self.places(&places::REMAPS, &g.remaps);
    }

    fn places<T>(&mut self, table: &Rows<T>, items: &[T]) {
        if let Some((name, rows)) = table.written(items) {
            self.begin(&name);
            self.line(&table.legend());
            self.rows(rows);
        }
    }

    fn interference(&mut self, i: &Interference) {
        self.begin("interference");
        match i {
            Interference::Blocks(p) => self.number("blocks", &p.reach.to_string(), "blk"),
            Interference::Physical(p) => {
                self.number("s_id", &p.s_id.to_string(), "tracks");
                self.number("s_od", &p.s_od.to_string(), "tracks");
                for (key, phi) in [("phi_cw", p.phi_cw), ("phi_ccw", p.phi_ccw)] {
                    if phi > 0 {
                        self.number(key, &format!("{:?}", phi as f64 / REVOLUTION as f64), "rev");
                    }
                }
            }
        }
    }

    fn mechanics(&mut self, spec: &DriveSpec) {
        let m: &MechanicsSpec = &spec.mechanics;
        self.begin("mechanics");
        self.text("model", spec.model.name());
        self.number("rpm", &m.rpm.to_string(), "1/min");
        let over = if m.distance == Distance::Blocks { "blocks" } else { "cylinders" };
        self.text("seek_over", over);
        self.time("head_switch", m.head_switch);
        if let Some(t) = m.write_head_switch {
            self.time("write_head_switch", t);
        }
        self.time("write_settle", m.write_settle);
        self.time("read_overhead", m.read_overhead);
        self.time("write_overhead", m.write_overhead);
        if let Some(rate) = m.rate {
            self.number("rate", &rate.to_string(), "B/s");
        }
        self.begin("mechanics.read_seek");
        self.seek(&m.read_seek);
        if m.write_seek != m.read_seek {
            self.begin("mechanics.write_seek");
            self.seek(&m.write_seek);
        }
    }

    fn seek(&mut self, curve: &SeekCurve) {
        match curve {
            SeekCurve::Constant(t) => {
                self.text("curve", "constant");
                self.time("time", *t);
            }
            SeekCurve::Sqrt { base, span, .. } => {
                self.text("curve", "sqrt");
                self.time("base", *base);
                self.time("span", *span);
            }
            SeekCurve::ThreePoint { single, average, full_stroke, .. } => {
                self.text("curve", "three-point");
                self.time("single", *single);
                self.time("average", *average);
                self.time("full_stroke", *full_stroke);
            }
            SeekCurve::Directed { rising, falling } | SeekCurve::Nearest { rising, falling } => {
                let directed = matches!(curve, SeekCurve::Directed { .. });
                self.text("curve", if directed { "directed" } else { "nearest" });
                let table = self.table.clone();
                for (name, points) in [("rising", rising), ("falling", falling)] {
                    self.begin(&format!("{table}.{name}"));
                    self.rows(points.iter().map(|p| vec![p.0, p.1.0]));
                }
            }
            SeekCurve::Table(points) => {
                self.text("curve", "table");
                self.line("# distance, time in ns");
                self.rows(points.iter().map(|p| vec![p.0, p.1.0]));
            }
        }
    }

    fn cache(&mut self, c: &CacheSpec) {
        self.begin("persistent_cache");
        let size = |b: Option<smrlab_units::Blocks>| b.map(|b| b.bytes().to_string());
        let count = |n: Option<u64>| n.map(|n| n.to_string());
        let real = |x: Option<f64>| x.map(|x| format!("{x:?}"));
        let time = |t: Option<SimTime>| t.map(|t| t.0.to_string());
        let switch = |on: Option<bool>| on.map(|on| u8::from(on).to_string());
        for (key, value, unit) in [
            ("log", size(c.log), "B"),
            ("slot_tracks", real(c.slot_tracks), "tracks"),
            ("packet", size(c.packet), "B"),
            ("overhead", size(c.overhead), "B"),
            ("map_trigger", count(c.map_trigger), "1"),
            ("map_limit", count(c.map_limit), "1"),
            ("commit_turns", real(c.commit_turns), "rev"),
            ("commit_rate", count(c.commit_rate), "B/s"),
            ("commit_overhead", time(c.commit_overhead), "ns"),
            ("journal_every", count(c.journal_every), "1"),
            ("journal", time(c.journal), "ns"),
            ("round_bands", count(c.round_bands), "1"),
            ("collect_turns", real(c.collect_turns), "rev"),
            ("memory", size(c.memory), "B"),
            ("idle", time(c.idle), "ns"),
            ("bypass", switch(c.bypass), "on"),
            ("whole_bands", switch(c.whole_bands), "on"),
            ("read_late", size(c.read_late), "B"),
            ("one_place", count(c.one_place), "cylinders"),
        ] {
            if let Some(value) = value {
                self.number(key, &value, unit);
            }
        }
    }

    fn controller(&mut self, c: &ControllerSpec) {
        self.begin("controller");
        for (key, t) in OVERHEADS.iter().zip(c.overheads()) {
            self.time(key, t);
        }
        self.number("read_gather", &format!("{:?}", f64::from(c.read_gather) / 1000.0), "1");
        let b = &c.buffer;
        let on = |yes| if yes { "on" } else { "off" };
        self.begin("controller.buffer");
        self.number("segments", &b.segments.to_string(), "1");
        self.number("segment_blocks", &b.segment_blocks.to_string(), "blk");
        self.number("write_segments", &b.write_segments.to_string(), "1");
        self.text("read_ahead", b.read_ahead.name());
        self.number("read_ahead_blocks", &b.read_ahead_blocks.to_string(), "blk");
        self.text("keeps_requested", on(b.keeps_requested));
        self.text("passing_blocks", on(b.passing));
        self.text("ahead_on_hit", on(b.ahead_on_hit));
        self.text("zero_latency_reads", on(b.zero_latency[0]));
        self.text("zero_latency_writes", on(b.zero_latency[1]));
        self.text("write_back", b.write_back.name());
        self.text("written_hits", on(b.written_hits));
    }
}
