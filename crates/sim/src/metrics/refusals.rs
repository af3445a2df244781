//! Requests that the drive refused: how many for which reason, and the first of each.

use serde_json::{Map, Value, json};
use smrlab_stl::{HostRequest, Refusal};
use smrlab_units::Lba;
use std::collections::BTreeMap;

/// What was refused for one reason.
#[derive(Clone, Debug)]
struct Reason {
    count: u64,
    first: HostRequest,
    /// The block that stood against the first one.
    at: Lba,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Refusals(BTreeMap<Refusal, Reason>);

impl Refusals {
    /// A request was refused because of a block.
    #[cold]
    pub fn add(&mut self, request: &HostRequest, why: Refusal, at: Lba) {
        self.0.entry(why).or_insert(Reason { count: 0, first: *request, at }).count += 1;
    }

    /// Whether there were any, and how many.
    pub fn count(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.values().map(|r| r.count).sum())
    }

    /// For the result: reasons by name, and the first request of each.
    pub fn json(&self) -> Value {
        let by_reason: Map<_, _> =
            self.0.iter().map(|(why, r)| (why.name().to_owned(), json!(r.count))).collect();
        let first = |(why, r): (&Refusal, &Reason)| {
            json!({"reason": why.name(), "request": r.first.id, "op": r.first.op.name(), "lba": r.first.lba.0,
                   "blocks": r.first.blocks.0, "at": r.at.0})
        };
        json!({"count": self.count(), "by_reason": by_reason, "first": self.0.iter().map(first).collect::<Vec<_>>()})
    }
}
