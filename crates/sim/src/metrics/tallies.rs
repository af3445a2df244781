//! What is counted of commands, of events that last, of requests that a layer splits, and of the head.

use smrlab_units::{SimTime, counters};

/// How transfers are counted in units of at most so many blocks (Cassuto et al. 2010, III.B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjusted {
    /// Blocks in a unit, at least 1.
    pub blocks: u64,
    /// `floor(n / blocks) + 1` instead of `ceil(n / blocks)`.
    pub floor_plus_one: bool,
}

impl Adjusted {
    /// Units of a transfer of `n` blocks.
    #[inline]
    pub fn units(self, n: u64) -> u64 {
        match self.floor_plus_one {
            _ if n < self.blocks => 1,
            true => n / self.blocks + 1,
            false => n.div_ceil(self.blocks),
        }
    }
}

counters! {
    /// Commands in one direction.
    pub struct Tally {
        /// Commands.
        commands,
        /// Blocks.
        blocks,
        /// Units of at most the adjusted size.
        adjusted,
        /// Time that they took, ns; media only.
        ns,
    }
}

impl Tally {
    #[inline]
    pub(super) fn add(&mut self, blocks: u64, adjusted: u64, ns: u64) {
        self.commands += 1;
        self.blocks += blocks;
        self.adjusted += adjusted;
        self.ns += ns;
    }
}

/// Events with a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// How many.
    pub count: u64,
    /// When the first began.
    pub first: SimTime,
    /// Sum of the durations.
    pub total: SimTime,
    /// The longest.
    pub max: SimTime,
    /// Live blocks moved (cleaning only).
    pub relocated: u64,
    /// What the event that is not over has taken so far.
    pub(super) unfinished: Option<SimTime>,
}

impl Events {
    pub(super) fn add(&mut self, from: SimTime, to: SimTime, relocated: u64) {
        self.step(from, to);
        self.count += 1;
        self.max = self.max.max(self.unfinished.take().unwrap_or_default());
        self.relocated += relocated;
    }

    /// A step of an event that is not over with it.
    pub(super) fn step(&mut self, from: SimTime, to: SimTime) {
        if self.count == 0 && self.unfinished.is_none() {
            self.first = from;
        }
        let took = to.since(from);
        self.total += took;
        self.unfinished = Some(self.unfinished.unwrap_or_default() + took);
    }

    /// When the first one began, over or not; `None`: none did.
    pub fn began(&self) -> Option<SimTime> {
        (self.count > 0 || self.unfinished.is_some()).then_some(self.first)
    }

    /// The longest, with what the one that is not over has taken so far.
    pub fn longest(&self) -> SimTime {
        self.max.max(self.unfinished.unwrap_or_default())
    }

    /// Both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let first = [self, other].into_iter().filter_map(Self::began).min();
        Self {
            count: self.count + other.count,
            first: first.unwrap_or_default(),
            total: self.total + other.total,
            max: self.longest().max(other.longest()),
            relocated: self.relocated + other.relocated,
            unfinished: self.unfinished.or(other.unfinished),
        }
    }
}

/// Cleaning events by the layer's own names: a few, looked up for every event.
#[derive(Clone, Debug, Default)]
pub struct Cleanings(Vec<(&'static str, Events)>);

impl Cleanings {
    pub(super) fn of(&mut self, kind: &'static str) -> &mut Events {
        // The same name is nearly always the same text at the same place.
        let found = self.0.iter().position(|e| std::ptr::eq(e.0, kind) || e.0 == kind);
        let i = found.unwrap_or_else(|| {
            self.0.push((kind, Events::default()));
            self.0.len() - 1
        });
        &mut self.0[i].1
    }

    /// All kinds by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Events)> {
        let mut all: Vec<_> = self.0.iter().map(|(kind, events)| (*kind, events)).collect();
        all.sort_unstable_by_key(|e| e.0);
        all.into_iter()
    }
}

/// Sub-requests and the extents that caused them (He & Du's write amplification).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amplification {
    /// Media operations.
    pub ops: u64,
    /// Extents into which the layer split the requests.
    pub extents: u64,
    /// Host requests.
    pub requests: u64,
}

impl Amplification {
    #[inline]
    pub(super) fn add(&mut self, ops: u64, extents: u64) {
        self.ops += ops;
        self.extents += extents;
        self.requests += 1;
    }
}

/// Head movement over tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Movement {
    /// Operations that began on another track than the last one ended on.
    pub switches: u64,
    /// Sum of the cylinders between the end of an operation and the beginning of the next.
    pub distance: u64,
}
