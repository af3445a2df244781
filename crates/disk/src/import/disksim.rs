//! DiskSim 4.0: `.parv` with the `.diskspecs`, `.model` and `.seek` files that it names; layout g1.

use super::params::{Block, Value, parse, seek_points};
use super::{Imported, g2, g4};
use crate::geometry::{
    Geometry, GeometrySpec, Layout, MOST_SECTORS, REVOLUTION, Remap, Slip, ZoneSkew, ZoneSpec, angle_of,
};
use crate::interference::{Interference, PhysicalProfile};
use crate::mechanics::{Distance, MechanicsSpec, Model, SeekCurve};
use crate::model::{
    BandDefaults, BufferSpec, ControllerSpec, DriveModel, DriveSpec, ReadAhead, WriteBack, write,
};
use smrlab_units::{Blocks, SimTime, counted};

/// Reads `name` and the files that it names with `read`, and makes a drive file of them.
///
/// # Errors
/// A file that cannot be read, with its line; a layout or seek type that is not known; faults of the drive.
pub fn disksim(name: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<Imported, String> {
    let top = parse(name, read)?;
    let find = |kind: &str| top.iter().find(|b| b.kind == kind);
    let disk = find("disksim_disk").ok_or_else(|| {
        format!("{name}: no disksim_disk in it or in what it names: give the .parv file of a drive")
    })?;
    let model = disk.block("Model").or_else(|| find("dm_disk"));
    let model = model
        .ok_or_else(|| disk.wrong("Model", "it names no model: 'Model = source FILE.model' is missing"))?;
    let part = |key| model.block(key).ok_or_else(|| model.wrong(key, format_args!("no block '{key}'")));
    let (mechanics, layout) = (part("Mechanical Model")?, part("Layout Model")?);
    let mut left_out = Vec::new();
    let geometry = geometry(model, layout, read, &mut left_out)?;
    let cylinders = geometry.zones.iter().map(|z| u64::from(z.cylinders)).sum();
    let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".parv");
    let mut spec = DriveSpec {
        name: stem.to_owned(),
        summary: String::new(),
        reference: format!(
            "imported from the DiskSim 4.0 parameter file {stem}.parv and the files that it names"
        ),
        mechanics: mechanics_of(mechanics, cylinders, read, &mut left_out)?,
        geometry,
        model: Model::Full,
        interference: Interference::Physical(PhysicalProfile {
            s_id: 1,
            s_od: 1,
            phi_cw: 0,
            phi_ccw: 0,
            wave: 0,
        }),
        bands: BandDefaults::default(),
        cache: None,
        counted: None,
        controller: Some(controller(disk, &top, &mut left_out)?),
    };
    if let (Some(c), SeekCurve::Table(points)) = (&mut spec.controller, &spec.mechanics.read_seek)
        && let Some(shortest) = points.iter().find(|p| p.0 > 0)
    {
        // Reading and writing elements lie apart: the head settles anew, though it does not seek.
        c.read_settle[1] = SimTime(shortest.1.0 / 2);
    }
    let drive = DriveModel::new(spec.clone(), Vec::new());
    let drive = drive
        .map_err(|e| format!("{name}: what it says is no drive: {}", e.to_string().replace('\n', "; ")))?;
    let blocks = drive.geometry().blocks();
    if let Some(told) = model.number("Block count")
        && told as u64 != blocks.0
    {
        left_out.push(format!("Block count = {told}: the zones give {blocks}"));
    }
    let summary = format!(
        "{:.2} GB, {} rpm, {}, {}; with its buffer and bus",
        blocks.bytes() as f64 / 1e9,
        spec.mechanics.rpm,
        counted(spec.geometry.surfaces.into(), "surface"),
        counted(spec.geometry.zones.len() as u64, "zone")
    );
    let bus = spec.controller.map_or([SimTime::ZERO; 2], |c| c.bus);
    for (time, what) in bus.iter().zip(["reads", "writes"]).filter(|(time, _)| time.0 == 0) {
        left_out.push(format!("the bus takes no time for {what}: none is stated ({time})"));
    }
    let toml = write(&DriveSpec { summary, ..spec }, &|field| origin(stem, field, bus));
    Ok(Imported { toml, left_out })
}

