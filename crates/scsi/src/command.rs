//! What a command is, and one that is being carried out.

use crate::reservations::{Access, Reservations};
use crate::{Disk, Facts, Fault, Refused, Sense, number};

/// A command that is being carried out.
pub(crate) struct Call<'a> {
    pub disk: &'a dyn Disk,
    /// All commands that any disk knows.
    pub known: &'static [Command],
    /// The initiator port that sent it.
    pub host: &'a str,
    pub cdb: &'a [u8],
    /// What the host sent with it.
    pub out: &'a [u8],
}

impl Call<'_> {
    pub(crate) fn facts(&self) -> &Facts {
        self.disk.facts()
    }

    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.cdb[at]
    }

    /// A big-endian number in the CDB.
    pub(crate) fn number(&self, at: usize, bytes: usize) -> u64 {
        number(self.cdb, at, bytes)
    }

    /// What a disk answered to a change: what the change itself says of bytes stays as it is.
    pub(crate) fn changed(&self, done: Result<(), Fault>) -> Result<(), Sense> {
        match done {
            Err(Fault { why, at: None }) => Err(why),
            done => self.told(done),
        }
    }

    /// What a disk answered, in the words of the host.
    pub(crate) fn told(&self, done: Result<(), Fault>) -> Result<(), Sense> {
        let ratio = self.facts().ratio();
        done.map_err(|f| Sense { block: f.at.map(|at| at.0 / ratio), ..f.why })
    }
}

/// Data for the host, as much of it as there is; the allocation length cuts it.
pub(crate) type Answer = Result<Vec<u8>, Sense>;

/// Which disks know a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    All,
    Discards,
    /// Those that discard and have no zones to tell what was written.
    Thin,
    Zoned,
}

/// What carries a command out.
pub(crate) type Run = fn(&Call<'_>) -> Answer;
/// What carries out one that asks for reservations or changes them.
pub(crate) type Reserving = fn(&mut Reservations, &Call<'_>) -> Result<Vec<u8>, Refused>;
/// How many bytes the host sends with a command.
pub(crate) type Length = fn(&Call<'_>) -> u64;

/// How a command is carried out.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    Plain(Run),
    /// With the reservations, while no other command is carried out.
    Reserving(Reserving),
}

/// One command.
pub(crate) struct Command {
    pub code: u8,
    /// The service action, in byte 1.
    pub service: Option<u8>,
    /// The bits of the CDB that are looked at, as REPORT SUPPORTED OPERATION CODES has it; as long as the CDB.
    pub usage: &'static [u8],
    pub whose: Whose,
    /// It changes what is on the disk: refused where a host protected it.
    pub writes: bool,
    /// What the host sends must be as long as the command takes.
    pub exact: bool,
    /// Where the allocation length is: its first byte and how many.
    pub allocation: Option<(usize, usize)>,
    /// How many bytes the host sends with it.
    pub out: Length,
    pub access: Access,
    pub run: Handler,
}

impl Command {
    /// Whether the disk knows it.
    pub(crate) fn of(&self, facts: &Facts) -> bool {
        match self.whose {
            Whose::All => true,
            Whose::Discards => facts.discards,
            Whose::Thin => facts.discards && facts.zones().is_none(),
            Whose::Zoned => facts.zones().is_some(),
        }
    }

    /// What this one does to the disk, as far as reservations are concerned: START STOP UNIT that stops the disk is kept from others (SBC-4).
    pub(crate) fn accesses(&self, cdb: &[u8]) -> Access {
        if self.code == 0x1b && cdb[4] & 0x01 == 0 { Access::Writes } else { self.access }
    }

    /// The bits of byte `at` that may be set.
    pub(crate) fn allowed(&self, at: usize) -> u8 {
        match (at, self.service) {
            (0, _) => 0xff,
            (1, Some(service)) => self.usage[1] | service,
            _ => self.usage[at],
        }
    }
}
