//! The reference media: what a medium that really shingles holds after every write, cut and tear, and where the published
//! emulator reads what was overwritten. Block by block; not meant to be fast.

use smrlab_disk::{DriveModel, Geometry, Interference};
use smrlab_units::{BLOCK_BYTES, Blocks, Pba};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

const BYTES: usize = BLOCK_BYTES as usize;
/// Blocks that are kept together; the rest of an untouched medium costs nothing.
const CHUNK: u64 = 64;

/// What a block holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockState {
    /// Nothing was ever written here: zeroes.
    #[default]
    Blank,
    /// What write number `op` wrote.
    Written {
        /// Number of the write, from 1.
        op: u64,
    },
    /// Write number `op` destroyed it when it wrote `writer`: the bytes here are now those.
    Destroyed {
        /// Number of the write.
        op: u64,
        /// The block whose writing destroyed this one.
        writer: Pba,
    },
    /// The power failed while write number `op` was at this block.
    Torn {
        /// Number of the write.
        op: u64,
    },
}

/// A block that cannot be read, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFault {
    /// The first such block.
    pub pba: Pba,
    /// Destroyed or torn.
    pub state: BlockState,
}

impl fmt::Display for ReadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            BlockState::Destroyed { op, writer } => {
                write!(f, "block {} was destroyed by write {op} at block {writer}", self.pba)
            }
            BlockState::Torn { op } => write!(f, "block {} was torn in write {op}", self.pba),
            _ => write!(f, "block {} is readable", self.pba),
        }
    }
}

impl std::error::Error for ReadFault {}

/// How much of a write reaches the medium before the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Whole blocks from the beginning.
    pub keep: Blocks,
    /// Whether the next block is torn: its first half is new, and it can no longer be read.
    pub torn: bool,
}

#[derive(Clone)]
struct Chunk {
    bytes: Box<[u8]>,
    states: [BlockState; CHUNK as usize],
}

impl Default for Chunk {
    fn default() -> Self {
        Self { bytes: vec![0; CHUNK as usize * BYTES].into(), states: [BlockState::Blank; CHUNK as usize] }
    }
}

/// In memory; memory grows with what was written. A clone is a snapshot.
#[derive(Clone)]
pub struct ByteMedium {
    geometry: Arc<Geometry>,
    interference: Interference,
    chunks: BTreeMap<u64, Chunk>,
    op: u64,
}

impl ByteMedium {
    /// A blank medium.
    pub fn new(geometry: Arc<Geometry>, interference: Interference) -> Self {
        Self { geometry, interference, chunks: BTreeMap::new(), op: 0 }
    }

    /// A blank medium of a drive.
    pub fn of(drive: &DriveModel) -> Self {
        Self::new(drive.geometry().clone(), drive.interference())
    }

    /// What a block holds.
    pub fn state(&self, pba: Pba) -> BlockState {
        self.chunks.get(&(pba.0 / CHUNK)).map_or(BlockState::Blank, |c| c.states[(pba.0 % CHUNK) as usize])
    }

    /// Reads what is physically there, destroyed or not.
    pub fn read_raw(&self, pba: Pba, buf: &mut [u8]) {
        self.check(pba, buf.len());
        for (b, out) in (pba.0..).zip(buf.chunks_exact_mut(BYTES)) {
            match self.chunks.get(&(b / CHUNK)) {
                Some(c) => {
                    let at = (b % CHUNK) as usize * BYTES;
                    out.copy_from_slice(&c.bytes[at..at + BYTES]);
                }
                None => out.fill(0),
            }
        }
    }

    /// Reads whole blocks from `pba` on. The buffer is filled in any case, with what is physically there.
    ///
    /// # Errors
    /// The first block that was destroyed or torn.
    pub fn read(&self, pba: Pba, buf: &mut [u8]) -> Result<(), ReadFault> {
        self.read_raw(pba, buf);
        let blocks = Blocks((buf.len() / BYTES) as u64);
        for pba in pba.span(blocks).map(Pba) {
            let state = self.state(pba);
            if let BlockState::Destroyed { .. } | BlockState::Torn { .. } = state {
                return Err(ReadFault { pba, state });
            }
        }
        Ok(())
    }

