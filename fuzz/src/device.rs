//! Bytes as a sequence of calls of a served device, compared with a plain model of what it must hold.
//!
//! The first byte chooses the layer, the second block size and reading mode; then come calls: aligned ones and wild ones
//! (misaligned, out of range, huge), control lines, housekeeping.

use super::bytes::Input;
use serde_json::{Value, json};
use smrlab_device::{Config, Device};
use smrlab_disk::{Geometry, Interference};
use smrlab_units::{Blocks, Pba};
use std::sync::Arc;

const BLOCK: u64 = 512;
/// Calls of one input; more are left unread.
const MOST: usize = 256;
const LAYERS: &[&str] = &[
    "raw,tracks=1",
    "raw,tracks=2",
    "raw,tracks=3",
    "raw,tracks=4",
    "raw,tracks=1,band=4",
    "raw,tracks=2,band=3",
    "raw,tracks=3,band=5",
    "cmr",
    "s-block",
    "s-block,granularity=8,sblock_blocks=16",
    "s-block,policy=mix,bypass=off,sections=2,sblock_blocks=16,tracks=2",
    "disk-cache",
    "disk-cache,granularity=8,cache=20%",
    "disk-cache,journal=on,cleaning=partial,clean_bands=2,band=16",
    "rmw",
    "rmw,mode=partial,journal=on",
    "static-R(4123)",
    "static-14R(23),journal=on",
];

/// What a block has to read as.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Held {
    /// Number of the write that it shows; 0: zeroes.
    stamp: u32,
    /// Overwritten from upstream since it was written.
    destroyed: bool,
}

const EMPTY: Held = Held { stamp: 0, destroyed: false };

/// The device, and beside it what it has to hold.
struct Pair {
    device: Arc<Device>,
    holds: Vec<Held>,
    /// How a write destroys what follows; none where a layer hides it.
    head: Option<(Arc<Geometry>, Interference)>,
    garbage: bool,
    errors: bool,
    /// Blocks of a smallest transfer.
    unit: u64,
    /// Data and guard of each band: start, guard, end.
    bands: Vec<(u64, u64, u64)>,
    stamp: u32,
    cursor: u64,
    /// A fault was injected: nothing is known any more but that it must not panic.
    faulty: bool,
}

/// Carries out `data`; panics where device and model differ.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let layer = LAYERS[input.number(1) as usize % LAYERS.len()];
    let flags = input.number(1);
    let mut pair = Pair::new(layer, flags);
    for n in 0..MOST {
        if !input.more() {
            break;
        }
        pair.call(&mut input);
        if n % 64 == 63 {
            pair.compare(0, pair.blocks());
        }
    }
    pair.compare(0, pair.blocks());
}

impl Pair {
    fn new(layer: &str, flags: u64) -> Self {
        let bit = |n: u64| flags >> n & 1 == 1;
        let config: Config = serde_json::from_value(json!({
            "name": "fuzz", "drive": "tiny", "layer": layer, "store": "memory",
            "block": if bit(0) { 4096 } else { 512 },
            "mode": if bit(1) { "performance" } else { "data" }, "errors": bit(2),
            "timing": if bit(3) { "model" } else { "none" }, "speed": 1e6,
        }))
        .expect("a configuration");
        let device = Device::open(config).expect("a device on a small drive");
        let raw = layer.starts_with("raw");
        let head = raw.then(|| {
            let drive = smrlab_disk::model::load("tiny", |_| Err(String::new())).expect("a preset");
            let k = layer.split(',').nth(1).and_then(|t| t.strip_prefix("tracks=")).expect("a head width");
            (drive.geometry().clone(), Interference::tracks(k.parse().expect("a number")))
        });
        let bands = device.raw().map_or(Vec::new(), |r| {
            (0..r.bands()).map(|i| r.band(i).map(|b| (b.start, b.guard, b.end)).expect("a band")).collect()
        });
        let holds = vec![EMPTY; head.as_ref().map_or(device.size() / BLOCK, |h| h.0.blocks().0) as usize];
        Self {
            holds,
            head,
            bands,
            garbage: raw && bit(1),
            errors: raw && bit(2),
            unit: if bit(0) { 8 } else { 1 },
            stamp: 0,
            cursor: 0,
            faulty: false,
            device,
        }
    }

