//! `log`: log-structured bands with compaction.
//!
//! Every write is appended to an open band, and a map says where each unit is now. When few bands are free, the band with the fewest live
//! units is compacted: these are appended to an open band, and it is free. `h-swd` and `laz-raz` are this layer with other options:
//! which units go together (`log/heat.rs`), and tracks for random access beside the log (`log/raz.rs`).

mod clean;
mod entry;
mod h_swd;
mod heat;
mod laz_raz;
mod options;
mod raz;
mod read;
mod records;
#[cfg(test)]
mod tests;

pub use entry::ENTRY;
pub use h_swd::ENTRY_H_SWD;
pub use laz_raz::ENTRY_LAZ_RAZ;
pub use options::{Idle, LogOptions, Separate};
pub use raz::Raz;
pub use records::skipped;

use crate::parts::free_bands::{FreeBands, Reserve};
use crate::parts::homes::Homes;
use crate::parts::slots::Slots;
use crate::parts::split::unset_runs;
use crate::parts::units::UnitSpan;
use crate::parts::victim::Victim;
use crate::parts::window::Window;
use crate::{
    Cause, Counted, Dir, Endpoint, Facts, HostRequest, Plan, Record, Records, Refusal, Sink, StepEnd,
    TranslationLayer,
};
use options::classes;
use smrlab_blockmap::BlockSet;
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime, counted, counters};
use std::ops::Range;

/// What a band is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BandState {
    #[default]
    Free,
    /// It is being appended to.
    Open,
    /// It is full.
    Closed,
}

/// A band that was taken at least once.
#[derive(Clone, Copy, Debug, Default)]
struct Band {
    state: BandState,
    /// The head for which it was taken last.
    head: u32,
    /// [`LogLayer::clock`] when its youngest data were written by the host.
    stamp: u64,
}

/// From so many units on it is worth a look whether all of them are new.
const LONG: u64 = 256;

counters! {
    /// Events that are counted.
    struct Counters {
        compactions => "compactions",
        relocated => "relocated_units",
        empties => "bands_freed_empty",
        hot_writes,
    }
}

/// See the [module](self) and the registry's page.
pub struct LogLayer {
    options: LogOptions,
    homes: Homes,
    free: FreeBands,
    bands: Vec<Band>,
    /// The open band of each head, if there is one.
    heads: Vec<Option<u32>>,
    host_units: u64,
    /// Units that the host has written.
    clock: u64,
    /// Bands that are free whenever a request has been planned.
    reserve: u32,
    /// Closed bands that idle cleaning would take.
    ripe: u32,
    /// Closed bands with hot units.
    hot: u32,
    /// Bands that shall be free before idle cleaning rests.
    idle_free: u32,
    /// A compaction that was begun.
    cleaning: Option<u32>,
    /// What the step in idle time will have changed.
    step: Vec<Record>,
    /// Closed bands in which nothing is live any more.
    emptied: Vec<u32>,
    discarded: BlockSet,
    /// Tracks where units are written in place.
    raz: Option<Raz>,
    /// What the host wrote last, where that tells what is hot.
    window: Option<Window>,
    counters: Counters,
}

impl LogLayer {
    /// Builds the layer over `slots`.
    ///
    /// # Errors
    /// A sentence saying which option does not fit.
    pub fn new(slots: Slots, options: LogOptions) -> Result<Self, String> {
        Self::beside(None, slots, options)
    }

