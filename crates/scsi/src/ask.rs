//! Commands by which a host asks a disk what it is and switches its caches: SPC-5, SBC-4, and ATA PASS-THROUGH(16) of SAT-4.

/// INQUIRY, of a page of vital product data or of the standard data, for an answer of `room` bytes.
pub fn inquiry(page: Option<u8>, room: u16) -> [u8; 6] {
    let [high, low] = room.to_be_bytes();
    [0x12, u8::from(page.is_some()), page.unwrap_or(0), high, low, 0]
}

/// MODE SENSE(10) of the caching page's present values, without block descriptors, for an answer of `room` bytes.
pub fn mode_sense(room: u8) -> [u8; 10] {
    [0x5a, 0x08, 0x08, 0, 0, 0, 0, 0, room, 0]
}

/// MODE SELECT(10) of `length` bytes of pages, not saved: a drive that loses power has its own again.
pub fn mode_select(length: u8) -> [u8; 10] {
    [0x55, 0x10, 0, 0, 0, 0, 0, 0, length, 0]
}

/// The caching page in an answer of MODE SENSE(10).
pub fn caching_page(answer: &[u8]) -> Option<Vec<u8>> {
    let descriptors = u16::from_be_bytes([*answer.get(6)?, *answer.get(7)?]);
    let at = 8 + usize::from(descriptors);
    let length = 2 + usize::from(*answer.get(at + 1)?);
    let page = answer.get(at..at + length)?;
    (page[0] & 0x3f == 0x08 && length > 12).then(|| page.to_vec())
}

/// What MODE SELECT(10) sends: a header of zeros, and the page without the bit that says that it can be saved.
pub fn parameters(page: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 8];
    out.extend(page);
    out[8] &= 0x3f;
    out
}

/// READ CAPACITY(10).
pub fn read_capacity() -> [u8; 10] {
    let mut cdb = [0; 10];
    cdb[0] = 0x25;
    cdb
}

/// REPORT ZONES of all zones from the logical block `from` on, for an answer of `room` bytes that says how many zones are in it.
pub fn report_zones(from: u64, room: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = 0x95;
    cdb[2..10].copy_from_slice(&from.to_be_bytes());
    cdb[10..14].copy_from_slice(&room.to_be_bytes());
    cdb[14] = 0x80;
    cdb
}

/// IDENTIFY DEVICE as ATA PASS-THROUGH(16): PIO data-in of one block, its number in the count field.
pub fn identify() -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[2], cdb[6], cdb[14]) = (0x85, 4 << 1, 0x0e, 1, 0xec);
    cdb
}

/// A page of one of the logs of an ATA device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The log.
    pub log: u8,
    /// The page.
    pub page: u8,
}

/// READ LOG EXT of one page as ATA PASS-THROUGH(16): PIO data-in, a command with 48 bits.
pub fn read_log(of: LogPage) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[2], cdb[6], cdb[14]) = (0x85, 4 << 1 | 1, 0x0e, 1, 0x2f);
    (cdb[8], cdb[10]) = (of.log, of.page);
    cdb
}

/// SET FEATURES as ATA PASS-THROUGH(16): no data.
pub fn set_features(subcommand: u8) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[4], cdb[14]) = (0x85, 3 << 1, subcommand, 0xef);
    cdb
}
