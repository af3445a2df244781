//! The disk: where blocks lie, what a write destroys, how bands are laid, and how long operations take.

pub mod bands;
pub mod fault;
pub mod geometry;
pub mod import;
pub mod interference;
pub mod mechanics;
pub mod model;

pub use bands::{Band, BandId, BandLayout, Bands, RandomAccess};
pub use fault::{DriveError, Fault};
pub use geometry::{Geometry, GeometrySpec, Position, Slip, TrackNo, ZoneSkew, ZoneSpec};
pub use interference::{BlockProfile, Interference, PhysicalProfile};
pub use mechanics::{Head, Mechanics, MechanicsSpec, Model, Phases, SeekCurve, Target};
pub use model::{BandDefaults, DRIVES, DriveModel, DriveSpec};
