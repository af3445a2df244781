//! A minimal layer that logs, in Rust: the twin of `greedy_log.py`, and the template for a layer of one's own.
//!
//! Writes go to the end of an open band; when fewer bands are free than the reserve, the band with the smallest share of
//! live blocks is compacted. It is proven like the layers that ship (`crates/testkit/tests/it/template.rs`). To ship one: copy
//! it to `crates/stl/src/layers/`, write `crate` for `smrlab_stl` and `pub` for `pub(super)`, and add its line to the registry.

use smrlab_stl::entry::{BuildContext, BuildResult, LayerEntry};
use smrlab_stl::parts::free_bands::{FreeBands, Reserve};
use smrlab_stl::parts::homes::Homes;
use smrlab_stl::parts::moves;
use smrlab_stl::parts::slots::Slots;
use smrlab_stl::parts::split::ReadRuns;
use smrlab_stl::parts::victim::{Candidate, Victim};
use smrlab_stl::{
    Cause, Dir, Endpoint, Facts, HostRequest, Plan, Record, Records, Refusal, Sink, TranslationLayer,
};
use smrlab_units::spec::{SpecError, Values};
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime};
use std::ops::Range;

/// The line of the registry: `&greedy_log::ENTRY,`.
pub(super) static ENTRY: LayerEntry = LayerEntry {
    name: "greedy-log",
    summary: "log-structured bands with greedy compaction, as small as can be",
    reference: "the template for layers of one's own",
    page: "What it does, what it costs, what it promises: the user's page. Writes go to the end of an open band. When \
           fewer bands are free than the reserve, the band with the smallest share of live blocks is compacted: these are read, \
           appended, and the band is free.",
    idle: "nothing: bands are compacted while writes wait",
    ..LayerEntry::new(build)
};

fn build(context: &BuildContext, _: &Values) -> BuildResult {
    let refuse = |e: &str| SpecError::Other(format!("{}: {e}", ENTRY.name));
    let slots = Slots::new(context.bands(&ENTRY, None)?, 1).map_err(|e| refuse(&e))?;
    let reserve = Reserve::of(1, 1, slots.shortest()..=slots.longest()).least;
    // One band is open, the reserve is free, and a tenth makes compaction bearable.
    let spare = u64::from(reserve + 1) * u64::from(slots.longest());
    let host = u64::from(slots.total()).saturating_sub(spare) * 9 / 10;
    // A drive may sell less than there is: what is beyond is room of the layer's.
    let host = host.min(context.drive.counted_blocks().0);
    if host == 0 {
        return Err(refuse("too few bands: use a larger drive"));
    }
    let free = FreeBands::new(slots.band_count());
    Ok(Box::new(GreedyLog { homes: Homes::new(slots, false), free, open: None, host, reserve }))
}

/// Blocks from LBA `words[0]` on, `words[1]` in number, were appended to the open band, by the host or by a compaction.
const APPEND: u32 = 1;
/// The next free band is open now.
const OPEN: u32 = 2;
/// Band `words[0]` is free.
const FREE: u32 = 3;
/// Blocks from LBA `words[0]` on, `words[1]` in number, were discarded.
const DISCARD: u32 = 4;
/// Checkpoint: band `words[0]` is open.
const OPENED: u32 = 5;

struct GreedyLog {
    homes: Homes,
    free: FreeBands,
    open: Option<u32>,
    host: u64,
    reserve: u32,
}

impl GreedyLog {
    fn pba(&self, lba: u64) -> Option<Pba> {
        self.homes.slot(lba).map(|slot| self.homes.slots().pba(slot))
    }

    /// The open band and how many blocks fit into it; the next free one where none is open. `take` puts a fence before a
    /// band that holds what the state at the last flush refers to.
    fn room(&mut self, plan: &mut Plan) -> (u32, u64) {
        let band = self.open.unwrap_or_else(|| {
            let band = self.free.take(plan);
            plan.record(Record { tag: OPEN, words: [0; 3] });
            self.homes.open(band);
            band
        });
        self.open = Some(band);
        (band, u64::from(self.homes.slots().count(band) - self.homes.written(band)))
    }

