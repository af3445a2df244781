//! Identity of data in an array without bytes: what the host reads, however it is put together, is what it last wrote.
//!
//! Every block that the host writes gets 32 bits of its own; the array's plans move them between the host, their slots and
//! the members as they would move the block, XOR and all, so that what is made from parity is checked too. Below that each
//! drive is followed on its medium by [`Disk`](super::Disk): it returns what the array wrote to it. A mistake goes unnoticed with a
//! chance of one in 2^32 a block, or as that says: more bits would take time, because each goes to new memory.

use super::pages::Hashed;
use crate::error::{Result, RunError};
use crate::spaces::Spaces;
use smrlab_array::{Buffers, MemberId, MemberOp, MemberPlan, Ticket};
use smrlab_stl::HostRequest;
use smrlab_units::HostOp;
use smrlab_units::rng::splitmix;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes that stand for a block; zeroes: never written.
const BLOCK: usize = 4;
/// Blocks that are kept together: small requests should take one place and little of it for nothing.
const PAGE: u64 = 32;

/// Pages that get their memory together: they stay where they are.
const TOGETHER: usize = 256;

/// What stands for the blocks of a space, as far as that was touched.
#[derive(Default)]
struct Space {
    /// By page: its place among `pages`.
    places: Hashed<u32>,
    pages: Vec<Vec<[u8; PAGE as usize * BLOCK]>>,
    touched: usize,
}

impl Space {
    /// Pieces of a range within a page: page, bytes in it, bytes of the range.
    fn pieces(blocks: &Range<u64>) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> + use<> {
        let blocks = blocks.clone();
        (blocks.start / PAGE..blocks.end.div_ceil(PAGE)).map(move |page| {
            let (from, to) = (blocks.start.max(page * PAGE), blocks.end.min((page + 1) * PAGE));
            let bytes = |base: u64| (from - base) as usize * BLOCK..(to - base) as usize * BLOCK;
            (page, bytes(page * PAGE), bytes(blocks.start))
        })
    }

    /// A page that was touched.
    fn page(&self, page: u64) -> Option<&[u8; PAGE as usize * BLOCK]> {
        let place = *self.places.get(page)? as usize;
        Some(&self.pages[place / TOGETHER][place % TOGETHER])
    }

    /// The same, to be changed.
    fn page_mut(&mut self, page: u64) -> Option<&mut [u8; PAGE as usize * BLOCK]> {
        let place = *self.places.get(page)? as usize;
        Some(&mut self.pages[place / TOGETHER][place % TOGETHER])
    }

    fn set(&mut self, blocks: &Range<u64>, data: &[u8]) {
        for (page, to, from) in Self::pieces(blocks) {
            if let Some(old) = self.page_mut(page) {
                old[to].copy_from_slice(&data[from]);
                continue;
            }
            let place = self.touched;
            if place == self.pages.len() * TOGETHER {
                self.pages.push(vec![[0; PAGE as usize * BLOCK]; TOGETHER]);
            }
            self.places.insert(page, place as u32);
            self.touched += 1;
            self.pages[place / TOGETHER][place % TOGETHER][to].copy_from_slice(&data[from]);
        }
    }

    fn get(&self, blocks: &Range<u64>) -> Vec<u8> {
        let mut out = vec![0; (blocks.end - blocks.start) as usize * BLOCK];
        for (page, from, to) in Self::pieces(blocks) {
            if let Some(page) = self.page(page) {
                out[to].copy_from_slice(&page[from]);
            }
        }
        out
    }

    fn clear(&mut self, blocks: &Range<u64>) {
        if self.is_empty() {
            return;
        }
        for (page, to, _) in Self::pieces(blocks) {
            if let Some(page) = self.page_mut(page) {
                page[to].fill(0);
            }
        }
    }

    /// Nothing was touched.
    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn bytes(&self) -> usize {
        self.places.bytes() + self.pages.len() * TOGETHER * PAGE as usize * BLOCK
    }
}

/// Where discarded blocks read as zeroes.
#[derive(Clone, Copy, Debug)]
pub struct Discards {
    /// On a disk.
    pub of_disk: bool,
    /// On the array.
    pub of_array: bool,
}

/// See the [module](self).
pub struct HostData {
    discards: Discards,
    spaces: Spaces,
    members: Vec<Space>,
    expected: Space,
    /// Blocks that may hold anything: discarded where that promises nothing.
    vague: Space,
    buffers: Buffers,
    /// What reads under way must bring, and from which block on.
    wanted: BTreeMap<u64, (u64, Vec<u8>)>,
    writes: u64,
    prefills: u64,
}

