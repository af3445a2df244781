//! The rebuild of a replaced disk, unit by unit.

use crate::ArrayContext;
use smrlab_units::rng::splitmix;
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{BLOCK_BYTES, Blocks, SimTime};

/// The parameters of layouts whose units are rows of chunks; see [`RebuildSettings`].
pub(super) const PARAMS: [Param; 5] = [
    Param::new("rebuild_unit", Kind::Size, "1MiB")
        .doc("blocks of the replaced drive that are rebuilt at a time, at least a chunk; so much of each drive is made to fit at a time after a \
             stop that left it in doubt"),
    Param::new("rebuild_depth", Kind::Count(1, 1024), "1").doc("units under way at a time"),
    Param::new("rebuild_rate", Kind::Real(0.0, 1e6), "0")
        .doc("at most so many MB/s of the replaced drive; 0: as fast as the drives are"),
    Param::new("rebuild_order", Kind::Choice(&["address", "metadata", "sorted"]), "address")
        .doc("which unit is rebuilt next"),
    Param::new("rebuild_batch", Kind::Count(1, 1 << 30), "1024")
        .doc("units in a batch, with rebuild_order=sorted"),
];

/// How a layout of rows of chunks rebuilds a disk.
#[derive(Clone, Copy, Debug)]
pub struct RebuildSettings {
    /// Rows in a unit.
    pub rows: u64,
    /// Units under way at a time.
    pub depth: u64,
    /// Time between the beginnings of units, ns a unit.
    pub pace: SimTime,
    /// Order of the rebuild.
    pub order: Order,
    /// Seed of what is drawn.
    pub seed: u64,
}

impl RebuildSettings {
    /// As a user wants it, for disks of `rows` rows.
    ///
    /// # Errors
    /// An order of more units than 32 bits number.
    pub fn of(
        context: &ArrayContext<'_>,
        values: &Values,
        chunk: Blocks,
        rows: u64,
    ) -> Result<Self, SpecError> {
        let unit = values.size("rebuild_unit", context.least());
        let in_unit = (unit.0 / chunk.0).clamp(1, rows.max(1));
        let bytes = (in_unit * chunk.0 * BLOCK_BYTES) as f64;
        let rate = values.real("rebuild_rate") * 1e6;
        let pace = SimTime(if rate > 0.0 { (bytes / rate * 1e9).round() as u64 } else { 0 });
        let order = match values.text("rebuild_order") {
            Some("metadata") => Order::Metadata,
            Some("sorted") => Order::Sorted(values.count("rebuild_batch")),
            _ => Order::Address,
        };
        if order != Order::Address && rows.div_ceil(in_unit) > u64::from(u32::MAX) {
            return Err(
                values.bad("rebuild_unit", "fewer than 2^32 units of a drive, where the order is drawn")
            );
        }
        let depth = values.count("rebuild_depth");
        Ok(Self { rows: in_unit, depth, pace, order, seed: context.seed })
    }

    /// The rebuild of a disk of `rows` rows that begins now.
    pub(crate) fn begin(&self, disk: u64, rows: u64, now: SimTime) -> Rebuild {
        Rebuild::new(disk, rows.div_ceil(self.rows), self.order, self.seed, now)
    }

    /// The rows of a unit.
    pub(crate) fn rows_of(&self, unit: u64, rows: u64) -> std::ops::Range<u64> {
        unit * self.rows..((unit + 1) * self.rows).min(rows)
    }
}

/// In which order units are rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By address.
    Address,
    /// As a classical resilver walks a filesystem's tree: anywhere.
    Metadata,
    /// Gathered in batches of so many units, each sorted by address.
    Sorted(u64),
}

/// A rebuild under way.
#[derive(Clone, Debug)]
pub struct Rebuild {
    /// The disk that is rebuilt.
    pub disk: u64,
    /// Rebuilt units, a bit each.
    done: Vec<u64>,
    left: u64,
    /// All of its units.
    units: u64,
    /// The units in the order in which they are begun, where that is not their own.
    order: Option<Vec<u32>>,
    /// So many of them were begun.
    next: u64,
    /// Units under way.
    pub under_way: u64,
    /// When the next unit may be begun.
    pub next_at: SimTime,
    /// When it began.
    pub began: SimTime,
}

/// A bijection of the numbers below `n` that looks random, the same everywhere.
fn shuffled(n: u64, seed: u64) -> Vec<u32> {
    let mut all: Vec<u32> = (0..n as u32).collect();
    let mut state = seed;
    for i in (1..all.len()).rev() {
        all.swap(i, (splitmix(&mut state) % (i as u64 + 1)) as usize);
    }
    all
}

impl Rebuild {
    /// Of `units` units.
    pub fn new(disk: u64, units: u64, order: Order, seed: u64, now: SimTime) -> Self {
        let order = match order {
            Order::Address => None,
            Order::Metadata => Some(shuffled(units, seed)),
            Order::Sorted(batch) => {
                let mut all = shuffled(units, seed);
                all.chunks_mut(batch.max(1) as usize).for_each(<[u32]>::sort_unstable);
                Some(all)
            }
        };
        let done = vec![0; units.div_ceil(64) as usize];
        Self { disk, done, left: units, units, order, next: 0, under_way: 0, next_at: now, began: now }
    }

