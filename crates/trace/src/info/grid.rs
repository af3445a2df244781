//! Requests counted in cells of time and address, for the picture.

use crate::Record;
use serde::Serialize;
use smrlab_units::{HostOp, SimTime};

/// Columns (time) and rows (address) of a grid.
pub(super) const COLUMNS: usize = 256;
/// See [`COLUMNS`].
pub(super) const ROWS: usize = 128;

/// What happened in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Reads that begin there.
    pub reads: u32,
    /// Writes that begin there.
    pub writes: u32,
}

/// Counts by time and address. The cells start small; when a request lies outside, two become one, so that neither the
/// length nor the extent of the trace has to be known before.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// Nanoseconds of a column, the first of which begins with the first request; a power of two.
    pub column_ns: u64,
    /// Blocks of a row; a power of two.
    pub row_blocks: u64,
    /// Row by row from address 0 up, [`COLUMNS`] cells each.
    pub cells: Vec<Cell>,
}

impl Default for Grid {
    fn default() -> Self {
        Self::new()
    }
}

impl Grid {
    /// An empty grid with the smallest cells: about a millisecond and 4 KiB.
    pub fn new() -> Self {
        Self { column_ns: 1 << 20, row_blocks: 8, cells: vec![Cell::default(); COLUMNS * ROWS] }
    }

    /// Counts a request where it begins, `since_first` after the trace did. All devices share the addresses.
    pub fn add(&mut self, since_first: SimTime, r: &Record) {
        while since_first.0 / self.column_ns >= COLUMNS as u64 {
            self.fold(|row, column| (row, column / 2));
            self.column_ns *= 2;
        }
        while r.lba.0 / self.row_blocks >= ROWS as u64 {
            self.fold(|row, column| (row / 2, column));
            self.row_blocks *= 2;
        }
        let (row, column) = (r.lba.0 / self.row_blocks, since_first.0 / self.column_ns);
        let cell = &mut self.cells[row as usize * COLUMNS + column as usize];
        let count = if r.op == HostOp::Write { &mut cell.writes } else { &mut cell.reads };
        *count = count.saturating_add(1);
    }

    /// Moves every cell to another; `to` never names a later one.
    fn fold(&mut self, to: impl Fn(usize, usize) -> (usize, usize)) {
        for i in 0..self.cells.len() {
            let cell = std::mem::take(&mut self.cells[i]);
            let (row, column) = to(i / COLUMNS, i % COLUMNS);
            let target = &mut self.cells[row * COLUMNS + column];
            target.reads = target.reads.saturating_add(cell.reads);
            target.writes = target.writes.saturating_add(cell.writes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::Lba;

    #[test]
    fn nothing_is_lost_when_cells_grow() {
        let mut g = Grid::new();
        for i in 0..1000u64 {
            let op = if i % 4 == 0 { HostOp::Read } else { HostOp::Write };
            let (arrival, lba) = (SimTime(i * 3_000_000), Lba(i * 100_000));
            g.add(arrival, &Record { arrival, op, lba, blocks: 8, device: 0, stream: 0, fua: false });
        }
        let (reads, writes) = g.cells.iter().fold((0, 0), |(r, w), c| (r + c.reads, w + c.writes));
        assert_eq!((reads, writes), (250, 750));
        // The requests lie on the diagonal.
        for (i, c) in g.cells.iter().enumerate().filter(|(_, c)| c.reads + c.writes > 0) {
            let (row, column) = (i / COLUMNS, i % COLUMNS);
            let (from, to) =
                (column as u64 * g.column_ns / 3_000_000, (column as u64 + 1) * g.column_ns / 3_000_000);
            let (low, high) =
                (row as u64 * g.row_blocks / 100_000, (row as u64 + 1) * g.row_blocks / 100_000);
            assert!(from <= high && low <= to + 1, "{row} {column} {c:?}");
        }
    }
}
