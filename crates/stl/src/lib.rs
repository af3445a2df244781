//! Translation layers: pure state machines that answer a host request with a [`Plan`] of media operations.
//!
//! Read in this order: [`request`] (what comes in), [`plan`] (what goes out), [`layer`] (the contract between them),
//! [`registry`] (which layers there are), and any file of [`layers`].

pub mod amplifier;
pub mod bytes;
pub mod chunked;
pub mod layer;
pub mod layers;
pub mod live;
pub mod marks;
pub mod on_media;
pub mod order;
pub mod plan;
pub mod position_index;
pub mod position_map;
pub mod registry;
pub mod request;
pub mod ring;
pub mod split;
pub mod stretches;
pub mod update;

pub use bytes::{Executor, HostBuffer, Medium, Part};
pub use layer::{Capabilities, Record, StepEnd, TranslationLayer};
pub use plan::{Cause, Dir, MediaOp, OpId, Piece, Plan, Source};
pub use registry::{BuildContext, Built, LAYERS, LayerEntry, Metadata, build};
pub use request::HostRequest;
