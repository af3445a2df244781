//! Static maps: LBA to PBA by formula, updates in place with a write amplifier (He & Du 2014).
//!
//! An *order* (1234, R(4123), ...) says in which order LBAs fill the tracks of bands. A write goes to its place; what it destroys and is live
//! is read before and written again behind it (`parts/amplifier.rs`), so an order that leaves gaps makes few copies while the drive is empty.

use crate::entry::{BandLength, BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use crate::parts::amplifier::{Amplifier, HostRun};
use crate::parts::live::Live;
use crate::parts::order::Order;
use crate::parts::position_map::{Extent, PositionMap};
use crate::parts::update::{JOURNAL, Journal, Update, two_bands};
use crate::{Cause, Endpoint, Facts, HostRequest, Plan, Records, Refusal, Sink, TranslationLayer};
use smrlab_blockmap::UNIT_BLOCKS;
use smrlab_disk::{Bands, Geometry, Interference};
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

macro_rules! page {
    ($first:literal) => {
        concat!(
            $first,
            "\n\
Bands have as many tracks as the order has positions, and a guard of `W - 1` tracks. There is no table: LBA and PBA follow
from each other by formula. A write goes to its place; if that destroys live blocks further on, these are read first and
written again behind it, which may destroy more (`1 + 2 * impacted` operations for each extent). What is live is known
block by block: what the host wrote and did not discard. So an order that fills positions far apart first writes without
amplification as long as the drive is little used.

A request is split where a track ends; `war` in the results counts operations for each such extent. On drives with
recording zones the order is applied to all bands of the drive, phase by phase; on cylinder layouts a position is a whole
cylinder.

An order with several phases keeps the tracks of its last one (the third ones in R(4123), 124R(3) and 14R(23)) free as long as
it can: `space.third_track_fill` in the results says which share of them holds data. From 0 on it is what updates cost, and
what a defragmentation would have to empty.

A power cut between the first and the last write of an update destroys blocks that were acknowledged long before. With
`journal=on` every update goes to a journal first (bands at the end of the medium) and is replayed after a cut.
"
        )
    };
}

const ORDER: Param = Param::new("order", Kind::Text, "R(4123)")
    .doc("in which order the positions of bands are filled: 1234, R(4123), 124R(3), 1-100, 1.3-12R(2), ...");

/// Any order.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "static",
    aliases: &["static-map"],
    summary: "static map of any order: positions of bands filled as the order says, updates in place",
    page: page!(
        "\
`order=` says in which order LBAs fill the positions (tracks) of the bands: positions that are written side by side go
to one band after the other, `R(...)` fills each of its positions through all bands before the next one. `1-100` is SFS's
band of 100 tracks.
"
    ),
    params: &[ORDER, HEAD_TRACKS, JOURNAL],
    tested: &["order=1-9", "order=1324", "order=R(21)", "order=13R(2)R(54)", "order=1", "order=14R(23),journal=on"],
    build: |context, values| {
        let order = Order::parse(values.text("order").unwrap_or_default())?;
        build(context, values, &order)
    },
    ..COMMON
};

/// Tracks in their natural order.
pub static ENTRY_1234: LayerEntry = LayerEntry {
    name: "static-1234",
    summary: "static map 1234: band after band; every update rewrites what follows in its band",
    page: page!("LBAs fill each band from its first to its last track before the next band.\n"),
    build: |context, values| build(context, values, &Order::parse("1234")?),
    ..COMMON
};

/// Fourth tracks first.
pub static ENTRY_R4123: LayerEntry = LayerEntry {
    name: "static-R(4123)",
    summary: "static map R(4123): all 4th tracks, then all 1st, 2nd and 3rd; no amplification up to half full",
    page: page!(
        "\
LBAs fill the fourth tracks of all bands, then all first, all second and all third ones: half full, every update is one
write; the band's third track, filled last, makes the difference.
"
    ),
    tested: &["tracks=3"],
    build: |context, values| build(context, values, &Order::parse("R(4123)")?),
    ..COMMON
};

