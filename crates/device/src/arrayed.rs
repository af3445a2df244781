//! An array of drives with real bytes: the layout says which disk does what, each disk's layer moves its own bytes.
//!
//! The members are drives as they are served alone, each with a store and a log of its own; what the array itself must
//! remember is in its ledger. Requests are carried out under one lock; without modelled time each thread drives its own
//! request to its end, and a rebuild goes on between them.

pub(crate) mod aged;
mod member_bytes;
mod ssd;
mod status;

use crate::changes::Entries;
use crate::clock::{Call, ModelClock};
use crate::disk::Opened;
use crate::engine::{Engine, StateFile, about};
use crate::error::{DeviceError, Result};
use crate::ledger::{Found, Ledger};
use crate::medium::{Medium, with_gaps};
use crate::members::Members;
use crate::stats::Events;
use crate::table::{Next, Requests, Server, Table};
use member_bytes::MemberBytes;
use parking_lot::MutexGuard;
use serde_json::{Value, json};
use smrlab_array::{BuiltArray, Counts, EventLoop, Health, Member, MemberId};
use smrlab_drive::Drive;
use smrlab_stl::{HostBuffer, HostRequest};
use smrlab_units::{Blocks, Lba, SimTime};
use ssd::SsdBytes;
use status::taken_up;
use std::convert::Infallible;
use std::sync::Arc;

/// Events and steps of background work before others get the lock.
const STEPS: usize = 16;
/// Of these, so many rounds before there is another look at whether a checkpoint is due.
const ROUNDS: usize = 64;

/// What is behind the lock.
struct LockedArray {
    event_loop: EventLoop,
    bytes: MemberBytes,
    /// Requests take the model's time; else each thread drives its own request to its end.
    timed: bool,
    /// What the array had counted when counting began.
    before: Counts,
}

fn drive(event_loop: &EventLoop, disk: usize) -> Option<&Drive> {
    event_loop.members().nth(disk)?.drive()
}

impl LockedArray {
    /// Has the event_loop do something.
    fn call<T>(
        &mut self,
        act: impl FnOnce(&mut EventLoop, &mut MemberBytes) -> std::result::Result<T, Infallible>,
    ) -> T {
        let Ok(done) = act(&mut self.event_loop, &mut self.bytes);
        while let Some(&member) = self.bytes.doomed.first() {
            let Ok(()) = self.event_loop.fail(self.event_loop.now(), member, &mut self.bytes);
            self.bytes.doomed.remove(0);
        }
        while let Some(done) = self.event_loop.next_done() {
            self.bytes.answer(&done);
        }
        done
    }

    fn health(&self, disk: usize) -> Health {
        self.event_loop.array().health(MemberId(disk as u32))
    }

    /// Disks that take part.
    fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.bytes.disks.len()).filter(|d| self.health(*d) != Health::Dead)
    }

    /// Brings the array to where it was; disks that are `missing` die.
    fn recover(&mut self, found: &Found, missing: Vec<MemberId>) -> Result<()> {
        self.call(|c, bytes| c.recover(&found.records, found.stop, bytes));
        let (ledger, events) = (self.bytes.ledger.clone(), self.bytes.events.clone());
        taken_up(found.stop, ledger.as_deref(), &events)?;
        for member in missing {
            if self.health(member.at()) != Health::Dead {
                events.push("disk-failed", None, format!("the store of disk {} is missing", member.0));
                self.call(|c, bytes| c.fail(SimTime::ZERO, member, bytes));
            }
        }
        let Some(ledger) = ledger.filter(|_| !found.formed) else { return Ok(()) };
        self.bytes.sync_members()?;
        ledger.formed()
    }

    /// Does some of the work that is due and that no request waits for; answers whether there may be more.
    fn step(&mut self, now: SimTime) -> bool {
        let until = if self.timed { now } else { now.max(self.event_loop.now()) };
        self.call(|c, bytes| {
            let mut more = false;
            for _ in 0..STEPS {
                more |= c.step(Some(until), bytes)?;
            }
            Ok(more | c.idle_step(now, bytes)?)
        })
    }
}

