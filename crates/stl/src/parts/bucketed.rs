//! Which blocks of the host's lie in a ring, as extents in buckets of as many blocks each: a block's bucket is found without a search.
//!
//! For what is small beside the host's space and lies all over it. Where extents are long, each bucket of theirs takes a row of its
//! own: [`Extents`](super::extents::Extents) has one for all of it.

use super::extents::Extent;
use smrlab_blockmap::prefetch;
use std::ops::Range;

/// Blocks of a bucket.
const BUCKET: u64 = if cfg!(test) { 32 } else { 2048 };
/// Buckets of a page. A page of which nothing was ever kept is not there.
const PAGE: usize = if cfg!(test) { 4 } else { 8 };

/// The part of an extent that lies in a bucket.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Offset in the bucket.
    first: u16,
    blocks: u16,
    packet: u32,
    at: u32,
}

impl Row {
    /// Those blocks of an extent that lie in the bucket which begins at `base`.
    #[inline]
    fn of(e: &Extent, base: u64) -> Self {
        let e = e.within(&(base..base + BUCKET));
        Self { first: (e.lba - base) as u16, blocks: e.blocks as u16, packet: e.packet, at: e.at as u32 }
    }

    #[inline]
    fn extent(&self, base: u64) -> Extent {
        let (lba, blocks) = (base + u64::from(self.first), self.blocks.into());
        Extent { lba, blocks, packet: self.packet, at: self.at.into() }
    }

    fn end(&self) -> u64 {
        u64::from(self.first) + u64::from(self.blocks)
    }

    /// The part of it within a range of offsets that it meets.
    fn within(&self, span: Range<u64>) -> Self {
        Self::of(&self.extent(0).within(&span), 0)
    }
}

/// The first row that ends behind an offset.
#[inline]
fn first_behind(rows: &[Row], at: u64) -> usize {
    // Halving asks for the one number of each row.
    let later = rows.partition_point(|row| u64::from(row.first) <= at);
    later - usize::from(later > 0 && rows[later - 1].end() > at)
}

/// Has `new` in a bucket instead of whatever lies in `span`; `gone` is told each part of that.
#[inline]
fn change(rows: &mut Vec<Row>, span: Range<u64>, new: Option<Row>, mut gone: impl FnMut(&Row)) {
    let from = first_behind(rows, span.start);
    let to = match (rows.get_mut(from), new) {
        // What is written again is mostly written as it was.
        (Some(old), Some(new)) if (old.first, old.blocks) == (new.first, new.blocks) => {
            gone(old);
            *old = new;
            return;
        }
        (Some(first), _) if u64::from(first.first) < span.end => {
            from + rows[from..].iter().take_while(|row| u64::from(row.first) < span.end).count()
        }
        (_, new) => return new.into_iter().for_each(|new| rows.insert(from, new)),
    };
    rows[from..to].iter().for_each(|row| gone(&row.within(span.clone())));
    let (first, last) = (rows[from], rows[to - 1]);
    let before = (u64::from(first.first) < span.start).then(|| first.within(0..span.start));
    let behind = (last.end() > span.end).then(|| last.within(span.end..BUCKET));
    match [before, new, behind] {
        [None, None, None] => _ = rows.drain(from..to),
        left => _ = rows.splice(from..to, left.into_iter().flatten()),
    }
    if rows.is_empty() {
        *rows = Vec::new();
    }
}

type Page = Box<[Vec<Row>; PAGE]>;

/// Extents by LBA; they never overlap. Positions are below 2^32.
#[derive(Clone, Debug, Default)]
pub struct BucketedExtents {
    pages: Vec<Option<Page>>,
    /// Bytes of pages and rows.
    bytes: usize,
}

impl BucketedExtents {
    #[inline]
    fn rows(&self, bucket: u64) -> &[Row] {
        match self.pages.get((bucket / PAGE as u64) as usize) {
            Some(Some(page)) => &page[bucket as usize % PAGE],
            _ => &[],
        }
    }

    /// The first bucket behind one that may hold something and begins before `end`.
    #[inline]
    fn after(&self, bucket: u64, end: u64) -> Option<u64> {
        let mut next = bucket + 1;
        while next * BUCKET < end {
            if self.pages.get((next / PAGE as u64) as usize)?.is_some() {
                return Some(next);
            }
            next = (next / PAGE as u64 + 1) * PAGE as u64;
        }
        None
    }

    /// Brings what is kept about a block nearer to the processor.
    #[inline]
    pub fn prefetch(&self, lba: u64) {
        let rows = self.rows(lba / BUCKET);
        [0, rows.len() / 2, rows.len().saturating_sub(1)].into_iter().for_each(|row| prefetch(rows, row));
    }

