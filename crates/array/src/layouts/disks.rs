//! The disks of a layout that survives losses: which are dead, and the rebuild of those that were replaced, one after the other.

use super::rebuild::Rebuild;
use crate::{Health, MemberId, MemberPlan, Record, Sink, Ticket};
use smrlab_stl::{Counted, HostRequest};
use smrlab_units::SimTime;
use std::collections::VecDeque;

/// What may befall disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// This disk is dead.
    Dead(u64),
    /// It was replaced: nothing of it is rebuilt.
    Replaced(u64),
    /// These units of the disk whose turn it is are rebuilt: the first one, and how many follow it.
    Rebuilt(u64, u64),
    /// All of that disk is.
    Whole,
    /// That disk cannot be rebuilt: it is dead again.
    GivenUp,
}

/// Tag of [`Event::GivenUp`]; those of the others are counted from the layout's first one for them.
const GIVEN_UP: u32 = 1 << 8;

impl Event {
    fn put(self, first: u32, to: &mut dyn Sink) {
        let (tag, word, more) = match self {
            Self::Dead(disk) => (first, disk, 0),
            Self::Replaced(disk) => (first + 1, disk, 0),
            Self::Rebuilt(unit, follow) => (first + 2, unit, follow),
            Self::Whole => (first + 3, 0, 0),
            Self::GivenUp => (GIVEN_UP, 0, 0),
        };
        to.push_all(tag, std::iter::once(word).chain((more > 0).then_some(more)));
    }

