//! What proves layers: a plain model of the shingled medium, a harness that runs random requests through any layer on
//! bytes, power cuts at every media operation, also of media with a volatile cache, and the runner of the scenarios in prose.

pub mod cuts;
pub mod drives;
pub mod harness;
pub mod medium;
pub mod scenario;
pub mod volatile;

pub use cuts::{Cuts, Losses};
pub use harness::{Harness, Workload};
pub use medium::PlainMedium;
pub use smrlab_units::rng::Rng;
pub use volatile::{Outcome, Volatile};
