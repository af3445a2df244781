//! The columns of the tables that a run writes: what each says, in which unit, by which formula. `smrlab explain
//! timeline`, `explain seek_ns` and the reference page are made from this; a column that a run gives and that is not here
//! fails a test.

use crate::key::{Key, key};

/// All columns, as FILE.COLUMN, in the order of the tables.
#[rustfmt::skip]
pub(crate) const COLUMNS: &[Key] = &[
    key("timeline.parquet.start_s", "window from", "s", "begin of the window, from the first arrival on"),
    key("timeline.parquet.end_s", "window until", "s", "end of the window"),
    key("timeline.parquet.arrivals", "arrivals in a window", "requests", "requests that came in the window"),
    key("timeline.parquet.completions", "completions in a window", "requests", "requests that were completed in the window"),
    key("timeline.parquet.iops", "IOPS of a window", "1/s", "requests completed in the window, for each second of it")
        .is("completions / (end_s - start_s)"),
    key("timeline.parquet.mb_per_s", "MB/s of a window", "MB/s", "data of these requests, without the refused ones, for each second of the window")
        .is("(read_blocks + write_blocks, less those of refused requests) * 512 / 1e6 / (end_s - start_s)"),
    key("timeline.parquet.read_blocks", "blocks read in a window", "blocks of 512 B", "blocks of the host's reads that were completed in the window"),
    key("timeline.parquet.write_blocks", "blocks written in a window", "blocks of 512 B", "blocks of the host's writes that were completed in the window"),
    key("timeline.parquet.media_blocks_read", "media blocks read in a window", "blocks of 512 B", "blocks that operations which ended in the window read"),
    key("timeline.parquet.media_blocks_written", "media blocks written in a window", "blocks of 512 B", "blocks that operations which ended in the window wrote"),
    key("timeline.parquet.response_ms_mean", "mean of a window", "ms", "mean response time of the requests that were completed in the window; missing where there was none"),
    key("timeline.parquet.response_ms_max", "worst of a window", "ms", "longest response time of these"),
    key("timeline.parquet.busy_share", "busy share", "share", "share of the window in which the drive worked, summed over the drives of an array"),
    key("timeline.parquet.cleaning_share", "cleaning share", "share", "share of the window that cleaning took, whether a request waited for it or not, summed over what cleans: the drives \
         of an array, and the array itself"),
    key("timeline.parquet.cache_share", "fill of the cache", "share", "share of the cache on the medium that held blocks at the end of the window, or of the \
         entries of its map where more of these were in use (one request may take more than there are); missing without such a cache"),
    key("timeline.parquet.stalled_share", "stalled share", "share", "share of the window in which a request waited that was answered only after --stall"),
    key("timeline.parquet.backlog", "backlog of a window", "requests", "requests that had come and were not completed at the end of the window"),
    key("timeline.parquet.head_track_min", "lowest track", "track", "lowest track on which an operation of the window ended, along the drive's blocks"),
    key("timeline.parquet.head_track_max", "highest track", "track", "highest track on which an operation of the window ended"),
    key("timeline.parquet.head_track_mean", "mean track", "track", "mean track on which operations of the window ended"),
    key("timeline.parquet.open_zones", "open zones in a window", "zones", "zones that were open when the window ended, as the drive was seen last within it; of an array the sum over its drives; \
         missing where the host knows no zones"),
    key("timeline.parquet.closed_zones", "closed zones in a window", "zones", "zones that were written in part and not open then"),
    key("timeline.parquet.full_zones", "full zones in a window", "zones", "zones that were full then"),
    key("timeline.parquet.zone_resets", "zone resets in a window", "zones", "zones, not empty ones, that commands reset which were completed in the window; missing where the host knows no zones"),
    key("timeline.parquet.refused", "refused in a window", "requests", "of the requests that were completed in the window, those that were refused"),
    key("members.parquet.disk", "disk of a window", "", "drive of an array whose window this is, from 0; the other columns are those of timeline.parquet, \
         window by window, of the requests that the array sent to this drive"),
    key("histogram.parquet.kind", "kind of time", "", "read or write: response times of these; service: of all, waiting excluded"),
    key("histogram.parquet.lo_ms", "bucket from", "ms", "shortest time of the bucket"),
    key("histogram.parquet.hi_ms", "bucket up to", "ms", "longest time of the bucket"),
    key("histogram.parquet.count", "requests in a bucket", "requests", "requests whose time lies in the bucket"),
    key("heatmap.parquet.window", "window of the heat map", "", "number of the window"),
    key("heatmap.parquet.start_s", "heat map from", "s", "begin of the window, from the first arrival on"),
    key("heatmap.parquet.bin", "range of LBAs", "", "number of the range of LBAs"),
    key("heatmap.parquet.lba_lo", "LBAs from", "blocks of 512 B", "first LBA of the range"),
    key("heatmap.parquet.lba_hi", "LBAs before", "blocks of 512 B", "one past the last LBA of the range"),
    key("heatmap.parquet.reads", "reads in a cell", "requests", "reads that began in the range and came in the window"),
    key("heatmap.parquet.writes", "writes in a cell", "requests", "writes that began in the range and came in the window; an append counts where the zone begins that it names"),
    key("requests.parquet.id", "request", "", "number of the request in the order of arrival, from 0"),
    key("requests.parquet.arrival_ns", "arrival", "ns", "when it came"),
    key("requests.parquet.start_ns", "start", "ns", "when the drive began with it"),
    key("requests.parquet.completion_ns", "completion", "ns", "when it was answered"),
    key("requests.parquet.op", "operation of the host", "", "read, write, flush, discard, append, or a command of zones"),
    key("requests.parquet.lba", "LBA", "blocks of 512 B", "first block that it asked for"),
    key("requests.parquet.blocks", "length of a request", "blocks of 512 B", "how many blocks it asked for"),
    key("requests.parquet.stream", "stream", "", "which of several traces it came from, from 0"),
    key("requests.parquet.seek_ns", "seek", "ns", "seeks, head switches before the first block, settling, of what was done for the request itself; none of a write that a drive's buffer answered. \
         Of an array: along the operations that the request waited for, from the last one backwards"),
    key("requests.parquet.rotation_ns", "rotation", "ns", "rotation until the first block of each of these operations"),
    key("requests.parquet.transfer_ns", "transfer", "ns", "from the first block to the last of these operations, track switches included"),
    key("requests.parquet.clean_ns", "cleaning of a request", "ns", "operations and pauses before the completion that made room: causes clean, destage, defrag"),
    key("requests.parquet.other_ns", "other time", "ns", "the rest: overhead, buffer and bus, journal, passes whose whole duration is stated; in an array waiting for its drives, too")
        .is("completion_ns - start_ns - seek_ns - rotation_ns - transfer_ns - clean_ns"),
    key("requests.parquet.refusal", "refusal", "", "why it was refused, such as not-at-pointer; empty where it was done"),
    key("media.parquet.seq", "number of an operation", "", "number of the operation, from 0"),
    key("media.parquet.request_id", "operation's request", "", "for which request it was done; -1: in idle time, for none"),
    key("media.parquet.disk", "disk", "", "on which drive of an array it was done, from 0"),
    key("media.parquet.start_ns", "begin of an operation", "ns", "when the drive began with it"),
    key("media.parquet.end_ns", "end of an operation", "ns", "when its last block had passed the head"),
    key("media.parquet.op", "direction", "", "read or write"),
    key("media.parquet.cause", "cause", "", "why it was done, as under media.by_cause"),
    key("media.parquet.pba", "PBA", "blocks of 512 B", "first block on the medium"),
    key("media.parquet.blocks", "length of an operation", "blocks of 512 B", "how many blocks were transferred"),
];
