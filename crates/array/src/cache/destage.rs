//! How a group is destaged: its pages are read from the SSD into one slot, and the array within writes them from there, a run of blocks
//! at a time, or all runs at once where it [takes them so](crate::Array::takes_runs). [Which group, and when](super::schedule) is decided elsewhere.

use super::pages::{self, Page, Part, meet};
use super::{Cached, DirtyChange, SLOT, Settings, Stage};
use crate::plan::Outcome;
use crate::{End, MemberPlan, Ticket};
use smrlab_stl::{Cause, HostRequest, Refusal};
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;

/// A group that is being destaged.
#[derive(Clone, Debug, Default)]
pub(super) struct Destage {
    group: u64,
    /// Its pages, as they were when they were read.
    pages: Vec<(u64, Page)>,
    /// Their runs of the host's blocks, ascending and apart; the slot holds one after the other.
    runs: Vec<Range<u64>>,
    /// Which of the runs the array within is asked to write now; those before them are done.
    asked: Range<usize>,
    /// Runs that it refused, and why.
    refused: Vec<(Range<u64>, Refusal)>,
}

fn blocks(runs: &[Range<u64>]) -> Blocks {
    Blocks(runs.iter().map(|run| run.end - run.start).sum())
}

impl Destage {
    fn new(group: u64, pages: Vec<(u64, Page)>, settings: &Settings) -> Self {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (page, found) in &pages {
            let start = settings.page_span(*page).start;
            pages::runs(found.valid, |run| match runs.last_mut() {
                Some(last) if last.end == start + run.start => last.end = start + run.end,
                _ => runs.push(start + run.start..start + run.end),
            });
        }
        Self { group, pages, runs, ..Self::default() }
    }

    /// Where in the slot that is which the array within writes now.
    pub(super) fn in_slot(&self) -> Blocks {
        blocks(&self.runs[..self.asked.start])
    }

    /// The array within refused what it was asked for. A run of several pages is tried page by page.
    fn turned_down(&mut self, why: Refusal, page: u64, at_once: bool) {
        let runs = &self.runs[self.asked.clone()];
        let by_page: Vec<Range<u64>> =
            runs.iter().flat_map(|run| Part::of(run, page)).map(|p| p.span(page)).collect();
        if at_once || by_page.len() == 1 {
            return self.refused.extend(runs.iter().map(|run| (run.clone(), why)));
        }
        self.runs.splice(self.asked.clone(), by_page);
        self.asked.end = self.asked.start;
    }

    /// Why blocks of a page were refused, if they were.
    fn refusal(&self, page: &Range<u64>) -> Option<Refusal> {
        self.refused.iter().find(|(run, _)| meet(run, page)).map(|(_, why)| *why)
    }
}

impl Cached {
    /// A request for all of a group.
    pub(super) fn group_request(&self, group: u64) -> HostRequest {
        let size = self.settings.group * self.settings.page;
        let (start, end) = (group * size, ((group + 1) * size).min(self.inner.host_blocks().0));
        HostRequest::new(HostOp::Write, Lba(start), Blocks(end - start))
    }

    /// The stripes of a group are free: its pages are read from the SSD.
    pub(super) fn start_destage(&mut self, ticket: Ticket, group: u64, plan: &mut MemberPlan) {
        let pages = self.choose(group);
        let read = HostRequest::new(HostOp::Read, Lba(0), Blocks::ZERO).because(Cause::Destage);
        let mut at = Blocks::ZERO;
        for (_, found) in &pages {
            self.ask_ssd(ticket, &read, (found.slot, found.valid), plan, |run| {
                let here = at;
                at += Blocks(run.end - run.start);
                End::Slot(SLOT, here)
            });
        }
        let destage = Destage::new(group, pages, &self.settings);
        self.counts.destages += 1;
        self.counts.destaged_pages += destage.pages.len() as u64;
        self.counts.destaged_blocks += blocks(&destage.runs).0;
        if destage.runs.is_empty() {
            return self.destaged(ticket, &destage, plan);
        }
        self.stages.put(ticket, Stage::ReadPages(destage));
    }

