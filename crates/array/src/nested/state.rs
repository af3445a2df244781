//! What an array of arrays remembers: the records of the array above as they are, those of members with their number.

use crate::{Change, MemberId, Record, Records, Sink};
use std::collections::BTreeSet;

const WITHIN: u32 = 2 << 16;
const LOST: u32 = WITHIN + 1;
const FRESH: u32 = WITHIN + 2;
const ANEW: u32 = WITHIN + 3;
const DIED: u32 = WITHIN + 4;

/// A change beside those of the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// This member is thrown out.
    Lost(usize),
    /// A drive of such a one was replaced.
    Fresh(usize, MemberId),
    /// And died again.
    Died(usize, MemberId),
    /// It begins anew.
    Anew(usize),
}

impl Change for Event {
    fn put(&self, to: &mut dyn Sink) {
        match *self {
            Self::Lost(at) => to.push(LOST, [at as u64]),
            Self::Fresh(at, disk) => to.push(FRESH, [at as u64, u64::from(disk.0)]),
            Self::Died(at, disk) => to.push(DIED, [at as u64, u64::from(disk.0)]),
            Self::Anew(at) => to.push(ANEW, [at as u64]),
        }
    }

    fn of(record: Record<'_>) -> Option<Self> {
        let (at, disk) = (record.word(0) as usize, MemberId(record.word(1) as u32));
        match record.tag {
            LOST => Some(Self::Lost(at)),
            FRESH => Some(Self::Fresh(at, disk)),
            DIED => Some(Self::Died(at, disk)),
            ANEW => Some(Self::Anew(at)),
            _ => None,
        }
    }
}

/// Hands on a record of a member's.
pub(super) fn put(at: usize, record: Record<'_>, out: &mut dyn Sink) {
    let whose = [at as u64, u64::from(record.tag)];
    out.push_all(WITHIN, whose.into_iter().chain(record.words.iter().copied()));
}

/// What was recorded of a member.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OfMember {
    pub(super) records: Records,
    pub(super) lost: bool,
    pub(super) fresh: BTreeSet<u32>,
}

/// What was recorded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) above: Records,
    pub(super) members: Vec<OfMember>,
}

impl Found {
    /// Sorts records by whose they are.
    pub(super) fn of(records: &Records, members: usize) -> Self {
        let mut found = Self::default();
        found.members.resize_with(members, OfMember::default);
        for record in records.iter() {
            let member = found.members.get_mut(record.word(0) as usize);
            match (record.tag, Event::of(record), member) {
                (WITHIN, _, Some(member)) => {
                    member.records.push(record.word(1) as u32, record.words.iter().skip(2).copied());
                }
                (_, Some(Event::Lost(_)), Some(member)) => member.lost = true,
                (_, Some(Event::Fresh(_, disk)), Some(member)) => _ = member.fresh.insert(disk.0),
                (_, Some(Event::Died(_, disk)), Some(member)) => _ = member.fresh.remove(&disk.0),
                (_, Some(Event::Anew(_)), Some(member)) => *member = OfMember::default(),
                (tag, ..) => found.above.push(tag, record.words.iter().copied()),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_to_whom_they_are_of() {
        let (mut all, mut own) = (Records::default(), Records::default());
        own.push(7, [1, 2, 3, 4]);
        own.push(0, []);
        own.push(9, 0..200);
        all.push(7, [9]);
        own.iter().for_each(|record| put(1, record, &mut all));
        all.add(&Event::Lost(0));
        all.add(&Event::Fresh(0, MemberId(3)));
        let found = Found::of(&all, 2);
        assert_eq!(found.members[1], OfMember { records: own, ..OfMember::default() });
        assert_eq!((found.members[0].lost, &found.members[0].fresh), (true, &BTreeSet::from([3])));
        assert_eq!(found.above.iter().map(|r| (r.tag, r.words.to_vec())).collect::<Vec<_>>(), [(7, vec![9])]);
        // What a member recorded before it began anew is nobody's.
        all.add(&Event::Anew(1));
        all.add(&Event::Anew(0));
        assert_eq!(Found::of(&all, 2).members, [OfMember::default(), OfMember::default()]);
    }
}
