//! Dirty pages that the array within refused to take. They stay on the SSD, where reads find them, and keep their room.
//!
//! They are tried again when something below may have changed: all of them when a drive was replaced or a rebuild is over; one group
//! at a time, as a probe, when the host flushes or a write finds no room. If the array takes a page of the probe, the others follow. A
//! write that a probe has made no room for is refused with the reason of the array within.

use super::{Cached, Stage};
use crate::{MemberPlan, Ticket};
use smrlab_stl::Refusal;
use std::collections::BTreeSet;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Refused {
    /// They are no policy's until they are tried again.
    pages: BTreeSet<u64>,
    /// Pages of the probe under way.
    probe: BTreeSet<u64>,
    /// The page from which on the next probe is looked for.
    next: u64,
    /// A probe was made for the writes that wait.
    pub(super) probed: bool,
    /// The array within was rebuilding when it was looked at last.
    rebuilding: bool,
    /// Why the last of them was refused.
    why: Refusal,
    /// How often a page was refused.
    pub(super) count: u64,
}

impl Default for Refused {
    fn default() -> Self {
        let (pages, probe, why) = (BTreeSet::new(), BTreeSet::new(), Refusal::Lost);
        Self { pages, probe, next: 0, probed: false, rebuilding: false, why, count: 0 }
    }
}

impl Refused {
    /// Whether a page was refused, and not tried again since.
    pub(super) fn has(&self, page: u64) -> bool {
        self.pages.contains(&page)
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    /// A page was refused.
    pub(super) fn put(&mut self, page: u64, why: Refusal) {
        self.probe.remove(&page);
        self.pages.insert(page);
        self.why = why;
        self.count += 1;
    }

    /// A page is dirty no more.
    pub(super) fn forget(&mut self, page: u64) {
        self.pages.remove(&page);
    }

    /// The array within took a page; answers whether it was one of the probe.
    pub(super) fn taken(&mut self, page: u64) -> bool {
        self.probe.remove(&page)
    }

    /// Takes out the pages of the group whose turn it is.
    pub(super) fn next_group(&mut self, size: u64) -> Option<u64> {
        let page = self.pages.range(self.next..).next().or_else(|| self.pages.first()).copied()?;
        let group = page / size;
        self.next = (group + 1) * size;
        self.probe = self.pages.range(group * size..self.next).copied().collect();
        self.pages.retain(|page| !self.probe.contains(page));
        Some(group)
    }
}

impl Cached {
    /// Tries a group again, where nothing is being destaged anyway; answers whether it does.
    pub(super) fn probe(&mut self, plan: &mut MemberPlan) -> bool {
        if !self.destaging.is_empty() {
            return false;
        }
        let Some(group) = self.refused.next_group(self.settings.group) else { return false };
        self.destage(group, plan);
        true
    }

    /// All may be taken now: they are dirty as any others.
    pub(super) fn try_again(&mut self, plan: &mut MemberPlan) {
        let size = self.settings.group;
        let groups: BTreeSet<u64> = self.refused.pages.iter().map(|page| page / size).collect();
        self.refused.probe.clear();
        if groups.is_empty() {
            return;
        }
        self.refused.pages.clear();
        groups.into_iter().for_each(|group| self.destage_policy.touched(group));
        self.destage_more(plan);
    }

    /// A write at the front that no room is made for.
    fn stalled(&self) -> Option<Ticket> {
        let &ticket = self.waiting.front()?;
        let Some(Stage::Turn(r, done)) = self.stages.get(ticket) else { return None };
        let stalls = self.caches(r)
            && !self.has_room(r, *done)
            && self.refused.len() > 0
            && [&self.writing, &self.changing].iter().all(|under_way| under_way.0.is_empty())
            && self.destaging.is_empty();
        stalls.then_some(ticket)
    }

    /// What follows from what the array within has done last.
    pub(super) fn look_at_refused(&mut self, plan: &mut MemberPlan) {
        if self.refused.len() == 0 {
            return;
        }
        let rebuilding = self.inner.unfinished();
        if std::mem::replace(&mut self.refused.rebuilding, rebuilding) && !rebuilding {
            self.try_again(plan);
        }
        while let Some(ticket) = self.stalled() {
            if !std::mem::replace(&mut self.refused.probed, true) && self.probe(plan) {
                return;
            }
            self.stages.remove(ticket);
            plan.refuse(ticket, self.refused.why);
            self.admit(plan);
        }
    }
}