fn origin(stem: &str, field: &str, bus: [SimTime; 2]) -> (&'static str, String) {
    match field.split('.').next() {
        _ if (field == "controller.bus_read" && bus[0].0 == 0)
            || (field == "controller.bus_write" && bus[1].0 == 0) =>
        {
            ("assumed", "no time is stated for the bus".to_owned())
        }
        Some("interference") => ("assumed", "a conventional drive; override with k".to_owned()),
        _ if field.ends_with("_overhead") => {
            ("assumed", "charged once a host command, see [controller]".to_owned())
        }
        _ if field == "controller.read_settle_after_write" => {
            ("fitted", "half of the shortest seek, see docs/validation.md".to_owned())
        }
        _ if field == "controller.read_settle_after_read" => ("assumed", "not extracted".to_owned()),
        _ if field == "geometry.track_skew" || field == "geometry.cylinder_skew" => {
            ("assumed", "each zone has its own".to_owned())
        }
        _ => ("measured", format!("extracted from the drive: DiskSim 4.0, {stem}")),
    }
}

/// Most blocks of a zone that hold nothing.
const BLOCKS: u32 = 1 << 30;

fn ms(t: f64) -> SimTime {
    // Times of weeks are for the checks to refuse, without overflowing on the way.
    SimTime((t * 1e6).round().clamp(0.0, 1e15) as u64)
}

fn geometry(
    model: &Block,
    layout: &Block,
    read: &dyn Fn(&str) -> Result<String, String>,
    left_out: &mut Vec<String>,
) -> Result<GeometrySpec, String> {
    let surfaces = model.whole("Number of data surfaces", 64)?;
    match layout.kind.as_str() {
        "dm_layout_g1" => g1(layout, surfaces, left_out),
        "dm_layout_g2" => g2::geometry(layout, surfaces, read),
        "dm_layout_g4" => g4::geometry(layout, surfaces).map_err(|e| format!("{}{e}", layout.place())),
        _ => Err(layout.wrong("", "this layout is not read: dm_layout_g1, dm_layout_g2, dm_layout_g4 are")),
    }
}

fn g1(layout: &Block, surfaces: u32, left_out: &mut Vec<String>) -> Result<GeometrySpec, String> {
    let mapping = layout.whole("LBN-to-PBN mapping scheme", 100)?;
    let order = match mapping {
        0 => Layout::Cylinder { alternate: false },
        1 => Layout::ZoneAlternate,
        2 => Layout::Cylinder { alternate: true },
        n => {
            let what = format_args!("LBN-to-PBN mapping scheme {n} is not known: 0, 1 or 2");
            return Err(layout.wrong("LBN-to-PBN mapping scheme", what));
        }
    };
    let mut g = GeometrySpec { surfaces, layout: order, ..GeometrySpec::single_surface(Vec::new()) };
    let mut next = 0;
    for (i, value) in layout.list("Zones").iter().enumerate() {
        let Value::Block(z) = value else { continue };
        let (first, last) = z.cylinders(next)?;
        if let Some(before) = g.zones.last_mut() {
            let before: &mut ZoneSpec = before;
            before.cylinders += first - next;
            before.spare_cylinders += first - next;
        }
        next = last + 1;
        let scheme = (
            layout.whole("Sparing scheme used", 100)?,
            layout.number("Rangesize for sparing").unwrap_or(1.0),
        );
        let zone = zone(i as u32, z, (next - first, surfaces), scheme, &mut g.slips, left_out)?;
        g.zones.push(zone);
    }
    remaps(layout, &mut g, left_out)?;
    Ok(g)
}

