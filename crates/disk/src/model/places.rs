//! The tables of a geometry whose rows are whole numbers: what each column means, read and written.

use super::reader::Reader;
use super::reader::{rows, table};
use crate::geometry::{Defect, GroupSpec, REVOLUTION, Remap, RunSpec, Slip, ZoneSkew, ZoneSpec, angle_of};
use toml::Value;

/// Angles in rows are millionths of a revolution.
const MILLIONTH: u64 = REVOLUTION / 1_000_000;

/// The columns of a zone; those of a skew of the zone's own (all three) are in sectors, and need not be whole.
const ZONE_COLUMNS: [&str; 11] = [
    "cylinders",
    "sectors a track",
    "spare sectors a track",
    "spare cylinders",
    "blocks left out at the front",
    "blocks left out at the end",
    "spare blocks a range of cylinders",
    "cylinders in a range",
    "track skew",
    "cylinder skew",
    "start of the first track",
];

/// `[geometry.zones]`: from the outermost; kind and source are those of the whole list.
pub(super) fn zones(r: Reader<'_>) -> Option<Vec<ZoneSpec>> {
    let cell = |i: usize, v: &Value| {
        let whole = v.as_integer().filter(|n| *n >= 0).map(|n| n as f64);
        whole.or_else(|| v.as_float().filter(|x| i >= 8 && *x >= 0.0))
    };
    let rows = table(&r, (&ZONE_COLUMNS, 2), cell);
    let cells = |row: &Vec<f64>| row.iter().take(8).enumerate().map(|(i, n)| (ZONE_COLUMNS[i], *n)).collect();
    let rows = rows.filter(|rows| fit(&r, rows.iter().map(cells)));
    r.provenance(rows.as_ref().map(|n| n.len().to_string()), "zones");
    r.finish();
    let n = |row: &[f64], i: usize| row.get(i).map_or(0, |&n| n as u32);
    let skew = |row: &[f64], i: usize| row.get(i).map_or(0, |&n| angle_of(n, row[1] as u32));
    Some(
        rows?
            .iter()
            .map(|row| ZoneSpec {
                cylinders: n(row, 0),
                sectors: n(row, 1),
                spare_sectors: n(row, 2),
                spare_cylinders: n(row, 3),
                front: n(row, 4),
                end: n(row, 5),
                range_spares: n(row, 6),
                range_cylinders: row.get(7).map_or(1, |&n| n as u32),
                skew: (row.len() > 8).then(|| ZoneSkew {
                    track: skew(row, 8),
                    cylinder: skew(row, 9),
                    start: skew(row, 10),
                }),
            })
            .collect(),
    )
}

/// An angle in sectors, of which a revolution has so many, as a row says it: [`zones`] reads the same angle again.
pub(super) fn in_sectors(angle: u64, of: u32) -> String {
    let whole = angle * u64::from(of) / REVOLUTION;
    if angle_of(whole as f64, of) == angle {
        return whole.to_string();
    }
    format!("{:?}", angle as f64 * f64::from(of) / REVOLUTION as f64)
}

/// A table of rows that may be absent: its name, its columns (all needed), and what a row is.
pub(super) struct Rows<T: 'static> {
    name: &'static str,
    columns: &'static [&'static str],
    /// The columns whose numbers may have more than 32 bits.
    wide: &'static [usize],
    read: fn(&[u64]) -> T,
    write: fn(&T) -> Vec<u64>,
}

impl<T> Rows<T> {
    /// The table's name and the rows that it is written with; `None` for an empty one.
    pub(super) fn written<'a>(
        &'a self,
        items: &'a [T],
    ) -> Option<(String, impl Iterator<Item = Vec<u64>> + 'a)> {
        let name = format!("geometry.{}", self.name);
        (!items.is_empty()).then(|| (name, items.iter().map(self.write)))
    }

    /// What the columns are, for the file.
    pub(super) fn legend(&self) -> String {
        format!("# {}", self.columns.join(", "))
    }
}

