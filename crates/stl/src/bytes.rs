//! The byte executor: carries out plans on any medium that reads and writes bytes.
//!
//! One piece of code for tests, power cuts and the served device. Bytes that a plan reads for its own later writes are
//! staged in memory, which is volatile: a cut loses them.

#[cfg(test)]
mod tests;

use crate::{Dir, Endpoint, OpId, Piece, Plan};
use smrlab_units::{BLOCK_BYTES, Blocks, Pba};

/// A medium with bytes. Lengths are whole blocks.
pub trait Medium {
    /// What can go wrong.
    type Error;

    /// Reads from `pba` on.
    ///
    /// # Errors
    /// Whatever the medium cannot read.
    fn read(&mut self, pba: Pba, out: &mut [u8]) -> Result<(), Self::Error>;

    /// Writes from `pba` on, and destroys what interferes with it.
    ///
    /// # Errors
    /// Whatever the medium cannot write.
    fn write(&mut self, pba: Pba, data: &[u8]) -> Result<(), Self::Error>;

    /// One write of `parts`, one behind the other.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_parts(&mut self, pba: Pba, parts: &[WritePart<'_>]) -> Result<(), Self::Error> {
        let mut data = Vec::new();
        for part in parts {
            match *part {
                WritePart::Bytes(bytes) => data.extend_from_slice(bytes),
                WritePart::Medium(from, blocks) => {
                    let first = data.len();
                    data.resize(first + at(blocks), 0);
                    self.read(from, &mut data[first..])?;
                }
            }
        }
        self.write(pba, &data)
    }

    /// Reads `blocks` from `pba` on, which `take` gets in pieces that follow each other: uncopied where the medium has them in
    /// memory.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn lend(&mut self, pba: Pba, blocks: Blocks, take: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        let mut data = vec![0; at(blocks)];
        self.read(pba, &mut data)?;
        take(&data);
        Ok(())
    }

    /// Counts as having read `blocks` from `pba`, and answers `true`, where the medium can copy them itself in a later
    /// [`write_parts`](Self::write_parts); they are not written to until then. `false`: nothing was done.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_later(&mut self, pba: Pba, blocks: Blocks) -> Result<bool, Self::Error> {
        let _ = (pba, blocks);
        Ok(false)
    }
}

/// A part of what is written.
#[derive(Clone, Copy, Debug)]
pub enum WritePart<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// What the medium holds there (see [`Medium::read_later`]); where it is the only part it may overlap with where it goes.
    Medium(Pba, Blocks),
}

