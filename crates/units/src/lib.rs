//! Units and addresses that cannot be mixed up, quantities as users write them, and the parameter tables from which
//! every registry entry (layer, format, generator, scheduler, …) is parsed, checked, explained and documented.

mod addr;
mod counted;
mod counters;
mod forward;
pub mod histogram;
mod named;
pub mod problems;
mod quantity;
pub mod reciprocal;
pub mod rng;
pub mod spec;
pub mod stalls;
mod time;
mod zone;

pub use addr::{BLOCK_BYTES, Blocks, Dir, HostOp, Lba, Pba};
pub use counted::counted;
pub use histogram::Histogram;
pub use quantity::{
    BandSize, Quantity, QuantityError, Size, parse_bytes, parse_count, parse_share, parse_time,
};
pub use stalls::Stalls;
pub use time::SimTime;
pub use zone::{
    PreferredZones, Zone, ZoneAction, ZoneCondition, ZoneCounts, ZoneKind, ZoneLimits, ZoneStatistics,
};