/// The rows of a table of `[geometry]`; none where it is absent. Kind and source are those of the whole list.
pub(super) fn listed<T>(r: &Reader<'_>, table: &Rows<T>) -> Option<Vec<T>> {
    let Some(r) = r.opt_table(table.name) else { return Some(Vec::new()) };
    let rows = rows(&r, table.columns, table.columns.len());
    let cells = |row: &Vec<u64>| {
        let narrow = row.iter().enumerate().filter(|(i, _)| !table.wide.contains(i));
        narrow.map(|(i, n)| (table.columns[i], *n as f64)).collect()
    };
    let rows = rows.filter(|rows| fit(&r, rows.iter().map(cells)));
    r.provenance(rows.as_ref().map(|n| n.len().to_string()), table.name);
    r.finish();
    Some(rows?.iter().map(|row| (table.read)(row)).collect())
}

/// Whether the named cells of all rows have 32 bits; those that do not are faults.
fn fit(r: &Reader<'_>, rows: impl Iterator<Item = Vec<(&'static str, f64)>>) -> bool {
    let mut all = true;
    for (i, row) in rows.enumerate() {
        for (column, n) in row.into_iter().filter(|(_, n)| *n > f64::from(u32::MAX)) {
            r.fault(
                &format!("list[{i}]"),
                format!("{n} {column} is not accepted: a whole number below 2^32"),
            );
            all = false;
        }
    }
    all
}

/// A cell of a column that [`fit`]s.
fn narrow(n: u64) -> u32 {
    n as u32
}

fn defect(d: &[u64]) -> Defect {
    Defect { cylinder: narrow(d[0]), surface: narrow(d[1]), sector: narrow(d[2]) }
}

fn of_defect(d: &Defect) -> Vec<u64> {
    [d.cylinder, d.surface, d.sector].map(u64::from).to_vec()
}

/// `[geometry.defects]`: slipped sectors.
pub(super) const DEFECTS: Rows<Defect> = Rows {
    name: "defects",
    columns: &["cylinder", "surface", "sector"],
    wide: &[],
    read: defect,
    write: of_defect,
};

/// `[geometry.slips]`: blocks left out of a zone's numbering.
pub(super) const SLIPS: Rows<Slip> = Rows {
    name: "slips",
    columns: &["zone", "first block in the zone", "blocks"],
    wide: &[1],
    read: |s| Slip { zone: narrow(s[0]), first: s[1], blocks: narrow(s[2]) },
    write: |s| vec![u64::from(s.zone), s.first, u64::from(s.blocks)],
};

/// `[geometry.groups]` of a listed layout.
pub(super) const GROUPS: Rows<GroupSpec> = Rows {
    name: "groups",
    columns: &["zone", "cylinders in a group", "start of the first", "from a group to the next (1e-6 rev)"],
    wide: &[2, 3],
    read: |n| GroupSpec {
        zone: narrow(n[0]),
        cylinders: narrow(n[1]),
        start: n[2].saturating_mul(MILLIONTH),
        step: n[3].saturating_mul(MILLIONTH),
    },
    write: |g| vec![u64::from(g.zone), u64::from(g.cylinders), g.start / MILLIONTH, g.step / MILLIONTH],
};

/// `[geometry.runs]` of a listed layout.
pub(super) const RUNS: Rows<RunSpec> = Rows {
    name: "runs",
    columns: &[
        "zone",
        "from this cylinder of the group",
        "to this one",
        "surface",
        "sectors a track",
        "spare sectors a track",
        "start in the group (1e-6 rev)",
        "from a track to the next (1e-6 rev)",
    ],
    wide: &[6, 7],
    read: |n| RunSpec {
        zone: narrow(n[0]),
        from: narrow(n[1]),
        to: narrow(n[2]),
        surface: narrow(n[3]),
        sectors: narrow(n[4]),
        spare_sectors: narrow(n[5]),
        start: n[6].saturating_mul(MILLIONTH),
        step: n[7].saturating_mul(MILLIONTH),
    },
    write: |r| {
        let mut row: Vec<u64> =
            [r.zone, r.from, r.to, r.surface, r.sectors, r.spare_sectors].map(u64::from).to_vec();
        row.extend([r.start / MILLIONTH, r.step / MILLIONTH]);
        row
    },
};

/// `[geometry.remaps]`: blocks that lie on spare sectors.
pub(super) const REMAPS: Rows<Remap> = Rows {
    name: "remaps",
    columns: &["block", "cylinder", "surface", "sector"],
    wide: &[0],
    read: |n| Remap { block: n[0], to: defect(&n[1..]) },
    write: |r| [vec![r.block], of_defect(&r.to)].concat(),
};
