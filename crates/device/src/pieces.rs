//! Pieces of a read: where the data of consecutive blocks lie.

/// Consecutive blocks of a read and where their data lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First block.
    pub at: u64,
    /// Length in blocks.
    pub blocks: u64,
    /// The block whose data are found there; `at` itself unless destroyed.
    pub from: u64,
    /// The write that put it there; 0: none.
    pub(crate) seq: u64,
}

impl Piece {
    /// Whether a write elsewhere destroyed these blocks.
    pub fn destroyed(&self) -> bool {
        self.at != self.from
    }

    /// Whether anything was ever written that is found there.
    pub fn written(&self) -> bool {
        self.seq > 0
    }
}

/// Lays `new` over the pieces from `first` on wherever it is the later one; a tie is one run, whose higher address came
/// later.
pub(crate) fn cover(out: &mut Vec<Piece>, first: usize, new: Piece) {
    let end = new.at + new.blocks;
    let mut i = first + out[first..].partition_point(|p| p.at + p.blocks <= new.at);
    while i < out.len() && out[i].at < end {
        let old = out[i];
        let (from, to) = (old.at.max(new.at), (old.at + old.blocks).min(end));
        let source = new.from + (from - new.at);
        if (new.seq, source) <= (old.seq, old.from + (from - old.at)) {
            i += 1;
            continue;
        }
        let cut =
            |a: u64, b: u64| Piece { at: a, blocks: b - a, from: old.from + (a - old.at), seq: old.seq };
        let (head, tail) = (cut(old.at, from), cut(to, old.at + old.blocks));
        out[i] = Piece { at: from, blocks: to - from, from: source, seq: new.seq };
        if tail.blocks > 0 {
            out.insert(i + 1, tail);
        }
        if head.blocks > 0 {
            out.insert(i, head);
            i += 1;
        }
        i += 1;
    }
}

/// Joins pieces that follow each other, and so do their data.
pub(crate) fn join(out: &mut Vec<Piece>) {
    out.dedup_by(|next, p| {
        // What was never written stays apart: block status goes by it.
        let joins =
            p.at + p.blocks == next.at && p.from + p.blocks == next.from && p.written() == next.written();
        p.blocks += if joins { next.blocks } else { 0 };
        joins
    });
}
