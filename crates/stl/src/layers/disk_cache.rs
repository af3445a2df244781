//! `disk-cache`: a set-associative cache of bands on the shingled medium itself (Cassuto et al. 2010, section IV).
//!
//! Native bands hold the host's blocks at fixed places. A write is appended to the cache band of its native band; when that is full, each
//! native band with blocks in it is read, patched in memory and written as a whole, and the cache band is empty.

mod clean;
mod entry;
mod recover;
mod set;
#[cfg(test)]
mod tests;

pub use entry::ENTRY;

use crate::parts::split::{ReadRuns, first_alike, unset_runs};
use crate::{
    Counted, Endpoint, Facts, HostRequest, Independent, Plan, Record, Records, Refusal, Sink, StepEnd,
    TranslationLayer,
};
use set::{Homes, Set};
use smrlab_blockmap::{BlockSet, Hints, prefetch};
use smrlab_disk::{BandId, Bands};
use smrlab_units::reciprocal::Reciprocal;
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime, counted, counters};
use std::ops::Range;

/// Where the cache bands lie among the native bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All at the lowest PBAs.
    Contiguous,
    /// One before each group of as many native bands as a cache band serves.
    PerSet,
}

/// What is done with a full cache band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// Every native band present is read, patched and written (Algorithm IV.2).
    Full,
    /// Only this many native bands, those with the most cached blocks; the rest of the cache band is compacted.
    Partial(u32),
}

/// What can be chosen about the layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskCacheOptions {
    /// The share of the bands that is cache.
    pub cache: f64,
    /// Where cache bands lie.
    pub placement: Placement,
    /// How a full cache band is emptied.
    pub cleaning: Cleaning,
    /// Native bands are given to a cache band at their first cached block instead of for ever.
    pub dynamic: bool,
    /// Cleaning rewrites every associated native band, whether present or not (what Table I of the paper takes).
    pub all_associated: bool,
    /// Blocks in a unit of the map: 1 or 8.
    pub granularity: u64,
    /// A band is written to a scratch band before it is written in place.
    pub journal: bool,
    /// Native bands are cleaned, one a step, when the drive was idle for this long.
    pub idle: Option<SimTime>,
}

impl Default for DiskCacheOptions {
    fn default() -> Self {
        Self {
            cache: 0.01,
            placement: Placement::Contiguous,
            cleaning: Cleaning::Full,
            dynamic: false,
            all_associated: false,
            granularity: 1,
            journal: false,
            idle: None,
        }
    }
}

/// How many bands serve which purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Cache bands (`M`).
    pub cache: u64,
    /// Native bands (`n`), a multiple of `M`.
    pub native: u64,
    /// Native bands a cache band serves.
    pub associated: u64,
}

impl Shares {
    /// `M = round(share * bands)`, at least 1, and `n` the largest multiple of `M` that is left; `None` where no native
    /// band is left.
    pub fn of(bands: u64, share: f64) -> Option<Self> {
        let cache = ((bands as f64 * share).round() as u64).max(1);
        let associated = (bands / cache).checked_sub(1).filter(|&a| a > 0)?;
        Some(Self { cache, native: associated * cache, associated })
    }
}

/// What a read found: blocks in the cache, blocks elsewhere.
#[derive(Clone, Copy, Default)]
struct Found {
    hits: bool,
    misses: bool,
}

counters! {
    /// Events that are counted.
    struct Counters {
        read_hits => "read_hits",
        read_misses => "read_misses",
        read_split => "read_split",
        write_hits => "write_hits",
        write_misses => "write_misses",
        sets_cleaned => "sets_cleaned",
        bands_rewritten => "bands_rewritten",
    }
}

