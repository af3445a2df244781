//! The truth table: what `smrlab probe` says of the layers of the registry, against what they are.
//!
//! `cargo bench -p smrlab-probe --bench truth_table` prints it as Markdown, and after it the table of what bands do along the
//! drive; `-- --write` makes `docs/probe-truth.md` of it. An argument chooses the rows whose layer contains it, `-v` shows the
//! evidence.

#[path = "../tests/it/support/page.rs"]
mod page;

use page::Page;
use smrlab_disk::Bands;
use smrlab_drive::{Drive, DriveSetup};
use smrlab_probe::identify::{Cleaning, DriveKind, Identity, Idle, Limit, Mapping, Order, Toward, identify};
use smrlab_probe::{Mirrored, Quiet, SimTarget};
use smrlab_stl::{BuildContext, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::sync::Arc;

/// A layer and what it is: blocks of a band where bands show in the order of LBAs, mapping, cleaning.
struct Row {
    layer: String,
    kind: DriveKind,
    band: Option<u64>,
    mapping: Option<Mapping>,
    cleaning: Option<Cleaning>,
    holds: Holds,
    /// Which way its tracks overlap, where what it does shows that.
    toward: Option<Toward>,
    /// Its LBAs run backwards.
    mirrored: bool,
    /// How much of its space is written before.
    filled: f64,
}

impl Row {
    /// As the tables name it.
    fn name(&self) -> String {
        let back = if self.mirrored { ", backwards" } else { "" };
        let filled = if self.filled == 0.0 { ", not written before" } else { "" };
        format!("{}{back}{filled}", self.layer)
    }

    fn toward(self, toward: Toward) -> Self {
        Self { toward: Some(toward), ..self }
    }

    /// The same with its LBAs backwards.
    fn backwards(layer: &str, like: &[Row]) -> Option<Self> {
        let of = like.iter().find(|r| r.layer == layer)?;
        let toward = of.toward.map(|_| Toward::Lower);
        Some(Self { layer: of.layer.clone(), toward, mirrored: true, ..*of })
    }
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
    Row {
        layer,
        kind,
        band,
        mapping: how.map(|h| h.0),
        cleaning: how.map(|h| h.1),
        holds: Holds::Facts,
        toward: None,
        mirrored: false,
        filled: 1.0,
    }
}

/// Layers at three settings each; `track` is a track of the drive's outermost zone in blocks.
fn rows(track: u64, bands: [u64; 3]) -> Vec<Row> {
    use DriveKind::{Cmr, DriveManaged};
    let in_place = Some((Mapping::Static, Cleaning::InPlace));
    let mut out = vec![row("cmr".to_owned(), Cmr, None, None)];
    for n in bands {
        out.push(row(format!("rmw,band={n}"), DriveManaged, Some(n * track), in_place));
        let text = format!("rmw,mode=partial,band={n}");
        out.push(row(text, DriveManaged, Some(n * track), in_place).toward(Toward::Higher));
    }
    out.extend(static_maps(track, bands));
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
        out.push(
            row(format!("segment,band={n}"), DriveManaged, Some(n * 128), in_place).toward(Toward::Higher),
        );
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
            let row = row(text, DriveManaged, Some(n * track), how).toward(Toward::Higher);
            out.push(Row { holds, ..row });
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
    let backwards: Vec<Row> =
        out.iter().filter_map(|r| Row::backwards(&r.layer, &out).filter(|r| r.toward.is_some())).collect();
    out.extend(backwards);
    out
}

/// Static maps of each kind with heads that touch two, three and four tracks, and of bands of any length; and such that are so
/// empty that a write destroys nothing.
fn static_maps(track: u64, bands: [u64; 3]) -> Vec<Row> {
    let in_place = Some((Mapping::Static, Cleaning::InPlace));
    let mut out = Vec::new();
    for width in 2..=4 {
        for (name, tracks) in [
            ("static-1234", Some(4)),
            ("static-R(4123)", None),
            ("static-124R(3)", Some(3)),
            ("static-14R(23)", None),
        ] {
            let text = format!("{name},tracks={width}");
            let row = row(text, DriveKind::DriveManaged, tracks.map(|n| n * track), in_place);
            out.push(if tracks.is_some() { row.toward(Toward::Higher) } else { row });
        }
        for n in bands {
            let text = format!("static,order=1-{n},tracks={width}");
            let row = row(text, DriveKind::DriveManaged, Some(n * track), in_place);
            out.push(row.toward(Toward::Higher));
        }
    }
    for name in ["static-1234", "static-R(4123)", "static-124R(3)", "static-14R(23)"] {
        out.push(Row { filled: 0.0, ..row(name.to_owned(), DriveKind::Cmr, None, None) });
    }
    out
}

/// The drive of real size with the layer that is its own: it holds writes by number, and bands of 20 tracks. The one that is
/// measured lies at a third.
fn whole_drive(track: u64) -> Vec<Row> {
    let how = Some((Mapping::Static, Cleaning::Aggressive));
    let text = "persistent-cache,idle=1.2s".to_owned();
    let row = row(text, DriveKind::DriveManaged, Some(20 * track), how);
    let row = Row { holds: Holds::Entries(22_986), filled: 0.0, ..row }.toward(Toward::Higher);
    // A third from the other end bands are shorter.
    let back = Row::backwards(&row.layer, std::slice::from_ref(&row));
    let back = back.map(|r| Row { band: Some(20 * BACKWARDS_TRACK), ..r });
    std::iter::once(row).chain(back).collect()
}

/// Blocks on a track of that drive two thirds of its LBAs on.
const BACKWARDS_TRACK: u64 = 2656;

/// What a probe says, and what the layer says of itself.
struct Probed {
    id: Identity,
    cache: Option<u64>,
    room: u64,
    bands: Option<Bands>,
    /// Blocks of the host.
    blocks: u64,
    /// Seconds after which it cleans, and that the band takes of which the probe's piece is all that was written.
    cleans: Option<(f64, f64)>,
    order: Order,
}

impl Probed {
    fn rest(&self) -> Option<Rest> {
        let ((after_s, band_s), found) = (self.cleans?, self.id.idle?);
        Some(Rest { found, after_s, band_s, order: self.order, turn_s: 60.0 / self.id.rpm })
    }
}

fn built(model: &str, row: &Row) -> Result<smrlab_stl::Built, String> {
    let model = smrlab_disk::model::load(model, |_| Err("no files".to_owned())).map_err(|e| e.to_string())?;
    smrlab_stl::build(&row.layer, &BuildContext::new(Arc::new(model))).map_err(|e| e.to_string())
}

/// The drive of a row, written as far as the row says.
fn drive(built: smrlab_stl::Built, row: &Row) -> Result<Drive, String> {
    let mechanics = built.drive.mechanics(None).map_err(|e| e.to_string())?;
    let mut drive =
        Drive::new(built.layer, mechanics, DriveSetup::default()).behind(built.drive.spec().controller);
    let blocks = drive.layer().host_blocks().0;
    for lba in (0..(blocks as f64 * row.filled) as u64).step_by(1 << 16) {
        let n = (blocks - lba).min(1 << 16);
        drive.instantly(&HostRequest::new(HostOp::Write, Lba(lba), Blocks(n)));
    }
    Ok(drive)
}

/// When the drive, left alone before, begins to clean after a piece at `lba` was written, and how long it is at work: as it
/// tells itself.
fn cleans(mut drive: Drive, row: &Row, lba: u64) -> Option<(f64, f64)> {
    const PIECE: u64 = 8;
    const LONG: SimTime = SimTime(1_000_000_000_000_000);
    while drive.next_step(LONG, &mut ()).is_some() {}
    let lba = if row.mirrored { drive.layer().host_blocks().0 - lba - PIECE } else { lba };
    let piece = HostRequest::new(HostOp::Write, Lba(lba), Blocks(PIECE));
    let end = drive.dispatch(LONG, &piece, &mut ()).served.end;
    let (mut first, mut last) = (None, SimTime::ZERO);
    while let Some(step) = drive.next_step(LONG + LONG, &mut ()) {
        first = first.or(Some(step.began));
        last = step.served.end;
    }
    first.map(|first| (first.since(end).as_secs_f64(), last.since(first).as_secs_f64()))
}

fn probed(model: &str, row: &Row) -> Result<Probed, String> {
    let built = built(model, row)?;
    let facts = built.layer.facts();
    let cache = facts.cache.map(|b| b.0);
    // Two bands are kept free.
    let room = facts.bands.map_or(0, |b| {
        let data = b.data_blocks().0;
        data.saturating_sub(built.layer.host_blocks().0 + 2 * data / b.len())
    });
    let bands = facts.bands.cloned();
    let drive = drive(built, row)?;
    let blocks = drive.layer().host_blocks().0;
    let mut target = SimTarget::new(drive);
    let done = if row.mirrored {
        identify(&mut Mirrored(target), &mut Quiet)
    } else {
        identify(&mut target, &mut Quiet)
    };
    let id = done.map_err(|e| e.to_string())?;
    if std::env::args().any(|a| a == "-v") {
        id.evidence.iter().for_each(|e| eprintln!("    {}: {}", e.test, e.saw));
        eprintln!("    {:?} {:?} {:?} {:?} {:?}", id.cache_size, id.band, id.bands_along, id.toward, id.idle);
    }
    let cleans = match id.idle {
        Some(idle) => cleans(self::drive(self::built(model, row)?, row)?, row, idle.piece),
        None => None,
    };
    // The one goes through its log, the other through its sets.
    let order = if row.layer.starts_with("disk-cache") { Order::ByPlace } else { Order::Oldest };
    Ok(Probed { id, cache, room, bands, blocks, cleans, order })
}

/// A row of the second table: bands at three places, direction, and the rest after which it cleans; nothing where no bands show in
/// the order of LBAs.
fn along(name: &str, r: &Row, p: &Probed, track: u64) -> Option<String> {
    let (alike, band) = (r.band?, p.id.band?);
    let length = |b: &Bands, lba: u64| {
        let lba = if r.mirrored { p.blocks - 1 - lba } else { lba };
        let around = b.band_at(lba.min(b.data_blocks().0 - 1)).1;
        around.end - around.start
    };
    // Those of the medium, where they are what is rewritten together.
    let bands = p.bands.as_ref().filter(|b| length(b, band.end - band.blocks / 2).abs_diff(alike) < track);
    let places = std::iter::once((band.end - band.blocks / 2, band.blocks));
    let found = places.chain(p.id.bands_along.iter().map(|b| (b.lba, b.blocks)));
    let cells: Vec<String> = found
        .map(|(lba, blocks)| {
            let truth = bands.map_or(alike, |b| length(b, lba));
            number(Some(blocks), Some(truth), |t| track.min(t / 4)).0
        })
        .collect();
    let text = |toward: Option<Toward>| toward.map_or("-".to_owned(), |t| format!("{t:?}"));
    let toward = format!("{} / {}", text(p.id.toward), text(r.toward));
    let no = if p.id.toward == r.toward { "" } else { " **no**" };
    let rest = p.rest().map_or("- | - | -".to_owned(), |r| r.text());
    Some(format!("| {name} | {} | {} | {toward}{no} | {rest} |", r.name(), cells.join("; ")))
}

/// How a drive cleans that is idle: found and true.
struct Rest {
    found: Idle,
    after_s: f64,
    band_s: f64,
    order: Order,
    turn_s: f64,
}

impl Rest {
    /// Rests are found to two thousandths of themselves; a drive that makes a read wait for four revolutions is still at work.
    fn right(&self) -> [bool; 3] {
        let alone = self.after_s + self.band_s;
        [
            (self.found.after_s - self.after_s).abs() <= 0.004 * alone + 4.0 * self.turn_s,
            (self.found.band_s - self.band_s).abs() <= 0.004 * (alone + self.band_s) + self.turn_s,
            self.found.order == Some(self.order),
        ]
    }

    fn text(&self) -> String {
        let no = self.right().map(|good| if good { "" } else { " **no**" });
        let order = self.found.order.map_or("-".to_owned(), |o| format!("{o:?}"));
        format!(
            "{:.2} / {:.2}{} | {:.3} / {:.3}{} | {order} / {:?}{}",
            self.found.after_s, self.after_s, no[0], self.found.band_s, self.band_s, no[1], self.order, no[2]
        )
    }
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

/// Counts of what is right, and what is wrong.
#[derive(Default)]
struct Score {
    right: [u32; 6],
    all: [u32; 6],
    /// Longest on the drive, in hours, and on the processor, in seconds.
    longest: (f64, f64),
}

/// What a row is judged by.
const JUDGED: [&str; 6] = ["kind", "cache", "band", "direction", "mapping and cleaning", "within 24 hours"];

impl Score {
    /// The row of the first table.
    fn row(&mut self, name: &str, r: &Row, found: &Probed, track: u64, cpu: f64) -> String {
        let id = &found.id;
        let hours = id.quality.seconds / 3600.0;
        let kind = id.kind == r.kind;
        let (held, written) = (id.cache_size.map(|c| c.blocks), id.cache_size.map(|c| c.writes));
        let (cache, cache_right) = match r.holds {
            Holds::Facts => number(held, found.cache, |t| t / 20),
            Holds::Room => number(held, Some(found.room), |t| t / 20),
            Holds::Entries(n) => number(written, Some(n), |t| t / 20),
        };
        let limit = id.cache_size.and_then(|c| c.limit);
        let kinds = [(Limit::Bytes, "bytes"), (Limit::Entries, "entries")];
        let limits = kinds.iter().find(|k| Some(k.0) == limit).map_or("", |k| k.1);
        let wanted = match r.holds {
            Holds::Entries(_) => Some(Limit::Entries),
            _ => id.cache_size.map(|_| Limit::Bytes),
        };
        let of = limit == wanted;
        let (band, band_right) = number(id.band.map(|b| b.blocks), r.band, |t| track.min(t / 4));
        let how = (id.mapping, id.cleaning) == (r.mapping, r.cleaning);
        let toward = id.toward == r.toward;
        let judged = [kind, cache_right && of, band_right, toward, how, hours < 24.0];
        for (i, good) in judged.into_iter().enumerate() {
            self.right[i] += u32::from(good);
            self.all[i] += 1;
        }
        self.longest = (self.longest.0.max(hours), self.longest.1.max(cpu));
        let no = |good: bool| if good { "" } else { " **no**" };
        format!(
            "| {name} | {} | {}{} | {cache} {limits}{} | {band} | {}{} | {hours:.1}{} | {cpu:.1} |",
            r.name(),
            if id.kind == DriveKind::Cmr { "cmr" } else { "drive-managed" },
            no(kind),
            no(of),
            id.mapping.zip(id.cleaning).map_or("-".to_owned(), |(m, c)| format!("{m:?} {c:?}")),
            no(how),
            no(hours < 24.0),
        )
    }

    /// `second` are the rows of the second table.
    fn said(&self, second: &[String]) -> String {
        let of = |i: usize| format!("{} {}/{}", JUDGED[i], self.right[i], self.all[i]);
        let parts: Vec<String> = (0..JUDGED.len()).map(of).collect();
        let (hours, cpu) = self.longest;
        let good = second.iter().filter(|row| !row.contains("**no**")).count();
        format!(
            "Right: {}; rows of the second table {good}/{}.\n\nThe longest: {hours:.1} hours of the drive's, {cpu:.0} s of CPU.",
            parts.join(", "),
            second.len()
        )
    }
}

/// Name, drive, blocks of a track of its outermost zone, tracks of bands.
const DRIVES: [(&str, &str, u64, [u64; 3]); 3] = [
    ("A", "modern-7200,capacity=40GB", 4248, [5, 20, 48]),
    ("B", "modern-7200,capacity=120GB,rpm=5400,k=3", 4248, [5, 20, 48]),
    // Of real size, with zones: its space is not written before.
    ("C", "seagate-st5000as0011", 3240, [20; 3]),
];

fn main() {
    let mut page = Page::new("What `smrlab probe` says, and what is true", "truth_table");
    for (name, drive, _, _) in DRIVES {
        page.line(&format!("- {name}: `{drive}`"));
    }
    page.line("\nBlocks have 512 bytes. What [the page](probe.md) allows is right; **no** is not.\n");
    page.line(
        "| drive | layer | kind | cache, found / true | band, found / true | mapping, cleaning | hours | CPU s |",
    );
    page.line("|---|---|---|---|---|---|---|---|");
    let (mut score, mut second, wanted) = (Score::default(), Vec::new(), page::wanted());
    for (name, drive, track, bands) in DRIVES {
        let rows = if name == "C" { whole_drive(track) } else { rows(track, bands) };
        for r in rows.into_iter().filter(|r| r.layer.contains(&wanted)) {
            let begin = page::cpu();
            match probed(drive, &r) {
                Ok(found) => {
                    page.line(&score.row(name, &r, &found, track, page::cpu() - begin));
                    second.extend(along(name, &r, &found, track));
                }
                Err(e) => page.line(&format!("| {name} | {} | **no** {} |", r.name(), e.replace('\n', " "))),
            }
        }
    }
    page.line("\n| drive | layer | bands along, found / true | towards, found / true | rest s, found / true | a band s, found / true | first, found / true |");
    page.line(&format!("|---|---|---|---|---|---|---|\n{}\n", second.join("\n")));
    page.line(&score.said(&second));
    page.finish("probe-truth.md");
}
