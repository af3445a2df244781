//! Durable changes of an array's state: one change is one record, of any length, whole or not at all.

/// One change, as it is kept.
pub type Record<'a> = smrlab_stl::Record<&'a [u64]>;

/// Changes in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Of each: its kind, and where its words end.
    ends: Vec<(u32, usize)>,
    words: Vec<u64>,
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
        others.iter().for_each(|r| self.push(r.tag, r.words.iter().copied()));
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

    /// All, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|e| e.1));
        starts.zip(&self.ends).map(|(start, &(tag, end))| Record { tag, words: &self.words[start..end] })
    }
}

/// A kind of change as its array knows it.
pub trait Change: Sized {
    /// Puts it down as one record.
    fn put(&self, to: &mut Records);

    /// The change that a record is; `None`: it is none of these.
    fn of(record: Record<'_>) -> Option<Self>;
}

/// As a layer knows it that an array runs.
impl Change for smrlab_stl::Record {
    fn put(&self, to: &mut Records) {
        to.push(self.tag, self.words);
    }

    fn of(record: Record<'_>) -> Option<Self> {
        Some(Self { tag: record.tag, words: [0, 1, 2].map(|at| record.word(at)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_their_kinds_and_lengths() {
        let mut all = Records::default();
        all.push(7, []);
        all.push(8, [1, 2, 3, 4, 5]);
        all.push(7, [6]);
        let mut again = Records::default();
        again.append(&all);
        let of = |r: Record<'_>| (r.tag, r.words.to_vec());
        let want = vec![(7, vec![]), (8, vec![1, 2, 3, 4, 5]), (7, vec![6])];
        assert_eq!(again.iter().map(of).collect::<Vec<_>>(), want);
        assert_eq!((again.len(), all.iter().map(|r| r.word(1)).sum::<u64>()), (3, 2));
        all.clear();
        assert!(all.is_empty());
    }
}
