//! The truth table: what `smrlab probe` says of the layers of the registry, against what they are.
//!
//! `cargo bench -p smrlab-probe --bench truth_table` prints it as Markdown, and after it the table of what bands do along the
//! drive; `docs/probe.md` holds the last results. An argument chooses the rows whose layer contains it, `-v` shows the evidence.

use smrlab_disk::Bands;
use smrlab_drive::{Drive, DriveSetup};
use smrlab_probe::identify::{Cleaning, DriveKind, Identity, Limit, Mapping, identify};
use smrlab_probe::{Quiet, SimTarget};
use smrlab_stl::{BuildContext, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba};
use std::sync::Arc;
use std::time::Instant;

/// A layer and what it is: blocks of a band where bands show in the order of LBAs, mapping, cleaning.
struct Row {
    layer: String,
    kind: DriveKind,
    band: Option<u64>,
    mapping: Option<Mapping>,
    cleaning: Option<Cleaning>,
    holds: Holds,
}

/// What a cache holds.
#[derive(Clone, Copy)]
enum Holds {
    /// As many blocks as the layer says.
    Facts,
    /// So many writes, whatever their size.
    Entries(u64),
    /// No cache, but so many bands beside the host's are free at first (those that must stay free left out).
    Room,
}

fn row(layer: String, kind: DriveKind, band: Option<u64>, how: Option<(Mapping, Cleaning)>) -> Row {
    Row { layer, kind, band, mapping: how.map(|h| h.0), cleaning: how.map(|h| h.1), holds: Holds::Facts }
}

/// Layers at three settings each; `track` is a track of the drive's outermost zone in blocks.
fn rows(track: u64, bands: [u64; 3]) -> Vec<Row> {
    use DriveKind::{Cmr, DriveManaged};
    let in_place = Some((Mapping::Static, Cleaning::InPlace));
    let mut out = vec![row("cmr".to_owned(), Cmr, None, None)];
    for n in bands {
        out.push(row(format!("rmw,band={n}"), DriveManaged, Some(n * track), in_place));
        out.push(row(format!("rmw,mode=partial,band={n}"), DriveManaged, Some(n * track), in_place));
    }
    for (name, tracks) in [
        ("static-1234", Some(4)),
        ("static-R(4123)", None),
        ("static-124R(3)", Some(3)),
        ("static-14R(23)", None),
    ] {
        out.push(row(name.to_owned(), DriveManaged, tracks.map(|n| n * track), in_place));
    }
    for (n, cache) in bands.into_iter().zip(["0.5%", "2%", "5%"]) {
        for idle in [false, true] {
            let more = if idle { ",idle=1s" } else { "" };
            let cleaning = if idle { Cleaning::Aggressive } else { Cleaning::Lazy };
            let band = n * track / 8 * 8;
            let text = format!("disk-cache,cache={cache},band={band}{more}");
            out.push(row(text, DriveManaged, Some(band), Some((Mapping::Static, cleaning))));
        }
        let how = Some((Mapping::Dynamic, Cleaning::Lazy));
        out.push(row(format!("s-block,cache={cache}"), DriveManaged, None, how));
        out.push(row(format!("segment,band={n}"), DriveManaged, Some(n * 128), in_place));
    }
    // A log that fills, a map that does, and packets that take at least 0.4 tracks of the log.
    for (n, cache, holds) in [
        (bands[0], "log=0.5%,slot=0,map_trigger=1000000,map_limit=1000100", Holds::Facts),
        (bands[1], "log=2%,slot=0,map_trigger=4000,map_limit=4100", Holds::Entries(4000)),
        (bands[2], "log=5%,map_trigger=2000,map_limit=2060", Holds::Entries(2000)),
    ] {
        for (idle, cleaning) in [("off", Cleaning::Lazy), ("1s", Cleaning::Aggressive)] {
            let text = format!("persistent-cache,{cache},band={n},idle={idle}");
            let how = Some((Mapping::Static, cleaning));
            out.push(Row { holds, ..row(text, DriveManaged, Some(n * track), how) });
        }
    }
    for (n, space) in bands.into_iter().zip(["2%", "5%", "10%"]) {
        for (idle, cleaning) in
            [("", Cleaning::Lazy), (",idle=1s,idle_dead=1%,idle_free=20%", Cleaning::Aggressive)]
        {
            let text = format!("log,band={n},overprovision={space}{idle}");
            let how = Some((Mapping::Dynamic, cleaning));
            out.push(Row { holds: Holds::Room, ..row(text, DriveManaged, None, how) });
        }
    }
    out
}

