//! How the parities of a row follow a write: all of them new, from the old data and parities, or from the data not written.

use super::code::Lost;
use super::rows::{Rows, Segment};
use std::ops::Range;

/// How the new parities of a segment come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Old data of the chunks that are written, and the old parities.
    Modify,
    /// The chunks that are not written.
    Reconstruct,
    /// All that there is: a chunk that is written and one that is not are both lost.
    Decode,
}

/// Which method a user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The one with fewer reads, and among equals with fewer blocks; reconstruct-write where all is equal. Where parity is
    /// `logged` a read-modify-write does not read it.
    Cheapest {
        /// With `parity=log`.
        logged: bool,
    },
    /// Always this one, where the disks allow it.
    Always(Method),
}

/// A read of old data or an old parity, into a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRead {
    /// Row.
    pub row: u64,
    /// Chunk, or parity from the number of data chunks on.
    pub role: u64,
    /// Blocks within the chunk.
    pub blocks: Range<u64>,
}

/// A segment that is written, and how its parities come about.
#[derive(Clone, Debug)]
pub struct SegmentPlan {
    /// Row.
    pub row: u64,
    /// Its blocks and chunks.
    pub segment: Segment,
    /// How; `None`: the disks of all parities are dead.
    pub method: Option<Method>,
    /// What is lost of the row.
    pub lost: Lost,
}

/// The part of a row that is written.
#[derive(Clone, Debug)]
pub struct RowWrite {
    /// Row.
    pub row: u64,
    /// Blocks from its start.
    pub part: Range<u64>,
    /// What is lost of it.
    pub lost: Lost,
}

/// What a write does to its rows, and what it reads first.
#[derive(Clone, Debug, Default)]
pub struct WritePlan {
    /// Segments, row by row.
    pub segments: Vec<SegmentPlan>,
    /// Reads, each into the slot of its place in this list.
    pub reads: Vec<RowRead>,
}

/// The roles that a segment needs to have been read, ascending, the lost ones among them.
fn wanted(rows: &Rows, of: &SegmentPlan, method: Method) -> [Range<u64>; 2] {
    let (written, data) = (&of.segment.chunks, rows.data());
    match method {
        Method::Modify => [written.clone(), data..rows.disks],
        Method::Reconstruct => [0..written.start, written.end..data],
        Method::Decode => [0..data, data..rows.disks],
    }
}

/// Whether a segment needs a role to have been read.
fn needs(rows: &Rows, of: &SegmentPlan, method: Method, role: u64) -> bool {
    wanted(rows, of, method).iter().any(|roles| roles.contains(&role)) && !of.lost.contains(role)
}

/// The reads that segments of one row need by `method`, adjacent ones of a chunk as one; `out` is told role and blocks.
fn reads(
    rows: &Rows,
    row: &[SegmentPlan],
    method: impl Fn(&SegmentPlan) -> Option<Method>,
    mut out: impl FnMut(u64, Range<u64>),
) {
    // Nothing is adjacent to the only one.
    if let [of] = row {
        let roles = method(of).map(|m| wanted(rows, of, m)).into_iter().flatten().flatten();
        roles
            .filter(|role| !of.lost.contains(*role))
            .for_each(|role| out(role, of.segment.lo..of.segment.hi));
        return;
    }
    for role in 0..rows.disks {
        let mut open: Option<Range<u64>> = None;
        let needed = |p: &&SegmentPlan| method(p).is_some_and(|m| needs(rows, p, m, role));
        for SegmentPlan { segment, .. } in row.iter().filter(needed) {
            match &mut open {
                Some(range) if range.end == segment.lo => range.end = segment.hi,
                _ => {
                    if let Some(range) = open.replace(segment.lo..segment.hi) {
                        out(role, range);
                    }
                }
            }
        }
        if let Some(range) = open {
            out(role, range);
        }
    }
}

/// What reading costs: fewer requests first, then fewer blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    reads: u64,
    blocks: u64,
}

