//! An array as users write it: parsed, resolved, asked what it is, and built.

use crate::entry::{ArrayContext, ArrayEntry, BELOW, COMMON, MOST_DISKS, Takes};
use crate::event_loop::SharedBus;
use crate::layouts::single;
use crate::nested::{Nested, Shape};
use crate::registry::ARRAYS;
use crate::{Array, Capabilities, MemberId, Schedule, Ssd, cache};
use smrlab_units::spec::{SpecError, Values, split_item};
use smrlab_units::{BLOCK_BYTES, Blocks, SimTime, Zone, ZoneKind, parse_time};
use std::ops::Range;
use std::sync::Arc;

/// What `chunk` of `striped` was called by earlier versions.
const OLD_CHUNK: &str = "stripe_unit";

/// An array as a user specified it, with what its members are.
#[derive(Clone)]
pub struct Chosen {
    /// Its entry.
    pub entry: &'static ArrayEntry,
    /// Drives that it is made of, those of its members included.
    pub disks: u32,
    /// What befalls them.
    pub schedule: Schedule,
    /// Fresh drives.
    pub spares: u32,
    /// The specification with its defaults.
    pub resolved: String,
    values: Values,
    /// Members of its own.
    members: u32,
    /// What each of them is; `None`: a drive.
    below: Option<Box<Self>>,
}

impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chosen").field("resolved", &self.resolved).finish_non_exhaustive()
    }
}

/// An array that can be run.
pub struct BuiltArray {
    /// The state machine.
    pub array: Box<dyn Array>,
    /// The SSDs that it needs beside its drives, as the members behind them.
    pub ssds: Vec<Ssd>,
}

impl Chosen {
    /// One drive, and nothing in between.
    pub fn is_single(&self) -> bool {
        self.entry.name == single::ENTRY.name
    }

    /// Its members are arrays.
    pub fn is_nested(&self) -> bool {
        self.below.is_some()
    }

    /// What it promises, whatever its members lose.
    pub fn capabilities(&self) -> Capabilities {
        let own = self.entry.capabilities;
        let Some(below) = self.below.as_ref().map(|below| below.capabilities()) else { return own };
        Capabilities {
            losses: (own.losses + 1) * (below.losses + 1) - 1,
            survives_cut: own.survives_cut && below.survives_cut,
            discards: own.discards && below.discards,
        }
    }

