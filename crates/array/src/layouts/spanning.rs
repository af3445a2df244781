//! Members one behind the other.

use super::mapped::{Extent, Map, Mapped};
use crate::MemberId;
use crate::entry::{ArrayContext, ArrayEntry, DISKS};
use smrlab_stl::HostRequest;
use smrlab_units::spec::Values;
use smrlab_units::{Blocks, Lba};

/// See the [module](self).
pub struct Spanning {
    /// Where each member begins, and the end.
    starts: Vec<u64>,
}

impl Spanning {
    /// Of members of these sizes.
    pub fn new(members: &[Blocks]) -> Self {
        let mut starts = vec![0];
        for blocks in members {
            starts.push(starts[starts.len() - 1] + blocks.0);
        }
        Self { starts }
    }
}

impl Map for Spanning {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.starts[self.starts.len() - 1])
    }

    fn extents(&self, r: &HostRequest, out: &mut Vec<Extent>) {
        let (mut at, end) = (r.lba.0, r.lba.0 + r.blocks.0);
        let mut member = self.starts.partition_point(|s| *s <= at) - 1;
        while at < end {
            let n = end.min(self.starts[member + 1]) - at;
            out.push(Extent {
                member: MemberId(member as u32),
                lba: Lba(at - self.starts[member]),
                blocks: Blocks(n),
                host: Blocks(at - r.lba.0),
            });
            at += n;
            member += 1;
        }
    }
}

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "spanning",
    summary: "drives one behind the other, without redundancy",
    reference: "Le, Holliday, Amer (FAST 2012, work in progress): the layout called pure",
    page: "\
The host's space is that of the first drive, then that of the second, and so on: `disk = a div C`, `lba = a mod C`. A \
request that crosses a border becomes one request on each side. A lost drive takes its part of the space with it: \
requests there are refused, all others are served.",
    params: &[DISKS],
    ..ArrayEntry::new(|context: &ArrayContext<'_>, _: &Values| {
        let map = Spanning::new(context.disks());
        Ok(Box::new(Mapped::new(map, context.disks().len() as u32)))
    })
};
