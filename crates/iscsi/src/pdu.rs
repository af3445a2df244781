//! Protocol data units: a header of 48 bytes, data padded to four bytes, and digests where both sides want them.

use std::io::{self, Read, Write};

/// Bytes of a basic header segment.
pub const HEADER: usize = 48;
/// Nobody's task: the value of tags that name none.
pub const NO_TAG: u32 = u32::MAX;

/// What a PDU is: initiators send the first ones, targets the others.
pub mod opcode {
    #![allow(missing_docs)]
    pub const NOP_OUT: u8 = 0x00;
    pub const COMMAND: u8 = 0x01;
    pub const TASK: u8 = 0x02;
    pub const LOGIN: u8 = 0x03;
    pub const TEXT: u8 = 0x04;
    pub const DATA_OUT: u8 = 0x05;
    pub const LOGOUT: u8 = 0x06;
    pub const SNACK: u8 = 0x10;
    pub const NOP_IN: u8 = 0x20;
    pub const RESPONSE: u8 = 0x21;
    pub const TASK_RESPONSE: u8 = 0x22;
    pub const LOGIN_RESPONSE: u8 = 0x23;
    pub const TEXT_RESPONSE: u8 = 0x24;
    pub const DATA_IN: u8 = 0x25;
    pub const LOGOUT_RESPONSE: u8 = 0x26;
    pub const READY: u8 = 0x31;
    pub const ASYNC: u8 = 0x32;
    pub const REJECT: u8 = 0x3f;
}

/// One unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// The header; the length of the data in it is set when it is sent.
    pub header: [u8; HEADER],
    /// The data, without padding.
    pub data: Vec<u8>,
}

impl Pdu {
    /// A unit of this opcode with its final bit set.
    pub fn new(opcode: u8) -> Self {
        let mut header = [0; HEADER];
        (header[0], header[1]) = (opcode, 0x80);
        Self { header, data: Vec::new() }
    }

    /// What it is.
    pub fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }

    /// Whether it goes past the order of commands.
    pub fn immediate(&self) -> bool {
        self.header[0] & 0x40 != 0
    }

    /// The flags behind the opcode.
    pub fn flags(&self) -> u8 {
        self.header[1]
    }

    /// A number of four bytes in the header.
    pub fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.header[at], self.header[at + 1], self.header[at + 2], self.header[at + 3]])
    }

    /// The same with a number of four bytes in the header.
    #[must_use]
    pub fn with(mut self, at: usize, value: u32) -> Self {
        self.header[at..at + 4].copy_from_slice(&value.to_be_bytes());
        self
    }

    /// Bytes of its data, as its header has them where it was received.
    pub fn length(&self) -> usize {
        (self.word(4) & 0xff_ffff) as usize
    }

    /// The tag that the initiator gave the task.
    pub fn tag(&self) -> u32 {
        self.word(16)
    }
}

/// Which digests follow headers and data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Behind each header.
    pub header: bool,
    /// Behind data.
    pub data: bool,
}

