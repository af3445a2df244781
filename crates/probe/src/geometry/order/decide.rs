//! Deciding: what jumps and zones say of the order, once they are measured.

use super::super::Zone;
use super::Order;
use crate::stats::wrap;

/// The jumps before the first tracks of a zone, told apart: those like the first one, and those that are not.
pub(super) struct Kinds<'a> {
    pub(super) seen: &'a [f64],
    /// By how much two jumps of one kind may differ, in revolutions.
    pub(super) slack: f64,
}

impl Kinds<'_> {
    /// Whether two jumps are of one kind.
    pub(super) fn alike(&self, one: f64, other: f64) -> bool {
        wrap(one - other).abs() <= self.slack
    }

    /// Those of the kind of `jump`.
    pub(super) fn of(&self, jump: f64) -> Vec<f64> {
        self.seen.iter().copied().filter(|&j| self.alike(j, jump)).collect()
    }

    /// Which are unlike the first.
    pub(super) fn unlike_the_first(&self) -> impl Iterator<Item = usize> {
        (1..self.seen.len()).filter(|&i| !self.alike(self.seen[i], self.seen[0]))
    }
}

/// Groups as large as the drive are whole surfaces.
pub(super) fn hybrid(surfaces: u64, group_cylinders: u64, zones: &[Zone]) -> Order {
    let tracks: u64 = zones.iter().map(|z| z.tracks).sum();
    if surfaces * group_cylinders >= tracks {
        Order::Surface { surfaces }
    } else {
        Order::Hybrid { surfaces, group_cylinders }
    }
}

/// How often the drive is gone through from one side to the other, where the zones show it: they come again in reverse.
pub(super) fn passes(zones: &[Zone]) -> Option<u64> {
    let sizes: Vec<u64> = zones.iter().map(|z| z.usable).collect();
    let turns: Vec<usize> = (1..sizes.len().saturating_sub(1))
        .filter(|&i| (sizes[i] > sizes[i - 1]) != (sizes[i + 1] > sizes[i]))
        .collect();
    let first = *turns.first()?;
    let mirrored = (1..=first.min(sizes.len() - 1 - first)).all(|d| sizes[first - d] == sizes[first + d]);
    mirrored.then_some(turns.len() as u64 + 1)
}
