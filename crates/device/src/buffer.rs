//! Memory in which surfaces receive and hand over data, and which they keep: what is new to a process the kernel has to clear first.

use std::ops::{Deref, DerefMut};

const PAGE: usize = 4096;
/// What is kept: so many buffers, of at most so many bytes.
const KEPT: usize = 16;
const LARGEST: usize = 1 << 20;

/// Bytes that begin where a page does, as the kernel copies them fastest.
#[derive(Debug, Default)]
pub struct Buffer {
    memory: Vec<u8>,
    first: usize,
    length: usize,
}

impl Buffer {
    /// So many zeroes, to be written to a store.
    ///
    /// A kernel that copies them stops where a page of theirs is not in memory, and a process that is killed stays there:
    /// memory that is new and begins beside a page leaves a torn sector behind.
    pub fn zeroes(length: usize) -> Self {
        let mut new = Self::default();
        new.more(length).fill(0);
        new
    }

    /// Makes room for so many bytes in all.
    pub fn reserve(&mut self, length: usize) {
        if self.room() < length {
            let memory = vec![0; length + PAGE];
            let first = memory.as_ptr().align_offset(PAGE).min(PAGE);
            let old = std::mem::replace(self, Self { memory, first, length: self.length });
            self.copy_from_slice(&old);
        }
    }

    /// So many more bytes, which hold anything.
    pub fn more(&mut self, bytes: usize) -> &mut [u8] {
        let from = self.length;
        self.reserve(from + bytes);
        self.length += bytes;
        &mut self[from..]
    }

    /// Leaves at most so many bytes.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    fn room(&self) -> usize {
        self.memory.len().saturating_sub(PAGE)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.first..self.first + self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.first..self.first + self.length]
    }
}

/// Buffers that nobody uses, the last one that came back first: it is in the processor's cache.
#[derive(Debug, Default)]
pub struct Spare(Vec<Buffer>);

impl Spare {
    /// One that is empty.
    pub fn take(&mut self) -> Buffer {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps one for who takes the next.
    pub fn give(&mut self, mut buffer: Buffer) {
        if self.0.len() < KEPT && buffer.room() <= LARGEST {
            buffer.truncate(0);
            self.0.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_begin_at_a_page_and_stay_when_there_are_more() {
        let mut buffer = Buffer::default();
        buffer.more(3).copy_from_slice(&[1, 2, 3]);
        buffer.more(PAGE * 5).fill(7);
        assert_eq!((buffer.as_ptr().align_offset(PAGE), buffer.len()), (0, PAGE * 5 + 3));
        assert_eq!(buffer[..4], [1, 2, 3, 7]);
        buffer.truncate(2);
        assert_eq!(buffer[..], [1, 2]);
        buffer.more(1)[0] = 9;
        assert_eq!(buffer[..], [1, 2, 9]);
        let zeroes = Buffer::zeroes(300 << 10);
        assert_eq!((zeroes.as_ptr().align_offset(PAGE), &zeroes[..]), (0, &vec![0; 300 << 10][..]));
    }

    #[test]
    fn the_last_one_that_came_back_is_taken_first_and_large_ones_go() {
        let (mut spare, mut small, mut large) = (Spare::default(), Buffer::default(), Buffer::default());
        small.more(10).fill(1);
        large.more(LARGEST + 1).fill(1);
        let at = small.memory.as_ptr();
        spare.give(small);
        spare.give(large);
        let again = spare.take();
        assert_eq!((again.memory.as_ptr(), again.len()), (at, 0));
        assert_eq!(spare.take().room(), 0, "a new one");
        for _ in 0..2 * KEPT {
            spare.give(Buffer::default());
        }
        assert_eq!(spare.0.len(), KEPT);
    }
}
