//! The keys of a result: what each says, in which unit, by which formula, and where it comes from. `smrlab explain`,
//! the heads of tables, the report's tips and the reference page are made from this table; a key that a run gives and
//! that is not here fails a test.

use crate::columns::COLUMNS;
use crate::key::{Key, key};
use serde_json::{Value, json};

const CASSUTO: &str =
    "Cassuto et al. 2010, Indirection systems for shingled-recording disk drives, section III";
const HE: &str = "He and Du 2014, Novel address mappings for shingled write disks, section 3";

/// All keys, in the order of the document.
pub const KEYS: &[Key] = &[
    key("host.reads", "reads", "requests", "reads that the host sent"),
    key("host.writes", "writes", "requests", "writes that the host sent, appends to zones included"),
    key("host.blocks_read", "blocks read", "blocks of 512 B", "blocks in the host's reads"),
    key("host.blocks_written", "blocks written", "blocks of 512 B", "blocks in the host's writes"),
    key("host.adjusted_reads", "adjusted reads", "operations", "the host's reads, long ones counted as several")
        .is("sum over reads of ceil(blocks / adjusted_blocks); adjusted_rule=floor+1: floor(blocks / adjusted_blocks) + 1")
        .from(CASSUTO),
    key("host.adjusted_writes", "adjusted writes", "operations", "the host's writes, long ones counted as several")
        .is("as host.adjusted_reads, over writes")
        .from(CASSUTO),
    key("host.updates", "updates", "requests", "writes of which at least one block had been written before, whether it was discarded since or not")
        .from(HE),
    key("host.flushes", "flushes", "requests", "flushes that the host sent"),
    key("host.discards", "discards", "requests", "discards that the host sent"),
    key("host.appends", "appends", "requests", "of the writes those to where a zone's write pointer is; missing where there are none"),
    key("host.zone_commands", "zone commands", "requests", "zones that the host opened, closed, finished or reset, a command each; missing where there are none"),
    key("host.refused_blocks_read", "blocks of refused reads", "blocks of 512 B", "of the blocks read those of reads that were refused; missing where there are none"),
    key("host.refused_blocks_written", "blocks of refused writes", "blocks of 512 B", "of the blocks written those of writes that were refused; missing where there are none"),
    key("host.refused_adjusted_reads", "adjusted refused reads", "operations", "of the adjusted reads those that were refused; missing where there are none"),
    key("host.refused_adjusted_writes", "adjusted refused writes", "operations", "of the adjusted writes those that were refused; missing where there are none"),
    key("host.reads_unwritten", "reads of unwritten data", "requests",
        "reads of blocks that nothing had written: a layer that logs answers them from where nothing had to be cleaned, so \
         they make it look fast; give --prefill"),
    key("host.blocks_read_unwritten", "unwritten blocks read", "blocks of 512 B", "blocks in such reads that nothing had written"),
    key("media.reads", "media reads", "operations", "read operations on the medium"),
    key("media.writes", "media writes", "operations", "write operations on the medium"),
    key("media.blocks_read", "media blocks read", "blocks of 512 B", "blocks read on the medium"),
    key("media.blocks_written", "media blocks written", "blocks of 512 B", "blocks written on the medium"),
    key("media.adjusted_reads", "adjusted media reads", "operations", "media reads, long ones counted as several")
        .is("as host.adjusted_reads")
        .from(CASSUTO),
    key("media.adjusted_writes", "adjusted media writes", "operations", "media writes, long ones counted as several")
        .is("as host.adjusted_reads")
        .from(CASSUTO),
    key("media.by_cause.*.*", "by cause", "as above",
        "the same six counts for each cause: host, clean (making room), destage (cache to home), defrag, metadata, journal, \
         fill (completing a unit), parity, rebuild (a lost drive, or copies and parities that are made to fit again)"),
    key("media.background_share", "background", "share", "media blocks that were moved in idle time, of all media blocks"),
    key("write_overloading", "write overloading", "", "adjusted media operations for each adjusted host write; reads of the \
         host count as one each, also those that a buffer, an SSD or the layer answered without the medium: with many of them it is \
         below what writes cost, and may be negative; write_overloading_media counts the medium alone")
        .also(&["overloading"])
        .is("(media.adjusted_reads + media.adjusted_writes - (host.adjusted_reads - host.refused_adjusted_reads)) / (host.adjusted_writes - host.refused_adjusted_writes)")
        .from(CASSUTO),
    key("write_overloading_media", "write overloading, medium", "", "adjusted media operations that are no reads of cause host, for each \
         adjusted host write: what writes cost the medium, whatever answered the reads and however many operations they took")
        .also(&["overloading"])
        .is("(media.adjusted_reads - media.by_cause.host.adjusted_reads + media.adjusted_writes) / (host.adjusted_writes - host.refused_adjusted_writes)"),
    key("write_amplification", "write amplification", "", "blocks written on the medium for each block that the host wrote \
         (what was refused it did not write): the usual meaning of the word, in bytes; not WAR, which counts operations")
        .also(&["WA", "WAF", "byte write amplification"])
        .is("media.blocks_written / (host.blocks_written - host.refused_blocks_written)"),
    key("war.per_update", "WAR per update", "", "media operations for each extent of a write that updates: sub-requests, in \
         operations and not in bytes")
        .also(&["WAR", "write amplification ratio"])
        .is("media operations of the plans of updates / extents into which the layer split these updates")
        .from(HE),
    key("war.per_write", "WAR per write", "", "the same over all writes, first ones included")
        .also(&["WAR"])
        .is("media operations of the plans of writes / extents into which the layer split these writes")
        .from(HE),
    key("war.per_request", "WAR per request", "", "media operations for each write request, however many extents it has")
        .also(&["WAR"])
        .is("media operations of the plans of writes / host.writes"),
    key("response_ms.mean", "mean", "ms", "response time: from the arrival of a request to its completion, waiting included")
        .also(&["response", "response time"])
        .is("completion - arrival, in requests.parquet; exact"),
    key("response_ms.p50", "p50", "ms", "half of the requests were answered within it").also(&["median"]),
    key("response_ms.p90", "p90", "ms", "90 % of the requests were answered within it"),
    key("response_ms.p95", "p95", "ms", "95 % of the requests were answered within it"),
    key("response_ms.p99", "p99", "ms", "99 % of the requests were answered within it; says nothing of the worst"),
    key("response_ms.p999", "p99.9", "ms", "99.9 % of the requests were answered within it"),
    key("response_ms.max", "worst", "ms", "the longest response time; exact")
        .also(&["max", "worst response"]),
    key("read_response_ms.*", "reads, response", "ms", "response_ms over reads alone"),
    key("write_response_ms.*", "writes, response", "ms", "response_ms over writes alone"),
    key("service_ms.*", "service", "ms", "from when the drive began with a request to its completion, waiting excluded")
        .also(&["service time"])
        .is("completion - start, in requests.parquet"),
    key("histogram_relative_error", "percentiles' error", "share", "percentiles lie within this share of the true ones"),
    key("makespan_s", "simulated time", "s", "from the first arrival to the last completion")
        .also(&["makespan"]),
    key("busy_s", "busy", "s", "time in which the drive worked, in idle time too"),
    key("busy_before_s", "busy before", "s", "the part of it before the first request came, which is in no window of the timeline")
        .is("busy_s - sum over timeline.parquet of busy_share * window"),
    key("time_by_cause_s.*", "busy by cause", "s", "busy time by what was done and why")
        .is("sum over media.parquet of end - start, by cause, and the pauses of layers that say how long a step takes (persistent-cache, host-aware), which are no media operations"),
    key("iops", "IOPS", "requests/s", "requests completed a second, over the whole run")
        .is("requests / makespan_s"),
    key("mb_per_s", "MB/s", "10^6 bytes/s", "bytes read and written by the host a second, over the whole run; without what was refused")
        .is("512 * (host.blocks_read + host.blocks_written - host.refused_blocks_read - host.refused_blocks_written) / 10^6 / makespan_s"),
    key("movement.track_switches", "track switches", "operations", "operations that began on another track than the last one ended on"),
    key("movement.track_distance", "track distance", "cylinders", "cylinders between the end of an operation and the \
         beginning of the next, summed: tracks, where a drive has one surface"),
    key("movement.band_switches", "band switches", "operations", "operations that began in another band than the last one ended in"),
    key("cleaning.count", "cleanings", "events", "times that the layer made room or put things in order, in the foreground or in idle time; one that was under way at the end \
         of the run is in the times, and is not counted")
        .also(&["cleaning"]),
    key("cleaning.first_s", "first cleaning", "s", "when the first cleaning began, from the first arrival: the cliff")
        .also(&["cliff", "time to first cleaning"]),
    key("cleaning.total_s", "cleaning time", "s", "time that cleaning took, summed"),
    key("cleaning.max_s", "longest cleaning", "s", "the longest single cleaning"),
    key("cleaning.relocated_blocks", "relocated", "blocks of 512 B", "valid blocks that cleaning moved"),
    key("cleaning.clean_again_s", "clean again", "s", "when the layer's cache was empty for the last time after it had held \
         something, from the first arrival; absent where it has no cache or was never emptied; of an array the latest of its drives")
        .also(&["recovery", "recovered"]),
    key("cleaning.by_kind.*.*", "cleaning by kind", "as above", "the same for each kind of cleaning that the layer names"),
    key("cleaning_given_up.*", "cleaning given up", "as above", "steps of cleaning in idle time that a request ended before \
         they were done: they took time and cleaned nothing"),
    key("cleaning_share", "cleaning", "share", "cleaning time as a share of busy time; in tables only")
        .is("cleaning.total_s / busy_s; of an array the sum over its drives, or time_by_cause_s.clean where only the array cleans"),
    key("stalls.threshold_s", "stall threshold", "s", "a request whose response takes longer than this is a stall (--stall, 500 ms)"),
    key("stalls.count", "stalls", "requests", "requests whose response took longer than --stall")
        .also(&["stall"])
        .is("rows of requests.parquet with completion_ns - arrival_ns > stall"),
    key("stalls.first_s", "first stall", "s", "when the first request arrived that stalled, from the first arrival"),
    key("stalls.total_s", "stalled requests' waits", "s", "response times of the stalled requests, summed: can exceed the run's length"),
    key("stalls.max_s", "worst stall", "s", "the longest response time of a stalled request"),
    key("stalls.share", "time stalled", "share", "share of the run in which at least one stalled request was waiting")
        .is("length of the union of [arrival, completion] over stalled requests / makespan_s"),
    key("stalls.episodes", "stall episodes", "spans", "separate spans of time in which a stalled request was waiting"),
    key("refusals.count", "refused requests", "requests", "requests that the drive refused; what they asked for was not done"),
    key("refusals.by_reason.*", "refused for", "requests", "refused requests by reason, such as not-at-pointer (smrlab explain zoned)"),
    key("refusals.first", "first refusals", "", "the first refused request for each reason, and the block that stood against it"),
    key("cache.zone_resets", "zone resets", "zones", "zones that the host had reset and that were not empty"),
    key("cache.zones_closed_for_others", "zones closed for others", "zones",
        "zones that the drive closed because a write opened one more than max_open"),
    key("cache.open_zones", "open zones", "zones", "zones that are open at the end"),
    key("cache.free_zones", "empty zones", "zones", "zones that are empty at the end"),
    key("cache.used_zones_closed", "closed zones", "zones", "zones that are closed at the end"),
    key("cache.used_zones_full", "full zones", "zones", "zones that are full at the end"),
    key("cache.read_hits", "cache read hits", "requests", "reads answered from the layer's cache alone"),
    key("cache.read_misses", "cache read misses", "requests", "reads that found nothing in the layer's cache"),
    key("cache.read_split", "cache read splits", "requests", "reads of which a part was in the layer's cache"),
    key("cache.write_hits", "cache write hits", "parts of requests", "writes whose blocks were cached already"),
    key("cache.write_misses", "cache write misses", "parts of requests", "writes that brought new blocks into the cache"),
    key("cache.*", "layer's counters", "", "counters of the layer's own; its page says what they are"),
    key("buffer.read_hits", "buffer hits", "requests", "reads of which the drive's own buffer had everything; docs/time-model.md")
        .also(&["cache hits"]),
    key("buffer.read_partial_hits", "buffer partial hits", "requests", "reads of which the drive's own buffer had the beginning, or \
         was about to read it ahead"),
    key("buffer.read_misses", "buffer misses", "requests", "other reads"),
    key("buffer.writes_buffered", "buffered writes", "requests", "writes that were answered when they were in the drive's own \
         buffer (write cache)"),
    key("buffer.writes_through", "writes through", "requests", "writes that were answered when they were on the medium: write \
         cache off, FUA, or longer than a segment"),
    key("buffer.blocks_read_ahead", "read ahead", "blocks of 512 B", "blocks that the drive read by itself into its buffer; they are \
         not among the media operations"),
    key("offered_load", "offered load", "", "work that the trace asks for, of what the drive can do: above 1 it cannot keep up, and \
         response times grow with the length of the trace")
        .also(&["load"])
        .is("busy time without work in idle time and of cause rebuild / (last arrival - first arrival); of an array that of its \
             busiest drive"),
    key("overload.offered_iops", "offered IOPS", "requests/s", "requests that the trace sends a second"),
    key("overload.capacity_iops", "sustained IOPS", "requests/s", "requests that the drive could serve a second"),
    key("overload.suggested_scale_time", "suggested --scale-time", "", "a --scale-time that brings the load to 0.7"),
    key("backlog_exact", "backlog is exact", "", "backlog_max was counted request by request; false: it is the largest number \
         at the end of a window of the timeline, because too many were waiting to count"),
    key("backlog_max", "longest backlog", "requests", "most requests that had come and were not completed at one instant; at least 1"),
    key("space.gain", "space gain", "", "data held, of what tracks as wide as the head would hold").from(CASSUTO),
    key("space.efficiency", "space efficiency", "share", "blocks that the host sees, of the blocks of the medium outside its \
         random-access part, or of all where it has blocks of that part, too")
        .also(&["efficiency"]),
    key("space.third_track_fill", "third tracks filled", "share", "blocks of the bands' last-filled tracks that hold data at \
         the end, of all there are: the third tracks of R(4123), 124R(3) and 14R(23); absent where an order has one phase")
        .is("blocks that hold data on them / blocks of these tracks")
        .from(HE),
    key("space.host_blocks", "host capacity", "blocks of 512 B", "blocks that the host sees"),
    key("space.map_bytes_peak", "map memory, peak", "bytes", "memory of the layer's map at its largest"),
    key("verify.ok", "verified", "", "every block read was the one last written (--verify-media)"),
    key("verify.bytes_peak", "verification memory", "bytes", "memory of the verification at its largest"),
    key("array.rows_written_whole", "rows written whole", "rows", "rows of a RAID-5 that a write covered, so that nothing was read"),
    key("array.rows_modified", "rows modified", "rows", "rows whose parity was made from old data and old parity"),
    key("array.rows_reconstructed", "rows reconstructed", "rows", "rows whose parity was made from the chunks that were not written"),
    key("array.degraded_rows", "degraded rows", "rows", "rows written while a drive was dead or not rebuilt"),
    key("array.rebuilds", "rebuilds", "", "replaced drives that were rebuilt"),
    key("array.rebuild_ms", "rebuild time", "ms", "time from replacement to the last rebuilt unit, of all rebuilds"),
    key("array.deaths", "drives that died", "", "drives that died or were thrown out"),
    key("array.disks_dead", "drives not whole at the end", "", "drives that are dead or not wholly rebuilt at the end"),
    key("array.dead", "which are dead", "", "numbers of the drives that are dead at the end"),
    key("array.rebuilt_blocks", "rebuilt", "blocks of 512 B", "blocks written to replaced drives by rebuilding, and to make copies and parities fit again"),
    key("array.refused", "refused", "requests", "requests that could not be served because their data were lost"),
    key("array.stripes_full", "full stripes", "stripes", "stripes of a dvs array as wide as the array"),
    key("array.stripes_partial", "partial stripes", "stripes", "narrower stripes, which pay a parity chunk for fewer chunks"),
    key("array.chunks_filled", "chunks filled in", "chunks", "old chunks that were read and written again to make a stripe full (stripes=fill)"),
    key("array.tables_written", "tables written", "tables", "tables of groups written to their zone (tables=zone)"),
    key("array.table_writes", "table writes", "requests", "requests to drives that wrote them, several adjacent tables at a time"),
    key("array.fill_reads", "fill reads", "chunks", "chunks written in part whose old copy was read"),
    key("array.collections_foreground", "collections, foreground", "groups", "groups collected because a write found no room"),
    key("array.collections_background", "collections, background", "groups", "groups collected in idle time"),
    key("array.collections_given_up", "collections given up", "groups", "collections that a request broke off before they wrote"),
    key("array.chunks_moved", "chunks moved", "chunks", "live chunks that collections moved"),
    key("array.used_chunks", "live chunks at the end", "chunks", "chunks of a dvs array that hold data at the end"),
    key("array.chunks_journalled", "chunks journalled", "chunks", "chunks of collections that were written to the journal on the SSD first"),
    key("array.rows_journalled", "rows journalled", "rows", "rows of a RAID-5 that were written to the journal on the SSD first"),
    key("array.rows_logged", "rows logged", "rows", "writes to rows of a RAID-5 whose parity went to a log (parity=log)"),
    key("array.parities_applied", "parities applied", "rows", "parities that were read and written with what logs had of them"),
    key("array.logs_full", "logs full", "rows", "writes to rows whose parity was written in place because the log had no room"),
    key("array.ssd_read_hits", "SSD read hits", "requests", "reads that the SSD alone served"),
    key("array.ssd_read_misses", "SSD read misses", "requests", "reads that needed a drive"),
    key("array.ssd_fills", "SSD fills", "pages", "pages that reads brought to the read cache"),
    key("array.ssd_write_hits", "SSD write hits", "requests", "writes all of whose pages were dirty on the SSD already"),
    key("array.ssd_write_waits", "SSD write waits", "requests", "writes that waited for room on the SSD, or for a read or write of the same blocks"),
    key("array.ssd_destages", "destages", "", "groups that were destaged from the SSD to the drives, those that were refused among them"),
    key("array.ssd_destaged_pages", "pages destaged", "pages", "pages of these groups"),
    key("array.ssd_destaged_blocks", "blocks destaged", "blocks of 512 B", "dirty blocks of these pages"),
    key("array.used_ssd_pages", "pages dirty at the end", "pages", "pages of the write cache that hold what the drives do not have yet"),
    key("array.ssd_refused_pages", "destages refused", "pages", "pages that the array below the SSD refused to take, each time that they were tried; missing where there was none"),
    key("array.kept_ssd_pages", "pages kept at the end", "pages", "of the dirty pages those that were refused, which stay on the SSD; missing where none ever was"),
    key("members", "members", "", "for each disk of an array its own document, of the same form"),
];

