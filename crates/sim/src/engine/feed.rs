//! The requests of a trace as the drive gets them: scaled, limited, wrapped, checked, and digested.

use super::CHECK_EVERY;
use crate::error::RunError;
use smrlab_stl::HostRequest;
use smrlab_trace::{Batch, TraceSource};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// How requests are changed on their way.
#[derive(Clone, Copy, Debug)]
pub struct FeedSetup {
    /// The host's space.
    pub host: Blocks,
    /// LBA modulo so many blocks; a request that would cross the end is cut there.
    pub wrap: Option<Blocks>,
    /// Arrivals are multiplied by this.
    pub scale_time: f64,
    /// Only so many requests.
    pub limit: Option<u64>,
}

/// See the [module](self).
pub struct Feed {
    source: Box<dyn TraceSource>,
    setup: FeedSetup,
    batch: Batch,
    left: u64,
    rows: u64,
    /// Four lanes, so that multiplications overlap.
    digest: [u64; 4],
}

/// Mixes a word into the digest: a bijection of the state for each word.
#[inline]
fn mix(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

impl Feed {
    /// Feeds `source` as `setup` says.
    pub fn new(source: Box<dyn TraceSource>, setup: FeedSetup) -> Self {
        let left = setup.limit.unwrap_or(u64::MAX);
        Self { source, setup, batch: Batch::new(), left, rows: 0, digest: [0; 4] }
    }

    /// Goes on to the next batch; `false` at the end.
    ///
    /// # Errors
    /// A trace that cannot be read, or a request beyond the host's space.
    pub fn next_batch(&mut self) -> Result<bool, RunError> {
        if self.left == 0 {
            self.batch.clear();
            return Ok(false);
        }
        let more = self.source.next_batch(&mut self.batch)?;
        if self.batch.len() as u64 > self.left {
            self.batch.truncate(self.left as usize);
        }
        self.left -= self.batch.len() as u64;
        if self.setup.scale_time != 1.0 {
            let x = self.setup.scale_time;
            self.batch.arrival.iter_mut().for_each(|a| *a = SimTime((a.0 as f64 * x).round() as u64));
        }
        self.place()?;
        self.digest_batch();
        self.rows += self.batch.len() as u64;
        Ok(more)
    }

    /// Wraps addresses, or refuses those beyond the host's space.
    fn place(&mut self) -> Result<(), RunError> {
        let end = self.setup.wrap.unwrap_or(self.setup.host).0;
        let b = &mut self.batch;
        for i in 0..b.lba.len() {
            let last = b.lba[i].0 + u64::from(b.blocks[i]);
            if last <= end || b.op[i] == HostOp::Flush {
                continue;
            }
            if self.setup.wrap.is_none() {
                return Err(beyond(self.rows + i as u64, b.lba[i], b.blocks[i], end));
            }
            b.lba[i].0 %= end;
            b.blocks[i] = u64::from(b.blocks[i]).min(end - b.lba[i].0) as u32;
        }
        Ok(())
    }

    fn digest_batch(&mut self) {
        let b = &self.batch;
        let mut lanes = self.digest;
        let first = self.rows as usize;
        for i in 0..b.len() {
            let what = u64::from(b.blocks[i]) << 32 | u64::from(b.stream[i]) << 8 | b.op[i] as u64;
            let lane = &mut lanes[(first + i) % 4];
            *lane = mix(mix(mix(*lane, b.arrival[i].0), b.lba[i].0), what);
        }
        self.digest = lanes;
    }

    /// Rows of the batch.
    #[inline]
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether the batch has no rows.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// When the `i`-th request of the batch arrives.
    #[inline]
    pub fn arrival(&self, i: usize) -> SimTime {
        self.batch.arrival[i]
    }

    /// The `i`-th request of the batch, numbered from 0 on in the order of the trace.
    #[inline]
    pub fn request(&self, i: usize) -> HostRequest {
        let b = &self.batch;
        let blocks = Blocks(u64::from(b.blocks[i]));
        let id = self.rows - b.len() as u64 + i as u64;
        HostRequest { id, stream: b.stream[i], ..HostRequest::new(b.op[i], b.lba[i], blocks) }
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
        let share = self.setup.limit.map(|l| self.rows as f64 / l.max(1) as f64);
        match (self.source.progress(), share) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }
}

#[cold]
fn beyond(row: u64, lba: Lba, blocks: u32, end: u64) -> RunError {
    RunError::Request(format!(
        "request {} (LBA {lba}, {blocks} blocks) lies beyond the host's space of {end} blocks; \
         wrap = \"capacity\" (--wrap capacity) takes LBAs modulo that space",
        row + 1
    ))
}

const _: () = assert!(Batch::ROWS.is_multiple_of(CHECK_EVERY));