impl Server for LockedArray {
    fn requests(&mut self) -> &mut Requests {
        &mut self.bytes.requests
    }

    fn broken(&self) -> Option<&DeviceError> {
        self.bytes.broken.as_ref()
    }

    fn submit(
        &mut self,
        now: SimTime,
        request: &HostRequest,
        host: &mut HostBuffer<'_>,
    ) -> Result<Option<SimTime>> {
        self.bytes.requests.enter(request, host);
        let timed = self.timed;
        self.call(|c, bytes| {
            if timed {
                c.advance(now, bytes)?;
            }
            c.submit(now.max(c.now()), request, bytes)
        });
        Ok(None)
    }

    fn go_on(&mut self, now: SimTime) -> Result<Next> {
        if self.timed {
            self.call(|c, bytes| c.advance(now, bytes));
            return Ok(self.event_loop.next_event().map_or(Next::Nothing, Next::At));
        }
        let until = now.max(self.event_loop.now());
        let more = self.call(|c, bytes| Ok(c.step(Some(until), bytes)? || c.step(None, bytes)?));
        Ok(if more { Next::More } else { Next::Nothing })
    }
}

/// See the [module](self). Positions and lengths are in blocks.
pub struct Arrayed {
    table: Table<LockedArray>,
    ledger: Option<Arc<Ledger>>,
    events: Arc<Events>,
    members: Members,
    survives_cut: bool,
    discards: bool,
    blocks: u64,
}

impl Arrayed {
    /// An array on its disks, brought to where its ledger says it was.
    ///
    /// # Errors
    /// When what recovery has to write cannot be written.
    pub(crate) fn new(
        BuiltArray { array, ssds }: BuiltArray,
        members: Members,
        disks: Vec<Opened>,
        (ledger, found): (Option<Ledger>, Found),
        events: Arc<Events>,
    ) -> Result<Self> {
        let ssds = (0..).zip(ssds).map(|(i, ssd)| members.ssd(i, ssd, found.formed));
        let (ssds, on_ssds): (Vec<_>, Vec<_>) = ssds.collect::<Result<_>>()?;
        let (survives_cut, discards) = (members.survive_cut(&disks), members.discard(&disks));
        let missing = (0..).zip(&disks).filter(|(_, disk)| disk.fresh && found.formed);
        let missing: Vec<_> = missing.map(|(i, _)| MemberId(i)).collect();
        let started: Result<(Vec<_>, Vec<_>)> = disks.into_iter().map(Opened::start).collect();
        let (mut drives, on_disks) = started?;
        if let Some(ledger) = &ledger {
            on_disks.iter().try_for_each(|disk| disk.medium.sync().map(drop))?;
            on_ssds.iter().try_for_each(|ssd| ssd.sync())?;
            ledger.opened()?;
        }
        drives.extend(ssds.into_iter().map(Member::Ssd));
        let ledger = ledger.map(Arc::new);
        let blocks = array.host_blocks().0;
        let chosen = &members.chosen;
        let event_loop =
            EventLoop::new(array, drives, Vec::new(), chosen.schedule.clone(), true).records_wait();
        let event_loop = if members.by_step { event_loop.background_by_step() } else { event_loop };
        let bytes = MemberBytes::new((on_disks, on_ssds), ledger.clone(), events.clone(), chosen);
        let mut state = LockedArray { event_loop, bytes, timed: members.timed(), before: Counts::default() };
        state.recover(&found, missing)?;
        Ok(Self { table: Table::new(state), ledger, events, members, survives_cut, discards, blocks })
    }

    /// How many disks it has.
    pub fn disks(&self) -> usize {
        self.members.chosen.disks as usize
    }