/// See the [module](self) and the registry's page.
pub struct DiskCache {
    options: DiskCacheOptions,
    /// Equally long bands; no write in one harms another.
    bands: Bands,
    /// Blocks in a band.
    band: u64,
    shares: Shares,
    by_band: Reciprocal,
    /// Units of the map in a band, and blocks in a unit.
    by_units: Reciprocal,
    by_unit: Reciprocal,
    sets: Vec<Set>,
    homes: Homes,
    /// The journal's scratch band.
    scratch: Option<Pba>,
    /// What the scratch band holds may not be durable where it belongs.
    scratch_needed: bool,
    /// Fences and flushes so far, and one: sets that were emptied since the last one bear this number.
    fences: u64,
    /// Blocks that were discarded and not written since.
    discarded: BlockSet,
    /// Cached units in all sets.
    cached: u64,
    /// The native band whose cleaning in idle time is planned.
    step: Option<u64>,
    counters: Counters,
    work: clean::Work,
    hints: Hints,
}

/// Hints between two of the three steps that one takes.
const APART: usize = 8;

/// A part of a request within one native band.
#[derive(Clone, Copy, Debug)]
struct NativePart {
    native: u64,
    /// Offset in the band.
    offset: u64,
    blocks: u64,
    /// Offset in the host's buffer.
    host: u64,
}

impl DiskCache {
    /// Builds the layer over bands of `band` blocks at `starts`, whose number gives the host's space. No write in one may harm
    /// another.
    ///
    /// # Errors
    /// A sentence saying which option does not fit the space.
    pub fn new(starts: &[Pba], band: u64, options: DiskCacheOptions) -> Result<Self, String> {
        let bands = starts.len() as u64 - u64::from(options.journal);
        let g = options.granularity;
        if !band.is_multiple_of(g) {
            return Err(format!("bands of {} are no multiple of granularity={g}", counted(band, "block")));
        }
        let shares = Shares::of(bands, options.cache).ok_or_else(|| {
            format!("{bands} bands leave no native band beside the cache: use smaller bands or less cache")
        })?;
        let units = band / g;
        // A full set takes one band more before it is cleaned.
        let slots = if options.dynamic { (units + 1).min(shares.native) } else { shares.associated };
        if slots.checked_mul(units).is_none_or(|keys| keys >= u64::from(u32::MAX)) {
            return Err(format!(
                "{slots} native bands of {units} units a cache band are more than the map can number: use smaller \
                 bands, more cache or granularity=8"
            ));
        }
        let scratch = options.journal.then(|| starts[bands as usize]);
        let homes = Homes::new(shares, options.dynamic);
        let by_band = Reciprocal::new(band);
        let mut layer = Self {
            sets: Vec::new(),
            options,
            bands: Bands::at(starts, Blocks(band)).map_err(|e| e.to_string())?,
            band,
            shares,
            by_band,
            by_units: Reciprocal::new(units),
            by_unit: Reciprocal::new(g),
            homes,
            scratch,
            scratch_needed: false,
            fences: 1,
            discarded: BlockSet::new(),
            cached: 0,
            step: None,
            counters: Counters::default(),
            work: clean::Work::default(),
            hints: Hints::default(),
        };
        let slots = if options.dynamic { 0 } else { shares.associated as usize };
        layer.sets = (0..shares.cache).map(|s| Set::new(layer.cache_start(s), units as u32, slots)).collect();
        Ok(layer)
    }

    fn cache_start(&self, set: u64) -> Pba {
        self.bands.start(BandId(match self.options.placement {
            Placement::Contiguous => set,
            Placement::PerSet => set * (self.shares.associated + 1),
        }))
    }

    #[inline]
    fn native_start(&self, native: u64) -> Pba {
        self.bands.start(BandId(match self.options.placement {
            Placement::Contiguous => self.shares.cache + native,
            Placement::PerSet => native + native / self.shares.associated + 1,
        }))
    }

    fn units(&self) -> u64 {
        self.by_units.divisor()
    }

    /// Splits a request at the edges of native bands.
    #[inline]
    fn parts(&self, lba: Lba, blocks: Blocks) -> impl Iterator<Item = NativePart> + use<> {
        let (by_band, band) = (self.by_band, self.band);
        let (mut native, mut offset) = by_band.div_rem_wide(lba.0);
        let (mut host, end) = (0, blocks.0);
        std::iter::from_fn(move || {
            (host < end).then(|| {
                let part = NativePart { native, offset, blocks: (band - offset).min(end - host), host };
                host += part.blocks;
                native += 1;
                offset = 0;
                part
            })
        })
    }

