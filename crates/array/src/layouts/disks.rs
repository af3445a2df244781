//! The disks of a layout that survives a loss: which are dead, and the rebuild of the one that was replaced.

use super::rebuild::Rebuild;
use crate::{Health, MemberId, MemberPlan};
use smrlab_stl::Record;
use smrlab_units::SimTime;

/// [`Record`], counted from the layout's first tag for them: this disk is dead.
const DEAD: u32 = 0;
/// It was replaced: nothing of it is rebuilt.
const REPLACED: u32 = 1;
/// This unit of it is rebuilt.
const REBUILT: u32 = 2;
/// All of it is.
const WHOLE: u32 = 3;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Disks {
    tag: u32,
    dead: Vec<bool>,
    degraded: bool,
    changes: u64,
    rebuild: Option<Rebuild>,
    rebuilds: u64,
    rebuild_ns: u64,
}

impl Disks {
    /// So many, all whole; their records have the four tags from `tag` on.
    pub fn new(disks: u64, tag: u32) -> Self {
        let dead = vec![false; disks as usize];
        Self { tag, dead, degraded: false, changes: 0, rebuild: None, rebuilds: 0, rebuild_ns: 0 }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.dead.len() as u64
    }

    /// A disk died, and not all that died are rebuilt.
    #[inline]
    pub fn degraded(&self) -> bool {
        self.degraded
    }

    /// Deaths ever, so that works notice that something changed.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether a disk holds its part of a unit.
    #[inline]
    pub fn has(&self, disk: u64, unit: u64) -> bool {
        !self.dead[disk as usize] || self.rebuild.as_ref().is_some_and(|r| r.disk == disk && r.has(unit))
    }

    /// Those that can be asked, though perhaps not rebuilt yet.
    pub fn answering(&self) -> impl Iterator<Item = MemberId> {
        let alive = |d: &usize| !self.dead[*d];
        (0..self.dead.len()).filter(alive).map(|d| MemberId(d as u32))
    }

    /// The rebuild under way.
    pub fn rebuild(&self) -> Option<&Rebuild> {
        self.rebuild.as_ref()
    }

    /// The disk that is rebuilt.
    pub fn target(&self) -> Option<u64> {
        self.rebuild.as_ref().map(|r| r.disk)
    }

    /// The rebuild cannot go on.
    pub fn give_up(&mut self) {
        self.rebuild = None;
    }

    fn lose(&mut self, disk: u64) {
        self.rebuild = self.rebuild.take().filter(|r| r.disk != disk);
        self.dead[disk as usize] = true;
        self.degraded = true;
        self.changes += 1;
    }

    /// A disk is dead.
    pub fn failed(&mut self, member: MemberId, plan: &mut MemberPlan) {
        self.lose(u64::from(member.0));
        self.say(DEAD, u64::from(member.0), &mut |r| plan.record(r));
    }

    /// A fresh disk takes the place of a dead one: `true` where it is the only one that is dead.
    fn replaced(&mut self, disk: u64, rebuild: impl FnOnce(u64) -> Rebuild) -> bool {
        let alone = self.dead.iter().filter(|d| **d).count() == 1 && self.dead[disk as usize];
        if alone {
            self.rebuild = Some(rebuild(disk)).filter(|r| !r.all_done());
            if self.rebuild.is_none() {
                self.whole(disk);
            }
        }
        alone
    }

    /// A fresh disk takes the place of a dead one. Where no other is dead, `rebuild` begins.
    pub fn replace(&mut self, member: MemberId, rebuild: impl FnOnce(u64) -> Rebuild, plan: &mut MemberPlan) {
        let disk = u64::from(member.0);
        if self.replaced(disk, rebuild) {
            self.say(REPLACED, disk, &mut |r| plan.record(r));
            if self.rebuild.is_none() {
                self.say(WHOLE, 0, &mut |r| plan.record(r));
            }
        }
    }

    fn whole(&mut self, disk: u64) {
        self.dead[disk as usize] = false;
        self.degraded = self.dead.iter().any(|d| *d);
    }

