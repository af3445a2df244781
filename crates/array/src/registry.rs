//! The registry: every array, one explicit line each.
//!
//! An array is one file under `layouts/` that ends in its [`ArrayEntry`], and one line in [`ARRAYS`].

use crate::entry::ArrayEntry;
use crate::layouts::{
    dedicated, dm_zoned, dvs, full_stripe, mirror, raid4s, raid5, raid6, single, spanning, striped, zone_log,
};

/// Every array.
pub static ARRAYS: &[&ArrayEntry] = &[
    &single::ENTRY,
    &spanning::ENTRY,
    &striped::ENTRY,
    &dedicated::ENTRY,
    &mirror::ENTRY,
    &raid5::ENTRY,
    &raid6::ENTRY,
    &raid4s::ENTRY,
    &dvs::ENTRY,
    &full_stripe::ENTRY,
    &dm_zoned::ENTRY,
    &zone_log::ENTRY,
];
