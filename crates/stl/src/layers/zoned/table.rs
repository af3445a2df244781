//! The state machine of the zones: conditions, write pointers, the limit of open zones. It knows nothing of the medium.

mod actions;

use crate::Refusal;
use smrlab_units::{Blocks, Lba, Zone, ZoneCondition, ZoneCounts, ZoneKind, ZoneStatistics};
use std::collections::VecDeque;
use std::ops::Range;

use ZoneCondition::{
    Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, NotWritePointer, Offline, ReadOnly,
};

/// Blocks of a physical block: what is written at a time in zones that require sequential writes.
pub(super) const PHYSICAL: u64 = 8;

/// How the zones divide the host's space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// From the beginning of a zone to that of the next.
    pub size: u64,
    /// Blocks that a zone with a write pointer has; behind them is a gap where they are fewer than the size.
    pub capacity: u64,
    /// Zones without a write pointer, at the beginning.
    pub conventional: u64,
    /// What the others take.
    pub kind: ZoneKind,
    /// Blocks in all zones and gaps; the last zone may be cut short.
    pub blocks: u64,
    /// How many zones may be open at once.
    pub most_open: u64,
    /// How many may be open or closed at once.
    pub most_active: u64,
}

impl Shape {
    /// The zone of a block.
    pub(super) fn zone_of(&self, lba: u64) -> u64 {
        lba / self.size
    }

    /// The blocks of a zone.
    #[inline]
    pub(super) fn span(&self, zone: u64) -> Range<u64> {
        let length = if zone < self.conventional { self.size } else { self.capacity };
        zone * self.size..(zone * self.size + length).min(self.blocks)
    }

    /// The blocks of a zone and of the gap behind it.
    #[inline]
    pub(super) fn slot(&self, zone: u64) -> Range<u64> {
        zone * self.size..((zone + 1) * self.size).min(self.blocks)
    }

    /// How many zones there are.
    pub(super) fn zones(&self) -> u64 {
        self.blocks.div_ceil(self.size)
    }
}

/// A zone that has a write pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneState {
    pub condition: ZoneCondition,
    /// Blocks from its beginning on that hold what was written.
    pub written: u64,
}

const FRESH: ZoneState = ZoneState { condition: Empty, written: 0 };

/// A refusal with the block that stands against the request.
pub(super) type Refused = (Refusal, Lba);

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub shape: Shape,
    /// Of each zone that has a write pointer.
    states: Vec<ZoneState>,
    /// Zones that a write opened, the one that was opened longest ago first.
    implicit: VecDeque<u64>,
    pub explicit: u64,
    closed: u64,
    empty: u64,
    full: u64,
    /// How often a zone was closed to make room for another one.
    pub evicted: u64,
    /// What is told of all of it since the drive was switched on.
    pub statistics: ZoneStatistics,
}

impl Table {
    /// All zones empty.
    pub(super) fn new(shape: Shape) -> Self {
        let empty = shape.zones() - shape.conventional;
        let states = vec![FRESH; empty as usize];
        let (implicit, explicit, closed, full, statistics) = Default::default();
        let mut table =
            Self { shape, states, implicit, explicit, closed, empty, full, evicted: 0, statistics };
        table.count_anew();
        table
    }

    /// How a zone is; `None`: it has no write pointer.
    pub(super) fn state(&self, zone: u64) -> Option<ZoneState> {
        self.states.get(zone.checked_sub(self.shape.conventional)? as usize).copied()
    }

    /// Up to which block a zone holds what was written; reads beyond bring zeroes.
    #[inline]
    pub(super) fn readable(&self, zone: u64) -> u64 {
        let span = self.shape.span(zone);
        self.state(zone).map_or(span.end, |s| span.start + s.written)
    }

    /// A zone as it is reported.
    pub(super) fn zone(&self, zone: u64) -> Zone {
        let span = self.shape.span(zone);
        let (start, blocks) = (Lba(span.start), Blocks(span.end - span.start));
        let Some(state) = self.state(zone) else {
            let kind = ZoneKind::Conventional;
            return Zone {
                start,
                blocks,
                kind,
                condition: NotWritePointer,
                pointer: None,
                non_sequential: false,
            };
        };
        let valid = state.condition.is_open() || matches!(state.condition, Empty | Closed);
        Zone {
            start,
            blocks,
            kind: self.shape.kind,
            condition: state.condition,
            pointer: valid.then(|| start + Blocks(state.written)),
            non_sequential: false,
        }
    }

