//! A file that a test wrote, and what it holds.

use smrlab_trace::{TraceSource, open_bytes, read_all};
use smrlab_units::HostOp;

/// Arrival in ns, device, operation, first block, blocks, FUA.
pub(crate) type Row = (u64, String, HostOp, u64, u32, bool);

pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    /// In the order of the file.
    pub(crate) rows: Vec<Row>,
}

/// Reads what was written, from its first request on, and by the file's own looks as well as by the format's name.
pub(crate) fn check(item: &str, written: Written) {
    let Written { bytes, mut rows } = written;
    rows.sort_by_key(|r| r.0);
    let origin = rows[0].0;
    rows.iter_mut().for_each(|r| r.0 -= origin);
    let (name, rest) = item.split_once(',').map_or((item, ""), |(name, rest)| (name, rest));
    for name in [name, "auto"] {
        // Parameters of a format need its name.
        if name == "auto" && !rest.is_empty() {
            continue;
        }
        let item = format!("{name},{rest}{}start=zero", if rest.is_empty() { "" } else { "," });
        let mut source = open_bytes(bytes.clone(), &item).unwrap_or_else(|e| panic!("{item}: {e}"));
        let all = read_all(&mut source).unwrap_or_else(|e| panic!("{item}: {e}"));
        let found: Vec<Row> = all
            .iter()
            .map(|r| (r.arrival.0, source.device_name(r.device), r.op, r.lba.0, r.blocks, r.fua))
            .collect();
        let other = found.iter().zip(&rows).position(|(a, b)| a != b);
        assert!(other.is_none(), "{item}: row {other:?}: {:?}", other.map(|i| (&found[i], &rows[i])));
        assert_eq!(found.len(), rows.len(), "{item}");
        assert!(all.stream.iter().all(|s| *s == 0), "{item}: none of these formats tells streams");
        assert_eq!(source.skipped(), 0, "{item}");
    }
}
