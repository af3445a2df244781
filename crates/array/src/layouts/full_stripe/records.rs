//! What is recorded, beside what befalls disks.

use super::table::Cell;
use crate::{Change, Record, Sink};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// This group holds nothing, and is being filled.
    Opened(u64),
    /// This group has this stripe: a cell a disk.
    Stripe(u64, Vec<Cell>),
    /// This chunk holds nothing any more.
    Unmap(u64),
    /// All groups below this one were used.
    Used(u64),
}

/// The first of four tags about disks.
pub(super) const DISKS: u32 = 4;
const OPENED: u32 = 1;
const STRIPE: u32 = 2;
const UNMAP: u32 = 3;
const USED: u32 = 8;

impl Change for Event {
    fn put(&self, to: &mut dyn Sink) {
        match self {
            Self::Opened(group) => to.push(OPENED, [*group]),
            Self::Stripe(group, cells) => {
                to.push_all(STRIPE, std::iter::once(*group).chain(cells.iter().map(|c| c.word())));
            }
            Self::Unmap(lcn) => to.push(UNMAP, [*lcn]),
            Self::Used(groups) => to.push(USED, [*groups]),
        }
    }

    fn of(record: Record<'_>) -> Option<Self> {
        let word = record.word(0);
        Some(match record.tag {
            OPENED => Self::Opened(word),
            STRIPE => Self::Stripe(word, record.words.iter().skip(1).map(|w| Cell::of(*w)).collect()),
            UNMAP => Self::Unmap(word),
            USED => Self::Used(word),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Holds;
    use super::*;
    use crate::Records;
    use crate::entry::MOST_DISKS;

    /// Also of a stripe on as many disks as there can be, and of the last chunk of the largest array.
    #[test]
    fn a_change_is_one_record_and_comes_back() {
        let holds =
            [Holds::Nothing, Holds::Parity, Holds::Pad, Holds::Dead, Holds::Chunk(0), Holds::Chunk(1 << 38)];
        let cells = (0..).zip(holds).map(|(i, holds)| Cell { holds, at: i * 3_000_000 }).collect();
        let wide = (0..MOST_DISKS).map(|at| Cell { holds: Holds::Chunk(at), at: at as u32 }).collect();
        let all = [
            Event::Opened(7),
            Event::Stripe(8, cells),
            Event::Stripe(8, wide),
            Event::Unmap(9),
            Event::Unmap((1 << 40) - 5),
            Event::Used(10),
        ];
        let mut records = Records::default();
        all.iter().for_each(|event| records.add(event));
        assert_eq!(records.iter().map(|r| Event::of(r).unwrap()).collect::<Vec<_>>(), all);
    }
}
