//! How the parity of a row follows a write: all of it new, from the old data and parity, or from the data not written.

use super::rows::{Rows, Segment};
use std::ops::Range;

/// How the new parity of a segment comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Old data of the chunks that are written, and the old parity.
    Modify,
    /// The chunks that are not written.
    Reconstruct,
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

/// A read that a write needs before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Old {
    /// Row.
    pub row: u64,
    /// Chunk, or parity where it is the number of data chunks.
    pub role: u64,
    /// Blocks within the chunk.
    pub blocks: Range<u64>,
}

/// A segment and how its parity comes about.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Row.
    pub row: u64,
    /// Where.
    pub segment: Segment,
    /// How; `None`: the parity's disk is dead.
    pub method: Option<Method>,
}

/// Roles that a segment needs to have read, a bit each.
fn needs(rows: &Rows, segment: &Segment, method: Method) -> u64 {
    let below = |n: u64| if n >= 64 { u64::MAX } else { (1 << n) - 1 };
    let covered = below(segment.chunks.end) & !below(segment.chunks.start);
    match method {
        Method::Modify => covered | 1 << rows.data(),
        Method::Reconstruct => below(rows.data()) & !covered,
    }
}

/// The reads that segments of one row need by `method`, adjacent ones of a chunk as one; `out` is told role and blocks.
fn reads(
    rows: &Rows,
    row: &[Planned],
    method: impl Fn(&Planned) -> Option<Method>,
    mut out: impl FnMut(u64, Range<u64>),
) {
    let mask = |p: &Planned| method(p).map_or(0, |m| needs(rows, &p.segment, m));
    let mut roles = row.iter().fold(0, |all, p| all | mask(p));
    while roles != 0 {
        let role = roles.trailing_zeros();
        roles &= roles - 1;
        let mut open: Option<Range<u64>> = None;
        for Planned { segment, .. } in row.iter().filter(|p| mask(p) >> role & 1 == 1) {
            match &mut open {
                Some(range) if range.end == segment.lo => range.end = segment.hi,
                _ => {
                    if let Some(range) = open.replace(segment.lo..segment.hi) {
                        out(u64::from(role), range);
                    }
                }
            }
        }
        if let Some(range) = open {
            out(u64::from(role), range);
        }
    }
}

/// Reads of the first `roles` roles and blocks read with one method for all segments.
fn cost(rows: &Rows, row: &[Planned], method: Method, roles: u64) -> (u64, u64) {
    let mut cost = (0, 0);
    let mut add = |role, range: Range<u64>| {
        if role < roles {
            cost = (cost.0 + 1, cost.1 + range.end - range.start);
        }
    };
    reads(rows, row, |_| Some(method), &mut add);
    cost
}

/// Plans the write of `part` of a row of which the disk that does role `dead` is dead.
pub fn plan(
    rows: &Rows,
    (row, part): (u64, &Range<u64>),
    dead: Option<u64>,
    preference: Preference,
    (planned, olds): (&mut Vec<Planned>, &mut Vec<Old>),
) {
    let first = planned.len();
    rows.segments(part, |segment| planned.push(Planned { row, segment, method: None }));
    let own = &mut planned[first..];
    match dead {
        Some(role) if role == rows.data() => {}
        Some(role) => {
            for Planned { segment, method, .. } in &mut *own {
                let written = segment.chunks.contains(&role);
                *method = Some(if written { Method::Reconstruct } else { Method::Modify });
            }
        }
        None => {
            let method = match preference {
                // A whole row has nothing old to read.
                Preference::Always(_) if *part == (0..rows.data() * rows.chunk) => Method::Reconstruct,
                Preference::Always(method) => method,
                Preference::Cheapest { logged } => {
                    let modify = cost(rows, own, Method::Modify, rows.disks - u64::from(logged));
                    let reconstruct = cost(rows, own, Method::Reconstruct, rows.disks);
                    if modify < reconstruct { Method::Modify } else { Method::Reconstruct }
                }
            };
            own.iter_mut().for_each(|p| p.method = Some(method));
        }
    }
    reads(rows, own, |p| p.method, |role, blocks| olds.push(Old { row, role, blocks }));
}

#[cfg(test)]
mod tests {
    use super::super::rows::Rotation;
    use super::*;

    /// Reads of a write of `part` by the formula: min(w + 1, N - w) chunks where whole chunks are written.
    #[test]
    fn whole_chunks_cost_what_the_formula_says() {
        for disks in 3..9 {
            let rows = Rows { chunk: 8, disks, rotation: Rotation::LeftSymmetric, rows: 1 };
            let n = disks - 1;
            for w in 1..=n {
                let (mut planned, mut olds) = (Vec::new(), Vec::new());
                let part = 0..w * 8;
                let to = (&mut planned, &mut olds);
                plan(&rows, (0, &part), None, Preference::Cheapest { logged: false }, to);
                assert_eq!(olds.len() as u64, (w + 1).min(n - w), "{disks} disks, {w} chunks");
                // Where the old parity is not read, one of four disks is modified, too.
                let to = (&mut planned, &mut olds);
                plan(&rows, (0, &part), None, Preference::Cheapest { logged: true }, to);
                let wanted = if w < n - w { Method::Modify } else { Method::Reconstruct };
                assert_eq!(planned.last().and_then(|p| p.method), Some(wanted), "{disks} disks, {w} chunks");
            }
        }
    }

    /// Whatever is preferred for parts of a row.
    #[test]
    fn a_whole_row_reads_nothing() {
        let rows = Rows { chunk: 8, disks: 5, rotation: Rotation::LeftSymmetric, rows: 1 };
        for preference in [
            Preference::Always(Method::Modify),
            Preference::Always(Method::Reconstruct),
            Preference::Cheapest { logged: false },
            Preference::Cheapest { logged: true },
        ] {
            let reads = |part: Range<u64>| {
                let (mut planned, mut olds) = (Vec::new(), Vec::new());
                plan(&rows, (0, &part), None, preference, (&mut planned, &mut olds));
                olds.len()
            };
            assert_eq!((reads(0..32), reads(0..31) > 0, reads(1..32) > 0), (0, true, true));
        }
    }

    #[test]
    fn a_dead_disk_is_never_read() {
        let rows = Rows { chunk: 4, disks: 5, rotation: Rotation::LeftAsymmetric, rows: 1 };
        for start in 0..16 {
            for end in start + 1..=16 {
                for dead in 0..5 {
                    let (mut planned, mut olds) = (Vec::new(), Vec::new());
                    let to = (&mut planned, &mut olds);
                    plan(&rows, (0, &(start..end)), Some(dead), Preference::Cheapest { logged: false }, to);
                    assert!(olds.iter().all(|o| o.role != dead), "{start}..{end} without {dead}: {olds:?}");
                }
            }
        }
    }
}
