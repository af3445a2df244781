//! The places of a journal on the SSD, and the works that wait for some.

use crate::{MemberPlan, Ticket};
use std::collections::VecDeque;

/// Places of equal size, each with what it holds.
#[derive(Clone, Debug)]
pub(super) struct Places<K> {
    kept: Vec<Option<K>>,
    /// Places given back lately: after a loss of power they hold what they held.
    needed: Vec<bool>,
    waiting: VecDeque<Ticket>,
}

impl<K> Places<K> {
    /// So many, all free.
    pub(super) fn new(places: u64) -> Self {
        let kept = (0..places).map(|_| None).collect();
        Self { kept, needed: vec![false; places as usize], waiting: VecDeque::new() }
    }

    fn free(&self) -> usize {
        self.kept.iter().filter(|k| k.is_none()).count()
    }

    /// Whether `count` places are free for a work; if not, or if others wait already, it waits for its turn.
    pub(super) fn admit(&mut self, ticket: Ticket, count: usize) -> bool {
        let fits = self.waiting.is_empty() && self.free() >= count;
        if !fits {
            self.waiting.push_back(ticket);
        }
        fits
    }

    /// The next of those that wait whose turn has come; `needs` says how many places a work wants, if it is still there.
    pub(super) fn next(&mut self, needs: impl Fn(Ticket) -> Option<usize>) -> Option<Ticket> {
        while let Some(&ticket) = self.waiting.front() {
            let count = needs(ticket);
            if count.is_some_and(|n| n > self.free()) {
                return None;
            }
            self.waiting.pop_front();
            if count.is_some() {
                return Some(ticket);
            }
        }
        None
    }

    /// Takes a free place, which is to be written by `plan`.
    pub(super) fn take(&mut self, kept: K, plan: &mut MemberPlan) -> Option<u64> {
        let mut free = (0..self.kept.len()).filter(|p| self.kept[*p].is_none()).peekable();
        let first = *free.peek()?;
        let place = free.find(|p| !self.needed[*p]).unwrap_or(first);
        if self.needed[place] {
            plan.fence();
            self.durable();
        }
        self.kept[place] = Some(kept);
        Some(place as u64)
    }

    /// What was recorded so far, and what the disks hold, survives a loss of power.
    pub(super) fn durable(&mut self) {
        self.needed.fill(false);
    }

    /// What a place holds.
    pub(super) fn get(&self, place: u64) -> Option<&K> {
        self.kept.get(place as usize)?.as_ref()
    }

    /// A place holds this from now on.
    pub(super) fn put(&mut self, place: u64, kept: K) {
        if let Some(slot) = self.kept.get_mut(place as usize) {
            *slot = Some(kept);
        }
    }

    /// Gives a place back.
    pub(super) fn give(&mut self, place: u64) -> Option<K> {
        let kept = self.kept.get_mut(place as usize)?.take();
        self.needed[place as usize] = true;
        kept
    }

    /// Places that are in use.
    pub(super) fn open(&self) -> impl Iterator<Item = (u64, &K)> {
        (0..).zip(&self.kept).filter_map(|(place, kept)| Some((place, kept.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two places one is taken: a work that wants two waits, and one that wants one does not overtake it.
    #[test]
    fn works_wait_for_places_in_their_order() {
        let mut places = Places::new(2);
        let plan = &mut MemberPlan::new(false);
        let first = places.take('a', plan).unwrap();
        assert!(!places.admit(Ticket(1), 2) && !places.admit(Ticket(2), 1));
        let needs = |t: Ticket| Some(3 - t.0 as usize);
        assert_eq!(places.next(needs), None);
        assert_eq!(places.give(first), Some('a'));
        assert_eq!(places.next(needs), Some(Ticket(1)));
        (0..2).for_each(|_| assert!(places.take('b', plan).is_some()));
        assert_eq!((places.next(needs), places.take('c', plan)), (None, None));
        places.give(first);
        assert_eq!((places.next(needs), places.next(needs)), (Some(Ticket(2)), None));
    }
    /// A place that was given back holds what a cut would need: another one is taken while there is one, and a fence comes before it
    /// is taken again. After the fence it holds nothing that is needed.
    #[test]
    fn a_place_that_a_cut_needs_is_taken_behind_a_fence() {
        let mut places = Places::new(2);
        let fenced = |places: &mut Places<char>| {
            let mut plan = MemberPlan::new(false);
            (places.take('a', &mut plan).unwrap(), plan.is_fence())
        };
        assert_eq!(fenced(&mut places), (0, false));
        places.give(0);
        assert_eq!(fenced(&mut places), (1, false));
        assert_eq!(fenced(&mut places), (0, true));
        places.give(1);
        places.durable();
        assert_eq!(fenced(&mut places), (1, false));
    }
}
