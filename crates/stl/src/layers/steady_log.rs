//! `steady-log`: a log of blocks in long bands that is cleaned a step at a time, of this project's own design.
//!
//! Every write goes to the end of the open band, however short it is, and a map of extents says where each block is. Cleaning moves
//! what is live in the emptiest band to bands of its own; its steps are short, keep pace with the writes, and come behind the
//! acknowledgement or in idle time.

mod clean;
mod entry;
mod read;
mod records;
#[cfg(test)]
mod tests;

pub use entry::ENTRY;

use crate::parts::free_bands::{FreeBands, Reserve};
use crate::parts::holdings::{Holdings, Loss};
use crate::parts::slots::no_sectors;
use crate::parts::split::unset_runs;
use crate::{
    Cause, Counted, Dir, Endpoint, Facts, HostRequest, Plan, Record, Records, Refusal, Sink, StepEnd,
    TranslationLayer,
};
use read::Piece;
use smrlab_blockmap::BlockSet;
use smrlab_disk::{BandId, Bands};
use smrlab_units::{Blocks, HostOp, Lba, Pba, SimTime, counted, counters};
use std::ops::Range;

/// What can be chosen about the layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyLogOptions {
    /// The host sees no more than this.
    pub most: Blocks,
    /// Share of the space that the host does not see, beside open bands and reserve.
    pub overprovision: f64,
    /// Live blocks that a step of cleaning moves.
    pub step: u64,
    /// Idle time after which a step of cleaning is done; `None`: no steps in idle time.
    pub idle: Option<SimTime>,
    /// Steps in idle time rest when this share of the bands is free.
    pub idle_free: f64,
    /// They clean only bands of which this share is dead.
    pub idle_dead: f64,
}

/// The head to which the host's writes go, and the one to which cleaning moves what is live.
const HOST: usize = 0;
const SURVIVORS: usize = 1;
/// Bands beside the reserve that are free when cleaning begins to keep pace: what the two heads take and a victim holds meanwhile.
const AHEAD: u32 = 4;

/// What a band is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BandState {
    #[default]
    Free,
    /// A head appends to it.
    Open,
    /// It is full.
    Closed,
}

/// What bands are doing.
#[derive(Clone, Debug, Default)]
struct Ledger {
    /// Of each band that was taken at least once.
    states: Vec<BandState>,
    /// Closed bands in which nothing is live any more.
    emptied: Vec<u32>,
    /// The share of a band that is dead from which on idle cleaning takes it; `None`: it takes none.
    share: Option<f64>,
    /// Closed bands that it would take.
    ripe: u32,
}

impl Ledger {
    /// Dead blocks of so many from which on idle cleaning takes a band.
    #[inline]
    fn ripe_at(&self, written: u32) -> u32 {
        self.share.map_or(u32::MAX, |share| ((f64::from(written) * share).ceil() as u32).max(1))
    }

    #[inline]
    fn is_ripe(&self, written: u32, live: u32) -> bool {
        written - live >= self.ripe_at(written)
    }

    /// A band has lost blocks.
    #[inline]
    fn lost(&mut self, loss: Loss) {
        if self.states[loss.band as usize] != BandState::Closed {
            return;
        }
        let before = self.is_ripe(loss.written, loss.live + loss.blocks);
        self.ripe += u32::from(!before && self.is_ripe(loss.written, loss.live));
        if loss.live == 0 {
            self.emptied.push(loss.band);
        }
    }
}

/// The band that is being cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Victim {
    band: u32,
    /// Nothing before this offset is live any more.
    done: u64,
    /// Blocks that were dead when its cleaning began.
    dead: u32,
}

counters! {
    /// Events that are counted.
    struct Counters {
        cleaned => "bands_cleaned",
        empties => "bands_freed_empty",
        steps => "cleaning_steps",
        moved => "relocated_blocks",
    }
}

/// See the [module](self) and the registry's page.
pub struct SteadyLog {
    options: SteadyLogOptions,
    holdings: Holdings,
    free: FreeBands,
    ledger: Ledger,
    /// The open band of each head, if there is one.
    heads: [Option<u32>; 2],
    host_blocks: Blocks,
    /// Bands that are free whenever a request has been planned.
    reserve: u32,
    victim: Option<Victim>,
    /// Blocks of victims that cleaning has still to pass to keep pace with the host.
    debt: i64,
    /// Bands that shall be free before idle cleaning rests.
    idle_free: u32,
    discarded: BlockSet,
    /// What the step in idle time will have changed.
    step: Vec<Record>,
    /// The parts of the read being planned; kept for its memory.
    pieces: Vec<Piece>,
    counters: Counters,
}

