//! Where everything is: the map from chunks to cells of stripes, the groups that have these, and which groups are free.

use super::shape::{FEW, LEFT, Shape};
use crate::layouts::segments::ChunkPlace;
use std::collections::BTreeSet;
use std::ops::Range;

/// What a cell of a stripe holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Nothing: the stripe is narrower than the array.
    Nothing,
    /// The parity of the others.
    Parity,
    /// Zeroes, written to make the stripe full.
    Pad,
    /// A version of a chunk that is out of date.
    Dead,
    /// The current version of this chunk.
    Chunk(u64),
}

/// A cell: what a stripe has on a disk, and where in the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// What it has.
    pub(super) holds: Holds,
    /// Place in the segment.
    pub(super) at: u32,
}

impl Cell {
    /// Of a disk that has nothing of a stripe.
    pub(super) const EMPTY: Self = Self { holds: Holds::Nothing, at: 0 };

    /// In 64 bits, as it is kept and recorded: 40 of them say what, 24 where.
    pub(super) fn word(self) -> u64 {
        let what = match self.holds {
            Holds::Nothing => 0,
            Holds::Parity => 1,
            Holds::Pad => 2,
            Holds::Dead => 3,
            Holds::Chunk(lcn) => lcn + 4,
        };
        what << 24 | u64::from(self.at)
    }

    /// From its word.
    pub(super) fn of(word: u64) -> Self {
        let holds = match word >> 24 {
            0 => Holds::Nothing,
            1 => Holds::Parity,
            2 => Holds::Pad,
            3 => Holds::Dead,
            what => Holds::Chunk(what - 4),
        };
        Self { holds, at: (word & 0xff_ffff) as u32 }
    }

    /// Whether anything was written for it.
    pub(super) fn is_written(self) -> bool {
        self.holds != Holds::Nothing
    }
}

/// A cell of a stripe of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StripeCell {
    /// The group.
    pub(super) group: u32,
    /// The stripe, in the order in which they were completed.
    pub(super) stripe: u32,
    /// The disk.
    pub(super) disk: u32,
}

const NOWHERE: StripeCell = StripeCell { group: u32::MAX, stripe: 0, disk: 0 };

/// A group that is not free.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    disks: usize,
    /// The cells of its stripes, one stripe after the other.
    cells: Vec<u64>,
    /// Where each disk's segment is appended to.
    pub(super) pointers: Vec<u32>,
    /// Stripes begun: their parity goes from disk to disk.
    turn: u64,
    /// Cells that hold current versions.
    pub(super) live: u64,
    /// Works that read from it, or write to it: it stays as it is.
    pub(super) used: u32,
    /// Stripes on their way to it.
    pub(super) writing: u32,
    /// Nothing is appended any more.
    sealed: bool,
}

impl Group {
    fn new(shape: &Shape) -> Self {
        let disks = shape.disks as usize;
        Self { disks, pointers: vec![0; disks], ..Self::default() }
    }

    /// The cells of a stripe, one a disk.
    pub(super) fn stripe(&self, stripe: u32) -> impl Iterator<Item = Cell> + Clone {
        let first = stripe as usize * self.disks;
        self.cells[first..first + self.disks].iter().map(|w| Cell::of(*w))
    }

    /// Where they are.
    pub(super) fn places(&self, stripe: u32) -> impl Iterator<Item = ChunkPlace> + Clone {
        let written = (0..).zip(self.stripe(stripe)).filter(|(_, cell)| cell.is_written());
        written.map(|(disk, cell)| ChunkPlace { disk, at: u64::from(cell.at) })
    }

    /// All of them.
    pub(super) fn stripes(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.cells.chunks(self.disks)
    }
}

/// Who fills a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// The host.
    Host,
    /// The collector: what has outlived others.
    Cold,
}

/// A stripe that is on its way to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stripe {
    /// The group.
    pub(super) group: u64,
    /// What each disk gets.
    pub(super) cells: Vec<Cell>,
}

