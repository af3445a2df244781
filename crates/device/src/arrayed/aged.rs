//! Arrays that begin where another was: a run's, or a served one's. Bytes are not in a state: blocks read as zeroes, which
//! fit each other in every layout.

use super::{Arrayed, drive};
use crate::disk::Opened;
use crate::error::{DeviceError, Result};
use crate::ledger::{Found, Ledger};
use crate::members::Members;
use smrlab_array::{ArrayState, Health};
use smrlab_drive::SavedState;
use smrlab_trace::read_known;
use smrlab_units::{Blocks, Lba};
use std::ops::Range;
use std::path::Path;

/// Brings the blank disks of a new array to the state in the file at `path`, and has what the array was in `found` and in its
/// ledger. Done again after a start that was cut short it goes on where that ended.
///
/// # Errors
/// A file that is no state of such an array; what the operating system answers.
pub(crate) fn begin(
    path: &Path,
    members: &Members,
    disks: &mut [Opened],
    ledger: Option<&Ledger>,
    found: &mut Found,
) -> Result<()> {
    let bad = |e: String| DeviceError::input(format!("{}: {e}", path.display()));
    let file = read_known(path, ArrayState::is_any).map_err(bad)?;
    let state = ArrayState::decode(&file).map_err(bad)?;
    state.expect(&members.chosen.identity()).map_err(bad)?;
    for (disk, own) in disks.iter_mut().zip(&state.members) {
        let blocks = disk.drive.built.drive.geometry().blocks().0;
        own.expect(&members.drive, &members.layer, members.metadata(), blocks).map_err(bad)?;
        disk.begin(own, &[])?;
    }
    if found.records.is_empty() {
        found.records = state.records();
        ledger.map_or(Ok(()), |ledger| ledger.keep(&found.records))?;
    }
    Ok(())
}

impl Arrayed {
    /// The array's state between two works, with that of each disk, for `from_state` of a run or of another device. What is
    /// under way ends first. What holds data as far as array and layers know counts as written.
    ///
    /// # Errors
    /// When a disk is dead or being rebuilt; what stopped the device.
    pub(super) fn aged(&self) -> Result<ArrayState> {
        let mut state = self.table.lock();
        let whole = |disk: &usize| state.health(*disk) == Health::Whole;
        if let Some(disk) = (0..state.bytes.disks.len()).find(|disk| !whole(disk)) {
            let text = format!("disk {disk} is not whole: replace it and let it be rebuilt first");
            return Err(DeviceError::input(text));
        }
        self.table.call(&mut *state, |s| s.call(|c, bytes| c.wind_up(bytes)));
        if let Some(e) = &state.bytes.broken {
            return Err(e.clone());
        }
        if !state.event_loop.array().is_settled() {
            return Err(DeviceError::input("the array is in the middle of work of its own: try again"));
        }
        let (mut written, mut of_disks) = (Vec::new(), Vec::new());
        state.event_loop.array().allocated(Lba(0), Blocks(self.blocks), &mut |r| written.push(r));
        for disk in 0..state.bytes.disks.len() {
            let mut own: Vec<Range<u64>> = Vec::new();
            if let Some(drive) = drive(&state.event_loop, disk) {
                drive.layer().allocated(Lba(0), drive.layer().host_blocks(), &mut |r| own.push(r));
            }
            of_disks.push(own);
        }
        let array = SavedState { layer: self.members.chosen.identity(), written, ..SavedState::default() };
        let of_disk = SavedState {
            drive: self.members.drive.clone(),
            layer: self.members.layer.clone(),
            metadata: self.members.metadata().to_owned(),
            ..SavedState::default()
        };
        let mut taken = ArrayState::take(&mut state.event_loop, array, &of_disk);
        taken.members.iter_mut().zip(of_disks).for_each(|(member, own)| member.written = own);
        Ok(taken)
    }
}
