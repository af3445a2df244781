//! The records of the persistent cache: what each says with its three words.

/// Blocks `words[0]`, `words[1]` in number, went to the log: band `words[2] >> 32` of it, offset `words[2] & 0xffff_ffff`;
/// bit 63: to the end of the last packet.
pub(super) const APPEND: u32 = 1;
/// Blocks `words[0]`, `words[1]` in number, were discarded.
pub(super) const DISCARD: u32 = 2;
/// Native band `words[0]` is taken for cleaning; `words[1]` says where its packets count, as in [`JOB`].
pub(super) const TAKE: u32 = 3;
/// A sub-step of the round is done.
pub(super) const STEP: u32 = 4;
/// The band under cleaning is about to be written in place.
pub(super) const HOME: u32 = 5;
/// Requests wait for whole rounds (1) or not (0).
pub(super) const PRESSURE: u32 = 6;
/// Native band `words[0]`, of which nothing lies natively from offset `words[1]` on, is about to be written directly from there.
pub(super) const OPEN: u32 = 7;
/// Blocks `words[0]`, `words[1]` in number, were written directly.
pub(super) const DIRECT: u32 = 8;

/// Packets of a band under cleaning count at their last blocks.
pub(super) const BY_LAST: u64 = 1;

// Of checkpoints only.
/// A packet: lap and offset; length and data; writes and what lies before it.
pub(super) const PACKET: u32 = 20;
/// What the last packet was written with: LBA, blocks.
pub(super) const SPAN: u32 = 21;
/// An extent: LBA; blocks and offset in the packet; packet, counted from the first.
pub(super) const EXTENT: u32 = 22;
/// A band under cleaning: band; scratch band and tracks before; where its packets count ([`BY_LAST`], or 0 for their first blocks) and
/// sub-steps done.
pub(super) const JOB: u32 = 23;
/// What the last such band has taken, as an extent.
pub(super) const TAKEN: u32 = 24;
/// The log's head: lap and offset; length; where the disk's head is: native band (or none) and offset.
pub(super) const HEAD: u32 = 25;
/// Scratch band and tracks; where the packet begins that was read last and packets since the journal's commit; number of the first packet.
pub(super) const STATE: u32 = 26;
/// A stream that bypasses the log: band, next block.
pub(super) const STREAM: u32 = 27;
/// Blocks whose newest copy lies natively.
pub(super) const WRITTEN: u32 = 28;
