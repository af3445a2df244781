//! Of the second drive: who is served next, and what goes through the buffer.

use super::made_up::Item;
use super::naive::{Waits, World, conflict};
use smrlab_stl::HostRequest;
use smrlab_units::{Dir, HostOp};

/// Start, acknowledgement, end and begin on the medium; the ends of operations; whether the buffer took it.
type Timed = ((u64, u64, u64, u64), Vec<u64>, bool);

/// How a plan was carried out: as the drive's own.
struct Walked {
    began: u64,
    moved: bool,
    ack: u64,
    end: u64,
    ends: Vec<u64>,
    /// What a read had last from the medium: its end, length, and when it had passed.
    last: Option<(u64, u64, u64)>,
}

impl World {
    pub(super) fn submit(&mut self, now: u64, came: u64, r: &HostRequest) {
        let w = Waits { came, placed: now, r: *r, taken: None };
        if self.policy == "fcfs" {
            self.background(now);
            return self.serve(now, &w, false);
        }
        while let Some(at) = self.decision().filter(|at| *at < now) {
            self.decide(at);
        }
        self.background(now);
        if self.buffered && r.op == HostOp::Write && self.takes(now, r) {
            return self.accept(now, w);
        }
        if self.buffered && r.op == HostOp::Read && self.read_at_once(now, &w) {
            return;
        }
        self.waiting.push(w);
    }

    pub(super) fn wake(&mut self, now: u64) {
        while let Some(at) = self.decision().filter(|at| *at <= now) {
            self.decide(at);
        }
        if self.waiting.is_empty() {
            self.background(now);
        }
    }

    pub(super) fn drain(&mut self) {
        while let Some(at) = self.decision() {
            self.decide(at);
        }
    }

    pub(super) fn next_wake(&self) -> Option<u64> {
        let idle = self.script.wait().map(|idle| (self.idle_since + idle.0).max(self.free));
        self.decision().or(self.step.as_ref().map(|s| s.at)).or(idle)
    }

    fn decision(&self) -> Option<u64> {
        self.waiting.first().map(|w| w.placed.max(self.free))
    }

    /// Whether the buffer takes a write, beside what waits in it and what is just being written.
    fn takes(&self, now: u64, r: &HostRequest) -> bool {
        let b = &self.b.spec.buffer;
        let leaving = if self.leaving.0 > now { self.leaving.1 } else { 0 };
        let taken: Vec<_> = self.waiting.iter().filter(|w| w.taken.is_some()).map(|w| w.r.blocks.0).collect();
        let most = u64::from(b.write_segments) * u64::from(b.segment_blocks);
        !r.fua
            && r.blocks.0 <= u64::from(b.segment_blocks)
            && taken.len() + usize::from(leaving > 0) < b.write_segments as usize
            && taken.iter().sum::<u64>() + leaving + r.blocks.0 <= most
    }

    fn accept(&mut self, now: u64, w: Waits) {
        let taken = self.b.accept(now, w.r.blocks.0);
        self.told.push(format!("accepted {} came {} {} {}", w.r.id, w.came, taken.0, taken.1));
        match self.waiting.iter_mut().find(|o| o.r.id == w.r.id) {
            Some(o) => o.taken = Some(taken),
            None => self.waiting.push(Waits { taken: Some(taken), ..w }),
        }
    }

    fn read_at_once(&mut self, now: u64, w: &Waits) -> bool {
        let n = w.r.blocks.0;
        self.b.note(now);
        let held = self.b.holds(self.script.place(w.r.lba.0), n);
        match self.waiting.iter().rfind(|o| conflict(&o.r, &w.r)) {
            None if held => {
                self.serve(now, w, false);
                true
            }
            Some(o)
                if o.taken.is_some()
                    && o.r.lba.0 <= w.r.lba.0
                    && w.r.lba.0 + n <= o.r.lba.0 + o.r.blocks.0 =>
            {
                let from = o.r.id;
                let (start, ack) = self.b.answer_waiting(now, n);
                self.told.push(format!("answered {} from {from} came {} {start} {ack}", w.r.id, w.came));
                true
            }
            _ => false,
        }
    }

