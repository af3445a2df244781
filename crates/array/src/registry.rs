//! The registry: every array, one explicit line each.
//!
//! An array is one file under `layouts/` that ends in its [`ArrayEntry`], and one line in [`ARRAYS`].

use crate::entry::{ArrayContext, ArrayEntry, BuildResult, COMMON};
use crate::layouts::{dedicated, dm_zoned, dvs, mirror, raid5, raid6, single, spanning, striped, zone_log};
use crate::{Array, MemberId, Schedule, Ssd, cache};
use smrlab_units::spec::{SpecError, Values, nearest, split_item};
use smrlab_units::{BLOCK_BYTES, SimTime, parse_time};

/// Every array.
pub static ARRAYS: &[&ArrayEntry] = &[
    &single::ENTRY,
    &spanning::ENTRY,
    &striped::ENTRY,
    &dedicated::ENTRY,
    &mirror::ENTRY,
    &raid5::ENTRY,
    &raid6::ENTRY,
    &dvs::ENTRY,
    &dm_zoned::ENTRY,
    &zone_log::ENTRY,
];

/// What `chunk` of `striped` was called by earlier versions.
const OLD_CHUNK: &str = "stripe_unit";

/// An array as a user specified it.
#[derive(Clone)]
pub struct Chosen {
    /// Its entry.
    pub entry: &'static ArrayEntry,
    /// Disks that it is made of.
    pub disks: u32,
    /// What befalls them.
    pub schedule: Schedule,
    /// Fresh drives.
    pub spares: u32,
    /// The specification with its defaults.
    pub resolved: String,
    values: Values,
}

impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chosen").field("resolved", &self.resolved).finish_non_exhaustive()
    }
}

impl Chosen {
    /// One drive, and nothing in between.
    pub fn is_single(&self) -> bool {
        self.entry.name == single::ENTRY.name
    }

    /// Builds it on its disks.
    ///
    /// # Errors
    /// What does not fit on them.
    pub fn build(&self, context: &ArrayContext<'_>) -> BuildResult {
        self.fits_zones(context)?;
        let array = (self.entry.build)(context, &self.values)?;
        let discards = self.entry.capabilities.discards;
        if self.is_single() { Ok(array) } else { cache::before(array, context, &self.values, discards) }
    }

    /// Whether it is one for drives whose zones the host keeps in order, if these are such.
    fn fits_zones(&self, context: &ArrayContext<'_>) -> Result<(), SpecError> {
        let name = self.entry.name;
        let text = match (self.entry.zoned, context.has_zones()) {
            (true, false) => format!(
                "{name}: the drive below it shows no zones: put the layer zoned there, as in '{name} / zoned'"
            ),
            (false, true) if !self.is_single() => format!(
                "{name}: its drives are host-managed and refuse what is out of order: put dm-zoned or zone-log between, one for each drive"
            ),
            _ => return Ok(()),
        };
        Err(SpecError::Other(text))
    }

    /// The specification without what befalls its drives: what arrays have in common of which one has the other's state.
    pub fn identity(&self) -> String {
        let (name, pairs) = split_item(&self.resolved);
        let own = pairs.iter().filter(|(key, _)| COMMON.iter().all(|param| param.name != *key));
        name.to_owned() + &own.map(|(key, value)| format!(",{key}={value}")).collect::<String>()
    }

    /// Writes make more dirty than the host wrote (`ssd_round`): nobody can say what that is.
    pub fn invents(&self) -> bool {
        !self.is_single() && self.values.on("ssd_round")
    }

    /// The SSD that the array needs beside its disks, as the member behind them.
    pub fn ssd(&self, array: &dyn Array) -> Option<Ssd> {
        if self.is_single() { None } else { cache::ssd(&self.values, array) }
    }
}