/// The cost of one method for all segments; of the first `roles` roles.
fn cost(rows: &Rows, row: &[SegmentPlan], method: Method, roles: u64) -> Cost {
    if let [of] = row
        && of.lost.count() == 0
    {
        let below = |range: Range<u64>| range.end.min(roles).saturating_sub(range.start);
        let [first, second] = wanted(rows, of, method).map(below);
        let reads = first + second;
        return Cost { reads, blocks: reads * of.segment.blocks().0 };
    }
    let mut cost = Cost::default();
    reads(
        rows,
        row,
        |_| Some(method),
        |role, range| {
            if role < roles {
                cost.reads += 1;
                cost.blocks += range.end - range.start;
            }
        },
    );
    cost
}

/// The method of a segment of a row that has lost chunks.
fn degraded(rows: &Rows, of: &SegmentPlan) -> Method {
    let written = |chunk: u64| of.segment.chunks.contains(&chunk);
    let mut chunks = of.lost.iter().filter(|role| *role < rows.data());
    if !chunks.any(written) {
        return Method::Modify;
    }
    match of.lost.iter().any(|role| role < rows.data() && !written(role)) {
        true => Method::Decode,
        false => Method::Reconstruct,
    }
}

/// Plans the write of a part of a row.
pub fn plan(rows: &Rows, write: &RowWrite, preference: Preference, to: &mut WritePlan) {
    let (first, row, lost) = (to.segments.len(), write.row, write.lost);
    rows.segments(&write.part, |segment| to.segments.push(SegmentPlan { row, segment, method: None, lost }));
    let own = &mut to.segments[first..];
    if lost.iter().any(|role| role < rows.data()) {
        for segment in &mut *own {
            let parities = rows.code().parities_without(lost).next().is_some();
            segment.method = parities.then(|| degraded(rows, segment));
        }
    } else if lost.count() < rows.parities {
        let method = match preference {
            // A whole row has nothing old to read.
            Preference::Always(_) if write.part == (0..rows.host_blocks()) => Method::Reconstruct,
            Preference::Always(method) => method,
            Preference::Cheapest { logged } => {
                let modify = cost(rows, own, Method::Modify, rows.disks - u64::from(logged));
                let reconstruct = cost(rows, own, Method::Reconstruct, rows.disks);
                if modify < reconstruct { Method::Modify } else { Method::Reconstruct }
            }
        };
        own.iter_mut().for_each(|p| p.method = Some(method));
    }
    reads(rows, own, |p| p.method, |role, blocks| to.reads.push(RowRead { row, role, blocks }));
}

#[cfg(test)]
mod tests {
    use super::super::rows::Rotation;
    use super::*;

    fn rows(chunk: u64, disks: u64, parities: u64) -> Rows {
        Rows { chunk, disks, parities, rotation: Rotation::LeftAsymmetric, rows: 1 }
    }

    fn planned(rows: &Rows, part: Range<u64>, lost: Lost, preference: Preference) -> WritePlan {
        let mut to = WritePlan::default();
        plan(rows, &RowWrite { row: 0, part, lost }, preference, &mut to);
        to
    }

    const CHEAPEST: Preference = Preference::Cheapest { logged: false };

    /// Reads of a write of `part` by the formula: min(w + m, N - w) chunks where whole chunks are written and there are m parities.
    #[test]
    fn whole_chunks_cost_what_the_formula_says() {
        for (disks, parities) in (3..9).flat_map(|d| [(d, 1), (d + 1, 2)]) {
            let rows = rows(8, disks, parities);
            let n = disks - parities;
            for w in 1..=n {
                let to = planned(&rows, 0..w * 8, Lost::NONE, CHEAPEST);
                assert_eq!(to.reads.len() as u64, (w + parities).min(n - w), "{disks} disks, {w} chunks");
                // Where the old parity is not read, one of four disks is modified, too.
                let to = planned(&rows, 0..w * 8, Lost::NONE, Preference::Cheapest { logged: true });
                let wanted = if w + parities - 1 < n - w { Method::Modify } else { Method::Reconstruct };
                assert_eq!(to.segments[0].method, Some(wanted), "{disks} disks, {w} chunks");
            }
        }
    }

