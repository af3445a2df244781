//! A second model of host-managed zones, which shares no code with the layer: each zone with its condition in the words of the report, and the
//! bytes that were written since it was reset.

use smrlab_stl::{Executor, HostBuffer, HostRequest, Plan, TranslationLayer};
use smrlab_testkit::{PlainMedium, Rng};
use smrlab_units::{Blocks, HostOp, Lba, SimTime, ZoneAction, ZoneKind};
use std::sync::Arc;

pub(crate) const BLOCK: usize = 512;

/// One zone of the model: its condition in the words of the report, and the bytes that were written since it was reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) start: u64,
    pub(crate) blocks: u64,
    pub(crate) condition: &'static str,
    /// Nothing can be done with it.
    pub(crate) gap: bool,
    pub(crate) bytes: Arc<Vec<u8>>,
}

impl Zone {
    pub(crate) fn pointer(&self) -> Option<u64> {
        let valid = ["empty", "implicitly-open", "explicitly-open", "closed"].contains(&self.condition);
        valid.then(|| self.start + (self.bytes.len() / BLOCK) as u64)
    }

    pub(crate) fn open(&self) -> bool {
        self.condition.ends_with("-open")
    }

    pub(crate) fn conventional(&self) -> bool {
        self.condition == "not-write-pointer" && !self.gap
    }

    pub(crate) fn rest(&mut self) {
        if self.open() {
            self.condition = if self.bytes.is_empty() { "empty" } else { "closed" };
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) zones: Vec<Zone>,
    /// Zones in the order in which writes opened them, and others that are so no more.
    opened: Vec<usize>,
    most_open: usize,
    most_active: usize,
    pub(crate) zeroes: bool,
}

impl Model {
    pub(crate) fn of(layer: &dyn TranslationLayer, limits: (usize, usize), zeroes: bool) -> Self {
        let mut zones = Vec::new();
        layer.zones(Lba(0), &mut |z| {
            let condition = z.condition.name();
            let bytes = if z.pointer.is_none() { vec![0; z.blocks.bytes() as usize] } else { Vec::new() };
            let gap = z.kind == ZoneKind::Gap;
            zones.push(Zone { start: z.start.0, blocks: z.blocks.0, condition, gap, bytes: Arc::new(bytes) });
            true
        });
        Self { zones, opened: Vec::new(), most_open: limits.0, most_active: limits.1, zeroes }
    }

    pub(crate) fn at(&self, lba: u64) -> usize {
        self.zones.iter().position(|z| (z.start..z.start + z.blocks).contains(&lba)).expect("in a zone")
    }

    fn is(&self, zone: usize, condition: &str) -> bool {
        self.zones[zone].condition == condition
    }

    /// Takes resources for one more open zone.
    fn take(&mut self, zone: usize) -> Result<(), &'static str> {
        let count = |f: fn(&Zone) -> bool| self.zones.iter().filter(|z| f(z)).count();
        if self.zones[zone].open() {
            return Ok(());
        }
        if self.is(zone, "empty") && count(|z| z.open() || z.condition == "closed") >= self.most_active {
            return Err("too-many-open");
        }
        if count(Zone::open) >= self.most_open {
            let oldest = self.opened.iter().copied().find(|&z| self.is(z, "implicitly-open"));
            self.zones[oldest.ok_or("too-many-open")?].rest();
        }
        Ok(())
    }

