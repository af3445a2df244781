//! Which rows are away, and in which slot.

use crate::parts::rows::Row;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Answers that are kept in mind.
const KNOWN: usize = 4096;
/// In the place of a slot: the row is at home.
const AT_HOME: u32 = u32::MAX;
/// In the place of a row: none was asked for.
const NONE: Row = Row(u64::MAX);

/// Slots of the rows that are away.
pub(super) struct Away {
    slots: BTreeMap<Row, u32>,
    /// What is known of rows, each at its number modulo `KNOWN`: every write asks for its own row and for those behind it, mostly
    /// the same few, and a search of the tree takes as long as to time an operation.
    known: Box<[Cell<(Row, u32)>]>,
}

impl Away {
    /// All rows are at home.
    pub(super) fn new() -> Self {
        Self { slots: BTreeMap::new(), known: vec![Cell::new((NONE, AT_HOME)); KNOWN].into() }
    }

    /// Where what is known of a row is kept.
    #[inline]
    fn known(&self, row: Row) -> &Cell<(Row, u32)> {
        &self.known[row.0 as usize % KNOWN]
    }

    /// The slot of a row; `None`: it is at home.
    #[inline]
    pub(super) fn slot(&self, row: Row) -> Option<u32> {
        let known = self.known(row);
        let (of, slot) = known.get();
        let slot = if of == row { slot } else { self.look_up(row, known) };
        (slot != AT_HOME).then_some(slot)
    }

    #[cold]
    fn look_up(&self, row: Row, known: &Cell<(Row, u32)>) -> u32 {
        let slot = self.slots.get(&row).copied().unwrap_or(AT_HOME);
        known.set((row, slot));
        slot
    }

    /// A row is in a slot from now on.
    pub(super) fn insert(&mut self, row: Row, slot: u32) {
        self.slots.insert(row, slot);
        self.known(row).set((row, slot));
    }

    /// A row is at home from now on; answers its slot.
    pub(super) fn remove(&mut self, row: Row) -> Option<u32> {
        self.known(row).set((row, AT_HOME));
        self.slots.remove(&row)
    }

    /// Whether no row is away.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes that the map takes, estimated.
    pub(super) fn bytes(&self) -> usize {
        // Nodes of the tree are two thirds full on the average.
        self.slots.len() * size_of::<(Row, u32)>() * 3 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    /// Rows that are kept in mind at the same place come, go and are asked for in any order.
    #[test]
    fn agrees_with_a_plain_map() {
        let (mut away, mut plain, mut rng) = (Away::new(), BTreeMap::new(), Rng::new(7));
        for slot in 0..20_000 {
            let row = Row(rng.below(3) * KNOWN as u64 + rng.below(5));
            match rng.below(3) {
                0 => assert_eq!(away.remove(row), plain.remove(&row)),
                1 => {
                    away.insert(row, slot);
                    plain.insert(row, slot);
                }
                _ => {}
            }
            let asked = Row(rng.below(3) * KNOWN as u64 + rng.below(5));
            assert_eq!(away.slot(asked), plain.get(&asked).copied(), "{asked:?}");
        }
        assert_eq!(away.bytes(), plain.len() * 24);
    }
}