    /// Calls `out` with the zones from the one with `from` on, gaps among them, until it answers `false`.
    pub(super) fn report(&self, from: Lba, out: &mut dyn FnMut(&Zone) -> bool) {
        for zone in self.shape.zone_of(from.0)..self.shape.zones() {
            let reported = self.zone(zone);
            let end = self.shape.slot(zone).end;
            if reported.end() > from && !out(&reported) {
                return;
            }
            let gap = Zone {
                start: reported.end(),
                blocks: Blocks(end - reported.end().0),
                kind: ZoneKind::Gap,
                condition: NotWritePointer,
                pointer: None,
                non_sequential: false,
            };
            if gap.blocks.0 > 0 && !out(&gap) {
                return;
            }
        }
    }

    /// Zones that are open.
    pub(super) fn open(&self) -> u64 {
        self.implicit.len() as u64 + self.explicit
    }

    /// Changes the condition of a zone that has a write pointer, and counts.
    fn set(&mut self, zone: u64, to: ZoneState) {
        let i = (zone - self.shape.conventional) as usize;
        let from = std::mem::replace(&mut self.states[i], to).condition;
        if from == to.condition {
            return;
        }
        match from {
            ImplicitlyOpen => self.implicit.retain(|z| *z != zone),
            ExplicitlyOpen => self.explicit -= 1,
            Closed => self.closed -= 1,
            Empty => self.empty -= 1,
            Full => self.full -= 1,
            _ => {}
        }
        match to.condition {
            ImplicitlyOpen => self.implicit.push_back(zone),
            ExplicitlyOpen => self.explicit += 1,
            Closed => self.closed += 1,
            Empty => self.empty += 1,
            Full => self.full += 1,
            _ => {}
        }
        self.count_conditions();
    }

    /// Puts a zone into the state of a record. After a power cut nothing is open.
    pub(super) fn restore(&mut self, zone: u64, state: ZoneState) {
        self.set(zone, ZoneState { condition: at_rest(state), ..state });
    }

    /// Closes the zones that are open, as a power cut does.
    pub(super) fn close_open(&mut self) {
        let open: Vec<_> = self.used().filter(|(_, s)| s.condition.is_open()).collect();
        open.into_iter().for_each(|(zone, state)| self.restore(zone, state));
    }

    /// Whether a zone that is `from` can take resources of an open one, given that one that a write opened may be closed for it.
    fn has_room(&self, from: ZoneCondition) -> bool {
        let active = self.open() + self.closed;
        let may_open = self.open() < self.shape.most_open || !self.implicit.is_empty();
        from.is_open() || may_open && (from == Closed || active < self.shape.most_active)
    }

    /// Closes the zone that a write opened longest ago, where as many are open as can be.
    fn make_room(&mut self) {
        let oldest = self.implicit.front().copied().filter(|_| self.open() >= self.shape.most_open);
        if let Some((zone, state)) = oldest.and_then(|zone| Some((zone, self.state(zone)?))) {
            self.set(zone, ZoneState { condition: at_rest(state), ..state });
            self.evicted += 1;
        }
    }

    /// Whether `blocks` from `lba` may be written now.
    pub(super) fn may_write(&self, lba: Lba, blocks: Blocks) -> Result<(), Refused> {
        let first = self.shape.zone_of(lba.0);
        let end = lba.0 + blocks.0;
        let Some(state) = self.state(first) else {
            let conventional = self.shape.span(self.shape.conventional).start;
            let within = end <= conventional;
            return if within { Ok(()) } else { Err((Refusal::CrossesZone, Lba(conventional))) };
        };
        let span = self.shape.span(first);
        if lba.0 >= span.end {
            return Err((Refusal::Gap, lba));
        }
        match state.condition {
            Offline => return Err((Refusal::ZoneOffline, lba)),
            ReadOnly => return Err((Refusal::ZoneReadOnly, lba)),
            Full => return Err((Refusal::ZoneFull, lba)),
            _ => {}
        }
        if lba.0 != span.start + state.written || !blocks.0.is_multiple_of(PHYSICAL) {
            return Err((Refusal::NotAtPointer, lba));
        }
        if end > span.end {
            return Err((Refusal::CrossesZone, Lba(span.end)));
        }
        if self.has_room(state.condition) { Ok(()) } else { Err((Refusal::TooManyOpen, lba)) }
    }

    /// Moves the write pointer over a write that [`may_write`](Self::may_write) allows; answers the zone, unless it has none.
    #[inline]
    pub(super) fn wrote(&mut self, lba: Lba, blocks: Blocks) -> Option<u64> {
        let zone = self.shape.zone_of(lba.0);
        let state = self.state(zone)?;
        let written = state.written + blocks.0;
        let span = self.shape.span(zone);
        if !state.condition.is_open() {
            self.make_room();
        }
        let condition = match state.condition {
            _ if span.start + written == span.end => Full,
            ExplicitlyOpen => ExplicitlyOpen,
            _ => ImplicitlyOpen,
        };
        self.set(zone, ZoneState { condition, written });
        Some(zone)
    }