    fn write(&mut self, lba: u64, data: &[u8]) -> Result<(), &'static str> {
        let i = self.at(lba);
        let end = lba + (data.len() / BLOCK) as u64;
        if self.zones[i].conventional() {
            if self.zones.iter().any(|z| !z.conventional() && end > z.start) {
                return Err("crosses-zone");
            }
            for (k, block) in data.chunks(BLOCK).enumerate() {
                let zone = self.at(lba + k as u64);
                let at = (lba + k as u64 - self.zones[zone].start) as usize * BLOCK;
                Arc::make_mut(&mut self.zones[zone].bytes)[at..at + BLOCK].copy_from_slice(block);
            }
            return Ok(());
        }
        if self.zones[i].gap {
            return Err("gap");
        }
        if self.is(i, "full") {
            return Err("zone-full");
        }
        if self.zones[i].pointer() != Some(lba) || !data.len().is_multiple_of(4096) {
            return Err("not-at-pointer");
        }
        if end > self.zones[i].start + self.zones[i].blocks {
            return Err("crosses-zone");
        }
        self.take(i)?;
        let zone = &mut self.zones[i];
        Arc::make_mut(&mut zone.bytes).extend_from_slice(data);
        if zone.bytes.len() as u64 == zone.blocks * BLOCK as u64 {
            zone.condition = "full";
        } else if !zone.open() {
            zone.condition = "implicitly-open";
            self.opened.retain(|z| *z != i);
            self.opened.push(i);
        }
        Ok(())
    }

    fn read(&self, lba: u64, out: &mut [u8]) -> Result<(), &'static str> {
        let end = lba + (out.len() / BLOCK) as u64;
        let zones = self.at(lba)..self.at(end - 1) + 1;
        if !self.zeroes {
            if zones.len() > 1 && zones.clone().any(|z| !self.zones[z].conventional()) {
                return Err("crosses-zone");
            }
            let zone = &self.zones[zones.start];
            if zone.gap {
                return Err("gap");
            }
            if zone.pointer().is_some_and(|p| end > p) {
                return Err("above-pointer");
            }
        }
        if zones.into_iter().any(|z| self.zones[z].gap) {
            return Err("gap");
        }
        for (k, block) in out.chunks_mut(BLOCK).enumerate() {
            let zone = &self.zones[self.at(lba + k as u64)];
            let at = (lba + k as u64 - zone.start) as usize * BLOCK;
            block.fill(0);
            if let Some(bytes) = zone.bytes.get(at..at + BLOCK) {
                block.copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn one(&mut self, action: ZoneAction, i: usize) -> Result<(), &'static str> {
        match (action, self.zones[i].condition) {
            (_, "not-write-pointer") => return Err("unsupported"),
            (ZoneAction::Reset, _) => {
                self.zones[i].bytes = Arc::default();
                self.zones[i].condition = "empty";
            }
            (ZoneAction::Close, _) => self.zones[i].rest(),
            (_, "full") => {}
            (ZoneAction::Open, _) => {
                self.take(i)?;
                self.zones[i].condition = "explicitly-open";
            }
            (ZoneAction::Finish, _) => {
                self.take(i)?;
                self.zones[i].condition = "full";
            }
        }
        Ok(())
    }

    fn act(&mut self, action: ZoneAction, r: &HostRequest) -> Result<(), &'static str> {
        let (lba, blocks) = (r.lba.0, r.blocks.0);
        let all = self.at(lba)..self.at(lba + blocks - 1) + 1;
        let zones: Vec<usize> = all.filter(|z| !self.zones[*z].gap).collect();
        match zones[..] {
            [] => return Err("unsupported"),
            [zone] if !r.all_zones => return self.one(action, zone),
            _ => {}
        }
        if !r.all_zones {
            // Several zones: each of them or none.
            let mut after = self.clone();
            for zone in zones.into_iter().filter(|&z| !self.zones[z].conventional()) {
                after.one(action, zone)?;
            }
            *self = after;
            return Ok(());
        }
        let explicit = self.zones.iter().filter(|z| z.condition == "explicitly-open").count();
        let closed = zones.iter().filter(|&&z| self.is(z, "closed")).count();
        if action == ZoneAction::Open && explicit + closed > self.most_open {
            return Err("too-many-open");
        }
        let meant: Vec<usize> = zones
            .into_iter()
            .filter(|&z| match action {
                ZoneAction::Open => self.is(z, "closed"),
                ZoneAction::Finish => self.zones[z].open() || self.is(z, "closed"),
                _ => !self.zones[z].conventional(),
            })
            .collect();
        for zone in meant {
            if action == ZoneAction::Finish {
                self.zones[zone].condition = "full";
            } else {
                self.one(action, zone)?;
            }
        }
        Ok(())
    }

    /// A command that may well be one that is refused.
    pub(crate) fn random_command(&self, rng: &mut Rng) -> HostRequest {
        let all = self.zones.last().map_or(0, |z| z.start + z.blocks);
        let zone = &self.zones[rng.below(self.zones.len() as u64) as usize];
        let actions = ZoneAction::ALL;
        let (op, lba, blocks) = match rng.below(20) {
            0..=8 => {
                (HostOp::Write, zone.pointer().unwrap_or(zone.start), 8 * (1 + rng.below(zone.blocks / 8)))
            }
            9 => (HostOp::Write, zone.start + rng.below(zone.blocks), 1 + rng.below(20)),
            10 => (HostOp::Append, zone.start, 8 * (1 + rng.below(3))),
            11..=13 => (HostOp::Read, rng.below(all), 1 + rng.below(3 * zone.blocks)),
            14 => (HostOp::Zone(actions[rng.below(4) as usize]), rng.below(all), 1 + rng.below(all)),
            15 => (HostOp::Zone(ZoneAction::Open), zone.start, zone.blocks),
            16 if rng.one_in(8) => (HostOp::Zone(actions[rng.below(4) as usize]), 0, all),
            _ => (HostOp::Zone(actions[rng.below(4) as usize]), zone.start, zone.blocks),
        };
        let request = HostRequest::new(op, Lba(lba), Blocks(blocks.min(all - lba)));
        let zones = matches!(op, HostOp::Zone(_)) && request.blocks.0 == all;
        HostRequest { all_zones: zones && rng.below(2) == 0, ..request }
    }

    /// A short write at the pointer of one of a few zones; any command where all are full.
    pub(crate) fn next_write(&self, rng: &mut Rng) -> HostRequest {
        let few = self.zones.iter().filter(|z| z.pointer().is_some_and(|p| p < z.start + z.blocks)).take(6);
        let few: Vec<_> = few.collect();
        if few.is_empty() {
            return self.random_command(rng);
        }
        let (zone, blocks) = (few[rng.below(few.len() as u64) as usize], 8 * (1 + rng.below(2)));
        HostRequest::new(HostOp::Write, Lba(zone.pointer().expect("it has one")), Blocks(blocks))
    }

    /// What the model makes of a command; reads fill `data`.
    pub(crate) fn expected(&mut self, r: &HostRequest, data: &mut [u8]) -> Option<&'static str> {
        let lba = r.lba.0;
        let done = match r.op {
            HostOp::Write => self.write(lba, data),
            HostOp::Append => {
                let zone = &self.zones[self.at(lba)];
                if zone.conventional() || zone.gap || zone.start != lba {
                    Err("not-at-pointer")
                } else {
                    self.write(zone.pointer().unwrap_or(lba), data)
                }
            }
            HostOp::Read => self.read(lba, data),
            HostOp::Zone(action) => self.act(action, r),
            _ => Ok(()),
        };
        done.err()
    }
}

/// Conditions and pointers as the layer reports them are those of the model.
pub(crate) fn same_zones(layer: &dyn TranslationLayer, model: &Model, what: &str) {
    let mut i = 0;
    layer.zones(Lba(0), &mut |z| {
        let own = &model.zones[i];
        let told = (z.start.0, z.blocks.0, z.condition.name(), z.pointer.map(|p| p.0));
        assert_eq!(told, (own.start, own.blocks, own.condition, own.pointer()), "zone {i} after {what}");
        i += 1;
        true
    });
    assert_eq!(i, model.zones.len());
}

pub(crate) fn read_zone(layer: &mut dyn TranslationLayer, medium: &mut PlainMedium, zone: &Zone) -> Vec<u8> {
    let mut out = vec![0x11; zone.blocks as usize * BLOCK];
    let mut plan = Plan::new(true, false);
    let request = HostRequest::new(HostOp::Read, Lba(zone.start), Blocks(zone.blocks));
    layer.submit(SimTime::ZERO, &request, &mut plan);
    if plan.refusal().is_none() {
        let Ok(()) = Executor::default().run(&plan, HostBuffer::Read(&mut out), medium);
    }
    out
}
