//! The order in which requests reach the medium.

use smrlab_drive::{Observer, TimedPlan};
use smrlab_stl::HostRequest;
use smrlab_units::SimTime;
use std::convert::Infallible;

/// Notes the requests that a drive dispatches, none of which its layer may refuse.
#[derive(Debug, Default)]
pub struct Order(Vec<u64>);

impl Order {
    /// The numbers of the requests, in the order in which they were dispatched.
    pub fn ids(&self) -> &[u64] {
        &self.0
    }

    /// How many were dispatched before request `id`.
    ///
    /// # Panics
    /// When it was not dispatched.
    pub fn at(&self, id: u64) -> usize {
        self.0.iter().position(|o| *o == id).expect("dispatched")
    }
}

impl Observer for Order {
    type Error = Infallible;

    fn dispatched(&mut self, _: SimTime, r: &HostRequest, e: &TimedPlan<'_>) -> Result<(), Infallible> {
        assert_eq!(e.plan.refusal(), None, "{r:?}");
        self.0.push(r.id);
        Ok(())
    }
}
