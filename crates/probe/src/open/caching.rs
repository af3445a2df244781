//! A disk's own caches switched off while it is measured, by the commands that it has for that, and put back as they were.
//!
//! ATA drives are asked by IDENTIFY DEVICE and told by SET FEATURES (ACS-4), in ATA PASS-THROUGH(16) (SAT-4); others by the
//! caching page of MODE SENSE(10) and MODE SELECT(10) (SPC-5, SBC-4).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// What takes commands.
pub(super) trait Port {
    /// A command that answers with data.
    fn ask(&mut self, cdb: &[u8], answer: &mut [u8]) -> io::Result<()>;
    /// A command with data or none.
    fn tell(&mut self, cdb: &[u8], data: &[u8]) -> io::Result<()>;
}

/// Caches as they are during a measurement; put back when it ends, however it does.
#[derive(Debug)]
pub(super) struct Caching<P: Port> {
    port: P,
    /// Commands that put everything back, the last one first.
    back: Vec<(Vec<u8>, Vec<u8>)>,
    said: String,
}

impl<P: Port> Caching<P> {
    /// Switches off what the device lets be switched off; leaves it alone where `keep` says so.
    pub fn switch_off(port: P, keep: bool) -> Self {
        let mut out = Self { port, back: Vec::new(), said: String::new() };
        out.said = if keep {
            "left as it is, as asked for; defeated by the pattern of accesses".to_owned()
        } else {
            out.by_ata().or_else(|| out.by_scsi()).unwrap_or_else(|| {
                "defeated by the pattern of accesses: the device has no commands for it".to_owned()
            })
        };
        out
    }

    /// Which of the ways was taken.
    pub fn said(&self) -> &str {
        &self.said
    }

    fn by_ata(&mut self) -> Option<String> {
        let mut answer = [0; 512];
        self.port.ask(&identify(), &mut answer).ok()?;
        let mut off = Vec::new();
        for feature in features(&answer)? {
            self.port.tell(&set_features(feature.off), &[]).ok()?;
            self.back.push((set_features(feature.on).to_vec(), Vec::new()));
            off.push(feature.name);
        }
        Some(told(&off, "ATA SET FEATURES"))
    }

    fn by_scsi(&mut self) -> Option<String> {
        let mut answer = [0; 255];
        self.port.ask(&mode_sense(answer.len() as u8), &mut answer).ok()?;
        let page = caching_page(&answer)?;
        // Some let the write cache be switched, and nothing else.
        for (set, clear, names) in WAYS {
            let mut other = page.clone();
            (other[2], other[12]) = ((other[2] | set[0]) & !clear, other[12] | set[1]);
            if other == page {
                return Some(told(&[], "MODE SELECT"));
            }
            let [there, back] = [&other, &page].map(|page| parameters(page));
            let select = mode_select(there.len() as u8);
            if self.port.tell(&select, &there).is_ok() {
                self.back.push((select.to_vec(), back));
                return Some(told(names, "MODE SELECT"));
            }
        }
        None
    }
}

impl<P: Port> Drop for Caching<P> {
    fn drop(&mut self) {
        while let Some((cdb, data)) = self.back.pop() {
            // A device that is gone has nothing to put back.
            let _gone = self.port.tell(&cdb, &data);
        }
    }
}

fn told(names: &[&str], by: &str) -> String {
    match names {
        [] => format!("off already, or without a switch ({by}); defeated by the pattern of accesses"),
        _ => format!("{} switched off by {by} and put back at the end", names.join(" and ")),
    }
}

/// Bits of the caching page: to set in bytes 2 (RCD) and 12 (DRA), to clear in byte 2 (WCE).
const WAYS: [([u8; 2], u8, &[&str]); 2] =
    [([0x01, 0x20], 0x04, &["read cache", "look-ahead", "write cache"]), ([0, 0], 0x04, &["write cache"])];

/// Something that SET FEATURES switches.
struct Feature {
    name: &'static str,
    /// In words 82 (supported) and 85 (enabled) of IDENTIFY DEVICE.
    bit: u8,
    off: u8,
    on: u8,
}

const FEATURES: [Feature; 2] = [
    Feature { name: "look-ahead", bit: 6, off: 0x55, on: 0xaa },
    Feature { name: "write cache", bit: 5, off: 0x82, on: 0x02 },
];

/// What is on and can be switched off; `None`: that is no answer of an ATA disk.
fn features(identify: &[u8; 512]) -> Option<Vec<&'static Feature>> {
    let word = |n: usize| u16::from_le_bytes([identify[2 * n], identify[2 * n + 1]]);
    let valid = word(0) >> 15 == 0 && word(83) >> 14 == 1 && word(87) >> 14 == 1;
    let on = word(82) & word(85);
    valid.then(|| FEATURES.iter().filter(|f| on >> f.bit & 1 == 1).collect())
}

