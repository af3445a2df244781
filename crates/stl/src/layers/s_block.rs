//! `s-block`: sections of two rings, one of cached blocks and one of S-blocks (Cassuto et al. 2010, section V).
//!
//! Writes go to the head of the section's cache ring. Room is made at its tail: valid blocks move to the head, and an S-block whose cached
//! blocks are to go (a policy says which) is merged with them and written to the head of the S-block ring, which turns in the
//! same way. This file cuts requests by section; `s_block/section.rs` has the two rings, and names the file of each algorithm of the paper.

mod ahead;
mod blocks;
mod cache;
mod choose;
mod clean;
mod entry;
mod items;
mod leaves;
mod lists;
mod pieces;
mod read;
mod records;
mod section;
mod slots;
mod spare;
mod sparse;
mod tables;
#[cfg(test)]
mod tests;
mod turn;
mod work;
mod write;

pub use choose::{Policy, Weights};
pub use entry::ENTRY;

use crate::parts::ring::{Carver, Laid};
use crate::parts::split::{ReadRuns, first_alike, unset_runs};
use crate::parts::stretches::MediumSpace;
use crate::{
    Counted, Facts, HostRequest, Independent, Plan, Record, Records, Refusal, Sink, TranslationLayer,
};
use blocks::SBlock;
use leaves::Item;
use section::{Common, Section};
use slots::guard_slots;
use smrlab_blockmap::{BlockSet, Hints};
use smrlab_units::reciprocal::Reciprocal;
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime};
use std::ops::Range;
use work::Work;

/// What can be chosen about the layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SBlockOptions {
    /// The share of a section that is its cache ring.
    pub cache: f64,
    /// The share of the slots that is more than there are S-blocks.
    pub overprovision: f64,
    /// Sections.
    pub sections: u64,
    /// How sections work.
    pub rules: Rules,
}

/// How a section works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Blocks in an S-block.
    pub size: u64,
    /// Which S-block is destaged.
    pub policy: Policy,
    /// S-blocks destaged beyond the one that is needed.
    pub destage_ahead: u32,
    /// A destage is due when fewer than this share of the cache ring is invalid.
    pub low_water: f64,
    /// The paper's rules to the letter: a destage only where no block is invalid, and S-blocks that are about to be
    /// rewritten are moved on from the tail like others.
    pub literal: bool,
    /// Writes of whole S-blocks do not go through the cache.
    pub bypass: bool,
    /// S-blocks that hold nothing (never written, or wholly discarded) have no slot and are never read or copied;
    /// otherwise all are moved alike, as in the paper.
    pub skip: bool,
    /// S-blocks are moved on in steps, some before each S-block that is written, instead of all at once when the ring is
    /// full.
    pub paced: bool,
    /// Blocks in a unit that is cached as a whole: 1 or 8.
    pub granularity: u64,
    /// The most blocks moved from the tail to the head of a cache ring in one copy.
    pub batch: u64,
}

impl Default for SBlockOptions {
    fn default() -> Self {
        let rules = Rules {
            size: 2000,
            policy: Policy::ClosestToTail,
            destage_ahead: 0,
            low_water: 0.03,
            literal: false,
            bypass: true,
            skip: true,
            paced: true,
            granularity: 1,
            batch: 1000,
        };
        Self { cache: 0.01, overprovision: 0.01, sections: 10, rules }
    }
}

/// See the [module](self) and the registry's page.
pub struct SBlockLayer {
    rules: Rules,
    sections: Vec<Section>,
    /// Blocks that their caches can hold together.
    capacity: Blocks,
    by_size: Reciprocal,
    by_section: Reciprocal,
    /// Blocks that were discarded and not written since.
    discarded: BlockSet,
    work: Work,
    /// What will be needed soon; `None`: the map is never too large for the processor's caches.
    hints: Option<Hints>,
}

/// Bytes of a map that lies in the processor's caches.
const NEAR: u64 = 1 << 18;

/// Hints between two of the four steps that one takes.
const APART: usize = 6;

/// A part of a request within one S-block.
#[derive(Clone, Copy, Debug)]
struct Piece {
    section: usize,
    x: u32,
    offset: u64,
    blocks: u64,
    /// Offset in the host's buffer.
    host: u64,
}

