//! Which groups of dirty pages are destaged, and when.

use super::pages::Page;
use super::policy::Dirty;
use super::{Cached, Settings, Task};
use crate::MemberPlan;
use std::collections::VecDeque;
use std::ops::Range;

impl Cached {
    /// Dirty pages of a group that may be destaged.
    pub(super) fn destageable(&self, group: u64) -> impl Iterator<Item = (u64, &Page)> {
        let all = self.dirty.range(self.settings.group_pages(group));
        all.filter(|(page, _)| !self.refused.has(*page))
    }

    /// How many groups may be under way now.
    fn allowed(&mut self) -> u64 {
        let (dirty, Settings { high, low, depth, write, .. }) = (self.dirty.len(), self.settings);
        self.draining = dirty > high || (self.draining && dirty > low);
        let by_level = if self.settings.rate {
            // The controller of STOW: nothing at the low mark, all at the high one.
            (depth * dirty.saturating_sub(low)).div_ceil((high - low).max(1)).min(depth)
        } else if self.draining {
            depth
        } else {
            0
        };
        // Who waits for room has one.
        by_level.max(u64::from(!self.waiting.is_empty() && dirty >= write))
    }

    /// Dirty pages beside those of groups that are under way. These count as gone: more at a time do not empty the cache below its
    /// low mark.
    fn staying(&self) -> u64 {
        let going = self.destaging.iter().map(|group| self.destageable(*group).count() as u64);
        self.dirty.len() - going.sum::<u64>()
    }

    /// Begins to destage what should be.
    pub(super) fn destage_more(&mut self, plan: &mut MemberPlan) {
        let allowed = self.allowed();
        let full = self.dirty.len() >= self.settings.write;
        let mut unripe = VecDeque::new();
        while (self.destaging.len() as u64) < allowed
            && (self.staying() > self.settings.low || (full && self.destaging.is_empty()))
        {
            let Some(group) = self.next_group() else { break };
            let pages: Vec<u64> = self.destageable(group).map(|(page, _)| page).collect();
            if self.destaging.contains(&group) || pages.is_empty() {
                continue;
            }
            match self.ripe(&pages) {
                Some(ripe) if ripe.is_empty() => unripe.push_back(group),
                _ => self.destage(group, plan),
            }
        }
        // Where the host waits for room, one goes as it is.
        if full
            && self.destaging.is_empty()
            && let Some(group) = unripe.pop_front()
        {
            self.destage(group, plan);
        }
        unripe.into_iter().for_each(|group| self.destage_policy.touched(group));
    }

    /// A group is destaged as soon as its stripes are free.
    pub(super) fn destage(&mut self, group: u64, plan: &mut MemberPlan) {
        self.destaging.push(group);
        plan.job(Task::Destage(group));
    }

    /// The policy's next group.
    fn next_group(&mut self) -> Option<u64> {
        let (dirty, refused, settings) = (&self.dirty, &self.refused, self.settings);
        self.destage_policy.victim(&|group| {
            let all = settings.group_pages(group);
            let mut pages = dirty.range(all.clone()).filter(|(page, _)| !refused.has(*page));
            let first = pages.next().map_or(0, |(page, _)| page - all.start);
            Dirty { pages: 1 + pages.count() as u64, first, of: settings.group }
        })
    }

    /// Those of a group's pages that the array within wants now; `None`: it does not matter.
    pub(super) fn ripe(&self, pages: &[u64]) -> Option<Vec<u64>> {
        let spans: Vec<Range<u64>> = pages.iter().map(|page| self.settings.page_span(*page)).collect();
        let ripe = self.inner.ripe(&spans)?;
        // A page is wanted where all of it is.
        let all = |page: &u64| {
            let page = self.settings.page_span(*page);
            let within = |r: &Range<u64>| r.end.min(page.end).saturating_sub(r.start.max(page.start));
            ripe.iter().map(within).sum::<u64>() == self.settings.page
        };
        Some(pages.iter().copied().filter(all).collect())
    }
}
