//! What is under a device and not the project's: the host's kernel, and the disks that stores lie on.

use crate::disk::Between;
use crate::scan::this_boot;
use std::sync::Arc;

/// The machine under a device; tests put another one in its place.
pub struct Machine {
    /// Which boot it is: another number after every start of its kernel.
    pub boot: u64,
    /// Comes between the device and the bytes of its stores.
    pub between: Between,
}

impl Default for Machine {
    fn default() -> Self {
        Self { boot: this_boot(), between: Arc::new(|_, store| store) }
    }
}
