//! Addresses and lengths in blocks.

use crate::ZoneAction;
use std::fmt;
use std::ops::{Add, AddAssign, Range, Sub, SubAssign};

/// Bytes in a block.
pub const BLOCK_BYTES: u64 = 512;

/// What a host asks for. In two bytes, kind and action: in one, every look at the kind would take both apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum HostOp {
    /// Read blocks.
    Read,
    /// Write blocks.
    Write,
    /// Make everything acknowledged so far durable; address and length are ignored.
    Flush,
    /// Forget the blocks: they read as zeroes until they are written again.
    Discard,
    /// Write blocks at the write pointer of the zone that begins at the address; the answer says where that was.
    Append,
    /// Change the condition of every zone of which the range has a block.
    Zone(ZoneAction),
}

impl HostOp {
    /// How many [`index`](Self::index) tells apart.
    pub const KINDS: usize = 9;

    /// All of them, each at its [`index`](Self::index).
    pub const ALL: [Self; Self::KINDS] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Discard,
        Self::Append,
        Self::Zone(ZoneAction::Close),
        Self::Zone(ZoneAction::Finish),
        Self::Zone(ZoneAction::Open),
        Self::Zone(ZoneAction::Reset),
    ];

    /// A number for tables: reads 0, writes 1.
    #[inline]
    pub const fn index(self) -> usize {
        // Each kind's own place, for which the compiler needs no jump: whether a request reads or writes cannot be predicted.
        let kind = match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Flush => 2,
            Self::Discard => 3,
            Self::Append => 4,
            Self::Zone(_) => 5,
        };
        // Actions count from 1 on.
        if let Self::Zone(action) = self { kind + action as usize - 1 } else { kind }
    }

    /// What it is called in results and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::Append => "append",
            Self::Zone(ZoneAction::Close) => "zone-close",
            Self::Zone(ZoneAction::Finish) => "zone-finish",
            Self::Zone(ZoneAction::Open) => "zone-open",
            Self::Zone(ZoneAction::Reset) => "zone-reset",
        }
    }
}

/// Direction of a media operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Dir {
    /// From the medium.
    Read,
    /// To the medium, destroying what interferes.
    Write,
}

/// A length in blocks of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blocks(pub u64);

impl Blocks {
    /// No blocks.
    pub const ZERO: Self = Self(0);

    /// The length in bytes.
    pub const fn bytes(self) -> u64 {
        self.0 * BLOCK_BYTES
    }

    /// How many whole blocks hold `bytes` bytes (rounded up).
    pub const fn holding(bytes: u64) -> Self {
        Self(bytes.div_ceil(BLOCK_BYTES))
    }
}

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// The `n` addresses from this one on.
            pub const fn span(self, n: Blocks) -> Range<u64> {
                self.0..self.0 + n.0
            }
        }
        impl Add<Blocks> for $name {
            type Output = Self;
            fn add(self, n: Blocks) -> Self {
                Self(self.0 + n.0)
            }
        }
        impl AddAssign<Blocks> for $name {
            fn add_assign(&mut self, n: Blocks) {
                self.0 += n.0;
            }
        }
        impl Sub for $name {
            type Output = Blocks;
            fn sub(self, lower: Self) -> Blocks {
                Blocks(self.0 - lower.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

address! {
    /// Host block address.
    Lba
}
address! {
    /// Position on the medium in blocks, rising in the shingling direction.
    Pba
}

impl Add for Blocks {
    type Output = Self;
    fn add(self, n: Self) -> Self {
        Self(self.0 + n.0)
    }
}

impl AddAssign for Blocks {
    fn add_assign(&mut self, n: Self) {
        self.0 += n.0;
    }
}

impl Sub for Blocks {
    type Output = Self;
    fn sub(self, n: Self) -> Self {
        Self(self.0 - n.0)
    }
}

impl SubAssign for Blocks {
    fn sub_assign(&mut self, n: Self) {
        self.0 -= n.0;
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