/// The drive of real size with the layer that is its own: it holds writes by number, and bands of 20 tracks. The one that is
/// measured lies at a third.
fn whole_drive(track: u64) -> Vec<Row> {
    let how = Some((Mapping::Static, Cleaning::Aggressive));
    let text = "persistent-cache,idle=1.2s".to_owned();
    let row = row(text, DriveKind::DriveManaged, Some(20 * track), how);
    vec![Row { holds: Holds::Entries(22_986), ..row }]
}

/// What a probe says, and what the layer says of itself.
struct Probed {
    id: Identity,
    cache: Option<u64>,
    room: u64,
    bands: Option<Bands>,
}

/// `filled`: all of the drive's space is written before.
fn probed(model: &str, layer: &str, filled: bool) -> Result<Probed, String> {
    let model = smrlab_disk::model::load(model, |_| Err("no files".to_owned())).map_err(|e| e.to_string())?;
    let built = smrlab_stl::build(layer, &BuildContext::new(Arc::new(model))).map_err(|e| e.to_string())?;
    let facts = built.layer.facts();
    let cache = facts.cache.map(|b| b.0);
    // Two bands are kept free.
    let room = facts.bands.map_or(0, |b| {
        let data = b.data_blocks().0;
        data.saturating_sub(built.layer.host_blocks().0 + 2 * data / b.len())
    });
    let bands = facts.bands.cloned();
    let mechanics = built.drive.mechanics(None).map_err(|e| e.to_string())?;
    let mut drive =
        Drive::new(built.layer, mechanics, DriveSetup::default()).behind(built.drive.spec().controller);
    let blocks = drive.layer().host_blocks().0;
    for lba in (0..if filled { blocks } else { 0 }).step_by(1 << 16) {
        let n = (blocks - lba).min(1 << 16);
        drive.instantly(&HostRequest::new(HostOp::Write, Lba(lba), Blocks(n)));
    }
    let id = identify(&mut SimTarget::new(drive), &mut Quiet).map_err(|e| e.to_string())?;
    if std::env::args().any(|a| a == "-v") {
        id.evidence.iter().for_each(|e| eprintln!("    {}: {}", e.test, e.saw));
        eprintln!("    {:?} {:?} {:?} {:?} {:?}", id.cache_size, id.band, id.bands_along, id.toward, id.idle);
    }
    Ok(Probed { id, cache, room, bands })
}

/// A row of the second table: bands at three places, direction, and the rest after which it cleans; nothing where the layer's
/// bands are not those of the LBAs.
fn along(name: &str, r: &Row, p: &Probed, track: u64) -> Option<String> {
    let bands = p.bands.as_ref().filter(|_| r.band.is_some())?;
    let band = p.id.band?;
    let places = std::iter::once((band.end - band.blocks / 2, band.blocks));
    let found = places.chain(p.id.bands_along.iter().map(|b| (b.lba, b.blocks)));
    let cells: Vec<String> = found
        .map(|(lba, blocks)| {
            let around = bands.band_at(lba.min(bands.data_blocks().0 - 1)).1;
            number(Some(blocks), Some(around.end - around.start), |_| track).0
        })
        .collect();
    let toward = p.id.toward.map_or("-".to_owned(), |t| format!("{t:?}"));
    let rest = match (p.id.idle, r.layer.split("idle=").nth(1)) {
        (Some(idle), Some(truth)) => format!("{:.2} s / {}, {:.2} s", idle.after_s, truth, idle.band_s),
        _ => "-".to_owned(),
    };
    Some(format!("| {name} | {} | {} | {toward} | {rest} |", r.layer, cells.join("; ")))
}