fn zone(
    index: u32,
    z: &Block,
    (cylinders, surfaces): (u32, u32),
    (scheme, range): (u32, f64),
    slips: &mut Vec<Slip>,
    left_out: &mut Vec<String>,
) -> Result<ZoneSpec, String> {
    let sectors = z.whole("Blocks per track", MOST_SECTORS)?;
    let in_revolutions = z.get("Skew units").is_some_and(|v| *v == Value::Word("revolutions".to_owned()));
    let skew = |key| -> Result<u64, String> {
        let of = if in_revolutions { 1 } else { sectors.max(1) };
        Ok(angle_of(z.need(key)?.rem_euclid(f64::from(of)), of) % REVOLUTION)
    };
    let numbers =
        |key: &str| z.list(key).iter().filter_map(Value::number).map(|n| n as u64).collect::<Vec<_>>();
    let slipped = numbers("slips");
    let (spares, used) = (z.whole("Number of spares", BLOCKS)?, slipped.len() as u32);
    let mut out = ZoneSpec {
        front: z.whole("Empty space at zone front", BLOCKS)?,
        skew: Some(ZoneSkew {
            track: skew("Skew for track switch")?,
            cylinder: skew("Skew for cylinder switch")?,
            start: skew("Offset of first block")?,
        }),
        ..ZoneSpec::plain(cylinders, sectors)
    };
    let unit = if scheme == 1 { sectors.max(1) } else { 1 };
    // Slips among the spares at the zone's end use up none of them.
    let all = u64::from(cylinders) * u64::from(surfaces) * u64::from(sectors / unit);
    if let Some(beyond) = slipped.iter().find(|&&s| s >= all) {
        return Err(z.wrong("slips", format_args!("zone {index}: slip {beyond} is none of its {all}")));
    }
    let mut data = all.saturating_sub(u64::from(spares));
    let mut sorted = slipped.clone();
    sorted.sort_unstable();
    for s in sorted {
        data += u64::from(s < data);
    }
    let end = (all.saturating_sub(data) as u32).saturating_mul(unit);
    match scheme {
        0 | 7 => {}
        1 | 9 => out.end = end,
        3 => out.spare_sectors = spares,
        2 | 4 | 5 | 6 => out.range_spares = spares,
        8 => (out.range_spares, out.range_cylinders) = (spares, range as u32),
        10 => out.end = spares,
        n => return Err(z.wrong("", format_args!("sparing scheme {n} is not known: 0 to 10"))),
    }
    if scheme == 3 && used > 0 {
        left_out.push(format!("zone {index}: {used} slips within tracks"));
    } else {
        let slip = |&s: &u64| Slip { zone: index, first: s * u64::from(unit), blocks: unit };
        slips.extend(slipped.iter().map(slip));
    }
    Ok(out)
}

/// What the zones say of defective sectors: pairs of the sector and the one that stands for it, as numbers in the zone.
fn remaps(layout: &Block, g: &mut GeometrySpec, left_out: &mut Vec<String>) -> Result<(), String> {
    let numbers = |z: &Value| match z {
        Value::Block(z) => z.list("defects").iter().filter_map(Value::number).map(|n| n as u64).collect(),
        _ => Vec::new(),
    };
    let found: Vec<Vec<u64>> = layout.list("Zones").iter().map(numbers).collect();
    if found.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let plain = Geometry::new(g.clone()).map_err(|e| e.to_string())?;
    for (index, (zone, run)) in found.iter().zip(plain.zone_runs()).enumerate() {
        for pair in zone.chunks_exact(2).filter(|pair| pair[0] != pair[1]) {
            let [bad, spare] = [pair[0], pair[1]].map(|n| run.first_raw + n.min(run.blocks() - 1));
            if plain.slips().contains(bad) || !plain.slips().contains(spare) {
                left_out
                    .push(format!("zone {index}: sector {} for {} is none that is spare", pair[1], pair[0]));
                continue;
            }
            g.remaps.push(Remap { block: plain.slips().to_dense(bad), to: plain.sector_of(spare) });
        }
    }
    Ok(())
}

