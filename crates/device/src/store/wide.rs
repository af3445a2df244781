//! Tables with an entry for each block, looked up all over: in huge pages, because finding one of many small pages takes
//! longer than what is done with it, and taken only where they are written.
#![allow(unsafe_code)]

use memmap2::{Advice, MmapMut, MmapOptions};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// What a table may have: any bytes are a value, and zeroes are the first.
pub(super) trait Plain: Copy {}

impl Plain for u8 {}
impl Plain for u32 {}

/// See the [module](self). Zeroes at first.
#[derive(Default)]
pub(super) struct Wide<T> {
    map: Option<MmapMut>,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Plain> Wide<T> {
    /// A table of `len` entries; `None` where there is no room for it.
    pub(super) fn new(len: usize) -> Option<Self> {
        let bytes = (len * size_of::<T>()).next_multiple_of(HUGE);
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon().ok()?;
        // Where there are no huge pages it is only slower.
        let _ = map.advise(Advice::HugePage);
        Some(Self { map: Some(map), len, of: PhantomData })
    }
}

impl<T: Plain> Deref for Wide<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let Some(map) = &self.map else { return &[] };
        // SAFETY: the mapping has `len` entries at least, begins with a page and is ours alone; any bytes are a `T`.
        unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for Wide<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let Some(map) = &mut self.map else { return &mut [] };
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast(), self.len) }
    }
}