    /// Algorithm IV.1 for the blocks of one native band: append, cleaning the cache band whenever it is full.
    fn write_part(&mut self, part: NativePart, plan: &mut Plan) -> u32 {
        let (g, units) = (self.options.granularity, self.units());
        let (first, end) = (self.by_unit.div(part.offset), self.by_unit.div_ceil(part.offset + part.blocks));
        let (mut unit, mut ops) = (first, 0);
        while unit < end {
            let (set, slot) = self.home_with_room(part.native, plan);
            if self.sets[set].emptied == self.fences {
                // What was cached here is durable at home before it is overwritten.
                self.fence(plan);
            }
            let n = (end - unit).min(u64::from(self.sets[set].index.free()));
            let at = self.sets[set].base.0 + u64::from(self.sets[set].index.appended()) * g;
            let position = self.sets[set].index.appended();
            self.plan_append(part, unit * g..(unit + n) * g, Pba(at), plan);
            plan.record(self.append_record(part, unit, n, ((set as u64) << 32) | u64::from(position)));
            let new = self.sets[set].append(slot, units, unit, n);
            self.cached += new;
            self.counters.write_misses += u64::from(new > 0);
            self.counters.write_hits += u64::from(new == 0);
            unit += n;
            ops += 1;
        }
        ops
    }

    fn fence(&mut self, plan: &mut Plan) {
        plan.fence();
        self.durable();
    }

    /// The set of a native band and its number there, after cleaning if the cache band is full.
    #[inline]
    fn home_with_room(&mut self, native: u64, plan: &mut Plan) -> (usize, u32) {
        loop {
            let (set, slot) = self.homes.for_write(native, &mut self.sets);
            if self.sets[set].index.free() > 0 {
                return (set, slot);
            }
            self.clean(set, plan);
        }
    }

    /// Writes the blocks `span` of a native band to the cache at `at`: the host's, completed to whole units.
    #[inline]
    fn plan_append(&mut self, part: NativePart, span: Range<u64>, at: Pba, plan: &mut Plan) {
        let host = span.start.max(part.offset)..span.end.min(part.offset + part.blocks);
        let from = Blocks(part.host + (host.start - part.offset));
        let blocks = Blocks(span.end - span.start);
        if host == span {
            plan.write(crate::Cause::Host, at, blocks, Endpoint::Host(from));
            return;
        }
        self.plan_filled(part.native, span, host, from, at, plan);
    }

    /// Algorithm IV.3 for the blocks of one native band.
    #[inline]
    fn read_part(&self, part: NativePart, found: &mut Found, runs: &mut ReadRuns, plan: &mut Plan) {
        let native = self.native_start(part.native);
        let home = self.homes.of(part.native).filter(|&(set, slot)| self.sets[set].live(slot) > 0);
        let Some((set, slot)) = home else {
            found.misses = true;
            return runs.push(native + Blocks(part.offset), part.blocks, plan);
        };
        let (units, g) = (self.units(), self.options.granularity);
        let mut offset = part.offset;
        let end = part.offset + part.blocks;
        while offset < end {
            let (unit, within) = self.by_unit.div_rem(offset);
            let most = self.by_unit.div(end - 1) + 1 - unit;
            let (cached, n) = self.sets[set].find_run(slot, units, unit, most);
            let n = (n * g - within).min(end - offset);
            found.hits |= cached.is_some();
            found.misses |= cached.is_none();
            let pba = match cached {
                Some(p) => self.sets[set].base.0 + u64::from(p) * g + within,
                None => native.0 + offset,
            };
            runs.push(Pba(pba), n, plan);
            offset += n;
        }
    }

