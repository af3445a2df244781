//! The fields of a drive file for its page: where they stand and what they accept comes from the reader itself.

use super::parse::asked;

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDoc {
    /// Where it stands, such as `mechanics.rpm`.
    pub path: String,
    /// Units or words.
    pub accepts: String,
    /// It has to be there.
    pub needed: bool,
    /// What it is.
    pub doc: &'static str,
}

/// Every table, so that the reader asks for what may stand in it.
const TABLES: &str = "[geometry.zones]\n[geometry.defects]\n[geometry.slips]\n[geometry.groups]\n[geometry.runs]\n\
    [geometry.remaps]\n[interference]\n[bands]\n[mechanics.write_seek]\n[controller.buffer]\n[persistent_cache]\n";
const CURVES: [&str; 6] = ["constant", "sqrt", "three-point", "table", "directed", "nearest"];

/// All fields, in the order in which the reader asks for them.
pub fn fields() -> Vec<FieldDoc> {
    let mut out: Vec<FieldDoc> = Vec::new();
    let texts = [format!("{TABLES}[geometry]\nlayout = \"hybrid\"\n[mechanics.read_seek]\n")].into_iter();
    let texts = texts.chain(CURVES.iter().map(|c| {
        let tables = if ["directed", "nearest"].contains(c) {
            "[mechanics.read_seek.rising]\n[mechanics.read_seek.falling]\n"
        } else {
            ""
        };
        format!("[mechanics.read_seek]\ncurve = \"{c}\"\n{tables}")
    }));
    for (path, accepts, needed) in texts.flat_map(|t| asked(&t)) {
        let curve = path.starts_with("mechanics.read_seek.") && !path.ends_with(".curve");
        let needed = needed && !curve && path != "geometry.group_cylinders";
        match out.iter_mut().find(|f| f.path == path) {
            // A word that is one of several is asked for as a text, too.
            Some(f) if f.accepts == "a text" => f.accepts = accepts,
            Some(f) => f.needed |= needed,
            None => out.push(FieldDoc { doc: doc(&path), path, accepts, needed }),
        }
    }
    out.retain(|f| f.accepts != "a table" && !f.path.ends_with(".kind") && !f.path.ends_with(".source"));
    out.sort_by_key(|f| table_order(&f.path));
    out
}

/// The tables in the order in which files have them.
fn table_order(path: &str) -> usize {
    let table = path.rsplit_once('.').map_or("", |(table, _)| table);
    let order = [
        "",
        "geometry",
        "geometry.zones",
        "geometry.defects",
        "geometry.slips",
        "geometry.groups",
        "geometry.runs",
        "geometry.remaps",
        "interference",
        "bands",
    ];
    order.iter().position(|t| *t == table).unwrap_or(order.len())
}

fn doc(path: &str) -> &'static str {
    DOCS.iter().find(|d| d.0 == path).map_or("", |d| d.1)
}

