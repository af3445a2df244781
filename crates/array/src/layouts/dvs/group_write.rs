//! The write of chunks to one group: what must be read before, and what the stripes are made of.

use super::group::{Cell, Holds};
use super::pack::{Packer, pack_all};
use super::shape::Shape;
use super::source::Source;
use crate::layouts::chunks::{Chunk, Lost, Slots, pieces};
use crate::layouts::disks::Disks;
use crate::{MemberId, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest};
use smrlab_units::{Blocks, HostOp, Lba};

/// What one operation writes to one group.
#[derive(Clone, Debug)]
pub struct GroupWrite {
    /// The group.
    pub group: u64,
    /// The chunks; first those of the host's, then what a collection moves.
    pub chunks: Vec<Chunk>,
    /// How many of them are the host's.
    pub fresh: usize,
    /// The group is collected: reset before it is written.
    pub collect: bool,
    /// The cells of the new stripes, one stripe after the other.
    pub stripes: Vec<Cell>,
    /// The place in the journal that its chunks have, while it is collected.
    pub journal: Option<u64>,
}

impl GroupWrite {
    /// Packs the chunks behind the group's pointers; or, where they do not fit or the group is collected anyhow, all live chunks into
    /// the emptied group. `fill`: narrow stripes take old chunks.
    ///
    /// # Errors
    /// Too many disks are dead.
    pub fn prepare(
        &mut self,
        of: Source<'_>,
        fill: bool,
        slots: &mut Slots,
        packer: &mut Packer,
    ) -> Result<(), Lost> {
        if !self.collect
            && let Some(fillers) = self.append(of, fill, packer)
        {
            return fillers.into_iter().try_for_each(|lcn| of.chunk(lcn, slots).map(|c| self.chunks.push(c)));
        }
        self.collect = true;
        for lcn in of.tables.live() {
            if self.chunks.iter().any(|c| c.lcn == lcn) {
                continue;
            }
            self.chunks.push(of.chunk(lcn, slots)?);
        }
        let mut all: Vec<u64> = self.chunks.iter().map(|c| c.lcn).collect();
        all.sort_unstable();
        self.stripes = pack_all(of.shape, &all).ok_or(Lost)?;
        Ok(())
    }

    /// Packs the chunks behind the pointers; answers the old chunks that make narrow stripes wider. `None`: there is no room.
    fn append(&mut self, of: Source<'_>, fill: bool, packer: &mut Packer) -> Option<Vec<u64>> {
        let mut fillers = Vec::new();
        let more = |disk, row| {
            let taken = |lcn| fillers.contains(&lcn) || self.chunks.iter().any(|c| c.lcn == lcn);
            let found = if fill { of.filler(disk, row, taken) } else { None };
            found.filter(|_| of.is_there(disk)).inspect(|lcn| fillers.push(*lcn))
        };
        let lcns = self.chunks.iter().map(|c| c.lcn);
        let stripes = packer.pack(of.shape, lcns, of.tables.pointers(), more)?;
        self.stripes.extend_from_slice(stripes);
        Some(fillers)
    }

    /// A collection that the journal does not have.
    pub(super) fn wants_journal(&self) -> bool {
        self.collect && self.journal.is_none()
    }

    fn chunk(&self, lcn: u16) -> &Chunk {
        let found = self.chunks.iter().find(|c| c.lcn == u64::from(lcn));
        found.unwrap_or_else(|| panic!("chunk {lcn} is in a stripe and not among those written"))
    }

    /// Plans the writes: consecutive chunks of a disk with the same cause are one request.
    pub fn write(
        &self,
        shape: &Shape,
        ticket: Ticket,
        request: &HostRequest,
        alive: &Disks,
        plan: &mut MemberPlan,
    ) {
        let base = shape.start(self.group);
        for disk in (0..shape.disks).filter(|d| alive.has(*d, self.group)) {
            let member = MemberId(disk as u32);
            if self.collect {
                let blocks = Blocks(shape.length * shape.chunk);
                let reset = HostRequest::new(HostOp::Discard, Lba(base), blocks).because(Cause::Clean);
                plan.ask(ticket, member, reset, |_| {});
            }
            let own = self.of_disk(shape, disk);
            let mut cells = own.clone().enumerate().peekable();
            while let Some((first, (_, cell, why))) = cells.next() {
                let mut n = 1;
                while cells.next_if(|(_, (_, _, other))| *other == why).is_some() {
                    n += 1;
                }
                let lba = Lba(base + u64::from(cell.at) * shape.chunk);
                let blocks = Blocks(n as u64 * shape.chunk);
                let write = HostRequest { op: HostOp::Write, lba, blocks, why, ..*request };
                plan.ask(ticket, member, write, |out| {
                    let run = own.clone().skip(first).take(n);
                    run.for_each(|(stripe, cell, _)| self.parts(shape, stripe, cell, out));
                });
            }
        }
    }

    /// What is written to a disk: the stripe, the cell, what for.
    fn of_disk<'a>(
        &'a self,
        shape: &Shape,
        disk: u64,
    ) -> impl Iterator<Item = (&'a [Cell], Cell, Cause)> + Clone + use<'a> {
        let stripes = self.stripes.chunks(shape.disks as usize);
        stripes.filter_map(move |s| Some((s, s[disk as usize], self.cause(s[disk as usize])?)))
    }

    /// Writes all its chunks to a place of the journal that begins at this block of the SSD.
    pub fn write_journal(&self, shape: &Shape, ticket: Ticket, start: u64, plan: &mut MemberPlan) {
        let blocks = Blocks(self.chunks.len() as u64 * shape.chunk);
        let write = HostRequest::new(HostOp::Write, Lba(start), blocks).because(Cause::Journal);
        plan.ask(ticket, MemberId(shape.disks as u32), write, |out| {
            self.chunks.iter().for_each(|c| pieces(shape.chunk, &[c], out));
        });
    }

    fn cause(&self, cell: Cell) -> Option<Cause> {
        match cell.holds() {
            Holds::Nothing => None,
            Holds::Parity => Some(Cause::Parity),
            Holds::Chunk(lcn) => {
                let fresh = self.chunks[..self.fresh].iter().any(|c| c.lcn == u64::from(lcn));
                Some(match fresh {
                    true => Cause::Host,
                    false if self.collect => Cause::Clean,
                    false => Cause::Fill,
                })
            }
        }
    }

    /// The parts of one cell, each with the same terms throughout.
    fn parts(&self, shape: &Shape, stripe: &[Cell], cell: Cell, out: &mut crate::part::Parts<'_>) {
        let of: Vec<&Chunk> = match cell.holds() {
            Holds::Chunk(lcn) => vec![self.chunk(lcn)],
            _ => stripe
                .iter()
                .filter_map(|c| if let Holds::Chunk(lcn) = c.holds() { Some(self.chunk(lcn)) } else { None })
                .collect(),
        };
        pieces(shape.chunk, &of, out);
    }
}
