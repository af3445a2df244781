//! Durable changes of the state of a layer or an array: one change is one record, whole or not at all.
//!
//! What changes puts a change down as a record and takes it up again ([`Change`]): a layer as three words with a tag, an array as an enum
//! whose records have as many words as a change takes. Who keeps records, in memory or in a log, knows tags and words alone.

/// One change, in the code of whose it is: `tag` says which kind, `words` what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Record<W = [u64; 3]> {
    /// Kind of change, private to whose it is.
    pub tag: u32,
    /// Its content.
    pub words: W,
}

/// A change of any length, as it is kept.
pub type AnyRecord<'a> = Record<&'a [u64]>;

impl<W: AsRef<[u64]>> Record<W> {
    /// A word; zero where it has none.
    pub fn word(&self, at: usize) -> u64 {
        self.words.as_ref().get(at).copied().unwrap_or_default()
    }
}

/// A kind of change as whose it is knows it.
pub trait Change: Sized {
    /// Puts it down as one record.
    fn put(&self, to: &mut dyn Sink);

    /// The change that a record is; `None`: it is none of these.
    fn of(record: AnyRecord<'_>) -> Option<Self>;
}

/// Any change of a layer's.
impl Change for Record {
    #[inline]
    fn put(&self, to: &mut dyn Sink) {
        to.take(Record { tag: self.tag, words: &self.words });
    }

    #[inline]
    fn of(record: AnyRecord<'_>) -> Option<Self> {
        Some(Self { tag: record.tag, words: [0, 1, 2].map(|at| record.word(at)) })
    }
}

/// Where records go, one after the other.
pub trait Sink {
    /// Takes the next one.
    fn take(&mut self, record: AnyRecord<'_>);
}

impl<F: FnMut(AnyRecord<'_>)> Sink for F {
    fn take(&mut self, record: AnyRecord<'_>) {
        self(record);
    }
}

/// So many words of a change need no memory of their own on their way.
const FEW: usize = 12;

impl dyn Sink + '_ {
    /// Takes a change.
    pub fn add(&mut self, change: &impl Change) {
        change.put(self);
    }

    /// Takes a change as it is kept.
    pub fn push<const N: usize>(&mut self, tag: u32, words: [u64; N]) {
        self.take(Record { tag, words: &words });
    }

    /// Takes one whose length its content says.
    pub fn push_all(&mut self, tag: u32, words: impl IntoIterator<Item = u64>) {
        let (mut few, mut len, mut words) = ([0; FEW], 0, words.into_iter());
        for (place, word) in few.iter_mut().zip(words.by_ref()) {
            *place = word;
            len += 1;
        }
        match words.next() {
            None => self.take(Record { tag, words: &few[..len] }),
            Some(next) => {
                let all: Vec<u64> = few.into_iter().chain(std::iter::once(next)).chain(words).collect();
                self.take(Record { tag, words: &all });
            }
        }
    }
}

/// Records in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Of each: its kind, and where its words end.
    ends: Vec<(u32, usize)>,
    words: Vec<u64>,
}

impl Sink for Records {
    fn take(&mut self, record: AnyRecord<'_>) {
        self.push(record.tag, record.words.iter().copied());
    }
}

impl Records {
    /// Adds a change as it is kept.
    #[inline]
    pub fn push(&mut self, tag: u32, words: impl IntoIterator<Item = u64>) {
        self.words.extend(words);
        self.ends.push((tag, self.words.len()));
    }

    /// Adds a change.
    #[inline]
    pub fn add(&mut self, change: &impl Change) {
        change.put(self);
    }

    /// Adds those of another, behind its own.
    pub fn append(&mut self, others: &Self) {
        others.iter().for_each(|r| self.take(r));
    }

    /// Forgets all, for use again.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.words.clear();
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One of them.
    #[inline]
    pub fn get(&self, at: usize) -> Option<AnyRecord<'_>> {
        let &(tag, end) = self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].1);
        Some(Record { tag, words: &self.words[start..end] })
    }

    /// Keeps the first ones, so many.
    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.words.truncate(self.ends.last().map_or(0, |last| last.1));
    }

    /// All, in their order.
    pub fn iter(&self) -> impl Iterator<Item = AnyRecord<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|e| e.1));
        starts.zip(&self.ends).map(|(start, &(tag, end))| Record { tag, words: &self.words[start..end] })
    }

    /// Those that are changes of one kind, in their order: of a layer all.
    pub fn changes<C: Change>(&self) -> impl Iterator<Item = C> {
        self.iter().filter_map(C::of)
    }
}

impl<'a> Extend<AnyRecord<'a>> for Records {
    fn extend<I: IntoIterator<Item = AnyRecord<'a>>>(&mut self, records: I) {
        records.into_iter().for_each(|record| self.take(record));
    }
}

impl<C: Change> Extend<C> for Records {
    fn extend<I: IntoIterator<Item = C>>(&mut self, changes: I) {
        changes.into_iter().for_each(|change| self.add(&change));
    }
}

impl<C: Change> FromIterator<C> for Records {
    fn from_iter<I: IntoIterator<Item = C>>(changes: I) -> Self {
        let mut records = Self::default();
        records.extend(changes);
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_any_length_is_kept_whole() {
        for len in (0..=2 * FEW).map(|len| len as u64) {
            let mut records = Records::default();
            (&mut records as &mut dyn Sink).push_all(5, 1..=len);
            let record = records.get(0).map(|r| (r.tag, r.words.to_vec()));
            assert_eq!(record, Some((5, (1..=len).collect())));
        }
    }

    #[test]
    fn records_keep_their_kinds_and_lengths() {
        let mut all = Records::default();
        all.push(7, []);
        all.push(8, [1, 2, 3, 4, 5]);
        all.push(7, [6]);
        let mut again = Records::default();
        again.append(&all);
        let of = |r: AnyRecord<'_>| (r.tag, r.words.to_vec());
        let want = vec![(7, vec![]), (8, vec![1, 2, 3, 4, 5]), (7, vec![6])];
        assert_eq!(again.iter().map(of).collect::<Vec<_>>(), want);
        assert_eq!((again.len(), all.iter().map(|r| r.word(1)).sum::<u64>()), (3, 2));
        let of_layer =
            [(7, [0; 3]), (8, [1, 2, 3]), (7, [6, 0, 0])].map(|(tag, words)| Record { tag, words });
        assert_eq!(all.changes::<Record>().collect::<Vec<_>>(), of_layer);
        let ((first, second), cut) = ((all.get(0), all.get(1)), all.get(3));
        assert_eq!((first.map(of), second.map(of), cut), (want.first().cloned(), want.get(1).cloned(), None));
        all.truncate(1);
        all.push(9, [4]);
        assert_eq!(all.iter().map(of).collect::<Vec<_>>(), [(7, vec![]), (9, vec![4])]);
        all.clear();
        assert!(all.is_empty());
    }
}