    /// Which reads each method needs, block by block: the one with fewer reads is chosen, then that with fewer blocks.
    #[test]
    fn fewer_reads_count_before_fewer_blocks() {
        let mut apart = 0;
        for (chunk, disks, parities) in [(4, 4, 1), (5, 5, 1), (4, 6, 2), (6, 7, 2)] {
            let rows = rows(chunk, disks, parities);
            let data = disks - parities;
            for (start, end) in (0..data * chunk).flat_map(|s| (s + 1..=data * chunk).map(move |e| (s, e))) {
                let cost = |modify: bool| {
                    let (mut reads, mut blocks) = (0, 0);
                    for role in 0..disks {
                        let wanted = |at: &u64| {
                            let is_new = |role: u64| (start..end).contains(&(role * chunk + at));
                            let any = (0..data).any(is_new);
                            any && if role >= data { modify } else { is_new(role) == modify }
                        };
                        let all: Vec<u64> = (0..chunk).filter(wanted).collect();
                        blocks += all.len();
                        reads += all.chunk_by(|a, b| a + 1 == *b).count();
                    }
                    (reads, blocks)
                };
                let [(r1, b1), (r2, b2)] = [cost(true), cost(false)];
                let wanted = if (r1, b1) < (r2, b2) { Method::Modify } else { Method::Reconstruct };
                let to = planned(&rows, start..end, Lost::NONE, CHEAPEST);
                assert_eq!(to.segments[0].method, Some(wanted), "{start}..{end} of {rows:?}");
                apart += u64::from(((r1, b1) < (r2, b2)) != ((b1, r1) < (b2, r2)));
            }
        }
        assert!(apart > 0, "fewer reads are never more blocks");
    }

    /// Whatever is preferred for parts of a row.
    #[test]
    fn a_whole_row_reads_nothing() {
        let rows = rows(8, 5, 1);
        for preference in [
            Preference::Always(Method::Modify),
            Preference::Always(Method::Reconstruct),
            CHEAPEST,
            Preference::Cheapest { logged: true },
        ] {
            let reads = |part: Range<u64>| planned(&rows, part, Lost::NONE, preference).reads.len();
            assert_eq!((reads(0..32), reads(0..31) > 0, reads(1..32) > 0), (0, true, true));
        }
    }

    #[test]
    fn a_dead_disk_is_never_read() {
        for parities in [1, 2] {
            let rows = rows(4, 6, parities);
            let all = rows.host_blocks();
            for (start, end) in (0..all).flat_map(|s| (s + 1..=all).map(move |e| (s, e))) {
                for (one, two) in (0..6).flat_map(|a| (0..6).map(move |b| (a, b))) {
                    let mut lost = Lost::NONE.and(one).unwrap();
                    if parities == 2 && one != two {
                        lost = lost.and(two).unwrap();
                    }
                    let to = planned(&rows, start..end, lost, CHEAPEST);
                    let fine = |o: &RowRead| !lost.contains(o.role);
                    assert!(to.reads.iter().all(fine), "{start}..{end} without {lost:?}: {to:?}");
                }
            }
        }
    }

    /// Of six disks, four of data, chunks 0 and 1 are lost: a write of both reads the others, of none old data and parities, of one all.
    #[test]
    fn two_lost_chunks_are_written_by_what_there_is() {
        let (rows, lost) = (rows(4, 6, 2), Lost::NONE.and(0).and_then(|l| l.and(1)).unwrap());
        let with = |part| {
            let to = planned(&rows, part, lost, Preference::Always(Method::Modify));
            (to.segments[0].method.unwrap(), to.reads.iter().map(|o| o.role).collect::<Vec<_>>())
        };
        assert_eq!(with(0..8), (Method::Reconstruct, vec![2, 3]));
        assert_eq!(with(8..12), (Method::Modify, vec![2, 4, 5]));
        assert_eq!(with(4..8), (Method::Decode, vec![2, 3, 4, 5]));
    }
}