    fn blocks(&self) -> u64 {
        self.device.size() / BLOCK
    }

    fn call(&mut self, input: &mut Input<'_>) {
        let kind = input.number(1) % 14;
        let units = self.blocks() / self.unit;
        match kind {
            0..=6 => {
                let first = input.below(units);
                let n = 1 + input.number(1) % 48;
                let (start, n) = (first * self.unit, n.min(units - first) * self.unit);
                self.aligned(kind, start, n);
            }
            7 => {
                let start = self.cursor / self.unit * self.unit;
                let n = (1 + input.number(1) % 64) * self.unit;
                let n = n.min(units * self.unit - start);
                self.aligned(0, start, n);
                self.cursor = (start + n) % (units * self.unit);
            }
            8 => self.wild(input),
            9 | 10 => {
                let line = command(input);
                self.control(&line);
            }
            11 => {
                let n = input.number(1) as usize;
                let line = String::from_utf8_lossy(input.take(n)).into_owned();
                self.control(&line);
            }
            12 => self.device.housekeeping(),
            _ => {
                let _ = (self.device.stats(), self.device.info(), self.device.events.after(0));
                self.device.reset_stats();
            }
        }
    }

    fn aligned(&mut self, kind: u64, start: u64, n: u64) {
        let (at, len) = (start * BLOCK, n * BLOCK);
        match kind {
            0 | 1 => {
                self.stamp += 1;
                let data: Vec<u8> = (start..start + n).flat_map(|b| self.content(self.stamp, b)).collect();
                let done = self.device.write(at, &data, kind == 1).map_err(|e| e.errno());
                self.changed(done, start, n, self.stamp);
            }
            2 => self.compare(start, start + n),
            3 => {
                let done = self.device.zero(at, len, false).map_err(|e| e.errno());
                self.changed(done, start, n, 0);
            }
            4 => {
                let done = self.device.trim(at, len, true).map_err(|e| e.errno());
                assert!(done.is_ok() || self.faulty, "trim: {done:?}");
                if self.device.can_trim() {
                    self.changed(done, start, n, 0);
                }
            }
            5 => {
                let done = self.device.flush();
                assert!(done.is_ok() || self.faulty, "flush: {done:?}");
            }
            _ => self.extents(start, n),
        }
    }

