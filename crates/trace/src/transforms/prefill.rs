//! Filling a drive before measuring.

use crate::{Batch, Record, TraceError, TraceSource};
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// The order in which the space is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From 0 up.
    Sequential,
    /// Each piece once, in an order that jumps about.
    Random,
}

/// Writes that cover the space from 0 on exactly once, all arriving at 0.
pub struct Prefill {
    space: u64,
    piece: u64,
    pieces: u64,
    next: u64,
    step: u64,
    first: u64,
}

impl Prefill {
    /// Covers `space` by requests of `piece` blocks (the last may be shorter); `seed` matters for [`Order::Random`].
    ///
    /// # Errors
    /// When `piece` is 0 or above 2^32 - 1 blocks.
    pub fn new(space: Blocks, piece: Blocks, order: Order, seed: u64) -> Result<Self, TraceError> {
        if piece.0 == 0 || piece.0 > u64::from(u32::MAX) {
            return Err(TraceError::Request(
                "prefill: requests must have from 1 to 2^32-1 blocks".to_owned(),
            ));
        }
        let pieces = space.0.div_ceil(piece.0);
        let mut rng = crate::rng::Rng::new(seed);
        let (step, first) = match order {
            Order::Sequential => (1, 0),
            Order::Random => (crate::rng::coprime(pieces, rng.bits()), rng.below(pieces)),
        };
        Ok(Self { space: space.0, piece: piece.0, pieces, next: 0, step, first })
    }
}

impl TraceSource for Prefill {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        out.clear();
        let end = self.pieces.min(self.next + Batch::ROWS as u64);
        for i in self.next..end {
            let place =
                (u128::from(i) * u128::from(self.step) + u128::from(self.first)) % u128::from(self.pieces);
            let lba = place as u64 * self.piece;
            out.push(Record {
                arrival: SimTime::ZERO,
                op: HostOp::Write,
                lba: Lba(lba),
                blocks: self.piece.min(self.space - lba) as u32,
                device: 0,
                stream: 0,
            });
        }
        self.next = end;
        Ok(!out.is_empty())
    }
    fn progress(&self) -> Option<f64> {
        Some(self.next as f64 / self.pieces.max(1) as f64)
    }
}