    /// The layer of a drive where `layer` was asked for: `cmr` of one that is to be conventional, and of the spare for one that
    /// dies when the schedule says so.
    pub fn layer_of<'a>(&self, disk: u32, layer: &'a str) -> &'a str {
        let place = if disk < self.disks { Some(disk) } else { self.replaces(disk) };
        if place.is_some_and(|disk| self.is_conventional(disk)) { "cmr" } else { layer }
    }

    /// The drive whose place a spare takes by the schedule: the last spare that of the first one to die.
    fn replaces(&self, spare: u32) -> Option<u32> {
        let mut fails = self.schedule.fails.clone();
        fails.sort_by_key(|(_, at)| *at);
        let (after, mut deaths) = (self.schedule.replace_after?, Vec::<(MemberId, SimTime)>::new());
        for (disk, at) in fails {
            // One that is dead and not replaced yet does not die again.
            if deaths.iter().all(|(dead, since)| *dead != disk || *since + after < at) {
                deaths.push((disk, at));
            }
        }
        let nth = (self.disks + self.spares).checked_sub(spare + 1)?;
        deaths.get(nth as usize).map(|(member, _)| member.0)
    }

    /// Whether a drive is to be conventional.
    pub fn is_conventional(&self, disk: u32) -> bool {
        let own = (self.entry.conventional)(&self.values);
        match &self.below {
            None => own == Some(disk),
            Some(below) => own == Some(disk / below.disks) || below.is_conventional(disk % below.disks),
        }
    }

    /// Whether the arrays that stand on the drives keep zones in order, if the drives have some.
    pub fn keeps_zones(&self) -> bool {
        self.below.as_ref().map_or(self.entry.takes.zones(), |below| below.keeps_zones())
    }

    /// Whether discarded blocks read as zeroes; `drives`: those of its drives do.
    pub fn discards(&self, drives: bool) -> bool {
        self.entry.discards(self.below.as_ref().map_or(drives, |below| below.discards(drives)))
    }

    /// Builds it on its drives.
    ///
    /// # Errors
    /// What does not fit on them.
    pub fn build(&self, context: &ArrayContext<'_>) -> Result<BuiltArray, SpecError> {
        let Some(below) = &self.below else { return self.build_own(context) };
        let each = below.disks as usize;
        let (sizes, zones): (_, Arc<[Vec<Zone>]>) = (context.disks().to_vec(), context.all_zones().into());
        let (chosen, seed, all_zones) = (below.clone(), context.seed, Arc::clone(&zones));
        let limits = context.limits();
        let make = move |member: usize| {
            let own = member * each..(member + 1) * each;
            let context = ArrayContext::new(&sizes[own.clone()]).zoned(zones.get(own).unwrap_or_default());
            chosen.build(&context.limited(limits).seeded(seed.wrapping_add((member * each) as u64)))
        };
        let built: Vec<BuiltArray> = (0..self.members as usize).map(&make).collect::<Result<_, _>>()?;
        if built.iter().any(|member| member.array.spaces() > 1) {
            return Err(below.no_one_space(self.entry.name));
        }
        let sizes: Vec<Blocks> = built.iter().map(|member| member.array.host_blocks()).collect();
        let BuiltArray { array, mut ssds } = self.build_own(&ArrayContext::new(&sizes).seeded(seed))?;
        let shape = Shape {
            members: self.members,
            own_ssds: ssds.len() as u32,
            disks: below.disks,
            ssds: built.first().map_or(0, |member| member.ssds.len() as u32),
            arrays: below.arrays(),
        };
        ssds.extend(built.into_iter().flat_map(|member| member.ssds));
        let make = Box::new(move |member| Some(make(member).ok()?.array));
        let nested = Nested::new(array, shape, make, all_zones).map(Box::new);
        let array = nested.ok_or_else(|| SpecError::Other("a member cannot be made".to_owned()))?;
        Ok(BuiltArray { array, ssds })
    }

    /// The array of this level on its members.
    fn build_own(&self, context: &ArrayContext<'_>) -> Result<BuiltArray, SpecError> {
        self.fits_zones(context)?;
        let array = (self.entry.build)(context, &self.values)?;
        if self.is_single() {
            return Ok(BuiltArray { array, ssds: Vec::new() });
        }
        let (discards, spaces) = (self.entry.capabilities.discards, array.spaces());
        let array = cache::before(array, context, &self.values, discards)?;
        let ssds: Vec<_> = cache::ssd(&self.values, &*array).into_iter().collect();
        if spaces > 1 && !ssds.is_empty() {
            return Err(self.no_one_space("an SSD"));
        }
        Ok(BuiltArray { array, ssds })
    }

    /// Why `above` cannot stand before an array of several spaces.
    fn no_one_space(&self, above: &str) -> SpecError {
        let name = self.entry.name;
        SpecError::Other(format!(
            "{name}: each source of requests has a space of its own there, and {above} before it would take them for one: put {name} first"
        ))
    }

    /// How many arrays it is.
    fn arrays(&self) -> u32 {
        1 + self.below.as_ref().map_or(0, |below| self.members * below.arrays())
    }

    /// The arrays from the host down.
    fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.below.as_deref())
    }

    /// Whether it is one for drives whose zones the host keeps in order, if these are such.
    fn fits_zones(&self, context: &ArrayContext<'_>) -> Result<(), SpecError> {
        let name = self.entry.name;
        let text = match self.entry.takes {
            Takes::Zones if !context.has_zones() => format!(
                "{name}: the drive below it shows no zones: put the layer zoned there, as in '{name} / zoned'"
            ),
            _ if self.entry.reads_unwritten && context.limits().is_some_and(|l| !l.unrestricted_reads) => {
                format!(
                    "{name}: reads above write pointers, which the drive below it refuses: leave urswrz=off out"
                )
            }
            Takes::Drives if context.must_write_in_order() && !self.is_single() => format!(
                "{name}: its drives are host-managed and refuse what is out of order: put dm-zoned or zone-log between, one for each drive, or take full-stripe"
            ),
            _ if !self.is_single() && context.zones(0).iter().any(|zone| zone.kind == ZoneKind::Gap) => {
                format!(
                    "{name}: needs zones that can be written to the next one's beginning: leave capacity= out"
                )
            }
            _ => return Ok(()),
        };
        Err(SpecError::Other(text))
    }

    /// The specification without what befalls its drives: what arrays have in common of which one has the other's state.
    pub fn identity(&self) -> String {
        let parts: Vec<&str> = self.resolved.split(BELOW).collect();
        let own = |part: &&str| {
            let (name, pairs) = split_item(part);
            let own = pairs.iter().filter(|(key, _)| COMMON.iter().all(|param| param.name != *key));
            name.to_owned() + &own.map(|(key, value)| format!(",{key}={value}")).collect::<String>()
        };
        parts.iter().map(own).collect::<Vec<_>>().join(BELOW)
    }

    /// Writes make more dirty than the host wrote (`ssd_round`): nobody can say what that is.
    pub fn invents(&self) -> bool {
        self.levels().any(|level| !level.is_single() && level.values.on("ssd_round"))
    }

    /// Where a drive is, as the members from the host down: `2.0` is the first drive of the third member.
    pub fn path(&self, disk: u32) -> String {
        let Some(below) = &self.below else { return disk.to_string() };
        format!("{}.{}", disk / below.disks, below.path(disk % below.disks))
    }

    /// The drives of a path, all of a member's where it ends above them.
    fn drives(&self, path: &str) -> Option<Range<u32>> {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let member = first.trim().parse::<u32>().ok().filter(|member| *member < self.members)?;
        let each = self.disks / self.members;
        let own = match (&self.below, rest) {
            (Some(below), Some(rest)) => below.drives(rest)?,
            (None, Some(_)) => return None,
            _ => 0..each,
        };
        Some(member * each + own.start..member * each + own.end)
    }

    /// What befalls the drives, after what each member's drives see.
    fn schedule(&self) -> Result<Schedule, SpecError> {
        let values = &self.values;
        let mut all = Schedule::default();
        if let Some(below) = &self.below {
            if below.schedule.replace_after.is_some() {
                let problem = "nothing here: all drives share their spares, which the first array has";
                return Err(below.values.bad("replace", problem));
            }
            for base in (0..self.members).map(|member| member * below.disks) {
                let Schedule { fails, buses, .. } = below.schedule.clone();
                all.fails.extend(fails.into_iter().map(|(m, at)| (MemberId(base + m.0), at)));
                let moved = |disks: Range<u32>| base + disks.start..base + disks.end;
                all.buses.extend(buses.into_iter().map(|bus| SharedBus { disks: moved(bus.disks), ..bus }));
            }
            all.timeout = below.schedule.timeout;
        }
        for one in values.text("fail").into_iter().flat_map(|t| t.split('+')) {
            let parsed = one
                .split_once('@')
                .and_then(|(disk, at)| Some((self.drives(disk.trim())?, parse_time(at.trim()).ok()?)));
            let accepts = || {
                let of = self.members - 1;
                match self.below {
                    None => format!("DISK@TIME such as 0@10s, of disks 0 to {of}, joined by '+'"),
                    Some(_) => format!(
                        "MEMBER@TIME or MEMBER.DISK@TIME such as 0.1@10s, of members 0 to {of}, joined by '+'"
                    ),
                }
            };
            let (disks, at) = parsed.ok_or_else(|| values.bad("fail", accepts()))?;
            all.fails.extend(disks.map(|disk| (MemberId(disk), at)));
        }
        let timeout = values.given("timeout", Values::time);
        if timeout == Some(SimTime::ZERO) {
            return Err(values.bad("timeout", "a time above 0"));
        }
        if timeout.is_some() && all.timeout.is_some() {
            return Err(
                values.bad("timeout", "one timeout in a stack: it is what every drive has to answer in")
            );
        }
        all.timeout = timeout.or(all.timeout);
        // Megabytes a second are bytes a microsecond.
        let block = |rate: f64| SimTime((BLOCK_BYTES as f64 * 1000.0 / rate).round() as u64);
        if let Some(block) = values.given("bus", Values::real).map(block) {
            if !all.buses.is_empty() {
                return Err(values.bad("bus", "one bus before a drive: the members have theirs"));
            }
            all.buses.push(SharedBus { disks: 0..self.disks, block });
        }
        all.replace_after = values.given("replace", Values::time);
        Ok(all)
    }

    /// An array of what users wrote of it, over members that `below` says.
    fn level(text: &str, below: Option<Self>) -> Result<Self, SpecError> {
        let (name, mut pairs) = split_item(text);
        pairs.iter_mut().filter(|p| p.0 == OLD_CHUNK).for_each(|p| p.0 = "chunk");
        let entry = ARRAYS.iter().find(|a| a.name == name).copied();
        let unknown = || SpecError::unknown("array", name, ARRAYS.iter().map(|a| a.name), []);
        let entry = entry.ok_or_else(unknown)?;
        let values = Values::check(entry.name, &entry.parameters(), &pairs)?;
        let plain = entry.params.is_empty();
        if plain && below.is_some() {
            return Err(SpecError::Other(format!(
                "'{name}' is one drive, and stands above none: leave it out"
            )));
        }
        let members = entry.disks(&values);
        let (mut disks, mut resolved) = (u64::from(members), values.resolved());
        if let Some(below) = &below {
            if below.is_single() {
                let name = below.entry.name;
                return Err(SpecError::Other(format!("'{name}' is what a drive is anyhow: leave it out")));
            }
            disks *= u64::from(below.disks);
            resolved += &format!("{}{}", BELOW, below.resolved);
        }
        if disks > MOST_DISKS {
            let text = format!("{disks} drives in all are not accepted: at most {MOST_DISKS}");
            return Err(SpecError::Other(text));
        }
        let (disks, below) = (disks as u32, below.map(Box::new));
        let schedule = Schedule::default();
        let mut chosen = Self { entry, disks, schedule, spares: 0, resolved, values, members, below };
        if plain {
            return Ok(chosen);
        }
        chosen.schedule = chosen.schedule()?;
        let wanted = chosen.values.count("spares") as u32;
        let replaced = chosen.schedule.replace_after.is_some();
        if wanted > 1 && !replaced {
            return Err(chosen.values.bad(
                "spares",
                "0 or 1 without replace=, which says how long after its death a drive is replaced",
            ));
        }
        chosen.spares = if replaced { wanted } else { 0 };
        Ok(chosen)
    }
}

