//! What an array says of itself.

use super::Arrayed;
use serde_json::{Map, Value, json};
use smrlab_array::Health;

impl Arrayed {
    /// How each disk is.
    pub(super) fn health(&self) -> Value {
        let state = self.state.lock();
        let of = |disk: usize| match state.health(disk) {
            Health::Whole => json!({"disk": disk, "state": "whole"}),
            Health::Dead => json!({"disk": disk, "state": "dead"}),
            Health::Rebuilding(done, of) => {
                let share = done as f64 / of.max(1) as f64;
                json!({"disk": disk, "state": "rebuilding", "rebuilt": done, "of": of, "share": share})
            }
        };
        (0..state.carry.disks.len()).map(of).collect()
    }

    /// What it is.
    pub fn info(&self) -> Value {
        json!({"layer": self.layer, "array": self.array, "keeps_data": true, "survives_cut": self.survives_cut,
               "discards": self.discards, "losses": self.capabilities.losses, "disks": self.health()})
    }

    /// Its counters, and those of each disk.
    pub fn stats(&self) -> (Value, Value) {
        let mut disks = self.health();
        let state = self.state.lock();
        let mut array = Map::new();
        state.controller.array().counters(&mut |name, n| _ = array.insert(name.to_owned(), n.into()));
        array.insert("map_bytes".into(), state.controller.array().map_bytes().into());
        for (i, own) in state.carry.disks.iter().enumerate() {
            disks[i]["by_cause"] = own.media.json();
            disks[i]["fences"] = own.media.fences.into();
            if let Some(drive) = state.drive(i) {
                let mut layer = Map::new();
                drive.layer().counters(&mut |name, n| _ = layer.insert(name.to_owned(), n.into()));
                disks[i]["layer"] = layer.into();
            }
        }
        (array.into(), disks)
    }

    /// Forgets the counters of media operations.
    pub fn reset(&self) {
        self.state.lock().carry.disks.iter_mut().for_each(|d| d.media = Default::default());
    }
}
