//! STOW (Gill, Ko, Debnath & Belluomini 2009): sequential and random writes in a queue each, which share the cache as pays best.
//!
//! Each queue is a ring as of WOW. So one long stream does not push out what is written again and again, and what a stream leaves is
//! destaged in long runs. Published: two queues, each in the order of addresses with a recency bit, whose sizes are adapted all
//! the time, and the rate of destages, which is `ssd_control=rate`. *Assumed* here: what is a stream, that sizes are counted in
//! groups, and the two signs by which the sizes are adapted (the [module](self)'s constants say which).

use super::policy::{DestagePolicy, Dirty, Wrote};
use super::ring::Ring;
use std::collections::VecDeque;

/// Streams that are remembered: the one that was heard of for the longest time ago is forgotten.
const STREAMS: usize = 32;

/// Pages that a stream has written one after the other before it counts as one.
const RUN: u64 = 3;

/// Groups that a queue may be too small by before the other one's turn comes: turns would cost a seek each.
const TURN: u64 = 4;

/// A group of the random queue that is written again so short before its destage, as a share of the queue, would rather have
/// stayed: the random queue deserves more.
const SOON: u64 = 16;

/// A run of pages.
#[derive(Clone, Copy)]
struct Stream {
    last: u64,
    pages: u64,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Stow {
    random: Ring,
    sequential: Ring,
    /// The one that was heard of last is the last.
    streams: VecDeque<Stream>,
    /// Groups that the sequential queue deserves.
    deserved: u64,
    /// The sequential queue's turn.
    of_sequential: bool,
    /// Of the sequential queue: what was destaged last.
    last: Option<u64>,
}

impl Stow {
    /// Whether a write of a page goes on with a stream.
    fn goes_on(&mut self, page: u64) -> bool {
        let found = self.streams.iter().position(|s| page == s.last || page == s.last + 1);
        let before = found.and_then(|i| self.streams.remove(i)).unwrap_or(Stream { last: page, pages: 1 });
        let stream = Stream { last: page, pages: before.pages + (page - before.last) };
        self.streams.push_back(stream);
        if self.streams.len() > STREAMS {
            self.streams.pop_front();
        }
        stream.pages >= RUN
    }

    fn is_full(&self) -> bool {
        self.sequential.len() > self.deserved
    }
}

impl DestagePolicy for Stow {
    /// What is left of a group goes to where such groups are that nobody knows.
    fn touched(&mut self, group: u64) {
        if !self.sequential.has(group) {
            self.random.put(group, false);
        }
    }

    fn wrote(&mut self, Wrote { group, page, again }: Wrote) {
        if self.goes_on(page) {
            self.random.remove(group);
            return self.sequential.put(group, again);
        }
        if again && self.random.has(group) && self.random.is_ahead(group, self.random.len().div_ceil(SOON)) {
            self.deserved = self.deserved.saturating_sub(1);
        }
        // A group that is written here and there is none of a stream's.
        self.sequential.remove(group);
        self.random.put(group, again);
    }

