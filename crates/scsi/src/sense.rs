//! Sense data: what a device says when it does not do what it was asked, as SPC-5, SBC-4 and ZBC-2 number it.

/// Why a command ended with CHECK CONDITION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// Sense key, 4 bits.
    pub key: u8,
    /// Additional sense code and its qualifier.
    pub code: [u8; 2],
    /// INFORMATION: the logical block that it is about, or the first byte that differed.
    pub block: Option<u64>,
    /// The byte of the CDB that is at fault.
    pub field: Option<u16>,
    /// How much is done of what the disk is at, in 65536ths.
    pub progress: Option<u16>,
}

/// A sense key with a code.
const fn sense(key: u8, asc: u8, ascq: u8) -> Sense {
    Sense { key, code: [asc, ascq], block: None, field: None, progress: None }
}

impl Sense {
    /// Bytes of sense data, at most: descriptors of a block and of a field.
    pub(crate) const LONGEST: u8 = 28;
    /// Nothing to say.
    pub const NONE: Self = sense(0x0, 0x00, 0x00);
    /// The disk is stopped: a command has to start it.
    pub const STOPPED: Self = sense(0x2, 0x04, 0x02);
    /// The disk is being formatted.
    pub const FORMATTING: Self = sense(0x2, 0x04, 0x04);
    /// The disk is being sanitized.
    pub const SANITIZING: Self = sense(0x2, 0x04, 0x1b);
    /// Formatting failed: the disk has to be formatted again.
    pub const FORMAT_FAILED: Self = sense(0x3, 0x31, 0x00);
    /// Sanitizing failed: the disk has to be sanitized again.
    pub const SANITIZE_FAILED: Self = sense(0x3, 0x31, 0x03);
    /// The medium cannot give the data back.
    pub const UNRECOVERED_READ: Self = sense(0x3, 0x11, 0x00);
    /// The medium does not take the data.
    pub const WRITE_ERROR: Self = sense(0x3, 0x0c, 0x00);
    /// The device itself is at fault.
    pub const INTERNAL: Self = sense(0x4, 0x44, 0x00);
    /// The device does not know the command.
    pub const INVALID_OPCODE: Self = sense(0x5, 0x20, 0x00);
    /// A block beyond the last one.
    pub const OUT_OF_RANGE: Self = sense(0x5, 0x21, 0x00);
    /// A write that does not begin at the zone's write pointer.
    pub const UNALIGNED_WRITE: Self = sense(0x5, 0x21, 0x04);
    /// A write that goes on behind the end of its zone.
    pub const WRITE_BOUNDARY: Self = sense(0x5, 0x21, 0x05);
    /// A read of what was not written since its zone was reset.
    pub const READ_INVALID: Self = sense(0x5, 0x21, 0x06);
    /// A read over the end of a zone with a write pointer.
    pub const READ_BOUNDARY: Self = sense(0x5, 0x21, 0x07);
    /// A read or write of blocks between two zones.
    pub const GAP: Self = sense(0x5, 0x21, 0x09);
    /// Something in the CDB is not accepted.
    pub const INVALID_FIELD: Self = sense(0x5, 0x24, 0x00);
    /// There is no such logical unit.
    pub const NO_SUCH_UNIT: Self = sense(0x5, 0x25, 0x00);
    /// The list of parameters ends before it is whole.
    pub const LIST_LENGTH: Self = sense(0x5, 0x1a, 0x00);
    /// Something in the list of parameters is not accepted.
    pub const INVALID_LIST: Self = sense(0x5, 0x26, 0x00);
    /// The host's persistent reservation is one of another type.
    pub const INVALID_RELEASE: Self = sense(0x5, 0x26, 0x04);
    /// No more hosts can be registered.
    pub const REGISTRATION_RESOURCES: Self = sense(0x5, 0x55, 0x04);
    /// Another host ended all registrations and reservations.
    pub const RESERVATIONS_PREEMPTED: Self = sense(0x6, 0x2a, 0x03);
    /// The persistent reservation that the host shared is over, or another one.
    pub const RESERVATIONS_RELEASED: Self = sense(0x6, 0x2a, 0x04);
    /// Another host ended this one's registration.
    pub const REGISTRATIONS_PREEMPTED: Self = sense(0x6, 0x2a, 0x05);
    /// Another initiator changed a mode page.
    pub const MODES_CHANGED: Self = sense(0x6, 0x2a, 0x01);
    /// Another initiator aborted commands of this one.
    pub const COMMANDS_CLEARED: Self = sense(0x6, 0x2f, 0x00);
    /// The logical unit was reset since the initiator's last command.
    pub const WAS_RESET: Self = sense(0x6, 0x29, 0x00);
    /// The blocks cannot be written.
    pub const WRITE_PROTECTED: Self = sense(0x7, 0x27, 0x00);
    /// There is no room left.
    pub const NO_SPACE: Self = sense(0x7, 0x27, 0x07);
    /// A host protected the disk against writes.
    pub const SOFTWARE_PROTECTED: Self = sense(0x7, 0x27, 0x02);
    /// The zone can be read and no more.
    pub const ZONE_READ_ONLY: Self = sense(0x7, 0x27, 0x08);
    /// The zone can neither be read nor written.
    pub const ZONE_OFFLINE: Self = sense(0x7, 0x2c, 0x0e);
    /// As many zones are open as can be.
    pub const ZONE_RESOURCES: Self = sense(0x7, 0x55, 0x0e);
    /// More or less data came than were asked for (RFC 7143, 11.4.7.2).
    pub const DATA_AMOUNT: Self = sense(0xb, 0x0c, 0x0d);
    /// Data are missing between those that came.
    pub const DATA_LOST: Self = sense(0xb, 0x47, 0x05);
    /// Data came that nobody asked for.
    pub const TRANSFER_TAG: Self = sense(0xb, 0x4b, 0x01);
    /// Data came for another place than what was asked for.
    pub const DATA_OFFSET: Self = sense(0xb, 0x4b, 0x05);
    /// Bytes that were compared differ.
    pub const MISCOMPARE: Self = sense(0xe, 0x1d, 0x00);

