//! Writing a part of the host's space before the run, without time.

mod order;

use crate::control::Control;
use crate::engine::Feed;
use crate::error::Result;
use crate::metrics::updates::Updates;
use crate::watch::Watch;
use order::Rounds;
use smrlab_blockmap::BlockSet;
use smrlab_drive::Drive;
use smrlab_stl::parts::split::unset_runs;
use smrlab_stl::{Built, HostRequest, Independent};
use smrlab_units::spec::{Kind, Param, SpecError, Values, split_item};
use smrlab_units::{Blocks, HostOp, Lba, parse_share};

/// Blocks of a write of a random prefill.
const UNIT: u64 = 8;
/// Blocks of a write of a sequential prefill.
const CHUNK: u64 = 1 << 15;
/// Writes of a random prefill that are known before the first of them is done.
const BATCH: usize = 1 << 12;
/// How far ahead a layer's memory is fetched.
const AHEAD: usize = 16;

/// The parameters after the share.
pub const PARAMS: &[Param] = &[
    Param::new("order", Kind::Choice(&["sequential", "random"]), "sequential")
        .doc("in ascending order, or in 4 KiB writes each of which goes somewhere else"),
    Param::new("of", Kind::Choice(&["space", "cache"]), "space")
        .doc("the share is of the host's space, or of the layer's cache (over the whole space)"),
];

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Prefill {
    /// The text with every default.
    pub resolved: String,
    /// The part of the host's space, from LBA 0, within which it writes.
    pub span: Blocks,
    writes: Writes,
}

/// What a prefill writes.
#[derive(Clone, Copy, Debug)]
enum Writes {
    /// What the trace reads before it writes it, for traces without a past.
    ReadFirst,
    /// So many blocks from LBA 0 on.
    InOrder { volume: u64 },
    /// As many in units anywhere within the span, in an order that the seed gives.
    Anywhere { volume: u64, seed: u64 },
}

fn no_cache(built: &Built) -> String {
    format!("{} has no cache; with of=space the share is of the host's space", built.entry.name)
}

/// What a comparison gives to a layer without a cache where it asks for a share of the caches; `None`: it does not.
pub fn without_cache(text: &str) -> Option<String> {
    let (_, pairs) = split_item(text);
    pairs.iter().any(|p| p.0 == "of" && p.1 == "cache").then(|| "0%,of=cache".to_owned())
}

/// The prefill of what the trace reads.
pub const READ: &str = "read";