impl HostData {
    /// For an array of so many members, which the host's sources see as these spaces.
    pub fn new(members: usize, discards: Discards, spaces: Spaces) -> Self {
        Self {
            discards,
            spaces,
            members: (0..members).map(|_| Space::default()).collect(),
            expected: Space::default(),
            vague: Space::default(),
            buffers: Buffers::of_blocks(BLOCK),
            wanted: BTreeMap::new(),
            writes: 0,
            prefills: 0,
        }
    }

    /// Bytes that all this takes.
    pub fn bytes(&self) -> usize {
        self.members.iter().chain([&self.expected, &self.vague]).map(Space::bytes).sum()
    }

    /// A request before the run gets a number of its own.
    pub fn prefill(&mut self, request: &HostRequest) -> HostRequest {
        self.prefills += 1;
        let request = request.numbered(u64::MAX / 2 + self.prefills);
        self.arrived(&request);
        request
    }

    /// The host sends a request: what it reads is what was sent before it.
    pub fn arrived(&mut self, request: &HostRequest) {
        let (blocks, n) = (self.span(request), request.blocks.0 as usize * BLOCK);
        let mut data = Vec::new();
        match request.op {
            HostOp::Write => {
                self.writes += 1;
                let mut state = self.writes << 32;
                data = vec![0; n];
                let (twos, last) = data.as_chunks_mut::<{ 2 * BLOCK }>();
                twos.iter_mut().for_each(|two| *two = splitmix(&mut state).to_le_bytes());
                last.copy_from_slice(&splitmix(&mut state).to_le_bytes()[..last.len()]);
                self.expected.set(&blocks, &data);
                self.vague.clear(&blocks);
            }
            HostOp::Read => {
                data = vec![0; n];
                let mut want = self.expected.get(&blocks);
                // What may be anything is not compared.
                if !self.vague.is_empty() {
                    let vague = self.vague.get(&blocks);
                    want.iter_mut().zip(vague).for_each(|(w, v)| *w |= v);
                }
                self.wanted.insert(request.id, (blocks.start, want));
            }
            HostOp::Discard if self.discards.of_array => self.expected.clear(&blocks),
            HostOp::Discard => self.vague.set(&blocks, &vec![u8::MAX; n]),
            _ => {}
        }
        self.buffers.arrived(request.id, data);
    }

    /// What a request is for, of all spaces.
    fn span(&self, request: &HostRequest) -> Range<u64> {
        self.spaces.placed(request).lba.span(request.blocks)
    }

    /// The array begins with a request.
    pub fn began(&mut self, ticket: Ticket, request: u64) {
        self.buffers.began(ticket, request);
    }

    /// A member is asked for something; without a `plan` it refuses.
    pub fn asked(&mut self, op: &MemberOp, plan: Option<&MemberPlan>) {
        let Some(plan) = plan else { return };
        let (space, blocks) = (&mut self.members[op.member.at()], op.request.span());
        match op.request.op {
            HostOp::Write => space.set(&blocks, &self.buffers.gather(plan, op)),
            HostOp::Read => self.buffers.scatter(op, plan.parts(op), &space.get(&blocks)),
            HostOp::Discard if self.discards.of_disk => space.clear(&blocks),
            _ => {}
        }
    }

    /// A fresh drive took the place of a dead one.
    pub fn replaced(&mut self, member: MemberId) {
        self.members[member.at()] = Space::default();
    }

    /// A plan was carried out.
    pub fn planned(&mut self, plan: &MemberPlan) {
        self.buffers.planned(plan);
    }

    /// A write or a discard was refused: what is there is old or new, for reads under way too.
    fn refused(&mut self, blocks: &Range<u64>) {
        let n = (blocks.end - blocks.start) as usize * BLOCK;
        self.vague.set(blocks, &vec![u8::MAX; n]);
        for (first, want) in self.wanted.values_mut() {
            let both = blocks.start.max(*first)..blocks.end.min(*first + (want.len() / BLOCK) as u64);
            if !both.is_empty() {
                let at = |block: u64| (block - *first) as usize * BLOCK;
                want[at(both.start)..at(both.end)].fill(u8::MAX);
            }
        }
    }

