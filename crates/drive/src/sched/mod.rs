//! Schedulers: which of the waiting requests is served next. One file each, one line in [`SCHEDULERS`].
//!
//! A policy sees the requests that may be chosen now (not those that overlap an older one and must wait for it) and
//! returns one of them. It never changes anything but its own state.

mod c_look;
mod fcfs;
mod look;
mod sptf;
mod sstf;

use smrlab_disk::{Mechanics, Target};
use smrlab_stl::Dir;
use smrlab_units::SimTime;
use smrlab_units::spec::{Kind, Param, SpecError, Values, nearest, split_item};

/// A request that may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Order of arrival.
    pub seq: u64,
    /// Track on which its first media operation starts.
    pub track: u64,
    /// The place where it starts, as the mechanics keep it.
    pub target: Target,
    /// Direction of that operation.
    pub dir: Dir,
}

/// What a policy decides by.
pub struct View<'a> {
    /// When the choice takes effect.
    pub now: SimTime,
    /// The drive's mechanics, to ask for positioning times.
    pub mechanics: &'a Mechanics,
    /// Where the head stands.
    pub track: u64,
    /// The requests that may be chosen, in no particular order; at least one.
    pub candidates: &'a [Candidate],
}

/// A scheduling policy.
pub trait Policy: Send {
    /// The index in `view.candidates` of the request to serve next.
    fn pick(&mut self, view: &View<'_>) -> usize;
}

/// A registry entry.
pub struct Scheduler {
    /// The name that users write.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is described.
    pub reference: &'static str,
    /// It asks the layer where requests would start.
    pub reorders: bool,
    /// A fresh policy.
    pub build: fn() -> Box<dyn Policy>,
}

/// The registry: one line each.
pub const SCHEDULERS: &[Scheduler] = &[fcfs::ENTRY, sstf::ENTRY, look::ENTRY, c_look::ENTRY, sptf::ENTRY];

/// The parameters that all schedulers take.
pub const PARAMS: &[Param] = &[
    Param {
        name: "depth",
        kind: Kind::Count(1, 4096),
        default: "32",
        doc: "requests among which the scheduler chooses; more wait outside in order of arrival",
    },
    Param {
        name: "max_wait",
        kind: Kind::Time,
        default: "",
        doc: "a request that has waited this long goes first, the oldest before others; without it there is no limit",
    },
];

/// A scheduler as a user specified it.
pub struct Chosen {
    /// The entry.
    pub entry: &'static Scheduler,
    /// Requests among which it chooses.
    pub depth: usize,
    /// Age limit.
    pub max_wait: Option<SimTime>,
    /// The specification with its defaults.
    pub resolved: String,
}

/// Parses `NAME[,depth=N][,max_wait=T]`.
///
/// # Errors
/// An unknown name or key with the nearest match, or a value out of range.
pub fn parse(text: &str) -> Result<Chosen, SpecError> {
    let (name, pairs) = split_item(text);
    let entry = SCHEDULERS.iter().find(|s| s.name == name).ok_or_else(|| SpecError::UnknownName {
        what: "scheduler",
        name: name.to_owned(),
        nearest: nearest(name, SCHEDULERS.iter().map(|s| s.name)),
        known: SCHEDULERS.iter().map(|s| s.name).collect::<Vec<_>>().join(", "),
    })?;
    let values = Values::check(entry.name, PARAMS, &pairs)?;
    let max_wait = values.time("max_wait");
    Ok(Chosen {
        entry,
        depth: values.count("depth").unwrap_or(32) as usize,
        max_wait,
        resolved: values.resolved(),
    })
}

/// The index of the candidate with the smallest key, the oldest among equals.
fn least<K: Ord>(candidates: &[Candidate], key: impl Fn(&Candidate) -> K) -> Option<usize> {
    candidates.iter().enumerate().min_by_key(|(_, c)| (key(c), c.seq)).map(|(i, _)| i)
}
