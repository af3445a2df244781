//! What was found out of a drive in one sitting or more: a probe that is stopped goes on from there.

use super::Identity;
use super::fill::Filling;
use super::moved::{self, Places};
use crate::dial::Dial;
use crate::{ProbeError, Result};
use serde::{Deserialize, Serialize};

/// Parts that are done once; one that was not finished is begun again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stage {
    Place,
    Rest,
    Fill,
    Mapping,
    Bands,
}

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sittings {
    /// Blocks of the drive.
    blocks: u64,
    /// The answer, as far as it is known; complete where it has its one line.
    pub found: Identity,
    done: Vec<Stage>,
    /// How often pieces were looked at, and how many were written for that.
    looks: u64,
    pub(super) written: u64,
    /// Where the first pieces were seen; absent before.
    places: Option<Places>,
    /// How far a cache was filled.
    pub(super) filling: Filling,
}

impl Sittings {
    /// Nothing is known of a drive of so many blocks.
    pub fn new(blocks: u64) -> Self {
        Self { blocks, found: Identity { schema: 1, ..Identity::default() }, ..Self::default() }
    }

    /// Whether there is something to keep.
    pub fn begun(&self) -> bool {
        self.places.is_some()
    }

    pub(super) fn check(&self, blocks: u64) -> Result<()> {
        if self.blocks == blocks {
            return Ok(());
        }
        Err(ProbeError::Input(format!(
            "what was found out before is of a drive of {} blocks, this one has {blocks}: use another --out",
            self.blocks
        )))
    }

    /// Writes pieces and looks where they went. In a later sitting that is done again with others as long as it is not known
    /// whether they go home (they may have done so meanwhile); after that only their angles are taken anew, for the clock is
    /// another.
    pub(super) fn look(&mut self, dial: &mut Dial<'_>) -> Result<Places> {
        let known = self.places.as_ref().filter(|_| self.done.contains(&Stage::Rest));
        let places = match known.cloned() {
            Some(mut places) => {
                places.turn_to(dial)?;
                places
            }
            None => {
                let mut seen = Vec::new();
                self.looks += 1;
                let places = moved::write_and_look(dial, self.looks, &mut self.written, &mut seen)?;
                self.found.evidence.retain(|e| seen.iter().all(|s| s.test != e.test));
                self.found.evidence.splice(0..0, seen);
                places
            }
        };
        self.places = Some(places.clone());
        Ok(places)
    }

    /// Small pieces that a cache holds before it is filled. Where idle time cleans it these went home, as what an earlier sitting filled it
    /// with, which is forgotten; where it is cleaned only for want of room both count.
    pub(super) fn held(&mut self, lazy: bool) -> u64 {
        if lazy {
            return self.written;
        }
        self.filling = Filling::default();
        0
    }

    /// Does a stage that is not done; what an unfinished one had noted is dropped.
    pub(super) fn once(
        &mut self,
        stage: Stage,
        keep: &mut dyn FnMut(&Self),
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if self.done.contains(&stage) {
            return Ok(());
        }
        let noted = self.found.evidence.len();
        let done = work(self);
        if done.is_ok() {
            self.done.push(stage);
            keep(self);
        } else {
            self.found.evidence.truncate(noted);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::super::Evidence;
    use super::*;
    use crate::Quiet;
    use crate::fakes::{Fake, TURN, passes};

    fn look(known: &mut Sittings, turned: f64) -> usize {
        let mut target = Fake::new(1 << 22, |_, lba, _, now| passes(lba as f64 / 1000.0 + turned, now));
        let mut quiet = Quiet;
        let mut dial = Dial::new(&mut target, &mut quiet);
        dial.set_period(TURN as f64, 0.0);
        known.look(&mut dial).unwrap();
        target.asked.iter().filter(|a| a.0 == smrlab_units::Dir::Write).count()
    }

    /// Pieces are written once more as long as the drive's rest was not looked at; from then on their angles alone are taken, and
    /// kept as they are by the clock of the sitting.
    #[test]
    fn places_are_kept_from_sitting_to_sitting() {
        let mut known = Sittings::new(1 << 22);
        assert!(!known.begun());
        assert_eq!(look(&mut known, 0.0), 96);
        let first = known.places.clone().unwrap();
        assert_eq!((known.begun(), known.written, known.looks), (true, 96, 1));
        assert_eq!((look(&mut known, 0.3), known.written, known.looks), (96, 192, 2));
        let second = known.places.clone().unwrap();
        assert_ne!(first, second, "at places of its own");
        known.done.push(Stage::Rest);
        assert_eq!((look(&mut known, 0.5), known.written, known.looks), (0, 192, 2));
        let third = known.places.clone().unwrap();
        let off = crate::stats::wrap(third.native(3).1 - second.native(3).1 - 0.2);
        assert!(third.native(3).0 == second.native(3).0 && off.abs() < 1e-6, "{off}");
        assert_eq!(known.found.evidence.len(), 1, "the last look counts");
    }

    /// A cache that was half full when the last sitting ended.
    #[test]
    fn what_idle_time_cleaned_is_not_held() {
        let half: Filling = serde_json::from_str(
            r#"{"next": 3, "times": [1.0], "broke": null, "usual": 2.0, "steady": 0.0}"#,
        )
        .unwrap();
        for (lazy, held, filling) in [(true, 96, half.clone()), (false, 0, Filling::default())] {
            let mut known = Sittings { written: 96, filling: half.clone(), ..Sittings::new(64) };
            assert_eq!((known.held(lazy), known.filling), (held, filling));
        }
    }

    /// A stage is done once; what one that failed had noted is dropped, and it is begun again.
    #[test]
    fn a_stage_that_failed_is_begun_again() {
        let (mut known, mut kept, mut runs) = (Sittings::new(64), 0, 0);
        let note = Evidence::new("one", String::new(), String::new());
        for (fails, notes) in [(true, 0), (false, 1), (false, 1)] {
            let done = known.once(Stage::Fill, &mut |_| kept += 1, |known| {
                runs += 1;
                known.found.evidence.push(note.clone());
                if fails { Err(ProbeError::Interrupted) } else { Ok(()) }
            });
            assert_eq!((done.is_err(), known.found.evidence.len()), (fails, notes));
        }
        assert_eq!((kept, runs), (1, 2), "kept when it was done");
        assert!(known.check(64).is_ok() && known.check(65).is_err());
    }
}
