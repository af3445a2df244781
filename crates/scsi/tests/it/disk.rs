//! A disk in memory: bytes, and zones as they are put there, which do nothing but take what they are told.

use smrlab_scsi::{
    Change, Disk, Done, Erasing, Extents, Facts, Kind, Modes, Refused, Reservations, SelfTest, Sense, Usage,
    data_out, execute,
};
use smrlab_units::{
    Blocks, Lba, PreferredZones, Zone, ZoneAction, ZoneCondition, ZoneKind, ZoneLimits, ZoneStatistics,
};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Who sends the commands, where it is always the same host.
pub(crate) const HOST: &str = "iqn.a,i,0x000000000001";

/// Of a command that nobody's reservation is in the way of.
pub(crate) fn checked<T>(answer: Result<T, Refused>) -> Result<T, Sense> {
    answer.map_err(|why| match why {
        Refused::Check(sense) => sense,
        Refused::Conflict => panic!("nobody reserved the disk"),
    })
}

pub(crate) struct Memory {
    pub facts: Facts,
    pub bytes: RefCell<Vec<u8>>,
    pub zones: Vec<Zone>,
    pub statistics: Option<ZoneStatistics>,
    pub usage: Usage,
    /// The blocks of which it was asked whether they can be read.
    pub readable: RefCell<Vec<(u64, u64)>>,
    /// What is told of blocks that hold data in place of what is in `bytes`: a disk may be larger than a memory.
    pub told: Option<Vec<(Range<u64>, bool)>>,
    pub acted: RefCell<Vec<(ZoneAction, Option<Range<Lba>>)>>,
    pub modes: Cell<Modes>,
    pub saved: Cell<Option<Modes>>,
    pub self_tests: RefCell<Vec<SelfTest>>,
    /// Erasures, and whether the host waited for them.
    pub erased: RefCell<Vec<(Erasing, bool)>>,
    pub erasing: Cell<Option<Sense>>,
    pub reservations: RefCell<Reservations>,
    /// What of them is kept; `None`: nothing can be.
    pub kept: RefCell<Option<Option<String>>>,
    /// FUA of the writes.
    pub fua: RefCell<Vec<bool>>,
    pub flushes: Cell<u32>,
    /// The next request meets this.
    pub fault: Cell<Option<Sense>>,
}

impl Memory {
    /// A drive-managed disk of `blocks` of 512 bytes with logical blocks of `logical` bytes.
    pub(crate) fn new(blocks: u64, logical: u32) -> Self {
        let facts = Facts {
            blocks: Blocks(blocks),
            logical,
            physical: 4096,
            product: "tiny".to_owned(),
            serial: "a-serial-number".to_owned(),
            rpm: Some(7200),
            discards: true,
            kind: Kind::DriveManaged,
        };
        Self {
            facts,
            bytes: RefCell::new(vec![0; blocks as usize * 512]),
            zones: Vec::new(),
            statistics: None,
            usage: Usage::default(),
            readable: RefCell::default(),
            told: None,
            acted: RefCell::default(),
            modes: Cell::default(),
            saved: Cell::default(),
            self_tests: RefCell::default(),
            erased: RefCell::default(),
            erasing: Cell::default(),
            reservations: RefCell::default(),
            kept: RefCell::default(),
            fua: RefCell::default(),
            flushes: Cell::new(0),
            fault: Cell::new(None),
        }
    }

    /// A host-managed one: a conventional zone and five with pointers of 64 blocks each, and a runt of 32.
    pub(crate) fn zoned() -> Self {
        use ZoneCondition::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, NotWritePointer};
        let mut disk = Self::new(416, 512);
        let limits =
            ZoneLimits { unrestricted_reads: true, most_open: Some(3), pitch: None, preferred: None };
        (disk.facts.kind, disk.facts.discards) = (Kind::HostManaged(limits), false);
        let conditions = [NotWritePointer, Full, ImplicitlyOpen, ExplicitlyOpen, Closed, Empty, Empty];
        let written = [None, None, Some(8), Some(16), Some(24), Some(0), Some(0)];
        disk.zones = (0..7)
            .map(|i| Zone {
                start: Lba(i * 64),
                blocks: Blocks(if i == 6 { 32 } else { 64 }),
                kind: if i == 0 { ZoneKind::Conventional } else { ZoneKind::SequentialRequired },
                condition: conditions[i as usize],
                pointer: written[i as usize].map(|w: u64| Lba(i * 64 + w)),
                non_sequential: false,
            })
            .collect();
        disk
    }

    /// A host-aware one: as [`zoned`](Self::zoned), but that its zones prefer sequential writes; the third was written out of order.
    pub(crate) fn aware() -> Self {
        let mut disk = Self::zoned();
        let preferred = Some(PreferredZones { open: 7, non_sequential: 5 });
        let limits = ZoneLimits { unrestricted_reads: true, most_open: None, pitch: None, preferred };
        disk.facts.kind = Kind::HostAware(limits);
        disk.zones[1..].iter_mut().for_each(|z| z.kind = ZoneKind::SequentialPreferred);
        disk.zones[3].non_sequential = true;
        disk
    }

    /// Runs a command that brings no data.
    pub(crate) fn ask(&self, cdb: &[u8]) -> Result<Vec<u8>, Sense> {
        checked(execute(self, HOST, cdb, &[]))
    }

    /// Runs a command with as many bytes of `out` as it takes.
    pub(crate) fn tell(&self, cdb: &[u8], out: &[u8]) -> Result<Vec<u8>, Sense> {
        let takes = data_out(self, cdb) as usize;
        checked(execute(self, HOST, cdb, &out[..takes.min(out.len())]))
    }

    fn done(&self) -> Done {
        self.fault.take().map_or(Ok(()), |why| Err(why.into()))
    }
}

