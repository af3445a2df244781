//! What the kernel and a server of ublk tell each other: numbers of commands, and structures as bytes in native order.
//!
//! Source: the kernel's interface for programs, `include/uapi/linux/ublk_cmd.h`, and its documentation, `block/ublk.rst`.

use smrlab_units::Blocks;

/// Commands to `/dev/ublk-control`: `_IOWR('u', n, struct ublksrv_ctrl_cmd)`, with the last one `_IOR`.
pub(crate) const ADD_DEV: u32 = iowr(0x04, CONTROL_BYTES);
pub(crate) const DEL_DEV: u32 = iowr(0x05, CONTROL_BYTES);
pub(crate) const START_DEV: u32 = iowr(0x06, CONTROL_BYTES);
pub(crate) const STOP_DEV: u32 = iowr(0x07, CONTROL_BYTES);
pub(crate) const SET_PARAMS: u32 = iowr(0x08, CONTROL_BYTES);
pub(crate) const START_RECOVERY: u32 = iowr(0x10, CONTROL_BYTES);
pub(crate) const END_RECOVERY: u32 = iowr(0x11, CONTROL_BYTES);
pub(crate) const GET_FEATURES: u32 = ior(0x13, CONTROL_BYTES);

/// Commands of a queue, to `/dev/ublkcN`: `_IOWR('u', n, struct ublksrv_io_cmd)`.
pub(crate) const FETCH: u32 = iowr(0x20, 16);
pub(crate) const COMMIT_AND_FETCH: u32 = iowr(0x21, 16);

/// Bytes of `struct ublksrv_ctrl_cmd`, `ublksrv_ctrl_dev_info`, `ublk_params` and `ublksrv_io_desc`.
pub(crate) const CONTROL_BYTES: u32 = 32;
pub(crate) const INFO_BYTES: usize = 64;
pub(crate) const PARAMS_BYTES: usize = 112;
pub(crate) const REQUEST_BYTES: usize = 24;

/// What a device can do (`UBLK_F_...`).
pub(crate) const USER_RECOVERY: u64 = 1 << 3;
pub(crate) const RECOVERY_REISSUE: u64 = 1 << 4;
pub(crate) const COMMAND_ENCODED: u64 = 1 << 6;
pub(crate) const USER_COPY: u64 = 1 << 7;
pub(crate) const ZONED: u64 = 1 << 8;

/// What is said of the disk (`UBLK_ATTR_...`).
const ROTATIONAL: u32 = 1 << 1;
const VOLATILE_CACHE: u32 = 1 << 2;
const FUA: u32 = 1 << 3;

/// Where the data of a request are in `/dev/ublkcN`: `UBLKSRV_IO_BUF_OFFSET` and the tag above 25 bits. There is one queue.
pub(crate) const fn data_at(tag: u16) -> u64 {
    0x8000_0000 + ((tag as u64) << 25)
}

const fn iowr(number: u32, bytes: u32) -> u32 {
    3 << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

const fn ior(number: u32, bytes: u32) -> u32 {
    2 << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

/// Bytes of a structure, member after member.
#[derive(Default)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    pub(crate) fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// All of it, and zeroes up to `N` bytes.
    pub(crate) fn array<const N: usize>(self) -> [u8; N] {
        let mut out = [0; N];
        out[..self.0.len()].copy_from_slice(&self.0);
        out
    }
}

/// `struct ublksrv_ctrl_dev_info` of a device that is to be added under a number of the kernel's choice.
pub(crate) fn info(depth: u16, transfer: u32, flags: u64) -> [u8; INFO_BYTES] {
    let head = Packed::default().u16(1).u16(depth).u16(0).u16(0).u32(transfer).u32(u32::MAX);
    head.u32(0).u32(0).u64(flags).array()
}

/// The number of the device in an answered `info`.
pub(crate) fn number_of(info: &[u8; INFO_BYTES]) -> u32 {
    u32::from_ne_bytes([info[12], info[13], info[14], info[15]])
}

/// `struct ublksrv_ctrl_cmd` about a device, with the address and length of a structure, and a number.
pub(crate) fn control(id: u32, place: (u64, usize), data: u64) -> [u8; 80] {
    // The queue is named only where affinity is asked for.
    Packed::default().u32(id).u16(u16::MAX).u16(place.1 as u16).u64(place.0).u64(data).array()
}

/// What the kernel is told of a disk.
pub(crate) struct Shape {
    /// Bytes of a logical and of a physical block; powers of two.
    pub logical: u32,
    pub physical: u32,
    pub size: Blocks,
    /// What one request moves at most.
    pub transfer: Blocks,
    /// A zone, or none.
    pub zone: Blocks,
    /// Zones that may be open, or 0.
    pub open: u32,
    /// Whether discards free anything.
    pub discards: bool,
}

/// `struct ublk_params`.
pub(crate) fn params(shape: &Shape) -> [u8; PARAMS_BYTES] {
    let shift = |bytes: u32| bytes.trailing_zeros() as u8;
    let zones = shape.zone > Blocks::ZERO;
    let types = 1 | 2 | u32::from(zones) << 3;
    let out = Packed::default().u32(PARAMS_BYTES as u32).u32(types);
    let (logical, physical) = (shift(shape.logical), shift(shape.physical));
    let out = out.u32(ROTATIONAL | VOLATILE_CACHE | FUA).u8(logical).u8(physical).u8(physical).u8(physical);
    let out = out.u32(shape.transfer.0 as u32).u32(shape.zone.0 as u32).u64(shape.size.0).u64(0);
    // A discard, or zeroes, are of at most 1 GiB.
    let most = if shape.discards { 1 << 21 } else { 0 };
    let out = out.u32(0).u32(shape.physical).u32(most).u32(1 << 21).u16(u16::from(shape.discards)).u16(0);
    // Numbers of the device's nodes: the kernel's to say.
    let out = out.u32(0).u32(0).u32(0).u32(0);
    // Appends are of at most a transfer.
    let append = if zones { shape.transfer.0 as u32 } else { 0 };
    out.u32(shape.open).u32(0).u32(append).array()
}

/// What a request of the kernel's asks for (`UBLK_IO_OP_...`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write,
    Flush,
    Discard,
    Zeroes,
    ZoneOpen,
    ZoneClose,
    ZoneFinish,
    ZoneAppend,
    ZoneResetAll,
    ZoneReset,
    ReportZones,
}

