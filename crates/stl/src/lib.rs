//! Translation layers: pure state machines that answer a host request with a [`Plan`] of media operations.
//!
//! Read in this order: [`request`] (what comes in), [`plan`] (what goes out), [`layer`] (the contract between them),
//! [`entry`] (what a layer says of itself), [`registry`] (which layers there are), and any file of [`layers`]. What layers share is in [`parts`].

pub mod bytes;
pub mod counted;
pub mod entry;
pub mod layer;
pub mod layers;
pub mod on_media;
pub mod parts;
pub mod plan;
pub mod record;
pub mod registry;
pub mod request;
pub mod walk;

pub use bytes::{Executor, HostBuffer, Medium, WritePart, following};
pub use counted::{Counted, counted};
pub use entry::{BuildContext, LayerEntry, Metadata};
pub use layer::{Capabilities, Facts, Independent, StepEnd, TranslationLayer, zones_of};
pub use plan::{Cause, Cleaning, Dir, Endpoint, MediaOp, OpId, Part, Pause, Piece, Plan};
pub use record::{AnyRecord, Change, Record, Records, Sink};
pub use registry::{Built, LAYERS, build};
pub use request::{HostRequest, Outcome, Refusal};
pub use walk::{Step, Walk};
