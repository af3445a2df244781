//! What layers are built from: each part does one job, knows nothing of any layer, and is tested alone.
//!
//! | for layers that | parts |
//! |---|---|
//! | split requests | [`split`] |
//! | lay regions over the medium | [`stretches`], [`ring`] |
//! | append to bands and clean them | [`slots`], [`homes`], [`free_bands`], [`victim`], [`moves`], [`units`] |
//! | append blocks of any number | [`holdings`] |
//! | tell hot units from cold ones | [`window`] |
//! | know what holds data | [`live`] |
//! | map a few blocks of a large space | [`position_index`], [`extents`], [`bucketed`], [`chunked`], [`marks`], [`bits`] |
//! | keep or move whole tracks | [`rows`] |
//! | map statically | [`order`], [`position_map`] |
//! | update in place | [`update`], [`amplifier`] |

pub mod amplifier;
pub mod bits;
pub mod bucketed;
pub mod chunked;
pub mod extents;
pub mod free_bands;
pub mod holdings;
pub mod homes;
pub mod live;
pub mod marks;
pub mod moves;
pub mod order;
pub mod position_index;
pub mod position_map;
pub mod ring;
pub mod rows;
pub mod slots;
pub mod split;
pub mod stretches;
pub mod units;
pub mod update;
pub mod victim;
pub mod window;
