//! Writers that keep the rules of zones: each writes its zones in order, and resets one before it writes it again.

use super::{Common, Drawn, Generator, Pattern};
use smrlab_units::HostOp;
use smrlab_units::ZoneAction;
use smrlab_units::spec::{Kind, Param};

/// Blocks of a physical block of drives with zones.
const PHYSICAL: u64 = 8;

/// 256 MiB.
const ZONE: u64 = 1 << 19;

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "zoned",
    summary: "writers in turn, each in zones of its own, in order; a zone that is written again is reset before",
    reference: "What a host-managed drive takes: a log-structured file system or store with so many streams.",
    params: &[
        Param::new("writers", Kind::Count(1, 4096), "1").doc("writers, each with one open zone"),
        Param::new("zone", Kind::Size, "").doc(
            "size of the drive's zones; default: as the layer zoned has it, 256MiB and less where that \
             makes fewer than 16",
        ),
        Param::new("from", Kind::Size, "2%").doc(
            "where the writers begin, rounded up to a zone: behind the conventional zones, of which the layer \
             zoned has 1% by default",
        ),
    ],
    defaults: &[("write", "100%"), ("size", "exp(512KiB)"), ("align", "4KiB")],
    make: |v, common| {
        let whole = smrlab_units::Blocks(common.span);
        let writers = v.count("writers");
        let mut zone = v.given("zone", |v, key| v.size(key, whole).0).unwrap_or(ZONE);
        if v.text("zone").is_none() {
            while zone > PHYSICAL && common.span / zone < 16 {
                zone /= 2;
            }
        }
        if zone == 0 || !zone.is_multiple_of(PHYSICAL) {
            return Err(v.bad("zone", "a multiple of 4KiB, such as 256MiB"));
        }
        let from = v.size("from", whole).0.next_multiple_of(zone);
        let zones = common.span.saturating_sub(from) / zone;
        if zones < writers {
            return Err(v.bad("writers", format!("at most {zones}, the zones behind from= in the span")));
        }
        let writers =
            (0..writers).map(|w| Writer { zone: w, written: 0, again: false, reset: false }).collect();
        Ok(Box::new(Zoned { zone, from, zones, writers, turn: 0 }))
    },
};

struct Writer {
    /// Its present zone; the next one is as many further as there are writers.
    zone: u64,
    written: u64,
    /// All its zones were written in a round before.
    again: bool,
    /// Its present zone is to be reset first.
    reset: bool,
}

struct Zoned {
    zone: u64,
    from: u64,
    zones: u64,
    writers: Vec<Writer>,
    turn: usize,
}

impl Pattern for Zoned {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let turn = self.turn;
        let writers = self.writers.len();
        let writer = &mut self.writers[turn];
        let start = self.from + writer.zone * self.zone;
        if std::mem::take(&mut writer.reset) {
            return Some(common.does(HostOp::Zone(ZoneAction::Reset), start, self.zone));
        }
        self.turn = (turn + 1) % writers;
        let blocks = common.size().next_multiple_of(PHYSICAL).min(self.zone - writer.written);
        let drawn = common.at(start + writer.written, blocks);
        if drawn.op == HostOp::Read {
            // Of what this writer wrote last, or of its zone's first block.
            let lba = start + writer.written.saturating_sub(blocks);
            return Some(Drawn { lba, ..drawn });
        }
        writer.written += blocks;
        if writer.written == self.zone {
            writer.written = 0;
            let next = writer.zone + writers as u64;
            let first = turn as u64;
            (writer.zone, writer.again) =
                if next < self.zones { (next, writer.again) } else { (first, true) };
            writer.reset = writer.again;
        }
        Some(drawn)
    }
}
