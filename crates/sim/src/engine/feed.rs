//! The requests of a trace as the drive gets them: checked against the host's space, and digested.

use super::CHECK_EVERY;
use crate::error::{Result, RunError};
use smrlab_stl::HostRequest;
use smrlab_trace::{Batch, Pipeline, Record, Steps, TraceSource};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, counted};

/// See the [module](self).
pub struct Feed {
    source: Pipeline<Box<dyn TraceSource>>,
    host: Blocks,
    wrapped: bool,
    batch: Batch,
    /// The same rows as requests.
    requests: Vec<HostRequest>,
    rows: u64,
    /// Four lanes, so that multiplications overlap.
    digest: [u64; 4],
}

/// Mixes a word into the digest: a bijection of the state for each word.
fn mix(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

impl Feed {
    /// Feeds `source`, changed as `steps` say, to a host's space of `host` blocks.
    ///
    /// # Errors
    /// Steps that cannot be done.
    pub fn new(source: Box<dyn TraceSource>, steps: Steps, host: Blocks) -> Result<Self> {
        let wrapped = steps.wrap.is_some_and(|space| space <= host);
        let source = Pipeline::new(source, steps)?;
        let (batch, requests) = (Batch::new(), Vec::with_capacity(Batch::ROWS));
        Ok(Self { source, host, wrapped, batch, requests, rows: 0, digest: [0; 4] })
    }

    /// Goes on to the next batch; `false` at the end.
    ///
    /// # Errors
    /// A trace that cannot be read, or a request beyond the host's space.
    pub fn next_batch(&mut self) -> Result<bool> {
        let more = self.source.next_batch(&mut self.batch)?;
        self.check()?;
        self.take_batch();
        self.rows += self.batch.len() as u64;
        Ok(more)
    }

    /// Refuses addresses beyond the host's space.
    fn check(&self) -> Result<()> {
        if self.wrapped {
            return Ok(());
        }
        let b = &self.batch;
        let ends = b.lba.iter().zip(&b.blocks).map(|(lba, blocks)| lba.0 + u64::from(*blocks));
        // Nearly always none of them: the largest is found several rows at a time.
        if ends.clone().fold(0, u64::max) <= self.host.0 {
            return Ok(());
        }
        let fits = |op: HostOp, i: usize| match op {
            HostOp::Flush => true,
            HostOp::Zone(_) => b.blocks[i] == Record::TO_END && b.lba[i].0 < self.host.0,
            _ => false,
        };
        let mut rows = ends.zip(&b.op).enumerate();
        let first = rows.position(|(i, (end, op))| end > self.host.0 && !fits(*op, i));
        first.map_or(Ok(()), |i| Err(beyond(self.rows + i as u64, b.lba[i], b.blocks[i], self.host.0)))
    }

    /// Digests the batch and puts its requests together.
    fn take_batch(&mut self) {
        let b = &self.batch;
        let mut lanes = self.digest;
        self.requests.clear();
        let columns = b.arrival.iter().zip(&b.lba).zip(&b.blocks).zip(&b.op).zip(b.stream.iter().zip(&b.fua));
        let mut id = self.rows;
        self.requests.extend(columns.map(|((((arrival, lba), blocks), op), (stream, fua))| {
            let what = u64::from(*blocks) << 32
                | u64::from(*fua) << 24
                | u64::from(*stream) << 8
                | op.index() as u64;
            let lane = &mut lanes[id as usize % 4];
            *lane = mix(mix(mix(*lane, arrival.0), lba.0), what);
            let to_end = matches!(op, HostOp::Zone(_)) && *blocks == Record::TO_END;
            let length = if to_end { self.host.0 - lba.0 } else { u64::from(*blocks) };
            let request = HostRequest::new(*op, *lba, Blocks(length));
            let all_zones = to_end && lba.0 == 0;
            let request = HostRequest { id, stream: *stream, fua: *fua, all_zones, ..request };
            id += 1;
            request
        }));
        self.digest = lanes;
    }

    /// Rows of the batch.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether the batch has no rows.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// When the `i`-th request of the batch arrives.
    pub fn arrival(&self, i: usize) -> SimTime {
        self.batch.arrival[i]
    }

    /// The `i`-th request of the batch, numbered from 0 on in the order of the trace.
    pub fn request(&self, i: usize) -> &HostRequest {
        &self.requests[i]
    }

    /// A number that stands for all requests so far, as the drive got them.
    pub fn digest(&self) -> u64 {
        self.digest.into_iter().fold(self.rows, mix)
    }

    /// Bad lines passed over.
    pub fn skipped(&self) -> u64 {
        self.source.skipped()
    }

    /// The share of the trace that was read, where it is known.
    pub fn progress(&self) -> Option<f64> {
        self.source.progress()
    }
}

#[cold]
fn beyond(row: u64, lba: Lba, blocks: u32, end: u64) -> RunError {
    RunError::Request(format!(
        "request {} (LBA {lba}, {}) lies beyond the host's space of {end} blocks; \
         wrap = \"capacity\" (--wrap capacity) takes LBAs modulo that space",
        row + 1,
        counted(blocks.into(), "block")
    ))
}

const _: () = assert!(Batch::ROWS.is_multiple_of(CHECK_EVERY));
