//! Layout g2: the raw map of a drive, extent by extent as it was read from it, and zones with skews. What the map leaves out is
//! slipped, and what lies out of order is remapped.

use super::params::{Block, Value};
use crate::geometry::{
    Defect, Geometry, GeometrySpec, Layout, MOST_SECTORS, REVOLUTION, Remap, Slip, ZoneSkew, ZoneSpec,
    angle_of,
};

/// Blocks that follow each other on a track.
struct Extent {
    lbn: u64,
    blocks: u64,
    at: Defect,
}

/// Blocks out of order that are taken for remapped ones: one in so many.
const REMAPPED: u64 = 20;

/// The geometry of a drive with `surfaces` surfaces; `read` reads the map.
pub(super) fn geometry(
    layout: &Block,
    surfaces: u32,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<GeometrySpec, String> {
    let Some(Value::Word(file)) = layout.get("Layout Map File") else {
        return Err(layout.wrong("Layout Map File", "'Layout Map File' names no file"));
    };
    let extents = map(&read(file).map_err(|e| layout.wrong("Layout Map File", e))?)
        .map_err(|e| format!("{file}: {e}"))?;
    let zones = zones(layout)?;
    let orders =
        [Layout::Cylinder { alternate: false }, Layout::Cylinder { alternate: true }, Layout::ZoneAlternate];
    let mut best: Option<(GeometrySpec, Vec<usize>, Vec<u64>)> = None;
    for layout in orders {
        let plain = GeometrySpec { surfaces, layout, ..GeometrySpec::single_surface(zones.clone()) };
        let g = Geometry::new(plain.clone()).map_err(|e| e.to_string())?;
        let place = |e: &Extent| {
            let last = e.at.sector + e.blocks as u32 - 1;
            let inside = g.raw_at(e.at.cylinder, e.at.surface, last);
            inside
                .map(|raw| raw - (e.blocks - 1))
                .ok_or_else(|| format!("{file}: lbn {} lies on no sector of its zone: {:?}", e.lbn, e.at))
        };
        let places = extents.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        // Sectors before an extent that hold none of the blocks before it: as many as there are in all at most.
        let blocks = extents.last().map_or(0, |e| e.lbn + e.blocks);
        let spare = |(e, place): (&Extent, &u64)| {
            place.checked_sub(e.lbn).filter(|n| *n <= g.blocks().0.saturating_sub(blocks))
        };
        let chain = rising(&extents.iter().zip(&places).map(spare).collect::<Vec<_>>());
        if best.as_ref().is_none_or(|b| chain.len() > b.1.len()) {
            best = Some((plain, chain, places));
        }
    }
    let Some((mut g, chain, places)) = best else { return Err(format!("{file}: no extent in it")) };
    let of = |extents: &mut dyn Iterator<Item = &Extent>| extents.map(|e| e.blocks).sum::<u64>();
    let (all, kept) = (of(&mut extents.iter()), of(&mut chain.iter().map(|&i| &extents[i])));
    if (all - kept) * REMAPPED > all {
        return Err(format!(
            "{file}: the map goes through the tracks in no order that is known: by cylinders, surfaces upwards or to and fro"
        ));
    }
    left_out(&mut g, &extents, &chain, &places).map_err(|e| format!("{file}: {e}"))?;
    Ok(g)
}

/// `lbn N --> cyl C, head H, sect S, seqcnt N`: so many blocks more; with another word, so many blocks.
fn map(text: &str) -> Result<Vec<Extent>, String> {
    let mut out: Vec<Extent> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("lbn ") else { continue };
        let numbers: Vec<u64> =
            rest.split(|c: char| !c.is_ascii_digit()).filter_map(|w| w.parse().ok()).collect();
        let &[lbn, cylinder, surface, sector, count] = &numbers[..] else {
            return Err(format!("line {}: not 'lbn N --> cyl N, head N, sect N, seqcnt N'", i + 1));
        };
        if [cylinder, surface, sector, count].iter().any(|n| *n > 1 << 30) {
            return Err(format!("line {}: no drive has so many cylinders, heads or sectors", i + 1));
        }
        let blocks = count + u64::from(rest.contains("seqcnt"));
        let next = out.last().map_or(0, |e| e.lbn + e.blocks);
        if lbn != next || blocks == 0 {
            return Err(format!("line {}: lbn {lbn}, {blocks} blocks, follows {next}", i + 1));
        }
        let at = Defect { cylinder: cylinder as u32, surface: surface as u32, sector: sector as u32 };
        out.push(Extent { lbn, blocks, at });
    }
    Ok(out)
}

