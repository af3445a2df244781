//! The contract of a translation layer.

use crate::{Counted, HostRequest, Plan, Record, Records, Refusal, Sink};
use smrlab_disk::Bands;
use smrlab_units::{
    Blocks, Dir, Lba, Pba, SimTime, Zone, ZoneCondition, ZoneCounts, ZoneLimits, ZoneStatistics,
};
use std::ops::Range;

/// How a step of background work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// All its operations were done: its changes hold.
    Done,
    /// A host request came first: operations that had not started were given up, the last one that the layer planned among them,
    /// and nothing of the step holds.
    GivenUp,
}

impl StepEnd {
    /// Empties the list of what a step would change, and answers what holds of it: everything, or nothing.
    pub fn take(self, step: &mut Vec<Record>) -> Vec<Record> {
        let planned = std::mem::take(step);
        if self == Self::Done { planned } else { Vec::new() }
    }
}

/// What a layer is like, as built: for whoever walks its bands, fills its cache, or asks its medium what was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The bands in which it keeps data on the medium.
    pub bands: Option<&'a Bands>,
    /// The cache on the medium: how many blocks of the host's it holds.
    pub cache: Option<Blocks>,
    /// How many blocks it holds now whose home is elsewhere: what cleaning still has before it.
    pub cached: Option<Blocks>,
    /// Entries of the cache's map in use, and the most there can be, where these run out before the room does.
    pub entries: Option<(u64, u64)>,
    /// Blocks that hold data on the tracks of bands that are filled last, and all there are on these tracks.
    pub last_tracks: Option<(Blocks, Blocks)>,
    /// LBA equals PBA.
    pub identity: bool,
    /// The parts of the host's space that know nothing of each other, where there are several.
    pub independent: Option<Independent>,
    /// The host knows its zones, and these are their limits.
    pub zones: Option<ZoneLimits>,
    /// How many of these zones are in which condition.
    pub zone_counts: Option<ZoneCounts>,
    /// What happened to them since the layer was built.
    pub zone_statistics: Option<ZoneStatistics>,
}

impl Facts<'_> {
    /// Blocks of the cache that are taken, and all there are. Where entries of its map are scarcer than room, their share
    /// of the blocks counts: a cache of 25 GB is full of 23 000 small packets.
    pub fn fill(&self) -> Option<(Blocks, Blocks)> {
        let (cached, cache) = (self.cached?, self.cache?);
        let by_entries = |(used, most): (u64, u64)| {
            (u128::from(cache.0) * u128::from(used) / u128::from(most.max(1))) as u64
        };
        Some((Blocks(cached.0.max(self.entries.map_or(0, by_entries))), cache))
    }
}

/// Parts of the host's space of which each has its own cache and maps: writes to different parts can change places, those to
/// one part keeping their order, and the layer's state is the same after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Independent {
    /// How many there are.
    pub count: u64,
    /// So many blocks belong to a part, the next so many to the next one, and so round and round.
    pub each: Blocks,
}

impl Independent {
    /// The part to which a block belongs.
    pub fn of(&self, lba: Lba) -> u64 {
        lba.0 / self.each.0 % self.count
    }
}

/// What a layer promises; tests and commands go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Reads return what was last written, wherever that was. `raw` destroys and `zoned` refuses instead; each is compared with
    /// a plain model of its own.
    pub keeps_data: bool,
    /// Acknowledged data survive a power cut at any media operation (perhaps only with `journal=on`: see its page).
    pub survives_cut: bool,
    /// [`TranslationLayer::locate`] answers, so schedulers that reorder can be used.
    pub locates: bool,
    /// What `locate` answers for a request never changes while it waits.
    pub stable_location: bool,
    /// Discards free space and read as zeroes.
    pub discards: bool,
}

impl Capabilities {
    /// What a layer promises that moves data and maps them: everything but that they stay where they are.
    pub const OF_TRANSLATION: Self =
        Self { keeps_data: true, survives_cut: true, locates: true, stable_location: false, discards: true };
}

/// A translation layer: a pure state machine. It never reads a clock, touches a file, spawns a thread or draws from an
/// ambient random source; the same calls give the same answers.
///
/// Its state changes at [`submit`](Self::submit), though the planned operations end later. What survives a power cut in
/// between is said by the plan's records: the ones whose operations had ended are handed to [`recover`](Self::recover).
pub trait TranslationLayer: Send {
    /// How many blocks the host sees, LBAs from 0.
    fn host_blocks(&self) -> Blocks;

    /// Plans a host request that is dispatched at `now`. A flush plans nothing unless the layer holds back data.
    fn submit(&mut self, now: SimTime, request: &HostRequest, plan: &mut Plan);

