//! A disk is asked for its zones, by REPORT ZONES of ZBC. It is only read.

use super::sg::Port;
use crate::target::zone_with_room;
use smrlab_scsi::ask::{read_capacity, report_zones};
use smrlab_scsi::says::{logical_block, reported_zones};
use smrlab_units::Zone;

/// Zones in an answer.
const AT_ONCE: usize = 255;

/// The first zone that can be written, with room behind its write pointer; none where the disk has no zones, or takes no such commands.
pub(super) fn zone(port: &mut impl Port) -> Option<Zone> {
    let mut capacity = [0; 8];
    port.ask(&read_capacity(), &mut capacity).ok()?;
    let logical = logical_block(&capacity)?;
    let (mut from, mut answer) = (0, vec![0; 64 * (1 + AT_ONCE)]);
    loop {
        answer.fill(0);
        port.ask(&report_zones(from, answer.len() as u32), &mut answer).ok()?;
        let zones = reported_zones(&answer, logical);
        let next = zones.last()?.end().0 * 512 / u64::from(logical);
        if let Some(zone) = zone_with_room(zones) {
            return Some(zone);
        }
        if next <= from {
            return None;
        }
        from = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::{Blocks, Lba, ZoneCondition, ZoneKind};
    use std::io;

    /// A disk of 300 zones of 2 MiB: 256 conventional ones, a full one, one with an open pointer near its end, one closed at 8 KiB.
    struct Zoned {
        logical: u32,
        asked: Vec<u64>,
    }

    impl Port for Zoned {
        fn ask(&mut self, cdb: &[u8], answer: &mut [u8]) -> io::Result<()> {
            let big = |n: u64| n.to_be_bytes();
            let each = (2 << 20) / u64::from(self.logical);
            match cdb[0] {
                0x25 => {
                    assert_eq!(cdb, [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                    answer[4..].copy_from_slice(&self.logical.to_be_bytes());
                }
                0x95 => {
                    let from = u64::from_be_bytes(cdb[2..10].try_into().unwrap());
                    assert_eq!(
                        (cdb[1], &cdb[10..], answer.len()),
                        (0, &[0, 0, 0x40, 0, 0x80, 0][..], 0x4000)
                    );
                    self.asked.push(from);
                    let zones = (from / each..300).take(255);
                    answer[..4].copy_from_slice(&(64 * zones.clone().count() as u32).to_be_bytes());
                    for (zone, out) in zones.zip(answer[64..].chunks_mut(64)) {
                        let (kind, condition, pointer) = match zone {
                            0..256 => (1, 0x0, u64::MAX),
                            256 => (2, 0xe, u64::MAX),
                            257 => (2, 0x2, (zone + 1) * each - 4096 / u64::from(self.logical)),
                            258 => (2, 0x4, zone * each + 8192 / u64::from(self.logical)),
                            _ => (2, 0x1, zone * each),
                        };
                        (out[0], out[1]) = (kind, condition << 4);
                        out[8..16].copy_from_slice(&big(each));
                        out[16..24].copy_from_slice(&big(zone * each));
                        out[24..32].copy_from_slice(&big(pointer));
                    }
                }
                _ => return Err(io::ErrorKind::Unsupported.into()),
            }
            Ok(())
        }

        fn tell(&mut self, cdb: &[u8], _: &[u8]) -> io::Result<()> {
            panic!("it is only asked: {cdb:?}");
        }
    }

    /// In blocks of 512 bytes whatever the disk's own are; the report goes on where an answer ended.
    #[test]
    fn the_first_zone_with_room_behind_its_pointer_is_found() {
        for logical in [512, 4096] {
            let mut disk = Zoned { logical, asked: Vec::new() };
            let found = zone(&mut disk);
            let (start, blocks) = (Lba(258 * 4096), Blocks(4096));
            let (kind, condition) = (ZoneKind::SequentialRequired, ZoneCondition::Closed);
            let pointer = Some(start + Blocks(16));
            assert_eq!(found, Some(Zone { start, blocks, kind, condition, pointer, non_sequential: false }));
            assert_eq!(disk.asked, [0, 255 * ((2 << 20) / u64::from(logical))]);
        }
    }

    /// What takes no commands, or has no such zone, or repeats itself, ends the search.
    #[test]
    fn a_disk_without_such_a_zone_has_none() {
        struct Says(Vec<u8>);
        impl Port for Says {
            fn ask(&mut self, cdb: &[u8], answer: &mut [u8]) -> io::Result<()> {
                let data: &[u8] = if cdb[0] == 0x25 { &[0, 0, 0, 0, 0, 0, 2, 0] } else { &self.0 };
                let length = data.len().min(answer.len());
                answer[..length].copy_from_slice(&data[..length]);
                if data.is_empty() { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
            }
            fn tell(&mut self, _: &[u8], _: &[u8]) -> io::Result<()> {
                Ok(())
            }
        }
        let mut one = vec![0; 128];
        (one[3], one[64], one[65], one[79]) = (64, 2, 0xe0, 64);
        for answer in [vec![], vec![0; 64], one] {
            assert_eq!(zone(&mut Says(answer.clone())), None, "{answer:?}");
        }
    }
}