/// IDENTIFY DEVICE as ATA PASS-THROUGH(16): PIO data-in of one block, its number in the count field.
fn identify() -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[2], cdb[6], cdb[14]) = (0x85, 4 << 1, 0x0e, 1, 0xec);
    cdb
}

/// SET FEATURES as ATA PASS-THROUGH(16): no data.
fn set_features(subcommand: u8) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[4], cdb[14]) = (0x85, 3 << 1, subcommand, 0xef);
    cdb
}

/// MODE SENSE(10) of the caching page's present values, without block descriptors.
fn mode_sense(room: u8) -> [u8; 10] {
    [0x5a, 0x08, 0x08, 0, 0, 0, 0, 0, room, 0]
}

/// MODE SELECT(10) of pages, not saved: a drive that loses power has its own again.
fn mode_select(length: u8) -> [u8; 10] {
    [0x55, 0x10, 0, 0, 0, 0, 0, 0, length, 0]
}

/// The caching page in an answer of MODE SENSE(10).
fn caching_page(answer: &[u8]) -> Option<Vec<u8>> {
    let at = 8 + usize::from(u16::from_be_bytes([answer[6], answer[7]]));
    let length = 2 + usize::from(*answer.get(at + 1)?);
    let page = answer.get(at..at + length)?;
    (page[0] & 0x3f == 0x08 && length > 12).then(|| page.to_vec())
}

/// What MODE SELECT(10) sends: a header of zeros, and the page without the bit that says that it can be saved.
fn parameters(page: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 8];
    out.extend(page);
    out[8] &= 0x3f;
    out
}

/// Commands to a block device by the SG_IO ioctl of Linux.
#[derive(Debug)]
pub(super) struct Sg(pub File);

/// `sg_io_hdr`, version 3.
#[repr(C)]
struct Header {
    interface_id: libc::c_int,
    direction: libc::c_int,
    cdb_length: u8,
    sense_room: u8,
    pieces: u16,
    length: u32,
    data: *mut libc::c_void,
    cdb: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: libc::c_int,
    user: *mut libc::c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_length: u8,
    host_status: u16,
    driver_status: u16,
    left: libc::c_int,
    duration: u32,
    info: u32,
}

const SG_IO: libc::c_ulong = 0x2285;
const NONE: libc::c_int = -1;
const TO_DEVICE: libc::c_int = -2;
const FROM_DEVICE: libc::c_int = -3;
/// A drive that empties its write cache first may take this long.
const PATIENCE_MS: u32 = 30_000;

impl Sg {
    /// `data` must be good for writing where the device answers with data.
    fn send(&self, cdb: &[u8], direction: libc::c_int, data: *mut u8, length: usize) -> io::Result<()> {
        let mut sense = [0u8; 32];
        let mut header = Header {
            interface_id: libc::c_int::from(b'S'),
            direction,
            cdb_length: cdb.len() as u8,
            sense_room: sense.len() as u8,
            pieces: 0,
            length: length as u32,
            data: data.cast(),
            cdb: cdb.as_ptr(),
            sense: sense.as_mut_ptr(),
            timeout_ms: PATIENCE_MS,
            flags: 0,
            pack_id: 0,
            user: std::ptr::null_mut(),
            status: 0,
            masked_status: 0,
            message_status: 0,
            sense_length: 0,
            host_status: 0,
            driver_status: 0,
            left: 0,
            duration: 0,
            info: 0,
        };
        // SAFETY: all pointers are to memory of the lengths given, which lives until the call returns.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), SG_IO as _, &raw mut header) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        // Bit 0: a status other than good, of the device, the host or the driver.
        if header.info & 1 != 0 {
            return Err(io::Error::other(format!("the device refuses the command {:#04x}", cdb[0])));
        }
        Ok(())
    }
}

impl Port for Sg {
    fn ask(&mut self, cdb: &[u8], answer: &mut [u8]) -> io::Result<()> {
        self.send(cdb, FROM_DEVICE, answer.as_mut_ptr(), answer.len())
    }

