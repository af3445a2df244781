//! Blocks dealt out over all members in turn: RAID-0.

use super::mapped::{Extent, Map, Mapped};
use crate::MemberId;
use crate::entry::{ArrayContext, ArrayEntry, CHUNK, DISKS};
use smrlab_stl::HostRequest;
use smrlab_units::spec::Values;
use smrlab_units::{Blocks, Lba};

/// See the [module](self).
pub struct Striped {
    chunk: u64,
    disks: u64,
    host: Blocks,
}

impl Striped {
    /// With chunks of `chunk` on members of these sizes, the smallest of which counts.
    pub fn new(chunk: Blocks, members: &[Blocks]) -> Self {
        let least = members.iter().map(|b| b.0).min().unwrap_or(0);
        let disks = members.len() as u64;
        Self { chunk: chunk.0, disks, host: Blocks(least / chunk.0 * chunk.0 * disks) }
    }
}

impl Map for Striped {
    fn host_blocks(&self) -> Blocks {
        self.host
    }

    fn extents(&self, r: &HostRequest, out: &mut Vec<Extent>) {
        let (mut at, end) = (r.lba.0, r.lba.0 + r.blocks.0);
        while at < end {
            let (chunk, within) = (at / self.chunk, at % self.chunk);
            let n = (self.chunk - within).min(end - at);
            out.push(Extent {
                member: MemberId((chunk % self.disks) as u32),
                lba: Lba(chunk / self.disks * self.chunk + within),
                blocks: Blocks(n),
                host: Blocks(at - r.lba.0),
            });
            at += n;
        }
    }
}

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "striped",
    summary: "blocks dealt out over the drives in turn (RAID-0), without redundancy",
    reference: "Patterson, Gibson, Katz (SIGMOD 1988); Le, Holliday, Amer (FAST 2012, work in progress) with a chunk of one block",
    page: "\
Chunk `c` of the host's space is on drive `c mod d`, at chunk `c div d`. A request asks each drive that it touches \
once, for a run of its blocks. A lost drive takes part of every larger range with it: requests that touch it are refused.",
    params: &[DISKS, CHUNK],
    ..ArrayEntry::new(|context: &ArrayContext<'_>, values: &Values| {
        let map = Striped::new(context.chunk(values)?, context.disks());
        Ok(Box::new(Mapped::new(map, context.disks().len() as u32)))
    })
};