/// How large the parts of a section are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Blocks of the cache ring.
    pub cache: u64,
    /// Slots of the S-block ring (`NT`).
    pub slots: u64,
    /// S-blocks (`N`).
    pub sblocks: u64,
}

impl Sizes {
    /// `NT = floor((section - cache) / S)`, `N = NT - floor(NT * o)`, but at least as many slots more than S-blocks as the
    /// ring needs to be written safely, and a cache ring of at least four times what a write damages.
    pub fn of(section: u64, options: &SBlockOptions, reach: u64) -> Option<Self> {
        let (size, g) = (options.rules.size, options.rules.granularity);
        let cache = ((section as f64 * options.cache) as u64).max(4 * (reach + g)) / g * g;
        let slots = section.checked_sub(cache)? / size;
        let spare = ((slots as f64 * options.overprovision) as u64).max(2 + guard_slots(reach, size));
        let sblocks = slots.checked_sub(spare).filter(|&n| n > 0)?;
        Some(Self { cache, slots, sblocks })
    }
}

impl SBlockLayer {
    /// Builds the layer over `space`.
    ///
    /// # Errors
    /// A sentence saying which option does not fit the space.
    pub fn new(space: &MediumSpace, options: SBlockOptions) -> Result<Self, String> {
        let rules = options.rules;
        if !rules.size.is_multiple_of(rules.granularity) {
            return Err(format!("sblock_blocks={} is no multiple of granularity=8", rules.size));
        }
        let (sizes, rings) = lay_out(space, &options)?;
        let each = sizes.sblocks * size_of::<SBlock>() as u64 + sizes.cache * size_of::<Item>() as u64;
        let far = each * options.sections > NEAR;
        let rules = Rules { batch: rules.batch.min(sizes.cache / 8).max(1), ..rules };
        let common = Common { rules, sblocks: sizes.sblocks as u32, reach: space.reach.0, far };
        let sections: Vec<_> = (0..).zip(rings).map(|(i, rings)| Section::new(i, rings, &common)).collect();
        Ok(Self {
            rules,
            capacity: Blocks(sections.iter().map(|s| s.cache.capacity()).sum()),
            sections,
            by_size: Reciprocal::new(rules.size),
            by_section: Reciprocal::new(sizes.sblocks),
            discarded: BlockSet::new(),
            work: Work { fences: 1, ..Work::default() },
            hints: far.then(Hints::default),
        })
    }

    fn section_of(&self, id: u64) -> (usize, u32) {
        let (section, x) = self.by_section.div_rem_wide(id);
        (section as usize, x as u32)
    }

    /// Splits a request at the edges of S-blocks.
    #[inline]
    fn pieces(&self, lba: u64, blocks: u64) -> impl Iterator<Item = Piece> + use<> {
        let (size, by_section) = (self.rules.size, self.by_section);
        let (mut id, mut offset) = self.by_size.div_rem_wide(lba);
        let mut host = 0;
        std::iter::from_fn(move || {
            (host < blocks).then(|| {
                let (section, x) = by_section.div_rem_wide(id);
                let n = (size - offset).min(blocks - host);
                let piece = Piece { section: section as usize, x: x as u32, offset, blocks: n, host };
                host += n;
                id += 1;
                offset = 0;
                piece
            })
        })
    }

    fn is_bypassed(&self, p: &Piece) -> bool {
        self.rules.bypass && p.blocks == self.rules.size
    }

    /// The units that a piece touches.
    fn span(&self, p: &Piece) -> Range<u64> {
        // A power of two.
        let within = self.rules.granularity - 1;
        p.offset & !within..(p.offset + p.blocks + within) & !within
    }

    #[inline]
    fn write(&mut self, lba: Lba, blocks: Blocks, plan: &mut Plan) {
        let mut ops = 0;
        for p in self.pieces(lba.0, blocks.0) {
            if self.is_bypassed(&p) {
                self.sections[p.section].bypass(p.x, p.host, &self.rules, &mut self.work, plan);
                ops += 1;
                continue;
            }
            let host = (p.offset..p.offset + p.blocks, p.host);
            let span = self.span(&p);
            let section = &mut self.sections[p.section];
            ops += section.write(p.x, span, host, &self.rules, &mut self.work, plan);
        }
        plan.set_extents(ops);
        if !self.discarded.is_empty() {
            self.discarded.remove(lba.span(blocks));
        }
    }

