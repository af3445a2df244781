//! What an array says of itself for the registry, and what it is built from.
//!
//! An array ends in its [`ArrayEntry`]: parsing, errors, `smrlab list arrays`, `smrlab explain`, the reference page and the
//! tests of all arrays are made from it.

use crate::{Array, Capabilities, cache};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, Zone, ZoneKind, ZoneLimits};

/// Most drives of an array: members have 32-bit numbers, and streams 16.
pub const MOST_DISKS: u64 = 65_535;

/// What stands in a text between an array and what its members are.
pub const BELOW: &str = " / ";

/// The parameter that says how many drives there are.
pub const DISKS: Param = Param::new("disks", Kind::Count(1, MOST_DISKS), "4").doc("drives in the array");

/// The parameter that says how much of the host's space stays together on a drive.
pub const CHUNK: Param = Param::new("chunk", Kind::Size, "64KiB").doc("consecutive blocks on one drive");

/// The parameters of every array but `single`: what befalls its drives, and what they share.
pub const COMMON: &[Param] = &[
    Param::new("timeout", Kind::Time, "").doc(
        "the host's command timeout: a drive that has not answered for so long, its queue and a \
         shared bus included, is thrown out, an SSD is not; none without it",
    ),
    Param::new("fail", Kind::Text, "")
        .doc("drives that die, as DISK@TIME, several joined by '+': 2@10s+0@1000s"),
    Param::new("replace", Kind::Time, "").doc(
        "how long after its death, or after the beginning of a run that finds it dead, a drive is \
         replaced by a fresh one; never without it",
    ),
    Param::new("spares", Kind::Count(0, MOST_DISKS), "1").doc("fresh drives to replace dead ones"),
    Param::new("bus", Kind::Real(0.001, 1e6), "").doc(
        "MB/s of one bus for the data of all disks, beside each one's own: two actuators of a drive; \
         without it each has its own",
    ),
];

/// What an array is built for.
#[derive(Clone, Copy, Debug)]
pub struct ArrayContext<'a> {
    disks: &'a [Blocks],
    zones: &'a [Vec<Zone>],
    /// What the disks say of their zones as a whole.
    limits: Option<ZoneLimits>,
    /// Seed of whatever an array draws.
    pub seed: u64,
}

impl<'a> ArrayContext<'a> {
    /// For disks of these sizes.
    pub fn new(disks: &'a [Blocks]) -> Self {
        Self { disks, zones: &[], limits: None, seed: 1 }
    }

    /// The same with what each of the disks reports of its zones.
    #[must_use]
    pub fn zoned(self, zones: &'a [Vec<Zone>]) -> Self {
        Self { zones, ..self }
    }

    /// The same of disks with these limits.
    #[must_use]
    pub fn limited(self, limits: Option<ZoneLimits>) -> Self {
        Self { limits, ..self }
    }

    /// The limits of its disks.
    pub(crate) fn limits(&self) -> Option<ZoneLimits> {
        self.limits
    }

    /// What a disk reports of its zones; nothing where it has none.
    pub fn zones(&self, disk: usize) -> &'a [Zone] {
        self.zones.get(disk).map_or(&[], |zones| zones)
    }

    /// What all disks report.
    pub(crate) fn all_zones(&self) -> &'a [Vec<Zone>] {
        self.zones
    }

    /// Whether any disk has zones.
    pub fn has_zones(&self) -> bool {
        self.zones.iter().any(|zones| !zones.is_empty())
    }

    /// Whether any disk has zones that must be written in order.
    pub fn must_write_in_order(&self) -> bool {
        self.zones.iter().flatten().any(|zone| zone.kind == ZoneKind::SequentialRequired)
    }

    /// The same with this seed.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The sizes of the disks.
    pub fn disks(&self) -> &'a [Blocks] {
        self.disks
    }

    /// The size of the smallest disk.
    pub fn least(&self) -> Blocks {
        self.disks.iter().copied().min().unwrap_or_default()
    }

    /// The chunk that a user wants: at least a block, at most a disk.
    ///
    /// # Errors
    /// One that does not fit.
    pub fn chunk(&self, values: &Values) -> Result<Blocks, SpecError> {
        let least = self.least();
        let chunk = values.size("chunk", least);
        if chunk == Blocks::ZERO || chunk > least {
            return Err(values.bad("chunk", format!("from one block to the {least} blocks of a disk")));
        }
        Ok(chunk)
    }
}

/// What an array's constructor answers.
pub type BuildResult = Result<Box<dyn Array>, SpecError>;

/// Which drives an array can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Those that take writes anywhere.
    Drives,
    /// Those with zones, which it keeps in order.
    Zones,
    /// Either.
    Both,
}

impl Takes {
    /// Whether it keeps zones in order.
    pub fn zones(self) -> bool {
        self != Self::Drives
    }
}

/// One array of the registry.
pub struct ArrayEntry {
    /// The name that users write.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it was published.
    pub reference: &'static str,
    /// The user's page.
    pub page: &'static str,
    /// Its own parameters.
    pub params: &'static [Param],
    /// What it promises.
    pub capabilities: Capabilities,
    /// Which drives it can be made of.
    pub takes: Takes,
    /// It reads blocks that it never wrote.
    pub reads_unwritten: bool,
    /// The disk that is conventional, whatever layer the others have.
    pub conventional: fn(&Values) -> Option<u32>,
    /// Builds it from checked values.
    pub build: fn(&ArrayContext<'_>, &Values) -> BuildResult,
}

impl ArrayEntry {
    /// One that `build` builds of drives of any kind, without names yet; it survives power cuts and no loss.
    pub const fn new(build: fn(&ArrayContext<'_>, &Values) -> BuildResult) -> Self {
        Self {
            name: "",
            summary: "",
            reference: "",
            page: "",
            params: &[],
            capabilities: Capabilities { losses: 0, survives_cut: true, discards: true },
            takes: Takes::Drives,
            reads_unwritten: false,
            conventional: |_| None,
            build,
        }
    }

    /// Whether discarded blocks read as zeroes; `drives`: those of its drives do.
    pub fn discards(&self, drives: bool) -> bool {
        self.capabilities.discards && (self.takes.zones() || drives)
    }

    /// How many disks it is made of: as `disks` says, or one.
    pub fn disks(&self, values: &Values) -> u32 {
        let several = self.params.iter().any(|param| param.name == DISKS.name);
        if several { values.count(DISKS.name) as u32 } else { 1 }
    }

    /// All its parameters.
    pub fn parameters(&self) -> Vec<Param> {
        let mut all = self.params.to_vec();
        if !all.is_empty() {
            all.extend_from_slice(COMMON);
            all.extend_from_slice(cache::PARAMS);
        }
        all
    }
}