    fn victim(&mut self, _: &dyn Fn(u64) -> Dirty) -> Option<u64> {
        self.of_sequential = match self.of_sequential {
            true => self.sequential.len() + TURN > self.deserved,
            false => self.is_full(),
        };
        if self.random.len() == 0 || (self.of_sequential && self.sequential.len() > 0) {
            let group = self.sequential.next()?;
            // A run that breaks off would be longer with more of the cache.
            if self.last.is_some_and(|last| group != last + 1) {
                self.deserved = (self.deserved + 1).min(self.random.len() + self.sequential.len());
            }
            self.last = Some(group);
            return Some(group);
        }
        self.random.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: u64 = 4;

    fn wrote(stow: &mut Stow, page: u64, again: bool) {
        stow.wrote(Wrote { group: page / PAGES, page, again });
    }

    fn victims(stow: &mut Stow, n: usize) -> Vec<u64> {
        let dirty = |_| Dirty { pages: 1, first: 0, of: PAGES };
        (0..n).map_while(|_| stow.victim(&dirty)).collect()
    }

    /// The sequential queue has a group more than the six that it deserves: its turn goes on until it has four fewer than these, so that
    /// the head goes to and fro less. Then the random one has its turn, until it is empty.
    #[test]
    fn a_turn_is_longer_than_a_group() {
        let mut stow = Stow { deserved: 6, ..Stow::default() };
        [400, 800].into_iter().chain(0..28).for_each(|page| wrote(&mut stow, page, false));
        assert_eq!(victims(&mut stow, 10), [0, 1, 2, 3, 4, 100, 200, 5, 6]);
    }

    /// Groups of four pages. The third page of a stream takes its group, and those that follow, to the sequential queue; pages here
    /// and there stay in the random one. The sequential queue deserves nothing at first, so that it is emptied first.
    #[test]
    fn a_stream_has_a_queue_of_its_own() {
        let mut stow = Stow::default();
        // Group 10 by a stream, among random pages of groups 1 and 5.
        for page in [40, 4, 41, 21, 42, 43, 44] {
            wrote(&mut stow, page, false);
        }
        assert_eq!((stow.sequential.len(), stow.random.len()), (2, 2));
        assert_eq!(victims(&mut stow, 9), [10, 11, 1, 5]);
    }

    /// Every other page is no stream, nor is one page again and again.
    #[test]
    fn pages_that_do_not_follow_are_no_stream() {
        let mut stow = Stow::default();
        for page in [40, 42, 44, 46, 48, 80, 80, 80, 80] {
            wrote(&mut stow, page, false);
        }
        assert_eq!((stow.sequential.len(), stow.random.len()), (0, 4));
    }

    /// A write again keeps a random group once; it takes a sequential one to the random queue.
    #[test]
    fn what_is_written_again_stays_longer() {
        let mut stow = Stow::default();
        for page in [4, 100, 21] {
            wrote(&mut stow, page, false);
        }
        wrote(&mut stow, 4, true);
        assert_eq!(victims(&mut stow, 9), [5, 25, 1]);
        for page in [40, 41, 42] {
            wrote(&mut stow, page, false);
        }
        assert_eq!(stow.sequential.len(), 1);
        wrote(&mut stow, 40, true);
        assert_eq!((stow.sequential.len(), stow.random.len()), (0, 1));
    }

    /// What is left of a group waits no longer than what was written once.
    #[test]
    fn what_is_left_of_a_group_is_not_passed_over() {
        let mut stow = Stow::default();
        stow.touched(1);
        wrote(&mut stow, 20, false);
        assert_eq!(victims(&mut stow, 9), [1, 5]);
    }

    /// The run of groups 10, 11 goes on with 12; one that begins at 30 breaks it, and the sequential queue deserves a group more. A random
    /// group that is written again when its turn is near takes that away; one that is far does not.
    #[test]
    fn the_queues_are_adapted_to_what_pays() {
        let mut stow = Stow::default();
        let stream = |stow: &mut Stow, first: u64, groups: u64| {
            (first * PAGES..(first + groups) * PAGES).for_each(|page| wrote(stow, page, false));
        };
        stream(&mut stow, 10, 2);
        assert_eq!((victims(&mut stow, 2), stow.deserved), (vec![10, 11], 0));
        stream(&mut stow, 12, 1);
        assert_eq!((victims(&mut stow, 1), stow.deserved), (vec![12], 0));
        stream(&mut stow, 30, 1);
        wrote(&mut stow, 4, false);
        wrote(&mut stow, 200, false);
        assert_eq!((victims(&mut stow, 1), stow.deserved), (vec![30], 1));
        // The hand of the random queue stands before group 1; 50 is the other half of it away.
        wrote(&mut stow, 200, true);
        assert_eq!(stow.deserved, 1);
        wrote(&mut stow, 4, true);
        assert_eq!(stow.deserved, 0);
    }
}
