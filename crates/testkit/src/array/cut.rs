//! The power fails: what waits is lost, and a fresh array begins with what the one before recorded.

use super::{ArrayHarness, Open, build, event_loop, range};
use crate::Rng;
use crate::harness::BYTES;
use smrlab_array::{Buffers, Stop};
use smrlab_stl::HostRequest;
use smrlab_units::{Blocks, HostOp, Lba};
use std::ops::Range;

impl ArrayHarness {
    /// The power fails: what waits is lost, and a fresh array recovers. Blocks that were being written may be old or new;
    /// the model becomes what is there.
    ///
    /// # Panics
    /// When a block is neither.
    pub fn cut(&mut self, rng: &mut Rng) {
        self.cut_losing(None, rng);
    }

    /// The same; with the power a disk is lost.
    ///
    /// # Panics
    /// When a block is neither old nor new.
    pub fn cut_losing(&mut self, disk: Option<usize>, rng: &mut Rng) {
        let mut may: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
        for Open { request: r, data, .. } in std::mem::take(&mut self.open).into_values() {
            match r.op {
                HostOp::Write => may.push((range(r.lba, r.blocks), data)),
                HostOp::Discard if self.discards => may.push((range(r.lba, r.blocks), data)),
                HostOp::Discard => self.vague.extend(r.lba.0..r.lba.0 + r.blocks.0),
                _ => {}
            }
        }
        self.power_lost(Stop::Orderly);
        if let Some(disk) = disk {
            self.kill(disk);
        }
        self.settle(rng);
        self.checkpoint();
        self.model.copy_from_slice(&self.acked);
        for (i, block) in self.found(rng).into_iter().enumerate() {
            let at = i * BYTES..(i + 1) * BYTES;
            let new = may.iter().filter(|(r, _)| r.contains(&at.start));
            let mut new = new.map(|(r, data)| &data[at.start - r.start..][..BYTES]);
            let Some(block) = block else {
                // Nobody knows: what it may be, it may be later.
                let held = self.acked[at.clone()].to_vec();
                let torn = self.torn.entry(i as u64).or_insert_with(|| (0, vec![held]));
                torn.1.extend(new.map(<[u8]>::to_vec));
                continue;
            };
            let torn = self.torn.remove(&(i as u64)).is_some_and(|torn| torn.1.contains(&block));
            assert!(
                torn || new.any(|new| block == new)
                    || block == self.acked[at.clone()]
                    || self.vague.contains(&(i as u64)),
                "{}: block {i} is neither old nor new",
                self.text
            );
            self.model[at.clone()].copy_from_slice(&block);
            self.acked[at].copy_from_slice(&block);
        }
        self.vague.clear();
    }

    /// What each block holds; none where its read is refused.
    pub(super) fn found(&mut self, rng: &mut Rng) -> Vec<Option<Vec<u8>>> {
        let space = self.array().host_blocks();
        let mut read = |lba: u64, blocks: Blocks| {
            self.last_read.clear();
            self.send(HostRequest::new(HostOp::Read, Lba(lba), blocks), Vec::new(), false);
            self.settle(rng);
            std::mem::take(&mut self.last_read)
        };
        let all = read(0, space);
        if !all.is_empty() {
            return all.chunks(BYTES).map(|block| Some(block.to_vec())).collect();
        }
        (0..space.0).map(|lba| Some(read(lba, Blocks(1))).filter(|block| !block.is_empty())).collect()
    }

    /// A fresh array takes up what the one before recorded, on the disks as they are.
    pub(super) fn power_lost(&mut self, stop: Stop) {
        let bench = &mut self.bench;
        bench.ssds.iter_mut().for_each(|ssd| ssd.queue.clear());
        bench.sent.clear();
        bench.buffers = Buffers::default();
        let Ok(drives) = self.event_loop.power_lost(bench);
        let (array, ssds) = build(&self.text, drives.iter()).expect("built before");
        self.event_loop = event_loop(array, drives, &ssds);
        let records = self.bench.records.clone();
        let Ok(()) = self.event_loop.recover(&records, stop, &mut self.bench);
    }

    /// The array's state takes the place of its records, where it says what is on the members.
    fn checkpoint(&mut self) {
        if self.array().is_settled() {
            self.bench.records.clear();
            self.event_loop.array().checkpoint(&mut self.bench.records);
            self.bench.durable(self.bench.records.len());
        }
    }
}