    /// Writes checkpoints of disks and array where they are due.
    ///
    /// # Errors
    /// What the operating system answers.
    fn checkpoint(&self, anyway: bool) -> Result<()> {
        for disk in 0..self.disks() {
            let Some(medium) = self.medium(disk as u64) else { continue };
            let lock = || {
                let state = self.table.lock();
                (state.bytes.broken.is_none() && drive(&state.event_loop, disk).is_some()).then_some(state)
            };
            medium.checkpoint_with(anyway, lock, |state, out| {
                drive(&state.event_loop, disk).into_iter().for_each(|drive| drive.layer().checkpoint(out));
            })?;
        }
        let Some(ledger) = self.ledger.as_ref().filter(|l| l.wants_checkpoint(anyway)) else { return Ok(()) };
        self.sync()?;
        let mut state = self.table.lock();
        // The array's tables are to say what is on the disks.
        self.table.call(&mut *state, |s| s.call(|c, bytes| c.write_back(bytes)));
        if state.bytes.broken.is_some() || !state.event_loop.array().is_settled() {
            return Ok(());
        }
        let mut entries = Entries::default();
        state.event_loop.array().checkpoint(&mut entries);
        state.bytes.sync_members()?;
        ledger.checkpoint(entries)
    }

    /// Ends the works under way; answers how many changes of members that took in all.
    fn wind_up(&self) -> Result<u64> {
        let mut state = self.table.lock();
        if state.bytes.broken.is_none() {
            self.table.call(&mut *state, |s| s.call(|c, bytes| c.wind_up(bytes)));
        }
        state.bytes.broken.clone().map_or(Ok(state.bytes.changes), Err)
    }

    /// The server ends, all being durable. Whoever wrote since it [was wound up](Self::wind_up) has work that the next one is to look at.
    fn ends(&self, wound_up: u64) -> Result<()> {
        let state = self.table.lock();
        let ledger = self.ledger.as_ref().filter(|_| state.bytes.changes == wound_up);
        ledger.map_or(Ok(()), |ledger| ledger.closed())
    }

    fn disk(&self, disk: u64) -> Result<usize> {
        let disks = self.disks() as u64;
        if disk < disks {
            return Ok(disk as usize);
        }
        Err(DeviceError::input(format!("there is no disk {disk}: the array has disks 0 to {}", disks - 1)))
    }

    /// A disk dies.
    ///
    /// # Errors
    /// When there is no such disk, or it is dead.
    pub fn fail(&self, clock: &ModelClock, disk: u64) -> Result<Value> {
        let at = self.disk(disk)?;
        let mut state = self.table.lock();
        if state.health(at) == Health::Dead {
            return Err(DeviceError::input(format!("disk {disk} is dead already")));
        }
        let now = clock.now();
        self.table.call(&mut *state, |s| s.call(|c, bytes| c.fail(now, MemberId(disk as u32), bytes)));
        drop(state);
        self.events.push("disk-failed", None, format!("disk {disk} was declared dead"));
        self.sync()?;
        Ok(self.health())
    }

    /// A fresh drive takes the place of a dead disk; what was on that is rebuilt in the background.
    ///
    /// # Errors
    /// When the disk is not dead, or what was on it cannot be rebuilt.
    pub fn replace(&self, clock: &ModelClock, disk: u64) -> Result<Value> {
        let at = self.disk(disk)?;
        if self.members.chosen.capabilities().losses == 0 {
            let text = format!(
                "{} has no redundancy: what was on disk {disk} is lost",
                self.members.chosen.resolved
            );
            return Err(DeviceError::input(text + "; create the device anew"));
        }
        let mut state = self.table.lock();
        if state.health(at) != Health::Dead {
            let text = format!("disk {disk} is not dead: smrlab device fail NAME --disk {disk} first");
            return Err(DeviceError::input(text));
        }
        if !state.event_loop.array().rebuildable(MemberId(disk as u32)) {
            let whole = |d: &usize| *d == at || state.health(*d) == Health::Whole;
            let others: Vec<String> =
                (0..state.bytes.disks.len()).filter(|d| !whole(d)).map(|d| d.to_string()).collect();
            let text = format!(
                "disk {} is not whole either: what was on disk {disk} cannot be rebuilt",
                others.join(" or ")
            );
            return Err(DeviceError::input(text));
        }
        let (drive, bytes) = self.members.fresh(disk as u32)?.start()?;
        let (now, member) = (clock.now(), MemberId(disk as u32));
        state.bytes.renew(member, bytes);
        self.table.call(&mut *state, |s| s.call(|c, bytes| c.replace(now, member, drive, bytes)));
        drop(state);
        self.events.push("disk-replaced", None, format!("disk {disk} was replaced: it is being rebuilt"));
        self.sync()?;
        Ok(self.health())
    }
}

