//! The log: packets one behind the other over its bands, as many times as they go round.

use crate::parts::extents::{Extent, Extents};
use std::collections::VecDeque;
use std::ops::Range;

/// A packet of the log: one entry of the drive's map. Short, because there are as many as the log holds; what lies in
/// bands has fewer than 2^32 blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// First LBA of what was written first; see [`Log::spans`].
    pub lba: u64,
    /// Bands of the log that were begun before its own.
    pub lap: u32,
    /// Offset in that band, in blocks.
    pub offset: u32,
    /// Length in the log, overhead included.
    pub length: u32,
    /// Blocks of data.
    pub blocks: u32,
    /// Host writes that share it.
    pub writes: u32,
    /// Blocks of which it holds the newest copy.
    pub live: u32,
    /// Blocks that a round of cleaning has taken and not brought home yet.
    pub held: u32,
}

/// Where the next packet goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub lap: u64,
    pub offset: u64,
    /// Length of the log so far.
    pub length: u64,
}

/// Fixed lengths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Least length of a packet in the log, in thousandths of a block.
    pub slot: u64,
    /// What a packet takes beside its data, in blocks.
    pub overhead: u64,
}

impl Sizes {
    /// Blocks of a packet of `data` blocks that begins `offset` blocks into its band. Behind each other, packets of the least length
    /// begin at whole multiples of it but for the fraction of a block, and as many as a band has room for fit.
    pub(super) fn length(&self, offset: u64, data: u64) -> u64 {
        let slot = |k: u64| k * self.slot / 1000;
        let k = (offset * 1000).div_ceil(self.slot);
        let least = if slot(k) == offset { slot(k + 1) - offset } else { self.slot / 1000 };
        least.max(data + self.overhead)
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub head: Head,
    /// Number of the first packet that is kept.
    pub first: u64,
    pub packets: VecDeque<Packet>,
    /// Length of the log from the first packet that is kept; those count whose blocks are on their way home.
    pub kept: u64,
    /// So many of the first packets, and their length, are known to have nothing live.
    dead: (usize, u64),
    /// Further spans of packets with several, with the packet's number.
    further: VecDeque<(u64, Range<u64>)>,
    pub map: Extents,
    /// Packets with live blocks.
    pub live: u64,
    /// Live blocks.
    pub live_blocks: u64,
}

impl Log {
    /// A packet by its number, modulo 2^32.
    pub(super) fn packet(&self, number: u32) -> &Packet {
        &self.packets[number.wrapping_sub(self.first as u32) as usize]
    }

    pub(super) fn packet_mut(&mut self, number: u32) -> &mut Packet {
        &mut self.packets[number.wrapping_sub(self.first as u32) as usize]
    }

    /// What was written to a packet that is kept, by its place among these.
    pub(super) fn spans(&self, i: usize) -> impl Iterator<Item = Range<u64>> + '_ {
        let (p, number) = (&self.packets[i], self.first + i as u64);
        let from = self.further.partition_point(|f| f.0 < number);
        let further = self.further.range(from..).take_while(move |f| f.0 == number).map(|f| f.1.clone());
        let more: u64 = further.clone().map(|span| span.end - span.start).sum();
        std::iter::once(p.lba..p.lba + u64::from(p.blocks) - more).chain(further)
    }

    /// The oldest packet with live blocks, by its place among those that are kept.
    fn oldest_live(&mut self) -> Option<usize> {
        while let Some(p) = self.packets.get(self.dead.0) {
            if p.live > 0 {
                return Some(self.dead.0);
            }
            self.dead = (self.dead.0 + 1, self.dead.1 + u64::from(p.length));
        }
        None
    }

    /// Packets from the oldest live one to the head, dead ones included, and their length.
    pub(super) fn span(&mut self) -> (u64, u64) {
        match self.oldest_live() {
            Some(i) => ((self.packets.len() - i) as u64, self.kept - self.dead.1),
            None => (0, 0),
        }
    }