    fn read(&mut self, r: &HostRequest, plan: &mut Plan) {
        let (mut runs, mut found) = (ReadRuns::to_host(0), Found::default());
        let mut left = r.span();
        while !left.is_empty() {
            let (run, discarded) = first_alike(&self.discarded, left.clone());
            left.start = run.end;
            let blocks = Blocks(run.end - run.start);
            if discarded {
                runs.zeroes(blocks.0, plan);
                continue;
            }
            for part in self.parts(Lba(run.start), blocks) {
                self.read_part(part, &mut found, &mut runs, plan);
            }
        }
        self.counters.read_hits += u64::from(found.hits && !found.misses);
        self.counters.read_misses += u64::from(!found.hits);
        self.counters.read_split += u64::from(found.hits && found.misses);
        let ops = runs.end(plan);
        plan.set_extents(ops.max(1));
    }

    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        let mut ops = 0;
        for part in self.parts(r.lba, r.blocks) {
            ops += self.write_part(part, plan);
        }
        plan.set_extents(ops.max(1));
        if !self.discarded.is_empty() {
            self.discarded.remove(r.span());
        }
    }

    fn discard(&mut self, r: &HostRequest, plan: &mut Plan) {
        plan.record(Record { tag: recover::DISCARD, words: [r.lba.0, r.blocks.0, 0] });
        self.forget(r.lba, r.blocks);
        self.discarded.insert(r.span());
    }

    /// Takes the units that lie wholly in a range out of the cache; their positions stay taken until the set is cleaned.
    fn forget(&mut self, lba: Lba, blocks: Blocks) {
        let (units, g) = (self.units(), self.options.granularity);
        for part in self.parts(lba, blocks) {
            let Some((set, slot)) = self.homes.of(part.native) else { continue };
            if self.sets[set].live(slot) == 0 {
                continue;
            }
            for unit in part.offset.div_ceil(g)..(part.offset + part.blocks) / g {
                self.cached -= u64::from(self.sets[set].forget(slot, units, unit));
            }
        }
    }
}

impl TranslationLayer for DiskCache {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.shares.native * self.band)
    }

    by_operation!();

    fn locate(&self, request: &HostRequest) -> Option<(Pba, Dir)> {
        if !matches!(request.op, HostOp::Read | HostOp::Write) {
            return None;
        }
        self.first_operation(request)
    }

    fn background_after(&self) -> Option<SimTime> {
        self.options.idle.filter(|_| self.cached > 0)
    }

    fn background(&mut self, _now: SimTime, plan: &mut Plan) {
        self.plan_step(plan);
    }

    fn background_end(&mut self, end: StepEnd) {
        self.end_step(end);
    }

    fn durable(&mut self) {
        self.fences += 1;
        self.scratch_needed = false;
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        self.replay(records, plan);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.write_checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        unset_runs(&self.discarded, lba.span(blocks), out);
    }

    #[inline]
    fn prefetch(&self, request: &HostRequest) {
        let (native, offset) = self.by_band.div_rem_wide(request.lba.0);
        let (set, slot) = self.homes.of(native).unwrap_or_default();
        prefetch(&self.sets, set);
        let key = Set::key(slot, self.units(), self.by_unit.div(offset));
        let earlier = self.hints.add((set as u64) << 32 | u64::from(key));
        let hinted = |step: usize| {
            let hint = earlier(step * APART);
            (&self.sets[(hint >> 32) as usize], hint as u32)
        };
        let (set, key) = hinted(1);
        set.prefetch(key, self.by_units);
        let (set, key) = hinted(2);
        set.index.prefetch_item(key);
    }

    fn map_bytes(&self) -> u64 {
        let sets: u64 = self.sets.iter().map(Set::bytes).sum();
        sets + self.homes.bytes() + self.bands.bytes() + self.discarded.bytes() as u64
    }

    fn facts(&self) -> Facts<'_> {
        let (cache, each) = (Some(Blocks(self.shares.cache * self.band)), Blocks(self.band));
        let cached = Some(Blocks(self.cached * self.options.granularity));
        // Where association is dynamic, or there is one scratch band for all, sets know of each other.
        let apart = !self.options.dynamic && !self.options.journal;
        let independent = apart.then_some(Independent { count: self.shares.cache, each });
        Facts { cache, cached, bands: Some(&self.bands), independent, ..Facts::default() }
    }

    fn counters(&self, out: &mut Counted) {
        out.counts(self.counters.named());
        out.level("cache_blocks", self.shares.cache * self.band);
        out.level("cached_blocks", self.cached * self.options.granularity);
    }
}
