//! `rmw`: read-modify-write of bands, in place (the strawman of Cassuto et al. 2010).
//!
//! LBAs fill the bands in order. A write reads its band into memory, whole or from the written block on, and writes it again at its place;
//! with a journal the new content is written there first, so that a power cut in between loses nothing.

use crate::entry::{BAND_OF_TRACKS, BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use crate::parts::live::LateLive;
use crate::parts::marks::Marks;
use crate::parts::update::{JOURNAL, Journal, Update, stage, two_bands};
use crate::{Cause, Endpoint, Facts, HostRequest, Plan, Records, Refusal, Sink, TranslationLayer};
use smrlab_disk::{BandId, Bands};
use smrlab_units::spec::{Kind, Param, Values};
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime};
use std::ops::Range;

const PAGE: &str = "\
LBAs fill the bands in order. A write rewrites its band in place, in one piece for each band that it touches:

- `mode=whole` (as the papers count it): reads the whole band, changes it in memory, writes the whole band. Blocks that
  were never written are copied too.
- `mode=partial`: reads what is live in the band behind the written blocks and writes from the first written block to the
  end of that. Appending to a band costs a plain write.

A write that covers all that would be read reads nothing. Reads go straight to the medium. Discards forget the blocks;
in `partial` mode a discard of a band's tail makes its end cheaper to write.

A power cut in the middle of a rewrite destroys blocks that were acknowledged long before. With `journal=on` each rewrite
goes to a journal first (bands at the end of the medium, as many as hold the largest band) and is replayed after a cut:
twice the blocks written.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "rmw",
    aliases: &["band-rmw"],
    summary: "bands rewritten in place: read-modify-write, whole or from the written block on",
    reference: "the strawman of Cassuto et al. 2010 (III) and He & Du 2014; partial: Le Moal et al. 2012 (SFS)",
    page: PAGE,
    idle: "nothing, by default and with any option: a band is rewritten while its write waits",
    params: &[
        Param::new("mode", Kind::Choice(&["whole", "partial"]), "whole").doc(
            "whole: the whole band is read and written; partial: from the written block to the end of \
             live data",
        ),
        Param::new("band", Kind::Band, "").doc(BAND_OF_TRACKS),
        HEAD_TRACKS,
        JOURNAL,
    ],
    tested: &["mode=partial", "journal=on", "mode=partial,journal=on,band=3"],
    ..LayerEntry::new(build)
};

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let size = context.band_length(values, BandLength::Tracks);
    let bands = context.bands(&ENTRY, size)?;
    let (journal, remain) = Journal::chosen(values, ENTRY.name, &bands)?;
    let remain = remain.min(context.counted(&bands));
    let host_blocks = Blocks(bands.first_data(BandId(remain)));
    Ok(Box::new(Rmw {
        host_blocks,
        whole: values.text("mode") == Some("whole"),
        ends: Marks::new(remain),
        bands,
        journal,
        live: LateLive::new(host_blocks),
        update: Update::default(),
    }))
}

struct Rmw {
    bands: Bands,
    host_blocks: Blocks,
    whole: bool,
    journal: Journal,
    /// LBAs that hold data. Blocks that do not may have been destroyed: they read as zeroes.
    live: LateLive,
    /// Of each band: the offset behind its last live block.
    ends: Marks,
    update: Update,
}

/// The part of a request that lies in one band.
struct BandPart {
    band: BandId,
    /// The band's blocks.
    first: Pba,
    blocks: Blocks,
    /// The part within the band.
    from: u64,
    to: u64,
}

impl BandPart {
    fn pba(&self, offset: u64) -> Pba {
        self.first + Blocks(offset)
    }
}

impl Rmw {
    #[inline]
    fn part(&self, lba: u64, left: u64) -> BandPart {
        let (band, all, offset) = self.bands.band_at(lba);
        let blocks = Blocks(all.end - all.start);
        let to = (offset.0 + left).min(blocks.0);
        BandPart { band, first: Pba(all.start), blocks, from: offset.0, to }
    }

    /// What a write of `part` has to keep: the offsets before and behind it.
    #[inline]
    fn kept(&self, part: &BandPart) -> (Range<u64>, Range<u64>) {
        if self.whole {
            return (0..part.from, part.to..part.blocks.0);
        }
        let end = u64::from(self.ends.get(part.band.0)).max(part.to);
        (part.from..part.from, part.to..end)
    }