    /// Whether blocks of zones that take writes anywhere may be written or discarded: not where a zone has failed.
    pub(super) fn may_change(&self, lba: Lba, blocks: Blocks) -> Result<(), Refused> {
        for zone in self.shape.zone_of(lba.0)..=self.shape.zone_of(lba.0 + blocks.0 - 1) {
            let why = match self.state(zone).map(|s| s.condition) {
                Some(Offline) => Refusal::ZoneOffline,
                Some(ReadOnly) => Refusal::ZoneReadOnly,
                _ => continue,
            };
            return Err((why, Lba(lba.0.max(self.shape.span(zone).start))));
        }
        Ok(())
    }

    /// The write pointers behind a write to zones that take writes anywhere: each stands behind the last block that was written.
    pub(super) fn wrote_anywhere(&mut self, lba: Lba, blocks: Blocks) {
        let end = lba.0 + blocks.0;
        for zone in self.shape.zone_of(lba.0)..=self.shape.zone_of(end - 1) {
            let Some(state) = self.state(zone) else { continue };
            let span = self.shape.span(zone);
            let written = state.written.max(end.min(span.end) - span.start);
            let condition = match state.condition {
                Full => Full,
                _ if span.start + written == span.end => Full,
                open if open.is_open() => open,
                _ if self.has_room(state.condition) => {
                    self.make_room();
                    ImplicitlyOpen
                }
                _ => Closed,
            };
            self.set(zone, ZoneState { condition, written });
        }
    }

    /// Whether `blocks` from `lba` may be read. Above write pointers `zeroes` says whether zeroes are read, or nothing.
    pub(super) fn may_read(&self, lba: Lba, blocks: Blocks, zeroes: bool) -> Result<(), Refused> {
        let end = lba.0 + blocks.0;
        let (first, last) = (self.shape.zone_of(lba.0), self.shape.zone_of(end - 1));
        for zone in first..=last {
            let Some(state) = self.state(zone) else { continue };
            let span = self.shape.span(zone);
            let at = lba.0.max(span.start);
            if state.condition == Offline && at < span.end {
                return Err((Refusal::ZoneOffline, Lba(at)));
            }
            // The part of the request in this zone and the gap behind it.
            let upto = end.min(self.shape.slot(zone).end);
            let crosses = first != last || at < span.end && upto > span.end;
            if !zeroes && crosses {
                return Err((Refusal::CrossesZone, Lba(at)));
            }
            if upto > span.end {
                return Err((Refusal::Gap, Lba(at.max(span.end))));
            }
            if zeroes || state.condition == Full {
                continue;
            }
            let pointer = span.start + state.written;
            if end > pointer {
                return Err((Refusal::AbovePointer, Lba(at.max(pointer))));
            }
        }
        Ok(())
    }

    fn change(&mut self, zone: u64, to: ZoneState, changed: &mut dyn FnMut(u64, ZoneState)) {
        let Some(from) = self.state(zone) else { return };
        self.set(zone, to);
        if (at_rest(from), from.written) != (at_rest(to), to.written) {
            self.statistics.emptied = self.statistics.emptied.saturating_add(u32::from(to == FRESH));
            changed(zone, to);
        }
    }

    /// Makes a zone read-only or offline, as a failing head does; `false`: it has no write pointer.
    pub(super) fn fail(&mut self, zone: u64, condition: ZoneCondition) -> bool {
        let Some(state) = self.state(zone) else { return false };
        self.set(zone, ZoneState { condition, ..state });
        true
    }

    /// Zones that are not empty, with their states.
    pub(super) fn used(&self) -> impl Iterator<Item = (u64, ZoneState)> + '_ {
        let first = self.shape.conventional;
        (first..).zip(self.states.iter().copied()).filter(|(_, s)| *s != FRESH)
    }

    /// Zones by condition.
    #[inline]
    pub(super) fn counts(&self) -> ZoneCounts {
        ZoneCounts { empty: self.empty, open: self.open(), closed: self.closed, full: self.full }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        (self.states.capacity() * size_of::<ZoneState>() + self.implicit.capacity() * 8) as u64
    }
}

/// The condition of a zone that is open no more.
pub(super) fn at_rest(state: ZoneState) -> ZoneCondition {
    match state.condition {
        ImplicitlyOpen | ExplicitlyOpen if state.written == 0 => Empty,
        ImplicitlyOpen | ExplicitlyOpen => Closed,
        other => other,
    }
}
