//! Arrays of drives.
//!
//! An array is a pure state machine of the same kind as a translation layer, over member requests instead of media
//! operations: read in this order [`plan`] (what goes out), [`contract`] (when what is called), [`registry`] (which
//! arrays there are) and any file of [`layouts`]. [`event_loop`] is the event loop that runs an array on its
//! [`member`]s in simulated time; [`bytes`] carries out where the data of member requests come from and go to.
//!
//! One request takes this way: the event loop gives it a ticket and waits until the stripes that it names
//! ([`Array::locks`]) are free; [`Array::start`] plans its first phase; the members do the phase's requests, each in its
//! own time; when the last has ended [`Array::complete`] plans the next phase, acknowledges the host, or ends the work,
//! which frees its stripes. A member that dies, is replaced, or answers too late is told to the array in between.

pub mod bytes;
mod cache;
pub mod chosen;
pub mod contract;
pub mod entry;
pub mod event_loop;
pub mod gf;
pub mod job;
pub mod layouts;
mod locks;
pub mod member;
mod nested;
pub mod observer;
pub mod part;
pub mod plan;
pub mod queue;
pub mod registry;
pub mod stack;
pub mod state;
mod tickets;
pub mod volume;

pub use bytes::{Buffers, Staging};
pub use chosen::{BuiltArray, Chosen, parse};
pub use contract::{Array, Capabilities, Counts, Health, Locks, Phase, Stop, counted};
pub use entry::{ArrayContext, ArrayEntry};
pub use event_loop::{Done, EventLoop, Schedule};
pub use job::{Job, Ticket, Work};
pub use member::{Member, Ssd};
pub use observer::ArrayObserver;
pub use part::{End, OpPart, Source, Term};
pub use plan::{MemberOp, MemberPlan};
pub use queue::Queue;
pub use registry::ARRAYS;
pub use smrlab_drive::MemberId;
pub use smrlab_stl::{AnyRecord as Record, Change, Records, Sink};
pub use state::ArrayState;
pub use volume::{Sent, Volume};