    fn tell(&mut self, cdb: &[u8], data: &[u8]) -> io::Result<()> {
        let direction = if data.is_empty() { NONE } else { TO_DEVICE };
        self.send(cdb, direction, data.as_ptr().cast_mut(), data.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Answers from tables; remembers what it was told.
    #[derive(Debug, Default)]
    struct Fake<'a> {
        identify: Option<[u8; 512]>,
        page: Option<Vec<u8>>,
        /// Bits of bytes 2 and 12 of the page that may not change.
        fixed: [u8; 2],
        told: Option<&'a RefCell<Vec<(Vec<u8>, Vec<u8>)>>>,
    }

    impl Port for Fake<'_> {
        fn ask(&mut self, cdb: &[u8], answer: &mut [u8]) -> io::Result<()> {
            let data = match cdb[0] {
                0x85 => self.identify.map(|i| i.to_vec()),
                _ => self.page.as_ref().map(|page| [&[0; 8][..], page].concat()),
            };
            let data = data.ok_or(io::ErrorKind::Unsupported)?;
            answer[..data.len()].copy_from_slice(&data);
            Ok(())
        }

        fn tell(&mut self, cdb: &[u8], data: &[u8]) -> io::Result<()> {
            if let (0x55, Some(page)) = (cdb[0], &self.page) {
                let changed = [data[10] ^ page[2], data[20] ^ page[12]];
                if changed[0] & self.fixed[0] != 0 || changed[1] & self.fixed[1] != 0 {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
            }
            self.told.unwrap().borrow_mut().push((cdb.to_vec(), data.to_vec()));
            Ok(())
        }
    }

    fn words(at: &[(usize, u16)]) -> [u8; 512] {
        let mut out = [0; 512];
        at.iter().for_each(|&(n, w)| out[2 * n..2 * n + 2].copy_from_slice(&w.to_le_bytes()));
        out
    }

    /// Caching page with WCE set, of 18 bytes and its header.
    fn page() -> Vec<u8> {
        let mut page = vec![0; 20];
        (page[0], page[1], page[2]) = (0x88, 0x12, 0x04);
        page
    }

    #[test]
    fn an_ata_disk_is_switched_off_and_put_back() {
        let told = RefCell::new(Vec::new());
        // Both supported (82) and on (85); words 83 and 87 say that these are valid.
        let identify = words(&[(82, 0x0060), (83, 0x4000), (85, 0x0060), (87, 0x4000)]);
        let caching = Caching::switch_off(
            Fake { identify: Some(identify), told: Some(&told), ..Fake::default() },
            false,
        );
        assert_eq!(
            caching.said(),
            "look-ahead and write cache switched off by ATA SET FEATURES and put back at the end"
        );
        drop(caching);
        let told = told.into_inner();
        let cdb = |feature| [0x85, 0x06, 0, 0, feature, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xef, 0];
        let sent: Vec<_> = told.iter().map(|t| t.0.clone()).collect();
        assert_eq!(sent, [0x55, 0x82, 0x02, 0xaa].map(cdb), "off, and back the other way round");
        assert_eq!(super::identify(), [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0]);
    }

    #[test]
    fn what_is_off_stays_off() {
        let told = RefCell::new(Vec::new());
        let identify = words(&[(82, 0x0060), (83, 0x4000), (85, 0x0040), (87, 0x4000)]);
        drop(Caching::switch_off(
            Fake { identify: Some(identify), told: Some(&told), ..Fake::default() },
            false,
        ));
        assert_eq!(told.borrow().iter().map(|t| t.0[4]).collect::<Vec<_>>(), [0x55, 0xaa]);
        assert!(
            features(&words(&[(82, 0x60), (85, 0x60)])).is_none(),
            "words that are not valid say nothing"
        );
    }

    #[test]
    fn a_scsi_disk_by_its_caching_page() {
        for (fixed, byte_2, byte_12, names) in [
            ([0, 0], 0x01, 0x20, "read cache and look-ahead"),
            ([0x01, 0x20], 0x00, 0x00, "write cache switched"),
        ] {
            let told = RefCell::new(Vec::new());
            let fake = Fake { page: Some(page()), fixed, told: Some(&told), ..Fake::default() };
            let caching = Caching::switch_off(fake, false);
            assert!(caching.said().starts_with(names), "{}", caching.said());
            drop(caching);
            let told = told.into_inner();
            assert_eq!(told[0].0, [0x55, 0x10, 0, 0, 0, 0, 0, 0, 28, 0]);
            assert_eq!((told[0].1[8], told[0].1[10], told[0].1[20]), (0x08, byte_2, byte_12));
            assert_eq!((told[1].1[10], told[1].1[20]), (0x04, 0x00), "as it was");
        }
    }

    #[test]
    fn what_has_no_such_commands_or_is_to_be_left_alone() {
        let told = RefCell::new(Vec::new());
        let none = Caching::switch_off(Fake { told: Some(&told), ..Fake::default() }, false);
        assert!(none.said().contains("no commands for it"));
        let kept =
            Caching::switch_off(Fake { page: Some(page()), told: Some(&told), ..Fake::default() }, true);
        assert!(kept.said().starts_with("left as it is"));
        drop((none, kept));
        assert!(told.borrow().is_empty());
    }
}
