//! What proves layers: a plain model of the shingled medium, a harness that runs random requests through any layer on
//! bytes, power cuts at every media operation, also of media and drives with a volatile cache, and the runner of the scenarios in prose.

pub mod array;
pub mod cuts;
pub mod drawn;
pub mod drives;
pub mod harness;
pub mod medium;
pub mod order;
pub mod power;
pub mod record;
pub mod reference;
pub mod scenario;
pub mod volatile;

pub use array::ArrayHarness;
pub use cuts::{Cuts, Losses};
pub use drawn::DrawnArray;
pub use harness::{Harness, Workload};
pub use medium::PlainMedium;
pub use order::Order;
pub use power::{Outage, PowerCuts, promised};
pub use record::Digest;
pub use reference::{BlockState, ByteMedium, RedirectMap};
pub use smrlab_units::rng::Rng;
pub use volatile::{Outcome, Volatile};

/// The layers that the tests of all layers walk: the registry, or of it only those that `$SMRLAB_LAYER` names (separated by
/// spaces), for who works on one.
///
/// # Panics
/// When the variable names a layer that there is not.
pub fn layers() -> Vec<&'static smrlab_stl::LayerEntry> {
    let Ok(only) = std::env::var("SMRLAB_LAYER") else { return smrlab_stl::LAYERS.to_vec() };
    let find = |name| smrlab_stl::registry::find(name).unwrap_or_else(|e| panic!("SMRLAB_LAYER: {e}"));
    only.split_whitespace().map(find).collect()
}

/// Whether [`layers`] are all that there are: of fewer it says little what they do together.
pub fn all_layers() -> bool {
    std::env::var_os("SMRLAB_LAYER").is_none()
}

/// How many of a random test's cases a run has: a quarter of them, one at least; with `$SMRLAB_ALL_CASES` all, as in `make test-full`
/// and `make soak`.
pub fn cases(all: u64) -> u64 {
    if std::env::var_os("SMRLAB_ALL_CASES").is_some() { all } else { all.div_ceil(4) }
}

/// The generator of a random test: of the seed that is written there, so that each run has the same cases; with `$SMRLAB_SEED` of
/// that and the number in it, for cases that nobody has seen yet.
///
/// # Panics
/// When the variable is no number.
pub fn random(written: u64) -> Rng {
    let Ok(other) = std::env::var("SMRLAB_SEED") else { return Rng::new(written) };
    let other: u64 = other.parse().unwrap_or_else(|e| panic!("SMRLAB_SEED={other}: {e}"));
    Rng::new(written ^ other.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
