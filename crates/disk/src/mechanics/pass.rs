//! How slow a drive may be: the clock ends after 292 years and is looked at every 256 requests, each of which may be for the
//! whole medium.

use super::{MechanicsSpec, Model};
use crate::DriveError;
use crate::geometry::{Geometry, REVOLUTION};
use smrlab_units::BLOCK_BYTES;

const DAY: u128 = 24 * 3600 * 1_000_000_000;

/// The most days that the heads may need to pass over the whole medium once.
const MOST_DAYS: u128 = 50;

impl MechanicsSpec {
    /// Refuses what is so slow that the clock could end between two looks at it.
    ///
    /// # Errors
    /// The field that makes it slow.
    pub(crate) fn check_pass(&self, geometry: &Geometry, model: Model) -> Result<(), DriveError> {
        let (field, remedy, pass) = match (model, self.rate) {
            (Model::Instant, _) => return Ok(()),
            (Model::NoRotation, Some(rate)) => {
                let bytes = u128::from(geometry.blocks().0) * u128::from(BLOCK_BYTES);
                ("mechanics.rate", "give a higher rate", bytes * 1_000_000_000 / u128::from(rate))
            }
            _ => {
                let turn = REVOLUTION / u64::from(self.rpm);
                let switch = self.head_switch.max(self.write_head_switch.unwrap_or_default());
                let between = (switch.0 + self.write_settle.0).next_multiple_of(turn);
                let tracks = u128::from(geometry.tracks());
                ("mechanics.rpm", "give more revolutions a minute", tracks * u128::from(turn + between))
            }
        };
        if pass <= MOST_DAYS * DAY {
            return Ok(());
        }
        let days = pass / DAY;
        let what = format!(
            "a pass over the whole medium takes {days} days; at most {MOST_DAYS} are accepted: {remedy}"
        );
        Err(DriveError::one(field, what))
    }
}
