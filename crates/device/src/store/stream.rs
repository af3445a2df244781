//! Copies past the processor's caches.
//!
//! What a host writes in large pieces lies in memory that was not looked at for long, and is not looked at soon. On its way through the
//! caches each line of that memory would be fetched first, and put out what is needed: tables, and the buffers that the host's bytes come in.
#![allow(unsafe_code)]

/// From so many bytes on a write is large.
pub(super) const LARGE: usize = 32 << 10;

/// Copies bytes to `to`; who sees what this thread writes later sees them, too.
///
/// # Safety
/// `to` is valid for as many bytes, and they are not those of `from`.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn copy(from: &[u8], to: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const EACH: usize = size_of::<__m128i>();
    let lines = if to.addr().is_multiple_of(EACH) { from.as_chunks::<{ 4 * EACH }>().0 } else { &[] };
    for (line, at) in lines.iter().zip((0..).step_by(4 * EACH)) {
        for part in (0..4 * EACH).step_by(EACH) {
            // SAFETY: within both; what is written is aligned, because `to` is; the processor has the instructions, as all of its kind.
            unsafe {
                let bytes = _mm_loadu_si128(line.as_ptr().add(part).cast());
                _mm_stream_si128(to.add(at + part).cast(), bytes);
            }
        }
    }
    let rest = &from[lines.len() * 4 * EACH..];
    // SAFETY: behind what was written; who calls says that there is room for it.
    unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), to.add(from.len() - rest.len()), rest.len()) };
    // SAFETY: an instruction that every such processor has. Without it others might see the end of the write before its bytes.
    unsafe { _mm_sfence() };
}

/// The same, for other processors through their caches.
///
/// # Safety
/// As there.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn copy(from: &[u8], to: *mut u8) {
    // SAFETY: who calls says so.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From and to any place, of any length; what lies around stays.
    #[test]
    fn what_is_copied_is_there_and_nothing_else() {
        let from: Vec<u8> = (0..2000u32).map(|i| (i % 251) as u8 + 1).collect();
        for (first, at, n) in [(0, 0, 1536), (1, 16, 512), (7, 64, 700), (0, 3, 512), (5, 48, 63), (9, 32, 0)]
        {
            let mut to = vec![0u128; 200];
            let bytes = to.as_mut_ptr().cast::<u8>();
            // SAFETY: there are 3200 bytes.
            unsafe { copy(&from[first..first + n], bytes.add(at)) };
            // SAFETY: the same bytes, all of which are set.
            let to = unsafe { std::slice::from_raw_parts(bytes, 3200) };
            assert_eq!(to[at..at + n], from[first..first + n], "{n} bytes from {first} to {at}");
            assert!(to[..at].iter().chain(&to[at + n..]).all(|b| *b == 0), "{n} bytes from {first} to {at}");
        }
    }
}
