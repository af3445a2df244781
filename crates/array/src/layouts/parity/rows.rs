//! Where chunks and parity are, and what of a row a write touches.

use super::code::Code;
use crate::MemberId;
use crate::layouts::chunks::numbers;
use smrlab_units::{Blocks, Lba, named};
use std::ops::Range;

named! {
    /// How parity goes round (the names of Linux md).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Rotation {
        /// Parity moves from the last disk down; data fill the others from disk 0 on.
        LeftAsymmetric => "left-asymmetric",
        /// Parity moves from the last disk down; data go on behind it, so that successive chunks are on successive disks.
        LeftSymmetric => "left-symmetric",
        /// Parity moves from disk 0 up; data fill the others from disk 0 on.
        RightAsymmetric => "right-asymmetric",
        /// Parity moves from disk 0 up; data go on behind it.
        RightSymmetric => "right-symmetric",
        /// Parity does not move: it has the last disk (with one parity, RAID-4).
        ParityLast => "parity-last",
    }
}

impl Rotation {
    fn is_left(self) -> bool {
        matches!(self, Self::LeftAsymmetric | Self::LeftSymmetric)
    }

    fn is_symmetric(self) -> bool {
        matches!(self, Self::LeftSymmetric | Self::RightSymmetric)
    }
}

/// The shape of the array.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Blocks in a chunk.
    pub chunk: u64,
    /// Disks, parities included.
    pub disks: u64,
    /// Parity chunks in a row.
    pub parities: u64,
    /// How parity goes round.
    pub rotation: Rotation,
    /// Rows.
    pub rows: u64,
}

/// Part of a row: blocks `lo..hi` of chunks `chunks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First block within the chunk.
    pub lo: u64,
    /// End within the chunk.
    pub hi: u64,
    /// Chunks that are written there, all of them.
    pub chunks: Range<u64>,
}

impl Segment {
    /// Its length.
    pub fn blocks(&self) -> Blocks {
        Blocks(self.hi - self.lo)
    }
}

impl Rows {
    /// Data chunks in a row.
    pub fn data(&self) -> u64 {
        self.disks - self.parities
    }

    /// What a row's parities are made of.
    #[inline]
    pub fn code(&self) -> Code {
        Code { data: self.data(), parities: self.parities }
    }

    /// Blocks of the host's in a row.
    #[inline]
    pub fn host_blocks(&self) -> u64 {
        self.chunk * self.data()
    }

    /// The disk that does `role` in a row: chunk `role`, or a parity from the number of chunks on. Further parities are behind the
    /// first, round and round.
    #[inline]
    pub(crate) fn disk(&self, row: u64, role: u64) -> u64 {
        let (disks, parities) = (self.disks, self.parities);
        let first = match self.rotation {
            Rotation::ParityLast => disks - parities,
            rotation if rotation.is_left() => disks - 1 - row % disks,
            _ => row % disks,
        };
        // Never twice round, and so without a division.
        let around = |disk: u64| if disk < disks { disk } else { disk - disks };
        if role >= self.data() {
            return around(first + role - self.data());
        }
        if self.rotation.is_symmetric() {
            return around(first + parities + role);
        }
        // Parities beyond the last disk are on the first ones.
        let wrapped = (first + parities).saturating_sub(disks);
        role + if role < first { wrapped } else { parities }
    }

    /// What `disk` does in a row.
    pub(crate) fn role(&self, row: u64, disk: u64) -> u64 {
        (0..self.disks).find(|r| self.disk(row, *r) == disk).unwrap_or(self.data())
    }

    /// The member that does `role` in a row.
    #[inline]
    pub(crate) fn member(&self, row: u64, role: u64) -> MemberId {
        MemberId(self.disk(row, role) as u32)
    }

    /// Where blocks of a row's chunks are on their disks.
    pub fn on_member(&self, row: u64, blocks: &Range<u64>) -> (Lba, Blocks) {
        (Lba(row * self.chunk + blocks.start), Blocks(blocks.end - blocks.start))
    }

    /// Where block `at` of a chunk is in the host's space.
    #[inline]
    pub(crate) fn of_host(&self, row: u64, chunk: u64, at: u64) -> u64 {
        (row * self.data() + chunk) * self.chunk + at
    }

    /// The rows of a range of the host's blocks.
    #[inline]
    pub fn rows_of(&self, blocks: Range<u64>) -> Range<u64> {
        numbers(&blocks, self.host_blocks())
    }

    /// The part of `blocks` within a row, from its start.
    #[inline]
    pub fn within(&self, row: u64, blocks: &Range<u64>) -> Range<u64> {
        let (start, len) = (row * self.host_blocks(), self.host_blocks());
        blocks.start.max(start) - start..blocks.end.min(start + len) - start
    }

    /// Which blocks of chunk `chunk` a part of a row covers.
    #[inline]
    pub fn of_chunk(&self, chunk: u64, part: &Range<u64>) -> Range<u64> {
        let start = chunk * self.chunk;
        part.start.clamp(start, start + self.chunk) - start..part.end.clamp(start, start + self.chunk) - start
    }

