//! One number for each band or row, zero at first: memory goes with those that were touched.

/// Numbers in a chunk, which is what is allocated at a time.
const CHUNK: usize = 1024;

/// See the [module](self).
#[derive(Debug)]
pub struct Marks {
    chunks: Vec<Option<Box<[u32; CHUNK]>>>,
}

impl Marks {
    /// For what is numbered below `count`.
    pub fn new(count: u64) -> Self {
        Self { chunks: vec![None; (count as usize).div_ceil(CHUNK)] }
    }

    /// The number of a band.
    #[inline]
    pub fn get(&self, band: u64) -> u32 {
        let i = band as usize;
        self.chunks[i / CHUNK].as_ref().map_or(0, |c| c[i % CHUNK])
    }

    /// Sets the number of a band.
    #[inline]
    pub fn set(&mut self, band: u64, mark: u32) {
        let i = band as usize;
        self.chunks[i / CHUNK].get_or_insert_with(|| Box::new([0; CHUNK]))[i % CHUNK] = mark;
    }

    /// Hints that the number of a band will be asked for soon.
    #[inline]
    pub fn prefetch(&self, band: u64) {
        if let Some(Some(chunk)) = self.chunks.get(band as usize / CHUNK) {
            smrlab_blockmap::prefetch(&chunk[..], band as usize % CHUNK);
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * size_of::<Option<Box<[u32; CHUNK]>>>()
            + self.chunks.iter().flatten().count() * CHUNK * size_of::<u32>()
    }
}