    /// Which pages of a group go now.
    fn choose(&mut self, group: u64) -> Vec<(u64, Page)> {
        let (settings, mut left) = (self.settings, false);
        let mut chosen: Vec<(u64, Page)> =
            self.destageable(group).map(|(page, found)| (page, *found)).collect();
        chosen.retain(|(page, _)| {
            let span = settings.page_span(*page);
            // What a discard is under way for is not wanted on the disks.
            let discarded = self.changing.meets(&span);
            left |= discarded;
            // A page that is being written keeps its place until that is done.
            !discarded && !self.writing.meets(&span)
        });
        if left {
            self.left_for_discards.insert(group);
        }
        let pages: Vec<u64> = chosen.iter().map(|(page, _)| *page).collect();
        if let Some(ripe) = self.ripe(&pages).filter(|ripe| !ripe.is_empty()) {
            chosen.retain(|(page, _)| ripe.contains(page));
        }
        let batch = settings.batch as usize;
        if batch > 0 && chosen.len() > batch {
            // The oldest ones, in the order of the disks.
            chosen.sort_unstable_by_key(|(page, found)| (found.stamp, *page));
            chosen.truncate(batch);
            chosen.sort_unstable_by_key(|(page, _)| *page);
        }
        chosen
    }

    /// Has the array within write the next run, or all of them where it takes them so.
    fn write_next(&mut self, ticket: Ticket, plan: &mut MemberPlan) -> Option<Outcome> {
        let Some(Stage::Destage(destage)) = self.stages.get_mut(ticket) else { return None };
        if self.inner.takes_runs() {
            let runs = destage.runs.clone();
            destage.asked = 0..runs.len();
            return self.within(Some(ticket), plan, |inner, own| inner.start_runs(ticket, &runs, own));
        }
        let next = destage.asked.end;
        destage.asked = next..next + 1;
        let run = &destage.runs[next];
        let write = HostRequest::new(HostOp::Write, Lba(run.start), Blocks(run.end - run.start));
        self.ask_inner(ticket, write, plan)
    }

    /// The pages are read: the array within writes them.
    pub(super) fn write_pages(&mut self, ticket: Ticket, destage: Destage, plan: &mut MemberPlan) {
        self.stages.put(ticket, Stage::Destage(destage));
        let outcome = self.write_next(ticket, plan);
        self.runs_over(ticket, outcome, plan);
    }

    /// The array within ended or refused what it was asked for, and the next run follows; or (`None`) it goes on with it.
    pub(super) fn runs_over(&mut self, ticket: Ticket, mut outcome: Option<Outcome>, plan: &mut MemberPlan) {
        while let Some(ended) = outcome {
            let Some(Stage::Destage(mut destage)) = self.stages.take(ticket) else { return };
            if let Outcome::Refused(_, why) = ended {
                destage.turned_down(why, self.settings.page, self.inner.takes_runs());
            }
            if destage.asked.end == destage.runs.len() {
                return self.destaged(ticket, &destage, plan);
            }
            self.stages.put(ticket, Stage::Destage(destage));
            outcome = self.write_next(ticket, plan);
        }
    }

    /// The pages that were not written again meanwhile are clean, and their places are free; those that were refused stay.
    fn destaged(&mut self, ticket: Ticket, destage: &Destage, plan: &mut MemberPlan) {
        let mut probe_taken = false;
        for &(page, read) in &destage.pages {
            let Some(found) = self.dirty.get(page) else { continue };
            if let Some(why) = destage.refusal(&self.settings.page_span(page)) {
                self.refused.put(page, why);
                continue;
            }
            probe_taken |= self.refused.taken(page);
            if found.stamp == read.stamp {
                self.dirty.remove(page);
                plan.record(DirtyChange::Gone(page));
            }
        }
        self.destaging.retain(|group| *group != destage.group);
        // Pages that are being written come back when they are.
        if !destage.runs.is_empty() && self.destageable(destage.group).next().is_some() {
            self.destage_policy.touched(destage.group);
        }
        plan.end(ticket);
        if probe_taken {
            self.try_again(plan);
        }
        self.admit(plan);
        self.destage_more(plan);
    }
}