/// Chunks in a page of the map.
const PAGE: usize = 1024;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Table {
    shape: Shape,
    map: Vec<Option<Box<[StripeCell]>>>,
    groups: Vec<Option<Box<Group>>>,
    /// Free groups that held something once, and the first one that never did.
    freed: BTreeSet<u64>,
    fresh: u64,
    /// Groups freed lately: after a loss of power they hold what is needed.
    needed: BTreeSet<u64>,
    /// Groups of which a disk did not take a stripe: they are filled again when no other is free.
    shunned: BTreeSet<u64>,
    /// Groups being filled in turn, by the host and, the second half, by the collector.
    open: Vec<Option<u64>>,
    /// Whose turn it is in each half.
    next: [usize; 2],
    /// Sealed groups, those with fewest live chunks first.
    victims: BTreeSet<(u64, u64)>,
    live: u64,
}

impl Table {
    /// Nothing anywhere.
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            map: vec![None; (shape.logical as usize).div_ceil(PAGE)],
            groups: vec![None; shape.groups as usize],
            open: vec![None; 2 * shape.filled as usize],
            ..Self::default()
        }
    }

    /// Where the current version of a chunk is.
    #[inline]
    pub(super) fn place(&self, lcn: u64) -> Option<StripeCell> {
        let page = self.map[lcn as usize / PAGE].as_ref()?;
        Some(page[lcn as usize % PAGE]).filter(|p| *p != NOWHERE)
    }

    fn put(&mut self, lcn: u64, place: StripeCell) {
        let page = self.map[lcn as usize / PAGE].get_or_insert_with(|| vec![NOWHERE; PAGE].into());
        page[lcn as usize % PAGE] = place;
    }

    /// A group that is not free.
    #[inline]
    pub(super) fn group(&self, group: u64) -> Option<&Group> {
        self.groups.get(group as usize)?.as_deref()
    }

    /// All of them, ascending.
    pub(super) fn groups(&self) -> impl Iterator<Item = (u64, &Group)> {
        (0..).zip(&self.groups).filter_map(|(i, group)| Some((i, group.as_deref()?)))
    }

    /// Free groups.
    pub(super) fn free(&self) -> u64 {
        self.freed.len() as u64 + self.shape.groups - self.fresh
    }

    /// The collector had better begin.
    pub(super) fn is_short(&self) -> bool {
        self.free() <= FEW
    }

    /// Groups that were ever used: all below this number.
    pub(super) fn fresh(&self) -> u64 {
        self.fresh
    }

    /// Chunks that hold data of the host's.
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// The sealed group with fewest live chunks, where emptying it wins anything.
    pub(super) fn victim(&self) -> Option<u64> {
        let all = (self.shape.disks - 1) * self.shape.length;
        let settled = |v: &&(u64, u64)| self.group(v.1).is_some_and(|g| g.live > 0 && g.writing == 0);
        self.victims.iter().take_while(|v| v.0 < all).find(settled).map(|v| v.1)
    }

    fn half(&self, stream: Stream) -> Range<usize> {
        let filled = self.shape.filled as usize;
        let first = stream as usize * filled;
        first..first + filled
    }

    /// Which of the open groups gets the next stripe of a stream.
    fn turn(&self, stream: Stream) -> usize {
        self.half(stream).start + self.next[stream as usize]
    }

    /// The place of a stripe with `lcns`, of which it takes as many as it can, in the group whose turn it is. `full`: the stripe has a cell of
    /// each disk. `None`: there is no room; a group has to be [opened](Self::open).
    pub(super) fn append(&mut self, stream: Stream, lcns: &[u64], full: bool) -> Option<Stripe> {
        let turn = self.turn(stream);
        let stripe = self.append_to(turn, lcns, full)?;
        let next = &mut self.next[stream as usize];
        *next = (*next + 1) % self.shape.filled as usize;
        Some(stripe)
    }

    /// The same in any group that is being filled by it; what the collector moves has room in those of the host, too.
    pub(super) fn append_anywhere(&mut self, stream: Stream, lcns: &[u64], full: bool) -> Option<Stripe> {
        let others = if stream == Stream::Cold { self.half(Stream::Host) } else { 0..0 };
        self.half(stream).chain(others).find_map(|i| self.append_to(i, lcns, full))
    }

    fn append_to(&mut self, open: usize, lcns: &[u64], full: bool) -> Option<Stripe> {
        let (disks, length) = (self.shape.disks as usize, self.shape.length as u32);
        let index = self.open[open]?;
        let group = self.groups[index as usize].as_mut()?;
        let mut room: Vec<usize> = (0..disks).filter(|d| group.pointers[*d] < length).collect();
        if room.len() < if full { disks } else { 2 } {
            self.seal(open);
            return None;
        }
        // The shortest segments first; among equals the parity goes round, and the chunks follow it.
        let turn = (group.turn % disks as u64) as usize;
        room.sort_by_key(|d| (group.pointers[*d], (d + disks - turn) % disks));
        room.truncate(if full { disks } else { lcns.len() + 1 });
        let mut cells = vec![Cell::EMPTY; disks];
        let what = lcns.iter().map(|lcn| Holds::Chunk(*lcn)).chain(std::iter::repeat(Holds::Pad));
        for (disk, holds) in room.into_iter().zip(std::iter::once(Holds::Parity).chain(what)) {
            cells[disk] = Cell { holds, at: group.pointers[disk] };
            group.pointers[disk] += 1;
        }
        group.turn += 1;
        group.writing += 1;
        Some(Stripe { group: index, cells })
    }

    /// Opens a free group for a stream whose turn finds none; the host leaves some to the collector.
    pub(super) fn open(&mut self, stream: Stream) -> Option<Opened> {
        let left = if stream == Stream::Host { LEFT } else { 0 };
        let turn = self.turn(stream);
        if self.free() <= left || self.open[turn].is_some() {
            return None;
        }
        let fresh = Some(self.fresh).filter(|fresh| *fresh < self.shape.groups);
        let liked = self.freed.iter().find(|group| !self.shunned.contains(group)).copied();
        let group = liked.or(fresh).or_else(|| self.freed.first().copied())?;
        let was_used = group < self.fresh;
        self.begin(group);
        self.open[turn] = Some(group);
        Some(Opened { group, was_used, needed: self.needed.contains(&group) })
    }

    /// A group holds nothing and is not free.
    pub(super) fn begin(&mut self, group: u64) {
        if let Some(old) = &self.groups[group as usize] {
            self.victims.remove(&(old.live, group));
            self.live -= old.live;
        }
        self.freed.extend(self.fresh..group);
        self.freed.remove(&group);
        self.fresh = self.fresh.max(group + 1);
        self.groups[group as usize] = Some(Box::new(Group::new(&self.shape)));
    }

    /// So many groups were used.
    pub(super) fn used_up_to(&mut self, fresh: u64) {
        self.freed.extend(self.fresh..fresh);
        self.fresh = self.fresh.max(fresh);
    }

    /// Groups that are being filled get nothing more.
    pub(super) fn seal_all(&mut self) {
        (0..self.open.len()).for_each(|open| self.seal(open));
    }

    fn seal(&mut self, open: usize) {
        if let Some(index) = self.open[open].take() {
            if let Some(group) = &mut self.groups[index as usize] {
                group.sealed = true;
                self.victims.insert((group.live, index));
            }
            self.release(index);
        }
    }

    /// A stripe is written: what it has of chunks is current, where that is what `is_current` says of a chunk; the cells as they are now.
    pub(super) fn written(
        &mut self,
        mut stripe: Stripe,
        mut is_current: impl FnMut(&Self, u64) -> bool,
    ) -> Stripe {
        for cell in &mut stripe.cells {
            if let Holds::Chunk(lcn) = cell.holds
                && !is_current(self, lcn)
            {
                cell.holds = Holds::Dead;
            }
        }
        self.add(stripe.group, &stripe.cells);
        if let Some(group) = &mut self.groups[stripe.group as usize] {
            group.writing -= 1;
        }
        self.release(stripe.group);
        stripe
    }

    /// A stripe is not written: it holds nothing, and nothing is appended behind it.
    pub(super) fn given_up(&mut self, index: u64) {
        if let Some(group) = &mut self.groups[index as usize] {
            group.writing -= 1;
        }
        self.shunned.insert(index);
        match self.open.iter().position(|open| *open == Some(index)) {
            Some(open) => self.seal(open),
            None => self.release(index),
        }
    }

    /// A group has this stripe.
    pub(super) fn add(&mut self, index: u64, cells: &[Cell]) {
        let Some(group) = &mut self.groups[index as usize] else { return };
        let stripe = (group.cells.len() / group.disks) as u32;
        group.cells.extend(cells.iter().map(|c| c.word()));
        group.turn = group.turn.max(u64::from(stripe) + 1);
        for (pointer, cell) in group.pointers.iter_mut().zip(cells).filter(|(_, c)| c.is_written()) {
            *pointer = (*pointer).max(cell.at + 1);
        }
        for (disk, cell) in (0..).zip(cells) {
            if let Holds::Chunk(lcn) = cell.holds {
                self.unmap(lcn);
                self.put(lcn, StripeCell { group: index as u32, stripe, disk });
                self.count(index, 1);
            }
        }
    }

    /// A chunk holds nothing any more, or is about to have another place.
    pub(super) fn unmap(&mut self, lcn: u64) {
        let Some(place) = self.place(lcn) else { return };
        self.put(lcn, NOWHERE);
        let index = u64::from(place.group);
        if let Some(group) = &mut self.groups[index as usize] {
            let cell = &mut group.cells[place.stripe as usize * group.disks + place.disk as usize];
            *cell = Cell { holds: Holds::Dead, ..Cell::of(*cell) }.word();
        }
        self.count(index, -1);
        self.release(index);
    }

    fn count(&mut self, index: u64, by: i64) {
        self.live = self.live.wrapping_add_signed(by);
        let Some(group) = &mut self.groups[index as usize] else { return };
        let before = group.live;
        group.live = before.wrapping_add_signed(by);
        if group.sealed {
            self.victims.remove(&(before, index));
            self.victims.insert((group.live, index));
        }
    }

    /// A work uses a group, or does not any more.
    pub(super) fn pin(&mut self, index: u64) {
        if let Some(group) = &mut self.groups[index as usize] {
            group.used += 1;
        }
    }

    /// See [`pin`](Self::pin).
    pub(super) fn unpin(&mut self, index: u64) {
        if let Some(group) = &mut self.groups[index as usize] {
            group.used -= 1;
        }
        self.release(index);
    }

    /// A sealed group that holds nothing current and that nobody uses is free.
    fn release(&mut self, index: u64) {
        let Some(group) = &self.groups[index as usize] else { return };
        if group.sealed && group.live == 0 && group.used == 0 && group.writing == 0 {
            self.victims.remove(&(0, index));
            self.groups[index as usize] = None;
            self.freed.insert(index);
            self.needed.insert(index);
        }
    }

    /// So many blocks of a disk's segment are written. Those behind what was recorded are of what a cut ended: appending goes on behind
    /// them. `false`: nothing can be appended, as they end in the middle of a chunk, or the zone was reset since, to be written anew.
    pub(super) fn advance(&mut self, index: u64, disk: usize, blocks: u64) -> bool {
        let Some(group) = &mut self.groups[index as usize] else { return true };
        let chunks = blocks.div_ceil(self.shape.chunk).min(self.shape.length) as u32;
        let recorded = group.pointers[disk];
        group.pointers[disk] = recorded.max(chunks);
        blocks.is_multiple_of(self.shape.chunk) && chunks >= recorded
    }

    /// All was recovered: of the groups that `usable` says can be appended to those with most room are filled on.
    pub(super) fn recovered(&mut self, usable: impl Fn(u64) -> bool) {
        let length = self.shape.length as u32;
        let mut open: Vec<(u32, u64)> = self
            .groups()
            .filter(|(g, group)| usable(*g) && group.pointers.iter().all(|p| *p < length))
            .map(|(g, group)| (length - group.pointers.iter().copied().max().unwrap_or(0), g))
            .collect();
        open.sort_unstable();
        // The collector needs them most.
        for slot in self.half(Stream::Cold).chain(self.half(Stream::Host)) {
            self.open[slot] = open.pop().map(|o| o.1);
        }
        for index in 0..self.fresh {
            if self.open.contains(&Some(index)) {
                continue;
            }
            if let Some(group) = &mut self.groups[index as usize] {
                group.sealed = true;
                self.victims.insert((group.live, index));
                self.release(index);
            }
        }
        self.durable();
    }

    /// What was recorded so far, and what the disks hold, survives a loss of power.
    pub(super) fn durable(&mut self) {
        self.needed.clear();
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        let map = self.map.iter().flatten().map(|page| size_of_val(&**page)).sum::<usize>();
        let groups =
            self.groups().map(|(_, g)| size_of::<Group>() + g.cells.len() * 8 + g.pointers.len() * 4);
        (map + size_of_val(&*self.map) + size_of_val(&*self.groups) + groups.sum::<usize>()) as u64
    }
}

/// A group that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// Which.
    pub(super) group: u64,
    /// It held something before.
    pub(super) was_used: bool,
    /// What it held is needed after a loss of power.
    pub(super) needed: bool,
}
