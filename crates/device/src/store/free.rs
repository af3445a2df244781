//! Blocks of memory that no block of a store has, in runs.
//!
//! What is written gets as long a run as there is: everything that is done with it later is done run by run. So what becomes free is joined
//! with what is free beside it, and of runs that are long enough a short one is taken. And what is written gets memory that was
//! written before as long as there is such, because new memory has to be cleared first, and is one more place to look for.

use super::wide::Wide;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs of a class that are looked at, the last ones.
const LOOK: usize = 16;

/// Classes of runs: a run of 2^k blocks, or up to twice as many less one, is in class k.
const CLASSES: usize = 32;

/// Blocks of memory that count as written together: a huge page.
const REGION: usize = 4096;

/// A run of free blocks.
#[derive(Clone, Copy)]
struct Run {
    start: u32,
    end: u32,
    /// Where its memory was not written before.
    fresh: bool,
    /// Its place in the list of its class.
    at: u32,
}

impl Run {
    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn class(&self) -> usize {
        self.len().ilog2() as usize
    }
}

/// The runs of one kind by their length.
#[derive(Default)]
struct Classes {
    /// Numbers of runs, the last one freed last.
    lists: [Vec<u32>; CLASSES],
    /// A bit for each list with runs.
    any: u32,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Free {
    /// By block of memory: one more than the number of the run that it is the first or the last block of.
    edges: Wide<u32>,
    runs: Vec<Run>,
    /// Numbers of no run.
    unused: Vec<u32>,
    written: Classes,
    fresh: Classes,
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

    /// Takes what it needs before the first block can be free; `false`: there is no room for it.
    pub(super) fn open(&mut self, count: usize) -> bool {
        Wide::new(count).map(|edges| self.edges = edges).is_some()
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

    fn classes(&mut self, fresh: bool) -> &mut Classes {
        if fresh { &mut self.fresh } else { &mut self.written }
    }

    /// Puts a run into the list of its class, and at its edges.
    fn enter(&mut self, id: u32, run: Run) {
        let (class, edge) = (run.class(), id + 1);
        let classes = self.classes(run.fresh);
        classes.any |= 1 << class;
        let list = &mut classes.lists[class];
        list.push(id);
        self.runs[id as usize] = Run { at: list.len() as u32 - 1, ..run };
        (self.edges[run.start as usize], self.edges[run.end as usize - 1]) = (edge, edge);
    }

    /// Takes a run out of the list of its class, and from its edges.
    fn leave(&mut self, id: u32) -> Run {
        let run = self.runs[id as usize];
        (self.edges[run.start as usize], self.edges[run.end as usize - 1]) = (0, 0);
        let (class, at) = (run.class(), run.at as usize);
        let classes = self.classes(run.fresh);
        let list = &mut classes.lists[class];
        list.swap_remove(at);
        let moved = list.get(at).copied();
        if list.is_empty() {
            classes.any &= !(1 << class);
        }
        if let Some(moved) = moved {
            self.runs[moved as usize].at = run.at;
        }
        run
    }

    /// The run that has `place` as its first or its last block, if it is of this kind.
    #[inline]
    fn at_edge(&self, place: usize, fresh: bool) -> Option<u32> {
        let id = self.edges.get(place)?.checked_sub(1)?;
        (self.runs[id as usize].fresh == fresh).then_some(id)
    }

    /// No block of the store has these any more.
    #[inline]
    pub(super) fn give(&mut self, places: Range<usize>) {
        let fresh = !self.is_written(places.start);
        let before = places.start.checked_sub(1).and_then(|last| self.at_edge(last, fresh));
        let behind = self.at_edge(places.end, fresh);
        let (mut start, mut end) = (places.start as u32, places.end as u32);
        if let Some(id) = before {
            start = self.leave(id).start;
        }
        if let Some(id) = behind {
            end = self.leave(id).end;
        }
        if let (Some(_), Some(id)) = (before, behind) {
            self.unused.push(id);
        }
        let id = before.or(behind).or_else(|| self.unused.pop()).unwrap_or(self.runs.len() as u32);
        let run = Run { start, end, fresh, at: 0 };
        if id as usize == self.runs.len() {
            self.runs.push(run);
        }
        self.enter(id, run);
    }

    /// Takes a run of `most` blocks, or a shorter one. There must be any.
    #[inline]
    pub(super) fn take(&mut self, most: usize) -> Range<usize> {
        let id = self.best(most);
        let run = self.leave(id);
        let start = run.start as usize;
        let n = run.len().min(most);
        if n < run.len() {
            self.enter(id, Run { start: run.start + n as u32, ..run });
        } else {
            self.unused.push(id);
        }
        start..start + n
    }

    /// A run of at least `most` blocks that is not much longer, or else the longest, as far as is looked.
    fn best(&self, most: usize) -> u32 {
        let Classes { lists, any } = if self.written.any == 0 { &self.fresh } else { &self.written };
        let last =
            |class: usize| lists[class].iter().rev().take(LOOK).map(|&id| (self.runs[id as usize].len(), id));
        let class = most.ilog2() as usize;
        let mut best: Option<(usize, u32)> = None;
        for (n, id) in last(class).filter(|(n, _)| *n >= most) {
            if n == most {
                return id;
            }
            if best.is_none_or(|(least, _)| n < least) {
                best = Some((n, id));
            }
        }
        let longer = any & (!1 << class);
        let found = match best {
            None if longer != 0 => last(longer.trailing_zeros() as usize).min_by_key(|(n, _)| *n),
            None => last(any.ilog2() as usize).max_by_key(|(n, _)| *n),
            found => found,
        };
        found.expect("as many blocks of memory as of the store").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    fn free(runs: &[Range<usize>]) -> Free {
        let mut free = Free::new(3 * REGION);
        assert!(free.open(3 * REGION));
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

    /// Of one class, too: it has runs that are too short for what is asked.
    #[test]
    fn of_runs_that_are_nearly_as_long_the_best_is_taken() {
        let runs = [100..112, 200..209, 300..315, 400..411, 500..540];
        assert_eq!(free(&runs).take(10), 400..410);
        assert_eq!(free(&runs).take(12), 100..112);
        assert_eq!(free(&runs[..4]).take(16), 300..315);
        assert_eq!(free(&runs).take(16), 500..516);
        assert_eq!(free(&[0..40, 100..134, 200..250]).take(9), 100..109);
    }

    #[test]
    fn what_becomes_free_in_a_row_is_one_run() {
        assert_eq!(free(&[100..104, 104..106, 98..100]).take(30), 98..106);
        let mut between = free(&[100..104, 200..202, 109..110, 300..303, 104..109]);
        assert_eq!(between.take(30), 100..110);
        assert_eq!(between.take(30), 300..303);
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

    /// Though it lies beside memory that was.
    #[test]
    fn memory_that_was_never_written_is_a_run_of_its_own() {
        let mut free = free(&[REGION..REGION + 8, REGION - 4..REGION]);
        assert_eq!(free.take(8), REGION - 4..REGION);
        free.give(REGION - 2..REGION);
        assert_eq!(free.take(1), REGION - 2..REGION - 1);
        assert_eq!(free.take(8), REGION - 1..REGION);
        assert_eq!(free.take(8), REGION..REGION + 8);
    }

    /// Random takes and gives beside a plain list of blocks.
    #[test]
    fn no_block_is_lost_or_taken_twice() {
        const BLOCKS: usize = 400;
        let mut random = Rng::new(28);
        let (mut free, mut taken, mut left) = (free(&[0..7, 7..BLOCKS]), [false; BLOCKS], BLOCKS);
        let mut most_runs = 1;
        for step in 0..20_000 {
            let most = 1 + random.below(40) as usize;
            if left > 0 && random.below(2) == 0 {
                let run = free.take(most);
                assert!(!run.is_empty() && run.len() <= most, "step {step}");
                assert!(taken[run.clone()].iter().all(|taken| !taken), "step {step}: {run:?} was taken");
                if run.len() < most {
                    // No run of a longer class is there.
                    let longest = taken.split(|taken| *taken).map(<[bool]>::len).max();
                    assert!(longest < Some(2 << most.ilog2()), "step {step}: {run:?} of {longest:?}");
                }
                taken[run.clone()].fill(true);
                left -= run.len();
            } else {
                let first = random.below(BLOCKS as u64) as usize;
                let n = taken[first..].iter().take(most).take_while(|taken| **taken).count();
                if n > 0 {
                    free.give(first..first + n);
                    taken[first..first + n].fill(false);
                    left += n;
                }
            }
            most_runs = most_runs.max(taken.chunk_by(|a, b| a == b).filter(|run| !run[0]).count());
            assert!(free.runs.len() <= most_runs, "step {step}: numbers are not used again");
        }
        for first in (0..BLOCKS).filter(|&i| taken[i]) {
            free.give(first..first + 1);
        }
        assert_eq!(free.take(2 * BLOCKS), 0..BLOCKS, "all is one run again");
        assert_eq!((free.written.any, free.fresh.any), (0, 0));
    }
}
