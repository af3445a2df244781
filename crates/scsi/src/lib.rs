//! SCSI without transport and without I/O.
//!
//! The device's side: [`execute`] answers a command of SBC-4 or ZBC-2 from a [`Disk`]; [`data_out`] says how many bytes it brings. The
//! host's side: [`ask`] builds the commands that ask a disk what it is, [`says`] reads its answers.

pub mod ask;
mod blocks;
mod command;
mod commands;
mod erase;
mod inquiry;
mod log;
mod mode;
mod opcodes;
mod persistent;
mod reservations;
pub mod says;
mod sense;
mod zones;

pub use commands::{data_out, execute, execute_absent, takes_exactly};
pub use mode::Modes;
pub use reservations::{Keeps, Key, Reservations};
pub use sense::Sense;

use smrlab_units::{BLOCK_BYTES, Blocks, Lba, Zone, ZoneAction, ZoneLimits, ZoneStatistics};
use std::ops::Range;

/// The most bytes that one command moves; the page of block limits says so.
pub const MOST_BYTES: u64 = 32 << 20;

/// Who keeps the tracks of a drive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nobody has to.
    Conventional,
    /// The drive alone.
    DriveManaged,
    /// The host: the device type is that of a zoned block device.
    HostManaged(ZoneLimits),
    /// The drive, which says how the host can spare it that: an ordinary disk with zones.
    HostAware(ZoneLimits),
}

/// What a disk says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its size.
    pub blocks: Blocks,
    /// Bytes of a logical block: 512 or 4096.
    pub logical: u32,
    /// Bytes of a physical block: as long as a logical one, or longer.
    pub physical: u32,
    /// Its product identification, of which 16 characters are said.
    pub product: String,
    /// Its serial number.
    pub serial: String,
    /// Nominal revolutions a minute; `None`: not said.
    pub rpm: Option<u16>,
    /// Discards free space, and discarded blocks read as zeroes.
    pub discards: bool,
    /// Who keeps the tracks in order.
    pub kind: Kind,
}

impl Facts {
    /// Its size in logical blocks.
    pub fn logical_blocks(&self) -> u64 {
        self.blocks.bytes() / u64::from(self.logical)
    }

    fn zones(&self) -> Option<ZoneLimits> {
        match self.kind {
            Kind::HostManaged(limits) | Kind::HostAware(limits) => Some(limits),
            Kind::Conventional | Kind::DriveManaged => None,
        }
    }

    /// Blocks of 512 bytes in a logical one.
    fn ratio(&self) -> u64 {
        u64::from(self.logical) / BLOCK_BYTES
    }
}

/// Why a command was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Status CHECK CONDITION, with sense data.
    Check(Sense),
    /// Status RESERVATION CONFLICT: another host reserved the disk.
    Conflict,
}

impl From<Sense> for Refused {
    fn from(sense: Sense) -> Self {
        Self::Check(sense)
    }
}

/// What a disk counted since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Reads that did not bring the data.
    pub unrecovered: u64,
    /// How long it has had power.
    pub minutes: u32,
}

/// A self-test that was made, and passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTest {
    /// Which one: SELF-TEST CODE of SEND DIAGNOSTIC.
    pub code: u8,
    /// When: how long the disk had power.
    pub minutes: u32,
}

/// Why a disk is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erasing {
    /// FORMAT UNIT.
    Format,
    /// SANITIZE.
    Sanitize,
}

impl Erasing {
    /// What is told of it while it goes on, `progress` 65536ths of it done.
    pub fn going_on(self, progress: u16) -> Sense {
        let sense = if self == Self::Format { Sense::FORMATTING } else { Sense::SANITIZING };
        Sense { progress: Some(progress), ..sense }
    }

    /// What is told when it failed.
    pub fn failed(self) -> Sense {
        if self == Self::Format { Sense::FORMAT_FAILED } else { Sense::SANITIZE_FAILED }
    }
}

/// Why a disk did not do something, and at which block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What the host is told.
    pub why: Sense,
    /// Where.
    pub at: Option<Lba>,
}

impl From<Sense> for Fault {
    fn from(why: Sense) -> Self {
        Self { why, at: None }
    }
}

/// What a disk's methods answer.
pub type Done = Result<(), Fault>;

/// What commands act on. Addresses are in blocks of 512 bytes, whole logical blocks, and lie within the size.
pub trait Disk {
    /// What it says of itself.
    fn facts(&self) -> &Facts;

    /// Fills `out` from `lba`.
    ///
    /// # Errors
    /// What the host is told.
    fn read(&self, lba: Lba, out: &mut [u8]) -> Done;