    /// Whether a read is always one operation, on the block of the same number, and changes nothing of the layer.
    fn reads_in_place(&self) -> bool {
        false
    }

    /// Whether it wants to be told of the head, by [`head`](Self::head) before each [`submit`](Self::submit).
    fn heeds_head(&self) -> bool {
        false
    }

    /// The head is before this block, where the last operation ended: a hint, which says nothing of what is where.
    fn head(&mut self, _next: Pba) {}

    /// Where the first media operation of `request` would begin if it were dispatched now, cleaning included, and its
    /// direction; valid until the next dispatch. `None`: unknown, or no media operation.
    fn locate(&self, _request: &HostRequest) -> Option<(Pba, Dir)> {
        None
    }

    /// How far from the operations of a plan, in blocks, the plan can change what [`locate`](Self::locate) answers for
    /// waiting requests; `None`: anywhere. Discards and background work may change it anywhere.
    fn location_reach(&self) -> Option<Blocks> {
        None
    }

    /// Judges a request when it comes to the queue of a drive that reorders, before it waits there. Answers the blocks within which it
    /// keeps its order with other requests that change something: its own, or those of its zone. What is admitted is
    /// [submitted](Self::submit) later, in an order that heeds this.
    ///
    /// # Errors
    /// Why it is refused, and the block that stands against it: it is not submitted.
    fn admit(&mut self, request: &HostRequest) -> Result<Range<u64>, (Refusal, Lba)> {
        Ok(request.span())
    }

    /// The power is gone, and with it what was admitted and waits; what was submitted is as it is.
    fn power_lost(&mut self) {}

    /// How long the drive must have been idle before the next step of background work; `None`: nothing to do.
    fn background_after(&self) -> Option<SimTime> {
        None
    }

    /// Plans the next bounded step of background work. The state must not change before
    /// [`background_end`](Self::background_end) says `Done`; until then no other call is made that changes it.
    fn background(&mut self, _now: SimTime, _plan: &mut Plan) {}

    /// Ends the step that [`background`](Self::background) planned.
    fn background_end(&mut self, _end: StepEnd) {}

    /// Everything planned so far has become durable, as at a fence before the next plan. Called after the flush that a host
    /// asked for, unless something was planned meanwhile. It changes where fences are needed and nothing else.
    fn durable(&mut self) {}

    /// Rebuilds the state of a freshly built layer from what survived, all of which is durable: a checkpoint's records, then those that became
    /// durable after it, in order. `plan` receives media operations that must be done before the first request, such as
    /// the replay of a journal; it is walked like any other and may be cut again.
    fn recover(&mut self, _records: &Records, _plan: &mut Plan) {}

    /// Writes the present state as records, such that a fresh layer that recovers from them is the same layer.
    fn checkpoint(&self, _out: &mut dyn Sink) {}

    /// Which of `blocks` from `lba` hold data that the host wrote, as ascending ranges of LBAs (for block status).
    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        out(lba.span(blocks));
    }

    /// A hint that `request` will be submitted soon: bring what it needs into the processor's caches.
    fn prefetch(&self, _request: &HostRequest) {}

    /// The zones from the one with `from` on, in order, until `out` answers `false`; none where it has no zones that the host
    /// knows.
    fn zones(&self, _from: Lba, _out: &mut dyn FnMut(&Zone) -> bool) {}

    /// Whether a read of these blocks brings data.
    ///
    /// # Errors
    /// Why it would be refused, and the block that stands against it.
    fn readable(&self, lba: Lba, blocks: Blocks) -> Result<(), (Refusal, Lba)> {
        let _ = (lba, blocks);
        Ok(())
    }

    /// Makes the zone with this block read-only or offline, as a failing head does; `false`: there is none with a write
    /// pointer. Its record is planned.
    fn fail_zone(&mut self, _zone: Lba, _condition: ZoneCondition, _plan: &mut Plan) -> bool {
        false
    }

    /// What it is like.
    fn facts(&self) -> Facts<'_> {
        Facts::default()
    }

    /// Bytes of memory that the mapping takes.
    fn map_bytes(&self) -> u64 {
        0
    }

    /// Counters of the layer's own, for the results.
    fn counters(&self, _out: &mut Counted) {}
}

/// All zones of a layer, in order; none where it has none.
pub fn zones_of(layer: &dyn TranslationLayer) -> Vec<Zone> {
    let mut all = Vec::new();
    layer.zones(Lba(0), &mut |zone| {
        all.push(*zone);
        true
    });
    all
}
