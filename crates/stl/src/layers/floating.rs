//! `floating`: small writes of an array's drive go to the free place of their cylinder that passes the head first (Menon, Roche &
//! Kasson 1993).
//!
//! Where nobody says where the head is, it is taken to be behind the old place, which an array that updates parity has just read.

mod entry;
mod groups;
#[cfg(test)]
mod tests;

pub use entry::ENTRY;

use crate::{
    Cause, Counted, Endpoint, Facts, HostRequest, Plan, Record, Records, Refusal, Sink, TranslationLayer,
};
use groups::Groups;
use smrlab_blockmap::BlockSet;
use smrlab_disk::Mechanics;
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime, counters};
use std::ops::Range;

/// Unit `words[0]` is in place `words[1]` from here on.
const MOVE: u32 = 1;
/// Checkpoint: unit `words[0]` is in place `words[1]`.
const PLACE: u32 = 2;

/// Which small writes float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Those of an array's parity.
    Parity,
    /// All.
    All,
}

counters! {
    /// Events that are counted.
    struct Counters {
        floated => "units_floated",
        stayed => "units_stayed",
    }
}

/// See the [module](self) and the registry's page.
pub(super) struct Floating {
    groups: Groups,
    /// A copy of the drive's, which nothing moves but questions.
    mechanics: Mechanics,
    what: What,
    /// Units of the longest write that floats.
    longest: u64,
    /// Where the head is, once somebody says so.
    head: Option<Pba>,
    /// Places that were left since the last fence: after a loss of power they are needed.
    left: BlockSet,
    counters: Counters,
}

impl Floating {
    fn new(groups: Groups, mechanics: Mechanics, what: What, longest: u64) -> Self {
        Self {
            groups,
            mechanics,
            what,
            longest,
            head: None,
            left: BlockSet::new(),
            counters: Counters::default(),
        }
    }

    /// Calls `each` with the runs of a request's blocks that lie side by side: from its start, and where they are.
    fn runs(&self, r: &HostRequest, mut each: impl FnMut(Range<u64>, Pba)) {
        let (unit, end) = (self.groups.unit, r.lba.0 + r.blocks.0);
        let mut open: Option<(Range<u64>, Pba)> = None;
        self.groups.runs(r.lba.0 / unit..end.div_ceil(unit), |units, place| {
            let (lba, next) = (r.lba.0.max(units.start * unit), end.min(units.end * unit));
            let pba = self.groups.pba(place) + Blocks(lba - units.start * unit);
            let blocks = lba - r.lba.0..next - r.lba.0;
            match &mut open {
                Some((run, first)) if *first + Blocks(run.end - run.start) == pba => run.end = blocks.end,
                _ => _ = open.replace((blocks, pba)).map(|(run, first)| each(run, first)),
            }
        });
        open.into_iter().for_each(|(run, first)| each(run, first));
    }

    fn read(&self, r: &HostRequest, plan: &mut Plan) {
        let mut extents = 0;
        self.runs(r, |run, pba| {
            plan.read_to_host(Cause::Host, pba, Blocks(run.end - run.start), Blocks(run.start));
            extents += 1;
        });
        plan.set_extents(extents);
    }

    /// The units that float with this write: all that it covers, or none.
    fn floats(&self, r: &HostRequest) -> Option<Range<u64>> {
        let unit = self.groups.unit;
        let wanted = self.what == What::All || r.why == Cause::Parity;
        let whole = r.lba.0.is_multiple_of(unit) && r.blocks.0.is_multiple_of(unit);
        let short = r.blocks.0 <= self.longest * unit;
        (wanted && whole && short).then(|| r.lba.0 / unit..(r.lba.0 + r.blocks.0) / unit)
    }

    fn write(&mut self, now: SimTime, r: &HostRequest, plan: &mut Plan) {
        let Some(units) = self.floats(r) else {
            let mut extents = 0;
            self.runs(r, |run, pba| {
                let from = Endpoint::Host(Blocks(run.start));
                plan.write(Cause::Host, pba, Blocks(run.end - run.start), from);
                extents += 1;
            });
            return plan.set_extents(extents);
        };
        plan.set_extents((units.end - units.start) as u32);
        let (size, mut at) = (self.groups.unit, now);
        let read = self.groups.at(units.end - 1) + Blocks(size);
        let mut head = self.head.unwrap_or(read);
        for (i, unit) in (0..).zip(units) {
            self.mechanics.rest_at(head);
            let place;
            (place, at) = self.nearest(unit, at);
            head = self.groups.pba(place) + Blocks(size);
            if self.left.contains(place) {
                plan.fence();
                self.left.clear();
            }
            plan.write(Cause::Host, self.groups.pba(place), Blocks(size), Endpoint::Host(Blocks(i * size)));
            match place == self.groups.place(unit) {
                true => self.counters.stayed += 1,
                false => {
                    let record = Record { tag: MOVE, words: [unit, place, 0] };
                    plan.record(record);
                    self.apply(&record);
                    self.counters.floated += 1;
                }
            }
        }
    }

    /// Of a unit's place and the free ones of its group that with which a write can begin first; and when that ends.
    fn nearest(&mut self, unit: u64, now: SimTime) -> (u64, SimTime) {
        let (own, size) = (self.groups.place(unit), Blocks(self.groups.unit));
        let pba = |place: u64| Pba(place * size.0);
        let begin = |mechanics: &Mechanics, place: u64| {
            (mechanics.positioning(now, Dir::Write, &mechanics.target(pba(place))), place)
        };
        let mechanics = &self.mechanics;
        let stays = begin(mechanics, own);
        let (_, place) = self.groups.free(unit).map(|place| begin(mechanics, place)).fold(stays, Ord::min);
        (place, self.mechanics.preview(now, Dir::Write, pba(place), size).1)
    }

    /// Makes the change that a record tells.
    fn apply(&mut self, record: &Record) {
        let [unit, place, _] = record.words;
        match record.tag {
            MOVE => {
                let left = self.groups.put(unit, place);
                self.left.insert(left..left + 1);
            }
            PLACE => self.groups.set(unit, place),
            _ => debug_assert!(false, "record {} is not floating's", record.tag),
        }
    }
}

impl TranslationLayer for Floating {
    fn host_blocks(&self) -> Blocks {
        self.groups.host_blocks()
    }

    fn heeds_head(&self) -> bool {
        true
    }

    fn head(&mut self, next: Pba) {
        self.head = Some(next);
    }

    fn submit(&mut self, now: SimTime, r: &HostRequest, plan: &mut Plan) {
        match r.op {
            HostOp::Read => self.read(r, plan),
            HostOp::Write => self.write(now, r, plan),
            HostOp::Flush | HostOp::Discard => {}
            _ => plan.refuse(Refusal::Unsupported, r.lba),
        }
    }

    fn durable(&mut self) {
        self.left.clear();
    }

    fn recover(&mut self, records: &Records, _: &mut Plan) {
        // A checkpoint comes first: no group is looked at before all places of that are taken up.
        records.changes().for_each(|record| self.apply(&record));
        self.left.clear();
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.groups.moved().for_each(|(unit, place)| out.push(PLACE, [unit, place, 0]));
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        out(lba.span(blocks));
    }

    fn facts(&self) -> Facts<'_> {
        Facts::default()
    }

    fn map_bytes(&self) -> u64 {
        self.groups.bytes() + self.left.bytes() as u64
    }

    fn counters(&self, out: &mut Counted) {
        out.counts(self.counters.named());
    }
}