impl SteadyLog {
    /// Builds the layer over `bands`.
    ///
    /// # Errors
    /// A sentence with the remedy, where nothing is left for the host.
    pub fn new(bands: Bands, options: SteadyLogOptions) -> Result<Self, String> {
        if let Some(empty) = (0..bands.len()).find(|&b| bands.band(BandId(b)).blocks == Blocks::ZERO) {
            return Err(no_sectors(empty));
        }
        let (space, reserve) = space(&bands, options.overprovision);
        let host_blocks = space.min(options.most);
        if host_blocks == Blocks::ZERO {
            return Err(format!(
                "of {} nothing is left for the host beside two open and {reserve} free ones: use a smaller band= or less \
                 overprovision=",
                counted(bands.len(), "band")
            ));
        }
        let count = bands.len() as u32;
        Ok(Self {
            holdings: Holdings::new(bands),
            free: FreeBands::new(count),
            ledger: Ledger { share: options.idle.map(|_| options.idle_dead), ..Ledger::default() },
            heads: [None; 2],
            host_blocks,
            reserve,
            victim: None,
            debt: 0,
            // At least so many that the next writes need not keep pace.
            idle_free: ((f64::from(count) * options.idle_free) as u32).max(reserve + AHEAD),
            discarded: BlockSet::new(),
            step: Vec::new(),
            pieces: Vec::new(),
            counters: Counters::default(),
            options,
        })
    }

    /// The open band of a head, and how many blocks fit into it.
    #[inline]
    fn open(&mut self, head: usize, plan: &mut Plan) -> (u32, u64) {
        let band = self.heads[head].unwrap_or_else(|| {
            let band = self.free.take(plan);
            plan.record(records::opened(band, head));
            self.taken(band, head);
            band
        });
        (band, u64::from(self.holdings.length(band) - self.holdings.written(band)))
    }

    /// A band was taken from the free ones.
    fn taken(&mut self, band: u32, head: usize) {
        let states = &mut self.ledger.states;
        if states.len() <= band as usize {
            states.resize(band as usize + 1, BandState::Free);
        }
        states[band as usize] = BandState::Open;
        self.heads[head] = Some(band);
        self.holdings.open(band);
    }

    /// The blocks `lbas` are at the end of a head's band, which is closed where it is full.
    #[inline]
    fn append(&mut self, head: usize, lbas: Range<u64>) {
        let band = self.heads[head].expect("its head is open");
        self.holdings.append(band, lbas, |loss| self.ledger.lost(loss));
        if self.holdings.written(band) == self.holdings.length(band) {
            self.close(band, head);
        }
    }

    fn close(&mut self, band: u32, head: usize) {
        let (written, live) = (self.holdings.written(band), self.holdings.live(band));
        self.ledger.states[band as usize] = BandState::Closed;
        self.ledger.ripe += u32::from(self.ledger.is_ripe(written, live));
        self.heads[head] = None;
        if live == 0 {
            self.ledger.emptied.push(band);
        }
    }

    /// The host wrote these blocks: where cleaning is under way, it is to pass as much as wins their room back.
    #[inline]
    fn written(&mut self, lbas: Range<u64>) {
        let blocks = (lbas.end - lbas.start) as i64;
        self.append(HOST, lbas.clone());
        if !self.discarded.is_empty() {
            self.discarded.remove(lbas);
        }
        match self.victim {
            Some(v) if self.is_short() => {
                let length = i64::from(self.holdings.length(v.band));
                self.debt += blocks * length / i64::from(v.dead.max(1));
            }
            _ => self.debt = 0,
        }
    }

    /// Bands in which nothing is live any more are free without a cleaning.
    fn free_emptied(&mut self, plan: &mut Plan) {
        for i in 0..self.ledger.emptied.len() {
            let band = self.ledger.emptied[i];
            plan.record(records::freed(band));
            self.release(band);
        }
        self.ledger.emptied.clear();
    }

