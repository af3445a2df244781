//! Layout g4: a tree of indices whose leaves are track patterns. Each entry covers blocks and cylinders by equal children,
//! one after the other, each turned against the one before.

use super::params::{Block, Value};
use crate::geometry::{
    Defect, GeometrySpec, GroupSpec, Layout, MOST_SECTORS, REVOLUTION, Remap, RunSpec, Slip, ZoneSpec,
};

/// An entry of an index: fields 1 to 8 as the file has them, and the child.
struct Entry {
    lbn: u64,
    cylinder: u32,
    /// Where the first child begins, and how much later each next one does, in revolutions.
    off: f64,
    turn: f64,
    /// Blocks and cylinders of a child.
    blocks: u64,
    cylinders: u32,
    /// How many children, and whether they go towards lower cylinders.
    times: u32,
    outwards: bool,
    child: Child,
}

enum Child {
    Index(usize),
    /// Track pattern and surface.
    Track(usize, u32),
}

/// Runs of tracks of a drive, and the largest number of an entry: no drive has so many, and sums of them are far from what
/// overflows.
const MOST_RUNS: usize = 1 << 20;
const LARGEST: f64 = (1u64 << 40) as f64;
/// The largest number of cylinders, or of times that a child is repeated.
const MOST: u64 = 1 << 24;

/// Where an entry lies: cylinder and angle of the entries around it.
#[derive(Clone, Copy, Default)]
struct Base {
    cylinder: i64,
    angle: f64,
}

struct Tree {
    /// Sectors in a revolution, and sectors with data.
    patterns: Vec<(u32, u32)>,
    indices: Vec<Vec<Entry>>,
}

/// The geometry of a drive with `surfaces` surfaces.
pub(super) fn geometry(layout: &Block, surfaces: u32) -> Result<GeometrySpec, String> {
    let tree = Tree::read(layout)?;
    let root = tree.indices.last().filter(|r| !r.is_empty()).ok_or("dm_layout_g4: IDX is empty")?;
    let mut g = GeometrySpec { surfaces, layout: Layout::Listed, ..GeometrySpec::single_surface(Vec::new()) };
    if root.iter().any(|e| matches!(e.child, Child::Track(..))) {
        // Tracks at the top: all of the disk is one group.
        tree.zone(&mut g, root, GroupSpec { zone: 0, cylinders: 0, start: 0, step: 0 }, 1, 0)?;
    } else {
        for e in root {
            let Child::Index(child) = e.child else { continue };
            let zone = g.zones.len() as u32;
            let group = GroupSpec { zone, cylinders: e.cylinders, start: angle(e.off), step: angle(e.turn) };
            if e.outwards {
                return Err("dm_layout_g4: the last index goes towards lower cylinders".to_owned());
            }
            tree.zone(&mut g, tree.index(child)?, group, e.times, e.cylinder)?;
        }
    }
    slips(layout, &mut g)?;
    for r in numbers(layout, "Remaps")?.chunks(6) {
        let &[block, blocks, cylinder, surface, sector, _] = r else {
            return Err("dm_layout_g4: a remap has six numbers".to_owned());
        };
        g.remaps.extend((0..blocks as u64).map(|i| Remap {
            block: block as u64 + i,
            to: Defect {
                cylinder: cylinder as u32,
                surface: surface as u32,
                sector: sector as u32 + i as u32,
            },
        }));
    }
    Ok(g)
}

/// In whole millionths of a turn, as a drive file has them; never less: a skew that covers a switch still does.
fn angle(turns: f64) -> u64 {
    // What lies within a thousandth of one is that one: sums of decimals.
    let millionths = (turns.rem_euclid(1.0) * 1e6 - 1e-3).ceil().max(0.0) as u64;
    millionths * (REVOLUTION / 1_000_000) % REVOLUTION
}

fn numbers(layout: &Block, key: &str) -> Result<Vec<f64>, String> {
    let number = |v: &Value| v.number().ok_or_else(|| format!("dm_layout_g4: '{key}' has numbers only"));
    layout.list(key).iter().map(number).collect()
}