/// First, second and fourth together, third last.
pub static ENTRY_124R3: LayerEntry = LayerEntry {
    name: "static-124R(3)",
    summary: "static map 124R(3): tracks 1, 2 and 4 of each band, third tracks last",
    page: page!(
        "\
LBAs fill the first, second and fourth track of band after band, and then the third tracks of all bands: more sequential
than R(4123), and updates of a first track rewrite the second already at low usage.
"
    ),
    build: |context, values| build(context, values, &Order::parse("124R(3)")?),
    ..COMMON
};

/// First and fourth together, then second, then third.
pub static ENTRY_14R23: LayerEntry = LayerEntry {
    name: "static-14R(23)",
    summary: "static map 14R(23): tracks 1 and 4 of each band, then all 2nd, then all 3rd",
    page: page!(
        "\
LBAs fill the first and fourth track of band after band, then the second tracks of all bands, then the third ones: no
amplification up to half full, with shorter seeks than R(4123).
"
    ),
    build: |context, values| build(context, values, &Order::parse("14R(23)")?),
    ..COMMON
};

/// What the entries of this file share.
const COMMON: LayerEntry = LayerEntry {
    name: "",
    summary: "",
    reference: "He & Du 2014, Novel Address Mappings for Shingled Write Disks ",
    page: "",
    idle: "nothing, by default and with any option: what follows in the band is rewritten while its write waits",
    params: &[HEAD_TRACKS, JOURNAL],
    ..LayerEntry::new(|context, values| build(context, values, &Order::parse("1234")?))
};

fn build(context: &BuildContext, values: &Values, order: &Order) -> BuildResult {
    let bands = context.bands(&ENTRY, Some(BandLength::Tracks(u64::from(order.tracks()))))?;
    let (journal, count) = Journal::chosen(values, ENTRY.name, &bands)?;
    let count = count.min(context.counted(&bands));
    let map = PositionMap::new(context.drive.geometry(), &bands, count, order);
    if map.blocks().0 == 0 {
        let what = "the host's space has no blocks on this drive: use a larger one";
        return Err(SpecError::Other(format!("{}: {what}", ENTRY.name)));
    }
    let first = (Lba(0), map.locate(&bands, Lba(0)));
    Ok(Box::new(StaticMap {
        map,
        bands,
        hinted: std::array::from_fn(|_| Cell::new(first)),
        geometry: Arc::clone(context.drive.geometry()),
        interference: context.drive.interference(),
        guarded: is_guarded(&context.drive.interference()),
        journal,
        live: Live::default(),
        last: 0,
        host: Vec::new(),
        amplifier: Amplifier::default(),
        update: Update::default(),
    }))
}

/// More than requests that are hinted at ahead of their turn.
const HINTED: usize = 64;

fn hint_of(lba: Lba) -> usize {
    (lba.0 / UNIT_BLOCKS) as usize % HINTED
}

struct StaticMap {
    map: PositionMap,
    bands: Bands,
    /// Where LBAs lie that were hinted at: the same is asked again soon.
    hinted: [Cell<(Lba, Extent)>; HINTED],
    geometry: Arc<Geometry>,
    interference: Interference,
    /// What is written on a band's last position destroys nothing but the guard behind it.
    guarded: bool,
    journal: Journal,
    /// PBAs that hold data.
    live: Live,
    /// How many of them are on the tracks that are filled last.
    last: u64,
    /// Extents of the present write.
    host: Vec<HostRun>,
    amplifier: Amplifier,
    update: Update,
}

/// Whether a guard is wide enough for what is written before it: damage that goes by tracks, and goes one way.
fn is_guarded(interference: &Interference) -> bool {
    matches!(interference, Interference::Physical(p) if p.wave == 0)
}

/// So many blocks if the extent at `lba` is on the tracks that are filled last.
fn of_last(last_phase: Lba, lba: Lba, blocks: u64) -> u64 {
    if lba >= last_phase { blocks } else { 0 }
}

impl StaticMap {
    #[inline]
    fn of_last(&self, lba: Lba, blocks: u64) -> u64 {
        of_last(self.map.last_phase, lba, blocks)
    }

