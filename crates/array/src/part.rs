//! The parts of a member request: where the bytes of each come from or go to, as sums of blocks.

use crate::gf::Gf;
use smrlab_units::Blocks;

/// Where the bytes of a part come from (write) or go to (read).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The host's buffer, at this offset in blocks.
    Host(Blocks),
    /// The work's slot of this number, at this offset. A slot is filled by one read and lives as long as its work.
    Slot(u32, Blocks),
    /// Zeroes; of a read: nowhere.
    Zero,
    /// Bytes that nobody reads back: encoded records.
    Records,
    /// The sum of these terms in GF(256): an XOR where each is there once (see [`MemberPlan::terms`](crate::MemberPlan::terms)).
    Sum(u32, u32),
}

/// A term of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Where its bytes are.
    pub from: Source,
    /// How many times it is added.
    pub times: Gf,
}

/// Where the bytes of a term are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The host's buffer, at this offset in blocks.
    Host(Blocks),
    /// A slot of the work, at this offset in blocks.
    Slot(u32, Blocks),
}

impl Term {
    /// The host's buffer from this offset on, once.
    pub fn host(at: u64) -> Self {
        Self { from: Source::Host(Blocks(at)), times: Gf::ONE }
    }

    /// A slot of the work from this offset on, once.
    #[inline]
    pub fn slot(slot: u32, at: Blocks) -> Self {
        Self { from: Source::Slot(slot, at), times: Gf::ONE }
    }

    /// The same so many times.
    #[inline]
    #[must_use]
    pub fn times(self, times: Gf) -> Self {
        Self { times: times * self.times, ..self }
    }

    /// The same where what is called the host's buffer is in a slot, from block `at` of it on.
    #[must_use]
    pub(crate) fn with_host_in(self, slot: u32, at: Blocks) -> Self {
        match self.from {
            Source::Host(from) => Self { from: Source::Slot(slot, from + at), ..self },
            Source::Slot(..) => self,
        }
    }

    /// The same so many blocks further on.
    #[must_use]
    pub(crate) fn moved(self, on: Blocks) -> Self {
        let from = match self.from {
            Source::Host(at) => Source::Host(at + on),
            Source::Slot(slot, at) => Source::Slot(slot, at + on),
        };
        Self { from, ..self }
    }
}

/// Consecutive blocks of a member request with one source or destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpPart {
    /// Length.
    pub blocks: Blocks,
    /// Source or destination.
    pub end: End,
}

/// Collects the parts of one request.
pub struct Parts<'a> {
    pub(crate) parts: &'a mut Vec<OpPart>,
    pub(crate) terms: &'a mut Vec<Term>,
}

impl Parts<'_> {
    /// The next `blocks`.
    #[inline]
    pub fn push(&mut self, blocks: Blocks, end: End) {
        self.parts.push(OpPart { blocks, end });
    }

    /// An end that is the sum of `terms`: itself where there is one, zeroes where there is none.
    pub fn sum(&mut self, terms: &[Term]) -> End {
        match terms {
            [] => End::Zero,
            [Term { from: Source::Host(at), times: Gf::ONE }] => End::Host(*at),
            [Term { from: Source::Slot(slot, at), times: Gf::ONE }] => End::Slot(*slot, *at),
            _ => {
                let first = self.terms.len() as u32;
                self.terms.extend_from_slice(terms);
                End::Sum(first, self.terms.len() as u32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One term is what it is of, but only where it is there once: so many times it is a sum, as two of them are.
    #[test]
    fn what_is_there_several_times_is_a_sum() {
        let twice = Gf::power(1);
        let once = [Term::host(3), Term::slot(2, Blocks(5))];
        let (mut parts, mut terms) = (Vec::new(), Vec::new());
        let mut out = Parts { parts: &mut parts, terms: &mut terms };
        assert_eq!(out.sum(&[]), End::Zero);
        assert_eq!(once.map(|term| out.sum(&[term])), [End::Host(Blocks(3)), End::Slot(2, Blocks(5))]);
        assert_eq!(once.map(|term| out.sum(&[term.times(twice)])), [End::Sum(0, 1), End::Sum(1, 2)]);
        assert_eq!(out.sum(&once), End::Sum(2, 4));
        assert_eq!(terms, [once[0].times(twice), once[1].times(twice), once[0], once[1]]);
    }
}
