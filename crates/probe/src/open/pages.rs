//! A disk is asked for the pages that say what it is: INQUIRY, vital product data, IDENTIFY DEVICE. It is only read.

use super::sg::{Port, Sg};
use smrlab_scsi::ask::{LogPage, identify, inquiry, read_log};
use smrlab_scsi::says::{Identify, Pages};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The pages that a block device gives; none where it takes no such commands. It may be mounted.
///
/// # Errors
/// When it cannot be opened.
pub fn pages(path: &Path) -> io::Result<Pages> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    Ok(asked(&mut Sg(file)))
}

/// Pages of vital product data that say something of rotation, provisioning and zones.
const VITAL: [u8; 4] = [0xb0, 0xb1, 0xb2, 0xb6];
/// IDENTIFY DEVICE and more, of an ATA device behind a translation.
const ATA: u8 = 0x89;
/// Bytes of the longest of these pages.
const ROOM: usize = 572;
/// SPC-2; bridges of before do not all survive being asked for vital product data.
const SPC_2: u8 = 4;
/// The log of identify data, and its page of zoned devices.
const ZONED_LOG: LogPage = LogPage { log: 0x30, page: 0x09 };

fn asked(port: &mut impl Port) -> Pages {
    let mut out = Pages::new();
    let mut standard = vec![0; 36];
    if port.ask(&inquiry(None, 36), &mut standard).is_err() {
        return out;
    }
    let managed = standard[0] == 0x14;
    let mut data = vec![0; 512];
    if port.ask(&identify(), &mut data).is_ok()
        && let Some(words) = Identify::of(&data)
    {
        let logs = words.valid(84) && words.word(84) >> 5 & 1 == 1;
        let zoned = managed || words.word(69) & 3 != 0;
        let mut log = vec![0; 512];
        if logs && zoned && port.ask(&read_log(ZONED_LOG), &mut log).is_ok() {
            out.insert("zoned_log".to_owned(), log);
        }
        out.insert("identify".to_owned(), data);
    }
    let behind = (!out.contains_key("identify")).then_some(ATA);
    let listed = if standard[2] < SPC_2 { None } else { vital(port, 0x00) };
    let listed = listed.unwrap_or_default();
    for code in VITAL.into_iter().chain(behind) {
        if listed.iter().skip(4).any(|c| *c == code)
            && let Some(page) = vital(port, code)
        {
            out.insert(format!("vpd_pg{code:02x}"), page);
        }
    }
    out.insert("inquiry".to_owned(), standard);
    out
}

/// A page of vital product data, as long as it says.
fn vital(port: &mut impl Port, code: u8) -> Option<Vec<u8>> {
    let mut page = vec![0; ROOM];
    port.ask(&inquiry(Some(code), ROOM as u16), &mut page).ok()?;
    let length = 4 + usize::from(u16::from_be_bytes([page[2], page[3]]));
    page.truncate(length);
    (page[1] == code).then_some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers those commands that begin so, and notes all.
    #[derive(Default)]
    struct Fake {
        answers: Vec<(Vec<u8>, Vec<u8>)>,
        sent: Vec<Vec<u8>>,
    }

    impl Port for Fake {
        fn ask(&mut self, cdb: &[u8], answer: &mut [u8]) -> io::Result<()> {
            self.sent.push(cdb.to_vec());
            let found = self.answers.iter().find(|(begin, _)| cdb.starts_with(begin));
            let (_, data) = found.ok_or(io::ErrorKind::Unsupported)?;
            let length = data.len().min(answer.len());
            answer[..length].copy_from_slice(&data[..length]);
            Ok(())
        }

        fn tell(&mut self, cdb: &[u8], _: &[u8]) -> io::Result<()> {
            panic!("it is only asked: {cdb:?}");
        }
    }

    fn words(at: &[(usize, u16)]) -> Vec<u8> {
        let mut data = vec![0; 512];
        at.iter().for_each(|(n, word)| data[2 * n..2 * n + 2].copy_from_slice(&word.to_le_bytes()));
        data
    }

    fn described(kind: u8, version: u8) -> (Vec<u8>, Vec<u8>) {
        (vec![0x12, 0], [&[kind, 0, version, 2, 31][..], &[0; 31]].concat())
    }

    #[test]
    fn a_zoned_ata_disk_is_asked_for_its_log_too() {
        let identify = words(&[(0, 0x40), (69, 1), (84, 0x4020)]);
        let mut disk = Fake {
            answers: vec![
                described(0, 6),
                (vec![0x85, 0x08], identify.clone()),
                (vec![0x85, 0x09], vec![7; 512]),
                (vec![0x12, 1, 0x00], vec![0, 0, 0, 3, 0x00, 0x89, 0xb1]),
                (vec![0x12, 1, 0xb1], vec![0, 0xb1, 0, 2, 0x1c, 0x20, 99]),
            ],
            ..Fake::default()
        };
        let found = asked(&mut disk);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["identify", "inquiry", "vpd_pgb1", "zoned_log"]);
        assert_eq!(found["identify"], identify);
        assert_eq!(found["vpd_pgb1"], [0, 0xb1, 0, 2, 0x1c, 0x20], "as long as it says");
        assert_eq!(
            disk.sent,
            [
                vec![0x12, 0, 0, 0, 36, 0],
                vec![0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0],
                vec![0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x30, 0, 0x09, 0, 0, 0, 0x2f, 0],
                vec![0x12, 1, 0x00, 0x02, 0x3c, 0],
                vec![0x12, 1, 0xb1, 0x02, 0x3c, 0],
            ],
            "nothing that it does not list"
        );
    }

    #[test]
    fn what_need_not_be_asked_is_not() {
        // Neither zoned nor with logs: the log is not read.
        for (kind, at, reads) in [
            (0, [(69, 0), (84, 0x4020)], 0),
            (0, [(69, 1), (84, 0x4000)], 0),
            (0, [(69, 1), (84, 0x0020)], 0),
            (0x14, [(69, 0), (84, 0x4020)], 1),
        ] {
            let identify = words(&[&[(0, 0x40)][..], &at].concat());
            let answers = vec![described(kind, 6), (vec![0x85, 0x08], identify)];
            let mut disk = Fake { answers, ..Fake::default() };
            asked(&mut disk);
            assert_eq!(disk.sent.iter().filter(|cdb| cdb[..2] == [0x85, 0x09]).count(), reads, "{at:?}");
        }
        // A bridge of before SPC-2 is not asked for vital product data, one of SPC-2 is.
        for (version, vital) in [(2, 0), (3, 0), (4, 1), (5, 1)] {
            let mut bridge = Fake { answers: vec![described(0, version)], ..Fake::default() };
            assert_eq!(asked(&mut bridge).keys().collect::<Vec<_>>(), ["inquiry"]);
            let found = bridge.sent.iter().filter(|cdb| cdb[..2] == [0x12, 1]).count();
            assert_eq!(found, vital, "version {version}");
        }
        // What takes no commands is asked once.
        let mut none = Fake::default();
        assert!(asked(&mut none).is_empty());
        assert_eq!(none.sent.len(), 1);
    }

    #[test]
    fn ata_behind_a_bridge_that_passes_no_commands() {
        let mut bridge = Fake {
            answers: vec![
                described(0, 6),
                (vec![0x12, 1, 0x00], vec![0, 0, 0, 2, 0x00, 0x89]),
                (vec![0x12, 1, 0x89], [&[0, 0x89, 0x02, 0x38][..], &[5; 568]].concat()),
            ],
            ..Fake::default()
        };
        let found = asked(&mut bridge);
        assert_eq!(found["vpd_pg89"].len(), 572);
    }
}
