//! Which requests of a trace are kept: `op=write,device=hm_0,lba=1GB..2GB,size=4KiB..64KiB`.

use crate::{Batch, TraceSource};
use smrlab_units::spec::{Kind, Param, SpecError, Values, split_item};
use smrlab_units::{Blocks, HostOp, Quantity, Size};
use std::collections::BTreeMap;

/// What a filter may ask for; everything that is given must hold.
pub const PARAMS: &[Param] = &[
    Param::new("op", Kind::Text, "")
        .doc("the operations: read, write, flush, discard, or several as read;write"),
    Param::new("device", Kind::Text, "")
        .doc("the devices by name or number, several as hm_0;hm_1 (`smrlab trace info` names them)"),
    Param::new("lba", Kind::Text, "").doc("first blocks, FROM..TO as sizes: 1GB..2GB, 0..1000blk"),
    Param::new("size", Kind::Text, "").doc("lengths, FROM..TO, both included: 4KiB..64KiB"),
];

/// Keeps the requests for which everything holds that it asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// By [`HostOp`]'s number.
    ops: [bool; HostOp::KINDS],
    devices: Option<Vec<String>>,
    /// Whether a device is kept, as far as it has been met.
    known: BTreeMap<u32, bool>,
    /// From the first on, before the second.
    lba: (u64, u64),
    /// From the first to the second.
    blocks: (u64, u64),
}

impl Filter {
    /// From `k=v,…` with the keys of [`PARAMS`].
    ///
    /// # Errors
    /// Unknown keys and values that are not accepted, all at once.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let item = format!("requests,{text}");
        let values = Values::check("requests", PARAMS, &split_item(&item).1)?;
        let mut ops = [true; HostOp::KINDS];
        if let Some(names) = values.text("op") {
            ops = [false; HostOp::KINDS];
            for name in names.split(';') {
                let op = HostOp::ALL.iter().find(|op| op.name() == name.trim()).ok_or_else(|| {
                    let known = HostOp::ALL.map(HostOp::name).join(", ");
                    values.bad("op", format!("of {known}; several as read;write"))
                })?;
                ops[op.index()] = true;
            }
        }
        let devices =
            values.text("device").map(|names| names.split(';').map(|n| n.trim().to_owned()).collect());
        let range = |key: &str| match values.text(key) {
            None => Ok((0, u64::MAX)),
            Some(text) => range(text).ok_or_else(|| {
                values.bad(key, "FROM..TO as sizes with their units, such as 4KiB..64KiB or 0..1000blk")
            }),
        };
        Ok(Self { ops, devices, known: BTreeMap::new(), lba: range("lba")?, blocks: range("size")? })
    }

    /// Keeps the rows of `batch` that it takes; names of devices are those that `source` tells.
    pub fn apply(&mut self, batch: &mut Batch, source: &dyn TraceSource) {
        let Self { ops, devices, known, lba, blocks } = self;
        batch.retain(|r| {
            let device = devices.as_ref().is_none_or(|wanted| {
                *known.entry(r.device).or_insert_with(|| {
                    let (name, number) = (source.device_name(r.device), r.device.to_string());
                    wanted.iter().any(|w| *w == name || *w == number)
                })
            });
            let length = u64::from(r.blocks);
            ops[r.op.index()]
                && device
                && (lba.0..lba.1).contains(&r.lba.0)
                && (blocks.0..=blocks.1).contains(&length)
        });
    }
}

/// `FROM..TO` in blocks; either side may be missing. A bare number would be bytes, and who writes one means blocks.
fn range(text: &str) -> Option<(u64, u64)> {
    let side = |t: &str, default: u64| match t.trim() {
        "" => Some(default),
        "0" => Some(0),
        t if t.ends_with(|c: char| c.is_ascii_digit()) => None,
        t => match Size::parse(t).ok()? {
            Size::Bytes(bytes) => Some(Blocks::holding(bytes).0),
            Size::Share(_) => None,
        },
    };
    let (from, to) = text.split_once("..")?;
    let (from, to) = (side(from, 0)?, side(to, u64::MAX)?);
    (from <= to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, Record};
    use smrlab_units::{Lba, SimTime};

    fn kept(text: &str) -> Vec<u64> {
        let record = |i: u64, op| Record {
            arrival: SimTime(i),
            op,
            lba: Lba(i * 100),
            blocks: 8 << i,
            device: i as u32 % 2,
            stream: 0,
            fua: false,
        };
        let mut batch = Batch::new();
        HostOp::ALL[..4].iter().enumerate().for_each(|(i, op)| batch.push(record(i as u64, *op)));
        Filter::parse(text).unwrap().apply(&mut batch, &Memory::default());
        batch.arrival.iter().map(|at| at.0).collect()
    }

    #[test]
    fn everything_asked_for_must_hold() {
        assert_eq!(kept("op=write;flush"), [1, 2]);
        assert_eq!(kept("device=1"), [1, 3]);
        assert_eq!(kept("lba=100blk..300blk"), [1, 2], "from the first on, before the second");
        assert_eq!(kept("size=8KiB..16KiB"), [1, 2], "both ends included");
        assert_eq!(kept("size=..4KiB"), [0]);
        assert_eq!(kept("device=0,op=read;write"), [0]);
    }

    #[test]
    fn mistakes_name_what_is_accepted() {
        for (text, needle) in [
            ("op=erase", "discard"),
            ("lba=5", "FROM..TO"),
            ("size=9KiB..4KiB", "4KiB..64KiB"),
            ("lba=0..150", "1000blk"),
        ] {
            let e = Filter::parse(text).unwrap_err().to_string();
            assert!(e.contains(needle), "{text}: {e}");
        }
        assert!(Filter::parse("ops=read").unwrap_err().to_string().contains("did you mean 'op'"));
    }
}
