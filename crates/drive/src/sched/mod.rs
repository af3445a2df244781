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
use smrlab_units::spec::{Kind, Param, SpecError, Values, split_item};

/// A request that may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Order of arrival.
    pub seq: u64,
    /// The place where its first media operation starts, as the mechanics keep it.
    pub target: Target,
    /// Direction of that operation.
    pub dir: Dir,
}

impl Candidate {
    /// The cylinder on which it starts.
    #[inline]
    pub fn cylinder(&self) -> u32 {
        self.target.cylinder()
    }
}

/// What a policy decides by.
pub struct View<'a> {
    /// When the choice takes effect.
    pub now: SimTime,
    /// The drive's mechanics, to ask for positioning times.
    pub mechanics: &'a Mechanics,
    /// The requests that may be chosen, in no particular order; at least one.
    pub candidates: &'a [Candidate],
}

impl View<'_> {
    /// The cylinder at which the head stands.
    #[inline]
    pub fn cylinder(&self) -> u32 {
        self.mechanics.head().cylinder()
    }
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
    /// A fresh policy; `None`: requests are served as they come, and nothing is to be chosen.
    pub build: Option<fn() -> Box<dyn Policy>>,
}

impl Scheduler {
    /// Whether it chooses, and so asks the layer where requests would start.
    pub fn reorders(&self) -> bool {
        self.build.is_some()
    }
}

/// The registry: one line each.
pub const SCHEDULERS: &[Scheduler] = &[fcfs::ENTRY, sstf::ENTRY, look::ENTRY, c_look::ENTRY, sptf::ENTRY];

/// The parameters that all schedulers take.
pub const PARAMS: &[Param] = &[
    Param::new("depth", Kind::Count(1, 4096), "32")
        .doc("requests among which the scheduler chooses; more wait outside in order of arrival"),
    Param::new("max_wait", Kind::Time, "").doc(
        "a request that has waited this long goes first, the oldest before others; without it there is \
         no limit",
    ),
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
    let unknown = || SpecError::unknown("scheduler", name, SCHEDULERS.iter().map(|s| s.name), []);
    let entry = SCHEDULERS.iter().find(|s| s.name == name).ok_or_else(unknown)?;
    let values = Values::check(entry.name, PARAMS, &pairs)?;
    let max_wait = values.given("max_wait", Values::time);
    Ok(Chosen { entry, depth: values.count("depth") as usize, max_wait, resolved: values.resolved() })
}

/// The index of the candidate with the smallest key, the oldest among equals.
fn least<K: Ord>(candidates: &[Candidate], key: impl Fn(&Candidate) -> K) -> Option<usize> {
    candidates.iter().enumerate().min_by_key(|(_, c)| (key(c), c.seq)).map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_disk::mechanics::Distance;
    use smrlab_disk::{Geometry, GeometrySpec, MechanicsSpec, Model, SeekCurve, ZoneSpec};
    use smrlab_units::Pba;
    use std::sync::Arc;

    /// Two surfaces, one after the other: the last track lies under the first one.
    fn two_surfaces(write_settle: SimTime) -> Mechanics {
        let zones = vec![ZoneSpec::plain(100, 100)];
        let geometry = GeometrySpec { surfaces: 2, ..GeometrySpec::single_surface(zones) };
        let seek = SeekCurve::Constant(SimTime::from_ms(2));
        let spec = MechanicsSpec {
            rpm: 6000,
            distance: Distance::Cylinders,
            read_seek: seek.clone(),
            write_seek: seek,
            head_switch: SimTime::from_ms(1),
            write_head_switch: None,
            write_settle,
            read_overhead: SimTime::ZERO,
            write_overhead: SimTime::ZERO,
            read_late: smrlab_units::Blocks::ZERO,
            one_place: 0,
            rate: None,
        };
        Mechanics::new(Arc::new(Geometry::new(geometry).unwrap()), &spec, Model::Full).unwrap()
    }

    fn pick(name: &str, mechanics: &Mechanics, candidates: &[(u64, Dir)]) -> usize {
        let candidates: Vec<_> = (0..)
            .zip(candidates)
            .map(|(seq, &(pba, dir))| Candidate { seq, target: mechanics.target(Pba(pba)), dir })
            .collect();
        let mut policy = parse(name).unwrap().entry.build.unwrap()();
        policy.pick(&View { now: SimTime::ZERO, mechanics, candidates: &candidates })
    }

    #[test]
    fn distance_is_counted_in_cylinders() {
        let m = two_surfaces(SimTime::ZERO);
        // Two cylinders away on this surface; a head switch away, 199 tracks further in the order of PBAs.
        for name in ["sstf", "look", "c-look"] {
            assert_eq!(pick(name, &m, &[(200, Dir::Read), (19_900, Dir::Read)]), 1, "{name}");
        }
    }

    /// Nothing lies ahead: it turns, takes the nearest on its way back, and goes on that way.
    #[test]
    fn the_elevator_turns_where_nothing_is_ahead() {
        let mut m = two_surfaces(SimTime::ZERO);
        m.service(SimTime::ZERO, Dir::Read, Pba(5000), smrlab_units::Blocks(1));
        let mut policy = parse("look").unwrap().entry.build.unwrap()();
        let mut pick = |places: &[u64]| {
            let candidates: Vec<_> = (0..)
                .zip(places)
                .map(|(seq, &pba)| Candidate { seq, target: m.target(Pba(pba)), dir: Dir::Read })
                .collect();
            policy.pick(&View { now: SimTime::ZERO, mechanics: &m, candidates: &candidates })
        };
        assert_eq!(pick(&[1000, 9000, 6000]), 2, "up");
        assert_eq!(pick(&[1000, 4000, 2000]), 1, "nothing is ahead");
        assert_eq!(pick(&[5100, 3000]), 1, "down");
    }

    /// Candidates stand in any order: among equals the one that came first goes, not the one that stands first.
    #[test]
    fn the_oldest_among_equals_goes() {
        let m = two_surfaces(SimTime::ZERO);
        let at = |seq| Candidate { seq, target: m.target(Pba(500)), dir: Dir::Read };
        for name in ["sstf", "look", "c-look", "sptf"] {
            let mut policy = parse(name).unwrap().entry.build.unwrap()();
            let candidates = [at(7), at(2), at(4)];
            assert_eq!(
                policy.pick(&View { now: SimTime::ZERO, mechanics: &m, candidates: &candidates }),
                1,
                "{name}"
            );
        }
    }

    #[test]
    fn sptf_goes_by_the_direction_of_the_first_operation() {
        let m = two_surfaces(SimTime::from_ms(5));
        // Angles 0.3 and 0.5 of 10 ms: a read reaches the first in time, a write needs 7 ms and loses the turn.
        assert_eq!(pick("sptf", &m, &[(130, Dir::Read), (150, Dir::Read)]), 0);
        assert_eq!(pick("sptf", &m, &[(130, Dir::Write), (150, Dir::Read)]), 1);
    }
}