    /// An error of this byte of the CDB.
    pub(crate) const fn at_field(byte: u16) -> Self {
        Self { field: Some(byte), ..Self::INVALID_FIELD }
    }

    /// The same, about this logical block, or byte.
    #[must_use]
    pub const fn about(self, block: u64) -> Self {
        Self { block: Some(block), ..self }
    }

    /// Fixed format (response code 70h), 18 bytes. A block that needs more than 32 bits is not in it.
    pub fn fixed(&self) -> [u8; 18] {
        let mut out = [0; 18];
        (out[0], out[2], out[7]) = (0x70, self.key, 10);
        (out[12], out[13]) = (self.code[0], self.code[1]);
        if let Some(block) = self.block.and_then(|b| u32::try_from(b).ok()) {
            out[0] |= 0x80;
            out[3..7].copy_from_slice(&block.to_be_bytes());
        }
        out[15..18].copy_from_slice(&self.specific().unwrap_or_default());
        out
    }

    /// The bytes that mean something by the sense key: which field, with C/D (it is in the CDB), or how far; SKSV.
    fn specific(&self) -> Option<[u8; 3]> {
        let (flags, n) = self.field.map(|n| (0xc0, n)).or(self.progress.map(|n| (0x80, n)))?;
        let [high, low] = n.to_be_bytes();
        Some([flags, high, low])
    }

    /// Sense data in one of its formats.
    pub fn data(&self, descriptors: bool) -> Vec<u8> {
        if descriptors { self.descriptors() } else { self.fixed().to_vec() }
    }

    /// Descriptor format (response code 72h) with a descriptor of information where there is some, and one of the field at fault.
    pub fn descriptors(&self) -> Vec<u8> {
        let mut out = vec![0x72, self.key, self.code[0], self.code[1], 0, 0, 0, 0];
        if let Some(block) = self.block {
            out.extend([0x00, 0x0a, 0x80, 0]);
            out.extend(block.to_be_bytes());
        }
        if let Some(specific) = self.specific() {
            out.extend([0x02, 0x06, 0, 0]);
            out.extend(specific);
            out.push(0);
        }
        out[7] = (out.len() - 8) as u8;
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_format_byte_by_byte() {
        let plain = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x21, 0x04, 0, 0, 0, 0];
        assert_eq!(Sense::UNALIGNED_WRITE.fixed(), plain);
        let about = Sense::UNRECOVERED_READ.about(0x0102_0304).fixed();
        assert_eq!(about[..8], [0xf0, 0, 3, 1, 2, 3, 4, 10]);
        assert_eq!(Sense::UNRECOVERED_READ.about(0).fixed()[..8], [0xf0, 0, 3, 0, 0, 0, 0, 10]);
        assert_eq!(Sense::UNRECOVERED_READ.about(1 << 32).fixed()[..8], [0x70, 0, 3, 0, 0, 0, 0, 10]);
        assert_eq!(Sense::at_field(14).fixed()[12..], [0x24, 0, 0, 0xc0, 0, 14]);
        let half = Sense { progress: Some(0x8001), ..Sense::FORMATTING };
        assert_eq!(half.fixed()[12..], [0x04, 0x04, 0, 0x80, 0x80, 1]);
        assert_eq!(half.descriptors(), [0x72, 2, 4, 4, 0, 0, 0, 8, 2, 6, 0, 0, 0x80, 0x80, 1, 0]);
    }

    /// The list of T10, by number, for what drives with zones refuse.
    #[test]
    fn codes_of_zones_are_those_of_the_list() {
        for (sense, key, code) in [
            (Sense::OUT_OF_RANGE, 5, 0x2100),
            (Sense::UNALIGNED_WRITE, 5, 0x2104),
            (Sense::WRITE_BOUNDARY, 5, 0x2105),
            (Sense::READ_INVALID, 5, 0x2106),
            (Sense::READ_BOUNDARY, 5, 0x2107),
            (Sense::GAP, 5, 0x2109),
            (Sense::ZONE_READ_ONLY, 7, 0x2708),
            (Sense::ZONE_OFFLINE, 7, 0x2c0e),
            (Sense::ZONE_RESOURCES, 7, 0x550e),
        ] {
            assert_eq!((sense.key, u16::from_be_bytes(sense.code)), (key, code), "{sense:?}");
        }
    }

    #[test]
    fn descriptors_hold_blocks_of_64_bits() {
        assert_eq!(Sense::ZONE_OFFLINE.descriptors(), [0x72, 7, 0x2c, 0x0e, 0, 0, 0, 0]);
        let field = Sense::at_field(0x0102).data(true);
        assert_eq!(field, [0x72, 5, 0x24, 0, 0, 0, 0, 8, 2, 6, 0, 0, 0xc0, 1, 2, 0]);
        let long = Sense::UNRECOVERED_READ.about(1 << 33).descriptors();
        assert_eq!(long, [0x72, 3, 0x11, 0, 0, 0, 0, 12, 0, 0x0a, 0x80, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    }
}