    /// Where a packet of `length` would begin, `bands` being the lengths of the log's bands.
    pub(super) fn place(&self, length: u64, band: impl Fn(u64) -> u64) -> Head {
        let h = self.head;
        if h.offset + length <= band(h.lap) { h } else { Head { lap: h.lap + 1, offset: 0, ..h } }
    }

    /// Whether `lap` can be begun in a log of `bands` bands: nothing is needed of what lies there.
    pub(super) fn room(&self, lap: u64, bands: u64) -> bool {
        self.packets.front().is_none_or(|p| u64::from(p.lap) + bands > lap)
    }

    /// Puts a packet at `at`; its blocks become the newest copies.
    pub(super) fn append(&mut self, at: Head, length: u64, span: Range<u64>) {
        self.keep(Packet {
            lba: span.start,
            lap: at.lap as u32,
            offset: at.offset as u32,
            length: length as u32,
            blocks: 0,
            writes: 0,
            live: 0,
            held: 0,
        });
        self.head = Head { lap: at.lap, offset: at.offset + length, length: at.length + length };
        self.put(span);
    }

    /// Adds a write to the last packet, whose length becomes `length`.
    pub(super) fn join(&mut self, length: u64, span: Range<u64>) {
        let kept = self.packets.len();
        let Some(last) = self.packets.back_mut() else { return };
        if self.dead.0 == kept {
            self.dead = (kept - 1, self.dead.1 - u64::from(last.length));
        }
        let more = length - u64::from(last.length);
        last.length = length as u32;
        self.kept += more;
        self.head.offset += more;
        self.head.length += more;
        self.keep_further(span.clone());
        self.put(span);
    }

    /// A packet of which nothing is known yet but where it lies.
    pub(super) fn keep(&mut self, packet: Packet) {
        self.kept += u64::from(packet.length);
        self.packets.push_back(packet);
    }

    /// The last packet that is kept has a span besides its first.
    pub(super) fn keep_further(&mut self, span: Range<u64>) {
        self.further.push_back((self.first + self.packets.len() as u64 - 1, span));
    }

    /// Adds blocks to the last packet.
    fn put(&mut self, span: Range<u64>) {
        let blocks = span.end - span.start;
        let number = (self.first as u32).wrapping_add(self.packets.len() as u32 - 1);
        let p = self.packet_mut(number);
        let (at, dead) = (p.blocks.into(), p.live == 0);
        p.blocks += blocks as u32;
        p.writes += 1;
        p.live += blocks as u32;
        self.live += u64::from(dead);
        self.live_blocks += blocks;
        let new = Extent { lba: span.start, blocks, packet: number, at };
        self.superseding(|map, gone| map.replace(new, gone));
        self.trim();
    }

    /// The copies of these blocks are not the newest any more.
    pub(super) fn kill(&mut self, span: Range<u64>) {
        self.superseding(|map, gone| map.remove(span, gone));
    }

    /// Changes the map, and counts what it says is gone.
    fn superseding(&mut self, change: impl FnOnce(&mut Extents, &mut dyn FnMut(Extent))) {
        let (packets, first) = (&mut self.packets, self.first as u32);
        let (live, live_blocks) = (&mut self.live, &mut self.live_blocks);
        change(&mut self.map, &mut |e| {
            let p = &mut packets[e.packet.wrapping_sub(first) as usize];
            p.live -= e.blocks as u32;
            *live_blocks -= e.blocks;
            *live -= u64::from(p.live == 0);
        });
    }

    /// Takes all blocks of `span` out for cleaning, into `taken`, ascending; their packets are kept until [`release`](Self::release).
    pub(super) fn take(&mut self, span: Range<u64>, taken: &mut Vec<Extent>) {
        taken.clear();
        self.superseding(|map, gone| {
            map.remove(span, |e| {
                gone(e);
                taken.push(e);
            });
        });
        taken.reverse();
        for e in taken {
            self.packet_mut(e.packet).held += e.blocks as u32;
        }
    }

