//! One drive, as an array: what a stack puts an SSD cache before where it names no layout.

use super::mapped::Mapped;
use super::spanning::Spanning;
use crate::entry::ArrayEntry;

/// The registry entry.
pub const ENTRY: ArrayEntry = ArrayEntry {
    name: "single",
    summary: "one drive",
    reference: "no array: the drive itself",
    page: "\
The host talks to one drive. Nothing stands in between: the engine serves the drive in a straight loop, with the \
scheduler that was asked for, and no event queue.",
    ..ArrayEntry::new(|context, _| Ok(Box::new(Mapped::new(Spanning::new(context.disks()), 1))))
};
