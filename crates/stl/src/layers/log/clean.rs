//! Compaction: which band, and what is read, written and recorded for it.
//!
//! A compaction is planned without a change of the layer's state, as records; applying them is what recovery does too. So
//! a step in idle time is the same compaction, applied when its last operation has ended.

use super::options::classes;
use super::{BandState, LogLayer, records};
use crate::parts::moves;
use crate::parts::victim::{Candidate, Victim};
use crate::{Cause, Plan, Record, TranslationLayer};
use smrlab_units::Blocks;

/// Where what is moved goes: the open band of a head, as the plan so far leaves it.
struct Target {
    band: Option<u32>,
    written: u32,
}

impl LogLayer {
    /// Cleans until the reserve is free again.
    pub(super) fn make_room(&mut self, plan: &mut Plan) {
        while self.free.len() < self.reserve {
            let victim = self.cleaning.or_else(|| self.choose(false));
            let victim = victim.expect("the spare bands hold more than open and free bands do");
            let mut step = std::mem::take(&mut self.step);
            if self.plan_compaction(victim, plan, &mut step) {
                self.durable();
            }
            step.iter().for_each(|r| self.apply(r));
            step.clear();
            self.step = step;
        }
    }

    /// The band to clean; in idle time only one that is worth it.
    pub(super) fn choose(&self, ripe: bool) -> Option<u32> {
        if let Some(band) = self.oldest_hot() {
            return Some(band);
        }
        if self.options.victim == Victim::Greedy && !ripe {
            return self.homes.emptiest();
        }
        let closed = self.bands.iter().enumerate().filter(|(_, b)| b.state == BandState::Closed);
        let candidates = closed.map(|(i, b)| Candidate {
            band: i as u32,
            slots: self.slots().count(i as u32),
            live: self.homes.live(i as u32),
            age: self.clock - b.stamp,
            heat: self.homes.weight(i as u32),
        });
        self.options.victim.choose(candidates.filter(|c| !ripe || self.is_ripe(c.band)))
    }

    /// Of too many bands with hot units the oldest one in which something is dead.
    fn oldest_hot(&self) -> Option<u32> {
        let most = f64::from(self.slots().band_count()) * self.options.hot_bands?;
        if f64::from(self.hot) <= most {
            return None;
        }
        let mut oldest: Option<(u64, u32)> = None;
        for (band, b) in (0..).zip(&self.bands) {
            let older = oldest.is_none_or(|(stamp, _)| b.stamp < stamp);
            if older && self.is_hot(b) && self.dead(band) > 0 {
                oldest = Some((b.stamp, band));
            }
        }
        oldest.map(|(_, band)| band)
    }

    /// Plans the compaction of one band, and lists what it changes; answers whether the plan has a fence.
    pub(super) fn plan_compaction(&self, victim: u32, plan: &mut Plan, out: &mut Vec<Record>) -> bool {
        let first = plan.ops().len();
        note(records::cleaning(victim), plan, out);
        let staged = moves::stage(&self.homes, victim, Cause::Defrag, plan);
        let separate = self.options.separate;
        let mut of_class = [Vec::new(), Vec::new()];
        for s in &staged {
            of_class[self.class(s.live.unit, separate.cooled(s.live.note)) as usize].push(*s);
        }
        let (mut ahead, mut fenced) = (0, false);
        for (class, units) in (0..classes(separate)).zip(&of_class) {
            let head = self.survivors_head(victim, class);
            let band = self.heads[head as usize];
            let mut target = Target { band, written: band.map_or(0, |b| self.homes.written(b)) };
            let mut rest = &units[..];
            while !rest.is_empty() {
                let band = target.band.unwrap_or_else(|| {
                    let (band, due) = self.free.peek(ahead).expect("the reserve holds every victim");
                    if due && !fenced {
                        plan.fence();
                        fenced = true;
                    }
                    ahead += 1;
                    note(records::opened(band, head), plan, out);
                    target.written = 0;
                    band
                });
                let room = self.slots().count(band) - target.written;
                let part;
                (part, rest) = rest.split_at(rest.len().min(room as usize));
                let pba = self.homes.slots().pba_in(band, target.written);
                moves::write(&self.homes, pba, part, Cause::Defrag, plan);
                moves::runs(part).for_each(|(unit, n)| note(records::moved(unit, n, head), plan, out));
                target.written += part.len() as u32;
                target.band = (part.len() < room as usize).then_some(band);
            }
        }
        note(records::freed(victim), plan, out);
        if !staged.is_empty() {
            let relocated = Blocks(staged.len() as u64 * self.slots().unit());
            plan.cleaned("compaction", first, relocated);
        }
        fenced
    }

    /// The head to which survivors of a band go: of the stream that filled it.
    fn survivors_head(&self, victim: u32, class: u32) -> u32 {
        let classes = classes(self.options.separate);
        let of_host = self.options.streams * classes;
        let stream = self.bands[victim as usize].head % of_host / classes;
        stream * classes + class + if self.options.own { of_host } else { 0 }
    }
}

fn note(record: Record, plan: &mut Plan, out: &mut Vec<Record>) {
    plan.record(record);
    out.push(record);
}