/// What can be explained: the keys, then the columns of the tables.
pub fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().chain(COLUMNS)
}

/// The entry of a key of a document, such as `media.by_cause.clean.reads`; an entry with its own words goes before one
/// with a `*`.
pub fn of(path: &str) -> Option<&'static Key> {
    let fits = |k: &&Key| {
        let mut given = path.split('.');
        k.steps().all(|step| given.next().is_some_and(|g| step == "*" || step == g)) && given.next().is_none()
    };
    KEYS.iter().find(fits)
}

/// The entry of a key as a document has it, with numbers in lists: of a member that of any drive, of what is in another list that of
/// the list.
fn in_document(words: &str) -> Option<&'static Key> {
    let of_member = words.strip_prefix("members[").and_then(|rest| rest.split_once("]."));
    let own = of_member.map_or(words, |(_, own)| own);
    of(own.split_once('[').map_or(own, |(list, _)| list))
}

/// The entries that `words` mean: a key, its name, another word for it, the keys below it, a key's last part, or else a key as
/// documents have it where the entry is for several.
pub fn meant(words: &str) -> Vec<&'static Key> {
    let words = words.to_lowercase();
    let is = |text: &str| text.to_lowercase() == words;
    let named = |k: &&Key| is(k.path) || is(k.name) || k.aliases.iter().any(|a| is(a));
    let below =
        |k: &&Key| k.path.to_lowercase().strip_prefix(&words).is_some_and(|rest| rest.starts_with('.'));
    let ends = |k: &&Key| k.path.rsplit('.').next().is_some_and(is);
    let of = |which: &dyn Fn(&&Key) -> bool| all().filter(which).collect::<Vec<_>>();
    let found = [of(&below), of(&named), of(&ends)].into_iter().find(|found| !found.is_empty());
    found.unwrap_or_else(|| in_document(&words).into_iter().collect())
}

