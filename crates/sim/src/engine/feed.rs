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

    /// When the requests of the batch from the `i`-th on arrive, and what they are.
    pub fn from(&self, i: usize) -> (&[SimTime], &[HostRequest]) {
        (&self.batch.arrival[i..], &self.requests[i..])
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

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_trace::Memory;
    use smrlab_units::ZoneAction;
    use smrlab_units::rng::Rng;

    const HOST: u64 = 1000;

    /// So many requests of every kind within the host's space; of zones some to its end, of which those from 0 are of all zones.
    fn records(seed: u64, n: usize) -> Vec<Record> {
        let mut rng = Rng::new(seed);
        let mut at = SimTime::ZERO;
        let mut record = || {
            at += SimTime(rng.below(3));
            let zone = HostOp::Zone([ZoneAction::Reset, ZoneAction::Finish][rng.below(2) as usize]);
            let kinds =
                [HostOp::Read, HostOp::Write, HostOp::Flush, HostOp::Discard, HostOp::Append, zone, zone];
            let (kind, lba, blocks) = (rng.below(7) as usize, Lba(rng.below(900)), 1 + rng.below(100) as u32);
            let lba = if kind > 4 && rng.one_in(2) { Lba(0) } else { lba };
            let blocks = if kind > 4 && rng.one_in(2) { Record::TO_END } else { blocks };
            let (op, fua, stream) = (kinds[kind], rng.one_in(2), rng.below(1 << 16) as u16);
            Record { arrival: at, op, lba, blocks, device: 0, stream, fua }
        };
        (0..n).map(|_| record()).collect()
    }

    fn feed(records: &[Record]) -> Feed {
        Feed::new(Box::new(Memory::new(records.to_vec())), Steps::default(), Blocks(HOST)).unwrap()
    }

    /// What the drive gets of each request, in all batches.
    #[test]
    fn requests_are_those_of_the_trace() {
        let all = records(1, Batch::ROWS * 5 / 2);
        let mut feed = feed(&all);
        let mut rest = all.iter().enumerate();
        while feed.next_batch().unwrap() {
            for i in 0..feed.len() {
                let (id, r) = rest.next().unwrap();
                let got = feed.request(i);
                let to_end = r.blocks == Record::TO_END;
                let blocks = if to_end { HOST - r.lba.0 } else { r.blocks.into() };
                assert_eq!((got.id, feed.arrival(i), got.op, got.lba), (id as u64, r.arrival, r.op, r.lba));
                let how = (got.blocks.0, got.stream, got.fua, got.all_zones);
                assert_eq!(how, (blocks, r.stream, r.fua, to_end && r.lba.0 == 0), "{r:?}");
            }
        }
        assert!(rest.next().is_none());
        assert_eq!(feed.digest(), digest(&all));
    }

    fn digest(records: &[Record]) -> u64 {
        let mut feed = feed(records);
        while feed.next_batch().unwrap() {}
        feed.digest()
    }

    /// A result's digest is compared with one of another build: this one was worked out apart, from the rule alone.
    #[test]
    fn the_digest_stays_what_it_is() {
        let (op, wide) = (HostOp::Write, Blocks(u64::from(u32::MAX)));
        let first = Record { op, lba: Lba(700), blocks: 3, stream: 0x1234, fua: true, ..records(3, 1)[0] };
        let first = Record { arrival: SimTime(5), ..first };
        let long = (1 << 31) + 8;
        let plain =
            Record { arrival: SimTime(9), op: HostOp::Read, lba: Lba(0), stream: 0, fua: false, ..first };
        let all = vec![first, Record { blocks: long, ..plain }];
        let mut feed = Feed::new(Box::new(Memory::new(all)), Steps::default(), wide).unwrap();
        assert!(feed.next_batch().unwrap());
        assert_eq!(feed.digest(), 0xce25_66e6_7f47_08aa);
    }

    /// The digest is another with any field of any request changed, with one more or less, and in another order.
    #[test]
    fn the_digest_is_of_every_request() {
        let all = records(2, 60).into_iter().map(|r| Record { blocks: r.blocks.min(99), ..r });
        let all: Vec<Record> = all.collect();
        let mut seen =
            std::collections::BTreeSet::from([digest(&all), digest(&all[1..]), digest(&all[..59])]);
        for i in 0..60 {
            let changes: [fn(&mut Record); 6] = [
                |r| r.arrival += SimTime(1 << 40),
                |r| r.lba = Lba(r.lba.0 + 1),
                |r| r.blocks = if r.blocks == 5 { 6 } else { 5 },
                |r| r.op = if r.op == HostOp::Read { HostOp::Write } else { HostOp::Read },
                |r| r.stream ^= 1 << 15,
                |r| r.fua ^= true,
            ];
            for change in changes {
                let mut other = all.clone();
                change(&mut other[i]);
                // Times do not fall.
                (i + 1..60)
                    .for_each(|later| other[later].arrival = other[later].arrival.max(other[i].arrival));
                assert!(seen.insert(digest(&other)), "request {i}: {:?}", other[i]);
            }
            let mut other = all.clone();
            let (a, b) = (all[i], all[(i + 7) % 60]);
            (other[i], other[(i + 7) % 60]) =
                (Record { arrival: a.arrival, ..b }, Record { arrival: b.arrival, ..a });
            assert!(seen.insert(digest(&other)), "{i} for another");
        }
    }

    /// The first request that ends beyond the space is named; flushes have no place, and commands of zones may go to the end.
    #[test]
    fn what_is_beyond_the_space_is_named() {
        let at = |op, lba, blocks| Record { lba: Lba(lba), blocks, op, ..records(3, 1)[0] };
        let (to_end, reset) = (Record::TO_END, HostOp::Zone(ZoneAction::Reset));
        let fits = [
            at(HostOp::Read, 0, 1000),
            at(HostOp::Write, 999, 1),
            at(HostOp::Flush, 5000, 9),
            at(reset, 999, to_end),
        ];
        for beyond in
            [at(HostOp::Read, 999, 2), at(HostOp::Write, 1000, 1), at(reset, 1000, to_end), at(reset, 999, 2)]
        {
            for before in 0..=fits.len() {
                let all = [&fits[..before], &[beyond], &fits[..]].concat();
                let said = feed(&all).next_batch().unwrap_err().to_string();
                assert!(said.contains(&format!("request {} (LBA {}", before + 1, beyond.lba)), "{said}");
            }
        }
        assert!(feed(&fits).next_batch().unwrap());
    }
}
