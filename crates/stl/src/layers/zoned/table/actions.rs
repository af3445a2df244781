//! What the host has done with zones beside writing: opening, closing, finishing, resetting one, several or all.

use super::{FRESH, Refused, Table, ZoneState, at_rest};
use crate::{HostRequest, Refusal};
use smrlab_units::{Lba, ZoneAction};
use std::ops::Range;

use smrlab_units::ZoneCondition::{Closed, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};

impl Table {
    /// Does something with the zones of which a command has a block; `changed` is told of each that a power cut would leave otherwise than before. Each
    /// must be one that can be acted on, or nothing changes. Of a command to all zones those are meant to which the action applies: open
    /// and closed ones are finished, closed ones opened.
    pub(in super::super) fn act(
        &mut self,
        action: ZoneAction,
        r: &HostRequest,
        changed: &mut dyn FnMut(u64, ZoneState),
    ) -> Result<(), Refused> {
        let range = r.span();
        let first = self.shape.zone_of(range.start);
        // What begins in the gap behind a zone does not mean that zone.
        let first = first + u64::from(range.start >= self.shape.span(first).end);
        let zones = first..self.shape.zone_of(range.end - 1) + 1;
        if zones.is_empty() {
            return Err((Refusal::Unsupported, Lba(range.start)));
        }
        let with_pointers = zones.start.max(self.shape.conventional)..zones.end;
        if r.all_zones {
            return self.act_on_all(action, with_pointers, changed);
        }
        if zones.end - zones.start == 1 {
            return self.act_on(action, zones.start, changed);
        }
        self.act_on_each(action, with_pointers, changed)
    }

    /// Acts on those zones to which the action applies.
    fn act_on_all(
        &mut self,
        action: ZoneAction,
        zones: Range<u64>,
        changed: &mut dyn FnMut(u64, ZoneState),
    ) -> Result<(), Refused> {
        let applies = |s: &ZoneState| match action {
            ZoneAction::Open => s.condition == Closed,
            ZoneAction::Close => s.condition.is_open(),
            ZoneAction::Finish => s.condition.is_open() || s.condition == Closed,
            ZoneAction::Reset => s.condition.is_open() || matches!(s.condition, Closed | Full),
        };
        let meant: Vec<u64> = zones.filter(|z| self.state(*z).as_ref().is_some_and(applies)).collect();
        if action == ZoneAction::Open && self.explicit + meant.len() as u64 > self.shape.most_open {
            return Err((Refusal::TooManyOpen, Lba(self.shape.span(meant[0]).start)));
        }
        for zone in meant {
            match (action, self.state(zone)) {
                // Resources are not asked for: the zones have theirs, or need them for no time.
                (ZoneAction::Finish, Some(state)) => {
                    self.change(zone, ZoneState { condition: Full, ..state }, changed)
                }
                _ => self.act_on(action, zone, changed)?,
            }
        }
        Ok(())
    }

    /// Acts on each of several zones, or on none of them.
    fn act_on_each(
        &mut self,
        action: ZoneAction,
        zones: Range<u64>,
        changed: &mut dyn FnMut(u64, ZoneState),
    ) -> Result<(), Refused> {
        let (before, mut told) = (self.clone(), Vec::new());
        for zone in zones {
            if let Err(refused) = self.act_on(action, zone, &mut |zone, state| told.push((zone, state))) {
                *self = before;
                return Err(refused);
            }
        }
        told.into_iter().for_each(|(zone, state)| changed(zone, state));
        Ok(())
    }

    fn act_on(
        &mut self,
        action: ZoneAction,
        zone: u64,
        changed: &mut dyn FnMut(u64, ZoneState),
    ) -> Result<(), Refused> {
        let at = Lba(self.shape.span(zone).start);
        let state = self.state(zone).ok_or((Refusal::Unsupported, at))?;
        let to = match (action, state.condition) {
            (_, Offline) => return Err((Refusal::ZoneOffline, at)),
            (_, ReadOnly) => return Err((Refusal::ZoneReadOnly, at)),
            (ZoneAction::Reset, _) => FRESH,
            (_, Full) => state,
            (ZoneAction::Close, ImplicitlyOpen | ExplicitlyOpen) => {
                ZoneState { condition: at_rest(state), ..state }
            }
            (ZoneAction::Close, _) | (ZoneAction::Open, ExplicitlyOpen) => state,
            (ZoneAction::Open | ZoneAction::Finish, from) => {
                if !self.has_room(from) {
                    return Err((Refusal::TooManyOpen, at));
                }
                if !from.is_open() {
                    self.make_room();
                }
                let condition = if action == ZoneAction::Open { ExplicitlyOpen } else { Full };
                ZoneState { condition, ..state }
            }
        };
        self.change(zone, to, changed);
        Ok(())
    }
}
