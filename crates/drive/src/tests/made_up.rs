//! Layers that plan anything, from a seed.

use smrlab_stl::{Cause, Endpoint, HostRequest, Plan, StepEnd, TranslationLayer};
use smrlab_units::rng::Rng;
use smrlab_units::{Blocks, Dir, HostOp, Pba, SimTime};

/// The host's blocks, in groups; each group lies at its number or, moved, so many blocks further.
pub(super) const HOST: u64 = 192;
pub(super) const GROUP: u64 = 16;

/// A part of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Op { dir: Dir, pba: u64, n: u64, cause: Cause, stated: Option<u64> },
    Pause(Cause, u64),
    Acknowledge,
}

/// A made-up layer.
#[derive(Clone)]
pub(super) struct Script {
    pub rng: Rng,
    pub medium: u64,
    pub moved: Vec<bool>,
    /// Moves a group when it is written.
    pub moves: bool,
    /// Steps of background work that are left, how long it waits for them, and the groups that the step under way moves.
    pub left: u64,
    pub idle: Option<SimTime>,
    pub step: Vec<usize>,
    pub last: bool,
    /// Tells from how far away a plan can move what waits.
    pub reach: Option<Blocks>,
}

impl Script {
    pub(super) fn place(&self, lba: u64) -> u64 {
        lba + if self.moved[(lba / GROUP) as usize] { HOST } else { 0 }
    }

    fn op(&mut self, dir: Option<Dir>, pba: u64, n: u64) -> Item {
        let causes = [Cause::Host, Cause::Host, Cause::Clean, Cause::Parity, Cause::Metadata];
        let cause = causes[self.rng.below(5) as usize];
        let stated = self.rng.one_in(6).then(|| 1_000 * self.rng.below(4000));
        let dir = dir.unwrap_or([Dir::Read, Dir::Write][self.rng.below(2) as usize]);
        Item::Op { dir, pba, n, cause, stated }
    }

    fn anything(&mut self) -> Item {
        if self.rng.one_in(4) {
            return Item::Pause(Cause::Metadata, 1000 * self.rng.below(3000));
        }
        let (pba, n) = (self.rng.below(self.medium - 40), 1 + self.rng.below(40));
        self.op(None, pba, n)
    }

    pub(super) fn request(&mut self, r: &HostRequest) -> Vec<Item> {
        let (lba, n) = (r.lba.0, r.blocks.0);
        let mut items = Vec::new();
        if matches!(r.op, HostOp::Read | HostOp::Write) {
            let dir = if r.op == HostOp::Read { Dir::Read } else { Dir::Write };
            let pba = self.place(lba);
            if self.rng.below(3) > 0 {
                items.push(Item::Op { dir, pba, n, cause: Cause::Host, stated: None });
            } else {
                let first = 1 + self.rng.below(n);
                items.push(self.op(Some(dir), pba, first));
                if self.rng.one_in(2) && first < n {
                    items.push(self.op(Some(dir), pba + first, n - first));
                }
            }
        }
        if self.rng.one_in(4) {
            (0..1 + self.rng.below(3)).for_each(|_| {
                let item = self.anything();
                items.push(item);
            });
            let at = self.rng.below(items.len() as u64 + 1) as usize;
            if self.rng.one_in(2) {
                items.insert(at, Item::Acknowledge);
            }
        }
        if r.op == HostOp::Discard || r.op == HostOp::Write && self.moves {
            let group = (lba / GROUP) as usize;
            self.moved[group] = !self.moved[group];
        }
        self.left += u64::from(r.op == HostOp::Write && self.idle.is_some());
        items
    }

    /// A step without items says that there is nothing left to do; behind an acknowledgement none can be given up.
    pub(super) fn work(&mut self) -> Vec<Item> {
        let mut items: Vec<_> = (0..self.rng.below(4)).map(|_| self.anything()).collect();
        if !items.is_empty() && self.rng.one_in(3) {
            items.insert(self.rng.below(items.len() as u64 + 1) as usize, Item::Acknowledge);
        }
        let groups = if items.is_empty() { 0 } else { self.rng.below(3) };
        self.step = (0..groups).map(|_| self.rng.below(HOST / GROUP) as usize).collect();
        self.last = items.is_empty();
        items
    }

    pub(super) fn worked(&mut self, end: StepEnd) {
        if end == StepEnd::Done {
            self.left = if self.last { 0 } else { self.left - 1 };
            self.step.iter().for_each(|g| self.moved[*g] = !self.moved[*g]);
        }
    }

    pub(super) fn wait(&self) -> Option<SimTime> {
        self.idle.filter(|_| self.left > 0)
    }
}

fn fill(plan: &mut Plan, items: &[Item]) {
    for item in items {
        match *item {
            Item::Op { dir, pba, n, cause, stated } => {
                match dir {
                    Dir::Read => plan.read_staged(cause, Pba(pba), Blocks(n)),
                    Dir::Write => plan.write(cause, Pba(pba), Blocks(n), Endpoint::Zero),
                };
                if let Some(ns) = stated {
                    plan.lasting(SimTime(ns));
                }
            }
            Item::Pause(cause, ns) => plan.pause(cause, SimTime(ns)),
            Item::Acknowledge => plan.acknowledge(),
        }
    }
}

impl TranslationLayer for Script {
    fn host_blocks(&self) -> Blocks {
        Blocks(HOST)
    }

    fn submit(&mut self, _: SimTime, request: &HostRequest, plan: &mut Plan) {
        fill(plan, &self.request(request));
    }

    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        let dir = if r.op == HostOp::Read { Dir::Read } else { Dir::Write };
        matches!(r.op, HostOp::Read | HostOp::Write).then(|| (Pba(self.place(r.lba.0)), dir))
    }

    fn location_reach(&self) -> Option<Blocks> {
        self.reach
    }

    fn background_after(&self) -> Option<SimTime> {
        self.wait()
    }

    fn background(&mut self, _: SimTime, plan: &mut Plan) {
        fill(plan, &self.work());
    }

    fn background_end(&mut self, end: StepEnd) {
        self.worked(end);
    }
}
