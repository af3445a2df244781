//! Which part of the host's space was used when, in bins that grow with the highest address seen: a trace that keeps to
//! a corner of a large drive is seen in full.

use super::windows::{Cell, Windows};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// Bins from address 0 up.
pub const BINS: usize = 96;
const WINDOWS: usize = 240;
const FIRST_WIDTH: SimTime = SimTime::from_ms(8);

/// Reads and writes that began in each bin.
#[derive(Clone, Debug)]
pub struct Column {
    /// Reads and writes by bin.
    pub bins: Box<[[u32; 2]; BINS]>,
}

impl Default for Column {
    fn default() -> Self {
        Self { bins: Box::new([[0; 2]; BINS]) }
    }
}

impl Cell for Column {
    fn absorb(&mut self, later: &Self) {
        for (a, b) in self.bins.iter_mut().zip(later.bins.iter()) {
            a[0] = a[0].saturating_add(b[0]);
            a[1] = a[1].saturating_add(b[1]);
        }
    }
}

impl Column {
    /// Makes one bin of two neighbours.
    fn fold(&mut self) {
        for i in 0..BINS {
            let pair = self.bins.get(2 * i..(2 * i + 2).min(BINS)).unwrap_or_default();
            let sum = |side: usize| pair.iter().fold(0u32, |n, bin| n.saturating_add(bin[side]));
            self.bins[i] = [sum(0), sum(1)];
        }
    }
}

/// See the [module](self).
pub struct HeatMap {
    windows: Windows<Column>,
    /// A bin has two to this power of blocks.
    shift: u32,
    host_blocks: u64,
}

impl HeatMap {
    /// A map of a space of `host` blocks.
    pub fn new(host: Blocks) -> Self {
        Self { windows: Windows::new(FIRST_WIDTH, WINDOWS), shift: 0, host_blocks: host.0 }
    }

    /// A host request arrives at `at`. An append is a write that begins in the zone it names.
    #[inline]
    pub fn request(&mut self, at: SimTime, op: HostOp, lba: Lba) {
        // Without a branch for read or write: which of them comes cannot be predicted.
        let writes = matches!(op, HostOp::Write | HostOp::Append);
        if !writes && !matches!(op, HostOp::Read) {
            return;
        }
        if lba.0 >> self.shift >= BINS as u64 {
            self.widen(lba.0);
        }
        self.requests(at, usize::from(writes), lba, 1);
    }

    /// Whether requests between these times and addresses fall into one bin that there is, in one window.
    pub fn same_bin(&mut self, times: (SimTime, SimTime), lbas: (Lba, Lba)) -> bool {
        let bins = (lbas.0.0 >> self.shift, lbas.1.0 >> self.shift);
        bins.0 == bins.1 && bins.0 < BINS as u64 && self.windows.same(0, times.0, times.1)
    }

    /// So many reads (0) or writes (1) fall into the bin of this address, in the window of this time.
    #[inline]
    pub fn requests(&mut self, at: SimTime, side: usize, lba: Lba, n: u64) {
        let bin = &mut self.windows.at(0, at).bins[(lba.0 >> self.shift) as usize][side];
        *bin = bin.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
    }

    #[cold]
    fn widen(&mut self, lba: u64) {
        while lba >> self.shift >= BINS as u64 {
            self.windows.cells_mut().iter_mut().for_each(Column::fold);
            self.shift += 1;
        }
    }

    /// The bins that were used: window, its start, bin, first LBA, end LBA, reads, writes.
    pub fn rows(&self) -> impl Iterator<Item = (u64, SimTime, usize, u64, u64, [u32; 2])> + '_ {
        let width = self.windows.width().0;
        let edge = |bin: usize| ((bin as u64) << self.shift).min(self.host_blocks);
        self.windows.cells().iter().zip(0u64..).flat_map(move |(column, i)| {
            let used = column.bins.iter().enumerate().filter(|(_, n)| **n != [0, 0]);
            used.map(move |(bin, n)| (i, SimTime(i * width), bin, edge(bin), edge(bin + 1), *n))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_falls_into_the_bin_that_names_it() {
        let host = 1_000_003u64;
        let mut map = HeatMap::new(Blocks(host));
        for lba in (0..host).step_by(997).chain([host - 1]) {
            map.request(SimTime(lba), HostOp::Write, Lba(lba));
        }
        map.request(SimTime(0), HostOp::Flush, Lba(0));
        let rows: Vec<_> = map.rows().collect();
        assert!(rows.len() > BINS / 2, "{} bins are used", rows.len());
        assert_eq!(rows.iter().map(|r| r.5[1]).sum::<u32>(), host.div_ceil(997) as u32 + 1);
        for (_, _, _, lo, hi, n) in rows {
            let inside = (0..host).step_by(997).chain([host - 1]).filter(|l| (lo..hi).contains(l)).count();
            assert_eq!(inside as u32, n[1], "{lo}..{hi}");
        }
    }

    #[test]
    fn appends_are_writes_and_what_moves_no_data_is_nothing() {
        let mut map = HeatMap::new(Blocks(1 << 20));
        for op in HostOp::ALL {
            map.request(SimTime(0), op, Lba(8));
        }
        assert_eq!(map.rows().map(|r| r.5).collect::<Vec<_>>(), [[1, 2]]);
    }

    #[test]
    fn a_corner_of_a_large_drive_is_seen_in_full() {
        let mut map = HeatMap::new(Blocks(1 << 40));
        (0..96).for_each(|lba| map.request(SimTime(0), HostOp::Read, Lba(lba)));
        let rows: Vec<_> = map.rows().collect();
        assert_eq!((rows.len(), rows[95].3, rows[95].4), (96, 95, 96));
        map.request(SimTime(0), HostOp::Read, Lba(96));
        let last = map.rows().last().unwrap();
        assert_eq!((last.3, last.4, last.5), (96, 98, [1, 0]));
        assert_eq!(map.rows().count(), 49);
    }
}