impl Engine for Arrayed {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn discards(&self) -> bool {
        self.discards
    }

    fn medium(&self, disk: u64) -> Option<Arc<Medium>> {
        self.table.lock().bytes.disks.get(disk as usize).map(|d| d.medium.clone())
    }

    fn serve(&self, call: Call<'_>, request: HostRequest, host: HostBuffer<'_>) -> Result<SimTime> {
        self.table.serve(call, request, host)
    }

    /// First the disks and the SSD, then the array's records, which say what is on them.
    fn sync(&self) -> Result<()> {
        let (disks, ssds, upto) = {
            let state = self.table.lock();
            let of = |d: usize| (d, state.bytes.disks[d].medium.clone(), state.bytes.disks[d].changes);
            let disks: Vec<_> = state.alive().map(of).collect();
            let ssds: Vec<_> = state.bytes.ssds.iter().map(SsdBytes::store).collect();
            (disks, ssds, self.ledger.as_ref().map(|l| l.position()))
        };
        for (_, medium, _) in &disks {
            medium.sync()?;
        }
        ssds.iter().try_for_each(|ssd| ssd.sync())?;
        if let (Some(ledger), Some(upto)) = (&self.ledger, upto) {
            ledger.sync(upto)?;
        }
        let mut state = self.table.lock();
        // What was recorded meanwhile is not covered.
        if self.ledger.as_ref().is_some_and(|ledger| ledger.is_durable()) {
            state.event_loop.durable();
        }
        for (disk, medium, before) in disks {
            let LockedArray { event_loop, bytes, .. } = &mut *state;
            let own = bytes.disks.get(disk).filter(|own| Arc::ptr_eq(&own.medium, &medium));
            if let (Some(own), Some(drive)) = (own, event_loop.drive_mut(MemberId(disk as u32))) {
                own.synced(before, drive);
            }
        }
        Ok(())
    }

    fn extents(&self, start: u64, blocks: u64, out: &mut dyn FnMut(u64, u64, bool)) {
        let mut ranges = Vec::new();
        let state = self.table.lock();
        state.event_loop.array().allocated(Lba(start), Blocks(blocks), &mut |r| ranges.push(r));
        drop(state);
        with_gaps(start..start + blocks, ranges, out);
    }

    /// Rebuild, collection, the disks' own work.
    fn idle(&self, clock: &ModelClock) -> Result<()> {
        if let Some(mut state) = self.table.try_lock() {
            for _ in 0..ROUNDS {
                if state.bytes.broken.is_some() {
                    break;
                }
                if !self.table.call(&mut *state, |s| s.step(clock.now())) {
                    let resting = self.ledger.as_ref().filter(|_| state.event_loop.is_at_rest());
                    resting.map_or(Ok(()), |ledger| ledger.rest())?;
                    break;
                }
                MutexGuard::bump(&mut state);
            }
        }
        self.checkpoint(false)
    }

    /// For the end of the server; works of the array's own are not left half done. One that an error stopped does not end in order:
    /// it is taken up as after a server that was killed.
    fn close(&self) -> Result<()> {
        let wound_up = self.wind_up();
        self.sync()?;
        self.checkpoint(true)?;
        self.ends(wound_up?)
    }

    fn info(&self) -> Value {
        self.stats()
    }

    fn stats(&self, budget: u64) -> Value {
        self.counts(budget)
    }

    fn reset(&self) {
        self.count_anew();
    }

    fn state(&self) -> Result<StateFile> {
        let state = self.aged()?;
        let records = state.members.iter().map(|m| m.records.len()).sum::<usize>();
        let mut about = about(&state.members[0], records + state.array.records.len());
        (about["array"], about["disks"]) = (json!(state.array.layer), json!(state.members.len()));
        Ok((state.encode(), about))
    }
}

#[cfg(test)]
mod tests;