    /// What was taken is home.
    pub(super) fn release(&mut self, taken: &[Extent]) {
        for e in taken {
            self.packet_mut(e.packet).held -= e.blocks as u32;
        }
        self.trim();
    }

    /// Forgets the oldest packets of which nothing is needed.
    pub(super) fn trim(&mut self) {
        while let Some(p) = self.packets.front()
            && p.live == 0
            && p.held == 0
        {
            let length = u64::from(p.length);
            self.kept -= length;
            if self.dead.0 > 0 {
                self.dead = (self.dead.0 - 1, self.dead.1 - length);
            }
            while self.further.front().is_some_and(|f| f.0 == self.first) {
                self.further.pop_front();
            }
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// The highest live block of the oldest packet that has one.
    pub(super) fn oldest(&mut self) -> Option<u64> {
        let i = self.oldest_live()?;
        if self.packets[i].live == self.packets[i].blocks {
            // Mostly: nothing of it was written again.
            return self.spans(i).map(|span| span.end - 1).max();
        }
        let number = (self.first as u32).wrapping_add(i as u32);
        let newest = |span: Range<u64>| {
            self.map.within(span).filter(|e| e.packet == number).map(|e| e.lba + e.blocks - 1).max()
        };
        self.spans(i).filter_map(newest).max()
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        let further = self.further.len() * size_of::<(u64, Range<u64>)>();
        self.map.bytes() + (self.packets.len() * size_of::<Packet>() + further) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;
    use std::collections::BTreeMap;

    /// What is kept from step to step is what a look at all packets says.
    #[test]
    fn the_oldest_packets_are_known_without_a_look_at_all() {
        let (mut log, mut rng) = (Log::default(), Rng::new(2));
        let mut written: BTreeMap<u64, Vec<Range<u64>>> = BTreeMap::new();
        let mut away = VecDeque::new();
        // Numbers pass 2^32.
        log.first = (1 << 32) - 500;
        let (mut joined, mut revived) = (0, 0);
        for _ in 0..20_000 {
            let lba = rng.below(300);
            let span = lba..lba + 1 + rng.below(20);
            match rng.below(8) {
                0 if lba < 30 => log.kill(0..400),
                0 | 1 => log.kill(span),
                2 => {
                    away.push_back(Vec::new());
                    log.take(span, away.back_mut().unwrap());
                }
                3 => away.pop_front().into_iter().for_each(|taken| log.release(&taken)),
                4 | 5 if !log.packets.is_empty() => {
                    let last = log.packets.back().unwrap();
                    (joined, revived) = (joined + 1, revived + u64::from(last.live == 0));
                    let number = log.first + log.packets.len() as u64 - 1;
                    written.get_mut(&number).unwrap().push(span.clone());
                    log.join(u64::from(last.length) + 3 + span.end - span.start, span);
                }
                _ => {
                    written.insert(log.first + log.packets.len() as u64, vec![span.clone()]);
                    log.append(log.place(30, |_| 100), 30, span);
                }
            }
            log.trim();
            let length =
                |from: usize| log.packets.iter().skip(from).map(|p| u64::from(p.length)).sum::<u64>();
            let oldest = log.packets.iter().position(|p| p.live > 0);
            let span = oldest.map_or((0, 0), |i| ((log.packets.len() - i) as u64, length(i)));
            let highest = oldest.and_then(|i| {
                let number = (log.first + i as u64) as u32;
                log.map.iter().filter(|e| e.packet == number).map(|e| e.lba + e.blocks - 1).max()
            });
            let live = log.packets.iter().filter(|p| p.live > 0).count() as u64;
            assert_eq!((log.kept, log.live), (length(0), live));
            assert_eq!((log.span(), log.oldest()), (span, highest));
            let i = rng.below(1 + log.packets.len() as u64) as usize;
            if i < log.packets.len() {
                assert!(log.spans(i).eq(written[&(log.first + i as u64)].iter().cloned()));
            }
        }
        assert!(joined > 1000 && revived > 10 && log.first > 1 << 32, "{joined} {revived} {}", log.first);
    }
}
