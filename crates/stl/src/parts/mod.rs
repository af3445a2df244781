//! What layers are built from: each part does one job, knows nothing of any layer, and is tested alone.
//!
//! | for layers that | parts |
//! |---|---|
//! | split requests | [`split`] |
//! | lay regions over the medium | [`stretches`], [`ring`] |
//! | know what holds data | [`live`] |
//! | map a few blocks of a large space | [`position_index`], [`chunked`], [`marks`] |
//! | map statically | [`order`], [`position_map`] |
//! | update in place | [`update`], [`amplifier`] |

pub mod amplifier;
pub mod chunked;
pub mod live;
pub mod marks;
pub mod order;
pub mod position_index;
pub mod position_map;
pub mod ring;
pub mod split;
pub mod stretches;
pub mod update;
