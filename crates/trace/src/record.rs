//! The record, and the batch of records in which traces travel.

use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it arrives.
    pub arrival: SimTime,
    /// What it asks for.
    pub op: HostOp,
    /// Its first block, within its device.
    pub lba: Lba,
    /// How many blocks of 512 bytes it touches; zero for a flush only. A zone command is for every zone of which it touches a block.
    pub blocks: u32,
    /// The device that it goes to; see [`crate::TraceSource::device_name`].
    pub device: u32,
    /// Which of several interleaved or merged sources it comes from.
    pub stream: u16,
    /// A write that is answered only when it is on the medium (force unit access), whatever caches are on.
    pub fua: bool,
}

impl Record {
    /// The length of a zone command that is for every zone from its first block to the end of the device.
    pub const TO_END: u32 = u32::MAX;

    /// One past the last block touched.
    pub fn end(&self) -> Lba {
        self.lba + Blocks(u64::from(self.blocks))
    }
}

/// Records column by column, at most about [`Batch::ROWS`]; all columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Arrivals, not falling.
    pub arrival: Vec<SimTime>,
    /// Operations.
    pub op: Vec<HostOp>,
    /// First blocks.
    pub lba: Vec<Lba>,
    /// Lengths in blocks of 512 bytes.
    pub blocks: Vec<u32>,
    /// Devices.
    pub device: Vec<u32>,
    /// Streams.
    pub stream: Vec<u16>,
    /// Writes that are to be on the medium before they are answered.
    pub fua: Vec<bool>,
}

impl Batch {
    /// Rows that a source puts into a batch: small enough for the L2 cache, large enough to hide the call.
    pub const ROWS: usize = 8192;

    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.arrival.len()
    }

    /// No rows.
    pub fn is_empty(&self) -> bool {
        self.arrival.is_empty()
    }

    /// No room for more rows of this batch.
    pub fn is_full(&self) -> bool {
        self.len() >= Self::ROWS
    }

    /// Removes all rows, keeps the memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Keeps the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.arrival.truncate(rows);
        self.op.truncate(rows);
        self.lba.truncate(rows);
        self.blocks.truncate(rows);
        self.device.truncate(rows);
        self.stream.truncate(rows);
        self.fua.truncate(rows);
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, r: Record) {
        self.arrival.push(r.arrival);
        self.op.push(r.op);
        self.lba.push(r.lba);
        self.blocks.push(r.blocks);
        self.device.push(r.device);
        self.stream.push(r.stream);
        self.fua.push(r.fua);
    }

    /// Appends the rows that `next` has, at most `most` of them; faster than one by one.
    #[inline(always)]
    pub fn push_all(&mut self, most: usize, mut next: impl FnMut() -> Option<Record>) {
        let first = self.len();
        let end = first + most;
        self.resize(end);
        let rows = first..end;
        let (arrival, op, lba) =
            (&mut self.arrival[rows.clone()], &mut self.op[rows.clone()], &mut self.lba[rows.clone()]);
        let (blocks, device) = (&mut self.blocks[rows.clone()], &mut self.device[rows.clone()]);
        let (stream, fua) = (&mut self.stream[rows.clone()], &mut self.fua[rows]);
        let mut n = 0;
        while n < most
            && let Some(r) = next()
        {
            (arrival[n], op[n], lba[n]) = (r.arrival, r.op, r.lba);
            (blocks[n], device[n], stream[n], fua[n]) = (r.blocks, r.device, r.stream, r.fua);
            n += 1;
        }
        self.truncate(first + n);
    }

    /// Makes room for `rows` rows in all; what is new is nothing in particular.
    fn resize(&mut self, rows: usize) {
        self.arrival.resize(rows, SimTime::ZERO);
        self.op.resize(rows, HostOp::Read);
        self.lba.resize(rows, Lba(0));
        self.blocks.resize(rows, 0);
        self.device.resize(rows, 0);
        self.stream.resize(rows, 0);
        self.fua.resize(rows, false);
    }

    /// The row at `i`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, i: usize) -> Record {
        Record {
            arrival: self.arrival[i],
            op: self.op[i],
            lba: self.lba[i],
            blocks: self.blocks[i],
            device: self.device[i],
            stream: self.stream[i],
            fua: self.fua[i],
        }
    }

    /// Keeps the rows that `keep` accepts, in their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&Record) -> bool) {
        let mut kept = 0;
        for i in 0..self.len() {
            let r = self.get(i);
            if keep(&r) {
                self.arrival[kept] = r.arrival;
                self.op[kept] = r.op;
                self.lba[kept] = r.lba;
                self.blocks[kept] = r.blocks;
                self.device[kept] = r.device;
                self.stream[kept] = r.stream;
                self.fua[kept] = r.fua;
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = Record> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }
}
