//! A tag for every block, in memory that goes with what was touched.
//!
//! Blocks that were written together have tags that count up, so that one run stands for all of them. A page of few runs
//! keeps these, any other a tag for each block: what was written in small pieces is moved and destroyed page by page.
//! Most pages are looked at in no order, so they are found by hashing: one look at memory where a tree takes several.

use super::pages::Hashed;
use smrlab_units::Blocks;
use std::ops::Range;

/// Never written.
pub(super) const NEVER: u32 = 0;
/// Tags from here on do not count up: every block of a run has the same.
pub(super) const CONSTANT: u32 = 1 << 31;
/// Runs of a page up to which these are kept.
const FEW: usize = 4;

/// Consecutive blocks whose tags count up from the first, or are all the same (see [`CONSTANT`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagRun {
    /// First block.
    pub first: u64,
    /// Length.
    pub blocks: u64,
    /// Tag of the first block.
    pub tag: u32,
}

impl TagRun {
    /// One past its last block.
    pub(super) fn end(&self) -> u64 {
        self.first + self.blocks
    }

    /// The part within `range`, if any.
    pub(super) fn within(&self, range: &Range<u64>) -> Option<Self> {
        let (first, end) = (self.first.max(range.start), self.end().min(range.end));
        (first < end).then(|| Self { first, blocks: end - first, tag: nth(self.tag, first - self.first) })
    }
}

/// The tag `n` blocks behind one with `tag`.
pub(super) fn nth(tag: u32, n: u64) -> u32 {
    if tag == NEVER || tag >= CONSTANT { tag } else { tag + n as u32 }
}

/// Hands out tags that count up, from where no other write's are likely to.
#[derive(Debug, Default)]
pub(super) struct Fresh(u64);

impl Fresh {
    /// The first tag of a write of so many blocks.
    pub(super) fn next(&mut self, blocks: Blocks) -> u32 {
        self.0 += 1;
        let room = u64::from(CONSTANT) - 1 - blocks.0.min(u64::from(CONSTANT) / 2);
        1 + (scrambled(self.0) % room) as u32
    }
}

fn scrambled(n: u64) -> u64 {
    let z = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 24
}

/// A run within a page, counted from its first block; small, because most pages keep nothing else.
#[derive(Clone, Copy)]
struct Short {
    first: u16,
    blocks: u16,
    tag: u32,
}

impl Short {
    /// `run` of the page from block `base` on.
    fn of(base: u64, run: TagRun) -> Self {
        Self { first: (run.first - base) as u16, blocks: run.blocks as u16, tag: run.tag }
    }

    fn run(self, base: u64) -> TagRun {
        TagRun { first: base + u64::from(self.first), blocks: self.blocks.into(), tag: self.tag }
    }
}

/// Some of a page is written.
#[derive(Clone)]
enum Page<const PAGE: usize> {
    /// One run, the rest was never written: most pages of a drive that is written at random.
    One(Short),
    /// Its runs, ascending, and behind them empty ones; the rest was never written.
    Few(Box<[Short; FEW]>),
    /// The tag of each block.
    Each(Box<[u32; PAGE]>),
}

impl<const PAGE: usize> Page<PAGE> {
    /// The page from block `base` on, with these runs.
    fn of(base: u64, runs: &[TagRun]) -> Self {
        match runs {
            [run] => Self::One(Short::of(base, *run)),
            _ if runs.len() <= FEW => {
                let mut few = Box::new([Short { first: 0, blocks: 0, tag: NEVER }; FEW]);
                few.iter_mut().zip(runs).for_each(|(few, run)| *few = Short::of(base, *run));
                Self::Few(few)
            }
            _ => {
                let mut tags = Box::new([NEVER; PAGE]);
                runs.iter().for_each(|run| fill(&mut tags[..], base, *run));
                Self::Each(tags)
            }
        }
    }

    /// Appends its runs within `range`.
    fn runs(&self, base: u64, range: &Range<u64>, from: usize, out: &mut Vec<TagRun>) {
        match self {
            Self::One(run) => join(out, from, run.run(base).within(range)),
            Self::Few(runs) => runs.iter().for_each(|run| join(out, from, run.run(base).within(range))),
            Self::Each(tags) => {
                let part = &tags[(range.start - base) as usize..(range.end - base) as usize];
                let mut i = 0;
                while let Some(&tag) = part.get(i) {
                    let step = u32::from(tag != NEVER && tag < CONSTANT);
                    let goes_on = part[i + 1..].iter().zip(1..).take_while(|(t, n)| **t == tag + step * n);
                    let n = 1 + goes_on.count();
                    let run = TagRun { first: range.start + i as u64, blocks: n as u64, tag };
                    join(out, from, Some(run).filter(|run| run.tag != NEVER));
                    i += n;
                }
            }
        }
    }
}