    fn write(&mut self, r: &HostRequest, plan: &mut Plan) {
        let (mut done, mut extents) = (0, 0);
        while done < r.blocks.0 {
            let (band, room) = self.open(HOST, plan);
            let n = room.min(r.blocks.0 - done);
            plan.write(Cause::Host, self.holdings.end(band), Blocks(n), Endpoint::Host(Blocks(done)));
            let lbas = r.lba.0 + done..r.lba.0 + done + n;
            plan.record(records::appended(&lbas, HOST));
            self.written(lbas);
            self.free_emptied(plan);
            (done, extents) = (done + n, extents + 1);
            if done < r.blocks.0 {
                self.make_room(plan);
            }
        }
        if self.is_due() {
            plan.acknowledge();
        }
        self.keep_pace(plan);
        plan.set_extents(extents);
    }

    fn discard(&mut self, r: &HostRequest, plan: &mut Plan) {
        plan.record(records::discarded(&r.span()));
        self.forget(r.span());
        self.free_emptied(plan);
    }

    fn forget(&mut self, lbas: Range<u64>) {
        self.holdings.remove(lbas.clone(), |loss| self.ledger.lost(loss));
        self.discarded.insert(lbas);
    }
}

/// What the host sees of so many bands, and how many of them are kept free.
fn space(bands: &Bands, overprovision: f64) -> (Blocks, u32) {
    let lengths = || (0..bands.len()).map(|b| bands.band(BandId(b)).blocks.0);
    let (short, long) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
    if short == 0 {
        return (Blocks::ZERO, 0);
    }
    let reserve = Reserve::of(1, 1, short as u32..=long as u32).least;
    let spare = (2 + u64::from(reserve)) * long;
    let host = bands.data_blocks().0.saturating_sub(spare) as f64 * (1.0 - overprovision);
    (Blocks(host as u64), reserve)
}

impl TranslationLayer for SteadyLog {
    fn host_blocks(&self) -> Blocks {
        self.host_blocks
    }

    by_operation!();

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        match r.op {
            HostOp::Write => {
                let next =
                    || self.free.peek(0).map(|(band, _)| self.holdings.bands().start(BandId(band.into())));
                let at = self.heads[HOST].map(|band| self.holdings.end(band)).or_else(next)?;
                Some((at, Dir::Write))
            }
            HostOp::Read => {
                let mut first: Option<Pba> = None;
                self.for_places(r.span(), |_, pba, _| {
                    first = pba.map(|pba| first.map_or(pba, |first| first.min(pba))).or(first);
                });
                Some((first?, Dir::Read))
            }
            _ => None,
        }
    }

    fn background_after(&self) -> Option<SimTime> {
        let idle = self.options.idle?;
        let some = self.victim.is_some() || self.ledger.ripe > 0;
        (some && self.free.len() < self.idle_free && self.free.len() >= self.reserve).then_some(idle)
    }

    fn background(&mut self, _: SimTime, plan: &mut Plan) {
        let mut step = std::mem::take(&mut self.step);
        if let Some(victim) = self.victim.or_else(|| self.choose(true)) {
            self.plan_step(victim, plan, &mut step);
        }
        self.step = step;
    }

    fn background_end(&mut self, end: StepEnd) {
        end.take(&mut self.step).iter().for_each(|r| self.apply(r));
    }

    fn durable(&mut self) {
        self.free.durable();
    }

    fn recover(&mut self, records: &Records, plan: &mut Plan) {
        records.changes().for_each(|r| self.apply(&r));
        self.free.durable();
        // A cut in the middle of a cleaning left fewer free bands than there must be.
        self.make_room(plan);
    }

    fn checkpoint(&self, out: &mut dyn Sink) {
        self.write_checkpoint(out);
    }

    fn allocated(&self, lba: Lba, blocks: Blocks, out: &mut dyn FnMut(Range<u64>)) {
        self.holdings.allocated(lba.span(blocks), &mut |run| unset_runs(&self.discarded, run, out));
    }

    fn facts(&self) -> Facts<'_> {
        Facts { bands: Some(self.holdings.bands()), ..Facts::default() }
    }

    fn map_bytes(&self) -> u64 {
        let states = self.ledger.states.capacity() * size_of::<BandState>();
        self.holdings.bytes() + self.free.bytes() + (states + self.discarded.bytes()) as u64
    }

    fn counters(&self, out: &mut Counted) {
        out.counts(self.counters.named());
    }
}
