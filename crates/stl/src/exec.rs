//! The byte executor: carries out plans on any medium that reads and writes bytes.
//!
//! One piece of code for tests, power cuts and the served device. Bytes that a plan reads for its own later writes are
//! staged in memory, which is volatile: a cut loses them.

use crate::{Dir, OpId, Piece, Plan, Source};
use smrlab_disk::media::{ByteMedia, ByteMedium};
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
    fn write_parts(&mut self, pba: Pba, parts: &[&[u8]]) -> Result<(), Self::Error> {
        self.write(pba, &parts.concat())
    }
}

/// Layers also copy blocks that nobody reads, destroyed ones among them: so reads give what is there.
impl Medium for ByteMedium {
    type Error = std::convert::Infallible;

    fn read(&mut self, pba: Pba, out: &mut [u8]) -> Result<(), Self::Error> {
        self.read_raw(pba, out);
        Ok(())
    }

    fn write(&mut self, pba: Pba, data: &[u8]) -> Result<(), Self::Error> {
        ByteMedia::write(self, pba, data);
        Ok(())
    }
}

/// The host's buffer of a request.
#[derive(Debug)]
pub enum HostBuffer<'a> {
    /// There is none: flush, discard, background work, recovery.
    None,
    /// The data of a write.
    Write(&'a [u8]),
    /// Where the data of a read go.
    Read(&'a mut [u8]),
}

/// Where what an operation read is kept.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Nowhere,
    Staging(usize),
    Host(usize),
}

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
        if let HostBuffer::Read(out) = host {
            for &(from, blocks) in plan.zeroes() {
                out[at(from)..at(from + blocks)].fill(0);
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
        if let (Source::Host(from), HostBuffer::Read(out)) = (end, host) {
            self.kept.push(Kept::Host(at(from)));
            return medium.read(media.pba, &mut out[at(from)..at(from + media.blocks)]);
        }
        let first = self.staged;
        self.staged += at(media.blocks);
        if self.staging.len() < self.staged {
            self.staging.resize(self.staged, 0);
        }
        self.kept.push(Kept::Staging(first));
        medium.read(media.pba, &mut self.staging[first..self.staged])
    }

    /// What operation `op`, a write, puts on the medium, in parts; the operations before it have been done.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn parts<'a>(&'a self, plan: &Plan, op: OpId, host: &'a HostBuffer<'_>) -> Vec<&'a [u8]> {
        let mut parts = Vec::with_capacity(plan.pieces(op).len());
        for piece in plan.pieces(op) {
            match self.slice(piece, host) {
                Some(slice) => parts.push(slice),
                None => {
                    let fill = if piece.end == Source::Records { &RECORDS } else { &ZEROES };
                    let mut left = at(piece.blocks);
                    while left > 0 {
                        parts.push(&fill[..left.min(FILL)]);
                        left -= left.min(FILL);
                    }
                }
            }
        }
        parts
    }

    fn slice<'a>(&'a self, piece: &Piece, host: &'a HostBuffer<'_>) -> Option<&'a [u8]> {
        let len = at(piece.blocks);
        let of_host = |from: usize| match host {
            HostBuffer::Write(data) => &data[from..from + len],
            HostBuffer::Read(data) => &data[from..from + len],
            HostBuffer::None => panic!("a plan with host data and no buffer"),
        };
        match piece.end {
            Source::Host(from) => Some(of_host(at(from))),
            Source::Staged(op, from) => match self.kept[op.0 as usize] {
                Kept::Staging(first) => Some(&self.staging[first + at(from)..][..len]),
                Kept::Host(first) => Some(of_host(first + at(from))),
                Kept::Nowhere => panic!("operation {} read nothing", op.0),
            },
            Source::Zero | Source::Records => None,
        }
    }
}
