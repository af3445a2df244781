//! Which part of the host's space was used when, in coarse bins.

use super::windows::{Cell, Windows};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// Bins of the host's space.
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

/// See the [module](self).
pub struct HeatMap {
    windows: Windows<Column>,
    /// `BINS / host_blocks` with 64 binary digits after the point.
    scale: u64,
    host_blocks: u64,
}

impl HeatMap {
    /// A map of a space of `host` blocks.
    pub fn new(host: Blocks) -> Self {
        let scale = (BINS as u128) << 64;
        let scale = (scale / u128::from(host.0.max(BINS as u64 + 1))) as u64;
        Self { windows: Windows::new(FIRST_WIDTH, WINDOWS), scale, host_blocks: host.0 }
    }

    /// A host request arrives at `at`.
    #[inline]
    pub fn request(&mut self, at: SimTime, op: HostOp, lba: Lba) {
        let side = match op {
            HostOp::Read => 0,
            HostOp::Write => 1,
            HostOp::Flush | HostOp::Discard => return,
        };
        let bin = ((u128::from(lba.0) * u128::from(self.scale)) >> 64) as usize;
        let n = &mut self.windows.at(0, at).bins[bin.min(BINS - 1)][side];
        *n = n.saturating_add(1);
    }

    /// The bins that were used: window, its start, bin, first LBA, end LBA, reads, writes.
    pub fn rows(&self) -> impl Iterator<Item = (u64, SimTime, usize, u64, u64, [u32; 2])> + '_ {
        let width = self.windows.width().0;
        let edge = |bin: usize| (self.host_blocks as u128 * bin as u128).div_ceil(BINS as u128) as u64;
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
        assert_eq!(rows.len(), BINS);
        assert_eq!(rows.iter().map(|r| r.5[1]).sum::<u32>(), host.div_ceil(997) as u32 + 1);
        for (_, _, _, lo, hi, n) in rows {
            let inside = (0..host).step_by(997).chain([host - 1]).filter(|l| (lo..hi).contains(l)).count();
            assert!((inside as i64 - i64::from(n[1])).abs() <= 1, "{lo}..{hi}: {inside} for {n:?}");
        }
    }
}
