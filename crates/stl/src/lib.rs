//! Translation layers: pure state machines that answer a host request with a [`Plan`] of media operations.
//!
//! Read in this order: [`request`] (what comes in), [`plan`] (what goes out), [`layer`] (the contract between them),
//! [`registry`] (which layers there are), and any file of [`layers`].

pub mod amplifier;
pub mod chunked;
pub mod exec;
pub mod layer;
pub mod layers;
pub mod live;
pub mod marks;
pub mod metadata;
pub mod order;
pub mod plan;
pub mod position_index;
pub mod position_map;
pub mod registry;
pub mod request;
pub mod ring;
pub mod runs;
pub mod space;
pub mod update;

pub use exec::{Executor, HostBuffer, Medium, Part};
pub use layer::{Capabilities, Record, StepEnd, TranslationLayer};
pub use plan::{Cause, Dir, MediaOp, OpId, Piece, Plan, Source};
pub use registry::{BuildContext, Built, LAYERS, LayerEntry, Metadata, build};
pub use request::HostRequest;