impl Tree {
    fn read(layout: &Block) -> Result<Self, String> {
        let patterns = numbers(layout, "TP")?.chunks(3).map(pattern).collect::<Result<_, _>>()?;
        let index = |v: &Value| match v {
            Value::List(fields) => entries(fields),
            _ => Err("dm_layout_g4: IDX is a list of lists".to_owned()),
        };
        Ok(Self { patterns, indices: layout.list("IDX").iter().map(index).collect::<Result<_, _>>()? })
    }

    fn index(&self, i: usize) -> Result<&[Entry], String> {
        self.indices.get(i).map(Vec::as_slice).ok_or_else(|| format!("dm_layout_g4: there is no index {i}"))
    }

    /// Adds a zone of `times` groups from a cylinder on, each of which is what an index covers.
    fn zone(
        &self,
        g: &mut GeometrySpec,
        entries: &[Entry],
        mut group: GroupSpec,
        times: u32,
        first: u32,
    ) -> Result<(), String> {
        let before: u32 = g.zones.iter().map(|z| z.cylinders).sum();
        match g.zones.last_mut() {
            Some(zone) if first >= before => {
                zone.cylinders += first - before;
                zone.spare_cylinders += first - before;
            }
            None if first == 0 => {}
            _ => return Err(format!("dm_layout_g4: cylinder {first} of the last index follows {before}")),
        }
        let from = g.runs.len();
        self.runs(g, group.zone, entries, Base::default(), 0)?;
        let runs = &g.runs[from..];
        if group.cylinders == 0 {
            group.cylinders = runs.iter().map(|r| r.from.max(r.to) + 1).max().unwrap_or(1);
        }
        let longest = runs.iter().map(|r| r.sectors).max().unwrap_or(0);
        g.zones.push(ZoneSpec::plain(times * group.cylinders, longest));
        g.groups.push(group);
        Ok(())
    }