    /// Plans a read, and answers how many of its blocks were in the cache.
    fn read_range(&mut self, lba: u64, blocks: u64, runs: &mut ReadRuns, plan: &mut Plan) -> u64 {
        let mut all = 0;
        for p in self.pieces(lba, blocks) {
            let s = &self.sections[p.section];
            let parts = &mut self.work.parts;
            let any = s.read_runs(p.x, p.offset, p.blocks, parts, runs, plan);
            all += if any { parts.iter().map(|q| q.blocks).sum() } else { 0 };
        }
        all
    }

    fn read(&mut self, lba: Lba, blocks: Blocks, plan: &mut Plan) {
        let (mut runs, mut cached, mut zeroes) = (ReadRuns::to_host(0), 0, 0);
        let mut left = lba.span(blocks);
        while !left.is_empty() {
            let (run, discarded) = first_alike(&self.discarded, left.clone());
            let n = run.end - run.start;
            left.start = run.end;
            if discarded {
                runs.zeroes(n, plan);
                zeroes += n;
            } else {
                cached += self.read_range(run.start, n, &mut runs, plan);
            }
        }
        let (c, whole) = (&mut self.work.counters, cached + zeroes == blocks.0);
        c.read_hits += u64::from(cached > 0 && whole);
        c.read_misses += u64::from(cached == 0);
        c.read_split += u64::from(cached > 0 && !whole);
        let ops = runs.end(plan);
        plan.set_extents(ops.max(1));
    }

    /// Takes the units that lie wholly in a range out of the cache.
    fn forget(&mut self, lba: u64, blocks: u64) {
        let g = self.rules.granularity;
        for p in self.pieces(lba, blocks) {
            let (from, to) = (p.offset.div_ceil(g) * g, (p.offset + p.blocks) / g * g);
            if from < to {
                self.sections[p.section].forget(p.x, from, to - from);
            }
        }
    }

    fn discard(&mut self, lba: u64, blocks: u64) {
        self.forget(lba, blocks);
        self.discarded.insert(lba..lba + blocks);
        if !self.rules.skip {
            return;
        }
        for p in self.pieces(lba, blocks) {
            let first = lba + p.host - p.offset;
            let whole = first..first + self.rules.size;
            if self.discarded.runs_in(whole.clone()).next() == Some(whole) {
                self.sections[p.section].vacate(p.x);
            }
        }
    }

    fn first_of_write(&self, lba: u64, blocks: u64) -> Option<(Pba, Dir)> {
        let p = self.pieces(lba, blocks).next()?;
        let s = &self.sections[p.section];
        if self.is_bypassed(&p) {
            return Some(s.first_of_bypass(p.x, &self.rules));
        }
        let span = self.span(&p);
        if let Some(cleaning) = s.first_cleaning(span.end - span.start, &self.rules) {
            return Some((cleaning, Dir::Read));
        }
        if span.start < p.offset && s.holds(p.x, span.start) {
            return Some((s.place(p.x, span.start), Dir::Read));
        }
        let most = s.cache.longest(self.rules.granularity);
        let end = p.offset + p.blocks;
        if end < span.end && span.end - span.start <= most && s.holds(p.x, end) {
            return Some((s.place(p.x, end), Dir::Read));
        }
        Some((s.cache.laid.pba(s.cache.ring.head()), Dir::Write))
    }
}

