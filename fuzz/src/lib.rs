//! What the targets of trace formats do: read the bytes as one format, to the end or to the first error. Those of the
//! served device are in [`device`] and [`store`], those of SCSI commands and of iSCSI in [`scsi`] and [`iscsi`].

pub mod bytes;
pub mod device;
pub mod iscsi;
pub mod scsi;
pub mod store;

use smrlab_trace::{Batch, ParquetSource, TraceError, TraceSource, open_bytes};
use smrlab_units::HostOp;

/// Reads `data` in the format (and parameters) of `item`; what comes out must keep a source's promises.
pub fn read(item: &str, data: &[u8]) {
    drain(open_bytes(data.to_vec(), &format!("{item},skip_bad=1000")));
    drain(open_bytes(data.to_vec(), "auto"));
}

/// Reads `data` as a Parquet file.
pub fn read_parquet(data: &[u8]) {
    drain(ParquetSource::from_bytes(data.to_vec(), "(memory)").map(|s| Box::new(s) as Box<dyn TraceSource>));
}

fn drain(source: Result<Box<dyn TraceSource>, TraceError>) {
    let Ok(mut source) = source else { return };
    let mut batch = Batch::new();
    let mut last = 0;
    while let Ok(true) = source.next_batch(&mut batch) {
        for r in batch.iter() {
            assert!(r.arrival.0 >= last && (r.blocks > 0 || r.op == HostOp::Flush));
            last = r.arrival.0;
        }
    }
}