    /// The chunks that a part of a row touches.
    #[inline]
    pub fn chunks(&self, part: &Range<u64>) -> Range<u64> {
        numbers(part, self.chunk)
    }

    /// A part of a row as segments in each of which the same chunks are covered.
    pub fn segments(&self, part: &Range<u64>, mut out: impl FnMut(Segment)) {
        let chunks = self.chunks(part);
        let first = self.of_chunk(chunks.start, part);
        if chunks.end - chunks.start == 1 {
            return out(Segment { lo: first.start, hi: first.end, chunks });
        }
        let last = self.of_chunk(chunks.end - 1, part);
        let mut borders = [0, first.start, last.end, self.chunk];
        borders.sort_unstable();
        for (lo, hi) in borders.windows(2).map(|w| (w[0], w[1])).filter(|(lo, hi)| lo < hi) {
            let from = chunks.start + u64::from(lo < first.start);
            let to = chunks.end - u64::from(hi > last.end);
            if from < to {
                out(Segment { lo, hi, chunks: from..to });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of the md driver's documentation for four disks, chunks by number and P.
    #[test]
    fn layouts_are_those_of_md() {
        let picture = |rotation: Rotation| {
            let rows = Rows { chunk: 1, disks: 4, parities: 1, rotation, rows: 4 };
            let name = |row, disk| match rows.role(row, disk) {
                3 => "P".to_owned(),
                chunk => (row * 3 + chunk).to_string(),
            };
            let line = |row| (0..4).map(|d| name(row, d)).collect::<Vec<_>>().join(" ");
            (0..4).map(line).collect::<Vec<_>>().join(" | ")
        };
        assert_eq!(picture(Rotation::LeftAsymmetric), "0 1 2 P | 3 4 P 5 | 6 P 7 8 | P 9 10 11");
        assert_eq!(picture(Rotation::LeftSymmetric), "0 1 2 P | 4 5 P 3 | 8 P 6 7 | P 9 10 11");
        assert_eq!(picture(Rotation::RightAsymmetric), "P 0 1 2 | 3 P 4 5 | 6 7 P 8 | 9 10 11 P");
        assert_eq!(picture(Rotation::ParityLast), "0 1 2 P | 3 4 5 P | 6 7 8 P | 9 10 11 P");
        assert_eq!(picture(Rotation::RightSymmetric), "P 0 1 2 | 5 P 3 4 | 7 8 P 6 | 9 10 11 P");
    }

    /// Those of RAID-6, P and Q.
    #[test]
    fn layouts_of_two_parities_are_those_of_md() {
        let picture = |rotation: Rotation| {
            let rows = Rows { chunk: 1, disks: 4, parities: 2, rotation, rows: 4 };
            let name = |row, disk| match rows.role(row, disk) {
                2 => "P".to_owned(),
                3 => "Q".to_owned(),
                chunk => (row * 2 + chunk).to_string(),
            };
            let line = |row| (0..4).map(|d| name(row, d)).collect::<Vec<_>>().join(" ");
            (0..4).map(line).collect::<Vec<_>>().join(" | ")
        };
        assert_eq!(picture(Rotation::LeftAsymmetric), "Q 0 1 P | 2 3 P Q | 4 P Q 5 | P Q 6 7");
        assert_eq!(picture(Rotation::LeftSymmetric), "Q 0 1 P | 2 3 P Q | 5 P Q 4 | P Q 6 7");
        assert_eq!(picture(Rotation::RightAsymmetric), "P Q 0 1 | 2 P Q 3 | 4 5 P Q | Q 6 7 P");
        assert_eq!(picture(Rotation::ParityLast), "0 1 P Q | 2 3 P Q | 4 5 P Q | 6 7 P Q");
        assert_eq!(picture(Rotation::RightSymmetric), "P Q 0 1 | 3 P Q 2 | 4 5 P Q | Q 6 7 P");
    }

    #[test]
    fn segments_cover_the_part_and_nothing_else() {
        let rows = Rows { chunk: 5, disks: 5, parities: 1, rotation: Rotation::LeftAsymmetric, rows: 1 };
        for start in 0..20 {
            for end in start + 1..=20 {
                let mut segments = Vec::new();
                rows.segments(&(start..end), |s| segments.push(s));
                let mut covered = vec![0; 20];
                for s in &segments {
                    for c in s.chunks.clone() {
                        (s.lo..s.hi).for_each(|b| covered[(c * 5 + b) as usize] += 1);
                    }
                }
                let want: Vec<i32> = (0..20).map(|b| i32::from((start..end).contains(&b))).collect();
                assert_eq!(covered, want, "{start}..{end}: {segments:?}");
                assert!(segments.windows(2).all(|w| w[0].hi <= w[1].lo));
            }
        }
    }
}
