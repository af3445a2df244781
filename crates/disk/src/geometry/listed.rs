//! Listed layouts: groups of cylinders in which runs of tracks follow each other in any order, with sectors of their own.

use super::builder::{Builder, ForwardZone, Pattern};
use super::{GeometrySpec, GroupSpec, Layout, REVOLUTION, RunSpec, Toward};
use smrlab_units::problems::Problems;

impl RunSpec {
    /// Its tracks.
    pub fn tracks(&self) -> u32 {
        self.from.abs_diff(self.to) + 1
    }

    fn blocks(&self) -> u64 {
        u64::from(self.tracks()) * u64::from(self.sectors - self.spare_sectors)
    }
}

/// The faults of a listed layout.
pub(super) fn check(g: &GeometrySpec, at: &str, f: &mut Problems) {
    let listed = g.layout == Layout::Listed;
    if !listed {
        if !g.groups.is_empty() || !g.runs.is_empty() {
            f.add(format!("{at}.runs"), "accepted only with layout = \"listed\"");
        }
        return;
    }
    if g.toward == Toward::Outer {
        f.add(
            format!("{at}.layout"),
            "a listed layout has PBA 0 outside: shingle it towards the inner diameter",
        );
    }
    if g.groups.len() != g.zones.len() {
        f.add(
            format!("{at}.groups"),
            format!("{} rows for {} zones: one a zone", g.groups.len(), g.zones.len()),
        );
        return;
    }
    for (i, (group, zone)) in g.groups.iter().zip(&g.zones).enumerate() {
        let at = format!("{at}.groups[{i}]");
        let used = zone.cylinders.saturating_sub(zone.spare_cylinders);
        if group.zone as usize != i || group.cylinders == 0 || !used.is_multiple_of(group.cylinders) {
            f.add(
                &at,
                format!("not accepted: zone {i}, and cylinders of which {used} are a whole number of groups"),
            );
        }
        let own = || g.runs.iter().filter(|r| r.zone as usize == i);
        let longest = own().map(|r| r.sectors).max().unwrap_or(0);
        if longest != zone.sectors {
            f.add(
                &at,
                format!("its zone says {} sectors a track, its longest run has {longest}", zone.sectors),
            );
        }
        overlaps(&own().copied().collect::<Vec<_>>(), group, &at, f);
    }
    for (i, r) in g.runs.iter().enumerate() {
        let at = format!("{at}.runs[{i}]");
        let group = g.groups.get(r.zone as usize);
        if r.surface >= g.surfaces || group.is_none_or(|g| r.from.max(r.to) >= g.cylinders) {
            f.add(&at, "not accepted: a surface of the drive, cylinders of the zone's group");
        }
        if r.sectors == 0 || r.spare_sectors >= r.sectors || r.start >= REVOLUTION || r.step >= REVOLUTION {
            f.add(&at, "not accepted: a sector for data, angles below a revolution");
        }
        if i > 0 && g.runs[i - 1].zone > r.zone {
            f.add(&at, "not accepted: zones in ascending order");
        }
    }
}

/// No track may be in two runs.
fn overlaps(runs: &[RunSpec], group: &GroupSpec, at: &str, f: &mut Problems) {
    let mut spans: Vec<_> = runs.iter().map(|r| (r.surface, r.from.min(r.to), r.from.max(r.to))).collect();
    spans.sort_unstable();
    if let Some(w) = spans.windows(2).find(|w| w[0].0 == w[1].0 && w[1].1 <= w[0].2) {
        f.add(at, format!("cylinder {} of surface {} is in two runs of zone {}", w[1].1, w[1].0, group.zone));
    }
}

/// Lays the groups of all zones.
pub(super) fn lay(spec: &GeometrySpec, zones: &[ForwardZone], b: &mut Builder<'_>) {
    for (z, group) in zones.iter().zip(&spec.groups) {
        let first = spec.runs.partition_point(|r| r.zone < group.zone);
        let end = spec.runs.partition_point(|r| r.zone <= group.zone);
        for i in 0..z.used() / group.cylinders {
            let turned = u128::from(group.start) + u128::from(i) * u128::from(group.step);
            for r in &spec.runs[first..end] {
                let from = i * group.cylinders + r.from.min(r.to);
                let pattern = Pattern {
                    surface: Some(r.surface),
                    reversed: r.to < r.from,
                    ..Pattern::groups(z, from, r.tracks(), r.tracks())
                };
                let start = (turned + u128::from(r.start)) % u128::from(REVOLUTION);
                b.push_listed(z, pattern, r, start as u64);
            }
        }
    }
}

impl GeometrySpec {
    /// Keeps the first groups, as few as hold `blocks` beside what is slipped.
    pub(crate) fn keep_groups(&mut self, blocks: u64) {
        let slipped: u64 = self.slips.iter().map(|s| u64::from(s.blocks)).sum();
        let mut left = blocks + slipped + self.defects.len() as u64;
        let mut zones = 0;
        for (z, group) in self.zones.iter_mut().zip(&self.groups) {
            if left == 0 {
                break;
            }
            let each: u64 = self.runs.iter().filter(|r| r.zone == group.zone).map(RunSpec::blocks).sum();
            let (groups, used) = (left.div_ceil(each.max(1)), z.cylinders - z.spare_cylinders);
            if groups < u64::from(used / group.cylinders) {
                (z.cylinders, z.spare_cylinders) = (groups as u32 * group.cylinders, 0);
            }
            left = left.saturating_sub(groups.min(u64::from(used / group.cylinders)) * each);
            zones += 1;
        }
        self.zones.truncate(zones);
        self.groups.truncate(zones);
        self.runs.retain(|r| (r.zone as usize) < zones);
        self.slips.retain(|s| (s.zone as usize) < zones);
        let end: u32 = self.zones.iter().map(|z| z.cylinders).sum();
        self.defects.retain(|d| d.cylinder < end);
    }
}
