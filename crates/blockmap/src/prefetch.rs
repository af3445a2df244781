//! The processor's prefetch hint. The only module of this crate with unsafe code: the hint is an intrinsic, it reads
//! nothing as far as the language is concerned, and the address given to it is always one inside the slice.
#![allow(unsafe_code)]

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