    #[inline]
    fn run_of(&self, extent: &Extent, blocks: Blocks, host: Blocks) -> HostRun {
        let Extent { band, pba, last, .. } = *extent;
        HostRun { band, pba, blocks, host, harmless: if self.guarded { last } else { Pba(u64::MAX) } }
    }

    #[inline]
    fn extent_at(&self, lba: Lba) -> Extent {
        let (hinted, extent) = self.hinted[hint_of(lba)].get();
        if hinted == lba { extent } else { self.map.locate(&self.bands, lba) }
    }

    /// Calls `each` with the extents of a run of LBAs (within one track each), how many of their blocks are in it, and their offsets
    /// there.
    // By reference: a copy of what was just put together from parts waits for these.
    #[inline]
    fn for_extents(&self, lba: Lba, blocks: Blocks, mut each: impl FnMut(&Extent, Blocks, Blocks)) {
        let mut done = Blocks::ZERO;
        while done < blocks {
            let extent = self.extent_at(lba + done);
            let n = extent.blocks.min(blocks - done);
            each(&extent, n, done);
            done += n;
        }
    }

    #[inline]
    fn read(&self, r: &HostRequest, plan: &mut Plan) {
        // Extents that follow each other on the medium are one operation.
        let (mut pba, mut blocks, mut from) = (Pba(0), Blocks::ZERO, Blocks::ZERO);
        let flush = |pba: Pba, blocks, from, plan: &mut Plan| {
            plan.read_to_host(Cause::Host, pba, blocks, from);
            self.live.zero_rest(pba.span(blocks), from, plan);
        };
        self.for_extents(r.lba, r.blocks, |e, n, host| {
            if blocks > Blocks::ZERO && pba + blocks == e.pba {
                blocks += n;
                return;
            }
            if blocks > Blocks::ZERO {
                flush(pba, blocks, from, plan);
            }
            (pba, blocks, from) = (e.pba, n, host);
        });
        if blocks > Blocks::ZERO {
            flush(pba, blocks, from, plan);
        }
    }

    #[inline]
    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        // Where all positions are filled together nearly every write destroys something: to ask that first would be to ask twice.
        if self.map.last_phase > Lba(0) && !self.journal.is_on() {
            let first = self.extent_at(r.lba);
            let run = self.run_of(&first, r.blocks, Blocks::ZERO);
            if first.blocks >= r.blocks
                && !Amplifier::harms(&self.geometry, &self.interference, self.live.set(), &run)
            {
                plan.write(Cause::Host, run.pba, run.blocks, Endpoint::Host(Blocks::ZERO));
                let new = self.live.insert(run.pba.span(run.blocks), plan);
                self.last += self.of_last(r.lba, new);
                return;
            }
        }
        let mut host = std::mem::take(&mut self.host);
        host.clear();
        self.for_extents(r.lba, r.blocks, |e, n, at| host.push(self.run_of(e, n, at)));
        plan.set_extents(host.len() as u32);
        host.sort_unstable();
        for group in host.chunk_by(|a, b| a.band == b.band) {
            self.update_band(r.lba, group, plan);
        }
        self.host = host;
    }

    fn discard(&mut self, r: &HostRequest, plan: &mut Plan) {
        let (mut live, mut last) = (std::mem::take(&mut self.live), self.last);
        self.for_extents(r.lba, r.blocks, |e, n, at| {
            last -= self.of_last(r.lba + at, live.remove(e.pba.span(n), plan));
        });
        (self.live, self.last) = (live, last);
    }

    /// Updates one band for a request from `lba` on: all impacted runs are read, then everything is written in ascending
    /// order.
    fn update_band(&mut self, lba: Lba, host: &[HostRun], plan: &mut Plan) {
        let last_phase = self.map.last_phase;
        let (g, interference, live) = (&self.geometry, &self.interference, &mut self.live);
        let first = plan.ops().len();
        // Mostly all of it is live: to see that takes one search, to put it in two. Longer runs are put in: the set is made smaller by
        // that.
        let mut look = live.set().look();
        let known = host.iter().all(|h| h.blocks.0 <= UNIT_BLOCKS && look.contains_all(h.range()));
        self.amplifier.find(g, interference, &mut look, host);
        self.update.begin(&self.journal, plan);
        self.amplifier.plan(g, host, plan, &mut self.update);
        self.update.emit(&mut self.journal, plan, |plan| {
            for h in host.iter().filter(|_| !known) {
                self.last += of_last(last_phase, lba + h.host, live.insert(h.range(), plan));
            }
        });
        let relocated = self.amplifier.blocks();
        if relocated.0 > 0 {
            plan.cleaned("band-rewrite", first, relocated);
        }
    }
}

