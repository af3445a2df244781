//! Identity of data in an array without bytes: what the host reads, however it is put together, is what it last wrote.
//!
//! 32 bits stand for every block that the host writes; the array's plans move them between the host, their slots and
//! the members as they would move the block, XOR and all, so that what is made from parity is checked too. Below that each
//! drive is followed on its medium by [`Disk`](super::Disk): it returns what the array wrote to it. A mistake goes unnoticed with a
//! chance of about one in 2^31 a block, as there: more bits would take time, because each goes to new memory.

use super::tags::{CONSTANT, Fresh, NEVER, TagRun, Tags, join};
use crate::error::{Result, RunError};
use crate::spaces::Spaces;
use smrlab_array::{Buffers, MemberId, MemberOp, MemberPlan, Ticket};
use smrlab_blockmap::BlockSet;
use smrlab_stl::HostRequest;
use smrlab_units::HostOp;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes that stand for a block; zeroes: never written.
const BLOCK: usize = 4;

/// What stands for a block with this tag. Tags of what the host writes count up, so that one run stands for all its blocks wherever they
/// are; what stands for them has nothing to do with each other, so that sums of the wrong ones are noticed.
fn token(tag: u32) -> [u8; BLOCK] {
    let x = (tag ^ tag >> 16).wrapping_mul(0x85eb_ca6b);
    let x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    (x ^ x >> 16).to_le_bytes()
}

/// What stands for blocks whose tags count up from this one, where they do.
fn tokens(tag: u32, out: &mut [u8]) {
    let out = out.as_chunks_mut().0.iter_mut();
    if tag < CONSTANT {
        out.zip(tag..).for_each(|(to, tag)| *to = token(tag));
    } else {
        out.for_each(|to| *to = token(tag));
    }
}

/// The tag whose [`token`] this is.
fn tag(token: [u8; BLOCK]) -> u32 {
    let x = u32::from_le_bytes(token);
    let x = (x ^ x >> 16).wrapping_mul(0x7ed1_b41d);
    let x = (x ^ x >> 13 ^ x >> 26).wrapping_mul(0xa5cb_9243);
    x ^ x >> 16
}

/// What stands for the blocks of a space, as far as that was touched. Of parity each block has a tag of its own: pages are small.
#[derive(Default)]
struct Space {
    tags: Tags<64>,
    /// What is moved, block by block and as runs: kept for their room.
    each: Vec<u32>,
    runs: Vec<TagRun>,
}

impl Space {
    fn set(&mut self, blocks: &Range<u64>, data: &[u8]) {
        self.each.clear();
        self.each.extend(data.as_chunks().0.iter().map(|token| tag(*token)));
        let first = self.each.first().copied().unwrap_or(NEVER);
        let in_one = self.each.iter().enumerate().all(|(i, tag)| *tag == first.wrapping_add(i as u32));
        if in_one && first != NEVER && first < CONSTANT - self.each.len() as u32 {
            let run = TagRun { first: blocks.start, blocks: blocks.end - blocks.start, tag: first };
            return self.tags.set(run);
        }
        self.runs.clear();
        for (first, tag) in blocks.clone().zip(&self.each).filter(|(_, tag)| **tag != NEVER) {
            join(&mut self.runs, 0, Some(TagRun { first, blocks: 1, tag: *tag }));
        }
        self.tags.put(blocks.clone(), &self.runs);
    }

    fn get(&mut self, blocks: &Range<u64>) -> Vec<u8> {
        let mut out = vec![0; (blocks.end - blocks.start) as usize * BLOCK];
        self.runs.clear();
        self.tags.runs(blocks.clone(), &mut self.runs);
        for run in &self.runs {
            let first = (run.first - blocks.start) as usize;
            tokens(run.tag, &mut out[first * BLOCK..][..run.blocks as usize * BLOCK]);
        }
        out
    }

    fn clear(&mut self, blocks: &Range<u64>) {
        if !self.tags.is_empty() {
            self.tags.put(blocks.clone(), &[]);
        }
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
    vague: BlockSet,
    buffers: Buffers,
    /// What reads under way must bring, and from which block on.
    wanted: BTreeMap<u64, (u64, Vec<u8>)>,
    /// Tags for what the host writes.
    fresh: Fresh,
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
            vague: BlockSet::new(),
            buffers: Buffers::of_blocks(BLOCK),
            wanted: BTreeMap::new(),
            fresh: Fresh::default(),
            prefills: 0,
        }
    }

    /// Bytes that all this takes.
    pub fn bytes(&self) -> usize {
        self.members.iter().chain([&self.expected]).map(|space| space.tags.bytes()).sum::<usize>()
            + self.vague.bytes()
    }

    /// The blocks that were written to a member, in no order.
    pub fn written(&self, member: MemberId) -> impl Iterator<Item = Range<u64>> + use<> {
        let mut runs = Vec::new();
        self.members[member.at()].tags.all(&mut runs);
        runs.into_iter().map(|run| run.first..run.end())
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
                let run = TagRun {
                    first: blocks.start,
                    blocks: request.blocks.0,
                    tag: self.fresh.next(request.blocks),
                };
                data = vec![0; n];
                tokens(run.tag, &mut data);
                self.expected.tags.set(run);
                self.vague.remove(blocks);
            }
            HostOp::Read => {
                data = vec![0; n];
                let mut want = self.expected.get(&blocks);
                // What may be anything is not compared.
                for run in self.vague.runs_in(blocks.clone()) {
                    let at = |block: u64| (block - blocks.start) as usize * BLOCK;
                    want[at(run.start)..at(run.end)].fill(u8::MAX);
                }
                self.wanted.insert(request.id, (blocks.start, want));
            }
            HostOp::Discard if self.discards.of_array => self.expected.clear(&blocks),
            HostOp::Discard => _ = self.vague.insert(blocks),
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
        self.vague.insert(blocks.clone());
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

    /// What stands for a block says its tag, and nothing stands for one that was never written.
    #[test]
    fn tags_come_back_from_what_stands_for_them() {
        assert_eq!(token(NEVER), [0; BLOCK]);
        let mut n = 1u32;
        for _ in 0..100_000 {
            n = n.wrapping_mul(0x9e37_79b9).wrapping_add(7);
            assert_eq!(tag(token(n)), n);
        }
    }

    /// What is written in one go, in pieces, and as sums that have nothing in common.
    #[test]
    fn a_space_brings_what_was_written_there() {
        let (mut space, mut plain) = (Space::default(), vec![0; 512 * BLOCK]);
        let mut rng = smrlab_units::rng::Rng::new(5);
        for step in 0..3000u32 {
            let from = rng.below(400);
            let blocks = from..from + 1 + rng.below(100);
            let bytes = blocks.start as usize * BLOCK..blocks.end as usize * BLOCK;
            let base = rng.below(1 << 30) as u32;
            let data: Vec<u8> = match step % 3 {
                0 => (0..bytes.len() as u32 / 4).flat_map(|i| token(base + i)).collect(),
                1 => (0..bytes.len()).map(|_| rng.below(3) as u8).collect(),
                _ => vec![0; bytes.len()],
            };
            plain[bytes].copy_from_slice(&data);
            if step % 3 == 2 {
                space.clear(&blocks)
            } else {
                space.set(&blocks, &data)
            }
            assert_eq!(space.get(&(0..512)), plain, "step {step}");
        }
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
