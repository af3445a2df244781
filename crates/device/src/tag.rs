//! Kinds of log records; a layer's own have [`LAYER`] set.

/// Of a log: blocks `words[0]..words[1]` were written.
pub const WRITE: u32 = 1;
/// Of a checkpoint: blocks `words[0]..words[1]` are a run of number `words[2]`.
pub const RUN: u32 = 3;
/// Blocks `words[0]..words[1]` were made never written.
pub const FORGET: u32 = 2;
/// The layer's record with the tag in the lower bits.
pub const LAYER: u32 = 1 << 31;
/// Kept among the layer's: the host wrote its blocks `words[0]..words[1]`, for the first time or again.
pub const HOST: u32 = LAYER - 1;
