//! The plain model of the shingled medium: every block has its bytes and a list of the blocks that a write of it
//! destroys, made beforehand from angles. Slow, obvious, and independent of the media that the product uses.

use smrlab_disk::geometry::REVOLUTION;
use smrlab_disk::{Geometry, Interference, TrackNo};
use smrlab_stl::Medium;
use smrlab_units::{BLOCK_BYTES, Pba};
use std::sync::Arc;

const BYTES: usize = BLOCK_BYTES as usize;

/// Fills what was destroyed.
pub const DESTROYED: u8 = 0xdd;
/// Fills a sector whose write was cut.
pub const TORN: u8 = 0xee;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct PlainMedium {
    data: Vec<u8>,
    victims: Arc<Vec<Vec<u32>>>,
}

impl PlainMedium {
    /// All zeroes.
    pub fn new(geometry: &Geometry, interference: Interference) -> Self {
        let blocks = geometry.blocks().0;
        let victims = match interference {
            Interference::Blocks(p) => {
                let victims = |b: u64| if b < p.from { 0..0 } else { b + 1..(b + p.reach).min(blocks) };
                (0..blocks).map(|b| victims(b).map(|v| v as u32).collect()).collect()
            }
            Interference::Physical(p) => {
                assert!(p.phi_cw == 0 && p.phi_ccw == 0, "the plain model has no angular reach");
                by_angle(geometry, p.s_id.max(p.s_od), p.wave)
            }
        };
        Self { data: vec![0; blocks as usize * BYTES], victims: Arc::new(victims) }
    }

    /// Everything on it.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    fn block(&mut self, block: usize) -> &mut [u8] {
        &mut self.data[block * BYTES..][..BYTES]
    }

    fn hit(&mut self, block: usize) {
        let victims = Arc::clone(&self.victims);
        victims[block].iter().for_each(|&v| self.destroy(v as usize));
    }

    fn destroy(&mut self, block: usize) {
        self.block(block).fill(DESTROYED);
    }

    /// The power fails while `pba` is written: the sector is neither old nor new, and has done its damage.
    pub fn tear(&mut self, pba: Pba) {
        self.block(pba.0 as usize).fill(TORN);
        self.hit(pba.0 as usize);
    }
}

impl Medium for PlainMedium {
    type Error = std::convert::Infallible;

    fn read(&mut self, pba: Pba, out: &mut [u8]) -> Result<(), Self::Error> {
        let at = pba.0 as usize * BYTES;
        out.copy_from_slice(&self.data[at..at + out.len()]);
        Ok(())
    }

    fn write(&mut self, pba: Pba, data: &[u8]) -> Result<(), Self::Error> {
        let (first, end) = (pba.0 as usize, pba.0 as usize + data.len() / BYTES);
        self.data[first * BYTES..end * BYTES].copy_from_slice(data);
        // Block by block, as the head passes: what one destroys of those behind it is written after that.
        let victims = Arc::clone(&self.victims);
        for block in first..end {
            let behind = block as u32 + 1..end as u32;
            victims[block].iter().filter(|v| !behind.contains(v)).for_each(|&v| self.destroy(v as usize));
        }
        Ok(())
    }
}

/// Of each block: the blocks on the following `width - 1` tracks that its angle hits (Pitchumani 2012, section 3.2.2); where
/// bands share guards, of the last tracks of each `wave` the preceding ones.
fn by_angle(g: &Geometry, width: u32, wave: u64) -> Vec<Vec<u32>> {
    let back = |track: u64| {
        let stroke = g.strokes().find(|s| (s.first.0..s.first.0 + s.tracks).contains(&track));
        let row = stroke.map_or(0, |s| (track - s.first.0) / s.unit);
        let band = (wave + 1).saturating_sub(u64::from(width)) / 2;
        wave > 0 && row % wave >= wave - band
    };
    let sectors = |track: u64| u64::from(g.zone_of(TrackNo(track)).sectors);
    // A track's sectors in a grid of whole ones, as near as its start allows.
    let slot = |pba: u64, n: u64| {
        let (p, turn) = (g.position(Pba(pba)), u128::from(REVOLUTION));
        let (sector, n) = (u128::from(p.sector), u128::from(n));
        let start = (u128::from(p.angle) + turn - sector * turn / n) % turn;
        (((start * n + turn / 2) / turn + sector) % n) as u64
    };
    let blocks_of = |track: u64| g.track_start(TrackNo(track)).0..g.track_start(TrackNo(track + 1)).0;
    let mut victims = vec![Vec::new(); g.blocks().0 as usize];
    for track in 0..g.tracks() {
        let n = sectors(track);
        for j in 1..width {
            let j = if back(track) { -i64::from(j) } else { i64::from(j) };
            let Some(next) = g.neighbour(TrackNo(track), j) else { continue };
            let m = sectors(next.0);
            let mut at_slot = vec![None; m as usize];
            for b in blocks_of(next.0) {
                at_slot[slot(b, m) as usize] = Some(b as u32);
            }
            for b in blocks_of(track) {
                let a = slot(b, n);
                // Where tracks get longer a sector hits all that it overlaps, else the one in which it begins.
                let end = if m > n { ((a + 1) * m).div_ceil(n) } else { a * m / n + 1 };
                victims[b as usize].extend((a * m / n..end).filter_map(|s| at_slot[(s % m) as usize]));
            }
        }
    }
    victims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives;

    /// The product's interference, asked block by block, destroys the same.
    #[test]
    fn agrees_with_the_drives_interference() {
        let shared =
            drives::all().into_iter().filter_map(|(name, d)| Some((name, Arc::new(d.with_waves(3).ok()?))));
        for (name, drive) in drives::all().into_iter().chain(shared) {
            let (g, interference) = (drive.geometry(), drive.interference());
            let plain = PlainMedium::new(g, interference);
            for b in 0..g.blocks().0 {
                let mut want = plain.victims[b as usize].clone();
                let mut got = Vec::new();
                interference.victims(g, Pba(b), smrlab_units::Blocks(1), &mut |hit| {
                    got.extend(hit.map(|v| v as u32));
                });
                want.sort_unstable();
                got.sort_unstable();
                got.dedup();
                assert_eq!(got, want, "{name}: block {b}");
            }
        }
    }
}
