//! One drive.

use super::mapped::Mapped;
use super::spanning::Spanning;
use crate::Capabilities;
use crate::entry::{ArrayEntry, Takes};

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "single",
    summary: "one drive",
    reference: "no array: the drive itself",
    page: "\
The host talks to one drive. Nothing stands in between: the engine serves the drive in a straight loop, with the \
scheduler that was asked for, and no event queue.",
    params: &[],
    capabilities: Capabilities { losses: 0, survives_cut: true, discards: true },
    takes: Takes::Drives,
    conventional: |_| None,
    build: |context, _| Ok(Box::new(Mapped::new(Spanning::new(context.disks()), 1))),
};