/// Writes a run's tags into those of the blocks from `base` on.
fn fill(tags: &mut [u32], base: u64, run: TagRun) {
    let part = &mut tags[(run.first - base) as usize..(run.end() - base) as usize];
    if run.tag == NEVER || run.tag >= CONSTANT {
        part.fill(run.tag);
    } else {
        part.iter_mut().zip(run.tag..).for_each(|(to, tag)| *to = tag);
    }
}

/// See the [module](self). Pages of `PAGE` blocks: many where what is written is long or near what was, few where it is short, all over, and
/// each block's tag is its own.
#[derive(Clone, Default)]
pub(super) struct Tags<const PAGE: usize = 512> {
    pages: Hashed<Page<PAGE>>,
    /// Runs of a page that is being put together: kept for its room.
    room: Vec<TagRun>,
}

impl<const PAGE: usize> Tags<PAGE> {
    /// Blocks of a page.
    const BLOCKS: u64 = PAGE as u64;

    /// The tag of a block.
    #[cfg(test)]
    pub(super) fn get(&self, block: u64) -> u32 {
        let mut runs = Vec::new();
        self.runs(block..block + 1, &mut runs);
        runs.first().map_or(NEVER, |run| run.tag)
    }

    /// Gives the blocks of `run` its tags.
    pub(super) fn set(&mut self, run: TagRun) {
        let runs: &[TagRun] = if run.tag == NEVER { &[] } else { &[run] };
        self.put(run.first..run.end(), runs);
    }

    /// Gives the blocks of `range` the tags of `runs`, which lie in it and ascend; the rest of it was never written.
    pub(super) fn put(&mut self, range: Range<u64>, runs: &[TagRun]) {
        let (mut at, mut rest) = (range.start, runs);
        while at < range.end {
            if rest.is_empty() {
                return self.forget(at..range.end);
            }
            let page = at / Self::BLOCKS;
            let end = range.end.min((page + 1) * Self::BLOCKS);
            let n = rest.iter().take_while(|run| run.first < end).count();
            let here = &rest[..n];
            self.put_in(page, &(at..end), here);
            // The last one may go on in the next page.
            let goes_on = here.last().is_some_and(|last| last.end() > end);
            rest = &rest[n - usize::from(goes_on)..];
            at = end;
        }
    }

    fn put_in(&mut self, page: u64, range: &Range<u64>, runs: &[TagRun]) {
        let (base, all) = (page * Self::BLOCKS, page * Self::BLOCKS..(page + 1) * Self::BLOCKS);
        let whole = *range == all;
        match self.pages.get_mut(page) {
            Some(Page::Each(tags)) if !whole => {
                fill(
                    &mut tags[..],
                    base,
                    TagRun { first: range.start, blocks: range.end - range.start, tag: NEVER },
                );
                runs.iter()
                    .filter_map(|run| run.within(range))
                    .for_each(|run| fill(&mut tags[..], base, run));
            }
            old => {
                let new = &mut self.room;
                new.clear();
                if let Some(old) = old.as_deref().filter(|_| !whole) {
                    old.runs(base, &(all.start..range.start), 0, new);
                }
                runs.iter().for_each(|run| join(new, 0, run.within(range)));
                if let Some(old) = old.as_deref().filter(|_| !whole) {
                    old.runs(base, &(range.end..all.end), 0, new);
                }
                match (old, new.is_empty()) {
                    (_, true) => self.pages.remove(page),
                    (Some(old), false) => *old = Page::of(base, new),
                    (None, false) => self.pages.insert(page, Page::of(base, new)),
                }
            }
        }
    }

    fn forget(&mut self, range: Range<u64>) {
        for page in self.pages.keys(range.start / Self::BLOCKS..range.end.div_ceil(Self::BLOCKS)) {
            let all = page * Self::BLOCKS..(page + 1) * Self::BLOCKS;
            self.put_in(page, &(range.start.max(all.start)..range.end.min(all.end)), &[]);
        }
    }

    /// Gives those blocks of `range` that have a tag this one, which does not count up.
    pub(super) fn destroy(&mut self, range: &Range<u64>, tag: u32) {
        for page in self.pages.keys(range.start / Self::BLOCKS..range.end.div_ceil(Self::BLOCKS)) {
            let Some(tags) = self.pages.get_mut(page) else { continue };
            let (base, end) = (page * Self::BLOCKS, (page + 1) * Self::BLOCKS);
            let part = range.start.max(base)..range.end.min(end);
            match tags {
                Page::Each(tags) => {
                    let part = &mut tags[(part.start - base) as usize..(part.end - base) as usize];
                    part.iter_mut().filter(|t| **t != NEVER).for_each(|t| *t = tag);
                }
                Page::One(_) | Page::Few(_) => {
                    let old: &[Short] = match tags {
                        Page::One(run) => std::slice::from_ref(run),
                        Page::Few(runs) => &runs[..],
                        Page::Each(_) => &[],
                    };
                    let new = &mut self.room;
                    new.clear();
                    for run in old.iter().map(|run| run.run(base)) {
                        join(new, 0, run.within(&(base..part.start)));
                        join(new, 0, run.within(&part).map(|run| TagRun { tag, ..run }));
                        join(new, 0, run.within(&(part.end..end)));
                    }
                    *tags = Page::of(base, new);
                }
            }
        }
    }