/// Adds the blocks that the requests of `feed` read before they write them, to the set of each request's space.
///
/// # Errors
/// A trace that cannot be read, or a request beyond the host's space.
pub fn read_first(feed: &mut Feed, spaces: &mut [BlockSet]) -> Result<()> {
    let mut all_known: Vec<BlockSet> = spaces.iter().map(|_| BlockSet::new()).collect();
    while feed.next_batch()? {
        for i in 0..feed.len() {
            let r = feed.request(i);
            let span = r.span();
            let space = usize::from(r.stream) % spaces.len();
            let (known, first) = (&mut all_known[space], &mut spaces[space]);
            match r.op {
                HostOp::Write => _ = known.insert(span),
                HostOp::Read => {
                    unset_runs(known, span.clone(), &mut |run| _ = first.insert(run));
                    known.insert(span);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

impl Prefill {
    /// Parses `SHARE[,order=…][,of=…]` or `read` for a host space of `host` blocks.
    ///
    /// # Errors
    /// A share, key or value that is not accepted, or a layer without a cache where the share is of that.
    pub fn parse(text: &str, host: Blocks, built: &Built, seed: u64) -> Result<Self, SpecError> {
        let (share, pairs) = split_item(text);
        if text == READ {
            return Ok(Self { resolved: READ.to_owned(), span: host, writes: Writes::ReadFirst });
        }
        let values = Values::check(share, PARAMS, &pairs)?;
        let share = parse_share(share).map_err(|e| SpecError::Other(e.to_string()))?;
        let random = values.text("order") == Some("random");
        let part = |n: u64| ((n as f64 * share).round() as u64).min(n);
        let (span, volume) = match values.text("of") {
            Some("cache") => {
                let facts = built.layer.facts();
                let cache = match facts.cache {
                    // Each random write takes an entry of a limited map, which is full long before the room is.
                    Some(cache) if random => {
                        facts.entries.map_or(cache, |(_, most)| cache.min(Blocks(most * UNIT)))
                    }
                    // Nothing of no cache: what a comparison gives its layers without one.
                    None if share == 0.0 => Blocks::ZERO,
                    None => return Err(values.bad("of", no_cache(built))),
                    Some(cache) => cache,
                };
                (host, part(cache.0).min(host.0))
            }
            _ => (Blocks(part(host.0)), part(host.0)),
        };
        let writes = if random { Writes::Anywhere { volume, seed } } else { Writes::InOrder { volume } };
        Ok(Self { resolved: values.resolved(), span, writes })
    }

    /// Whether it writes what the trace [reads first](read_first).
    pub fn of_reads(&self) -> bool {
        matches!(self.writes, Writes::ReadFirst)
    }

    /// Writes through the drive's layer; what was written counts as written before. `reads` is what the trace reads
    /// first, where that is to be written.
    ///
    /// # Errors
    /// A cancelled run.
    pub(crate) fn write<const EXTRAS: bool>(
        &self,
        drive: &mut Drive,
        watch: &mut Watch<EXTRAS>,
        reads: &BlockSet,
        control: &Control,
    ) -> Result<()> {
        // Over a huge drive the layer's maps are cache misses: a batch is there before its first write is done, so that
        // the memory of later ones is on its way.
        let parts = drive.layer().facts().independent;
        if !EXTRAS && let Some(rounds) = self.rounds(parts) {
            return self.write_apart(rounds, drive, &mut watch.total.updates, control);
        }
        let mut batch = Vec::with_capacity(BATCH);
        let mut write = |batch: &mut Vec<HostRequest>| {
            for (i, request) in batch.iter().enumerate() {
                if let Some(later) = batch.get(i + AHEAD) {
                    drive.layer().prefetch(later);
                }
                let executed = drive.instantly(request);
                watch.host_prefilled(request, Some(&executed))?;
            }
            batch.clear();
            Ok(())
        };
        self.each((reads, parts), control, |request| {
            batch.push(request);
            // What writes much is done at once, for the sake of Ctrl-C.
            if batch.len() == BATCH || request.blocks.0 > UNIT {
                return write(&mut batch);
            }
            Ok(())
        })?;
        write(&mut batch)
    }

    /// Random writes: the layer and the count of what was written know nothing of each other, so a round is told to the one
    /// while the other has it.
    fn write_apart(
        &self,
        mut rounds: Rounds,
        drive: &mut Drive,
        updates: &mut Updates,
        control: &Control,
    ) -> Result<()> {
        let mut done = 0;
        while rounds.next(control)? {
            let mut write = || self.write_round(&rounds, done, drive, control);
            let mut count = || {
                let prefilled = if rounds.near() { Updates::prefilled_close } else { Updates::prefilled };
                for some in rounds.units.chunks(BATCH).take_while(|_| !control.cancelled()) {
                    for request in some.iter().map(|&unit| self.unit(unit)) {
                        prefilled(updates, request.lba, request.blocks);
                    }
                }
            };
            control.together(&mut write, &mut count);
            control.check()?;
            done += rounds.units.len() as u64;
        }
        Ok(())
    }

    /// Writes a round through the drive's layer, behind `done` units before it; stops where the run is cancelled.
    fn write_round(&self, round: &Rounds, done: u64, drive: &mut Drive, control: &Control) {
        let (mut looked, mut start) = (0, 0);
        let volume = self.volume().unwrap_or_default().max(1);
        for &end in &round.ends {
            let units = &round.units[start..end];
            for (i, &unit) in units.iter().enumerate() {
                if start + i >= looked {
                    if control.cancelled() {
                        return;
                    }
                    let written = (done + looked as u64) * UNIT;
                    control.prefilling(written as f64 / volume as f64);
                    looked += BATCH;
                }
                if !round.near()
                    && let Some(&later) = units.get(i + AHEAD)
                {
                    drive.layer().prefetch(&self.unit(later));
                }
                drive.instantly(&self.unit(unit));
            }
            start = end;
        }
    }

    /// The write of a unit of a random prefill.
    fn unit(&self, unit: u64) -> HostRequest {
        let blocks = UNIT.min(self.span.0 - unit * UNIT);
        HostRequest::new(HostOp::Write, Lba(unit * UNIT), Blocks(blocks))
    }

    /// The units of a random prefill.
    fn rounds(&self, parts: Option<Independent>) -> Option<Rounds> {
        let Writes::Anywhere { volume, seed } = self.writes else { return None };
        Some(Rounds::new(self.span, Blocks(volume), seed, parts))
    }

    /// How much it writes, in blocks, where that is known before the trace is read.
    pub fn volume(&self) -> Option<u64> {
        match self.writes {
            Writes::ReadFirst => None,
            Writes::InOrder { volume } | Writes::Anywhere { volume, .. } => Some(volume),
        }
    }

    /// The writes, in an order that leaves what their own one would: random ones by `parts`, where there are any, so that the
    /// maps of a part lie in the processor's caches.
    ///
    /// # Errors
    /// A cancelled run.
    pub fn each(
        &self,
        (reads, parts): (&BlockSet, Option<Independent>),
        control: &Control,
        mut go: impl FnMut(HostRequest) -> Result<()>,
    ) -> Result<()> {
        let volume = self.volume().unwrap_or_else(|| reads.count());
        let (mut done, mut looked) = (0, 0);
        let mut write = |lba: u64, blocks: u64| -> Result<()> {
            done += blocks;
            // A write of much plans much: the flag is looked at after so many blocks, not writes.
            if done - looked >= CHUNK {
                looked = done;
                control.check()?;
                control.prefilling(done as f64 / volume.max(1) as f64);
            }
            go(HostRequest::new(HostOp::Write, Lba(lba), Blocks(blocks)))
        };
        let mut in_order = |from: u64, end: u64| {
            let mut at = from;
            while at < end {
                let n = CHUNK.min(end - at);
                write(at, n)?;
                at += n;
            }
            Ok(())
        };
        let Some(mut rounds) = self.rounds(parts) else {
            return match self.volume() {
                Some(volume) => in_order(0, volume),
                None => reads.runs().try_for_each(|run| in_order(run.start, run.end)),
            };
        };
        while rounds.next(control)? {
            for request in rounds.units.iter().map(|&unit| self.unit(unit)) {
                write(request.lba.0, request.blocks.0)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 blocks are two units and a half one: what was asked for is written once, and nothing behind it, in any order.
    #[test]
    fn the_last_unit_ends_with_the_span() {
        let drive = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
        let built =
            smrlab_stl::build("cmr", &smrlab_stl::BuildContext::new(std::sync::Arc::new(drive))).unwrap();
        for (order, expected) in [("random", vec![(0, 8), (8, 8), (16, 4)]), ("sequential", vec![(0, 20)])] {
            let prefill = Prefill::parse(&format!("50%,order={order}"), Blocks(40), &built, 1).unwrap();
            let mut written = Vec::new();
            let note = |r: HostRequest| {
                written.push((r.lba.0, r.blocks.0));
                Ok(())
            };
            prefill.each((&BlockSet::new(), None), &Control::new(), note).unwrap();
            written.sort_unstable();
            assert_eq!(written, expected, "{order}");
        }
    }

    /// Rounds of a random prefill go on with what those before them have written: of 80 units 20, and then a round of the other 60.
    #[test]
    fn a_round_tells_of_those_before_it() {
        let model = smrlab_disk::model::load("tiny", |_| Err(String::new())).unwrap();
        let built =
            smrlab_stl::build("cmr", &smrlab_stl::BuildContext::new(std::sync::Arc::new(model))).unwrap();
        let mechanics = built.drive.mechanics(None).unwrap();
        let mut drive = Drive::new(built.layer, mechanics, smrlab_drive::DriveSetup::default());
        let (span, volume) = (Blocks(1000), Blocks(80 * UNIT));
        let prefill =
            Prefill { resolved: String::new(), span, writes: Writes::Anywhere { volume: volume.0, seed: 1 } };
        let (mut round, control) = (Rounds::new(span, Blocks(60 * UNIT), 1, None), Control::new());
        assert!(round.next(&control).unwrap());
        prefill.write_round(&round, 20, &mut drive, &control);
        assert_eq!((control.prefills(), control.share()), (true, 0.25), "a round is looked at as it begins");
        // Four rounds of 20 units: as the last one begins 60 are written, and all are at its end.
        let rounds = Rounds::new(span, volume, 1, None).of(20);
        let (mut updates, control) = (Updates::new(span, false), Control::new());
        prefill.write_apart(rounds, &mut drive, &mut updates, &control).unwrap();
        assert_eq!((control.prefills(), control.share()), (true, 0.75));
        let written = updates.written_within(usize::MAX).unwrap();
        assert_eq!(written.iter().map(|blocks| blocks.end - blocks.start).sum::<u64>(), 80 * UNIT);
    }

    /// Whatever is to be written, in whatever order: all of it once, nothing beside it, and whoever looks on sees how much of it is written.
    #[test]
    fn what_is_asked_for_is_written_once() {
        let mut rng = smrlab_units::rng::Rng::new(1);
        for case in 0..200 {
            let span = 1 + rng.below([100, 5000, 4 * CHUNK][case % 3]);
            let volume = rng.below(span + 1);
            let mut reads = BlockSet::new();
            (0..rng.below(9)).for_each(|_| {
                let at = rng.below(span);
                reads.insert(at..at + 1 + rng.below(span - at));
            });
            let parts = rng
                .one_in(2)
                .then(|| Independent { count: 1 + rng.below(5), each: Blocks(UNIT << rng.below(5)) });
            let writes = match rng.below(3) {
                0 => Writes::ReadFirst,
                1 => Writes::InOrder { volume },
                _ => Writes::Anywhere { volume, seed: rng.below(99) },
            };
            let prefill = Prefill { resolved: String::new(), span: Blocks(span), writes };
            let (control, mut written, mut shown) = (Control::new(), BlockSet::new(), 0.0);
            let (mut done, mut requests) = (0, 0);
            let note = |r: HostRequest| {
                assert!(r.op == HostOp::Write && r.span().end <= span, "{case}: {r:?}");
                assert_eq!(written.insert(r.span()), r.blocks.0, "{case}: {r:?} is new");
                (done, requests) = (done + r.blocks.0, requests + 1);
                assert!((shown..1.001).contains(&control.share()), "{case}: {}", control.share());
                shown = control.share();
                Ok(())
            };
            prefill.each((&reads, parts), &control, note).unwrap();
            let runs = |set: &BlockSet| set.runs().collect::<Vec<_>>();
            match writes {
                Writes::ReadFirst => assert_eq!(runs(&written), runs(&reads), "{case}"),
                Writes::InOrder { .. } => {
                    assert_eq!(runs(&written).first(), (volume > 0).then_some(&(0..volume)))
                }
                // Whole units, but for the last of the span.
                Writes::Anywhere { .. } => {
                    assert_eq!(requests, volume.div_ceil(UNIT), "{case}");
                    assert!(done + UNIT > volume && done <= volume.next_multiple_of(UNIT), "{case}: {done}");
                }
            }
            // In a write that is long more is written than was looked at; of units they are nearly the same.
            let most = prefill.volume().unwrap_or(done).max(1) as f64;
            assert!(
                control.share() > (done as f64 - CHUNK as f64) / most - 1e-9,
                "{case}: {}",
                control.share()
            );
        }
    }

    #[test]
    fn a_cache_with_a_limited_map_is_filled_by_entries() {
        let drive = smrlab_disk::model::load("modern-7200,capacity=64GB", |_| Err(String::new())).unwrap();
        let context = smrlab_stl::BuildContext::new(std::sync::Arc::new(drive));
        let volume = |layer: &str, text: &str| {
            let built = smrlab_stl::build(layer, &context).unwrap();
            Prefill::parse(text, built.layer.host_blocks(), &built, 1).unwrap().volume().unwrap()
        };
        let limited = "persistent-cache,map_trigger=90,map_limit=100,log=1GB";
        assert_eq!(volume(limited, "50%,of=cache,order=random"), 50 * UNIT);
        assert_eq!(
            volume(limited, "50%,of=cache"),
            976_563,
            "half of 1 GB: packets are as large as they can be"
        );
        assert!(volume("disk-cache", "50%,of=cache,order=random") > 100_000);
    }
}
