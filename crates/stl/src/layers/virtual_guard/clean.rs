//! Giving rows back: all rows of one band that are away go home, in ascending order.
//!
//! A row that goes home destroys what follows it, so the live rows behind it go to the cache first. Then the band's rows
//! are written from the cache, and a cut leaves each of them in one of the two places.

use super::{Victim, VirtualGuard, records};
use crate::parts::rows::{At, Row, Span};
use crate::{Cause, Plan, Record, TranslationLayer};
use smrlab_disk::BandId;
use smrlab_units::Blocks;
use std::cmp::Reverse;

impl VirtualGuard {
    /// Cleans the band that is next.
    pub(super) fn clean(&mut self, plan: &mut Plan) {
        let band = self.next_band().expect("slots are taken by rows of some band");
        let mut step = std::mem::take(&mut self.step);
        // The same rows behind the copies: those are away then.
        let rows = self.rewritten(band);
        if self.plan_copies(band, &rows, plan, &mut step) {
            step.drain(..).for_each(|r| self.apply(&r));
            self.durable();
        }
        self.plan_return(&rows, plan, &mut step);
        self.discarded = false;
        step.drain(..).for_each(|r| self.apply(&r));
        self.step = step;
    }

    /// A step in idle time: the copies for a cleaning, or where all is in the cache the rest of it.
    pub(super) fn plan_step(&self, plan: &mut Plan, out: &mut Vec<Record>) {
        let Some(band) = self.next_band() else { return };
        let rows = self.rewritten(band);
        if !self.plan_copies(band, &rows, plan, out) {
            self.plan_return(&rows, plan, out);
        }
    }

    pub(super) fn next_band(&self) -> Option<u64> {
        // The first of them is away.
        let of_oldest = || self.held[self.slot(self.order.front()?.0)? as usize].map(|held| held.band.into());
        let fullest = || {
            let away = (0..).zip(&self.by_band).filter(|b| *b.1 > 0);
            away.max_by_key(|&(band, n)| (n, Reverse(band))).map(|b| b.0)
        };
        self.cleaning.or_else(|| match self.victim {
            Victim::Oldest => of_oldest(),
            Victim::Fullest => fullest(),
        })
    }

    /// The rows of a band that have to be written when those that are away go home.
    fn rewritten(&self, band: u64) -> Vec<Row> {
        let band = self.places.bands.band(BandId(band));
        let end = band.first.0 + band.blocks.0;
        let (mut rows, mut row) = (Vec::new(), self.rows.at(band.first));
        // How many rows further on the last one that is written does harm.
        let mut harm = 0;
        while self.rows.first(row).0 < end {
            let span = self.rows.first(row).0..self.rows.end(row).0;
            let away = self.slot(row).is_some();
            if away || (harm > 0 && self.live.set().contains_any(span)) {
                rows.push(row);
                harm = self.drive.head_width() - 1;
            } else {
                harm = u64::saturating_sub(harm, 1);
            }
            row = self.rows.next(row);
        }
        rows
    }

    /// Plans the copies of those `rows` of a band that are at home; `false`: all are in the cache.
    fn plan_copies(&self, band: u64, rows: &[Row], plan: &mut Plan, out: &mut Vec<Record>) -> bool {
        let (first, mut moved, mut copied) = (plan.ops().len(), 0, 0);
        let mut fenced = false;
        for &row in rows {
            if self.slot(row).is_some() {
                continue;
            }
            if copied == 0 {
                out.push(records::cleaning(band));
                plan.record(records::cleaning(band));
            }
            if !fenced && self.free.peek(copied).is_some_and(|(_, due)| due) {
                plan.fence();
                fenced = true;
            }
            let (record, blocks) = self.copy(row, copied, plan);
            out.push(record);
            (moved, copied) = (moved + blocks, copied + 1);
        }
        if copied > 0 {
            plan.cleaned("guard-copies", first, Blocks(moved));
            // From here on writes in front of these rows destroy their homes.
            plan.fence();
        }
        copied > 0
    }

    /// Plans the way home of `rows`, which are in the cache.
    fn plan_return(&self, rows: &[Row], plan: &mut Plan, out: &mut Vec<Record>) {
        if self.discarded {
            plan.fence();
        }
        let (first, mut moved) = (plan.ops().len(), 0);
        for &row in rows {
            let slot = self.slot(row).expect("copied before");
            let home = self.rows.first(row);
            let all = home.0..self.rows.end(row).0;
            let pba = self.places.slots[slot as usize];
            let mut span = Span::default();
            moved += span.stage(self.live.set(), all, At { number: home.0, pba, cause: Cause::Clean }, plan);
            span.write(home, Cause::Clean, plan);
            out.push(records::home(row));
            plan.record(records::home(row));
        }
        plan.cleaned("guard-return", first, Blocks(moved));
    }
}
