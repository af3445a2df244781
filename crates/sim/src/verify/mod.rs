//! Identity of data without bytes: what the host reads is what it last wrote there.
//!
//! Each drive is followed on its [medium](disk): a media operation moves what blocks hold as the plan says, and destroys what
//! interferes with it. Of an array what [the host sees](mod@array) is followed too, through the array's plans.

mod array;
mod disk;
mod pages;
mod tags;
mod taken;
#[cfg(test)]
mod tests;

pub use array::{Discards, HostData};
pub use disk::Disk;

use crate::error::{Result, RunError};
use smrlab_array::{MemberId, MemberOp, MemberPlan, Ticket};
use smrlab_drive::TimedPlan;
use smrlab_stl::HostRequest;

/// See the [module](self).
pub struct Verify {
    disks: Vec<Disk>,
    /// What follows a fresh drive of this number; of a spare one more than all.
    fresh: Box<dyn Fn(usize) -> Disk>,
    host: Option<HostData>,
}

impl Verify {
    /// So many drives, each followed by what `fresh` makes; `host`: what an array of them is for.
    pub fn new(disks: usize, fresh: Box<dyn Fn(usize) -> Disk>, host: Option<HostData>) -> Self {
        let fresh: Box<dyn Fn(usize) -> Disk> =
            if host.is_some() { Box::new(move |disk| fresh(disk).of_array()) } else { fresh };
        Self { disks: (0..disks).map(&fresh).collect(), fresh, host }
    }

    /// Bytes that all this takes.
    pub fn bytes(&self) -> usize {
        self.host.as_ref().map_or(0, HostData::bytes) + self.disks.iter().map(Disk::bytes).sum::<usize>()
    }

    /// A request before the run, as it is to be sent.
    pub fn prefill(&mut self, request: &HostRequest) -> HostRequest {
        self.host.as_mut().map_or(*request, |host| host.prefill(request))
    }

    /// The host sends a request.
    pub fn arrived(&mut self, request: &HostRequest) {
        self.host.iter_mut().for_each(|host| host.arrived(request));
    }

    /// The array begins with a request.
    pub fn began(&mut self, ticket: Ticket, request: &HostRequest) {
        self.host.iter_mut().for_each(|host| host.began(ticket, request.id));
    }

    /// A member is asked for something; without a `plan` it refuses.
    pub fn asked(&mut self, op: &MemberOp, plan: Option<&MemberPlan>) {
        self.host.iter_mut().for_each(|host| host.asked(op, plan));
    }

    /// An array's plan was carried out.
    pub fn planned(&mut self, plan: &MemberPlan) {
        self.host.iter_mut().for_each(|host| host.planned(plan));
    }

    /// The host has the answer to a request.
    ///
    /// # Errors
    /// [`RunError::Verification`], which names the block.
    pub fn done(&mut self, request: &HostRequest, refused: bool) -> Result<()> {
        self.host.as_mut().map_or(Ok(()), |host| host.done(request, refused))
    }

    /// A drive did a request: whether it got what it should.
    ///
    /// # Errors
    /// [`RunError::Verification`], which names the block and what destroyed it.
    pub fn dispatched(&mut self, request: &HostRequest, executed: &TimedPlan<'_>) -> Result<()> {
        self.tell(Some(request), executed);
        self.of(executed.member, |disk| match executed.plan.refusal() {
            None => disk.served(request, executed),
            Some(_) => disk.refused(request),
        })
    }

    /// The same before the run, without time.
    pub fn prefilled(&mut self, request: &HostRequest, executed: &TimedPlan<'_>) {
        self.tell(Some(request), executed);
        self.disks[executed.member.at()].prefilled(request, executed);
    }

    /// A drive's buffer took a write.
    pub fn accepted(&mut self, member: MemberId, request: &HostRequest) {
        self.disks[member.at()].accepted(request);
    }

    /// A drive answered a read from such a write.
    ///
    /// # Errors
    /// [`RunError::Verification`] where that is not what was written last.
    pub fn answered(&mut self, member: MemberId, read: &HostRequest, write: &HostRequest) -> Result<()> {
        self.of(member, |disk| disk.answered(read, write))
    }

    /// A drive took a background step.
    pub fn background(&mut self, step: &TimedPlan<'_>) {
        self.tell(None, step);
        self.disks[step.member.at()].background(step);
    }

    /// A fresh drive took the place of a dead one.
    pub fn replaced(&mut self, member: MemberId) {
        self.disks[member.at()] = (self.fresh)(self.disks.len());
        self.host.iter_mut().for_each(|host| host.replaced(member));
    }

    /// Tells a drive what the array wrote there, if it has to know that now.
    #[inline]
    fn tell(&mut self, request: Option<&HostRequest>, executed: &TimedPlan<'_>) {
        let disk = &mut self.disks[executed.member.at()];
        if let Some(host) = &self.host
            && disk.has_to_know(request, executed)
        {
            disk.told(host.written(executed.member));
        }
    }

    /// Of several drives an error says which one it is.
    fn of(&mut self, member: MemberId, act: impl FnOnce(&mut Disk) -> Result<()>) -> Result<()> {
        act(&mut self.disks[member.at()]).map_err(|e| match (e, &self.host) {
            (RunError::Verification(text), Some(_)) => {
                RunError::Verification(format!("disk {}: {text}", member.0))
            }
            (e, _) => e,
        })
    }
}
