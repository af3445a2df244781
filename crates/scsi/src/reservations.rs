//! Who has a disk to itself: persistent reservations of SPC-4 (5.12), and RESERVE and RELEASE of SPC-2. The former are kept when the power is
//! lost, where a host asks for that (APTPL) and the disk can.
//!
//! A host is named by its initiator port, as a TransportID has it: `iqn.2000-01.org.example,i,0x400001370000`.

use crate::{Refused, Sense};
use std::collections::BTreeMap;

/// Hosts that may be registered at a time, and that may have something to hear.
const MOST: usize = 128;

/// What a command does to the disk, as far as reservations of other hosts are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing: it is carried out whatever others reserved.
    Always,
    /// It asks something that only RESERVE keeps from others.
    Asks,
    Reads,
    Writes,
    /// It is about persistent reservations.
    Reserves,
}

/// What a host registers, to show later who it is; 0 is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub u64);

/// What a persistent reservation keeps from hosts that do not share it: TYPE of SPC-4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Keeps {
    /// Writing; one host has it.
    Writes = 1,
    /// Reading and writing; one host has it.
    Access = 3,
    /// Writing, from hosts that are not registered.
    WritesRegistrantsOnly = 5,
    /// Reading and writing, from hosts that are not registered.
    AccessRegistrantsOnly = 6,
    /// Writing; every host that is registered has it.
    WritesAllRegistrants = 7,
    /// Reading and writing; every host that is registered has it.
    AccessAllRegistrants = 8,
}

impl Keeps {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Writes,
        Self::Access,
        Self::WritesRegistrantsOnly,
        Self::AccessRegistrantsOnly,
        Self::WritesAllRegistrants,
        Self::AccessAllRegistrants,
    ];

    /// Keeps others from reading, too.
    fn reads(self) -> bool {
        matches!(self, Self::Access | Self::AccessRegistrantsOnly | Self::AccessAllRegistrants)
    }

    /// Whoever is registered may do everything.
    fn for_registrants(self) -> bool {
        !matches!(self, Self::Writes | Self::Access)
    }

    /// Whoever is registered holds it.
    fn of_all(self) -> bool {
        matches!(self, Self::WritesAllRegistrants | Self::AccessAllRegistrants)
    }
}

/// A persistent reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    /// Who reserved; of those that all registrants hold, the one that did it first.
    by: String,
    keeps: Keeps,
}

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    generation: u32,
    keys: BTreeMap<String, Key>,
    held: Option<Held>,
    /// A host asked for keys and what is held to be kept when the power is lost.
    kept: bool,
    /// Who did RESERVE.
    alone: Option<String>,
    /// What hosts are to hear with their next command.
    attentions: BTreeMap<String, Vec<Sense>>,
    /// Whose commands PREEMPT AND ABORT ended last.
    aborted: Vec<String>,
}

/// Whether something was done.
type Done = Result<(), Refused>;

impl Reservations {
    /// Whether a command that accesses the disk so is carried out for `host`.
    pub(crate) fn admits(&self, host: &str, access: Access) -> bool {
        if self.alone.as_deref().is_some_and(|by| by != host) && access != Access::Always {
            return false;
        }
        let Some(held) = &self.held else { return true };
        let shares = self.holds(host) || held.keeps.for_registrants() && self.keys.contains_key(host);
        match access {
            Access::Always | Access::Asks | Access::Reserves => true,
            Access::Reads => shares || !held.keeps.reads(),
            Access::Writes => shares,
        }
    }

    fn holds(&self, host: &str) -> bool {
        self.held.as_ref().is_some_and(|held| match held.keeps.of_all() {
            true => self.keys.contains_key(host),
            false => held.by == host,
        })
    }

    /// What a host has to hear before its next command, the first of it.
    pub fn attention(&self, host: &str) -> Option<Sense> {
        self.attentions.get(host).and_then(|all| all.first()).copied()
    }

    /// The same, which is not said again.
    pub fn take_attention(&mut self, host: &str) -> Option<Sense> {
        let all = self.attentions.get_mut(host)?;
        let first = (!all.is_empty()).then(|| all.remove(0));
        if all.is_empty() {
            self.attentions.remove(host);
        }
        first
    }

