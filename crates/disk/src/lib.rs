//! The disk: where blocks lie, what a write destroys, how bands are laid, and how long operations take.

pub mod bands;
pub mod geometry;
pub mod import;
pub mod interference;
pub mod mechanics;
pub mod model;

pub use bands::{Band, BandId, BandLayout, Bands, RandomAccess};
pub use geometry::{Geometry, GeometrySpec, Position, Slip, TrackNo, ZoneSkew, ZoneSpec};
pub use interference::{BlockProfile, Interference, PhysicalProfile};
pub use mechanics::{Head, Mechanics, MechanicsSpec, Model, Phases, Reach, SeekCurve, Target};
pub use model::{BandDefaults, DRIVES, DriveModel, DriveSpec};

/// What is wrong with a drive: every fault with its place, a path in the drive file, and what is accepted there.
pub type DriveError = smrlab_units::problems::Problems;

/// The result of what can fail with [`DriveError`].
pub type Result<T, E = DriveError> = std::result::Result<T, E>;