    /// The host has the answer to a request: whether it is the right one.
    ///
    /// # Errors
    /// [`RunError::Verification`], which names the block.
    pub fn done(&mut self, r: &HostRequest, refused: bool) -> Result<()> {
        let got = self.buffers.answered(r.id);
        if refused && matches!(r.op, HostOp::Write | HostOp::Discard) {
            self.refused(&self.span(r));
        }
        let wanted = self.wanted.remove(&r.id).map(|(_, want)| want);
        let Some(want) = wanted.filter(|want| !refused && *want != got) else { return Ok(()) };
        let vague = [u8::MAX; BLOCK];
        let mut pairs = got.chunks(BLOCK).zip(want.chunks(BLOCK));
        let Some(at) = pairs.position(|(got, want)| got != want && want != vague) else { return Ok(()) };
        let never = got[at * BLOCK..][..BLOCK] == [0; BLOCK];
        let what = if never { "it was read as never written" } else { "it is other data" };
        let (id, lba) = (r.id, r.lba.0 + at as u64);
        Err(RunError::Verification(format!(
            "verify-media: request {id} read LBA {lba} from the array, and not what was last written there: {what}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::{Blocks, Lba};

    fn request(id: u64, op: HostOp, lba: u64, blocks: u64) -> HostRequest {
        HostRequest::new(op, Lba(lba), Blocks(blocks)).numbered(id)
    }

    /// Of an array that brings zeroes for all that it reads.
    fn forgetful(requests: &[HostRequest]) -> HostData {
        let mut host = HostData::new(1, Discards { of_disk: true, of_array: true }, Spaces::one(Blocks(64)));
        requests.iter().for_each(|r| host.arrived(r));
        host
    }

    /// Blocks 0 to 11 are written, 4 to 7 once more, which is refused while reads are under way: what these bring of 4 to 7 is
    /// right whatever it is, and what they bring of others is not.
    #[test]
    fn a_refused_write_leaves_anything_in_its_own_blocks_alone() {
        let second = request(1, HostOp::Write, 4, 4);
        for (from, blocks, wrong) in [
            (4, 4, None),
            (5, 2, None),
            (0, 8, Some(0)),
            (3, 3, Some(3)),
            (5, 4, Some(8)),
            (8, 4, Some(8)),
            (0, 4, Some(0)),
        ] {
            let read = request(2, HostOp::Read, from, blocks);
            let mut host = forgetful(&[request(0, HostOp::Write, 0, 12), read, second]);
            host.done(&second, true).unwrap();
            let found = host.done(&read, false).err().map(|e| e.to_string());
            assert_eq!(found.is_some(), wrong.is_some(), "{from}, {blocks}: {found:?}");
            let named = |lba: u64| format!("request 2 read LBA {lba} from the array");
            assert!(wrong.is_none_or(|lba| found.unwrap().contains(&named(lba))), "{from}, {blocks}");
        }
    }

    /// Reads that come after a refusal are as free, until the blocks are written again; refused reads are right whatever they bring.
    #[test]
    fn what_was_refused_is_known_again_when_it_is_written_again() {
        let [second, third] = [1, 2].map(|id| request(id, HostOp::Write, 4, 4));
        let mut host = forgetful(&[request(0, HostOp::Write, 0, 12), second]);
        host.done(&second, true).unwrap();
        let mut reads = |host: &mut HostData, lba, refused| {
            let read = request(9, HostOp::Read, lba, 1);
            host.arrived(&read);
            host.done(&read, refused).is_ok()
        };
        let all = |host: &mut HostData, reads: &mut dyn FnMut(&mut HostData, u64, bool) -> bool| {
            [3, 4, 7, 8].map(|lba| reads(host, lba, false))
        };
        assert_eq!(all(&mut host, &mut reads), [false, true, true, false]);
        host.arrived(&third);
        assert_eq!(all(&mut host, &mut reads), [false; 4]);
        assert!(reads(&mut host, 4, true));
    }

    /// A discard of an array that promises zeroes is one; of one that promises nothing whatever is read is right.
    #[test]
    fn discarded_blocks_are_zeroes_or_anything() {
        for (of_array, after) in [(true, [true, false]), (false, [true, true])] {
            let mut host = HostData::new(1, Discards { of_disk: true, of_array }, Spaces::one(Blocks(64)));
            host.arrived(&request(0, HostOp::Write, 0, 8));
            host.arrived(&request(1, HostOp::Discard, 0, 8));
            let wrong = request(2, HostOp::Read, 0, 8);
            host.arrived(&wrong);
            assert!(host.done(&wrong, false).is_ok(), "zeroes are right");
            let read = request(3, HostOp::Read, 0, 8);
            host.arrived(&read);
            // What a disk brings that was written there by another way.
            host.buffers.arrived(3, vec![1; 8 * BLOCK]);
            assert_eq!([true, host.done(&read, false).is_ok()], after, "{of_array}");
        }
    }
}
