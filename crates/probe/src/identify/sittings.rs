//! What was found out of a drive in one sitting or more: a probe that is stopped goes on from there.

use super::fill::Filling;
use super::moved::{self, Places};
use super::{DriveKind, Identity};
use crate::ProbeError;
use crate::dial::{Dial, Quality};
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        let found = Identity {
            schema: 1,
            kind: DriveKind::Cmr,
            confidence: 0.0,
            answer: String::new(),
            rpm: 0.0,
            cache: None,
            cache_place: None,
            cache_size: None,
            band: None,
            bands_along: Vec::new(),
            toward: None,
            idle: None,
            mapping: None,
            cleaning: None,
            own_cache: String::new(),
            evidence: Vec::new(),
            quality: Quality::default(),
        };
        Self {
            blocks,
            found,
            done: Vec::new(),
            looks: 0,
            written: 0,
            places: None,
            filling: Filling::default(),
        }
    }

    /// Whether there is something to keep.
    pub fn begun(&self) -> bool {
        self.places.is_some()
    }

    pub(super) fn check(&self, blocks: u64) -> Result<(), ProbeError> {
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
    pub(super) fn look(&mut self, dial: &mut Dial<'_>) -> Result<Places, ProbeError> {
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

    /// Does a stage that is not done; what an unfinished one had noted is dropped.
    pub(super) fn once(
        &mut self,
        stage: Stage,
        keep: &mut dyn FnMut(&Self),
        work: impl FnOnce(&mut Self) -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError> {
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
