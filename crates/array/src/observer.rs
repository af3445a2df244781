//! What an array does above its members, beside the [events of these](Observer).

use crate::{Done, MemberId, MemberOp, MemberPlan, Ticket};
use smrlab_drive::{Observer, TimedPlan};
use smrlab_stl::HostRequest;
use smrlab_units::SimTime;
use std::ops::Range;

/// Is told what an array and its members do. What a member did to a request is an event of its [drive](Observer), in the order in which
/// it happened; behind a scheduler the request has the member's own number.
pub trait ArrayObserver: Observer {
    /// The array begins with a request of the host's, under this ticket.
    fn began(&mut self, _ticket: Ticket, _request: &HostRequest) {}

    /// A request of the host's is done, or was refused.
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn completed(&mut self, _done: &Done) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A member request was issued at `at`; `executed`: by a drive, which did this; else by an SSD.
    ///
    /// # Errors
    /// What keeps the caller from going on.
    fn issued(
        &mut self,
        _at: SimTime,
        _op: &MemberOp,
        _plan: &MemberPlan,
        _executed: Option<&TimedPlan<'_>>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// A member behind a scheduler has got a request, which it knows by `number`; its drive's events say what it does with it.
    fn sent(&mut self, _at: SimTime, _op: &MemberOp, _number: u64, _plan: &MemberPlan) {}

    /// A member request was done without time, before the run, and its data are followed.
    fn prefilled(&mut self, _op: &MemberOp, _plan: &MemberPlan, _executed: Option<&TimedPlan<'_>>) {}

    /// These blocks of a member, perhaps none, were written without time, before the run, and nobody follows their data.
    fn filled(&mut self, _member: MemberId, _blocks: Range<u64>) {}

    /// Whether the member that was told of last could not do its request: it dies.
    fn throws_out(&mut self) -> bool {
        false
    }

    /// A member died, or is found dead when an array is taken up.
    fn died(&mut self, _member: MemberId) {}

    /// A fresh drive took the place of a dead member.
    fn replaced(&mut self, _member: MemberId) {}

    /// A work of the array's was a cleaning event.
    fn cleaned(&mut self, _kind: &'static str, _from: SimTime, _to: SimTime, _relocated: u64) {}

    /// A plan was carried out at `at`: who follows the data delivers, and drops the slots of works that ended.
    fn planned(&mut self, _at: SimTime, _plan: &MemberPlan) {}
}

/// Observes nothing.
impl ArrayObserver for () {}
