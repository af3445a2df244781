//! How slow a drive may be: the clock ends after 292 years and is looked at with each request, which may be for the whole medium; and
//! the angle that passes in one operation is a number of 63 bits.

use super::{Advance, Mechanics, MechanicsSpec, Model};
use crate::DriveError;
use crate::geometry::{Geometry, REVOLUTION, ZoneRun};
use smrlab_units::{BLOCK_BYTES, SimTime};
use std::sync::Arc;

const DAY: u64 = 24 * 3600 * 1_000_000_000;

/// The most days that the heads may need to pass over the whole medium once.
const MOST_DAYS: u64 = 50;

/// The most angle for that; what an operation waits for before it has room beside it.
const MOST_ANGLE: u64 = 7 << 60;

impl MechanicsSpec {
    /// Refuses what is so slow that the clock could end between two looks at it, or an angle in one operation.
    ///
    /// # Errors
    /// The field that makes it slow.
    pub(crate) fn check_pass(&self, geometry: &Arc<Geometry>, model: Model) -> Result<(), DriveError> {
        if model == Model::Instant {
            return Ok(());
        }
        let mechanics = Mechanics::new(Arc::clone(geometry), self, model)?;
        let farthest = mechanics.farthest();
        let mut longest = self.head_switch.max(self.write_head_switch.unwrap_or_default()).0;
        for (name, curve) in [("read_seek", &self.read_seek), ("write_seek", &self.write_seek)] {
            let seek = curve.longest(farthest);
            if seek.0 > 1_000_000_000 {
                let what = format!("the longest seek on this drive takes {seek}; at most 1s is accepted");
                return Err(DriveError::one(format!("mechanics.{name}"), what));
            }
            if curve.ends_in_nothing(farthest) {
                let what = format!(
                    "the line through the last two rows falls to 0 before the longest distance on this drive, {farthest}: add a row there"
                );
                return Err(DriveError::one(format!("mechanics.{name}"), what));
            }
            longest = longest.max(seek.0 + self.write_settle.0);
        }
        let (field, remedy, pass, most) = match (model, self.rate) {
            (Model::NoRotation, Some(rate)) => {
                let bytes = u128::from(geometry.blocks().0) * u128::from(BLOCK_BYTES);
                let pass = bytes * 1_000_000_000 / u128::from(rate);
                ("mechanics.rate", "give a higher rate", pass, u64::MAX)
            }
            _ => {
                let remedy = "give more sectors a track, or shorter switches and more revolutions a minute";
                let (pass, rpm) = (mechanics.whole(longest), u64::from(self.rpm));
                ("mechanics.rpm", remedy, pass / u128::from(rpm), MOST_ANGLE / rpm)
            }
        };
        let most = most.min(MOST_DAYS * DAY);
        if pass <= most.into() {
            return Ok(());
        }
        let pass = SimTime(pass.try_into().unwrap_or(u64::MAX));
        let days = |t: SimTime| t.as_secs_f64() / 86400.0;
        let what = format!(
            "a pass over the whole medium takes {:.1} days; at most {:.1} are accepted: {remedy}",
            days(pass),
            days(SimTime(most))
        );
        Err(DriveError::one(field, what))
    }
}

impl Mechanics {
    /// The longest distance of a seek.
    fn farthest(&self) -> u64 {
        match self.blocks_distance {
            true => self.geometry.blocks().0,
            false => self.geometry.cylinders().into(),
        }
    }

    /// At least the angle that passes while the heads go over all of the medium once, by way of whatever is elsewhere; a
    /// positioning takes at most `longest` ns.
    fn whole(&self, longest: u64) -> u128 {
        let of_run = |(run, advances): (&ZoneRun, &[Advance; 2])| {
            let s = run.switches(run.place(0), run.place(run.tracks - 1));
            let angle = |advance: &Advance| {
                let of_kinds = [s.steps, s.heads, s.groups, s.back].into_iter().zip(advance);
                of_kinds.map(|(n, angle)| u128::from(n) * u128::from(*angle)).sum::<u128>()
            };
            advances.iter().map(angle).max().unwrap_or_default() + u128::from(REVOLUTION)
        };
        let g = &self.geometry;
        let runs: u128 = g.zone_runs().iter().zip(&self.advances).map(of_run).sum();
        let elsewhere = g.slips().within(0..u64::MAX).len() + 2 * g.remapped(0..u64::MAX).len();
        let hops = (g.zone_runs().len() + elsewhere) as u128;
        runs + hops * u128::from(longest * self.rpm + 2 * REVOLUTION)
    }
}