impl Disk for Memory {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&self, lba: Lba, out: &mut [u8]) -> Done {
        let at = lba.0 as usize * 512;
        out.copy_from_slice(&self.bytes.borrow()[at..at + out.len()]);
        self.done()
    }

    fn write(&self, lba: Lba, data: &[u8], fua: bool) -> Done {
        self.done()?;
        let at = lba.0 as usize * 512;
        self.bytes.borrow_mut()[at..at + data.len()].copy_from_slice(data);
        self.fua.borrow_mut().push(fua);
        Ok(())
    }

    fn change(&self, lba: Lba, bytes: &mut [u8], fua: bool, change: &mut Change<'_>) -> Done {
        self.read(lba, bytes)?;
        change(bytes)?;
        self.write(lba, bytes, fua)
    }

    /// Blocks of zeroes hold no data.
    fn extents(&self, lba: Lba, out: &mut Extents<'_>) -> Done {
        if let Some(told) = &self.told {
            let behind = told.iter().filter(|(blocks, _)| blocks.end > lba.0);
            for (blocks, data) in behind {
                if !out(Lba(blocks.start.max(lba.0))..Lba(blocks.end), *data) {
                    break;
                }
            }
            return Ok(());
        }
        let bytes = self.bytes.borrow();
        for (i, block) in bytes.chunks(512).enumerate().skip(lba.0 as usize) {
            if !out(Lba(i as u64)..Lba(i as u64 + 1), block != [0; 512]) {
                break;
            }
        }
        Ok(())
    }

    fn readable(&self, lba: Lba, blocks: Blocks) -> Done {
        self.readable.borrow_mut().push((lba.0, blocks.0));
        self.done()
    }

    fn zone_statistics(&self) -> Option<ZoneStatistics> {
        self.statistics
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn modes(&self) -> Modes {
        self.modes.get()
    }

    fn set_modes(&self, modes: Modes) {
        self.modes.set(modes);
    }

    fn saved(&self) -> Option<Modes> {
        self.saved.get()
    }

    fn save(&self, modes: Modes) -> Done {
        self.done()?;
        self.saved.set(Some(modes));
        Ok(())
    }

    fn erase(&self, why: Erasing, wait: bool) -> Done {
        self.done()?;
        self.erased.borrow_mut().push((why, wait));
        Ok(())
    }

    fn erasing(&self) -> Option<Sense> {
        self.erasing.get()
    }

    fn self_tests(&self) -> Vec<SelfTest> {
        self.self_tests.borrow().clone()
    }

    fn tested(&self, test: SelfTest) {
        self.self_tests.borrow_mut().insert(0, test);
    }

    fn keeps_reservations(&self) -> bool {
        self.kept.borrow().is_some()
    }

    fn keep_reservations(&self, text: Option<&str>) -> Done {
        self.done()?;
        *self.kept.borrow_mut() = Some(text.map(str::to_owned));
        Ok(())
    }

    fn reserved(&self, look: &mut dyn FnMut(&Reservations)) {
        look(&self.reservations.borrow());
    }

    fn reserve(&self, change: &mut dyn FnMut(&mut Reservations)) {
        change(&mut self.reservations.borrow_mut());
    }

    fn flush(&self) -> Done {
        self.flushes.set(self.flushes.get() + 1);
        self.done()
    }

    fn discard(&self, lba: Lba, blocks: Blocks) -> Done {
        let at = lba.0 as usize * 512;
        self.bytes.borrow_mut()[at..at + blocks.bytes() as usize].fill(0);
        Ok(())
    }

    fn zone(&self, action: ZoneAction, zones: Option<Range<Lba>>) -> Done {
        self.done()?;
        self.acted.borrow_mut().push((action, zones));
        Ok(())
    }

    fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool) {
        for zone in self.zones.iter().filter(|z| z.end() > from) {
            if !out(zone) {
                return;
            }
        }
    }
}