    fn decide(&mut self, now: u64) {
        self.background(now);
        if self.free > now {
            return;
        }
        if self.buffered
            && let Some(w) =
                self.waiting.iter().find(|w| w.taken.is_none() && w.r.op == HostOp::Write).cloned()
            && self.takes(now, &w.r)
        {
            return self.accept(now, w);
        }
        if self.buffered {
            self.b.choose(now);
        }
        let next = self.pick(now);
        let w = self.waiting.remove(next);
        self.serve(now, &w, true);
        if w.taken.is_some() {
            self.leaving = (self.free, w.r.blocks.0);
        }
    }

    /// The one that goes next, of those that no older one stands before.
    fn pick(&mut self, now: u64) -> usize {
        let all = &self.waiting;
        let may = |i: &usize| all[..*i].iter().all(|o| !conflict(&o.r, &all[*i].r));
        let free: Vec<usize> = (0..all.len()).filter(may).collect();
        if self.max_wait.is_some_and(|limit| now - all[free[0]].came >= limit) {
            return free[0];
        }
        let d = &self.b.disk;
        let place = |i: &usize| {
            let r = &all[*i].r;
            let dir = if r.op == HostOp::Read { Dir::Read } else { Dir::Write };
            match r.op {
                HostOp::Read | HostOp::Write => (self.script.place(r.lba.0), dir),
                _ => (d.next.min(d.g.blocks().0 - 1), Dir::Read),
            }
        };
        // Counted from the side where block 0 lies, which is the outer one.
        let cylinder = |i: &usize| u64::from(d.cylinder(place(i).0));
        let head = u64::from(d.cylinder(d.last));
        let least = |key: &dyn Fn(&usize) -> (u64, u64)| *free.iter().min_by_key(|i| (key(i), **i)).unwrap();
        match self.policy {
            "sstf" => least(&|i| (cylinder(i).abs_diff(head), 0)),
            "c-look" => least(&|i| (u64::from(cylinder(i) < head), cylinder(i))),
            "look" => {
                let side = |i: &usize| if self.up { cylinder(i) >= head } else { cylinder(i) <= head };
                let turns = !free.iter().any(side);
                let pick = least(&|i| (u64::from(side(i) == turns), cylinder(i).abs_diff(head)));
                self.up ^= turns;
                pick
            }
            _ => least(&|i| {
                let (pba, dir) = place(i);
                let (_, begun, _) = d.transfer(now, 0, dir, (pba, 1));
                (d.ns(begun).max(now), 0)
            }),
        }
    }

    /// What waited was chosen, and its overhead may have passed since it had its place; what did not wait begins now.
    pub(super) fn through_buffer(&mut self, now: u64, w: &Waits, waited: bool) -> Timed {
        let r = &w.r;
        self.b.free = self.b.free.max(self.free);
        let start = if waited { w.placed } else { self.b.begin(now) };
        let items = self.script.request(r);
        let ops = items.iter().filter(|i| matches!(i, Item::Op { .. })).count();
        let b = &self.b.spec.buffer;
        let buffered =
            r.op == HostOp::Write && !r.fua && r.blocks.0 <= u64::from(b.segment_blocks) && ops > 0;
        let moves = matches!(r.op, HostOp::Read | HostOp::Write);
        let kind = if r.op == HostOp::Read { Dir::Read } else { Dir::Write };
        let plain = match items[..] {
            [Item::Op { dir, pba, n, cause, stated: None }, ref rest @ ..]
                if moves && dir == kind && n == r.blocks.0 && matches!(rest, [] | [Item::Acknowledge]) =>
            {
                Some((pba, n, cause))
            }
            _ => None,
        };
        let Some((pba, n, cause)) = plain else { return self.several(start, r, &items, buffered) };
        let ack = self.b.serve(start, (kind, r.fua), pba, n);
        let (mut began, mut end) = (start, start);
        if let Some((lba, n, from, to, before)) = self.b.shown {
            (began, end) = (from, to);
            self.tell(Some(r), (kind, lba, n, cause), (from, to), before, true);
        }
        self.free = self.b.free;
        ((start, ack, end.max(ack), began), vec![end], buffered)
    }