/// Found, truth and whether they agree.
fn number(found: Option<u64>, truth: Option<u64>, slack: impl Fn(u64) -> u64) -> (String, bool) {
    let text = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    let good = match (found, truth) {
        (Some(f), Some(t)) => f.abs_diff(t) <= slack(t),
        (None, None) => true,
        _ => false,
    };
    (format!("{} / {}{}", text(found), text(truth), if good { "" } else { " **no**" }), good)
}

fn main() {
    let drives = [
        ("modern-7200,capacity=40GB", 4248, [5, 20, 48]),
        ("modern-7200,capacity=120GB,rpm=5400,k=3", 4248, [5, 20, 48]),
        // Of real size, with zones: its space is not written before.
        ("seagate-st5000as0011", 3240, [20; 3]),
    ];
    println!(
        "| drive | layer | kind | cache, found / true | band, found / true | mapping, cleaning | hours | CPU s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut right = [0; 4];
    let mut all = [0; 4];
    // Only layers whose text contains the argument.
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let mut second = Vec::new();
    for (name, (drive, track, bands)) in ["A", "B", "C"].into_iter().zip(drives) {
        let rows = if name == "C" { whole_drive(track) } else { rows(track, bands) };
        for r in rows.into_iter().filter(|r| r.layer.contains(&wanted)) {
            let begin = Instant::now();
            let found = match probed(drive, &r.layer, name != "C") {
                Ok(found) => found,
                Err(e) => {
                    println!("| {name} | {} | {} |", r.layer, e.replace('\n', " "));
                    continue;
                }
            };
            second.extend(along(name, &r, &found, track));
            let Probed { id, cache, room, .. } = found;
            let kind = id.kind == r.kind;
            let (cache, cache_right) = match r.holds {
                Holds::Facts => number(id.cache_size.map(|c| c.blocks), cache, |t| t / 20),
                Holds::Room => number(id.cache_size.map(|c| c.blocks), Some(room), |t| t / 20),
                Holds::Entries(n) => number(id.cache_size.map(|c| c.writes), Some(n), |t| t / 20),
            };
            let limit = id.cache_size.and_then(|c| c.limit);
            let kinds = [(Limit::Bytes, "bytes"), (Limit::Entries, "entries")];
            let limits = kinds.iter().find(|k| Some(k.0) == limit).map_or("", |k| k.1);
            let wanted = match r.holds {
                Holds::Entries(_) => Some(Limit::Entries),
                _ => id.cache_size.map(|_| Limit::Bytes),
            };
            let of = if limit == wanted { "" } else { " **no**" };
            let (band, band_right) = number(id.band.map(|b| b.blocks), r.band, |t| track.min(t / 4));
            let how = (id.mapping, id.cleaning) == (r.mapping, r.cleaning);
            for (i, good) in [kind, cache_right, band_right, how].into_iter().enumerate() {
                right[i] += u32::from(good);
                all[i] += 1;
            }
            println!(
                "| {name} | {} | {}{} | {cache} {limits}{of} | {band} | {}{} | {:.1} | {:.1} |",
                r.layer,
                if id.kind == DriveKind::Cmr { "cmr" } else { "drive-managed" },
                if kind { "" } else { " **no**" },
                id.mapping.zip(id.cleaning).map_or("-".to_owned(), |(m, c)| format!("{m:?} {c:?}")),
                if how { "" } else { " **no**" },
                id.quality.seconds / 3600.0,
                begin.elapsed().as_secs_f64()
            );
        }
    }
    println!("\n| drive | layer | bands along, found / true | towards | rests, found / true, and a band |");
    println!("|---|---|---|---|---|\n{}", second.join("\n"));
    println!(
        "\nright: kind {}/{}, cache {}/{}, band {}/{}, mapping and cleaning {}/{}",
        right[0], all[0], right[1], all[1], right[2], all[2], right[3], all[3]
    );
}
