//! What an array says of itself.

use super::{Arrayed, LockedArray, SsdBytes, drive};
use crate::engine::map_stats;
use crate::error::Result;
use crate::ledger::Ledger;
use crate::stats::Events;
use serde_json::{Map, Value, json};
use smrlab_array::{Counts, Health, Stop};
use smrlab_stl::Counted;

/// Says how the server before ended, where that was not in good order; what is left to do because of it is recorded by now.
pub(super) fn taken_up(stop: Stop, ledger: Option<&Ledger>, events: &Events) -> Result<()> {
    let why = match stop {
        Stop::Orderly => return Ok(()),
        Stop::Killed => "the server was killed while disks were written",
        Stop::PowerLost => "the host lost its power",
    };
    events.push("unclean", None, format!("{why}: what was under way is made to fit again"));
    ledger.map_or(Ok(()), Ledger::rest)
}

impl LockedArray {
    /// What the array itself and the arrays that are its members counted.
    fn counted(&self) -> Counts {
        Counts::of(self.event_loop.array())
    }
}

impl Arrayed {
    /// How each disk is.
    pub(super) fn health(&self) -> Value {
        let state = self.table.lock();
        let of = |disk: usize| match state.health(disk) {
            Health::Whole => json!({"disk": disk, "state": "whole"}),
            Health::Dead => json!({"disk": disk, "state": "dead"}),
            Health::Rebuilding(done, of) => {
                let share = done as f64 / of.max(1) as f64;
                json!({"disk": disk, "state": "rebuilding", "rebuilt": done, "of": of, "share": share})
            }
        };
        (0..state.bytes.disks.len()).map(of).collect()
    }

    /// What it is.
    pub(super) fn stats(&self) -> Value {
        let array = &self.members.chosen;
        json!({"drive": self.members.drive, "layer": self.members.layer, "array": array.resolved, "keeps_data": true, "survives_cut": self.survives_cut,
               "discards": self.discards, "losses": array.capabilities().losses, "disks": self.health()})
    }

    /// Its counters, and those of each disk, whose map takes at most `budget` bytes.
    pub(super) fn counts(&self, budget: u64) -> Value {
        let mut disks = self.health();
        let state = self.table.lock();
        let told = |own: &Counted, members: Vec<Map<String, Value>>| {
            let mut out: Map<String, Value> = own.iter().map(|(name, n)| (name.into(), n.into())).collect();
            if !members.is_empty() {
                out.insert("members".into(), members.into_iter().map(Value::from).collect());
            }
            out
        };
        let mut array = state.counted().since(&state.before).told(&told);
        array.insert("map_bytes".into(), state.event_loop.array().map_bytes().into());
        match &*state.bytes.ssds {
            [] => {}
            [ssd] => _ = array.insert("ssd".into(), ssd.stats()),
            all => _ = array.insert("ssds".into(), all.iter().map(SsdBytes::stats).collect()),
        }
        array.insert("fences".into(), state.bytes.fences.into());
        for (i, own) in state.bytes.disks.iter().enumerate() {
            for (key, value) in own.stats(drive(&state.event_loop, i)) {
                disks[i][key] = value;
            }
            disks[i]["medium"] = map_stats(&own.medium, budget);
        }
        json!({"array": array, "disks": disks})
    }

    /// Forgets the counters.
    pub(super) fn count_anew(&self) {
        let state = &mut *self.table.lock();
        state.before = state.counted();
        state.bytes.fences = 0;
        state.bytes.ssds.iter_mut().for_each(SsdBytes::count_anew);
        for (i, own) in state.bytes.disks.iter_mut().enumerate() {
            own.count_anew(drive(&state.event_loop, i));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_an_array_is_unclean_is_told() {
        for (stop, why) in
            [(Stop::Orderly, None), (Stop::Killed, Some("killed")), (Stop::PowerLost, Some("lost its power"))]
        {
            let events = Events::default();
            taken_up(stop, None, &events).unwrap();
            let told = events.after(0).pop();
            assert_eq!(told.is_some(), why.is_some(), "{stop:?}");
            assert!(why.is_none_or(|why| told.is_some_and(|e| e.text.contains(why))), "{stop:?}");
        }
    }
}