    /// The runs of blocks in `range` that have a tag, appended to `out`; neighbours that go on are joined.
    pub(super) fn runs(&self, range: Range<u64>, out: &mut Vec<TagRun>) {
        let from = out.len();
        for page in self.pages.keys(range.start / Self::BLOCKS..range.end.div_ceil(Self::BLOCKS)) {
            let Some(tags) = self.pages.get(page) else { continue };
            let (base, end) = (page * Self::BLOCKS, (page + 1) * Self::BLOCKS);
            tags.runs(base, &(range.start.max(base)..range.end.min(end)), from, out);
        }
    }

    /// All runs of blocks that have a tag, by page: in no order.
    pub(super) fn all(&self, out: &mut Vec<TagRun>) {
        for (page, tags) in self.pages.iter() {
            let base = page * Self::BLOCKS;
            tags.runs(base, &(base..base + Self::BLOCKS), out.len(), out);
        }
    }

    /// Nothing has a tag.
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Bytes on the heap, nearly.
    pub(super) fn bytes(&self) -> usize {
        let of = |page: &Page<PAGE>| match page {
            Page::One(_) => 0,
            Page::Few(_) => size_of::<[Short; FEW]>(),
            Page::Each(_) => PAGE * size_of::<u32>(),
        };
        self.pages.bytes() + self.pages.values().map(of).sum::<usize>()
    }
}

/// Appends a run to those from `from` on, or lengthens the last one where it goes on there.
pub(super) fn join(out: &mut Vec<TagRun>, from: usize, run: Option<TagRun>) {
    let Some(run) = run else { return };
    if out.len() > from
        && let Some(last) = out.last_mut()
        && last.end() == run.first
        && nth(last.tag, last.blocks) == run.tag
    {
        last.blocks += run.blocks;
        return;
    }
    out.push(run);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_array() {
        agree::<512>();
        agree::<64>();
    }

    fn agree<const PAGE: usize>() {
        let (mut tags, mut plain) = (Tags::<PAGE>::default(), vec![NEVER; 1024]);
        let mut rng = smrlab_units::rng::Rng::new(7);
        let mut next = |n: u64| rng.below(n);
        for step in 0..6000u32 {
            let first = next(1000);
            let blocks = 1 + next(if step % 50 == 0 { 700 } else { 40 }).min(1023 - first);
            let tag = match next(4) {
                0 => NEVER,
                1 => CONSTANT + 5 + step,
                _ => 1 + step * 1000,
            };
            if step % 7 == 0 {
                tags.destroy(&(first..first + blocks), CONSTANT + 1);
                let hit = &mut plain[first as usize..(first + blocks) as usize];
                hit.iter_mut().filter(|t| **t != NEVER).for_each(|t| *t = CONSTANT + 1);
            } else if step % 5 == 0 {
                // What lies elsewhere comes here, gaps and all.
                let (from, mut runs) = (next(900 - blocks), Vec::new());
                tags.runs(from..from + blocks, &mut runs);
                runs.iter_mut().for_each(|r| r.first = r.first - from + first);
                tags.put(first..first + blocks, &runs);
                plain.copy_within(from as usize..(from + blocks) as usize, first as usize);
            } else {
                tags.set(TagRun { first, blocks, tag });
                (0..blocks).for_each(|i| plain[(first + i) as usize] = nth(tag, i));
            }
            let probe = next(990);
            let mut runs = Vec::new();
            tags.runs(probe..probe + 30, &mut runs);
            let mut seen = vec![NEVER; 1024];
            for r in &runs {
                (0..r.blocks).for_each(|i| seen[(r.first + i) as usize] = nth(r.tag, i));
            }
            assert_eq!(seen[probe as usize..][..30], plain[probe as usize..][..30], "step {step}");
            assert_eq!(tags.get(probe), plain[probe as usize]);
        }
    }

    #[test]
    fn dense_units_cost_few_bytes_and_untouched_ones_none() {
        let mut tags = Tags::<512>::default();
        tags.set(TagRun { first: 3, blocks: 1 << 20, tag: 100 });
        assert!(tags.bytes() < (1 << 17) * 8, "{}", tags.bytes());
        let before = tags.bytes();
        tags.set(TagRun { first: 1 << 30, blocks: 1 << 28, tag: NEVER });
        assert!(tags.bytes() <= before + 4096, "{} after {before}", tags.bytes());
    }
}