    #[inline]
    fn write(&mut self, part: &BandPart, lba: u64, host: u64, plan: &mut Plan) {
        let (before, behind) = self.kept(part);
        let first_op = plan.ops().len();
        let relocated = Blocks(before.end - before.start + behind.end - behind.start);
        self.update.begin(&self.journal, plan);
        self.update.start(part.pba(before.start));
        let data = Blocks(part.to - part.from);
        if relocated.0 == 0 {
            self.update.piece(data, Endpoint::Host(Blocks(host)));
        } else {
            let read = if self.whole { 0..part.blocks.0 } else { behind.clone() };
            let op = stage(plan, part.pba(read.start), Blocks(read.end - read.start));
            let behind_read = Blocks(behind.start - read.start);
            self.update.piece(Blocks(before.end - before.start), Endpoint::Staged(op, Blocks::ZERO));
            self.update.piece(data, Endpoint::Host(Blocks(host)));
            self.update.piece(Blocks(behind.end - behind.start), Endpoint::Staged(op, behind_read));
        }
        let live = &mut self.live;
        self.update.emit(&mut self.journal, plan, |plan| live.insert(lba..lba + data.0, plan));
        if !self.whole && part.to > u64::from(self.ends.get(part.band.0)) {
            self.ends.set(part.band.0, part.to as u32);
        }
        if relocated.0 > 0 {
            plan.cleaned("band-rewrite", first_op, relocated);
        }
    }

    fn discard(&mut self, part: &BandPart, lba: u64, plan: &mut Plan) {
        self.live.now().remove(lba..lba + (part.to - part.from), plan);
        self.cut_tail(part, lba);
    }

    /// What was discarded may have been the end of the band's live data.
    fn cut_tail(&mut self, part: &BandPart, lba: u64) {
        let end = u64::from(self.ends.get(part.band.0));
        if end > part.from && end <= part.to {
            let base = lba - part.from;
            let last = self.live.now().set().runs_in(base..lba).last();
            self.ends.set(part.band.0, last.map_or(0, |run| (run.end - base) as u32));
        }
    }

    /// Calls `each` with the parts of a run of LBAs, the LBA of each and its offset in the run.
    #[inline]
    fn for_parts(
        &mut self,
        lba: Lba,
        blocks: Blocks,
        mut each: impl FnMut(&mut Self, &BandPart, u64, u64),
    ) -> u32 {
        let (mut done, mut parts) = (0, 0);
        while done < blocks.0 {
            let part = self.part(lba.0 + done, blocks.0 - done);
            let n = part.to - part.from;
            each(self, &part, lba.0 + done, done);
            done += n;
            parts += 1;
        }
        parts
    }
}

impl TranslationLayer for Rmw {
    fn host_blocks(&self) -> Blocks {
        self.host_blocks
    }

    fn submit(&mut self, _: SimTime, r: &HostRequest, plan: &mut Plan) {
        match r.op {
            HostOp::Read => {
                self.for_parts(r.lba, r.blocks, |_, part, _, host| {
                    plan.read_to_host(
                        Cause::Host,
                        part.pba(part.from),
                        Blocks(part.to - part.from),
                        Blocks(host),
                    );
                });
                if plan.wants_data() {
                    self.live.ask(|live| live.zero_rest(r.span(), Blocks::ZERO, plan));
                }
            }
            HostOp::Write => {
                let parts = self.for_parts(r.lba, r.blocks, |layer, part, lba, host| {
                    layer.write(part, lba, host, plan);
                });
                plan.set_extents(parts);
            }
            HostOp::Discard => {
                self.for_parts(r.lba, r.blocks, |layer, part, lba, _| layer.discard(part, lba, plan));
            }
            HostOp::Flush => {}
            _ => plan.refuse(Refusal::Unsupported, r.lba),
        }
    }

    fn prefetch(&self, r: &HostRequest) {
        if r.op == HostOp::Write && !self.whole {
            self.ends.prefetch(self.bands.locate(r.lba.0).0.0);
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts { bands: Some(&self.bands), ..Facts::default() }
    }

    fn location_reach(&self) -> Option<Blocks> {
        // An update begins in the journal, if there is one, and each moves where the next begins.
        (!self.journal.is_on()).then(|| two_bands(&self.bands))
    }

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        if !matches!(r.op, HostOp::Read | HostOp::Write) {
            return None;
        }
        let part = self.part(r.lba.0, r.blocks.0);
        if r.op == HostOp::Read {
            return Some((part.pba(part.from), Dir::Read));
        }
        let (before, behind) = self.kept(&part);
        Some(if !before.is_empty() || (self.whole && !behind.is_empty()) {
            (part.first, Dir::Read)
        } else if !behind.is_empty() {
            (part.pba(behind.start), Dir::Read)
        } else {
            let blocks = Blocks(part.to - part.from);
            (self.journal.first(part.pba(part.from), blocks), Dir::Write)
        })
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        for record in records.changes() {
            if let Some((range, live)) = self.live.now().take(&record) {
                self.for_parts(Lba(range.start), Blocks(range.end - range.start), |layer, part, lba, _| {
                    if live {
                        let end = layer.ends.get(part.band.0).max(part.to as u32);
                        layer.ends.set(part.band.0, end);
                    } else {
                        layer.cut_tail(part, lba);
                    }
                });
            } else {
                self.journal.take(&record);
            }
        }
        self.journal.recover(plan);
    }

    fn durable(&mut self) {
        self.journal.durable();
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.live.ask(|live| live.checkpoint(out));
        self.journal.checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.live.ask(|live| live.set().runs_in(lba.span(blocks)).for_each(out));
    }

    fn map_bytes(&self) -> u64 {
        let live = self.live.ask(|live| live.set().bytes());
        (live + self.ends.bytes()) as u64
    }
}