fn mechanics_of(
    m: &Block,
    cylinders: u64,
    read: &dyn Fn(&str) -> Result<String, String>,
    left_out: &mut Vec<String>,
) -> Result<MechanicsSpec, String> {
    let word = |key| match m.get(key) {
        Some(Value::Word(w)) => Some(w.as_str()),
        _ => None,
    };
    let points = match word("Seek type") {
        Some("extracted") => {
            let file = word("Full seek curve")
                .ok_or_else(|| m.wrong("Full seek curve", "'Full seek curve' names no file"))?;
            let text = read(file).map_err(|e| m.wrong("Full seek curve", e))?;
            seek_points(&text).map_err(|e| format!("{file}: {e}"))?
        }
        Some("hplplus10") => hpl(m, cylinders, 10)?,
        Some("hpl") => hpl(m, cylinders, 1)?,
        other => {
            let kind = other.unwrap_or("(none)");
            let what = format_args!("seek type {kind} is not read: extracted, hplplus10, hpl are");
            return Err(m.wrong("Seek type", what));
        }
    };
    if let Some(kind) = word("Access time type").filter(|&kind| kind != "trackSwitchPlusRotation") {
        left_out.push(format!("Access time type = {kind}: the rotation is followed"));
    }
    if m.number("Percent error in rpms").is_some_and(|e| e != 0.0) {
        left_out.push("Percent error in rpms".to_owned());
    }
    let (settle, switch) = (m.need("Add. write settling delay")?, m.need("Head switch time")?);
    let curve = |f: &dyn Fn(&(u64, f64, Option<f64>)) -> f64| {
        SeekCurve::Table(points.iter().map(|p| (p.0, ms(f(p)))).collect())
    };
    Ok(MechanicsSpec {
        rpm: m.whole("Rotation speed (in rpms)", 1_000_000)?,
        distance: Distance::Cylinders,
        read_seek: curve(&|p| p.1),
        write_seek: curve(&|p| p.2.unwrap_or(p.1) + settle),
        head_switch: ms(switch),
        write_head_switch: Some(ms(switch + settle)),
        write_settle: SimTime::ZERO,
        read_overhead: SimTime::ZERO,
        write_overhead: SimTime::ZERO,
        read_late: Blocks::ZERO,
        one_place: 0,
        rate: None,
    })
}

/// So many measured seeks (of one: where the sixth value gives it), then `b + c sqrt(d)` below a distance and `d + e d`
/// from there on, with points so close that straight lines between them are off by less than a microsecond.
fn hpl(m: &Block, cylinders: u64, most: usize) -> Result<Vec<(u64, f64, Option<f64>)>, String> {
    let list = |key| m.list(key).iter().filter_map(Value::number).collect::<Vec<f64>>();
    let v = list("HPL seek equation values");
    let single = v.get(5).filter(|&&t| most == 1 && t != -1.0);
    let first = if most == 1 { single.copied().into_iter().collect() } else { list("First ten seek times") };
    let ([knee, a, b, c, e, ..], true) = (&v[..], most == 1 || first.len() == most) else {
        let key = "HPL seek equation values";
        return Err(m.wrong(key, "'HPL seek equation values' or 'First ten seek times' are incomplete"));
    };
    let knee = *knee as u64;
    let mut d = 1 + first.len() as u64;
    let mut points: Vec<_> = (1..).zip(first).map(|(d, t)| (d, t, None)).collect();
    while d < knee.min(cylinders) {
        points.push((d, a + b * (d as f64).sqrt(), None));
        let step = (0.3 * (d as f64).powf(0.75)) as u64;
        d = if d == knee - 1 { knee } else { (d + step.max(1)).min(knee - 1) };
    }
    points.extend([knee, cylinders.max(knee + 1)].map(|d| (d, c + e * d as f64, None)));
    Ok(points)
}