    fn append(&mut self, lbas: Range<u64>) {
        let Some(band) = self.open else { return };
        lbas.for_each(|lba| _ = self.homes.append(band, lba, 0));
        if self.homes.written(band) == self.homes.slots().count(band) {
            self.open = None;
        }
    }

    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        let (mut lba, end) = (r.lba.0, r.lba.0 + r.blocks.0);
        while lba < end {
            let (band, room) = self.room(plan);
            let n = room.min(end - lba);
            let at = self.homes.slots().pba_in(band, self.homes.written(band));
            plan.write(Cause::Host, at, Blocks(n), Endpoint::Host(Blocks(lba - r.lba.0)));
            plan.record(Record { tag: APPEND, words: [lba, n, 0] });
            self.append(lba..lba + n);
            lba += n;
            self.compact(plan);
        }
    }

    /// Until the reserve is free: read what is live in the best victim, append it, free the band. The records say each
    /// step behind the write that it depends on; the victim is not written again before the fence in `take`.
    fn compact(&mut self, plan: &mut Plan) {
        while self.free.len() < self.reserve {
            let slots = self.homes.slots();
            let candidates = (0..self.free.ever_taken()).filter(|&b| self.homes.written(b) == slots.count(b));
            let candidates = candidates.map(|band| {
                let (slots, live) = (slots.count(band), self.homes.live(band));
                Candidate { band, slots, live, age: 0, heat: 0 }
            });
            let victim = Victim::Greedy.choose(candidates).expect("the spare bands hold something dead");
            let first = plan.ops().len();
            let staged = moves::stage(&self.homes, victim, Cause::Defrag, plan);
            let mut rest = &staged[..];
            while !rest.is_empty() {
                let (band, room) = self.room(plan);
                let part;
                (part, rest) = rest.split_at(rest.len().min(room as usize));
                let pba = self.homes.slots().pba_in(band, self.homes.written(band));
                moves::write(&self.homes, pba, part, Cause::Defrag, plan);
                for (lba, n) in moves::runs(part) {
                    plan.record(Record { tag: APPEND, words: [lba, n, 0] });
                    self.append(lba..lba + n);
                }
            }
            plan.record(Record { tag: FREE, words: [u64::from(victim), 0, 0] });
            self.homes.free(victim);
            self.free.put(victim);
            plan.cleaned("compaction", first, Blocks(staged.len() as u64));
        }
    }
}

impl TranslationLayer for GreedyLog {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.host)
    }

    fn submit(&mut self, _: SimTime, r: &HostRequest, plan: &mut Plan) {
        match r.op {
            HostOp::Write => self.write(r, plan),
            HostOp::Read => {
                let mut runs = ReadRuns::to_host(0);
                for lba in r.span() {
                    match self.pba(lba) {
                        Some(pba) => runs.push(pba, 1, plan),
                        None => runs.zeroes(1, plan),
                    }
                }
                runs.end(plan);
            }
            HostOp::Discard => {
                plan.record(Record { tag: DISCARD, words: [r.lba.0, r.blocks.0, 0] });
                r.span().for_each(|lba| _ = self.homes.remove(lba));
            }
            HostOp::Flush => {}
            _ => plan.refuse(Refusal::Unsupported, r.lba),
        }
    }

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        match r.op {
            // The first block that is read at all.
            HostOp::Read => Some((r.span().find_map(|lba| self.pba(lba))?, Dir::Read)),
            // Compaction comes behind the write, so a write begins where the log ends.
            HostOp::Write => {
                let band = self.open.or_else(|| self.free.peek(0).map(|(band, _)| band))?;
                Some((self.homes.slots().pba_in(band, self.homes.written(band)), Dir::Write))
            }
            _ => None,
        }
    }

    fn durable(&mut self) {
        self.free.durable();
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        for record in records.changes() {
            let Record { tag, words: [a, b, _] } = record;
            match tag {
                APPEND => self.append(a..a + b),
                OPEN => {
                    let band = self.free.pop();
                    self.homes.open(band);
                    self.open = Some(band);
                }
                FREE => {
                    self.homes.free(a as u32);
                    self.free.put(a as u32);
                }
                DISCARD => (a..a + b).for_each(|lba| _ = self.homes.remove(lba)),
                OPENED => self.open = Some(a as u32),
                _ => {
                    let known = self.homes.take(&record) || self.free.replay(&record);
                    debug_assert!(known, "record {tag} is not this layer's");
                }
            }
        }
        self.free.durable();
        // A cut in mid-compaction left too few free bands.
        self.compact(plan);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.free.checkpoint(out);
        self.homes.checkpoint(out);
        self.open.into_iter().for_each(|band| out.push(OPENED, [u64::from(band), 0, 0]));
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.homes.allocated(lba.span(blocks), out);
    }

    fn prefetch(&self, r: &HostRequest) {
        self.homes.prefetch(r.lba.0);
    }

    fn facts(&self) -> Facts<'_> {
        Facts { bands: Some(self.homes.slots().bands()), ..Facts::default() }
    }

    fn map_bytes(&self) -> u64 {
        self.homes.bytes() + self.free.bytes()
    }
}
