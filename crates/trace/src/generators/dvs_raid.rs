//! Synthetic stand-ins for the six traces of a study of shingled RAID, fitted to its table of them.

use super::{Common, Drawn, Generator, Pattern, Sizes};
use smrlab_units::HostOp;
use smrlab_units::spec::{Kind, Param, Values};

/// A row of the table; sizes in bytes. `run` is ours: the table says nothing of how sequential a trace is.
struct Row {
    name: &'static str,
    requests: f64,
    unique: f64,
    read: f64,
    write: f64,
    writes: f64,
    updates: f64,
    run: f64,
}

const fn row(name: &'static str, [requests, unique, read, write, writes, updates, run]: [f64; 7]) -> Row {
    Row { name, requests, unique: unique * 1e9, read, write, writes, updates, run }
}

/// Luo et al., Table II.
const ROWS: [Row; 6] = [
    row("usr0", [2_000_000.0, 2.41, 41_848.0, 10_559.0, 1_200_145.0, 1_190_240.0, 4.0]),
    row("web0", [2_000_000.0, 7.26, 30_778.0, 8_828.0, 1_395_007.0, 1_383_358.0, 8.0]),
    row("prxy0", [2_000_000.0, 0.34, 6_296.0, 2_444.0, 1_930_570.0, 1_913_646.0, 0.0]),
    row("mds0", [1_211_034.0, 3.09, 24_278.0, 7_411.0, 1_067_061.0, 1_055_832.0, 16.0]),
    row("financial1", [2_000_000.0, 0.45, 2_569.0, 4_082.0, 1_568_985.0, 1_529_403.0, 0.0]),
    row("financial2", [2_000_000.0, 0.33, 2_228.0, 3_033.0, 352_719.0, 346_169.0, 0.0]),
];

/// Places at which data that are read once are read.
const LANES: u64 = 16;

const NAMES: &[&str] = &["usr0", "web0", "prxy0", "mds0", "financial1", "financial2"];

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "dvs-raid",
    summary: "synthetic streams fitted to a table of six traces: sizes, shares of writes and updates, unique data",
    reference: "Fitted to Table II of Luo et al., DVS: number of requests, unique data, mean sizes, share of writes and of updates. \
                The table says no more: that runs begin in the hot fifth four times in five, and how long runs are, is ours. \
                Writes and some of the reads go to a part as large as all first writes, the other reads once over the rest of the \
                unique data. With fewer requests the data shrink in proportion, so that every block is used as often. `size` \
                and `write`, where given, take the place of the table's.",
    params: &[
        Param::new("stream", Kind::Choice(NAMES), "financial1").doc("the row of the table"),
        Param::new("unique", Kind::Size, "")
            .doc("unique data; default: the row's, in proportion to the requests"),
        Param::new("run", Kind::Real(0.0, 1e9), "").doc(
            "mean requests of a sequential run beyond the first; default: financial1, financial2, prxy0 \
             0, usr0 4, web0 8, mds0 16",
        ),
        Param::new("hot", Kind::Share(0.0, 1.0), "80%")
            .doc("runs that begin in the first fifth of what is written; the others begin all over it"),
        Param::new("written", Kind::Share(0.0, 1.0), "")
            .doc("share of the unique data that is written; default: that of the row's first writes"),
    ],
    defaults: &[("size", ""), ("write", "")],
    make: |v, common| {
        let named = v.text("stream").unwrap_or("financial1");
        let row = ROWS.iter().find(|r| r.name == named).unwrap_or(&ROWS[4]);
        let blocks = |bytes: f64| ((bytes / 512.0) as u64).max(64);
        let scale = v
            .given("unique", |v, key| v.size(key, smrlab_units::Blocks::ZERO).bytes() as f64 / row.unique)
            .unwrap_or(common.requests as f64 / row.requests);
        let unique = blocks(row.unique * scale).min(common.span);
        let first = |share: f64| (unique as f64 * share) as u64;
        let written = v
            .given("written", Values::share)
            .map_or_else(|| blocks((row.writes - row.updates) * row.write * scale), first);
        let written = written.clamp(1, unique);
        let reads = (common.requests as f64 * (1.0 - row.writes / row.requests)).max(1.0) * row.read / 512.0;
        let run = v.given("run", Values::real).unwrap_or(row.run);
        let lane = (unique - written) / LANES;
        Ok(Box::new(Stream {
            write: v.given("write", Values::share).unwrap_or(row.writes / row.requests),
            fitted: v.text("size").is_none(),
            sizes: [Sizes::mean_bytes(row.read), Sizes::mean_bytes(row.write)],
            written,
            once: (unique - written) as f64 / reads,
            run,
            hot: v.share("hot"),
            lane,
            cursors: (0..LANES).map(|i| written + i * lane).collect(),
            left: 0,
            under_way: None,
            at: 0,
            end: 0,
            op: HostOp::Read,
        }))
    },
};

struct Stream {
    write: f64,
    fitted: bool,
    /// Of reads and of writes.
    sizes: [Sizes; 2],
    /// Blocks from 0 on that are written.
    written: u64,
    /// Share of reads that go to the blocks that are never written.
    once: f64,
    run: f64,
    /// Share of runs that begin in the first fifth of what is written.
    hot: f64,
    /// Blocks of a lane: those that are read once are read in lanes, each from its start.
    lane: u64,
    /// How far each lane was read.
    cursors: Vec<u64>,
    left: u64,
    /// The lane of the present run.
    under_way: Option<usize>,
    at: u64,
    /// Where the run must end.
    end: u64,
    op: HostOp,
}

impl Stream {
    fn begin(&mut self, common: &mut Common) {
        self.op = if common.rng.chance(self.write) { HostOp::Write } else { HostOp::Read };
        self.left = 1 + (common.rng.exponential() * self.run) as u64;
        self.under_way = None;
        if self.op == HostOp::Read && self.lane > 0 && common.rng.chance(self.once) {
            let lane = common.rng.below(LANES);
            let start = self.written + lane * self.lane;
            self.end = start + self.lane;
            let cursor = self.cursors[lane as usize];
            self.at = if cursor < self.end { cursor } else { start };
            self.under_way = Some(lane as usize);
        } else {
            let hot = common.rng.chance(self.hot);
            let width = if hot { (self.written / 5).max(1) } else { self.written };
            self.at = common.place(0, width, 1);
            self.end = self.written;
        }
    }
}

impl Pattern for Stream {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        if self.left == 0 || self.at >= self.end {
            self.begin(common);
        }
        let sizes = self.sizes[usize::from(self.op == HostOp::Write)];
        let blocks = if self.fitted { sizes.draw(&mut common.rng) } else { common.size() };
        let blocks = blocks.min(self.end - self.at);
        let drawn = common.does(self.op, self.at, blocks);
        self.left -= 1;
        self.at += blocks;
        if let Some(lane) = self.under_way {
            self.cursors[lane] = self.at;
        }
        Some(drawn)
    }
}
