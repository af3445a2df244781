//! `caveat-scriptor`: the host writes anywhere on the shingled medium, and is told which of its data that destroyed (Kadekodi et al.
//! 2015).
//!
//! LBA equals PBA. The layer keeps two sets of blocks: those that hold what the host wrote, and those that held such data until a
//! write in front of them destroyed them. A read of the latter is refused, and so is, where the host wants that, the write that would
//! destroy the former.

use crate::entry::{BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use crate::parts::split::unset_runs;
use crate::{
    Capabilities, Counted, Facts, HostRequest, Plan, Record, Records, Refusal, Sink, TranslationLayer,
};
use smrlab_blockmap::BlockSet;
use smrlab_disk::{DriveModel, Interference};
use smrlab_units::spec::{Kind, Param, Values};
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime, counters};
use std::ops::Range;
use std::sync::Arc;

const PAGE: &str = "\
LBA equals PBA on a medium that shingles, as with `raw`: the host writes anywhere, in any order, and it is the host who sees to it that a
write destroys nothing that it needs. The drive helps in three ways:

- It publishes two distances. No write damages anything beyond the *isolation distance* behind it: of a head of W tracks, W - 1
  tracks. Nothing within the *no-overlap range* damages anything else in it: here one track. A host that leaves as many tracks free before data
  that it needs as the first says can write up to there in place; one that keeps to the second can update a track in place while the next ones
  are free. (On drives with a block profile of I blocks: I - 1 blocks, and one block.)
- It keeps a map of what holds data and of what was destroyed. A read of a destroyed block is refused as lost, and never answered with wrong
  data. Discards take blocks out of the map: what the host does not need cannot be lost.
- With `guard=refuse` it refuses a write that would destroy data, names the first block that stands against it, and leaves everything as it
  was. With `guard=tell`, the default, it writes, and counts (`blocks_lost`, `writes_that_lost`).

A request is one media operation, and costs what it costs on a conventional drive: all management is the host's. What was never written reads as
zeroes from the medium.

Published: write anywhere; the two distances; the host as the one who keeps data apart. *Assumed* here: distances in whole tracks, the map, and
`guard`. The published drive has no map; it is what tests hold against the medium: what `raw` destroys is what this layer calls lost.

The map survives a power cut with `--metadata nv`. A write that was cut has done its damage, and a read of what it had written so far gets what is
there.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "caveat-scriptor",
    aliases: &["kadekodi2015"],
    summary: "writes anywhere on the shingled medium; the host is told which of its data that destroys",
    reference: "Kadekodi, Pimpale & Gibson 2015, Caveat-Scriptor: Write Anywhere Shingled Disks",
    page: PAGE,
    idle: "nothing, by default and with any option: there is nothing that could be put off",
    params: &[
        Param::new("guard", Kind::Choice(&["tell", "refuse"]), "tell")
            .doc("what is done with a write that destroys data: it is done and counted, or refused"),
        HEAD_TRACKS,
    ],
    capabilities: Capabilities {
        keeps_data: false,
        survives_cut: false,
        locates: true,
        stable_location: false,
        discards: true,
    },
    tested: &["guard=refuse", "tracks=3"],
    ..LayerEntry::new(build)
};

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let drive = Arc::clone(&context.drive);
    Ok(Box::new(CaveatScriptor {
        refuses: values.text("guard") == Some("refuse"),
        drive,
        live: BlockSet::new(),
        lost: BlockSet::new(),
        admitted: None,
        counters: Counters::default(),
    }))
}

/// These blocks were written: `words[0]` and so many as `words[1]` from there on.
const WRITE: u32 = 1;
/// These were discarded.
const DISCARD: u32 = 2;
/// Checkpoint: these hold data.
const LIVE: u32 = 3;
/// Checkpoint: these were destroyed.
const LOST: u32 = 4;

fn of(tag: u32, lbas: &Range<u64>) -> Record {
    Record { tag, words: [lbas.start, lbas.end - lbas.start, 0] }
}

counters! {
    /// Events that are counted.
    struct Counters {
        lost => "blocks_lost",
        writes => "writes_that_lost",
        refused => "writes_refused",
        reads => "reads_of_lost_blocks",
    }
}

/// See the [module](self).
struct CaveatScriptor {
    drive: Arc<DriveModel>,
    /// A write that would destroy data is refused.
    refuses: bool,
    /// Blocks that hold what the host wrote.
    live: BlockSet,
    /// Blocks whose data were destroyed, and not written since.
    lost: BlockSet,
    /// What will hold data when all that was admitted is done, where writes are refused.
    admitted: Option<BlockSet>,
    counters: Counters,
}

impl CaveatScriptor {
    /// Calls `hit` with what a write of these blocks destroys beside them.
    fn for_victims(&self, lbas: &Range<u64>, hit: &mut dyn FnMut(Range<u64>)) {
        let blocks = Blocks(lbas.end - lbas.start);
        self.drive.interference().victims(self.drive.geometry(), Pba(lbas.start), blocks, hit);
    }

    /// The first of the blocks with data that a write of these would destroy.
    fn first_victim(&self, data: &BlockSet, lbas: &Range<u64>) -> Option<Lba> {
        let mut first: Option<u64> = None;
        self.for_victims(lbas, &mut |hit| {
            let live = data.next_set(hit.start).filter(|&block| block < hit.end);
            first = live.into_iter().chain(first).min();
        });
        first.map(Lba)
    }

