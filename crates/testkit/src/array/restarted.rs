//! What an array says of itself, and what one says that begins anew with its records or with its checkpoint.

use super::{ArrayHarness, Member, Records, build};
use smrlab_array::{Array, Job, MemberId, MemberPlan, Stop, counted};
use smrlab_stl::zones_of;
use smrlab_units::{Blocks, Lba};

impl ArrayHarness {
    /// The server ends without notice: what its array is not sure of any more is looked at as time goes on. What is under way is never answered.
    pub fn begin_anew(&mut self) {
        self.power_lost(Stop::PowerLost);
    }

    /// How members are, what of the host's space is allocated and what is left to do.
    fn said(&self, array: &dyn Array, in_doubt: bool) -> String {
        let health: Vec<_> = (0..self.disks() as u32).map(|d| array.health(MemberId(d))).collect();
        let mut allocated = Vec::new();
        array.allocated(Lba(0), Blocks(self.model.len() as u64 / 512), &mut |run| allocated.push(run));
        let levels = ["disks_dead", "rebuild_units_done"].map(|name| counted(array).get(name).unwrap_or(0));
        let doubt = counted(array).get("rows_in_doubt").filter(|_| in_doubt);
        format!("{health:?} {levels:?} in doubt: {doubt:?}, allocated: {allocated:?}")
    }

    /// A fresh array that takes up these records, and what it does first.
    fn anew(&self, records: &Records) -> (Box<dyn Array>, Vec<Job>) {
        let drives = || self.event_loop.members().filter_map(Member::drive);
        let mut array = build(&self.text, drives()).expect("built before").0;
        for (at, zones) in (0..).zip(drives().map(|d| zones_of(d.layer()))).filter(|(_, z)| !z.is_empty()) {
            array.reported(MemberId(at), &zones);
        }
        let mut plan = MemberPlan::new(true);
        array.recover(records, &mut plan);
        let mut jobs = plan.jobs().to_vec();
        jobs.sort_unstable_by_key(|job| (job.kind, job.of));
        (array, jobs)
    }

    /// Compares the array with one that begins anew with its records, and with one that does with its checkpoint where that says what is on
    /// the members. How far it is with what it doubts is not in each record.
    ///
    /// # Panics
    /// When they differ.
    pub fn check_restarts(&self) {
        let array = self.array();
        let (recorded, jobs) = self.anew(&self.bench.records);
        assert_eq!(self.said(&*recorded, false), self.said(array, false), "{}: from records", self.text);
        if array.is_settled() {
            let mut records = Records::default();
            array.checkpoint(&mut records);
            let (kept, own) = self.anew(&records);
            assert_eq!(self.said(&*kept, true), self.said(array, true), "{}: from a checkpoint", self.text);
            assert_eq!(own, jobs, "{}: what is done first", self.text);
        }
    }
}
