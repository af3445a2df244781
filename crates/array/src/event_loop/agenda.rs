//! What happens at which time: first what comes first, of the same time the early kind before the late, and of one kind what was put
//! down first.
//!
//! Times and order alone are in the heap, as two words: an event with its parts is slow to copy, and heaps copy.

use smrlab_units::SimTime;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// In an order: the late kind.
const LATE: u64 = 1 << 63;
/// Numbers are above this many bits, below which is where the event lies.
const PLACE_BITS: u32 = 32;
/// There are fewer numbers than this before they begin anew.
const NUMBERS: u64 = if cfg!(test) { 16 } else { 1 << 31 };

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Agenda<E> {
    heap: BinaryHeap<Reverse<(SimTime, u64)>>,
    /// By place.
    events: Vec<E>,
    /// Places of events that have happened.
    free: Vec<u32>,
    /// Of the next event.
    number: u64,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), events: Vec::new(), free: Vec::new(), number: 0 }
    }
}

impl<E: Copy> Agenda<E> {
    /// When the next event happens.
    pub(super) fn next(&self) -> Option<SimTime> {
        self.heap.peek().map(|e| e.0.0)
    }

    /// Puts down an event.
    #[inline(always)]
    pub(super) fn push(&mut self, at: SimTime, late: bool, event: E) {
        if self.number >= NUMBERS {
            self.begin_numbers_anew();
        }
        let place = if let Some(place) = self.free.pop() {
            self.events[place as usize] = event;
            place
        } else {
            self.events.push(event);
            self.events.len() as u32 - 1
        };
        let late = if late { LATE } else { 0 };
        self.heap.push(Reverse((at, late | self.number << PLACE_BITS | u64::from(place))));
        self.number += 1;
    }

    /// Takes out the next event.
    pub(super) fn pop(&mut self) -> Option<(SimTime, E)> {
        let Reverse((at, order)) = self.heap.pop()?;
        let place = order as u32;
        self.free.push(place);
        Some((at, self.events[place as usize]))
    }

    /// Those that are left have the first numbers, in their order.
    #[cold]
    fn begin_numbers_anew(&mut self) {
        let mut left: Vec<_> = self.heap.drain().map(|e| e.0).collect();
        let number = |order: u64| (order & !LATE) >> PLACE_BITS;
        left.sort_unstable_by_key(|&(_, order)| number(order));
        self.number = left.len() as u64;
        let renumbered = (0..).zip(left).map(|(n, (at, order))| {
            let place = u64::from(order as u32);
            Reverse((at, order & LATE | n << PLACE_BITS | place))
        });
        self.heap.extend(renumbered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    /// Beside a plain list, over many times as many events as there are numbers.
    #[test]
    fn events_happen_in_their_order() {
        let (mut agenda, mut plain, mut rng) = (Agenda::default(), Vec::new(), Rng::new(4));
        for n in 0..5000u64 {
            // Few enough at once that numbers suffice, and at few times.
            if plain.len() < 12 && rng.one_in(2) {
                let (at, late) = (SimTime(rng.below(4)), rng.one_in(2));
                agenda.push(at, late, n);
                plain.push((at, late, n));
            } else {
                plain.sort_unstable();
                let first = (!plain.is_empty()).then(|| plain.remove(0));
                assert_eq!(agenda.next(), first.map(|f| f.0));
                assert_eq!(agenda.pop(), first.map(|(at, _, n)| (at, n)));
            }
        }
        assert!(agenda.events.len() <= 12, "places are used again");
    }
}