    /// Adds the runs that entries cover, in the order of blocks.
    fn runs(
        &self,
        g: &mut GeometrySpec,
        zone: u32,
        entries: &[Entry],
        base: Base,
        depth: u32,
    ) -> Result<(), String> {
        if depth as usize > self.indices.len() {
            return Err("dm_layout_g4: indices are in each other in a circle".to_owned());
        }
        if entries.is_empty() {
            return Err("dm_layout_g4: an index is empty".to_owned());
        }
        let mut lbn = 0;
        for e in entries {
            if g.runs.len() > MOST_RUNS {
                return Err(format!("dm_layout_g4: more than {MOST_RUNS} runs of tracks"));
            }
            if e.lbn != lbn {
                return Err(format!("dm_layout_g4: an entry at block {} of its index follows {lbn}", e.lbn));
            }
            lbn += e.blocks * u64::from(e.times);
            let here = Base { cylinder: base.cylinder + i64::from(e.cylinder), angle: base.angle + e.off };
            let sign = if e.outwards { -1 } else { 1 };
            match e.child {
                Child::Track(pattern, surface) => {
                    let &(sectors, data) = self
                        .patterns
                        .get(pattern)
                        .ok_or_else(|| format!("dm_layout_g4: there is no track pattern {pattern}"))?;
                    if u64::from(data) != e.blocks || e.cylinders != 1 {
                        return Err(format!(
                            "dm_layout_g4: {} blocks a track of pattern {pattern}",
                            e.blocks
                        ));
                    }
                    let cylinder = |n: i64| {
                        u32::try_from(n)
                            .map_err(|_| format!("dm_layout_g4: a track on cylinder {n} of its index"))
                    };
                    g.runs.push(RunSpec {
                        zone,
                        from: cylinder(here.cylinder)?,
                        to: cylinder(here.cylinder + sign * i64::from(e.times - 1))?,
                        surface,
                        sectors,
                        spare_sectors: sectors - data,
                        start: angle(here.angle),
                        step: angle(e.turn),
                    });
                }
                Child::Index(child) => {
                    for i in 0..e.times {
                        let base = Base {
                            cylinder: here.cylinder + sign * i64::from(i) * i64::from(e.cylinders),
                            angle: here.angle + f64::from(i) * e.turn,
                        };
                        self.runs(g, zone, self.index(child)?, base, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Lowest and highest sector with data, and sectors in a revolution.
fn pattern(n: &[f64]) -> Result<(u32, u32), String> {
    match n {
        &[low, high, sectors]
            if low >= 0.0 && high >= low && sectors > high - low && sectors <= f64::from(MOST_SECTORS) =>
        {
            Ok((sectors as u32, (high - low) as u32 + 1))
        }
        _ => Err(format!(
            "dm_layout_g4: {n:?} is no track pattern: lowest and highest sector, sectors a track"
        )),
    }
}

fn entries(fields: &[Value]) -> Result<Vec<Entry>, String> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < fields.len() {
        let bad = || format!("dm_layout_g4: entry {} of an index cannot be read", out.len());
        let n = |i: usize| fields.get(at + i).and_then(Value::number).ok_or_else(bad);
        let whole = |i: usize| {
            let whole = Some(n(i)?).filter(|n| n.fract() == 0.0 && (0.0..=LARGEST).contains(n));
            whole.map(|n| n as u64).ok_or_else(bad)
        };
        let track = fields.get(at + 8) == Some(&Value::Word("TRACK".to_owned()));
        if !track && fields.get(at + 8) != Some(&Value::Word("IDX".to_owned())) {
            return Err(bad());
        }
        let (blocks, run) = (whole(3)?, whole(6)?);
        let (cylinders, span) = (whole(4)?, n(7)?);
        if span.abs() > MOST as f64 || cylinders > MOST || whole(1)? > MOST || run > MOST * blocks {
            return Err(bad());
        }
        if blocks == 0
            || !run.is_multiple_of(blocks)
            || run / blocks * cylinders != span.abs() as u64
            || run == 0
        {
            return Err(format!(
                "{}: {run} blocks on {} cylinders by {blocks} on {cylinders}",
                bad(),
                span.abs()
            ));
        }
        out.push(Entry {
            lbn: whole(0)?,
            cylinder: whole(1)? as u32,
            off: n(2)?,
            turn: n(5)?,
            blocks,
            cylinders: cylinders as u32,
            times: (run / blocks) as u32,
            outwards: span < 0.0,
            child: if track {
                Child::Track(whole(9)? as usize, whole(10)? as u32)
            } else {
                Child::Index(whole(9)? as usize)
            },
        });
        at += if track { 11 } else { 10 };
    }
    Ok(out)
}

/// Slipped blocks, whose places count all blocks of the disk, those slipped before included.
fn slips(layout: &Block, g: &mut GeometrySpec) -> Result<(), String> {
    let mut firsts = vec![0];
    for (z, group) in g.zones.iter().zip(&g.groups) {
        let runs = g.runs.iter().filter(|r| r.zone == group.zone);
        let each: u64 = runs.map(|r| u64::from(r.tracks()) * u64::from(r.sectors - r.spare_sectors)).sum();
        firsts.push(
            firsts[firsts.len() - 1] + each * u64::from((z.cylinders - z.spare_cylinders) / group.cylinders),
        );
    }
    for s in numbers(layout, "Slips")?.chunks(2) {
        let &[first, blocks] = s else { return Err("dm_layout_g4: a slip has two numbers".to_owned()) };
        let zone = firsts.partition_point(|&f| f <= first as u64) - 1;
        if zone < g.zones.len() {
            g.slips.push(Slip {
                zone: zone as u32,
                first: first as u64 - firsts[zone],
                blocks: blocks as u32,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_angle_is_no_less_than_was_said() {
        let millionths = |turns| angle(turns) / (REVOLUTION / 1_000_000);
        for (turns, expected) in [
            (0.25, 250_000),
            (0.123_456_1, 123_457),
            (0.1 + 0.2, 300_000),
            (1.75, 750_000),
            (-0.25, 750_000),
            (1.0, 0),
        ] {
            assert_eq!(millionths(turns), expected, "{turns}");
        }
    }
}
