//! Blocks of memory that no block of a store has, in runs.
//!
//! What is written gets as long a run as there is: everything that is done with it later is done run by run. And it gets memory that was
//! written before as long as there is such, because new memory has to be cleared first, and is one more place to look for.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs that were freed last, of which the best is taken. What a layer writes is mostly as long as something that it
/// overwrote lately.
const LOOK: usize = 32;

/// Blocks of memory that count as written together: a huge page.
const REGION: usize = 4096;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Free {
    /// Where memory was written before, the last one freed last.
    written: Vec<Range<u32>>,
    /// Where it was not.
    fresh: Vec<Range<u32>>,
    /// A bit for each region that was written.
    regions: Vec<AtomicU64>,
}

impl Free {
    /// None, of a memory of `count` blocks.
    pub(super) fn new(count: usize) -> Self {
        let words = count.div_ceil(REGION).div_ceil(64);
        let regions = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { regions, ..Self::default() }
    }

    /// Notes that a run of blocks is written.
    #[inline]
    pub(super) fn touch(&self, first: usize, n: usize) {
        for region in first / REGION..(first + n).div_ceil(REGION) {
            if let Some(word) = self.regions.get(region / 64)
                && word.load(Ordering::Relaxed) >> (region % 64) & 1 == 0
            {
                word.fetch_or(1 << (region % 64), Ordering::Relaxed);
            }
        }
    }

    fn is_written(&self, place: usize) -> bool {
        let region = place / REGION;
        self.regions
            .get(region / 64)
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (region % 64) & 1 == 1)
    }

    /// No block of the store has these any more.
    #[inline]
    pub(super) fn give(&mut self, places: Range<usize>) {
        let runs = if self.is_written(places.start) { &mut self.written } else { &mut self.fresh };
        let (start, end) = (places.start as u32, places.end as u32);
        match runs.last_mut() {
            Some(last) if last.end == start => last.end = end,
            Some(last) if end == last.start => last.start = start,
            _ => runs.push(start..end),
        }
    }

    /// Takes a run of `most` blocks, or a shorter one. There must be any.
    #[inline]
    pub(super) fn take(&mut self, most: usize) -> Range<usize> {
        let runs = if self.written.is_empty() { &mut self.fresh } else { &mut self.written };
        let from = runs.len().saturating_sub(LOOK);
        // How far it is from what is asked; what is too short comes last.
        let badness = |run: &Range<u32>| match (run.len(), most) {
            (n, most) if n >= most => n - most,
            (n, most) => (1 << 32) + most - n,
        };
        let mut best: Option<(usize, usize)> = None;
        for (i, run) in runs.iter().enumerate().skip(from).rev() {
            let bad = badness(run);
            if best.is_none_or(|(least, _)| bad < least) {
                best = Some((bad, i));
            }
            if bad == 0 {
                break;
            }
        }
        let (_, i) = best.expect("as many blocks of memory as of the store");
        let n = runs[i].len().min(most);
        let start = runs[i].start;
        runs[i].start += n as u32;
        if runs[i].is_empty() {
            runs.remove(i);
        }
        start as usize..start as usize + n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(runs: &[Range<usize>]) -> Free {
        let mut free = Free::new(3 * REGION);
        free.touch(0, REGION);
        runs.iter().for_each(|run| free.give(run.clone()));
        free
    }

    #[test]
    fn what_is_taken_is_as_long_as_it_has_to_be() {
        let mut free = free(&[100..104, 200..220, 300..308, 400..402]);
        assert_eq!(free.take(8), 300..308, "exactly as long");
        assert_eq!(free.take(3), 100..103, "the shortest that is long enough");
        assert_eq!(free.take(30), 200..220, "the longest, where all are too short");
        assert_eq!(free.take(30), 400..402);
        assert_eq!(free.take(30), 103..104);
    }

    #[test]
    fn what_becomes_free_in_a_row_is_one_run() {
        let mut free = free(&[100..104, 104..106, 98..100]);
        assert_eq!(free.take(30), 98..106);
    }

    #[test]
    fn memory_that_was_never_written_comes_last() {
        let mut free = free(&[REGION..REGION + 8, 10..12]);
        assert_eq!(free.take(8), 10..12);
        free.touch(2 * REGION - 1, 2);
        free.give(2 * REGION..2 * REGION + 1);
        assert_eq!(free.take(8), 2 * REGION..2 * REGION + 1);
        assert_eq!(free.take(8), REGION..REGION + 8);
    }
}
