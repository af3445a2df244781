//! A disk's own caches switched off while it is measured, by the commands that it has for that, and put back as they were.
//!
//! ATA drives are asked by IDENTIFY DEVICE and told by SET FEATURES (ACS-4), in ATA PASS-THROUGH(16) (SAT-4); others by the
//! caching page of MODE SENSE(10) and MODE SELECT(10) (SPC-5, SBC-4).

use super::sg::Port;
use smrlab_scsi::ask::{caching_page, identify, mode_select, mode_sense, parameters, set_features};
use smrlab_scsi::says::Identify;

/// Caches as they are during a measurement; put back when it ends, however it does.
#[derive(Debug)]
pub(super) struct Caching<P: Port> {
    port: P,
    /// What puts everything back, the last one first.
    back: Vec<Back>,
    said: String,
}

/// A command that puts back what was switched off.
#[derive(Debug)]
struct Back {
    cdb: Vec<u8>,
    data: Vec<u8>,
    /// What it puts back.
    names: Vec<&'static str>,
    /// The program that does it by hand, and its option.
    by_hand: (&'static str, String),
}

impl<P: Port> Caching<P> {
    /// Switches off what the device lets be switched off; leaves it alone where `keep` says so.
    pub(super) fn switch_off(port: P, keep: bool) -> Self {
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
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// Puts everything back. Where the device `place` does not let it: one sentence, with the command that mends it.
    pub(super) fn put_back(&mut self, place: &str) -> Option<String> {
        let (mut names, mut commands, mut why) = (Vec::new(), Vec::new(), None);
        while let Some(back) = self.back.pop() {
            let Err(e) = self.port.tell(&back.cdb, &back.data) else { continue };
            names.extend(back.names);
            commands.push(format!("{} {} {place}", back.by_hand.0, back.by_hand.1));
            why = Some(e);
        }
        let said = format!(
            "{place}: {} could not be switched on again ({}) and may be off until the drive's power is cut; by hand: {}",
            names.join(" and "),
            why?,
            commands.join(" && ")
        );
        self.said.clone_from(&said);
        Some(said)
    }

    fn by_ata(&mut self) -> Option<String> {
        let mut answer = [0; 512];
        self.port.ask(&identify(), &mut answer).ok()?;
        let features = features(&answer)?;
        let mut off = Vec::new();
        for feature in &features {
            if self.port.tell(&set_features(feature.off), &[]).is_ok() {
                self.back.push(Back {
                    cdb: set_features(feature.on).to_vec(),
                    data: Vec::new(),
                    names: vec![feature.name],
                    by_hand: ("hdparm", feature.by_hand.to_owned()),
                });
                off.push(feature.name);
            }
        }
        // What refuses all of them is asked the other way.
        (features.is_empty() || !off.is_empty()).then(|| told(&off, "ATA SET FEATURES"))
    }

    fn by_scsi(&mut self) -> Option<String> {
        let mut answer = [0; 255];
        self.port.ask(&mode_sense(answer.len() as u8), &mut answer).ok()?;
        let page = caching_page(&answer)?;
        // Some let the write cache be switched, and nothing else.
        for bits in [&BITS[..], &BITS[2..]] {
            let on: Vec<_> = bits.iter().filter(|bit| (page[bit.byte] & bit.mask != 0) == bit.on).collect();
            if on.is_empty() {
                return Some(told(&[], "MODE SELECT"));
            }
            let mut other = page.clone();
            on.iter().for_each(|bit| other[bit.byte] ^= bit.mask);
            let [there, back] = [&other, &page].map(|page| parameters(page));
            let select = mode_select(there.len() as u8);
            if self.port.tell(&select, &there).is_ok() {
                let names: Vec<_> = on.iter().map(|bit| bit.name).collect();
                let said = told(&names, "MODE SELECT");
                let fields: Vec<_> =
                    on.iter().map(|bit| format!("{}={}", bit.field, u8::from(bit.on))).collect();
                let by_hand = ("sdparm", format!("--set={}", fields.join(",")));
                self.back.push(Back { cdb: select.to_vec(), data: back, names, by_hand });
                return Some(said);
            }
        }
        None
    }
}

impl<P: Port> Drop for Caching<P> {
    fn drop(&mut self) {
        // After a panic, and where nobody asked: there is nobody to tell.
        let _unsaid = self.put_back("");
    }
}

fn told(names: &[&str], by: &str) -> String {
    match names {
        [] => format!("off already, or without a switch ({by}); defeated by the pattern of accesses"),
        _ => format!("{} switched off by {by} and put back at the end", names.join(" and ")),
    }
}

/// A bit of the caching page.
struct Bit {
    name: &'static str,
    byte: usize,
    mask: u8,
    /// Its value where the cache is on.
    on: bool,
    /// Its name in the standard, and in `sdparm`.
    field: &'static str,
}

const BITS: [Bit; 3] = [
    Bit { name: "read cache", byte: 2, mask: 0x01, on: false, field: "RCD" },
    Bit { name: "look-ahead", byte: 12, mask: 0x20, on: false, field: "DRA" },
    Bit { name: "write cache", byte: 2, mask: 0x04, on: true, field: "WCE" },
];

/// Something that SET FEATURES switches.
struct Feature {
    name: &'static str,
    /// In words 82 (supported) and 85 (enabled) of IDENTIFY DEVICE.
    bit: u8,
    off: u8,
    on: u8,
    /// The option of `hdparm` that switches it on.
    by_hand: &'static str,
}

const FEATURES: [Feature; 2] = [
    Feature { name: "look-ahead", bit: 6, off: 0x55, on: 0xaa, by_hand: "-A1" },
    Feature { name: "write cache", bit: 5, off: 0x82, on: 0x02, by_hand: "-W1" },
];

/// What is on and can be switched off; `None`: that is no answer of an ATA disk.
fn features(identify: &[u8; 512]) -> Option<Vec<&'static Feature>> {
    let words = Identify::of(identify)?;
    let on = words.word(82) & words.word(85);
    (words.valid(83) && words.valid(87)).then(|| FEATURES.iter().filter(|f| on >> f.bit & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::io;

    /// Answers from tables; remembers what it was told.
    #[derive(Debug, Default)]
    struct Fake<'a> {
        identify: Option<[u8; 512]>,
        page: Option<Vec<u8>>,
        /// Bits of bytes 2 and 12 of the page that may not change.
        fixed: [u8; 2],
        told: Option<&'a RefCell<Vec<(Vec<u8>, Vec<u8>)>>>,
        /// Refuses after so many commands.
        until: Option<usize>,
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
            let mut told = self.told.unwrap().borrow_mut();
            if self.until.is_some_and(|n| told.len() >= n) {
                return Err(io::Error::from_raw_os_error(libc::ENODEV));
            }
            told.push((cdb.to_vec(), data.to_vec()));
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
        assert_eq!(
            smrlab_scsi::ask::identify(),
            [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0]
        );
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

    /// An ATA disk of which nothing is on has nothing to be switched, though a page that the host's driver makes up says otherwise.
    #[test]
    fn an_ata_disk_with_nothing_on_is_left_alone() {
        let told = RefCell::new(Vec::new());
        let identify = Some(words(&[(82, 0x0060), (83, 0x4000), (85, 0), (87, 0x4000)]));
        let fake = Fake { identify, page: Some(page()), told: Some(&told), ..Fake::default() };
        let caching = Caching::switch_off(fake, false);
        assert!(caching.said().starts_with("off already, or without a switch (ATA"), "{}", caching.said());
        drop(caching);
        assert!(told.borrow().is_empty());
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

    /// Every state of the three bits: what is on is switched off, at once or, where the others are fixed, the write cache alone; where nothing
    /// is on nothing is told to the disk.
    #[test]
    fn a_caching_page_in_every_state() {
        for state in 0..8u8 {
            for fixed in [[0, 0], [0x01, 0x20], [0xff, 0xff]] {
                let mut page = page();
                (page[2], page[12]) = (state & 1 | (state & 4), (state & 2) << 4);
                let on: Vec<&str> =
                    BITS.iter().filter(|b| (page[b.byte] & b.mask != 0) == b.on).map(|b| b.name).collect();
                let cache = on.last().copied() == Some("write cache");
                let reads = on.len() > usize::from(cache);
                let told = RefCell::new(Vec::new());
                let fake = Fake { page: Some(page.clone()), fixed, told: Some(&told), ..Fake::default() };
                let caching = Caching::switch_off(fake, false);
                let said = caching.said().to_owned();
                drop(caching);
                let off = match fixed {
                    _ if on.is_empty() => "off already, or without a switch (MODE SELECT)".to_owned(),
                    [0, 0] => format!("{} switched off", on.join(" and ")),
                    [1, _] if cache => "write cache switched off".to_owned(),
                    [1, _] => "off already, or without a switch (MODE SELECT)".to_owned(),
                    _ if cache || !reads => "defeated by the pattern of accesses: the device".to_owned(),
                    _ => "off already, or without a switch (MODE SELECT)".to_owned(),
                };
                assert!(said.starts_with(&off), "{state} {fixed:?}: {said}, not {off}");
                assert_eq!(
                    told.borrow().len(),
                    if said.contains("switched") { 2 } else { 0 },
                    "{state} {fixed:?}"
                );
            }
        }
    }

    /// A sentence with the command that mends it, both ways, and what is kept of the measurement says it too.
    #[test]
    fn what_cannot_be_put_back_is_said() {
        let told = RefCell::new(Vec::new());
        let identify = words(&[(82, 0x0060), (83, 0x4000), (85, 0x0060), (87, 0x4000)]);
        let ata = |until| Fake { identify: Some(identify), told: Some(&told), until, ..Fake::default() };
        let mut caching = Caching::switch_off(ata(Some(2)), false);
        let said = caching.put_back("/dev/sdz").unwrap();
        assert_eq!(
            said,
            "/dev/sdz: write cache and look-ahead could not be switched on again (No such device (os error 19)) and may be off \
             until the drive's power is cut; by hand: hdparm -W1 /dev/sdz && hdparm -A1 /dev/sdz"
        );
        assert_eq!(caching.said(), said);
        assert_eq!(caching.put_back("/dev/sdz"), None, "said once");
        told.borrow_mut().clear();
        let mut one = Caching::switch_off(ata(Some(3)), false);
        assert!(
            one.put_back("/dev/sdz").unwrap().ends_with("by hand: hdparm -A1 /dev/sdz"),
            "the other one went back"
        );
        told.borrow_mut().clear();
        let page = Some(page());
        let fake = Fake { page, told: Some(&told), until: Some(1), ..Fake::default() };
        let said = Caching::switch_off(fake, false).put_back("/dev/sdz").unwrap();
        assert!(said.ends_with("by hand: sdparm --set=RCD=0,DRA=0,WCE=1 /dev/sdz"), "{said}");
        told.borrow_mut().clear();
        assert_eq!(Caching::switch_off(ata(None), false).put_back("/dev/sdz"), None);
    }

    /// A drive that lets one of the two be switched is left with the other on, and says which.
    #[test]
    fn one_of_two_is_switched_off() {
        let told = RefCell::new(Vec::new());
        let identify = words(&[(82, 0x0060), (83, 0x4000), (85, 0x0060), (87, 0x4000)]);
        let fake = Fake { identify: Some(identify), told: Some(&told), until: Some(1), ..Fake::default() };
        let caching = Caching::switch_off(fake, false);
        assert!(caching.said().starts_with("look-ahead switched off by ATA"), "{}", caching.said());
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
