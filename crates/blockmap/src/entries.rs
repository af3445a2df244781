//! Runs of units in a sorted array, ascending and apart.

use std::ops::Range;

use crate::payload::Payload;
use crate::search::partition_near;

/// Entries that a sorted array has room for when it grows first.
const SMALLEST: usize = 5;

/// Where `offset` would be among the entries of a node of `size` units, a power of two, if they lay evenly.
pub(crate) fn guess(len: usize, offset: usize, size: usize) -> usize {
    (len * offset) >> size.trailing_zeros()
}

/// The first entry that ends behind `offset`.
#[inline]
pub(crate) fn place<P: Payload>(entries: &[P::Entry], offset: usize, size: usize) -> usize {
    // In 32 bits, of which the processor compares many at once.
    let last = offset as u32;
    partition_near(entries, guess(entries.len(), offset, size), |e| end::<P>(e) as u32 <= last)
}

#[inline]
pub(crate) fn find<P: Payload>(entries: &[P::Entry], offset: usize, size: usize) -> Result<usize, usize> {
    let at = place::<P>(entries, offset, size);
    if entries.get(at).is_some_and(|e| P::offset(e) <= offset) { Ok(at) } else { Err(at) }
}

/// The offset behind an entry.
#[inline]
pub(crate) fn end<P: Payload>(entry: &P::Entry) -> usize {
    P::offset(entry) + P::len(entry)
}

/// What an entry weighs.
#[inline]
pub(crate) fn heft<P: Payload>(entry: &P::Entry) -> u64 {
    P::value(entry).weight() * P::len(entry) as u64
}

/// The part of an entry that lies in `range`.
#[inline]
pub(crate) fn clip<P: Payload>(entry: &P::Entry, range: &Range<usize>) -> P::Entry {
    let (from, to) = (P::offset(entry).max(range.start), end::<P>(entry).min(range.end));
    P::pack(from, to - from, P::value(entry))
}

/// The entries of a long run.
pub(crate) fn runs<P: Payload>(range: Range<usize>, value: P) -> impl Iterator<Item = P::Entry> + Clone {
    let end = range.end;
    range.step_by(P::RUN).map(move |at| P::pack(at, P::RUN.min(end - at), value))
}

pub(crate) fn sparse_bytes<P: Payload>(entries: &Vec<P::Entry>) -> usize {
    entries.capacity() * size_of::<P::Entry>()
}

/// Room for `len` entries, growing by half: doubling would leave too much slack. Less than [`SMALLEST`] would take the
/// allocator as much.
pub(crate) fn make_room<T>(entries: &mut Vec<T>, len: usize) {
    if len > entries.capacity() {
        let capacity = len.max(entries.capacity() * 3 / 2 + 1).max(SMALLEST);
        entries.reserve_exact(capacity - entries.len());
    }
}

/// The value that all units have, if these entries, or none, say so.
#[inline]
pub(crate) fn throughout<P: Payload>(entries: &[P::Entry], size: usize) -> Option<P> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Some(P::default()) };
    if P::RUN == 1 || P::offset(first) > 0 || end::<P>(last) < size {
        return None;
    }
    let value = P::value(first);
    let alike = entries.iter().all(|e| P::value(e) == value);
    (alike && entries.iter().map(P::len).sum::<usize>() == size).then_some(value)
}

/// What takes the place of which entries where `range`, in which those of `inside` lie at least in part, gets one value. A run
/// goes on with its neighbours of the same value.
#[inline]
pub(crate) fn splice_of<P: Payload>(
    entries: &[P::Entry],
    inside: Range<usize>,
    range: Range<usize>,
    value: P,
) -> (Range<usize>, impl Iterator<Item = P::Entry> + Clone + use<P>) {
    let (mut cut, mut span) = (inside.clone(), range.clone());
    let rest = |e: &P::Entry, part: Range<usize>| (!part.is_empty()).then(|| clip::<P>(e, &part));
    let ends = entries[inside].first().zip(entries[cut.clone()].last());
    let mut head = ends.and_then(|(e, _)| rest(e, P::offset(e)..range.start));
    let mut tail = ends.and_then(|(_, e)| rest(e, range.end..end::<P>(e)));
    if value == P::default() {
        span.end = span.start;
    } else {
        let before = head.or_else(|| cut.start.checked_sub(1).map(|i| entries[i]));
        let joins = |e: &P::Entry, n: usize| P::value(e) == value && P::len(e) + n <= P::RUN;
        if let Some(e) = before.filter(|e| end::<P>(e) == span.start && joins(e, span.len())) {
            span.start = P::offset(&e);
            cut.start -= usize::from(head.take().is_none());
        }
        let behind = tail.or_else(|| entries.get(cut.end).copied());
        if let Some(e) = behind.filter(|e| P::offset(e) == span.end && joins(e, span.len())) {
            span.end = end::<P>(&e);
            cut.end += usize::from(tail.take().is_none());
        }
    }
    (cut, head.into_iter().chain(runs(span, value)).chain(tail))
}