    /// Has a host hear of something before its next command.
    pub fn tell(&mut self, host: &str, what: Sense) {
        if self.attentions.len() < MOST || self.attentions.contains_key(host) {
            let all = self.attentions.entry(host.to_owned()).or_default();
            if !all.contains(&what) {
                all.push(what);
            }
        }
    }

    /// Hosts whose commands are to be aborted since PREEMPT AND ABORT was carried out; said once.
    pub fn take_aborted(&mut self) -> Vec<String> {
        std::mem::take(&mut self.aborted)
    }

    pub(crate) fn abort(&mut self, hosts: Vec<String>) {
        self.aborted = hosts;
    }

    /// Tells all that are registered, but not `host`.
    fn tell_others(&mut self, host: &str, what: Sense) {
        let others: Vec<String> = self.keys.keys().filter(|name| *name != host).cloned().collect();
        others.iter().for_each(|name| self.tell(name, what));
    }

    /// The host's session is over: RESERVE ends with it, and what it was to hear. What is persistent stays.
    pub fn lost(&mut self, host: &str) {
        self.attentions.remove(host);
        if self.alone.as_deref() == Some(host) {
            self.alone = None;
        }
    }

    /// The logical unit was reset: RESERVE ends with that.
    pub fn reset(&mut self) {
        self.alone = None;
    }

    /// RESERVE.
    pub(crate) fn take_alone(&mut self, host: &str) -> Done {
        if !self.keys.is_empty() || self.alone.as_deref().is_some_and(|by| by != host) {
            return Err(Refused::Conflict);
        }
        self.alone = Some(host.to_owned());
        Ok(())
    }

    /// RELEASE; of a host that did not reserve it does nothing.
    pub(crate) fn release_alone(&mut self, host: &str) -> Done {
        if !self.keys.is_empty() {
            return Err(Refused::Conflict);
        }
        if self.alone.as_deref() == Some(host) {
            self.alone = None;
        }
        Ok(())
    }

    /// What is kept when the power is lost: a line for each key, with its host, and one for the reservation. `None`: nothing.
    pub fn to_text(&self) -> Option<String> {
        let line = |what, number, host: &str| format!("{what} {number:x} {host}\n");
        let keys = self.keys.iter().map(|(host, key)| line("key", key.0, host));
        let held = self.held.iter().map(|held| line("held", held.keeps as u64, &held.by));
        self.kept.then(|| keys.chain(held).collect())
    }

    /// What was kept; `None`: the text is none of [`to_text`](Self::to_text).
    pub fn from_text(text: &str) -> Option<Self> {
        let mut all = Self { kept: true, ..Self::default() };
        for line in text.lines() {
            let [what, number, host] = line.splitn(3, ' ').collect::<Vec<_>>().try_into().ok()?;
            let number = u64::from_str_radix(number, 16).ok()?;
            if what == "key" {
                all.keys.insert(host.to_owned(), Key(number));
            } else {
                let keeps = Keeps::ALL.into_iter().find(|keeps| *keeps as u64 == number)?;
                all.held = Some(Held { by: host.to_owned(), keeps });
            }
        }
        (all.to_text().as_deref() == Some(text)).then_some(all)
    }

    /// Whether keys and what is held are kept when the power is lost.
    pub(crate) fn kept(&self) -> bool {
        self.kept
    }

    pub(crate) fn keep(&mut self, kept: bool) {
        self.kept = kept;
    }

    /// How often registrations changed.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Who is registered, with its key, and what of the reservation it holds.
    pub(crate) fn registered(&self) -> impl Iterator<Item = (&str, Key, Option<Keeps>)> {
        let keeps = |host: &str| self.held.as_ref().filter(|_| self.holds(host)).map(|held| held.keeps);
        self.keys.iter().map(move |(host, key)| (host.as_str(), *key, keeps(host)))
    }

    /// The reservation: what it keeps, and the key of its holder, 0 where that is everybody.
    pub(crate) fn held(&self) -> Option<(Key, Keeps)> {
        let held = self.held.as_ref()?;
        let key =
            if held.keeps.of_all() { Key(0) } else { self.keys.get(&held.by).copied().unwrap_or(Key(0)) };
        Some((key, held.keeps))
    }

    /// Fails unless the host is registered with this key.
    fn known(&self, host: &str, key: Key) -> Done {
        if self.keys.get(host) == Some(&key) { Ok(()) } else { Err(Refused::Conflict) }
    }

