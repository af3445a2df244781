//! The tables of rows: what each column means, read and written.

use super::form::{Form, Rows};
use crate::geometry::{Defect, GroupSpec, REVOLUTION, Remap, RunSpec, Slip, ZoneSkew, ZoneSpec, angle_of};
use smrlab_units::SimTime;

/// Angles in rows are millionths of a revolution.
const MILLIONTH: u64 = REVOLUTION / 1_000_000;

/// Zones from the outermost. The columns of a skew of the zone's own (all three) are in sectors, and need not be whole.
pub(super) const ZONES: Rows<ZoneSpec> = Rows {
    name: "zones",
    columns: &[
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
    ],
    needed: 2,
    wide: &[8, 9, 10],
    real: 8,
    read: |row| {
        let n = |i: usize| row.get(i).map_or(0, |&n| n as u32);
        let skew = |i: usize| row.get(i).map_or(0, |&n| angle_of(n, row[1] as u32));
        ZoneSpec {
            cylinders: n(0),
            sectors: n(1),
            spare_sectors: n(2),
            spare_cylinders: n(3),
            front: n(4),
            end: n(5),
            range_spares: n(6),
            range_cylinders: row.get(7).map_or(1, |&n| n as u32),
            skew: (row.len() > 8).then(|| ZoneSkew { track: skew(8), cylinder: skew(9), start: skew(10) }),
        }
    },
    write: |z| {
        let mut row = vec![z.cylinders, z.sectors, z.spare_sectors, z.spare_cylinders];
        row.extend([z.front, z.end, z.range_spares, z.range_cylinders]);
        let skew = z.skew.iter().flat_map(|s| [s.track, s.cylinder, s.start]);
        row.iter().map(u32::to_string).chain(skew.map(|s| in_sectors(s, z.sectors))).collect()
    },
};

/// An angle in sectors, of which a revolution has so many, as a row says it: [`ZONES`] read the same angle again.
fn in_sectors(angle: u64, of: u32) -> String {
    let whole = angle * u64::from(of) / REVOLUTION;
    if angle_of(whole as f64, of) == angle {
        return whole.to_string();
    }
    format!("{:?}", angle as f64 * f64::from(of) / REVOLUTION as f64)
}

/// A table of `[geometry]` that is left out where it has no rows. Kind and source are those of the whole list.
pub(super) fn listed<T>(f: &mut impl Form, of: &Rows<T>, doc: &'static str, items: &mut Vec<T>) {
    f.opt_table(of.name, !items.is_empty(), |f| {
        f.doc(doc).rows(of, items);
    });
}

/// Rows of whole numbers, all of which are needed.
const fn whole<T>(
    name: &'static str,
    columns: &'static [&'static str],
    wide: &'static [usize],
    read: fn(&[f64]) -> T,
    write: fn(&T) -> Vec<String>,
) -> Rows<T> {
    Rows { name, columns, needed: columns.len(), wide, real: columns.len(), read, write }
}

fn row(numbers: &[u64]) -> Vec<String> {
    numbers.iter().map(u64::to_string).collect()
}

fn angle(millionths: f64) -> u64 {
    (millionths as u64).saturating_mul(MILLIONTH)
}

fn defect(d: &[f64]) -> Defect {
    Defect { cylinder: d[0] as u32, surface: d[1] as u32, sector: d[2] as u32 }
}

/// Slipped sectors.
pub(super) const DEFECTS: Rows<Defect> =
    whole("defects", &["cylinder", "surface", "sector"], &[], defect, |d| {
        row(&[d.cylinder, d.surface, d.sector].map(u64::from))
    });

/// Blocks left out of a zone's numbering.
pub(super) const SLIPS: Rows<Slip> = whole(
    "slips",
    &["zone", "first block in the zone", "blocks"],
    &[1],
    |s| Slip { zone: s[0] as u32, first: s[1] as u64, blocks: s[2] as u32 },
    |s| row(&[u64::from(s.zone), s.first, u64::from(s.blocks)]),
);

/// Groups of the zones of a listed layout.
pub(super) const GROUPS: Rows<GroupSpec> = whole(
    "groups",
    &["zone", "cylinders in a group", "start of the first", "from a group to the next (1e-6 rev)"],
    &[2, 3],
    |n| GroupSpec { zone: n[0] as u32, cylinders: n[1] as u32, start: angle(n[2]), step: angle(n[3]) },
    |g| row(&[u64::from(g.zone), u64::from(g.cylinders), g.start / MILLIONTH, g.step / MILLIONTH]),
);

/// Runs of tracks of the groups of a listed layout.
pub(super) const RUNS: Rows<RunSpec> = whole(
    "runs",
    &[
        "zone",
        "from this cylinder of the group",
        "to this one",
        "surface",
        "sectors a track",
        "spare sectors a track",
        "start in the group (1e-6 rev)",
        "from a track to the next (1e-6 rev)",
    ],
    &[6, 7],
    |n| RunSpec {
        zone: n[0] as u32,
        from: n[1] as u32,
        to: n[2] as u32,
        surface: n[3] as u32,
        sectors: n[4] as u32,
        spare_sectors: n[5] as u32,
        start: angle(n[6]),
        step: angle(n[7]),
    },
    |r| {
        let [a, b, c, d, e, f] = [r.zone, r.from, r.to, r.surface, r.sectors, r.spare_sectors].map(u64::from);
        row(&[a, b, c, d, e, f, r.start / MILLIONTH, r.step / MILLIONTH])
    },
);

/// Blocks that lie on spare sectors.
pub(super) const REMAPS: Rows<Remap> = whole(
    "remaps",
    &["block", "cylinder", "surface", "sector"],
    &[0],
    |n| Remap { block: n[0] as u64, to: defect(&n[1..]) },
    |r| row(&[r.block, u64::from(r.to.cylinder), u64::from(r.to.surface), u64::from(r.to.sector)]),
);

/// Points of a seek curve.
pub(super) const POINTS: Rows<(u64, SimTime)> = whole(
    "points",
    &["distance", "time in ns"],
    &[0, 1],
    |p| (p[0] as u64, SimTime(p[1] as u64)),
    |p| row(&[p.0, p.1.0]),
);