    fn several(&mut self, start: u64, r: &HostRequest, items: &[Item], buffered: bool) -> Timed {
        let n = r.blocks.0;
        let kind = if r.op == HostOp::Read { Dir::Read } else { Dir::Write };
        let bus = self.b.bus(kind, n);
        let (over, data) = match r.op {
            HostOp::Read => {
                let op = |i: &Item| if let Item::Op { pba, n, .. } = *i { Some((pba, n)) } else { None };
                let ops: Vec<_> = items.iter().filter_map(op).collect();
                let over = self.b.several_read(start, &ops);
                (over, over)
            }
            HostOp::Write => {
                let over = self.b.several_write(start, n, buffered);
                (over, over + bus)
            }
            HostOp::Flush => (start.max(self.b.free), start),
            _ => (start, start),
        };
        let Walked { began, moved, ack: acked, end, ends, last } = self.walk(over, data, r, items);
        if moved {
            self.b.free = self.b.free.max(end);
        }
        let done = match r.op {
            HostOp::Read => {
                let drained =
                    last.filter(|l| l.2 == acked).map_or(acked, |l| self.b.drained((l.1, l.0), l.2));
                drained.max(over + bus)
            }
            HostOp::Write if buffered => {
                self.b.taken.push((acked, n));
                self.b.dirty.push((u64::MAX, u64::MAX, acked));
                over + bus
            }
            HostOp::Write => acked.max(over + bus),
            _ => acked,
        };
        let ack = self.b.answer(kind, done, moved && !buffered);
        self.free = self.b.free;
        ((start, ack, end.max(ack), began), ends, buffered)
    }

    /// Carries out a plan's items from `at` on; writes nothing before `data`.
    fn walk(&mut self, at: u64, data: u64, r: &HostRequest, items: &[Item]) -> Walked {
        let (mut began, mut moved, mut ack, mut end, mut ends, mut last) =
            (at, false, None, at, Vec::new(), None);
        let all = items.iter().filter(|i| matches!(i, Item::Op { .. })).count();
        for item in items {
            let reads = |dir: Dir| r.op == HostOp::Read && dir == Dir::Read;
            match *item {
                Item::Acknowledge => ack = Some(end),
                Item::Op { dir, pba, n, .. } if reads(dir) && self.b.holds(pba, n) => ends.push(end),
                Item::Op { .. } | Item::Pause(..) => {
                    if !moved {
                        end = self.b.stop(end).max(self.b.free);
                        (began, moved) = (end, true);
                    }
                    if let Item::Op { dir: Dir::Write, stated: None, .. } = item {
                        end = end.max(data);
                    }
                    end = self.run(Some(r), item, end);
                    let Item::Op { dir, pba, n, .. } = *item else { continue };
                    if dir == Dir::Write {
                        end = end.max(data);
                        self.b.forget(pba, pba + n);
                    }
                    if reads(dir) {
                        if let Some(i) = self.b.keep(pba, pba + n)
                            && ends.len() + 1 == all
                        {
                            self.b.go_on(i, pba + n, end, pba);
                        }
                        last = Some((pba + n, n, end));
                    }
                    ends.push(end);
                }
            }
        }
        Walked { began, moved, ack: ack.unwrap_or(end), end, ends, last }
    }

    pub(super) fn destage(&mut self, now: u64, taken: (u64, u64), r: &HostRequest) -> Timed {
        self.b.free = self.b.free.max(self.free);
        let items = self.script.request(r);
        let (began, end, ends) = match items[..] {
            [Item::Op { dir: Dir::Write, pba, n, cause, stated: None }, ref rest @ ..]
                if n == r.blocks.0 && matches!(rest, [] | [Item::Acknowledge]) =>
            {
                self.b.destage(now, taken.1, (pba, n));
                let (lba, n, from, to, before) = self.b.shown.unwrap();
                self.tell(Some(r), (Dir::Write, lba, n, cause), (from, to), before, true);
                (from, to, vec![to])
            }
            _ => {
                let Walked { began, moved, end, ends, .. } = self.walk(now, taken.1, r, &items);
                if moved {
                    self.b.free = self.b.free.max(end);
                }
                (began, end, ends)
            }
        };
        self.free = self.b.free;
        ((taken.0, taken.1, end, began), ends, true)
    }
}
