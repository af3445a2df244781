//! What logs have of the parity of rows.

use crate::{Change, Record, Sink};
use smrlab_stl::Counted;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What stands for a role where a read is one of an image.
pub(super) const IMAGE: u64 = u64::MAX;

/// What a log has of a row's parity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// Blocks of the parity chunk.
    pub blocks: Range<u64>,
    /// Where the first of them is in the log.
    pub at: u64,
}

/// Which log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogId {
    pub region: u64,
    pub disk: u64,
}

/// A change of the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogChange {
    /// The log has this of a row.
    Logged(u64, Image),
    /// Of the parity of these rows these blocks lack nothing any more.
    Void(Range<u64>, Range<u64>),
}

/// Tags of records.
const LOGGED: u32 = 10;
const VOID: u32 = 11;

impl Change for LogChange {
    fn put(&self, to: &mut dyn Sink) {
        let packed = |blocks: &Range<u64>| blocks.start << 32 | blocks.end;
        match self {
            Self::Logged(row, image) => to.push(LOGGED, [*row, packed(&image.blocks), image.at]),
            Self::Void(rows, blocks) => to.push(VOID, [rows.start, rows.end, packed(blocks)]),
        }
    }

    fn of(record: Record<'_>) -> Option<Self> {
        let [a, b, c] = std::array::from_fn(|i| record.word(i));
        let blocks = |word: u64| word >> 32..word & u64::from(u32::MAX);
        match record.tag {
            LOGGED => Some(Self::Logged(a, Image { blocks: blocks(b), at: c })),
            VOID => Some(Self::Void(a..b, blocks(c))),
            _ => None,
        }
    }
}

/// All logs.
#[derive(Clone, Debug, Default)]
pub(super) struct Logs {
    /// Blocks of a log that are in use.
    pub used: BTreeMap<LogId, u64>,
    /// By row, in the order in which they were written.
    pub images: BTreeMap<u64, Vec<Image>>,
    /// Regions whose logs will be put into the parity, and those of them of which nobody was told.
    pub full: BTreeSet<u64>,
    pub due: Vec<u64>,
    pub logged: u64,
    pub applied: u64,
    pub refused: u64,
}

impl Logs {
    /// Whether a row has images.
    pub(super) fn has(&self, rows: Range<u64>) -> bool {
        self.images.range(rows).next().is_some()
    }

    /// Blocks `blocks` of the parity of `rows` lack nothing any more.
    pub(super) fn void(&mut self, rows: Range<u64>, blocks: &Range<u64>) {
        let within: Vec<u64> = self.images.range(rows).map(|i| *i.0).collect();
        for row in within {
            let Some(images) = self.images.remove(&row) else { continue };
            let before =
                |i: &Image| Image { blocks: i.blocks.start..i.blocks.end.min(blocks.start), at: i.at };
            let behind = |i: &Image| {
                let start = i.blocks.start.max(blocks.end);
                Image { blocks: start..i.blocks.end, at: i.at + start - i.blocks.start }
            };
            let left = images.iter().flat_map(|i| [before(i), behind(i)]);
            let left: Vec<Image> = left.filter(|i| !i.blocks.is_empty()).collect();
            if !left.is_empty() {
                self.images.insert(row, left);
            }
        }
    }

    pub(super) fn log(&mut self, row: u64, image: Image) {
        self.images.entry(row).or_default().push(image);
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.images.values().map(Vec::len).sum::<usize>() * size_of::<Image>()) as u64
    }

    pub(super) fn counters(&self, out: &mut Counted) {
        out.count("rows_logged", self.logged);
        out.count("parities_applied", self.applied);
        out.count("logs_full", self.refused);
    }
}

/// A range cut at the ends of others, so that each piece is all within or all outside of any of them.
pub(super) fn cut<'a>(range: &Range<u64>, at: impl Iterator<Item = &'a Range<u64>>) -> Vec<Range<u64>> {
    let mut borders: Vec<u64> = at.flat_map(|r| [r.start, r.end]).collect();
    borders.retain(|b| range.contains(b) && *b > range.start);
    borders.extend([range.start, range.end]);
    borders.sort_unstable();
    borders.dedup();
    borders.windows(2).map(|w| w[0]..w[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an image of blocks 2 to 8 the middle is void: both ends are left, each where it was in the log.
    #[test]
    fn images_are_void_in_part() {
        let mut logs = Logs::default();
        logs.log(7, Image { blocks: 2..8, at: 30 });
        logs.void(7..8, &(4..5));
        let left = vec![Image { blocks: 2..4, at: 30 }, Image { blocks: 5..8, at: 33 }];
        assert_eq!(logs.images[&7], left);
        logs.void(0..8, &(0..8));
        assert!(!logs.has(0..8));
        assert_eq!(cut(&(2..8), [0..3, 5..9].iter()), [2..3, 3..5, 5..8]);
        assert_eq!(cut(&(2..8), [0..5, 5..8, 2..5].iter()), [2..5, 5..8], "no piece is empty");
    }
}