/// Parses `NAME[,key=value...]`.
///
/// # Errors
/// Unknown names and keys with the nearest match, and values out of range with the accepted range.
pub fn parse(text: &str) -> Result<Chosen, SpecError> {
    let (name, mut pairs) = split_item(text);
    pairs.iter_mut().filter(|p| p.0 == OLD_CHUNK).for_each(|p| p.0 = "chunk");
    let entry = ARRAYS.iter().find(|a| a.name == name).copied().ok_or_else(|| SpecError::UnknownName {
        what: "array",
        name: name.to_owned(),
        nearest: nearest(name, ARRAYS.iter().map(|a| a.name)),
        known: ARRAYS.iter().map(|a| a.name).collect::<Vec<_>>().join(", "),
    })?;
    let values = Values::check(entry.name, &entry.parameters(), &pairs)?;
    let disks = (entry.disks)(&values);
    let plain = entry.params.is_empty();
    let schedule = if plain { Schedule::default() } else { schedule(&values, disks)? };
    let wanted = if plain { 0 } else { values.count("spares").unwrap_or(1) as u32 };
    let replaced = schedule.replace_after.is_some();
    if wanted > 1 && !replaced {
        return Err(values.bad(
            "spares",
            "0 or 1 without replace=, which says how long after its death a drive is replaced",
        ));
    }
    let spares = if replaced { wanted } else { 0 };
    Ok(Chosen { entry, disks, schedule, spares, resolved: values.resolved(), values })
}

fn schedule(values: &Values, disks: u32) -> Result<Schedule, SpecError> {
    let mut fails = Vec::new();
    for one in values.text("fail").into_iter().flat_map(|t| t.split('+')) {
        let parsed = one.split_once('@').and_then(|(disk, at)| {
            let disk = disk.trim().parse::<u32>().ok().filter(|d| *d < disks)?;
            Some((MemberId(disk), parse_time(at.trim()).ok()?))
        });
        let accepts = || format!("DISK@TIME such as 0@10s, of disks 0 to {}, joined by '+'", disks - 1);
        fails.push(parsed.ok_or_else(|| values.bad("fail", accepts()))?);
    }
    let timeout = values.time("timeout");
    if timeout == Some(SimTime::ZERO) {
        return Err(values.bad("timeout", "a time above 0"));
    }
    // Megabytes a second are bytes a microsecond.
    let bus = values.real("bus").map(|rate| SimTime((BLOCK_BYTES as f64 * 1000.0 / rate).round() as u64));
    Ok(Schedule { timeout, fails, replace_after: values.time("replace"), bus })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_with_the_nearest_name_and_the_accepted_range() {
        let fault = |text: &str| parse(text).unwrap_err().to_string();
        assert!(fault("radi5").contains("did you mean 'raid5'?"), "{}", fault("radi5"));
        assert!(fault("raid5,disk=3").contains("did you mean 'disks'?"));
        assert!(fault("raid5,fail=5@1s").contains("disks 0 to 4"), "{}", fault("raid5,fail=5@1s"));
        assert!(fault("single,disks=2").contains("no parameter"));
        assert!(fault("raid5,spares=2").contains("without replace="), "{}", fault("raid5,spares=2"));
        assert_eq!(parse("raid5,spares=2,replace=1s").unwrap().spares, 2);
        let again = parse(&parse("raid5").unwrap().resolved).unwrap();
        assert_eq!((again.spares, again.resolved), (0, parse("raid5").unwrap().resolved));
        let (old, new) = ("striped,stripe_unit=8KiB", "striped,chunk=8KiB");
        assert_eq!(parse(old).unwrap().resolved, parse(new).unwrap().resolved);
        let chosen = parse("raid5,disks=3,fail=2@1s+0@2s,timeout=30s,replace=5s").unwrap();
        assert_eq!(
            chosen.schedule.fails,
            [(MemberId(2), SimTime::from_ms(1000)), (MemberId(0), SimTime::from_ms(2000))]
        );
        assert_eq!((chosen.disks, chosen.spares), (3, 1));
    }

    #[test]
    fn names_are_unique_and_every_entry_is_documented() {
        let mut seen = std::collections::BTreeSet::new();
        for e in ARRAYS {
            assert!(seen.insert(e.name), "{} twice", e.name);
            assert!(e.page.len() > 100 && !e.summary.is_empty() && !e.reference.is_empty(), "{}", e.name);
            parse(e.name).unwrap_or_else(|err| panic!("{}: {err}", e.name));
        }
    }
}
