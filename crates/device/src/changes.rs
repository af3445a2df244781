//! The records of a layer or an array in a log, whose entries hold three words: one with up to three words is one entry, a longer one some
//! that follow each other. What was not appended to the end is nothing.

use crate::entry::Entry;
use crate::tag;
use smrlab_stl::{AnyRecord, Records, Sink};
use std::ops::Range;

/// Words of an entry.
const WORDS: usize = 3;

/// How an entry has a record, in bits of its tag that no layer and no array uses.
const SHIFT: u32 = 24;
/// Three words, or what earlier versions had of them.
const THREE: u32 = 0;
/// So many words fewer than three, from this number on: one, two, three.
const FEWER: u32 = 1;
/// More than three: the first word is how many there are, and the others are the first of them.
const LONG: u32 = 4;
/// The next ones.
const MORE: u32 = 5;

/// Records as entries of a log, in their order.
#[derive(Debug, Default)]
pub struct Entries(Vec<Entry>);

impl Entries {
    /// Of one record.
    pub(crate) fn one(record: AnyRecord<'_>) -> Self {
        let mut entries = Self::default();
        entries.take(record);
        entries
    }

    /// Of these records.
    pub(crate) fn of(records: &Records) -> Self {
        let mut entries = Self::default();
        records.iter().for_each(|record| entries.take(record));
        entries
    }

    /// That the host wrote these blocks.
    pub(crate) fn written(&mut self, blocks: &Range<u64>) {
        self.0.push(Entry { tag: tag::LAYER | tag::HOST, words: [blocks.start, blocks.end, 0] });
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_iter(self) -> std::vec::IntoIter<Entry> {
        self.0.into_iter()
    }
}

impl Sink for Entries {
    fn take(&mut self, AnyRecord { tag, words }: AnyRecord<'_>) {
        let mut add = |how: u32, own: &[u64]| {
            let mut entry = Entry { tag: tag::LAYER | how << SHIFT | tag, ..Entry::default() };
            entry.words[..own.len()].copy_from_slice(own);
            self.0.push(entry);
        };
        if words.len() <= WORDS {
            let fewer = (WORDS - words.len()) as u32;
            add(if fewer == 0 { THREE } else { FEWER + fewer - 1 }, words);
        } else {
            let (first, rest) = words.split_at(WORDS - 1);
            add(LONG, &[&[words.len() as u64], first].concat());
            rest.chunks(WORDS).for_each(|own| add(MORE, own));
        }
    }
}

/// Puts records together from the entries of a log, in their order.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    /// Of a long one: its words so far, and how many there are to be.
    words: Vec<u64>,
    all: usize,
}

impl Assembly {
    /// Takes the next entry; `records` get what it ends.
    pub(crate) fn take(&mut self, entry: &Entry, records: &mut Records) {
        let (how, kind) = (entry.tag >> SHIFT & 0x7f, entry.tag & ((1 << SHIFT) - 1));
        let words = entry.words;
        match how {
            LONG => (self.words, self.all) = (words[1..].to_vec(), words[0] as usize),
            MORE => {
                let left = self.all.saturating_sub(self.words.len());
                self.words.extend(words.into_iter().take(left));
                if left > 0 && self.words.len() == self.all {
                    records.push(kind, std::mem::take(&mut self.words));
                    self.all = 0;
                }
            }
            _ => {
                let fewer = if how == THREE { 0 } else { how + 1 - FEWER } as usize;
                records.push(kind, words.into_iter().take(WORDS.saturating_sub(fewer)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of every length, and without the end of the last one: that is not there.
    #[test]
    fn records_of_any_length_come_back_whole_or_not_at_all() {
        let mut records = Records::default();
        for n in 0..12 {
            records.push(0x1_0000 + n, (0..u64::from(n)).map(|i| u64::MAX - i));
        }
        let all = Entries::of(&records).0;
        let back = |entries: &[Entry]| {
            let (mut assembly, mut found) = (Assembly::default(), Records::default());
            entries.iter().for_each(|e| assembly.take(e, &mut found));
            found
        };
        assert_eq!(back(&all), records);
        // 11 words are in an entry with two of them and three with the others.
        for cut in 1..=4 {
            let left = back(&all[..all.len() - cut]);
            let of = |r: AnyRecord<'_>| (r.tag, r.words.to_vec());
            let want: Vec<_> = records.iter().map(of).take(11).collect();
            assert_eq!(left.iter().map(of).collect::<Vec<_>>(), want, "{cut}");
        }
        // What earlier versions wrote: three words, always.
        let old = [Entry { tag: tag::LAYER | 3, words: [7, 8, 0] }];
        assert_eq!(back(&old).iter().map(|r| r.words.to_vec()).collect::<Vec<_>>(), [[7, 8, 0]]);
    }
}
