//! Circular buffers with a maintained guard (Cassuto et al. 2010, Definition 5), and where they lie on the medium.

use smrlab_units::{Blocks, Pba};

/// Pointers of a circular buffer: positions from `tail` up to `head` are in use, valid or not.
///
/// The paper's condition `(tail - head) mod M >= guard` cannot tell an empty ring from a full one, so `used` is kept.
/// Units are the owner's: blocks in a cache ring, S-blocks in an S-block ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    size: u64,
    tail: u64,
    used: u64,
}

impl Ring {
    /// An empty ring of `size` positions with both pointers at 0.
    ///
    /// # Panics
    /// When `size` is zero.
    pub fn new(size: u64) -> Self {
        assert!(size > 0, "a ring without positions");
        Self { size, tail: 0, used: 0 }
    }

    /// A ring with the given pointers.
    pub fn with(size: u64, tail: u64, used: u64) -> Self {
        assert!(tail < size && used <= size, "ring pointers {tail}+{used} of {size}");
        Self { size, tail, used }
    }

    /// Positions in all.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where the next element goes.
    #[inline]
    pub fn head(&self) -> u64 {
        self.wrap(self.tail + self.used)
    }

    /// The oldest element in use; equal to the head where there is none.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Positions in use.
    #[inline]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Positions from the head to the tail.
    pub fn free(&self) -> u64 {
        self.size - self.used
    }

    /// `position` brought back into the ring; it must lie less than one turn behind its end.
    #[inline]
    pub fn wrap(&self, position: u64) -> u64 {
        debug_assert!(position < 2 * self.size);
        if position >= self.size { position - self.size } else { position }
    }

    /// How far `to` lies ahead of `from`, less than one turn.
    pub fn ahead(&self, from: u64, to: u64) -> u64 {
        if to >= from { to - from } else { to + self.size - from }
    }

    /// Advances the head.
    #[inline]
    pub fn push(&mut self, n: u64) {
        self.used += n;
        debug_assert!(self.used <= self.size, "the head ran into the tail");
    }

    /// Advances the tail.
    #[inline]
    pub fn pop(&mut self, n: u64) {
        debug_assert!(n <= self.used, "the tail ran past the head");
        self.tail = self.wrap(self.tail + n);
        self.used -= n;
    }
}

/// Consecutive PBAs that lie on one stroke, so that what a write destroys lies behind it; `blocks` leaves out what has
/// to stay free at the end for the sake of the neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// First block.
    pub first: Pba,
    /// Usable length.
    pub blocks: Blocks,
}

/// Positions from 0 laid over one or more stretches.
#[derive(Clone, Debug)]
pub struct Laid {
    /// Position at which each stretch begins, and its first PBA.
    parts: Vec<(u64, Pba)>,
    size: u64,
}

impl Laid {
    /// Lays positions over `stretches` in their order.
    ///
    /// # Panics
    /// When there are no stretches.
    pub fn over(stretches: &[Stretch]) -> Self {
        assert!(!stretches.is_empty(), "nothing to lay positions over");
        let mut size = 0;
        let mut parts = Vec::with_capacity(stretches.len());
        for s in stretches {
            parts.push((size, s.first));
            size += s.blocks.0;
        }
        Self { parts, size }
    }

    /// Positions in all.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where `position` lies, and how many positions from it on lie side by side.
    #[inline]
    pub fn at(&self, position: u64) -> (Pba, Blocks) {
        debug_assert!(position < self.size, "position {position} of {}", self.size);
        let i = if self.parts.len() == 1 { 0 } else { self.parts.partition_point(|p| p.0 <= position) - 1 };
        let (start, pba) = self.parts[i];
        let end = self.parts.get(i + 1).map_or(self.size, |p| p.0);
        (Pba(pba.0 + (position - start)), Blocks(end - position))
    }

    /// The PBA of `position`.
    #[inline]
    pub fn pba(&self, position: u64) -> Pba {
        self.at(position).0
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        (self.parts.capacity() * size_of::<(u64, Pba)>()) as u64
    }
}

/// Takes rings and bands off a list of stretches, one behind the other, leaving a guard behind each piece.
#[derive(Clone, Debug)]
pub struct Carver {
    rest: Vec<Stretch>,
    next: usize,
    guard: u64,
}

impl Carver {
    /// `guard` blocks are left free behind everything that is taken.
    pub fn new(stretches: Vec<Stretch>, guard: Blocks) -> Self {
        Self { rest: stretches, next: 0, guard: guard.0 }
    }

    /// Takes `count` pieces of `piece` blocks in all; pieces that lie side by side come as one stretch. `None` where the
    /// rest is too small.
    pub fn take(&mut self, count: u64, piece: u64) -> Option<Vec<Stretch>> {
        let mut left = count;
        let mut out = Vec::new();
        while left > 0 {
            let s = self.rest.get_mut(self.next)?;
            let fit = (s.blocks.0 / piece).min(left);
            if fit > 0 {
                out.push(Stretch { first: s.first, blocks: Blocks(fit * piece) });
                left -= fit;
                let gone = (fit * piece + self.guard).min(s.blocks.0);
                *s = Stretch { first: Pba(s.first.0 + gone), blocks: Blocks(s.blocks.0 - gone) };
            }
            if left > 0 {
                self.next += 1;
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(first: u64, blocks: u64) -> Stretch {
        Stretch { first: Pba(first), blocks: Blocks(blocks) }
    }

    #[test]
    fn an_empty_ring_is_not_a_full_one() {
        let mut r = Ring::new(4);
        assert_eq!((r.head(), r.tail(), r.free()), (0, 0, 4));
        r.push(4);
        assert_eq!((r.head(), r.tail(), r.free()), (0, 0, 0));
        r.pop(3);
        r.push(2);
        assert_eq!((r.head(), r.tail(), r.used()), (2, 3, 3));
        assert_eq!((r.ahead(3, 2), r.ahead(2, 3)), (3, 1));
    }

    #[test]
    fn positions_follow_the_stretches() {
        let l = Laid::over(&[stretch(100, 10), stretch(50, 5)]);
        assert_eq!(l.at(9), (Pba(109), Blocks(1)));
        assert_eq!(l.at(10), (Pba(50), Blocks(5)));
        assert_eq!(l.pba(14), Pba(54));
    }

    #[test]
    fn pieces_do_not_cross_stretches_and_leave_their_guard() {
        let mut c = Carver::new(vec![stretch(0, 25), stretch(100, 30)], Blocks(3));
        assert_eq!(c.take(1, 10), Some(vec![stretch(0, 10)]));
        assert_eq!(c.take(3, 6), Some(vec![stretch(13, 12), stretch(100, 6)]));
        assert_eq!(c.take(2, 8), Some(vec![stretch(109, 16)]));
        assert_eq!(c.take(1, 8), None);
    }
}