fn controller(disk: &Block, top: &[Block], left_out: &mut Vec<String>) -> Result<ControllerSpec, String> {
    let scale = disk.number("Time scale for overheads").unwrap_or(1.0);
    let t = |key: &str| disk.number(key).unwrap_or(0.0);
    let parts = top.iter().filter(|b| ["disksim_bus", "disksim_ctlr"].contains(&b.kind.as_str()));
    parts.clone().chain([disk]).try_for_each(Block::numbers)?;
    for (key, value) in parts.chain([disk]).flat_map(|b| &b.fields) {
        let is_time = TIMES.iter().any(|end| key.ends_with(end));
        if let Some(n) = value.number().filter(|n| is_time && *n < 0.0) {
            left_out.push(format!("{key} = {n}: no time is negative, 0 counts"));
        }
    }
    let each = t("Per-request overhead time");
    let overhead =
        |key: &str| ["read", "write"].map(|after| ms((t(&format!("{key} after {after}")) + each) * scale));
    let scaled = |keys: &[&str]| ms(keys.iter().map(|key| t(key)).sum::<f64>() * scale);
    // The slowest of disk, bus and controller sets the pace.
    let slowest = |key: &str| {
        let buses = top.iter().filter(|b| b.kind == "disksim_bus").filter_map(|b| b.number(key));
        let controllers = top.iter().filter(|b| b.kind == "disksim_ctlr");
        let controllers = controllers.filter_map(|b| b.number("Bulk sector transfer time"));
        ms(buses.chain(controllers).fold(t("Bulk sector transfer time"), f64::max))
    };
    let count = |key: &str| disk.whole(key, u32::MAX);
    let fast = t("Fast write level") as u32;
    let prepare = scaled(&["Data preparation overhead"]);
    let cached = disk.number("Enable caching in buffer").unwrap_or(1.0);
    if cached > 1.0 {
        left_out.push(format!("Enable caching in buffer = {cached}"));
    }
    let buffer = BufferSpec {
        segments: count("Number of buffer segments")?,
        segment_blocks: count("Segment size (in blks)")?,
        write_segments: count("Maximum number of write segments")?,
        read_ahead: match t("Buffer continuous read") as u32 {
            0 => ReadAhead::Off,
            1 => ReadAhead::Track,
            2 => ReadAhead::Cylinder,
            3 => ReadAhead::Segment,
            _ => ReadAhead::TwoTracks,
        },
        read_ahead_blocks: count("Maximum read-ahead (blks)")?,
        keeps_requested: t("Read-ahead over requested") == 0.0,
        passing: t("Read any free blocks") > 0.0,
        ahead_on_hit: t("Read-ahead on idle hit") > 0.0,
        // With "Immediate buffer read" DiskSim itself reads in order all the same, and so did the drives.
        zero_latency: [false; 2],
        write_back: [WriteBack::Off, WriteBack::Append, WriteBack::On][fast.min(2) as usize],
        written_hits: t("Allow read hits on write data") > 0.0,
    };
    let buffer = if cached == 0.0 { BufferSpec::OFF } else { buffer };
    for (key, value) in &disk.fields {
        let plain = LEFT_OUT.contains(&key.as_str());
        if plain && let Some(n) = value.number().filter(|n| *n != 0.0) {
            left_out.push(format!("{key} = {n}"));
        }
    }
    Ok(ControllerSpec {
        read_hit: overhead("Read hit over.").map(|t| t + prepare),
        read_miss: overhead("Read miss over."),
        write_hit: overhead("Write hit over."),
        write_miss: overhead("Write miss over."),
        read_settle: [SimTime::ZERO; 2],
        write_delay: scaled(&EXTRA_DISCONNECT),
        read_gather: (t("High (read) water mark") * 1000.0) as u32,
        done: [scaled(&["Read completion overhead"]), scaled(&["Write completion overhead"])],
        bus: [slowest("Read block transfer time"), slowest("Write block transfer time")],
        buffer,
    })
}

/// How the names of times end.
const TIMES: [&str; 5] = ["after read", "after write", "overhead", "transfer time", "delay"];

/// A second disconnection before the data of a write.
const EXTRA_DISCONNECT: [&str; 4] = [
    "Extradisc command overhead",
    "Extradisc disconnect overhead",
    "Extradisc inter-disconnect delay",
    "Extradisc 2nd disconnect overhead",
];

/// What a drive file has no word for.
const LEFT_OUT: [&str; 19] = [
    "Allow almost read hits",
    "Allow sneaky full read hits",
    "Allow sneaky partial read hits",
    "Allow sneaky intermediate read hits",
    "Allow write prebuffering",
    "Preseeking level",
    "Minimum read-ahead (blks)",
    "Low (write) water mark",
    "Immediate buffer read",
    "Immediate buffer write",
    "Disconnect write if seek",
    "First reselect overhead",
    "Other reselect overhead",
    "Read disconnect afterread",
    "Read disconnect afterwrite",
    "Write disconnect overhead",
    "Extra write disconnect",
    "Extradisc seek delta",
    "Minimum seek delay",
];