    /// Writes `data` at `lba`; with `fua` it is durable on return.
    ///
    /// # Errors
    /// What the host is told; nothing was written then.
    fn write(&self, lba: Lba, data: &[u8], fua: bool) -> Done;

    /// Reads the blocks from `lba` on into `bytes`, has `change` change them, and writes them: no other command writes in between. Where `change`
    /// fails nothing is written.
    ///
    /// # Errors
    /// What the host is told.
    fn change(&self, lba: Lba, bytes: &mut [u8], fua: bool, change: &mut Change<'_>) -> Done;

    /// Whether a read of these blocks brings data; nothing is read.
    ///
    /// # Errors
    /// What the host would be told.
    fn readable(&self, lba: Lba, blocks: Blocks) -> Done {
        let _ = (lba, blocks);
        Ok(())
    }

    /// Makes everything acknowledged durable.
    ///
    /// # Errors
    /// What the host is told.
    fn flush(&self) -> Done;

    /// Frees blocks, which read as zeroes after that. Called where [`Facts::discards`] says so.
    ///
    /// # Errors
    /// What the host is told.
    fn discard(&self, lba: Lba, blocks: Blocks) -> Done;

    /// Which blocks from `lba` to the end hold data: calls `out` with stretches in order, the first of which begins there, until it answers
    /// `false`. Called where [`Facts::discards`] says so.
    ///
    /// # Errors
    /// What the host is told.
    fn extents(&self, lba: Lba, out: &mut Extents<'_>) -> Done;

    /// Does something with each of the zones of which `zones` has the blocks, all of which have write pointers, or with none of them; `None`: with
    /// all to which the action applies.
    ///
    /// # Errors
    /// What the host is told; nothing changed then.
    fn zone(&self, action: ZoneAction, zones: Option<Range<Lba>>) -> Done;

    /// The zones from the one with `from` on, in order, until `out` answers `false`.
    fn zones(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool);

    /// Erases the disk: all blocks read as zeroes, and all zones that have a write pointer and do not fail are empty. With `wait` it is done on return,
    /// otherwise it goes on behind it, and may fail behind it.
    ///
    /// # Errors
    /// What the host is told.
    fn erase(&self, why: Erasing, wait: bool) -> Done;

    /// What a host is told of an erasure that is going on, or failed.
    fn erasing(&self) -> Option<Sense> {
        None
    }

    /// What it counted of its zones; `None`: nothing, or it has none.
    fn zone_statistics(&self) -> Option<ZoneStatistics> {
        None
    }

    /// What it counted of reads and writes.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// What hosts changed; at first [`Modes::default`].
    fn modes(&self) -> Modes;

    /// Keeps what a host changed.
    fn set_modes(&self, modes: Modes);

    /// What a host saved, at first [`Modes::default`]; `None`: nothing can be saved.
    fn saved(&self) -> Option<Modes> {
        None
    }

    /// Saves modes, as far as they can be. Called where [`saved`](Self::saved) answers something.
    ///
    /// # Errors
    /// What the host is told.
    fn save(&self, modes: Modes) -> Done {
        let _ = modes;
        Ok(())
    }

    /// Self-tests that were made, the last one first.
    fn self_tests(&self) -> Vec<SelfTest> {
        Vec::new()
    }

    /// Keeps that a self-test was made.
    fn tested(&self, test: SelfTest) {
        let _ = test;
    }

    /// Whether reservations can be kept when the power is lost.
    fn keeps_reservations(&self) -> bool {
        false
    }

    /// Keeps the text of reservations ([`Reservations::to_text`]) instead of what was kept before. Called where
    /// [`keeps_reservations`](Self::keeps_reservations) says so.
    ///
    /// # Errors
    /// What the host is told; what was kept before is kept still.
    fn keep_reservations(&self, text: Option<&str>) -> Done {
        let _ = text;
        Ok(())
    }

    /// Has `look` look at who reserved the disk; nobody changes that meanwhile.
    fn reserved(&self, look: &mut dyn FnMut(&Reservations));

    /// Has `change` change who reserved the disk, at first nobody; no `look` is at work meanwhile.
    fn reserve(&self, change: &mut dyn FnMut(&mut Reservations));
}

/// What is told of stretches of blocks: whether they hold data.
pub type Extents<'a> = dyn FnMut(Range<Lba>, bool) -> bool + 'a;

/// What a command makes of the bytes that it read.
pub type Change<'a> = dyn FnMut(&mut [u8]) -> Result<(), Sense> + 'a;

/// Big-endian numbers in a CDB or a list of parameters; bytes that are not there count as zero.
pub(crate) fn number(data: &[u8], at: usize, bytes: usize) -> u64 {
    (at..at + bytes).fold(0, |n, i| n << 8 | u64::from(data.get(i).copied().unwrap_or(0)))
}