    /// The same with random-access tracks: units that are written often have places there.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn beside(raz: Option<Raz>, slots: Slots, options: LogOptions) -> Result<Self, String> {
        let classes = classes(options.separate);
        if matches!((options.separate, options.victim), (Separate::Recency(_), Victim::ColdWeight)) {
            return Err("policy=cold-weight counts writes: use separate=frequency or none with it".to_owned());
        }
        let lengths = slots.shortest()..=slots.longest();
        let least = Reserve::of(options.streams, classes, lengths);
        let for_idle = if options.idle.is_some() { least.taken - 1 } else { 0 };
        let reserve = options.reserve.unwrap_or(0).max(least.least + for_idle);
        let heads = options.streams * classes * (1 + u32::from(options.own));
        let bands = raz.as_ref().map_or(slots.band_count(), Raz::bands_before);
        let logged = if bands == slots.band_count() { slots.total() } else { slots.of(bands).start };
        let spare = u64::from(heads + reserve) * u64::from(slots.longest());
        let host_units =
            (u64::from(logged).saturating_sub(spare) as f64 * (1.0 - options.overprovision)) as u64;
        let host_units = host_units.min(options.most.0 / slots.unit());
        if host_units == 0 {
            return Err(format!(
                "of {} nothing is left for the host beside {heads} open and {reserve} free ones: use a smaller \
                 band=, fewer streams= or less overprovision=",
                counted(bands.into(), "band")
            ));
        }
        let (noted, window) = match options.separate {
            Separate::None => (options.victim == Victim::ColdWeight, None),
            Separate::Window { length, .. } => (false, Some(Window::new(length))),
            Separate::Frequency(_) | Separate::Recency(_) => (true, None),
        };
        Ok(Self {
            homes: Homes::new(slots, noted),
            free: FreeBands::new(bands),
            bands: Vec::new(),
            heads: vec![None; heads as usize],
            host_units,
            clock: 0,
            reserve,
            ripe: 0,
            hot: 0,
            idle_free: options.idle.map_or(0, |i| (f64::from(bands) * i.free) as u32),
            cleaning: None,
            step: Vec::new(),
            emptied: Vec::new(),
            discarded: BlockSet::new(),
            raz,
            window,
            counters: Counters::default(),
            options,
        })
    }

    fn slots(&self) -> &Slots {
        self.homes.slots()
    }

    #[inline]
    fn pba(&self, unit: u64) -> Option<Pba> {
        self.homes.slot(unit).map(|slot| self.slots().pba(slot))
    }

    /// The next place at a head: of its open band, or of the free band that would be taken.
    #[inline]
    fn next_pba(&self, head: u32) -> Option<Pba> {
        let band = self.heads[head as usize].or_else(|| self.free.peek(0).map(|(band, _)| band))?;
        Some(self.slots().pba_in(band, self.homes.written(band)))
    }

    /// The open band of a head, and how many units fit into it.
    #[inline]
    fn open(&mut self, head: u32, plan: &mut Plan) -> (u32, u32) {
        let band = self.heads[head as usize].unwrap_or_else(|| {
            let band = self.free.take(plan);
            plan.record(records::opened(band, head));
            self.taken(band, head);
            band
        });
        (band, self.slots().count(band) - self.homes.written(band))
    }

    /// A band was taken from the free ones.
    fn taken(&mut self, band: u32, head: u32) {
        let i = band as usize;
        if i >= self.bands.len() {
            self.bands.resize(i + 1, Band::default());
        }
        self.bands[i] = Band { state: BandState::Open, head, stamp: 0 };
        self.heads[head as usize] = Some(band);
        self.homes.open(band);
    }

    /// Units are at the end of a head's band, which is closed where it is full.
    #[inline]
    fn appended(&mut self, band: u32) {
        if self.homes.written(band) == self.slots().count(band) {
            let state = &mut self.bands[band as usize];
            state.state = BandState::Closed;
            self.heads[state.head as usize] = None;
            self.closed(band);
            self.ripe += u32::from(self.is_ripe(band));
        }
    }

    /// A band is full, and can be cleaned.
    fn closed(&mut self, band: u32) {
        self.homes.close(band);
        self.hot += u32::from(self.is_hot(&self.bands[band as usize]));
    }

    /// Whether a band is closed, and of the hot class.
    #[inline]
    fn is_hot(&self, band: &Band) -> bool {
        band.state == BandState::Closed && band.head % classes(self.options.separate) == 1
    }

    #[inline]
    fn dead(&self, band: u32) -> u32 {
        self.homes.written(band) - self.homes.live(band)
    }

    /// Dead units from which on idle cleaning takes a band.
    #[inline]
    fn ripe_at(&self, band: u32) -> u32 {
        let share = self.options.idle.map_or(1.0, |i| i.dead);
        ((f64::from(self.slots().count(band)) * share).ceil() as u32).max(1)
    }

    #[inline]
    fn is_ripe(&self, band: u32) -> bool {
        self.options.idle.is_some() && self.dead(band) >= self.ripe_at(band)
    }

    /// A live unit of a band has died.
    #[inline]
    fn lost(&mut self, band: u32) {
        let live = self.homes.live(band);
        if live > 0 && self.options.idle.is_none() || self.bands[band as usize].state != BandState::Closed {
            return;
        }
        if self.options.idle.is_some() && self.dead(band) == self.ripe_at(band) {
            self.ripe += 1;
        }
        if live == 0 {
            self.emptied.push(band);
        }
    }

    /// Bands in which nothing is live any more are free without a compaction.
    fn free_emptied(&mut self, plan: &mut Plan) {
        for i in 0..self.emptied.len() {
            let band = self.emptied[i];
            plan.record(records::freed(band));
            self.release(band);
        }
        self.emptied.clear();
    }

    /// The host's units `units` are at the end of a head's band. `first`: what is known to be [noted](Self::noted) of the first one.
    #[inline]
    fn append(&mut self, band: u32, units: Range<u64>, first: Option<(u32, u32)>) {
        if units.end - units.start >= LONG && self.window.is_none() && self.homes.are_new(units.clone()) {
            self.clock += units.end - units.start;
            self.homes.append_new(band, units);
            return self.stamped(band);
        }
        let mut known = first;
        for unit in units {
            debug_assert!(known.is_none_or(|noted| noted == self.noted(unit)));
            let (note, class) = known.take().unwrap_or_else(|| self.noted(unit));
            self.counters.hot_writes += u64::from(class);
            self.clock += 1;
            self.window.iter_mut().for_each(|window| window.push(unit));
            if let Some(old) = self.homes.append(band, unit, note) {
                self.lost(old);
            }
        }
        self.stamped(band);
    }

    /// The last unit of a band is the host's, and new.
    #[inline]
    fn stamped(&mut self, band: u32) {
        self.bands[band as usize].stamp = self.clock;
        self.appended(band);
    }

    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        let span = UnitSpan::of(r.lba, r.blocks, self.slots().unit());
        let fill = span.fill(|unit| self.logged(unit), plan);
        let (mut unit, mut extents) = (span.first, 0);
        while unit < span.end {
            let noted = match self.write_in_place(&span, unit, fill, plan) {
                Ok(end) => {
                    (unit, extents) = (end, extents + 1);
                    continue;
                }
                Err(noted) => noted,
            };
            let class = noted.1;
            let mut end = span.end;
            if classes(self.options.separate) > 1 {
                let other = |&u: &u64| self.noted(u).1 != class || self.place_of(u).is_some();
                end = (unit + 1..end).find(other).unwrap_or(end);
            }
            let head = self.host_head(r.stream, class);
            let (band, room) = self.open(head, plan);
            let end = end.min(unit + u64::from(room));
            let at = self.slots().pba_in(band, self.homes.written(band));
            let blocks = Blocks((end - unit) * span.unit);
            if span.before + span.behind == 0 {
                let host = Blocks((unit - span.first) * span.unit);
                plan.write(Cause::Host, at, blocks, Endpoint::Host(host));
            } else {
                plan.write_pieces(Cause::Host, at, blocks, |out| span.pieces(unit..end, fill, out));
            }
            plan.record(records::appended(&span, unit..end, head));
            self.append(band, unit..end, Some(noted));
            self.free_emptied(plan);
            (unit, extents) = (end, extents + 1);
            self.make_room(plan);
        }
        plan.set_extents(extents);
        if !self.discarded.is_empty() {
            self.discarded.remove(r.span());
        }
    }
}

