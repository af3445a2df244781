//! The processor's prefetch hint. The only module of this crate with unsafe code: the hint is an intrinsic, it reads
//! nothing as far as the language is concerned, and the address given to it is always one inside the slice.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Asks the processor to bring the cache line of `slice[index]` nearer; an index outside is ignored.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = slice.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching has no effect on memory and cannot fault; the address is that of a live reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// What was hinted last, for containers whose hints take several steps: an address is only known when what leads to it is
/// in the processor's caches, some hints later.
///
/// Atomic only so that a container can be shared; no order is needed.
#[derive(Debug, Default)]
pub struct Hints {
    last: [AtomicU64; Self::KEPT],
    turn: AtomicUsize,
}

impl Hints {
    /// Hints that are kept, the one added last included.
    pub const KEPT: usize = 32;

    /// Adds a hint; what is answered gives the one that came so many hints before it, 0 where there was none.
    ///
    /// Fewer than [`KEPT`](Self::KEPT) hints back.
    #[inline]
    pub fn add(&self, hint: u64) -> impl Fn(usize) -> u64 {
        let turn = self.turn.load(Relaxed);
        self.turn.store(turn.wrapping_add(1), Relaxed);
        self.last[turn % Self::KEPT].store(hint, Relaxed);
        move |ago| {
            debug_assert!(ago < Self::KEPT, "{ago} hints ago");
            self.last[turn.wrapping_sub(ago) % Self::KEPT].load(Relaxed)
        }
    }
}

/// A copy of what hints has had none.
impl Clone for Hints {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_told_again_later() {
        let hints = Hints::default();
        assert_eq!(hints.add(7)(1), 0);
        (8..100).for_each(|hint| _ = hints.add(hint));
        let earlier = hints.add(100);
        assert_eq!([0, 1, 31].map(&earlier), [100, 99, 69]);
    }
}