    /// REGISTER, and with `old` of `None` REGISTER AND IGNORE EXISTING KEY. A `new` key of 0 ends the registration.
    pub(crate) fn register(&mut self, host: &str, old: Option<Key>, new: Key) -> Done {
        if old.is_some_and(|old| self.keys.get(host).copied().unwrap_or(Key(0)) != old) {
            return Err(Refused::Conflict);
        }
        if new == Key(0) {
            if !self.keys.contains_key(host) {
                return Ok(());
            }
            self.unregister(host);
        } else if self.keys.len() >= MOST && !self.keys.contains_key(host) {
            return Err(Sense::REGISTRATION_RESOURCES.into());
        } else {
            self.keys.insert(host.to_owned(), new);
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(())
    }

    fn unregister(&mut self, host: &str) {
        let held = self.holds(host);
        self.keys.remove(host);
        let Some(keeps) = self.held.as_ref().map(|held| held.keeps).filter(|_| held) else { return };
        if !keeps.of_all() || self.keys.is_empty() {
            self.held = None;
            if keeps.for_registrants() {
                self.tell_others(host, Sense::RESERVATIONS_RELEASED);
            }
        }
    }

    /// RESERVE.
    pub(crate) fn reserve(&mut self, host: &str, key: Key, keeps: Keeps) -> Done {
        self.known(host, key)?;
        match &self.held {
            None => self.held = Some(Held { by: host.to_owned(), keeps }),
            Some(held) if self.holds(host) && held.keeps == keeps => {}
            Some(_) => return Err(Refused::Conflict),
        }
        Ok(())
    }

    /// RELEASE; of a host that holds nothing it does nothing.
    pub(crate) fn release(&mut self, host: &str, key: Key, keeps: Keeps) -> Done {
        self.known(host, key)?;
        let Some(held) = self.held.as_ref().filter(|_| self.holds(host)) else { return Ok(()) };
        if held.keeps != keeps {
            return Err(Sense::INVALID_RELEASE.into());
        }
        self.held = None;
        if keeps.for_registrants() {
            self.tell_others(host, Sense::RESERVATIONS_RELEASED);
        }
        Ok(())
    }

    /// CLEAR: nobody is registered after that.
    pub(crate) fn clear(&mut self, host: &str, key: Key) -> Done {
        self.known(host, key)?;
        self.tell_others(host, Sense::RESERVATIONS_PREEMPTED);
        self.keys.clear();
        self.held = None;
        self.generation = self.generation.wrapping_add(1);
        Ok(())
    }

    /// PREEMPT: registrations with the key `whose` end, and where they are of who holds the reservation, `host` takes it and stays registered.
    /// Only then is it of interest what it is to keep. Answers whose registrations ended.
    pub(crate) fn preempt(
        &mut self,
        host: &str,
        key: Key,
        whose: Key,
        keeps: Result<Keeps, Sense>,
    ) -> Result<Vec<String>, Refused> {
        self.known(host, key)?;
        let (holder, before) = self.held().unzip();
        let of_all = before.is_some_and(Keeps::of_all);
        // A key of 0 means all others, where all hold the reservation.
        let takes = holder == Some(whose);
        if whose == Key(0) && !of_all {
            return Err(Sense::INVALID_LIST.into());
        }
        if whose != Key(0) && !self.keys.values().any(|key| *key == whose) {
            return Err(Refused::Conflict);
        }
        let keeps = takes.then_some(keeps).transpose()?;
        let ends = |name: &str, key: Key| (whose == Key(0) || key == whose) && !(takes && name == host);
        let all = self.keys.iter().filter(|(name, key)| ends(name, **key));
        let victims: Vec<String> = all.map(|(name, _)| name.clone()).collect();
        for victim in &victims {
            self.keys.remove(victim);
            if victim != host {
                self.tell(victim, Sense::REGISTRATIONS_PREEMPTED);
            }
        }
        if self.keys.is_empty() {
            self.held = None;
        }
        if let Some(keeps) = keeps {
            self.held = Some(Held { by: host.to_owned(), keeps });
            if before != Some(keeps) {
                self.tell_others(host, Sense::RESERVATIONS_RELEASED);
            }
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(victims)
    }
}