    /// How a disk is.
    pub fn health(&self, member: MemberId) -> Health {
        match &self.rebuild {
            Some(rebuild) if rebuild.disk == u64::from(member.0) => {
                let (done, all) = rebuild.progress();
                Health::Rebuilding(done, all)
            }
            _ if self.dead.get(member.at()).is_some_and(|dead| *dead) => Health::Dead,
            _ => Health::Whole,
        }
    }

    /// When the next unit may be begun, `depth` at a time.
    #[inline]
    pub fn next_at(&self, depth: u64) -> Option<SimTime> {
        let open = |r: &&Rebuild| r.under_way < depth && !r.all_begun();
        self.rebuild.as_ref().filter(open).map(|r| r.next_at)
    }

    /// The next unit to begin; the one after it not before `pace` has passed.
    pub fn begin(&mut self, now: SimTime, pace: SimTime) -> Option<u64> {
        let rebuild = self.rebuild.as_mut()?;
        let unit = rebuild.begin()?;
        rebuild.next_at = now + pace;
        Some(unit)
    }

    /// A unit that was begun when there had been `changes` deaths is rebuilt.
    pub fn rebuilt(&mut self, now: SimTime, unit: u64, changes: u64, plan: &mut MemberPlan) {
        let Some(rebuild) = self.rebuild.as_mut().filter(|_| changes == self.changes) else { return };
        rebuild.under_way = rebuild.under_way.saturating_sub(1);
        let last = rebuild.finished(unit);
        let (disk, began) = (rebuild.disk, rebuild.began);
        self.say(REBUILT, unit, &mut |r| plan.record(r));
        if last {
            self.rebuilds += 1;
            self.rebuild_ns += now.since(began).0;
            self.rebuild = None;
            self.whole(disk);
            self.say(WHOLE, 0, &mut |r| plan.record(r));
        }
    }

    fn say(&self, tag: u32, word: u64, out: &mut dyn FnMut(Record)) {
        out(Record { tag: self.tag + tag, words: [word, 0, 0] });
    }

    /// Takes a record that is about disks; `rebuild` is asked for what a replaced one begins with.
    pub fn recover(&mut self, record: &Record, rebuild: impl FnOnce(u64) -> Rebuild) {
        let word = record.words[0];
        match record.tag.checked_sub(self.tag) {
            Some(DEAD) => self.lose(word),
            Some(REPLACED) => _ = self.replaced(word, rebuild),
            Some(REBUILT) => _ = self.rebuild.as_mut().map(|r| r.finished(word)),
            Some(WHOLE) => {
                if let Some(rebuild) = self.rebuild.take() {
                    self.whole(rebuild.disk);
                }
            }
            _ => {}
        }
    }

    /// The present state as records.
    pub fn checkpoint(&self, out: &mut dyn FnMut(Record)) {
        let dead = (0..self.count()).filter(|d| self.dead[*d as usize]);
        dead.for_each(|d| self.say(DEAD, d, out));
        if let Some(rebuild) = &self.rebuild {
            self.say(REPLACED, rebuild.disk, out);
            rebuild.rebuilt().for_each(|unit| self.say(REBUILT, unit, out));
        }
    }

    /// Bytes of memory of a rebuild.
    pub fn bytes(&self) -> u64 {
        self.rebuild.as_ref().map_or(0, |r| r.progress().1 * 4)
    }

    /// Counters, where anything befell a disk.
    pub fn counters(&self, out: &mut dyn FnMut(&'static str, u64)) {
        if self.degraded || self.rebuilds > 0 {
            out("disks_dead", self.dead.iter().filter(|d| **d).count() as u64);
            out("rebuilds", self.rebuilds);
            out("rebuild_ms", self.rebuild_ns / 1_000_000);
        }
        if let Some(rebuild) = &self.rebuild {
            let (done, all) = rebuild.progress();
            out("rebuild_units_done", done);
            out("rebuild_units", all);
        }
    }
}