    /// Writes whole blocks in ascending order from `pba` on and destroys what interferes; returns the number of the write, from 1.
    pub fn write(&mut self, pba: Pba, data: &[u8]) -> u64 {
        self.write_cut(pba, data, Cut { keep: Blocks::holding(data.len() as u64), torn: false })
    }

    /// As [`write`](Self::write), but the power fails on the way.
    pub fn write_cut(&mut self, pba: Pba, data: &[u8], cut: Cut) -> u64 {
        self.check(pba, data.len());
        self.op += 1;
        let op = self.op;
        for (i, bytes) in data.chunks_exact(BYTES).enumerate() {
            let (i, b) = (i as u64, pba.0 + i as u64);
            if i < cut.keep.0 {
                self.write_block(b, bytes, BlockState::Written { op });
            } else {
                if cut.torn {
                    self.write_block(b, &bytes[..BYTES / 2], BlockState::Torn { op });
                }
                break;
            }
        }
        op
    }

    fn check(&self, pba: Pba, bytes: usize) {
        assert!(bytes.is_multiple_of(BYTES), "{bytes} bytes are no whole blocks");
        let end = pba.0 + (bytes / BYTES) as u64;
        assert!(end <= self.geometry.blocks().0, "blocks {pba}..{end} lie beyond the medium");
    }

    fn set(&mut self, pba: u64, bytes: &[u8], state: BlockState) {
        let chunk = self.chunks.entry(pba / CHUNK).or_default();
        let i = (pba % CHUNK) as usize;
        chunk.bytes[i * BYTES..i * BYTES + bytes.len()].copy_from_slice(bytes);
        chunk.states[i] = state;
    }

    /// One block, whole or in part, and its victims, which get the same bytes.
    fn write_block(&mut self, pba: u64, bytes: &[u8], state: BlockState) {
        let (op, geometry, interference) = (self.op, self.geometry.clone(), self.interference);
        self.set(pba, bytes, state);
        let destroyed = BlockState::Destroyed { op, writer: Pba(pba) };
        interference.victims(&geometry, Pba(pba), Blocks(1), &mut |range| {
            for victim in range {
                self.set(victim, bytes, destroyed);
            }
        });
    }
}

/// Layers also copy blocks that nobody reads, destroyed ones among them: so reads give what is there.
impl smrlab_stl::Medium for ByteMedium {
    type Error = std::convert::Infallible;

    fn read(&mut self, pba: Pba, out: &mut [u8]) -> Result<(), Self::Error> {
        self.read_raw(pba, out);
        Ok(())
    }

    fn write(&mut self, pba: Pba, data: &[u8]) -> Result<(), Self::Error> {
        Self::write(self, pba, data);
        Ok(())
    }
}

/// The published emulator's redirection map (Pitchumani et al. 2012, section 4), sector by sector: for every overwritten block the
/// block whose data are read there. The plain reference for a served device's raw mode; not meant to be fast.
#[derive(Clone, Debug)]
pub struct RedirectMap {
    geometry: Arc<Geometry>,
    interference: Interference,
    map: BTreeMap<u64, u64>,
}

impl RedirectMap {
    /// Nothing overwritten.
    pub fn new(geometry: Arc<Geometry>, interference: Interference) -> Self {
        Self { geometry, interference, map: BTreeMap::new() }
    }

    /// Notes a write: each block loses its entry and overwrites its victims, in ascending order.
    pub fn write(&mut self, pba: Pba, blocks: Blocks) {
        let Self { geometry, interference, map } = self;
        for b in pba.span(blocks) {
            map.remove(&b);
            interference.victims(geometry, Pba(b), Blocks(1), &mut |range| {
                map.extend(range.map(|victim| (victim, b)));
            });
        }
    }

    /// Whose data are read at `pba`: itself, or the block that overwrote it. One level, never more.
    pub fn source(&self, pba: Pba) -> Pba {
        Pba(self.map.get(&pba.0).copied().unwrap_or(pba.0))
    }

    /// How many blocks are overwritten.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether no block is overwritten.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