    /// Every block of a write is the same on a raw medium, since another block may come to show it.
    fn content(&self, stamp: u32, block: u64) -> [u8; BLOCK as usize] {
        let mut bytes = [0; BLOCK as usize];
        if stamp > 0 {
            let place = if self.head.is_some() { 0 } else { block as u32 };
            for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
                word[..4].copy_from_slice(&(stamp ^ (i as u32) << 24).to_le_bytes());
                word[4..].copy_from_slice(&place.to_le_bytes());
            }
        }
        bytes
    }

    /// Notes what a write (or zeroing: stamp 0) did, if it was to be done at all.
    fn changed(&mut self, done: Result<(), i32>, start: u64, n: u64, stamp: u32) {
        if self.faulty {
            return;
        }
        let end = start + n;
        let inside = |(a, guard, _): &(u64, u64, u64)| *a <= start && end <= *guard;
        if !self.bands.is_empty() && !self.bands.iter().any(inside) && self.guarded(start, end) {
            assert_eq!(done, Err(libc::EPERM), "a guard was written: {start}..{end}");
            return;
        }
        assert_eq!(done, Ok(()), "{start}..{end} was refused");
        self.holds[start as usize..end as usize].fill(Held { stamp, destroyed: false });
        let Some((geometry, head)) = &self.head else { return };
        let holds = &mut self.holds;
        head.victims(geometry, Pba(start), Blocks(n), &mut |r| {
            holds[r.start as usize..r.end as usize].fill(Held { stamp, destroyed: true });
        });
    }

    /// Whether a guard track lies in the range.
    fn guarded(&self, start: u64, end: u64) -> bool {
        self.bands.iter().any(|(_, guard, stop)| (*guard).max(start) < (*stop).min(end))
    }

    fn compare(&self, start: u64, end: u64) {
        let mut got = vec![0xEE; ((end - start) * BLOCK) as usize];
        let done = self.device.read(start * BLOCK, &mut got).map_err(|e| e.errno());
        if self.faulty {
            return;
        }
        let want = &self.holds[start as usize..end as usize];
        if self.errors && want.iter().any(|h| h.destroyed) {
            assert_eq!(done, Err(libc::EIO), "destroyed blocks were read: {start}..{end}");
            return;
        }
        assert_eq!(done, Ok(()), "reading {start}..{end}");
        for (i, (block, held)) in got.chunks_exact(BLOCK as usize).zip(want).enumerate() {
            let at = start + i as u64;
            if *held == EMPTY && block == [0; BLOCK as usize] {
                continue;
            }
            let mut bytes = self.content(held.stamp, at);
            if held.destroyed && self.garbage {
                bytes.fill(0xA5);
                bytes[..8].copy_from_slice(&at.to_le_bytes());
            }
            assert!(block == bytes, "block {at} is {:02x?}, not {:02x?}", &block[..16], &bytes[..16]);
        }
    }

    fn extents(&self, start: u64, n: u64) {
        let mut at = start * BLOCK;
        let mut holes = Vec::new();
        let done = self.device.extents(start * BLOCK, n * BLOCK, &mut |a, len, data| {
            assert!(a == at && len > 0, "block status goes on at {a}, not at {at}");
            at += len;
            if !data {
                holes.push((a / BLOCK, (a + len) / BLOCK));
            }
        });
        assert!(done.is_ok() && at > start * BLOCK && at <= (start + n) * BLOCK, "status {done:?} to {at}");
        for (a, b) in holes {
            let shown = &self.holds[a as usize..b as usize];
            let zero = shown.iter().all(|h| h.stamp == 0 && !(h.destroyed && self.garbage));
            assert!(
                zero || self.faulty,
                "{} {}: blocks {a}..{b} are no hole",
                self.device.config().layer,
                self.garbage
            );
        }
    }

    /// A call with any numbers at all: answered, with an error unless it lies inside.
    fn wild(&mut self, input: &mut Input<'_>) {
        let (kind, at, len) = (input.number(1) % 5, input.number(8), input.number(4));
        let mut buffer = vec![0; len.min(1 << 20) as usize];
        let len = if kind < 2 { buffer.len() as u64 } else { len };
        let mask = self.unit * BLOCK - 1;
        let inside =
            (at | len) & mask == 0 && at.checked_add(len).is_some_and(|end| end <= self.device.size());
        if inside {
            return;
        }
        let done = match kind {
            0 => self.device.read(at, &mut buffer),
            1 => self.device.write(at, &buffer, true),
            2 => self.device.trim(at, len, false),
            3 => self.device.zero(at, len, false),
            _ => self.device.extents(at, len, &mut |_, _, _| ()),
        };
        assert_eq!(done.map_err(|e| e.errno()), Err(libc::EINVAL), "{len} bytes at {at}");
    }

    fn control(&mut self, line: &str) {
        let request: Value = serde_json::from_str(line).unwrap_or_default();
        let cmd = request["cmd"].as_str().unwrap_or_default();
        // Those end the process or take long, which is what they are for.
        if cmd == "crash" || ["cut_at", "slow_ns"].iter().any(|k| request.get(k).is_some()) {
            return;
        }
        self.faulty |= cmd == "inject";
        let done = smrlab_device::control::answer(&self.device, &|_, _| None, line);
        if let (Ok(_), "reset-band", Some(number)) = (&done, cmd, request["band"].as_u64()) {
            let (start, _, end) = self.bands[number as usize];
            self.holds[start as usize..end as usize].fill(EMPTY);
        }
    }
}

/// A control line with a number from the input.
fn command(input: &mut Input<'_>) -> String {
    let (kind, n, m) = (input.number(1) % 12, input.number(1), input.number(2));
    let request = match kind {
        0 => json!({"cmd": "info"}),
        1 => json!({"cmd": "stats"}),
        2 => json!({"cmd": "events", "after": n}),
        3 => json!({"cmd": "bands"}),
        4 => json!({"cmd": "band", "band": n}),
        5 | 6 => json!({"cmd": "reset-band", "band": n % 64}),
        7 => json!({"cmd": "map", "cells": m}),
        8 => json!({"cmd": "flush"}),
        9 => json!({"cmd": "reset-stats"}),
        10 => json!({"cmd": "inject", "error_at": n, "unreadable": [m, m + n]}),
        _ => json!({"cmd": "map", "cells": u64::MAX - n}),
    };
    request.to_string()
}
