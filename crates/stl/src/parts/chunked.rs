//! A table of which memory is taken only where it was touched: large drives start at once, and what nobody wrote costs
//! nothing.

/// Entries that are taken together.
const CHUNK: usize = 64;

/// See the [module](self). What an untouched entry holds is the owner's business.
#[derive(Clone, Debug)]
pub struct Chunked<T> {
    chunks: Vec<Option<Box<[T; CHUNK]>>>,
}

impl<T: Copy> Chunked<T> {
    /// For `len` entries.
    pub fn new(len: usize) -> Self {
        Self { chunks: vec![None; len.div_ceil(CHUNK)] }
    }

    /// Entry `i`, if its chunk was touched.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&T> {
        self.chunks[i / CHUNK].as_ref().map(|c| &c[i % CHUNK])
    }

    /// Entry `i`; `fresh` says what the untouched entries hold.
    #[inline]
    pub fn get_mut(&mut self, i: usize, fresh: impl Fn(usize) -> T) -> &mut T {
        let chunk = self.chunks[i / CHUNK].get_or_insert_with(|| Self::chunk(i / CHUNK * CHUNK, fresh));
        &mut chunk[i % CHUNK]
    }

    #[cold]
    #[inline(never)]
    fn chunk(first: usize, fresh: impl Fn(usize) -> T) -> Box<[T; CHUNK]> {
        Box::new(std::array::from_fn(|i| fresh(first + i)))
    }

    /// The first entry from `i` on whose chunk was touched.
    pub fn next_touched(&self, i: usize) -> Option<usize> {
        let from = i / CHUNK;
        let chunk = from + self.chunks.get(from..)?.iter().position(Option::is_some)?;
        Some(i.max(chunk * CHUNK))
    }

    /// All entries of touched chunks, with their numbers; the last ones may lie behind the table's end.
    pub fn touched(&self) -> impl Iterator<Item = (usize, &T)> {
        let chunks = self.chunks.iter().enumerate();
        let chunks = chunks.filter_map(|(i, c)| c.as_ref().map(|c| (i * CHUNK, c)));
        chunks.flat_map(|(first, c)| c.iter().enumerate().map(move |(i, t)| (first + i, t)))
    }

    /// Makes all entries untouched.
    pub fn clear(&mut self) {
        self.chunks.fill_with(|| None);
    }

    /// A hint that entry `i` will be hinted soon: where its chunk is, is a look at memory of its own.
    #[inline]
    pub fn prefetch_chunk(&self, i: usize) {
        smrlab_blockmap::prefetch(&self.chunks, i / CHUNK);
    }

    /// A hint that entry `i` will be looked at soon.
    #[inline]
    pub fn prefetch(&self, i: usize) {
        if let Some(Some(chunk)) = self.chunks.get(i / CHUNK) {
            smrlab_blockmap::prefetch(&chunk[..], i % CHUNK);
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        let touched = self.chunks.iter().flatten().count();
        (size_of_val(self.chunks.as_slice()) + touched * size_of::<[T; CHUNK]>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_touched_chunks_take_memory() {
        let mut t = Chunked::<u32>::new(1_000_000);
        let empty = t.bytes();
        assert!(empty < 4_000_000 / 30, "{empty} bytes");
        assert_eq!((t.get(777_777), t.next_touched(0)), (None, None));
        *t.get_mut(777_777, |i| i as u32) += 5;
        assert_eq!((t.get(777_777), t.get(777_776)), (Some(&777_782), Some(&777_776)));
        assert_eq!((t.next_touched(0), t.next_touched(777_777)), (Some(777_728), Some(777_777)));
        assert_eq!(t.touched().map(|(i, &n)| (n - i as u32) as usize).sum::<usize>(), 5);
        assert_eq!(t.bytes(), empty + 256);
        t.clear();
        assert_eq!((t.bytes(), t.get(777_777)), (empty, None));
    }
}