/// Parses `NAME[,key=value...]`, or several of these from the host down with ` / ` between them: the members of each are what
/// follows it.
///
/// # Errors
/// Unknown names and keys with the nearest match, values out of range with the accepted range, and what cannot stand so.
pub fn parse(text: &str) -> Result<Chosen, SpecError> {
    let mut chosen = None;
    for part in text.rsplit(BELOW).map(str::trim) {
        chosen = Some(Chosen::level(part, chosen)?);
    }
    chosen.ok_or_else(|| SpecError::Other("an array has a name".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an array of arrays promises takes both; what it can lose is one less than loses it.
    #[test]
    fn an_array_of_arrays_promises_what_both_do() {
        let promised = |text: &str| {
            let all = parse(text).unwrap().capabilities();
            (all.losses, all.survives_cut, all.discards)
        };
        let both =
            |a: (u32, bool, bool), b: (u32, bool, bool)| ((a.0 + 1) * (b.0 + 1) - 1, a.1 && b.1, a.2 && b.2);
        let names = [
            "striped,disks=2",
            "raid5,disks=3",
            "mirror",
            "raid6,disks=4",
            "dvs,disks=3",
            "spanning,disks=2",
        ];
        let mut cuts = [0; 2];
        for above in names {
            for below in names {
                let (a, b) = (promised(above), promised(below));
                cuts[usize::from(a.1 != b.1)] += 1;
                assert_eq!(promised(&format!("{above} / {below}")), both(a, b), "{above} / {below}");
            }
        }
        assert!(cuts[1] > 0, "some survive a cut, and others do not");
        assert_eq!(promised("raid5,disks=3 / mirror").0, 3);
    }

    #[test]
    fn one_drive_of_each_is_conventional_where_the_array_wants_it() {
        let layers = |text: &str| {
            let chosen = parse(text).unwrap();
            (0..chosen.disks + 1).map(|disk| chosen.layer_of(disk, "log")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(layers("raid4s,disks=3"), "log log cmr log", "a spare is no conventional one");
        // The last of two spares replaces the first drive that dies.
        let chosen = parse("raid4s,disks=3,fail=1@9s+2@4s,replace=1s,spares=2").unwrap();
        assert_eq!([3, 4].map(|spare| chosen.layer_of(spare, "log")), ["log", "cmr"]);
        // A drive that is dead does not die again: the second spare is for the second death that there is.
        for (times, spares) in [
            ("1@4s+1@4500ms+2@9s", ["cmr", "log"]),
            ("1@4s+1@6s+2@9s", ["log", "log"]),
            ("2@4s+1@5s+2@9s", ["log", "cmr"]),
        ] {
            let chosen = parse(&format!("raid4s,disks=3,fail={times},replace=1s,spares=2")).unwrap();
            assert_eq!([3, 4].map(|spare| chosen.layer_of(spare, "log")), spares, "{times}");
        }
        assert_eq!(layers("mirror,disks=2 / raid4s,disks=3"), "log log cmr log log cmr log");
        assert_eq!(layers("raid4s,disks=3 / mirror,disks=2"), "log log log log cmr cmr log");
        assert_eq!(layers("raid5,disks=3"), "log log log log");
    }

    #[test]
    fn faults_come_with_the_nearest_name_and_the_accepted_range() {
        let fault = |text: &str| parse(text).unwrap_err().to_string();
        assert!(fault("radi5").contains("did you mean 'raid5'?"), "{}", fault("radi5"));
        assert!(fault("raid5,disk=3").contains("did you mean 'disks'?"));
        assert!(fault("raid5,fail=5@1s").contains("disks 0 to 4"), "{}", fault("raid5,fail=5@1s"));
        assert!(fault("single,disks=2").contains("no parameter"));
        assert!(fault("raid5,spares=2").contains("without replace="), "{}", fault("raid5,spares=2"));
        assert_eq!(parse("raid5,spares=2,replace=1s").unwrap().spares, 2);
        let stacks = |text: &str| parse(text).unwrap_err().to_string();
        assert!(stacks("raid5 / radi6").contains("did you mean 'raid6'?"));
        assert!(stacks("raid5 / mirror,replace=1s").contains("all drives share their spares"));
        assert!(stacks("raid5,timeout=1s / mirror,timeout=1s").contains("one timeout in a stack"));
        assert!(stacks("raid5,bus=9 / mirror,bus=9").contains("one bus before a drive"));
        assert!(stacks("raid5 / single").contains("leave it out"));
        assert!(stacks("single / raid5").contains("stands above none"));
        assert!(stacks("raid5,disks=3,fail=2.2@1s / mirror,disks=2").contains("MEMBER.DISK@TIME"));
        assert!(stacks("raid5,disks=3,fail=2.0@1s").contains("disks 0 to 2"));
        assert!(stacks("striped,disks=300 / striped,disks=300").contains("at most 65535"));
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

    /// Three mirrors of two drives: 2.0 is the fifth drive, and 1 is all of the second mirror.
    #[test]
    fn drives_of_members_are_numbered_from_the_first_on() {
        let chosen =
            parse("raid5,disks=3,fail=2.0@1s+1@3s,replace=1s / mirror,copies=2,fail=1@2s,bus=100").unwrap();
        assert_eq!((chosen.disks, chosen.spares, chosen.capabilities().losses), (6, 1, 3));
        let fails: Vec<(u32, u64)> =
            chosen.schedule.fails.iter().map(|(m, at)| (m.0, at.0 / 1_000_000_000)).collect();
        assert_eq!(fails, [(1, 2), (3, 2), (5, 2), (4, 1), (2, 3), (3, 3)]);
        let buses: Vec<Range<u32>> = chosen.schedule.buses.iter().map(|bus| bus.disks.clone()).collect();
        assert_eq!(buses, [0..2, 2..4, 4..6]);
        assert_eq!(
            (0..6).map(|d| chosen.path(d)).collect::<Vec<_>>(),
            ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"]
        );
        assert!(!["fail=", "replace=", "bus="].iter().any(|key| chosen.identity().contains(key)));
        assert_eq!(parse(&chosen.resolved).unwrap().resolved, chosen.resolved);
        let three = parse("striped,disks=2,fail=1.0.2@1s / mirror / spanning,disks=3").unwrap();
        assert_eq!(
            (three.disks, three.schedule.fails[0].0, three.path(8)),
            (12, MemberId(8), "1.0.2".to_owned())
        );
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
