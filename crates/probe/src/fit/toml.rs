//! A drive file of a drive: every number with its unit, kind and source.

use super::Fitted;

impl Fitted {
    /// The drive file; `DriveModel::from_toml` reads the same drive from it.
    pub fn toml(&self) -> String {
        smrlab_disk::model::write(&self.spec, &|field| self.origin(field))
    }
}