/// An entry for `list`, `explain` and the docs.
pub fn json(k: &Key) -> Value {
    json!({
        "kind": "metric", "name": k.path, "title": k.name, "aliases": k.aliases, "unit": k.unit, "summary": k.doc,
        "formula": k.formula, "reference": k.source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_or_name_is_there_twice_and_all_are_explained() {
        for (i, k) in all().enumerate() {
            let other = all().take(i).find(|o| o.path == k.path || (o.name == k.name));
            assert!(other.is_none(), "{} and {}", k.path, other.map_or("", |o| o.path));
            assert!(k.doc.len() > 10 && !k.doc.ends_with('.') && !k.doc.contains("  "), "{}", k.path);
        }
    }

    #[test]
    fn keys_are_found_by_path_and_people_find_them_by_their_words() {
        assert_eq!(of("stalls.share").map(|k| k.name), Some("time stalled"));
        assert_eq!(of("media.by_cause.clean.reads").map(|k| k.path), Some("media.by_cause.*.*"));
        assert_eq!(of("cache.read_hits").map(|k| k.path), Some("cache.read_hits"));
        assert!(of("cache").is_none() && of("stalls.share.x").is_none() && of("nothing").is_none());
        let paths = |words: &str| meant(words).iter().map(|k| k.path).collect::<Vec<_>>();
        assert_eq!(paths("war"), ["war.per_update", "war.per_write", "war.per_request"]);
        assert_eq!(paths("WAF"), ["write_amplification"]);
        assert_eq!(paths("stalls").len(), 7);
        assert_eq!(
            (paths("Time stalled"), paths("stalls.share")),
            (vec!["stalls.share"], vec!["stalls.share"])
        );
        assert_eq!(paths("p99"), ["response_ms.p99"]);
        assert_eq!(paths("third_track_fill"), ["space.third_track_fill"]);
        let counts = ["cleaning.count", "stalls.count", "refusals.count", "histogram.parquet.count"];
        assert_eq!(paths("count"), counts);
        assert_eq!(paths("seek_ns"), ["requests.parquet.seek_ns"]);
        assert_eq!(paths("iops"), ["iops"]);
        assert_eq!(paths("requests").len(), 14);
        assert!(meant("nonsense").is_empty() && meant("members[0].nonsense").is_empty());
        for (key, entry) in [
            ("read_response_ms.p99", "read_response_ms.*"),
            ("media.by_cause.clean.reads", "media.by_cause.*.*"),
            ("members[2].stalls.share", "stalls.share"),
            ("members[].time_by_cause_s.host", "time_by_cause_s.*"),
            ("refusals.first[0].lba", "refusals.first"),
        ] {
            assert_eq!(paths(key), [entry], "{key}");
        }
    }
}
