//! The log: packets one behind the other over its bands, as many times as they go round.

use super::extents::{Extent, Extents};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;

/// A packet of the log: one entry of the drive's map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// Bands of the log that were begun before its own.
    pub lap: u64,
    /// Offset in that band, in blocks.
    pub offset: u64,
    /// Length in the log, overhead included.
    pub length: u64,
    /// Length of the log up to its beginning.
    pub before: u64,
    /// Blocks of data.
    pub blocks: u64,
    /// Host writes that share it.
    pub writes: u64,
    /// Blocks of which it holds the newest copy.
    pub live: u64,
    /// Blocks that a round of cleaning has taken and not brought home yet.
    pub held: u64,
    /// What was written, for the highest block that is live.
    pub spans: SmallVec<[Range<u64>; 1]>,
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
    /// Least length of a packet in the log.
    pub slot: u64,
    /// What a packet takes beside its data.
    pub overhead: u64,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub head: Head,
    /// Number of the first packet that is kept.
    pub first: u64,
    pub packets: VecDeque<Packet>,
    pub map: Extents,
    /// Packets with live blocks.
    pub live: u64,
    /// Live blocks.
    pub live_blocks: u64,
}

impl Log {
    pub fn packet(&self, number: u64) -> &Packet {
        &self.packets[(number - self.first) as usize]
    }

    pub fn packet_mut(&mut self, number: u64) -> &mut Packet {
        &mut self.packets[(number - self.first) as usize]
    }

    /// The number of the next packet.
    pub fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Packets from the oldest live one to the head, dead ones included, and their length.
    pub fn span(&self) -> (u64, u64) {
        match self.packets.iter().position(|p| p.live > 0) {
            Some(i) => (self.packets.len() as u64 - i as u64, self.head.length - self.packets[i].before),
            None => (0, 0),
        }
    }

    /// Length of the log from the oldest packet that is kept, those included whose blocks are on their way home.
    pub fn kept(&self) -> u64 {
        self.packets.front().map_or(0, |p| self.head.length - p.before)
    }

    /// Where a packet of `length` would begin, `bands` being the lengths of the log's bands.
    pub fn place(&self, length: u64, band: impl Fn(u64) -> u64) -> Head {
        let h = self.head;
        if h.offset + length <= band(h.lap) { h } else { Head { lap: h.lap + 1, offset: 0, ..h } }
    }

    /// Whether `lap` can be begun in a log of `bands` bands: nothing is needed of what lies there.
    pub fn room(&self, lap: u64, bands: u64) -> bool {
        self.packets.front().is_none_or(|p| p.lap + bands > lap)
    }

    /// Puts a packet at `at`; its blocks become the newest copies.
    pub fn append(&mut self, at: Head, length: u64, span: Range<u64>) {
        let number = self.next();
        let blocks = span.end - span.start;
        self.packets.push_back(Packet {
            lap: at.lap,
            offset: at.offset,
            length,
            before: at.length,
            blocks: 0,
            writes: 0,
            live: 0,
            held: 0,
            spans: SmallVec::new(),
        });
        self.head = Head { lap: at.lap, offset: at.offset + length, length: at.length + length };
        self.live += u64::from(blocks > 0);
        self.put(number, span);
    }

    /// Adds a write to the last packet, whose length becomes `length`.
    pub fn join(&mut self, length: u64, span: Range<u64>) {
        let number = self.next() - 1;
        let last = self.packet_mut(number);
        let more = length - last.length;
        last.length = length;
        let dead = last.live == 0;
        self.live += u64::from(dead);
        self.head.offset += more;
        self.head.length += more;
        self.put(number, span);
    }

    fn put(&mut self, number: u64, span: Range<u64>) {
        let blocks = span.end - span.start;
        let p = self.packet_mut(number);
        let at = p.blocks;
        p.blocks += blocks;
        p.writes += 1;
        p.live += blocks;
        p.spans.push(span.clone());
        self.live_blocks += blocks;
        let new = Extent { lba: span.start, blocks, packet: number, at };
        self.superseding(|map, gone| map.replace(new, gone));
        self.trim();
    }

    /// The copies of these blocks are not the newest any more.
    pub fn kill(&mut self, span: Range<u64>) {
        self.superseding(|map, gone| map.remove(span, gone));
    }

    /// Changes the map, and counts what it says is gone.
    fn superseding(&mut self, change: impl FnOnce(&mut Extents, &mut dyn FnMut(Extent))) {
        let (packets, first) = (&mut self.packets, self.first);
        let (live, live_blocks) = (&mut self.live, &mut self.live_blocks);
        change(&mut self.map, &mut |e| {
            let p = &mut packets[(e.packet - first) as usize];
            p.live -= e.blocks;
            *live_blocks -= e.blocks;
            *live -= u64::from(p.live == 0);
        });
    }

    /// Takes all blocks of `span` out for cleaning; their packets are kept until [`release`](Self::release).
    pub fn take(&mut self, span: Range<u64>) -> Vec<Extent> {
        let taken: Vec<Extent> = self.map.within(span.clone()).collect();
        self.kill(span);
        for e in &taken {
            self.packet_mut(e.packet).held += e.blocks;
        }
        taken
    }

    /// What was taken is home.
    pub fn release(&mut self, taken: &[Extent]) {
        for e in taken {
            self.packet_mut(e.packet).held -= e.blocks;
        }
        self.trim();
    }

    /// Forgets the oldest packets of which nothing is needed.
    pub fn trim(&mut self) {
        while self.packets.front().is_some_and(|p| p.live == 0 && p.held == 0) {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// The highest live block of the oldest packet that has one.
    pub fn oldest(&self) -> Option<u64> {
        let i = self.packets.iter().position(|p| p.live > 0)?;
        let number = self.first + i as u64;
        let newest = |span: &Range<u64>| {
            self.map.within(span.clone()).filter(|e| e.packet == number).map(|e| e.lba + e.blocks - 1).max()
        };
        self.packets[i].spans.iter().filter_map(newest).max()
    }
}