/// Sizes and rings of all sections, one behind the other.
fn lay_out(space: &MediumSpace, options: &SBlockOptions) -> Result<(Sizes, Vec<(Laid, Laid)>), String> {
    let too_small = || {
        format!(
            "sections={} of S-blocks of {} blocks do not fit on this drive: use fewer sections or smaller S-blocks",
            options.sections, options.rules.size
        )
    };
    let mut section = space.counted.0 / options.sections;
    // Guards and the ends of strokes take room on drives that do not count them apart.
    loop {
        let sizes =
            Sizes::of(section, options, space.reach.0).filter(|s| s.cache > 0).ok_or_else(too_small)?;
        let mut carver = Carver::new(space.stretches.clone(), space.guard());
        let rings: Option<Vec<_>> = (0..options.sections)
            .map(|_| {
                let slots = carver.take(sizes.slots, options.rules.size)?;
                let cache =
                    carver.take(sizes.cache / options.rules.granularity, options.rules.granularity)?;
                Some((Laid::over(&slots), Laid::over(&cache)))
            })
            .collect();
        if let Some(rings) = rings {
            // Numbers of items and S-blocks have 31 bits, and leaves of items may be half empty.
            if sizes.cache > 1 << 30 || sizes.slots > 1 << 30 {
                return Err(format!(
                    "sections of {section} blocks are too large for the map: use more sections"
                ));
            }
            return Ok((sizes, rings));
        }
        section -= (section / 400).max(1);
    }
}

impl TranslationLayer for SBlockLayer {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.sections.len() as u64 * self.by_section.divisor() * self.rules.size)
    }

    #[inline]
    fn submit(&mut self, _now: SimTime, request: &HostRequest, plan: &mut Plan) {
        self.work.destaged = 0;
        match request.op {
            HostOp::Write => self.write(request.lba, request.blocks, plan),
            HostOp::Read => self.read(request.lba, request.blocks, plan),
            HostOp::Discard => {
                let words = [request.lba.0, request.blocks.0, 0];
                plan.record(Record { tag: records::DISCARD, words });
                self.discard(request.lba.0, request.blocks.0);
            }
            HostOp::Flush => {}
            _ => plan.refuse(Refusal::Unsupported, request.lba),
        }
    }

    fn locate(&self, request: &HostRequest) -> Option<(Pba, Dir)> {
        let (lba, end) = (request.lba.0, request.lba.0 + request.blocks.0);
        match request.op {
            HostOp::Write => self.first_of_write(lba, request.blocks.0),
            HostOp::Read => {
                let first = self.discarded.next_unset(lba);
                let p = self.pieces(first, end.checked_sub(first)?).next()?;
                Some((self.sections[p.section].place(p.x, p.offset), Dir::Read))
            }
            _ => None,
        }
    }

    fn durable(&mut self) {
        self.work.fences += 1;
    }

    fn recover(&mut self, records: &Records, _plan: &mut Plan) {
        self.replay(records);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.write_checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        unset_runs(&self.discarded, lba.span(blocks), out);
    }

    #[inline]
    fn prefetch(&self, request: &HostRequest) {
        let Some(hints) = &self.hints else { return };
        let (id, offset) = self.by_size.div_rem_wide(request.lba.0);
        let (section, x) = self.by_section.div_rem_wide(id);
        if let Some(s) = self.sections.get(section as usize) {
            s.blocks.prefetch_chunk(x as u32);
        }
        let fits = section < self.sections.len().min(1 << 16) as u64;
        let earlier = hints.add(if fits { section << 48 | x << 16 | offset >> 3 } else { 0 });
        let hinted = |step: usize| {
            let hint = earlier(step * APART);
            (&self.sections[(hint >> 48) as usize], (hint >> 16) as u32, hint & 0xffff)
        };
        let (s, x1, _) = hinted(1);
        s.blocks.prefetch(x1);
        let (s, x2, unit) = hinted(2);
        let known = s.blocks.at(x2);
        s.slots.prefetch(known.slot);
        s.cache.fetch_list(&known, unit);
        let (s, x3, unit) = hinted(3);
        s.cache.fetch_listed(&s.blocks.at(x3), unit);
    }

    fn map_bytes(&self) -> u64 {
        self.sections.iter().map(Section::bytes).sum::<u64>() + self.discarded.bytes() as u64
    }

    fn facts(&self) -> Facts<'_> {
        let cached = self.sections.iter().map(|s| s.cache.live()).sum();
        let each = Blocks(self.by_section.divisor() * self.rules.size);
        let independent = Some(Independent { count: self.sections.len() as u64, each });
        Facts { cache: Some(self.capacity), cached: Some(Blocks(cached)), independent, ..Facts::default() }
    }

    fn counters(&self, out: &mut Counted) {
        out.counts(self.work.counters.named());
        out.level("cache_blocks", self.capacity.0);
        out.level("cached_blocks", self.sections.iter().map(|s| s.cache.live()).sum());
    }
}
