//! Drives from the parameter files of other simulators.

mod disksim;
mod g2;
mod g4;
mod params;
#[cfg(test)]
mod tests;

pub use disksim::disksim;

/// A drive file made from other files.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The drive file.
    pub toml: String,
    /// What the files say and a drive file cannot.
    pub left_out: Vec<String>,
}
