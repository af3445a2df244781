//! Destaging: dirty pages of a group are read from the SSD and written to the array within.

use super::pages::{self, Page};
use super::policy::Dirty;
use super::{Cached, DirtyChange, SLOT, Settings, SsdSlot, Stage, Task};
use crate::plan::Outcome;
use crate::{End, MemberPlan, Phase, Ticket};
use smrlab_stl::{Cause, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;

/// A page that was read.
#[derive(Clone, Copy, Debug)]
struct PageRead {
    page: u64,
    stamp: u64,
}

/// A group that is being destaged.
#[derive(Clone, Debug, Default)]
pub(super) struct Destage {
    group: u64,
    /// Its pages, as they were when they were read.
    pages: Vec<PageRead>,
    /// Runs of the host's blocks, ascending and apart; the slot holds one after the other.
    runs: Vec<Range<u64>>,
    /// Runs that the array within has done or is doing; all at once where it takes them so.
    next: usize,
    /// Those that it refused, and why.
    refused: Vec<Range<u64>>,
    why: Option<Refusal>,
    /// Where in the slot that is which it is doing.
    pub(super) at: u64,
}

impl Destage {
    /// The array within refused what it was asked for last. A run of several pages is tried page by page.
    fn turned_down(&mut self, why: Refusal, size: u64, at_once: bool) {
        self.why = Some(why);
        if at_once {
            return self.refused.clone_from(&self.runs);
        }
        let last = self.next - 1;
        let run = self.runs[last].clone();
        let pages = run.start / size..run.end.div_ceil(size);
        if pages.end - pages.start == 1 {
            return self.refused.push(run);
        }
        self.next = last;
        let each = pages.map(|page| run.start.max(page * size)..run.end.min((page + 1) * size));
        self.runs.splice(last..=last, each);
    }

    fn is_refused(&self, page: &Range<u64>) -> bool {
        self.refused.iter().any(|run| run.start < page.end && page.start < run.end)
    }
}

impl Cached {
    /// A request for all of a group.
    pub(super) fn group_request(&self, group: u64) -> HostRequest {
        let size = self.settings.group * self.settings.page;
        let (start, end) = (group * size, ((group + 1) * size).min(self.inner.host_blocks().0));
        HostRequest::new(HostOp::Write, Lba(start), Blocks(end - start))
    }

    fn group_pages(&self, group: u64) -> Range<u64> {
        group * self.settings.group..(group + 1) * self.settings.group
    }

    /// Dirty pages of a group that may be destaged.
    fn own(&self, group: u64) -> impl Iterator<Item = (u64, &Page)> {
        self.dirty.range(self.group_pages(group)).filter(|(page, _)| !self.refused.has(*page))
    }

    /// How many groups may be destaged at a time now.
    fn allowed(&mut self) -> u64 {
        let (n, Settings { high, low, depth, rate, .. }) = (self.dirty.len(), self.settings);
        self.draining = n > high || (self.draining && n > low);
        match rate {
            // The controller of STOW: nothing at the low mark, all at the high one.
            true if n > low => (depth * (n - low)).div_ceil((high - low).max(1)).min(depth),
            true => 0,
            false => {
                if self.draining {
                    depth
                } else {
                    0
                }
            }
        }
        .max(u64::from(!self.waiting.is_empty() && n >= self.settings.write))
    }

    /// Begins to destage what should be.
    pub(super) fn destage_more(&mut self, plan: &mut MemberPlan) {
        let allowed = self.allowed();
        if self.destaging.len() as u64 >= allowed {
            return;
        }
        // Groups that had better wait for more.
        let mut unripe = Vec::new();
        // What is on its way to the disks counts as gone: more at a time do not empty the cache below its low mark.
        let going = self.destaging.iter().map(|g| self.own(*g).count() as u64);
        let mut left = self.dirty.len() - going.sum::<u64>();
        let full = self.dirty.len() >= self.settings.write;
        while (self.destaging.len() as u64) < allowed
            && (left > self.settings.low || (full && self.destaging.is_empty()))
        {
            let (dirty, refused, size) = (&self.dirty, &self.refused, self.settings.group);
            let tell = |group: u64| {
                let pages = dirty.range(group * size..(group + 1) * size);
                let mut pages = pages.filter(|(page, _)| !refused.has(*page));
                let first = pages.next().map_or(0, |p| p.0 - group * size);
                Dirty { pages: 1 + pages.count() as u64, first, of: size }
            };
            let Some(group) = self.evict.victim(&tell) else { break };
            let own: Vec<u64> = self.own(group).map(|(page, _)| page).collect();
            if self.destaging.contains(&group) || own.is_empty() {
                continue;
            }
            if self.ripe(&own).is_some_and(|pages| pages.is_empty()) {
                unripe.push(group);
                continue;
            }
            self.destaging.push(group);
            left -= own.len() as u64;
            plan.job(Task::Destage(group));
        }
        // Where the host waits for room, one goes as it is.
        if full && self.destaging.is_empty() && !unripe.is_empty() {
            let group = unripe.remove(0);
            self.destaging.push(group);
            plan.job(Task::Destage(group));
        }
        unripe.into_iter().for_each(|group| self.evict.touched(group));
    }

    /// Those of a group's pages that the array within wants now; `None`: it does not matter.
    fn ripe(&self, pages: &[u64]) -> Option<Vec<u64>> {
        let size = self.settings.page;
        let blocks: Vec<Range<u64>> = pages.iter().map(|p| p * size..(p + 1) * size).collect();
        let ripe = self.inner.ripe(&blocks)?;
        // A page is wanted where all of it is.
        let all = |p: &u64| {
            let within = |r: &Range<u64>| r.end.min((p + 1) * size).saturating_sub(r.start.max(p * size));
            ripe.iter().map(within).sum::<u64>() == size
        };
        Some(pages.iter().copied().filter(all).collect())
    }

    pub(super) fn start_destage(&mut self, ticket: Ticket, group: u64, plan: &mut MemberPlan) {
        let own = self.own(group).map(|(n, p)| (n, *p));
        // A page that is being written keeps its place until that is done. What a discard is under way for is not wanted on the disks.
        let size = self.settings.page;
        let (late, own): (Vec<_>, Vec<_>) =
            own.partition(|(n, _)| self.changing.meets(&(n * size..(n + 1) * size)));
        if !late.is_empty() {
            self.late.insert(group);
        }
        let own = own.into_iter();
        let mut chosen: Vec<(u64, Page)> =
            own.filter(|(n, _)| !self.writing.meets(&(n * size..(n + 1) * size))).collect();
        let pages: Vec<u64> = chosen.iter().map(|(page, _)| *page).collect();
        if let Some(ripe) = self.ripe(&pages).filter(|ripe| !ripe.is_empty()) {
            chosen.retain(|(page, _)| ripe.contains(page));
        }
        let batch = self.settings.batch as usize;
        if batch > 0 && chosen.len() > batch {
            chosen.sort_unstable_by_key(|(n, p)| (p.stamp, *n));
            chosen.truncate(batch);
            chosen.sort_unstable_by_key(|(n, _)| *n);
        }
        let mut destage = Destage { group, ..Destage::default() };
        let mut at = 0;
        for (page, found) in chosen {
            destage.pages.push(PageRead { page, stamp: found.stamp });
            pages::runs(found.valid, |r| {
                let n = Blocks(r.end - r.start);
                let lba = self.on_ssd(SsdSlot { of_reads: false, slot: found.slot }, r.start);
                let read = HostRequest::new(HostOp::Read, lba, n).because(Cause::Destage);
                plan.ask(ticket, self.settings.ssd, read, |p| p.push(n, End::Slot(SLOT, Blocks(at))));
                at += n.0;
                let run = page * self.settings.page + r.start..page * self.settings.page + r.end;
                match destage.runs.last_mut().filter(|last| last.end == run.start) {
                    Some(last) => last.end = run.end,
                    None => destage.runs.push(run),
                }
            });
        }
        self.counts.destages += 1;
        self.counts.destaged_pages += destage.pages.len() as u64;
        self.counts.destaged_blocks += at;
        if destage.runs.is_empty() {
            return self.destaged(ticket, destage, plan);
        }
        self.stages.put(ticket, Stage::Destage(destage));
    }

    /// A phase of a destage is over.
    pub(super) fn destage_phase(&mut self, phase: Phase, destage: Destage, plan: &mut MemberPlan) {
        let (ticket, begun) = (phase.ticket, destage.next > 0);
        self.stages.put(ticket, Stage::Destage(destage));
        let outcome = match begun {
            true => self.within(Some(ticket), plan, |inner, own| inner.complete(phase, own)),
            // All is read from the SSD.
            false => self.write_next(ticket, plan),
        };
        self.run_over(ticket, outcome, plan);
    }

    /// Has the array within write the next run, or all of them where it takes them so.
    fn write_next(&mut self, ticket: Ticket, plan: &mut MemberPlan) -> Option<Outcome> {
        let Some(Stage::Destage(destage)) = self.stages.get_mut(ticket) else { return None };
        if self.inner.takes_runs() {
            let runs = destage.runs.clone();
            destage.next = runs.len();
            return self.within(Some(ticket), plan, |inner, own| inner.start_runs(ticket, &runs, own));
        }
        destage.at = destage.runs[..destage.next].iter().map(|r| r.end - r.start).sum();
        let run = destage.runs[destage.next].clone();
        destage.next += 1;
        let write = HostRequest::new(HostOp::Write, Lba(run.start), Blocks(run.end - run.start));
        self.ask_inner(ticket, write, plan)
    }

    /// The array within went on with a run, or ended it: then the next one follows.
    pub(super) fn run_over(&mut self, ticket: Ticket, mut outcome: Option<Outcome>, plan: &mut MemberPlan) {
        while let Some(ended) = outcome {
            let Some(Stage::Destage(mut destage)) = self.stages.take(ticket) else { return };
            if let Outcome::Refused(_, why) = ended {
                destage.turned_down(why, self.settings.page, self.inner.takes_runs());
            }
            if destage.next == destage.runs.len() {
                return self.destaged(ticket, destage, plan);
            }
            self.stages.put(ticket, Stage::Destage(destage));
            outcome = self.write_next(ticket, plan);
        }
    }

    /// The pages that were not written again meanwhile are clean, and their places are free; those that were refused stay.
    fn destaged(&mut self, ticket: Ticket, destage: Destage, plan: &mut MemberPlan) {
        let (size, mut probed) = (self.settings.page, false);
        for &PageRead { page, stamp } in &destage.pages {
            let Some(found) = self.dirty.get(page) else { continue };
            if let Some(why) = destage.why.filter(|_| destage.is_refused(&(page * size..(page + 1) * size))) {
                self.refused.put(page, why);
                continue;
            }
            probed |= self.refused.taken(page);
            if found.stamp == stamp {
                self.dirty.remove(page);
                plan.record(&DirtyChange::Gone(page));
            }
        }
        self.destaging.retain(|g| *g != destage.group);
        // Pages that are being written come back when they are.
        let left = self.own(destage.group).next().is_some();
        if left && destage.next > 0 {
            self.evict.touched(destage.group);
        }
        plan.end(ticket);
        if probed {
            self.try_again(plan);
        }
        self.admit(plan);
        self.destage_more(plan);
    }
}