impl TranslationLayer for StaticMap {
    fn host_blocks(&self) -> Blocks {
        self.map.blocks()
    }

    by_operation!();

    fn facts(&self) -> Facts<'_> {
        let first = self.map.last_phase;
        let all = Blocks(self.map.blocks().0 - first.0);
        let last_tracks = (first.0 > 0).then_some((Blocks(self.last), all));
        Facts { bands: Some(&self.bands), last_tracks, ..Facts::default() }
    }

    fn location_reach(&self) -> Option<Blocks> {
        // An update begins in the journal, if there is one, and each moves where the next begins.
        (!self.journal.is_on()).then(|| two_bands(&self.bands))
    }

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        if !matches!(r.op, HostOp::Read | HostOp::Write) {
            return None;
        }
        let first = self.extent_at(r.lba);
        if r.op == HostOp::Read {
            return Some((first.pba, Dir::Read));
        }
        let blocks = first.blocks.min(r.blocks);
        let run = self.run_of(&first, blocks, Blocks::ZERO);
        if first.blocks < r.blocks
            || Amplifier::harms(&self.geometry, &self.interference, self.live.set(), &run)
        {
            return Some(self.first_of_update(r));
        }
        Some((self.journal.first(first.pba, blocks), Dir::Write))
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        for record in records.changes() {
            if self.live.take(&record).is_none() {
                self.journal.take(&record);
            }
        }
        let (first, mut last) = (self.map.last_phase, 0);
        self.for_extents(first, Blocks(self.map.blocks().0 - first.0), |e, n, _| {
            last += self.live.set().count_in(e.pba.span(n));
        });
        self.last = last;
        self.journal.recover(plan);
    }

    fn durable(&mut self) {
        self.journal.durable();
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.live.checkpoint(out);
        self.journal.checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.for_extents(lba, blocks, |e, n, at| {
            for run in self.live.set().runs_in(e.pba.span(n)) {
                let lba_of = |pba: u64| lba.0 + at.0 + pba - e.pba.0;
                out(lba_of(run.start)..lba_of(run.end));
            }
        });
    }

    #[inline]
    fn prefetch(&self, r: &HostRequest) {
        if r.op == HostOp::Write {
            let at = self.map.locate(&self.bands, r.lba);
            self.hinted[hint_of(r.lba)].set((r.lba, at));
            // What the write would hit begins about a track further on.
            self.live.set().prefetch_both(at.pba.0, at.pba.0 + at.track.0);
        }
    }

    fn map_bytes(&self) -> u64 {
        (self.live.set().bytes() + self.map.bytes()) as u64
    }
}

impl StaticMap {
    /// The first operation of an update that has more than one extent or impacts something.
    #[cold]
    fn first_of_update(&self, r: &HostRequest) -> (Pba, Dir) {
        let mut host = Vec::new();
        self.for_extents(r.lba, r.blocks, |e, n, at| host.push(self.run_of(e, n, at)));
        host.sort_unstable();
        host.truncate(host.partition_point(|h| h.band == host[0].band));
        let mut amplifier = Amplifier::default();
        amplifier.find(&self.geometry, &self.interference, &mut self.live.set().look(), &host);
        let blocks = Blocks(host.iter().map(|h| h.blocks.0).sum());
        let plain = || self.journal.first(host[0].pba, blocks);
        amplifier.first().map_or_else(|| (plain(), Dir::Write), |impacted| (impacted, Dir::Read))
    }
}