    fn of(first: u32, record: Record<'_>) -> Option<Self> {
        let word = record.word(0);
        if record.tag == GIVEN_UP {
            return Some(Self::GivenUp);
        }
        match record.tag.checked_sub(first)? {
            0 => Some(Self::Dead(word)),
            1 => Some(Self::Replaced(word)),
            2 => Some(Self::Rebuilt(word, record.word(1))),
            3 => Some(Self::Whole),
            _ => None,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Disks {
    tag: u32,
    /// How many may be dead.
    losses: u64,
    dead: Vec<bool>,
    degraded: bool,
    changes: u64,
    /// The rebuild under way, and those that wait for it.
    rebuild: Option<Rebuild>,
    /// Deaths there had been when it took its turn: units that were begun before are not its own.
    since: u64,
    waiting: VecDeque<Rebuild>,
    rebuilds: u64,
    rebuild_ns: u64,
}

impl Disks {
    /// So many, all whole, of which `losses` may be dead at a time; their records have the four tags from `tag` on, and one that
    /// all layouts share.
    pub fn new(disks: usize, losses: u64, tag: u32) -> Self {
        Self { tag, losses, dead: vec![false; disks], ..Self::default() }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.dead.len() as u64
    }

    /// A disk died, and not all that died are rebuilt.
    pub fn degraded(&self) -> bool {
        self.degraded
    }

    /// Deaths ever, so that works notice that something changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether a disk holds its part of a unit.
    #[inline]
    pub fn has(&self, disk: u64, unit: u64) -> bool {
        !self.dead[disk as usize] || self.rebuild.as_ref().is_some_and(|r| r.disk == disk && r.has(unit))
    }

    /// Those that can be asked, though perhaps not all rebuilt yet.
    pub fn answering(&self) -> impl Iterator<Item = MemberId> {
        let answers = |d: &u64| !self.dead[*d as usize] || self.target() == Some(*d);
        (0..self.count()).filter(answers).map(|d| MemberId(d as u32))
    }

    /// Asks all of those to flush; `false`: none is left, and nobody would ever answer.
    #[must_use]
    pub fn flush(&self, ticket: Ticket, r: &HostRequest, plan: &mut MemberPlan) -> bool {
        self.answering().for_each(|disk| plan.ask(ticket, disk, *r, |_| {}));
        self.answering().next().is_some()
    }

    /// Whether a disk is dead, or holds only some of what it should.
    pub fn is_dead(&self, member: MemberId) -> bool {
        self.dead.get(member.at()).is_some_and(|dead| *dead)
    }

    /// More are dead than it can stand.
    pub fn too_many(&self) -> bool {
        self.dead.iter().filter(|d| **d).count() as u64 > self.losses
    }

    /// The rebuild under way.
    pub fn rebuild(&self) -> Option<&Rebuild> {
        self.rebuild.as_ref()
    }

    /// The disk that is rebuilt.
    pub fn target(&self) -> Option<u64> {
        self.rebuild.as_ref().map(|r| r.disk)
    }

    /// The rebuild cannot go on: what its disk held is lost.
    pub fn give_up(&mut self, plan: &mut MemberPlan) {
        if self.rebuild.is_some() {
            // Units of it that are under way count for nothing.
            self.changes += 1;
            self.next();
            self.say(Event::GivenUp, plan);
        }
    }

    /// The disk that waits next is rebuilt from here on.
    fn next(&mut self) {
        (self.rebuild, self.since) = (self.waiting.pop_front(), self.changes);
    }

    fn lose(&mut self, disk: u64) {
        self.waiting.retain(|r| r.disk != disk);
        self.changes += 1;
        if self.target() == Some(disk) {
            self.next();
        }
        self.dead[disk as usize] = true;
        self.degraded = true;
    }

    /// A disk is dead.
    pub fn failed(&mut self, member: MemberId, plan: &mut MemberPlan) {
        self.lose(u64::from(member.0));
        self.say(Event::Dead(u64::from(member.0)), plan);
    }

    /// Whether a fresh disk in the place of this one, which is dead, would be rebuilt.
    pub fn rebuildable(&self, member: MemberId) -> bool {
        let dead = self.dead.iter().filter(|d| **d).count() as u64;
        self.is_dead(member) && dead <= self.losses
    }

    /// A fresh disk takes the place of a dead one: its rebuild begins, or waits.
    fn replaced(&mut self, disk: u64, rebuild: Rebuild) {
        self.waiting.retain(|r| r.disk != disk);
        if self.target() == Some(disk) {
            self.rebuild = None;
        }
        if rebuild.all_done() {
            return self.whole(disk);
        }
        self.waiting.push_back(rebuild);
        if self.rebuild.is_none() {
            self.next();
        }
    }

    /// A fresh disk takes the place of a dead one. Where not too many are dead, `rebuild` begins.
    pub fn replace(&mut self, member: MemberId, rebuild: impl FnOnce(u64) -> Rebuild, plan: &mut MemberPlan) {
        let disk = u64::from(member.0);
        if !self.rebuildable(member) {
            return;
        }
        let rebuild = rebuild(disk);
        let nothing = rebuild.all_done();
        self.replaced(disk, rebuild);
        self.say(Event::Replaced(disk), plan);
        if nothing {
            self.say(Event::Whole, plan);
        } else if self.target() == Some(disk) {
            self.put_rebuilt(plan.records_mut());
        }
    }

    fn whole(&mut self, disk: u64) {
        self.dead[disk as usize] = false;
        self.degraded = self.dead.iter().any(|d| *d);
    }

    /// How a disk is.
    pub fn health(&self, member: MemberId) -> Health {
        let disk = u64::from(member.0);
        match self.rebuild.iter().chain(&self.waiting).find(|r| r.disk == disk) {
            Some(rebuild) => {
                let (done, all) = rebuild.progress();
                Health::Rebuilding(done, all)
            }
            None if self.is_dead(member) => Health::Dead,
            None => Health::Whole,
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

    /// A unit that was begun when there had been `changes` deaths is rebuilt, whoever else died since.
    pub fn rebuilt(&mut self, unit: u64, changes: u64, plan: &mut MemberPlan) {
        let Some(rebuild) = self.rebuild.as_mut().filter(|_| changes >= self.since) else { return };
        rebuild.under_way = rebuild.under_way.saturating_sub(1);
        self.filled(unit, plan);
    }

    /// Whether a unit that was begun when there had been `changes` deaths is one of the rebuild under way.
    pub fn is_own(&self, changes: u64) -> bool {
        self.rebuild.is_some() && changes >= self.since
    }

    /// A unit of the disk that is rebuilt lacks nothing: it is, or it holds nothing yet and is written as on the other disks from here on.
    pub fn filled(&mut self, unit: u64, plan: &mut MemberPlan) {
        let Some(rebuild) = &mut self.rebuild else { return };
        let last = rebuild.finished(unit);
        let (disk, began) = (rebuild.disk, rebuild.began);
        self.say(Event::Rebuilt(unit, 0), plan);
        if last {
            self.rebuilds += 1;
            self.rebuild_ns += plan.now().since(began).0;
            self.next();
            if let Some(next) = &mut self.rebuild {
                (next.began, next.next_at) = (plan.now(), plan.now());
            }
            self.whole(disk);
            self.say(Event::Whole, plan);
        }
    }

    fn say(&self, event: Event, plan: &mut MemberPlan) {
        event.put(self.tag, plan.records_mut());
    }

    /// Takes a record that is about disks; `rebuild` is asked for what a replaced one begins with. Answers which disk it says is dead.
    pub fn recover(&mut self, record: Record<'_>, rebuild: impl FnOnce(u64) -> Rebuild) -> Option<MemberId> {
        match Event::of(self.tag, record)? {
            Event::Dead(disk) => {
                self.lose(disk);
                return Some(MemberId(disk as u32));
            }
            Event::Replaced(disk) => self.replaced(disk, rebuild(disk)),
            Event::Rebuilt(unit, follow) => {
                self.rebuild.iter_mut().for_each(|r| (unit..=unit + follow).for_each(|u| _ = r.finished(u)));
            }
            Event::GivenUp => self.next(),
            Event::Whole => {
                if let Some(disk) = self.target() {
                    self.next();
                    self.whole(disk);
                }
            }
        }
        None
    }

    /// The present state as records.
    pub fn checkpoint(&self, out: &mut dyn Sink) {
        let dead = (0..self.count()).filter(|d| self.dead[*d as usize]);
        dead.for_each(|d| Event::Dead(d).put(self.tag, out));
        for rebuild in self.rebuild.iter().chain(&self.waiting) {
            Event::Replaced(rebuild.disk).put(self.tag, out);
        }
        self.put_rebuilt(out);
    }

    /// What is rebuilt of the disk whose turn it is.
    fn put_rebuilt(&self, out: &mut dyn Sink) {
        let units: Vec<u64> = self.rebuild.iter().flat_map(Rebuild::rebuilt).collect();
        let runs = units.chunk_by(|a, b| a + 1 == *b);
        runs.for_each(|run| Event::Rebuilt(run[0], run.len() as u64 - 1).put(self.tag, out));
    }

    /// Bytes of memory of rebuilds.
    pub fn bytes(&self) -> u64 {
        self.rebuild.iter().chain(&self.waiting).map(|r| r.progress().1 * 4).sum()
    }

    /// Counters, where anything befell a disk.
    pub fn counters(&self, out: &mut Counted) {
        if self.degraded || self.rebuilds > 0 {
            out.level("disks_dead", self.dead.iter().filter(|d| **d).count() as u64);
            out.count("rebuilds", self.rebuilds);
            out.count("rebuild_ms", self.rebuild_ns / 1_000_000);
        }
        if let Some(rebuild) = &self.rebuild {
            let (done, all) = rebuild.progress();
            out.level("rebuild_units_done", done);
            out.level("rebuild_units", all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rebuild::Order;
    use super::*;
    use crate::Records;

    fn fresh(disk: u64) -> Rebuild {
        Rebuild::new(disk, 2, Order::Address, 1, SimTime::ZERO)
    }

    /// Two of four are dead and replaced: the second waits for the first, and both come back from records and from a checkpoint.
    #[test]
    fn the_second_replaced_disk_waits_for_the_first() {
        let mut disks = Disks::new(4, 2, 1);
        let mut plan = MemberPlan::new(false);
        let state = |d: &Disks| [0, 1, 2, 3].map(|i| d.health(MemberId(i)));
        disks.failed(MemberId(3), &mut plan);
        disks.failed(MemberId(1), &mut plan);
        assert!(disks.rebuildable(MemberId(1)) && !disks.rebuildable(MemberId(0)));
        disks.replace(MemberId(1), fresh, &mut plan);
        disks.replace(MemberId(3), fresh, &mut plan);
        disks.rebuilt(0, 2, &mut plan);
        assert!(disks.has(1, 0) && !disks.has(1, 1) && !disks.has(3, 0));
        let rebuilding = |done| Health::Rebuilding(done, 2);
        let middle = [Health::Whole, rebuilding(1), Health::Whole, rebuilding(0)];
        assert_eq!(state(&disks), middle);
        let mut kept = Records::default();
        disks.checkpoint(&mut kept);
        for records in [plan.records().clone(), kept] {
            let mut again = Disks::new(4, 2, 1);
            records.iter().for_each(|r| _ = again.recover(r, fresh));
            assert_eq!((state(&again), again.target()), (middle, Some(1)));
        }
        assert_eq!(disks.answering().map(|m| m.0).collect::<Vec<_>>(), [0, 1, 2], "who waits is not asked");
        disks.rebuilt(1, 2, &mut plan);
        assert_eq!((state(&disks)[1], disks.target()), (Health::Whole, Some(3)));
        // A third death, of the one that is being rebuilt: it is dead again.
        disks.failed(MemberId(3), &mut plan);
        assert_eq!((state(&disks)[3], disks.target()), (Health::Dead, None));
        let mut again = Disks::new(4, 2, 1);
        plan.records().iter().for_each(|r| _ = again.recover(r, fresh));
        assert_eq!(state(&again), state(&disks));
    }

    /// Of two disks the first takes 5 ms, the second, which waited, 4 ms more; the units of the one under way are told.
    #[test]
    fn rebuilds_are_counted_with_their_time() {
        let mut disks = Disks::new(4, 2, 1);
        let mut plan = MemberPlan::new(false);
        [3, 1].into_iter().for_each(|d| disks.failed(MemberId(d), &mut plan));
        [3, 1].into_iter().for_each(|d| disks.replace(MemberId(d), fresh, &mut plan));
        let told = [(0, 3, "2 0 0 1 2"), (1, 5, "1 1 5 0 2"), (1, 7, "1 1 5 1 2"), (0, 9, "0 2 9")];
        for (unit, ms, expected) in told {
            plan.begin(SimTime::from_ms(ms));
            disks.rebuilt(unit, disks.changes(), &mut plan);
            let mut counted = Counted::default();
            disks.counters(&mut counted);
            let all: Vec<String> = counted.iter().map(|(_, n)| n.to_string()).collect();
            assert_eq!(all.join(" "), expected, "at {ms} ms");
        }
    }

    /// A unit of disk 1 is written when disk 3, which waits, dies again: it counts. One that was begun for disk 1 before that died is not
    /// one of the fresh disk's.
    #[test]
    fn another_death_does_not_stop_a_rebuild() {
        let mut disks = Disks::new(4, 2, 1);
        let mut plan = MemberPlan::new(false);
        [3, 1].into_iter().for_each(|d| disks.failed(MemberId(d), &mut plan));
        [1, 3].into_iter().for_each(|d| disks.replace(MemberId(d), fresh, &mut plan));
        assert_eq!(disks.begin(SimTime::ZERO, SimTime::ZERO), Some(0));
        let begun = disks.changes();
        disks.failed(MemberId(3), &mut plan);
        disks.rebuilt(0, begun, &mut plan);
        assert_eq!((disks.has(1, 0), disks.next_at(1)), (true, Some(SimTime::ZERO)));
        assert_eq!(disks.begin(SimTime::ZERO, SimTime::ZERO), Some(1));
        let begun = disks.changes();
        disks.failed(MemberId(1), &mut plan);
        disks.replace(MemberId(1), fresh, &mut plan);
        disks.rebuilt(1, begun, &mut plan);
        assert_eq!((disks.target(), disks.has(1, 1)), (Some(1), false));
    }

    /// Two units at a time, but the second not before 50 ns have passed.
    #[test]
    fn a_rebuild_keeps_its_pace() {
        let mut disks = Disks::new(3, 1, 1);
        let mut plan = MemberPlan::new(false);
        disks.failed(MemberId(0), &mut plan);
        disks.replace(MemberId(0), fresh, &mut plan);
        assert_eq!(disks.begin(SimTime(100), SimTime(50)), Some(0));
        assert_eq!((disks.next_at(1), disks.next_at(2)), (None, Some(SimTime(150))));
    }

    /// The one that waits and then the one that is rebuilt are replaced once more: the rebuild of each begins anew, and comes once.
    #[test]
    fn a_disk_that_is_replaced_again_is_rebuilt_once() {
        let (mut disks, mut plan) = (Disks::new(4, 2, 1), MemberPlan::new(false));
        [3, 1].into_iter().for_each(|d| disks.failed(MemberId(d), &mut plan));
        [1, 3, 3].into_iter().for_each(|d| disks.replace(MemberId(d), fresh, &mut plan));
        disks.filled(0, &mut plan);
        disks.replace(MemberId(1), fresh, &mut plan);
        for disk in [3, 1] {
            assert_eq!((disks.target(), disks.has(disk, 0)), (Some(disk), false));
            (0..2).for_each(|unit| disks.filled(unit, &mut plan));
        }
        assert!(disks.target().is_none() && !disks.degraded());
    }

    /// Of disk 1 nothing can be made any more: it is dead, and not whole, also for who hears that from records, and disk 3 has its turn. A
    /// unit that was begun for disk 1 is none of it.
    #[test]
    fn a_disk_whose_rebuild_was_given_up_is_dead() {
        let (mut disks, mut plan) = (Disks::new(4, 2, 1), MemberPlan::new(false));
        [3, 1].into_iter().for_each(|d| disks.failed(MemberId(d), &mut plan));
        [1, 3].into_iter().for_each(|d| disks.replace(MemberId(d), fresh, &mut plan));
        assert_eq!(disks.begin(SimTime::ZERO, SimTime::ZERO), Some(0));
        let begun = disks.changes();
        disks.give_up(&mut plan);
        disks.rebuilt(0, begun, &mut plan);
        let mut again = Disks::new(4, 2, 1);
        plan.records().iter().for_each(|r| _ = again.recover(r, fresh));
        for disks in [disks, again] {
            let health = [1, 3].map(|d| disks.health(MemberId(d)));
            assert_eq!(health, [Health::Dead, Health::Rebuilding(0, 2)]);
            assert_eq!((disks.target(), disks.degraded()), (Some(3), true));
        }
    }

    /// More deaths than parities: nothing is rebuilt.
    #[test]
    fn what_is_lost_is_not_rebuilt() {
        let mut disks = Disks::new(3, 1, 1);
        let mut plan = MemberPlan::new(false);
        [0, 2].into_iter().for_each(|d| disks.failed(MemberId(d), &mut plan));
        disks.replace(MemberId(0), fresh, &mut plan);
        assert_eq!((disks.health(MemberId(0)), disks.target()), (Health::Dead, None));
    }
}