fn broken(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

/// Reads a unit whose data have at most `most` bytes.
///
/// # Errors
/// What reading met; `InvalidData` for data that are too long and digests that are wrong.
pub fn read(from: &mut impl Read, digests: Digests, most: usize) -> io::Result<Pdu> {
    let mut pdu = head(from, digests, most)?;
    pdu.data = vec![0; padded(pdu.length())];
    body(from, digests, &mut pdu.data)?;
    pdu.data.truncate(pdu.length());
    Ok(pdu)
}

/// Reads a unit up to its data, which [`body`] reads.
pub(crate) fn head(from: &mut impl Read, digests: Digests, most: usize) -> io::Result<Pdu> {
    let mut header = [0; HEADER];
    from.read_exact(&mut header)?;
    let mut extra = vec![0; usize::from(header[4]) * 4];
    from.read_exact(&mut extra)?;
    if digests.header && digest(from)? != crc32c(&[&header[..], &extra].concat()) {
        return Err(broken("the digest of a header is wrong"));
    }
    let pdu = Pdu { header, data: Vec::new() };
    if pdu.length() > most {
        return Err(broken("more data in one PDU than was agreed"));
    }
    Ok(pdu)
}

/// Bytes that data of this length take.
pub(crate) fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// Reads a unit's data with their padding.
pub(crate) fn body(from: &mut impl Read, digests: Digests, data: &mut [u8]) -> io::Result<()> {
    from.read_exact(data)?;
    if digests.data && !data.is_empty() && digest(from)? != crc32c(data) {
        return Err(broken("the digest of data is wrong"));
    }
    Ok(())
}

fn digest(from: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Writes a unit: its header, and `data` in place of its own.
///
/// # Errors
/// What writing met.
pub fn write(to: &mut impl Write, pdu: &Pdu, data: &[u8], digests: Digests) -> io::Result<()> {
    let mut header = pdu.header;
    header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
    to.write_all(&header)?;
    if digests.header {
        to.write_all(&crc32c(&header).to_le_bytes())?;
    }
    let padding = &[0; 3][..data.len().next_multiple_of(4) - data.len()];
    to.write_all(data)?;
    to.write_all(padding)?;
    if digests.data && !data.is_empty() {
        to.write_all(&(!crc32c_on(crc32c_on(!0, data), padding)).to_le_bytes())?;
    }
    Ok(())
}

/// The polynomial of Castagnoli, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Of each byte, and of each byte with so many zero bytes behind it.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let (mut crc, mut bit) = (i as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut behind = 1;
    while behind < 8 {
        let mut i = 0;
        while i < 256 {
            let before = tables[behind - 1][i];
            tables[behind][i] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            i += 1;
        }
        behind += 1;
    }
    tables
}

/// CRC-32C, the digest of iSCSI; on the wire its lowest byte comes first.
pub fn crc32c(data: &[u8]) -> u32 {
    !crc32c_on(!0, data)
}

/// Goes on with a CRC, neither of them inverted. Eight bytes at a time.
fn crc32c_on(mut crc: u32, data: &[u8]) -> u32 {
    let mut eights = data.chunks_exact(8);
    for eight in &mut eights {
        let low = crc ^ u32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]]);
        let byte = |n: u32, i: u32| (n >> (8 * i) & 0xff) as usize;
        crc = (0..4).fold(0, |c, i| c ^ TABLES[7 - i as usize][byte(low, i)]);
        crc = (4..8).fold(crc, |c, i| c ^ TABLES[7 - i][usize::from(eight[i])]);
    }
    eights.remainder().iter().fold(crc, |c, b| c >> 8 ^ TABLES[0][((c ^ u32::from(*b)) & 0xff) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7143, appendix A.4.
    #[test]
    fn the_digests_of_the_standard() {
        assert_eq!(crc32c(&[0; 32]).to_le_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc32c(&[0xff; 32]).to_le_bytes(), [0x43, 0xab, 0xa8, 0x62]);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising).to_le_bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(crc32c(&rising[..5]), !crc32c_on(crc32c_on(!0, &rising[..2]), &rising[2..5]));
    }

    #[test]
    fn a_unit_is_read_as_it_was_written() {
        for digests in [Digests::default(), Digests { header: true, data: true }] {
            for length in [0, 1, 4, 7] {
                let pdu =
                    Pdu { data: (0..length).collect(), ..Pdu::new(opcode::NOP_OUT).with(16, 0x0102_0304) };
                let mut wire = Vec::new();
                write(&mut wire, &pdu, &pdu.data, digests).unwrap();
                assert_eq!(wire.len() % 4, 0);
                let back = read(&mut &wire[..], digests, 8).unwrap();
                assert_eq!((back.tag(), &back.data, back.header[7]), (0x0102_0304, &pdu.data, length));
                let most = usize::from(length);
                assert!(read(&mut &wire[..], digests, most).is_ok(), "as much as was agreed");
                assert!(
                    most == 0 || read(&mut &wire[..], digests, most - 1).is_err(),
                    "more than was agreed"
                );
                if digests.header && length > 0 {
                    for at in [17, wire.len() - 5] {
                        let mut other = wire.clone();
                        other[at] ^= 1;
                        assert!(read(&mut &other[..], digests, 8).is_err(), "byte {at}");
                    }
                }
            }
        }
    }
}
