//! Tables of heads, for S-blocks with more items than one list should have.

use super::blocks::{END, NONE};
use super::leaves::boxed;

/// Heads in a line of memory.
const LINE: usize = 16;
/// Lines that are taken together.
const CHUNK: usize = 4096;
/// Sizes of tables: 16 lists, and four times as many each.
pub(super) const SIZES: usize = 7;
/// Where the size begins in the number of a table; below it is the number of its first line.
const SIZE_SHIFT: u32 = 28;

/// Heads of 16 lists.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u32; LINE]);

/// The tables of a section: one head for each list of an S-block, by the lowest bits of the unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    chunks: Vec<Box<[Line; CHUNK]>>,
    /// Lines of the last chunk that were given out.
    given: usize,
    /// First lines of tables that are not in use, by size.
    unused: [Vec<u32>; SIZES],
}

/// Where a table is, as [`SBlock::first`] has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table(pub u32);

impl Table {
    /// The table that `first` leads to, if it does not lead to an item.
    pub(super) fn at(first: u32) -> Option<Self> {
        (first & END != 0 && first != NONE).then_some(Self(first))
    }

    pub(super) fn size(self) -> usize {
        (self.0 >> SIZE_SHIFT) as usize & 7
    }

    #[inline]
    pub(super) fn lists(self) -> usize {
        LINE << (2 * self.size())
    }

    /// Chunk and line of a unit's list, and its place in the line.
    #[inline]
    fn place(self, unit: u64) -> (usize, usize, usize) {
        let list = unit as usize & (self.lists() - 1);
        let line = (self.0 & ((1 << SIZE_SHIFT) - 1)) as usize + list / LINE;
        (line / CHUNK, line % CHUNK, list % LINE)
    }
}

impl Tables {
    /// Takes a table without items.
    pub(super) fn add(&mut self, size: usize) -> Table {
        let lines = 1 << (2 * size);
        let first = self.unused[size].pop().unwrap_or_else(|| {
            if self.chunks.is_empty() || self.given + lines > CHUNK {
                let rest = self.given..if self.chunks.is_empty() { 0 } else { CHUNK };
                let base = self.chunks.len().saturating_sub(1) * CHUNK;
                self.unused[0].extend(rest.map(|line| (base + line) as u32));
                self.chunks.push(boxed(Line([NONE; LINE])));
                self.given = 0;
            }
            self.given += lines;
            ((self.chunks.len() - 1) * CHUNK + self.given - lines) as u32
        });
        for line in first as usize..first as usize + lines {
            self.chunks[line / CHUNK][line % CHUNK] = Line([NONE; LINE]);
        }
        Table(END | (size as u32) << SIZE_SHIFT | first)
    }

    /// Gives it back.
    pub(super) fn drop(&mut self, table: Table) {
        self.unused[table.size()].push(table.0 & ((1 << SIZE_SHIFT) - 1));
    }

    #[inline]
    pub(super) fn head(&self, table: Table, unit: u64) -> u32 {
        let (chunk, line, at) = table.place(unit);
        self.chunks[chunk][line].0[at]
    }

    #[inline]
    pub(super) fn head_mut(&mut self, table: Table, unit: u64) -> &mut u32 {
        let (chunk, line, at) = table.place(unit);
        &mut self.chunks[chunk][line].0[at]
    }

    /// Hints that the head of a unit's list will be looked at soon.
    #[inline]
    pub(super) fn fetch(&self, table: Table, unit: u64) {
        let (chunk, line, _) = table.place(unit);
        smrlab_blockmap::prefetch(&self.chunks[chunk][..], line);
    }

    pub(super) fn bytes(&self) -> u64 {
        let unused = self.unused.iter().map(|u| u.capacity() * size_of::<u32>()).sum::<usize>();
        (self.chunks.len() * CHUNK * size_of::<Line>() + unused) as u64
    }
}
