//! The layouts, one file each. Those without redundancy are maps, which [`mapped`] carries out; the RAIDs with parity are parameters of
//! [`parity`].

pub mod chunks;
pub mod dedicated;
mod disks;
pub mod dm_zoned;
pub mod dvs;
pub mod full_stripe;
mod intent;
pub mod mapped;
pub mod mirror;
pub mod parity;
mod places;
pub mod raid4s;
pub mod raid5;
pub mod raid6;
mod rebuild;
#[cfg(test)]
mod refusing_tests;
mod segments;
pub mod single;
pub mod spanning;
pub mod striped;
#[cfg(test)]
mod tests;
pub mod zone_log;
