//! The disk: where blocks lie, what a write destroys, how bands are laid, how long operations take, and byte media.

pub mod bands;
pub mod fault;
pub mod geometry;
pub mod mechanics;
mod reciprocal;

pub use bands::{Band, BandId, BandLayout, Bands};
pub use fault::{DriveError, Fault};
pub use geometry::{Geometry, GeometrySpec, Position, TrackNo};
pub use mechanics::{Head, Mechanics, MechanicsSpec, Model, Phases, SeekCurve, Target};