/// A request: `struct ublksrv_io_desc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// None where it is something else.
    pub op: Option<Op>,
    /// It is to be durable.
    pub fua: bool,
    /// In blocks of 512 bytes; of a report the number of zones.
    pub blocks: u32,
    pub start: u64,
}

impl Request {
    pub(crate) fn parse(bytes: [u8; REQUEST_BYTES]) -> Self {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let flags = word(0);
        let op = match flags & 0xff {
            0 => Some(Op::Read),
            1 => Some(Op::Write),
            2 => Some(Op::Flush),
            3 => Some(Op::Discard),
            5 => Some(Op::Zeroes),
            10 => Some(Op::ZoneOpen),
            11 => Some(Op::ZoneClose),
            12 => Some(Op::ZoneFinish),
            13 => Some(Op::ZoneAppend),
            14 => Some(Op::ZoneResetAll),
            15 => Some(Op::ZoneReset),
            18 => Some(Op::ReportZones),
            _ => None,
        };
        let mut start = [0; 8];
        start.copy_from_slice(&bytes[8..16]);
        Self { op, fua: flags & 1 << 13 != 0, blocks: word(4), start: u64::from_ne_bytes(start) }
    }
}

/// `struct ublksrv_io_cmd` of the only queue: how a request ended, and where an append began.
pub(crate) fn done(tag: u16, result: i32, appended: u64) -> [u8; 16] {
    Packed::default().u16(0).u16(tag).u32(result as u32).u64(appended).array()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_header() {
        assert_eq!(ADD_DEV, 0xc020_7504);
        assert_eq!(DEL_DEV, 0xc020_7505);
        assert_eq!(GET_FEATURES, 0x8020_7513);
        assert_eq!(COMMIT_AND_FETCH, 0xc010_7521);
        assert_eq!(data_at(3), 0x8600_0000);
    }

    #[test]
    fn structures_are_laid_out_as_in_the_header() {
        let info = info(64, 1 << 20, USER_COPY);
        assert_eq!((info[0], info[2], info[10]), (1, 64, 0x10));
        assert_eq!((number_of(&info), info[24]), (u32::MAX, 0x80));
        let shape = Shape {
            logical: 512,
            physical: 4096,
            size: Blocks(99),
            transfer: Blocks(2048),
            zone: Blocks(8),
            open: 5,
            discards: false,
        };
        let u32s = |shape: &Shape, at: [usize; 9]| {
            let bytes = params(shape);
            at.map(|at| u32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[at + i])))
        };
        // Which parts there are (zones: 8); a zone, alignment, granularity and limits of discards and zeroes, stretches of a discard;
        // zones open and bytes of an append.
        let at = [4, 20, 40, 44, 48, 52, 56, 76, 84];
        assert_eq!(u32s(&shape, at), [11, 8, 0, 4096, 0, 1 << 21, 0, 5, 2048]);
        let plain = Shape { zone: Blocks::ZERO, open: 0, discards: true, ..shape };
        assert_eq!(u32s(&plain, at), [3, 0, 0, 4096, 1 << 21, 1 << 21, 1, 0, 0]);
        let params = params(&shape);
        // basic: attributes, shifts, transfer, zone, size; then the limits of zones.
        assert_eq!((params[0], params[4], params[8]), (112, 11, 14));
        assert_eq!(params[12..16], [9, 12, 12, 12]);
        assert_eq!((params[17], params[20], params[24]), (8, 8, 99));
        assert_eq!((params[76], params[85]), (5, 8));
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let bytes = Packed::default().u32(1 | 1 << 13).u32(16).u64(1 << 40).u64(0).array();
        assert_eq!(
            Request::parse(bytes),
            Request { op: Some(Op::Write), fua: true, blocks: 16, start: 1 << 40 }
        );
        let unknown = Packed::default().u32(77).array();
        assert_eq!(Request::parse(unknown).op, None);
    }
}