    /// Whether a unit is as good as on any other disk.
    pub fn has(&self, unit: u64) -> bool {
        self.done[(unit / 64) as usize] >> (unit % 64) & 1 == 1
    }

    /// A unit was rebuilt; `true`: it was the last.
    pub fn finished(&mut self, unit: u64) -> bool {
        if !self.has(unit) {
            self.done[(unit / 64) as usize] |= 1 << (unit % 64);
            self.left -= 1;
        }
        self.left == 0
    }

    /// Whether nothing is left.
    pub fn all_done(&self) -> bool {
        self.left == 0
    }

    /// Whether all units were begun.
    pub fn all_begun(&self) -> bool {
        self.next >= self.units
    }

    /// The next unit to begin.
    pub fn begin(&mut self) -> Option<u64> {
        while self.next < self.units {
            let unit = self.order.as_ref().map_or(self.next, |order| order[self.next as usize].into());
            self.next += 1;
            if !self.has(unit) {
                self.under_way += 1;
                return Some(unit);
            }
        }
        None
    }

    /// Rebuilt units and all.
    pub fn progress(&self) -> (u64, u64) {
        (self.units - self.left, self.units)
    }

    /// Rebuilt units, ascending.
    pub fn rebuilt(&self) -> impl Iterator<Item = u64> {
        (0..self.units).filter(|u| self.has(*u))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::spec::split_item;

    /// Units of 1 MiB are 16 rows of 64 KiB chunks: at 8 MB/s one begins every 131 ms. The last one of 50 rows has two.
    #[test]
    fn a_rebuild_is_paced_by_the_bytes_of_its_units() {
        let of = |text: &str| {
            let values = Values::check("raid5", &PARAMS, &split_item(text).1).unwrap();
            RebuildSettings::of(&ArrayContext::new(&[Blocks(50 * 128)]), &values, Blocks(128), 50).unwrap()
        };
        let s = of("x,rebuild_rate=8,rebuild_order=metadata,rebuild_depth=3");
        assert_eq!((s.rows, s.pace, s.order, s.depth), (16, SimTime(131_072_000), Order::Metadata, 3));
        assert_eq!((s.rows_of(0, 50), s.rows_of(3, 50)), (0..16, 48..50));
        let mut rebuild = s.begin(1, 50, SimTime(9));
        (0..2).for_each(|unit| _ = rebuild.finished(unit));
        assert_eq!((rebuild.progress(), rebuild.began, rebuild.next_at), ((2, 4), SimTime(9), SimTime(9)));
        let s = of("x,rebuild_unit=4KiB,rebuild_order=sorted,rebuild_batch=7");
        assert_eq!((s.rows, s.pace, s.order, s.depth), (1, SimTime::ZERO, Order::Sorted(7), 1));
        assert_eq!(of("x,rebuild_unit=1GiB").rows, 50);
    }

    /// Of more units than 32 bits number each comes by its address; an order that is drawn has no room for them.
    #[test]
    fn units_of_a_huge_drive_are_rebuilt_by_address() {
        let rows = (1 << 33) + 5;
        let of = |text: &str| {
            let values = Values::check("raid5", &PARAMS, &split_item(text).1).unwrap();
            RebuildSettings::of(&ArrayContext::new(&[Blocks(rows * 8)]), &values, Blocks(8), rows)
        };
        let settings = of("x,rebuild_unit=8KiB").unwrap();
        let mut rebuild = settings.begin(0, rows, SimTime::ZERO);
        rebuild.next = 1 << 32;
        let last: Vec<_> = std::iter::from_fn(|| rebuild.begin()).collect();
        assert_eq!(
            (last, rebuild.progress()),
            (vec![1 << 32, (1 << 32) + 1, (1 << 32) + 2], (0, (1 << 32) + 3))
        );
        assert_eq!(settings.rows_of((1 << 32) + 2, rows), rows - 1..rows);
        let e = of("x,rebuild_unit=8KiB,rebuild_order=sorted").map(drop).unwrap_err().to_string();
        assert!(e.contains("rebuild_unit=8KiB is not accepted: fewer than 2^32 units"), "{e}");
        assert!(of("x,rebuild_unit=16KiB,rebuild_order=metadata").is_ok());
    }

    #[test]
    fn every_unit_comes_once_in_every_order() {
        for order in [Order::Address, Order::Metadata, Order::Sorted(16)] {
            let [mut rebuild, mut other] =
                [7, 8].map(|seed| Rebuild::new(2, 100, order, seed, SimTime::ZERO));
            let [mut seen, others] =
                [&mut rebuild, &mut other].map(|r| std::iter::from_fn(|| r.begin()).collect::<Vec<_>>());
            assert_eq!(seen == others, order == Order::Address, "what is drawn goes by the seed");
            if order == Order::Sorted(16) {
                assert!(seen.chunks(16).all(|b| b.is_sorted()) && !seen.is_sorted());
            }
            assert_eq!(order == Order::Address, seen.is_sorted());
            assert!(seen[..99].iter().all(|u| !rebuild.finished(*u)) && rebuild.finished(seen[99]));
            seen.sort_unstable();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
        }
    }
}