/// The host's buffer of a request.
pub enum HostBuffer<'a> {
    /// There is none: flush, discard, background work, recovery.
    None,
    /// The data of a write.
    Write(&'a [u8]),
    /// Where the data of a read go.
    Read(&'a mut [u8]),
    /// Who takes the data of a read, in any order: where in them a piece begins, in bytes, and the piece. What comes later
    /// overrides what came before.
    Lend(&'a dyn Fn(usize, &[u8])),
}

/// For pieces that follow each other: has `take` know where each begins, the first at `from`.
pub fn following(from: usize, take: &dyn Fn(usize, &[u8])) -> impl FnMut(&[u8]) {
    let mut to = from;
    move |piece| {
        take(to, piece);
        to += piece.len();
    }
}

/// Where what an operation read is kept.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Nowhere,
    Staging(usize),
    Host(usize),
    /// Still on the medium.
    Medium,
}

/// Reads of fewer blocks are done at once.
const WORTH_WAITING: Blocks = Blocks(8);

/// What fills blocks that nobody reads back.
static RECORDS: [u8; FILL] = [0x5a; FILL];
static ZEROES: [u8; FILL] = [0; FILL];
const FILL: usize = 64 * BLOCK_BYTES as usize;

/// See the [module](self). Reused from plan to plan.
#[derive(Debug, Default)]
pub struct Executor {
    /// Grows to what the largest plan stages; what lies behind `staged` is of earlier plans.
    staging: Vec<u8>,
    staged: usize,
    kept: Vec<Kept>,
    /// The operations whose data are still on the medium.
    waiting: Vec<OpId>,
    /// By operation: the last one that writes what it read. Empty until that matters in a plan.
    last_uses: Vec<OpId>,
}

fn at(blocks: Blocks) -> usize {
    blocks.bytes() as usize
}

impl Executor {
    /// Carries out the whole plan.
    ///
    /// # Errors
    /// The first error of the medium; operations behind it are not done.
    ///
    /// # Panics
    /// When the plan was made without data, or its pieces do not fit the host's buffer: an error of the layer.
    pub fn run<M: Medium>(
        &mut self,
        plan: &Plan,
        mut host: HostBuffer<'_>,
        medium: &mut M,
    ) -> Result<(), M::Error> {
        self.begin();
        for op in 0..plan.ops().len() as u32 {
            self.step(plan, OpId(op), &mut host, medium)?;
        }
        Self::finish(plan, &mut host);
        Ok(())
    }

    /// Forgets what earlier plans staged.
    pub fn begin(&mut self) {
        self.staged = 0;
        self.kept.clear();
        self.waiting.clear();
        self.last_uses.clear();
    }

    /// Carries out one operation; they must be done in order.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn step<M: Medium>(
        &mut self,
        plan: &Plan,
        op: OpId,
        host: &mut HostBuffer<'_>,
        medium: &mut M,
    ) -> Result<(), M::Error> {
        assert!(plan.wants_data(), "a plan without pieces cannot move bytes");
        let media = plan.ops()[op.0 as usize];
        match media.dir {
            Dir::Read => self.read(plan, op, host, medium),
            Dir::Write => {
                self.kept.push(Kept::Nowhere);
                self.fetch(plan, op, medium)?;
                if let [one] = plan.pieces(op)
                    && let Some(data) = self.slice(one, host)
                {
                    return medium.write(media.pba, data);
                }
                medium.write_parts(media.pba, &self.parts(plan, op, host))
            }
        }
    }

    /// The parts of the host's buffer that read as zeroes; done after the operations, because it overrides them.
    pub fn finish(plan: &Plan, host: &mut HostBuffer<'_>) {
        for &(from, blocks) in plan.zeroes() {
            let all = at(from)..at(from + blocks);
            match host {
                HostBuffer::Read(out) => out[all].fill(0),
                HostBuffer::Lend(take) => {
                    all.clone().step_by(FILL).for_each(|at| take(at, &ZEROES[..FILL.min(all.end - at)]));
                }
                HostBuffer::None | HostBuffer::Write(_) => {}
            }
        }
    }

    fn read<M: Medium>(
        &mut self,
        plan: &Plan,
        op: OpId,
        host: &mut HostBuffer<'_>,
        medium: &mut M,
    ) -> Result<(), M::Error> {
        let (media, end) = (plan.ops()[op.0 as usize], plan.pieces(op)[0].end);
        match (end, host) {
            (Endpoint::Host(from), HostBuffer::Read(out)) => {
                self.kept.push(Kept::Host(at(from)));
                return medium.read(media.pba, &mut out[at(from)..at(from + media.blocks)]);
            }
            (Endpoint::Host(from), HostBuffer::Lend(take)) => {
                let mut take = following(at(from), take);
                if self.last_use(plan, op) == op {
                    self.kept.push(Kept::Nowhere);
                    return medium.lend(media.pba, media.blocks, &mut take);
                }
                let first = self.stage(media.blocks);
                self.kept.push(Kept::Staging(first));
                medium.read(media.pba, &mut self.staging[first..self.staged])?;
                take(&self.staging[first..self.staged]);
                return Ok(());
            }
            _ => {}
        }
        if media.blocks >= WORTH_WAITING && medium.read_later(media.pba, media.blocks)? {
            self.kept.push(Kept::Medium);
            self.waiting.push(op);
            return Ok(());
        }
        let first = self.stage(media.blocks);
        self.kept.push(Kept::Staging(first));
        medium.read(media.pba, &mut self.staging[first..self.staged])
    }

    /// Room for `blocks` in the staging memory.
    fn stage(&mut self, blocks: Blocks) -> usize {
        let first = self.staged;
        self.staged += at(blocks);
        if self.staging.len() < self.staged {
            self.staging.resize(self.staged, 0);
        }
        first
    }

    /// Reads, before operation `op`, a write, is done, what waits on the medium where it goes; not what nobody writes
    /// afterwards, not what is all that this one writes (the medium then moves it as a whole), and not what stays where it
    /// is: most of a band that is rewritten in place, which is never copied.
    fn fetch<M: Medium>(&mut self, plan: &Plan, op: OpId, medium: &mut M) -> Result<(), M::Error> {
        let write = plan.ops()[op.0 as usize];
        let mut i = 0;
        while let Some(&waits) = self.waiting.get(i) {
            let read = plan.ops()[waits.0 as usize];
            if read.pba >= write.pba + write.blocks || write.pba >= read.pba + read.blocks {
                i += 1;
                continue;
            }
            self.waiting.swap_remove(i);
            let last = self.last_use(plan, waits);
            if last < op || (last == op && (plan.pieces(op).len() == 1 || Self::stays(plan, op, waits))) {
                continue;
            }
            let first = self.stage(read.blocks);
            self.kept[waits.0 as usize] = Kept::Staging(first);
            medium.read(read.pba, &mut self.staging[first..self.staged])?;
        }
        Ok(())
    }

    /// Whether all that operation `op` writes of what `read` read goes where it came from.
    fn stays(plan: &Plan, op: OpId, read: OpId) -> bool {
        let (from, mut to) = (plan.ops()[read.0 as usize].pba, plan.ops()[op.0 as usize].pba);
        plan.pieces(op).iter().all(|piece| {
            let here = to;
            to = here + piece.blocks;
            !matches!(piece.end, Endpoint::Staged(of, at) if of == read && from + at != here)
        })
    }

    /// The last operation that writes what operation `read` read, or that one itself.
    fn last_use(&mut self, plan: &Plan, read: OpId) -> OpId {
        if self.last_uses.is_empty() {
            let ops = plan.ops().len() as u32;
            self.last_uses.extend((0..ops).map(OpId));
            for op in (0..ops).map(OpId) {
                for piece in plan.pieces(op) {
                    if let Endpoint::Staged(of, _) = piece.end {
                        self.last_uses[of.0 as usize] = op;
                    }
                }
            }
        }
        self.last_uses[read.0 as usize]
    }

    /// What operation `op`, a write, puts on the medium, in parts; the operations before it have been done.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn parts<'a>(&'a self, plan: &Plan, op: OpId, host: &'a HostBuffer<'_>) -> Vec<WritePart<'a>> {
        let mut parts = Vec::with_capacity(plan.pieces(op).len());
        for piece in plan.pieces(op) {
            if let Some(slice) = self.slice(piece, host) {
                parts.push(WritePart::Bytes(slice));
                continue;
            }
            let moved = match piece.end {
                Endpoint::Staged(op, from) => Some(plan.ops()[op.0 as usize].pba + from),
                Endpoint::Held(from) => Some(from),
                _ => None,
            };
            if let Some(from) = moved {
                match parts.last_mut() {
                    // A layer may name each unit of its cache; the medium takes long for each that it moves.
                    Some(WritePart::Medium(first, n)) if *first + *n == from => *n += piece.blocks,
                    _ => parts.push(WritePart::Medium(from, piece.blocks)),
                }
                continue;
            }
            let fill = if piece.end == Endpoint::Records { &RECORDS } else { &ZEROES };
            let mut left = at(piece.blocks);
            while left > 0 {
                parts.push(WritePart::Bytes(&fill[..left.min(FILL)]));
                left -= left.min(FILL);
            }
        }
        parts
    }

    /// What of a piece lies in memory.
    fn slice<'a>(&'a self, piece: &Piece, host: &'a HostBuffer<'_>) -> Option<&'a [u8]> {
        let len = at(piece.blocks);
        let of_host = |from: usize| match host {
            HostBuffer::Write(data) => &data[from..from + len],
            HostBuffer::Read(data) => &data[from..from + len],
            HostBuffer::None | HostBuffer::Lend(_) => panic!("a plan with host data and no buffer"),
        };
        match piece.end {
            Endpoint::Host(from) => Some(of_host(at(from))),
            Endpoint::Staged(op, from) => match self.kept[op.0 as usize] {
                Kept::Staging(first) => Some(&self.staging[first + at(from)..][..len]),
                Kept::Host(first) => Some(of_host(first + at(from))),
                Kept::Medium => None,
                Kept::Nowhere => panic!("operation {} read nothing", op.0),
            },
            Endpoint::Held(_) | Endpoint::Zero | Endpoint::Records => None,
        }
    }
}
