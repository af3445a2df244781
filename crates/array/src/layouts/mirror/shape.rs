//! Where copies are: as in the `near` layout of Linux md.

use crate::layouts::chunks::numbers;
use std::ops::Range;

/// Where copies are: copy k of chunk c is the chunk of number `copies c + k` when those of all disks are counted row by row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Blocks of a chunk.
    pub chunk: u64,
    /// Disks.
    pub disks: u64,
    /// Copies of each chunk, at most as many as disks.
    pub copies: u64,
    /// Chunks of a disk.
    pub rows: u64,
}

/// A copy of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    /// The disk.
    pub disk: u64,
    /// Which of its chunks.
    pub row: u64,
}

impl Shape {
    /// Chunks of the host's.
    pub(super) fn chunks(&self) -> u64 {
        self.rows * self.disks / self.copies
    }

    /// Where the copies of a chunk are.
    pub(super) fn copies(&self, chunk: u64) -> impl Iterator<Item = Copied> + Clone + use<> {
        let (first, disks) = (chunk * self.copies, self.disks);
        (first..first + self.copies).map(move |at| Copied { disk: at % disks, row: at / disks })
    }

    /// So many chunks that each of the others has its copies on the same disks as one of them.
    pub(super) fn first_chunks(&self) -> Range<u64> {
        0..self.disks.min(self.chunks())
    }

    /// The chunk of which a disk has a copy in a row.
    pub(super) fn chunk_at(&self, copy: Copied) -> Option<u64> {
        let chunk = (copy.row * self.disks + copy.disk) / self.copies;
        (chunk < self.chunks()).then_some(chunk)
    }

    /// The chunks of a range of the host's blocks.
    pub(super) fn chunks_of(&self, blocks: &Range<u64>) -> Range<u64> {
        numbers(blocks, self.chunk)
    }

    /// The chunks with copies in these rows.
    pub(super) fn chunks_in(&self, rows: &Range<u64>) -> Range<u64> {
        rows.start * self.disks / self.copies
            ..(rows.end * self.disks).div_ceil(self.copies).min(self.chunks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(disks: u64, copies: u64) -> String {
        let shape = Shape { chunk: 1, disks, copies, rows: 3 };
        let name = |row, disk| shape.chunk_at(Copied { disk, row }).map_or("-".to_owned(), |c| c.to_string());
        let line = |row| (0..disks).map(|disk| name(row, disk)).collect::<Vec<_>>().join(" ");
        (0..3).map(line).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn copies_are_on_different_disks_one_beside_the_other() {
        assert_eq!(picture(2, 2), "0 0 | 1 1 | 2 2");
        assert_eq!(picture(4, 2), "0 0 1 1 | 2 2 3 3 | 4 4 5 5");
        assert_eq!(picture(3, 2), "0 0 1 | 1 2 2 | 3 3 -");
        assert_eq!(picture(3, 3), "0 0 0 | 1 1 1 | 2 2 2");
        for (disks, copies) in [(2, 2), (3, 2), (5, 3), (7, 2)] {
            let shape = Shape { chunk: 4, disks, copies, rows: 30 };
            for chunk in 0..shape.chunks() {
                let all: Vec<Copied> = shape.copies(chunk).collect();
                assert!(all.iter().all(|c| shape.chunk_at(*c) == Some(chunk) && c.row < 30));
                let on: std::collections::BTreeSet<u64> = all.iter().map(|c| c.disk).collect();
                assert_eq!(on.len() as u64, copies);
                assert!(all.iter().all(|c| shape.chunks_in(&(c.row..c.row + 1)).contains(&chunk)));
            }
        }
    }
}
