//! A drive file of a drive: every number with its unit, kind and source.

use super::Fitted;
use smrlab_disk::geometry::{Layout, REVOLUTION};
use smrlab_disk::{Interference, SeekCurve};
use smrlab_units::SimTime;
use std::fmt::Write;

impl Fitted {
    /// The drive file; `DriveModel::from_toml` reads the same drive from it.
    pub fn toml(&self) -> String {
        let mut w = Writer { out: String::new(), table: "", fitted: self };
        w.out.push_str("schema = 1\n");
        w.text("name", &self.spec.name);
        w.text("summary", &self.spec.summary);
        w.text("reference", &self.spec.reference);
        w.geometry();
        w.interference();
        w.begin("bands");
        if let Some(tracks) = self.spec.bands.tracks {
            w.number("tracks", &tracks.to_string(), "tracks");
        }
        w.mechanics();
        w.out
    }
}

struct Writer<'a> {
    out: String,
    table: &'static str,
    fitted: &'a Fitted,
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " "))
}

impl Writer<'_> {
    fn begin(&mut self, table: &'static str) {
        self.table = table;
        let _ = writeln!(self.out, "\n[{table}]");
    }

    fn text(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.out, "{key} = {}", quoted(value));
    }

    fn number(&mut self, key: &str, value: &str, unit: &str) {
        let (kind, source) = self.fitted.origin(&format!("{}.{key}", self.table));
        let source = quoted(&source);
        let _ = writeln!(
            self.out,
            "{key} = {{ value = {value}, unit = \"{unit}\", kind = \"{kind}\", source = {source} }}"
        );
    }

    fn time(&mut self, key: &str, t: SimTime) {
        self.number(key, &t.0.to_string(), "ns");
    }

    fn rows(&mut self, rows: impl Iterator<Item = Vec<u64>>) {
        self.out.push_str("list = [\n");
        for row in rows {
            let _ = writeln!(self.out, "    {row:?},");
        }
        self.out.push_str("]\n");
        let (kind, source) = self.fitted.origin(self.table);
        self.text("kind", kind);
        self.text("source", &source);
    }

    fn geometry(&mut self) {
        let g = &self.fitted.spec.geometry;
        self.begin("geometry");
        self.number("surfaces", &g.surfaces.to_string(), "surfaces");
        match g.layout {
            Layout::Hybrid { width } => {
                self.text("layout", "hybrid");
                self.number("group_cylinders", &width.to_string(), "cylinders");
            }
            Layout::Surface => self.text("layout", "surface"),
            _ => self.text("layout", "cylinder"),
        }
        for (key, angle) in [("track_skew", g.track_skew), ("cylinder_skew", g.cylinder_skew)] {
            self.number(key, &format!("{:?}", angle as f64 / REVOLUTION as f64), "rev");
        }
        self.begin("geometry.zones");
        self.out.push_str("# cylinders, sectors a track, spare sectors a track\n");
        self.rows(
            g.zones
                .iter()
                .map(|z| [z.cylinders, z.sectors, z.spare_sectors].iter().map(|n| u64::from(*n)).collect()),
        );
    }

    fn interference(&mut self) {
        self.begin("interference");
        if let Interference::Physical(p) = self.fitted.spec.interference {
            self.number("s_id", &p.s_id.to_string(), "tracks");
            self.number("s_od", &p.s_od.to_string(), "tracks");
        }
    }

    fn mechanics(&mut self) {
        let m = &self.fitted.spec.mechanics;
        self.begin("mechanics");
        self.text("model", "full");
        self.number("rpm", &m.rpm.to_string(), "1/min");
        self.text("seek_over", "cylinders");
        for (key, t) in [
            ("head_switch", m.head_switch),
            ("write_settle", m.write_settle),
            ("read_overhead", m.read_overhead),
            ("write_overhead", m.write_overhead),
        ] {
            self.time(key, t);
        }
        for (table, curve) in [("mechanics.read_seek", &m.read_seek), ("mechanics.write_seek", &m.write_seek)]
        {
            self.begin(table);
            match curve {
                SeekCurve::Table(points) => {
                    self.text("curve", "table");
                    self.out.push_str("# cylinders, nanoseconds\n");
                    self.rows(points.iter().map(|(d, t)| vec![*d, t.0]));
                }
                SeekCurve::ThreePoint { single, average, full_stroke, .. } => {
                    self.text("curve", "three-point");
                    for (key, t) in [("single", single), ("average", average), ("full_stroke", full_stroke)] {
                        self.time(key, *t);
                    }
                }
                SeekCurve::Constant(t) => {
                    self.text("curve", "constant");
                    self.time("time", *t);
                }
                SeekCurve::Sqrt { base, span, .. } => {
                    self.text("curve", "sqrt");
                    self.time("base", *base);
                    self.time("span", *span);
                }
                // No fit makes others.
                _ => self.text("curve", "nearest"),
            }
        }
    }
}