    fn wrote(&mut self, lbas: &Range<u64>) {
        let mut gone: Vec<Range<u64>> = Vec::new();
        self.for_victims(lbas, &mut |hit| gone.extend(self.live.runs_in(hit)));
        let mut lost = 0;
        for run in gone {
            // Two tracks of a wide head may reach the same block.
            lost += self.live.remove(run.clone());
            self.lost.insert(run);
        }
        self.counters.lost += lost;
        self.counters.writes += u64::from(lost > 0);
        self.live.insert(lbas.clone());
        self.lost.remove(lbas.clone());
    }

    fn discard(&mut self, lbas: &Range<u64>) {
        self.live.remove(lbas.clone());
        self.lost.remove(lbas.clone());
    }

    fn write(&mut self, lbas: &Range<u64>, plan: &mut Plan) {
        if let Some(victim) = self.refuses.then(|| self.first_victim(&self.live, lbas)).flatten() {
            self.counters.refused += 1;
            return plan.refuse(Refusal::WriteProtected, victim);
        }
        // Before the write: it destroys from its first sector on.
        plan.record(of(WRITE, lbas));
        plan.in_place(Dir::Write, Pba(lbas.start), Blocks(lbas.end - lbas.start));
        self.wrote(lbas);
    }

    fn read(&mut self, lbas: &Range<u64>, plan: &mut Plan) {
        if let Some(lost) = self.lost.next_set(lbas.start).filter(|&block| block < lbas.end) {
            self.counters.reads += 1;
            return plan.refuse(Refusal::Lost, Lba(lost));
        }
        plan.in_place(Dir::Read, Pba(lbas.start), Blocks(lbas.end - lbas.start));
        // Discarded, or in reach of a write before they held anything.
        unset_runs(&self.live, lbas.clone(), &mut |run| {
            plan.zero_to_host(Blocks(run.start - lbas.start), Blocks(run.end - run.start));
        });
    }

    /// Tracks, or blocks where the drive has no tracks, behind a write that it can damage.
    fn isolation(&self) -> u64 {
        match self.drive.interference() {
            Interference::Physical(_) => self.drive.head_width() - 1,
            Interference::Blocks(p) => p.reach.saturating_sub(1),
        }
    }
}

impl TranslationLayer for CaveatScriptor {
    fn host_blocks(&self) -> Blocks {
        self.drive.counted_blocks()
    }

    fn submit(&mut self, _: SimTime, r: &HostRequest, plan: &mut Plan) {
        let lbas = r.span();
        match r.op {
            HostOp::Read => self.read(&lbas, plan),
            HostOp::Write => self.write(&lbas, plan),
            HostOp::Discard => {
                plan.record(of(DISCARD, &lbas));
                self.discard(&lbas);
            }
            HostOp::Flush => {}
            _ => plan.refuse(Refusal::Unsupported, r.lba),
        }
    }

    /// A drive's buffer acknowledges what is admitted: what has to be refused is refused here, by what will be there when it is done.
    fn admit(&mut self, r: &HostRequest) -> Result<Range<u64>, (Refusal, Lba)> {
        let lbas = r.span();
        if !self.refuses {
            return Ok(lbas);
        }
        let mut ahead = self.admitted.take().unwrap_or_else(|| {
            let mut ahead = BlockSet::new();
            self.live.runs().for_each(|run| _ = ahead.insert(run));
            ahead
        });
        let mut order = lbas.clone();
        let mut victim = None;
        match r.op {
            HostOp::Write => {
                victim = self.first_victim(&ahead, &lbas);
                self.for_victims(&lbas, &mut |hit| {
                    order = order.start.min(hit.start)..order.end.max(hit.end)
                });
                if victim.is_none() {
                    ahead.insert(lbas);
                }
            }
            HostOp::Discard => _ = ahead.remove(lbas),
            _ => {}
        }
        self.admitted = Some(ahead);
        self.counters.refused += u64::from(victim.is_some());
        victim.map_or(Ok(order), |victim| Err((Refusal::WriteProtected, victim)))
    }

    fn power_lost(&mut self) {
        self.admitted = None;
    }

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        let lbas = r.span();
        match r.op {
            HostOp::Read if !self.lost.contains_any(lbas.clone()) => Some((Pba(r.lba.0), Dir::Read)),
            HostOp::Write if !self.refuses || self.first_victim(&self.live, &lbas).is_none() => {
                Some((Pba(r.lba.0), Dir::Write))
            }
            _ => None,
        }
    }

    fn recover(&mut self, records: &Records, _: &mut Plan) {
        for Record { tag, words: [first, blocks, _] } in records.changes() {
            let lbas = first..first + blocks;
            match tag {
                WRITE => self.wrote(&lbas),
                DISCARD => self.discard(&lbas),
                LIVE => _ = self.live.insert(lbas),
                LOST => _ = self.lost.insert(lbas),
                _ => debug_assert!(false, "record {tag} is not caveat-scriptor's"),
            }
        }
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.live.runs().for_each(|run| out.add(&of(LIVE, &run)));
        self.lost.runs().for_each(|run| out.add(&of(LOST, &run)));
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.live.runs_in(lba.span(blocks)).for_each(out);
    }

    fn facts(&self) -> Facts<'_> {
        Facts { identity: true, ..Facts::default() }
    }

    fn map_bytes(&self) -> u64 {
        (self.live.bytes() + self.lost.bytes() + self.admitted.as_ref().map_or(0, BlockSet::bytes)) as u64
    }

    fn counters(&self, out: &mut Counted) {
        out.counts(self.counters.named());
        out.level("blocks_lost_now", self.lost.count());
        out.level("isolation_distance", self.isolation());
    }
}