fn zones(layout: &Block) -> Result<Vec<ZoneSpec>, String> {
    let mut zones: Vec<ZoneSpec> = Vec::new();
    let mut next = 0;
    for value in layout.list("Zones") {
        let Value::Block(z) = value else { continue };
        let (first, last) = z.cylinders(next)?;
        if let Some(before) = zones.last_mut() {
            before.cylinders += first - next;
            before.spare_cylinders += first - next;
        }
        next = last + 1;
        let sectors = z.whole("Blocks per track", MOST_SECTORS)?;
        let turns = z.get("Skew units").is_some_and(|v| *v == Value::Word("revolutions".to_owned()));
        let skew = |key| {
            let of = if turns { 1 } else { sectors.max(1) };
            angle_of(z.number(key).unwrap_or(0.0).rem_euclid(f64::from(of)), of) % REVOLUTION
        };
        zones.push(ZoneSpec {
            skew: Some(ZoneSkew {
                track: skew("Skew for track switch"),
                cylinder: skew("Skew for cylinder switch"),
                start: skew("Zone Skew"),
            }),
            ..ZoneSpec::plain(next.saturating_sub(first), sectors)
        });
    }
    Ok(zones)
}

/// The indices of a longest part that never falls, of those that are numbers: what blocks are missing between two of them has room there.
fn rising(n: &[Option<u64>]) -> Vec<usize> {
    let (mut tails, mut before) = (Vec::<usize>::new(), vec![usize::MAX; n.len()]);
    for i in (0..n.len()).filter(|i| n[*i].is_some()) {
        let at = tails.partition_point(|&t| n[t] <= n[i]);
        if at > 0 {
            before[i] = tails[at - 1];
        }
        if at < tails.len() { tails[at] = i } else { tails.push(i) }
    }
    let mut chain: Vec<usize> =
        std::iter::successors(tails.last().copied(), |&i| Some(before[i]).filter(|&b| b != usize::MAX))
            .collect();
    chain.reverse();
    chain
}

/// Slips and remaps: between extents in order, what blocks are missing has its place, and is remapped; other sectors are slipped.
fn left_out(g: &mut GeometrySpec, extents: &[Extent], chain: &[usize], places: &[u64]) -> Result<(), String> {
    let plain = Geometry::new(g.clone()).map_err(|e| e.to_string())?;
    let starts: Vec<u64> = plain.zones().map(|z| z.first.0).collect();
    let all = plain.blocks().0;
    let (mut lbn, mut raw) = (0, 0);
    let ends = chain.iter().map(|&i| (extents[i].lbn, places[i], extents[i].blocks));
    let blocks = extents.last().map_or(0, |e| e.lbn + e.blocks);
    for (next, place, length) in ends.chain([(blocks, all, 0)]) {
        slip(g, &starts, raw + (next - lbn)..place);
        (lbn, raw) = (next + length, place + length);
    }
    let mut kept = chain.iter().peekable();
    for (i, e) in extents.iter().enumerate() {
        if kept.next_if_eq(&&i).is_none() {
            g.remaps.extend(
                (0..e.blocks).map(|n| Remap {
                    block: e.lbn + n,
                    to: Defect { sector: e.at.sector + n as u32, ..e.at },
                }),
            );
        }
    }
    Ok(())
}

fn slip(g: &mut GeometrySpec, starts: &[u64], mut raw: std::ops::Range<u64>) {
    while raw.start < raw.end {
        let zone = starts.partition_point(|&s| s <= raw.start) - 1;
        let end = starts.get(zone + 1).map_or(raw.end, |&s| s.min(raw.end));
        let blocks = (end - raw.start) as u32;
        g.slips.push(Slip { zone: zone as u32, first: raw.start - starts[zone], blocks });
        raw.start = end;
    }
}