    /// The parts of extents that lie in `span`, ascending.
    #[inline]
    pub fn within(&self, span: Range<u64>) -> impl Iterator<Item = Extent> + '_ {
        let mut bucket = span.start / BUCKET;
        let rows = self.rows(bucket);
        let mut rows = rows[first_behind(rows, span.start % BUCKET)..].iter();
        std::iter::from_fn(move || {
            while rows.as_slice().is_empty() {
                bucket = self.after(bucket, span.end)?;
                rows = self.rows(bucket).iter();
            }
            let mut e = rows.next().map(|row| row.extent(bucket * BUCKET)).filter(|e| e.lba < span.end)?;
            // What reaches the end of its bucket may go on in the next one.
            while e.end() == (bucket + 1) * BUCKET && e.end() < span.end {
                let more = self.rows(bucket + 1);
                let next = more.first().map(|row| row.extent((bucket + 1) * BUCKET));
                let Some(next) = next.filter(|next| e.goes_on_in(next)) else { break };
                e.blocks += next.blocks;
                (bucket, rows) = (bucket + 1, more[1..].iter());
            }
            Some(e.within(&span))
        })
    }

    /// Takes out whatever lies in `span`; `gone` is told each part.
    pub fn remove(&mut self, span: Range<u64>, gone: impl FnMut(Extent)) {
        self.change(span, None, gone);
    }

    /// Takes out whatever lies in `span`: `out` is then what [`within`](Self::within) would have told.
    pub fn take(&mut self, span: Range<u64>, out: &mut Vec<Extent>) {
        out.clear();
        self.remove(span, |e| match out.last_mut() {
            Some(last) if last.goes_on_in(&e) => last.blocks += e.blocks,
            _ => out.push(e),
        });
    }

    /// Puts in an extent instead of whatever lies there; `gone` is told each part of that.
    pub fn replace(&mut self, e: Extent, gone: impl FnMut(Extent)) {
        self.change(e.lba..e.end(), Some(e), gone);
    }

    #[inline]
    fn change(&mut self, span: Range<u64>, new: Option<Extent>, mut gone: impl FnMut(Extent)) {
        let mut at = span.start;
        while at < span.end {
            let (bucket, base) = (at / BUCKET, at - at % BUCKET);
            let end = span.end.min(base + BUCKET);
            let number = (bucket / PAGE as u64) as usize;
            if new.is_some() && self.pages.get(number).is_none_or(Option::is_none) {
                self.pages.resize_with(self.pages.len().max(number + 1), || None);
                self.pages[number] = Some(Page::new(std::array::from_fn(|_| Vec::new())));
                self.bytes += size_of::<[Vec<Row>; PAGE]>();
            }
            if let Some(Some(page)) = self.pages.get_mut(number) {
                let rows = &mut page[bucket as usize % PAGE];
                let before = rows.capacity();
                change(rows, at - base..end - base, new.map(|e| Row::of(&e, base)), |row| {
                    gone(row.extent(base))
                });
                self.bytes = self.bytes + rows.capacity() * size_of::<Row>() - before * size_of::<Row>();
            }
            at = end;
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        (self.bytes + self.pages.capacity() * size_of::<Option<Page>>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    /// Against a packet and a position for each block.
    #[test]
    fn agrees_with_a_plain_array() {
        const SPACE: u64 = 2000;
        let (mut map, mut plain, mut rng) =
            (BucketedExtents::default(), vec![None; SPACE as usize], Rng::new(5));
        let told = |parts: &[Extent]| {
            let mut blocks = vec![None; SPACE as usize];
            for e in parts {
                (0..e.blocks).for_each(|i| blocks[(e.lba + i) as usize] = Some((e.packet, e.at + i)));
            }
            blocks
        };
        let mut longest = 0;
        for packet in 1..8000u32 {
            let lba = rng.below(SPACE - 10);
            let most = if rng.one_in(60) { SPACE - 10 - lba } else { 9 };
            let span = lba..lba + 1 + rng.below(most);
            let seen: Vec<_> = map.within(span.clone()).collect();
            assert!(!seen.windows(2).any(|pair| pair[0].goes_on_in(&pair[1])), "an extent in two parts");
            let mut gone: Vec<Extent> = Vec::new();
            let removes = rng.one_in(3);
            if removes && rng.one_in(2) {
                map.take(span.clone(), &mut gone);
                assert_eq!(gone, seen);
            } else if removes {
                map.remove(span.clone(), |e| gone.push(e));
            } else {
                map.replace(Extent { lba, blocks: span.end - lba, packet, at: 7 }, |e| gone.push(e));
            }
            let within = span.start as usize..span.end as usize;
            let mut before = vec![None; SPACE as usize];
            before[within.clone()].copy_from_slice(&plain[within.clone()]);
            assert_eq!(
                (told(&gone), told(&seen)),
                (before.clone(), before),
                "what is told is what was there"
            );
            plain[within].iter_mut().zip(7..).for_each(|(b, at)| *b = (!removes).then_some((packet, at)));
            let all: Vec<_> = map.within(0..SPACE).collect();
            assert!(told(&all) == plain && all.is_sorted_by(|a, b| a.end() <= b.lba));
            longest = all.iter().map(|e| e.blocks).fold(longest, u64::max);
        }
        assert!(longest > 3 * BUCKET, "{longest}");
    }

    #[test]
    fn its_bytes_are_those_of_pages_and_rows() {
        let mut map = BucketedExtents::default();
        assert_eq!(map.bytes(), 0);
        let far = 9 * BUCKET * PAGE as u64;
        map.replace(Extent { lba: far, blocks: 1, packet: 0, at: 0 }, |_| ());
        let rows = map.rows(far / BUCKET);
        assert_eq!(rows.len(), 1);
        let empty = map.bytes() - 4 * size_of::<Row>() as u64;
        assert_eq!(empty, (map.pages.capacity() * 8 + PAGE * size_of::<Vec<Row>>()) as u64);
        map.remove(0..far + 1, |_| ());
        assert_eq!(map.bytes(), empty);
    }
}