const DOCS: &[(&str, &str)] = &[
    ("schema", "1, the version of the format"),
    ("name", "short name, in lower case"),
    ("summary", "one line for `smrlab list drives`"),
    ("reference", "where the drive comes from"),
    (
        "counted_blocks",
        "blocks that count as its size, where guards are kept outside: no layer gives the host more; default: all of the geometry",
    ),
    ("geometry.surfaces", "recorded surfaces (heads)"),
    ("geometry.layout", "the order in which PBAs fill the surfaces"),
    ("geometry.group_cylinders", "of `hybrid`: cylinders that are filled surface by surface"),
    ("geometry.track_skew", "how much later the next track begins where only the surface changes"),
    ("geometry.cylinder_skew", "how much later the next track begins where the cylinder changes"),
    (
        "geometry.zones.list",
        "a row a zone, from the outermost: cylinders and sectors a track; more columns below",
    ),
    ("geometry.defects.list", "slipped sectors: cylinder, surface, sector"),
    ("geometry.slips.list", "blocks left out of a zone's numbering: zone, first block in it, blocks"),
    (
        "geometry.groups.list",
        "of `listed`, a row a zone: zone, cylinders in a group, and in 1e-6 rev where the first group starts and from each to the next",
    ),
    (
        "geometry.runs.list",
        "of `listed`, the tracks of a group in PBA order: zone, from cylinder, to cylinder (lower: outwards), surface, sectors, \
         spare sectors, and in 1e-6 rev where the first track starts and from each to the next",
    ),
    ("geometry.remaps.list", "blocks that lie on spare sectors: block, cylinder, surface, sector"),
    (
        "interference.blocks",
        "block profile: blocks damaged by a write from its first one on, itself included; instead of tracks",
    ),
    (
        "interference.s_id",
        "tracks that a write touches towards the inner diameter, its own included: the head width",
    ),
    ("interference.s_od", "tracks that a write touches towards the outer diameter, its own included"),
    ("interference.phi_cw", "how far along the track damage reaches behind a write"),
    ("interference.phi_ccw", "how far along the track damage reaches in front of a write"),
    ("bands.tracks", "tracks in a band where a layer is given none; default: 4"),
    (
        "bands.random_access",
        "tracks from PBA 0 on that are set aside for random access, not shingled on a drive with a block profile; default: none",
    ),
    ("bands.blocks", "blocks in a band, on drives with a block profile"),
    ("mechanics.rpm", "speed of rotation"),
    ("mechanics.model", "the model that the drive is meant for: `--mechanics` overrides it"),
    ("mechanics.seek_over", "what distances of the seek curve count"),
    ("mechanics.head_switch", "time to change the surface"),
    ("mechanics.write_head_switch", "the same before a write, where it differs"),
    ("mechanics.write_settle", "what a write adds after a seek or a head switch"),
    ("mechanics.read_overhead", "before a read positions"),
    ("mechanics.write_overhead", "before a write positions"),
    (
        "mechanics.rate",
        "bytes a second of any transfer, where that is not the rotation's; a pass over the medium may take 50 days",
    ),
    (
        "mechanics.read_seek.curve",
        "the form of the seek curve; `write_seek` is a table of the same form, default: as for reads",
    ),
    ("mechanics.write_seek.curve", "the form of the curve for writes, with the fields of `read_seek`"),
    ("mechanics.read_seek.time", "of `constant`: the time of every seek"),
    ("mechanics.read_seek.base", "of `sqrt`: the shortest seek"),
    ("mechanics.read_seek.span", "of `sqrt`: what the longest seek adds"),
    ("mechanics.read_seek.single", "of `three-point`: to the next cylinder"),
    ("mechanics.read_seek.average", "of `three-point`: over a third of the drive"),
    ("mechanics.read_seek.full_stroke", "of `three-point`: over the whole drive"),
    (
        "mechanics.read_seek.list",
        "of `table`: rows of distance and nanoseconds, distances rising; straight lines between",
    ),
    (
        "mechanics.read_seek.rising.list",
        "of `directed` and `nearest`: the same for seeks to higher cylinders; of `nearest` only the nearest row counts",
    ),
    ("mechanics.read_seek.falling.list", "of `directed` and `nearest`: the same for seeks back"),
    (
        "controller.read_hit_after_read",
        "before a read of which the buffer has the beginning, where the command before was a read",
    ),
    ("controller.read_hit_after_write", "the same, after a write"),
    ("controller.read_miss_after_read", "before any other read positions, after a read"),
    ("controller.read_miss_after_write", "the same, after a write"),
    ("controller.write_hit_after_read", "before a write that the buffer takes, after a read"),
    ("controller.write_hit_after_write", "the same, after a write"),
    ("controller.write_miss_after_read", "before any other write positions, after a read"),
    ("controller.write_miss_after_write", "the same, after a write"),
    ("controller.read_done", "after a read's last block"),
    ("controller.write_done", "after a write's last block"),
    ("controller.bus_read", "what the bus needs for a block of a read"),
    ("controller.bus_write", "what the bus needs for a block of a write"),
    ("controller.write_delay", "how long a write in the buffer is left there before the medium takes it"),
    (
        "controller.read_settle_after_read",
        "before a read of which the head is on the cylinder already, after a read, beside the overhead",
    ),
    ("controller.read_settle_after_write", "the same, after a write: reading and writing elements lie apart"),
    ("controller.read_gather", "share of a read's blocks that are in the buffer before the bus begins"),
    ("controller.buffer.segments", "segments of the buffer"),
    ("controller.buffer.segment_blocks", "length of a segment"),
    ("controller.buffer.write_segments", "segments that may hold data which are not on the medium yet"),
    ("controller.buffer.read_ahead", "how far the drive reads on after a read"),
    ("controller.buffer.read_ahead_blocks", "the most that is read ahead"),
    ("controller.buffer.keeps_requested", "reading ahead leaves what was asked for in the segment"),
    (
        "controller.buffer.write_back",
        "which writes are acknowledged when they are in the buffer; append is modelled as on",
    ),
    ("controller.buffer.zero_latency_reads", "reads may begin in the middle of what is asked for"),
    ("controller.buffer.zero_latency_writes", "writes may begin in the middle of what is to be written"),
    ("controller.buffer.written_hits", "what was written can be read from the buffer"),
    ("controller.buffer.ahead_on_hit", "a hit makes an idle medium go on reading ahead"),
    (
        "controller.buffer.passing_blocks",
        "what passes the head on the way to the first block of a read is kept",
    ),
    ("persistent_cache.log", "size of the log on the medium"),
    ("persistent_cache.slot_tracks", "least length of a packet, in tracks of the log"),
    ("persistent_cache.packet", "data in a packet at most"),
    ("persistent_cache.overhead", "what a packet takes beside its data"),
    ("persistent_cache.map_trigger", "packets beyond which cleaning begins"),
    ("persistent_cache.map_limit", "packets with live data at which requests wait for whole rounds"),
    ("persistent_cache.commit_turns", "fixed part of a commit"),
    ("persistent_cache.commit_rate", "what a commit adds for its data"),
    ("persistent_cache.commit_overhead", "before a commit where the head is at the log already"),
    ("persistent_cache.journal_every", "packets from one commit of the journal to the next"),
    ("persistent_cache.journal", "time of a commit of the journal"),
    ("persistent_cache.round_bands", "bands that a round of cleaning takes"),
    ("persistent_cache.collect_turns", "time to collect a packet"),
    ("persistent_cache.memory", "memory in which a band is merged"),
    ("persistent_cache.idle", "idle time after which the drive cleans"),
    ("persistent_cache.bypass", "1: sequential writes from a band's beginning on go to the band directly"),
    (
        "persistent_cache.whole_bands",
        "1: a band whose blocks are all in the log is written without being read",
    ),
    (
        "persistent_cache.read_late",
        "a native read misses what passes within so much behind the head's arrival; it takes the place of the read overhead",
    ),
    (
        "persistent_cache.one_place",
        "so many first cylinders, the cache's, are one place for seeks, and reads from and to there miss nothing",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_the_reader_asks_for_is_documented_and_no_other() {
        let all = fields();
        let silent: Vec<_> = all.iter().filter(|f| f.doc.is_empty()).map(|f| &f.path).collect();
        assert!(silent.is_empty(), "say in DOCS what these are: {silent:?}");
        let gone: Vec<_> = DOCS.iter().filter(|d| !all.iter().any(|f| f.path == d.0)).map(|d| d.0).collect();
        assert!(gone.is_empty(), "no reader asks for these: {gone:?}");
    }
}