impl TranslationLayer for LogLayer {
    fn host_blocks(&self) -> Blocks {
        Blocks(self.host_units * self.slots().unit())
    }

    by_operation!();

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        let g = self.slots().unit();
        match r.op {
            HostOp::Read => {
                let at = self.discarded.next_unset(r.lba.0);
                let home = |at: u64| self.pba(at / g).unwrap_or_else(|| self.slots().pba((at / g) as u32));
                (at < r.lba.0 + r.blocks.0).then(|| (home(at) + Blocks(at % g), Dir::Read))
            }
            HostOp::Write => {
                let span = UnitSpan::of(r.lba, r.blocks, g);
                let filled = |(unit, part): (u64, Range<u64>)| {
                    Some((self.logged(unit)? + Blocks(part.start), Dir::Read))
                };
                let fill = span.kept().into_iter().flatten().find_map(filled);
                let head = || self.next_pba(self.host_head(r.stream, self.noted(span.first).1));
                fill.or_else(|| self.first_in_place(&span)).or_else(|| Some((head()?, Dir::Write)))
            }
            _ => None,
        }
    }

    fn background_after(&self) -> Option<SimTime> {
        let idle = self.options.idle?;
        (self.ripe > 0 && self.free.len() < self.idle_free && self.free.len() >= self.reserve)
            .then_some(idle.after)
    }

    fn background(&mut self, _: SimTime, plan: &mut Plan) {
        let mut step = std::mem::take(&mut self.step);
        if let Some(victim) = self.choose(true) {
            self.plan_compaction(victim, plan, &mut step);
        }
        self.step = step;
    }

    fn background_end(&mut self, end: StepEnd) {
        end.take(&mut self.step).iter().for_each(|r| self.apply(r));
    }

    fn durable(&mut self) {
        self.free.durable();
        self.raz.iter_mut().for_each(Raz::durable);
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        records.changes().for_each(|r| self.apply(&r));
        self.durable();
        // A cut in mid-compaction left fewer free bands than there must be.
        self.make_room(plan);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.write_checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.homes.allocated(lba.span(blocks), &mut |run| unset_runs(&self.discarded, run, out));
    }

    #[inline]
    fn prefetch(&self, r: &HostRequest) {
        self.homes.prefetch(r.lba.0 / self.slots().unit());
    }

    fn facts(&self) -> Facts<'_> {
        Facts { bands: Some(self.slots().bands()), ..Facts::default() }
    }

    fn map_bytes(&self) -> u64 {
        let bands = (self.bands.capacity() * size_of::<Band>()) as u64;
        let raz = self.raz.as_ref().map_or(0, Raz::bytes) + self.window.as_ref().map_or(0, Window::bytes);
        self.homes.bytes() + self.free.bytes() + bands + self.discarded.bytes() as u64 + raz
    }

    fn counters(&self, out: &mut Counted) {
        let c = &self.counters;
        out.counts(c.named());
        if self.options.separate != Separate::None {
            out.count("hot_units_written", c.hot_writes);
        }
        self.raz.iter().for_each(|raz| raz.counters(out));
    }
}
