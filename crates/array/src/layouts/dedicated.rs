//! A drive for each source: requests of stream `s` go to disk `s`, of which each has a space of its own.

use super::mapped::{Extent, Map, Mapped};
use crate::MemberId;
use crate::entry::{ArrayContext, ArrayEntry, DISKS};
use smrlab_stl::HostRequest;
use smrlab_units::Blocks;
use smrlab_units::spec::Values;

/// See the [module](self).
pub struct Dedicated {
    disks: u16,
    host: Blocks,
}

impl Map for Dedicated {
    fn host_blocks(&self) -> Blocks {
        self.host
    }

    fn spaces(&self) -> u16 {
        self.disks
    }

    fn extents(&self, r: &HostRequest, out: &mut Vec<Extent>) {
        let member = MemberId(u32::from(r.stream % self.disks));
        out.push(Extent { member, lba: r.lba, blocks: r.blocks, host: Blocks::ZERO });
    }
}

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "dedicated",
    summary: "each source of a mixed workload has a drive to itself",
    reference: "Le, Holliday, Amer (FAST 2012, work in progress): the layout called dedicated",
    page: "\
A request goes to drive `stream mod d`, at its own LBA: with several traces (`--trace` more than once) each is a stream. \
Every source sees the space of one drive, and a prefill writes each of them. Nothing can stand above it that sees one space. It is no layout for one host, but the bound to which separation can lead.",
    params: &[DISKS],
    ..ArrayEntry::new(|context: &ArrayContext<'_>, _: &Values| {
        let disks = context.disks().len() as u16;
        Ok(Box::new(Mapped::new(Dedicated { disks, host: context.least() }, u32::from(disks))))
    })
};
