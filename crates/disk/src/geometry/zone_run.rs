//! A run of a zone: tracks that follow each other in PBA order in one regular pattern, with equal sectors a track.

use super::REVOLUTION;
use smrlab_units::reciprocal::Reciprocal;

/// The pattern is groups of `surfaces` runs of `width` tracks; each run lies on one surface, cylinder by cylinder.
/// A cylinder layout has runs of one track; one surface of a surface serpentine is a single run.
///
/// What every operation asks for comes first, in two cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct ZoneRun {
    /// First raw block (usable sectors, slipped ones included).
    pub first_raw: u64,
    /// Sectors of a track that can hold PBAs.
    pub usable: Reciprocal,
    /// Tracks in a group, and in a run.
    pub group: Reciprocal,
    pub width: Reciprocal,
    /// Angle at which the first track starts.
    pub base_skew: u64,
    /// Skew from a group's first track to the next group's; from a run's to the next run's; both below a revolution.
    pub group_skew: u64,
    pub run_skew: u64,
    /// Skew to the next track of the run.
    pub step_skew: u64,
    /// Sectors in a revolution.
    pub sectors: Reciprocal,
    pub first_track: u64,
    pub surfaces: u32,
    /// Lowest cylinder in forward order (0 where PBA 0 lies), and lowest surface.
    pub first_cylinder: u32,
    pub first_surface: u32,
    /// The whole run of a zone runs backwards (odd surfaces of a surface serpentine).
    pub reversed: bool,
    /// Odd runs of a group run backwards (hybrid serpentine).
    pub serpentine: bool,
    /// Odd cylinders go through the surfaces backwards.
    pub alternate: bool,
    /// ...counted from the first cylinder, which is an odd one.
    pub turned: bool,
    pub tracks: u64,
    /// Spare blocks at the end of each cylinder (of each group).
    pub cylinder_spares: u64,
    /// Skew to the next run of the group.
    pub head_skew: u64,
    pub zone: u32,
}

const _: () = assert!(std::mem::offset_of!(ZoneRun, tracks) == 128);

/// A track within its run of a zone's pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackPlace {
    pub group: u64,
    /// Run within the group.
    pub run: u64,
    /// Track within the run.
    pub step: u64,
}

/// How many switches of each kind lie between two tracks of a run of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Switches {
    /// Along runs that go the same way as the first one of a group, and along others.
    pub steps: u64,
    pub back: u64,
    pub heads: u64,
    pub groups: u64,
}

/// `slot` less a revolution of `n` where it is beyond one; without a branch.
#[inline]
pub fn wrapped(slot: u64, n: u64) -> u64 {
    slot.min(slot.wrapping_sub(n))
}

/// The slot of `n` that begins nearest to an angle below a revolution: what overlaps is counted in whole sectors, what takes time is
/// not.
#[inline]
fn rounded(angle: u64, n: u64) -> u64 {
    wrapped((angle * n + REVOLUTION / 2) / REVOLUTION, n)
}

/// The slots (sector-sized angles) nearest to the first sectors of tracks that follow each other in a stroke.
#[derive(Clone, Copy, Debug)]
pub struct StartSlots {
    skew: u64,
    step_skew: u64,
    sectors: u64,
}

impl StartSlots {
    /// Sectors of each track, spares included.
    #[inline]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// That of the `i`-th track.
    #[inline]
    pub fn of(&self, i: u64) -> u64 {
        rounded((self.skew + i * self.step_skew) % REVOLUTION, self.sectors)
    }
}

impl ZoneRun {
    #[inline]
    pub(crate) fn blocks(&self) -> u64 {
        self.tracks * self.usable.divisor()
    }

    #[inline]
    pub(crate) fn place(&self, track: u64) -> TrackPlace {
        let (group, rest) = self.group.div_rem(track);
        let (run, step) = self.width.div_rem(rest);
        TrackPlace { group, run, step }
    }

    fn backwards(&self, run: u64) -> bool {
        self.reversed ^ (self.serpentine & (run & 1 == 1))
    }

    /// Between a step along a run and a step along the cylinders (its own inverse); without a branch, because the
    /// direction of a random track cannot be predicted.
    #[inline]
    fn turned(&self, run: u64, step: u64) -> u64 {
        let back = u64::from(self.backwards(run));
        step.wrapping_add(back.wrapping_mul((self.width.divisor() - 1).wrapping_sub(2 * step)))
    }

    #[inline]
    pub(crate) fn cylinder(&self, p: TrackPlace) -> u32 {
        let width = self.width.divisor();
        self.first_cylinder + (p.group * width + self.turned(p.run, p.step)) as u32
    }

    #[inline]
    pub(crate) fn surface(&self, p: TrackPlace) -> u32 {
        let odd = self.alternate && ((u64::from(self.first_cylinder) + p.group) & 1 == 1) ^ self.turned;
        let run = p.run as u32;
        self.first_surface + if odd { self.surfaces - 1 - run } else { run }
    }

    /// The track at a (forward) cylinder and surface that lie in this run of a zone.
    #[inline]
    pub(crate) fn track_at(&self, cylinder: u32, surface: u32) -> u64 {
        let (group, step) = self.width.div_rem(u64::from(cylinder - self.first_cylinder));
        let odd = self.alternate && (cylinder & 1 == 1) ^ self.turned;
        let s = surface - self.first_surface;
        let run = u64::from(if odd { self.surfaces - 1 - s } else { s });
        group * self.group.divisor() + run * self.width.divisor() + self.turned(run, step)
    }

    /// Whether PBAs rise towards higher (forward) cylinders on this run.
    #[inline]
    pub(crate) fn forward(&self, p: TrackPlace) -> bool {
        !self.backwards(p.run)
    }

    /// The angle at which a track starts, exactly.
    #[inline]
    pub(crate) fn start(&self, p: TrackPlace) -> u64 {
        let s = self.base_skew + p.group * self.group_skew + p.run * self.run_skew + p.step * self.step_skew;
        s % REVOLUTION
    }

    /// The slot (sector-sized angle) nearest to a track's start (Pitchumani 2012, section 3.2.1): for what lies side by side.
    #[inline]
    pub(crate) fn start_slot(&self, p: TrackPlace) -> u64 {
        rounded(self.start(p), self.sectors.divisor())
    }

    /// The same of a track and those behind it in its run.
    #[inline]
    pub(crate) fn start_slots(&self, track: u64) -> StartSlots {
        let skew = self.start(self.place(track));
        StartSlots { skew, step_skew: self.step_skew, sectors: self.sectors.divisor() }
    }

    /// The angle from a track's start to the begin of a sector, at most all of them.
    #[inline]
    pub(crate) fn sector_angle(&self, sector: u64) -> u64 {
        debug_assert!(sector <= self.sectors.divisor());
        self.sectors.div(sector * REVOLUTION)
    }

    /// The last sector that begins at an angle or before it, counted on beyond the track's end; the angle is one of a few revolutions.
    #[inline]
    pub(crate) fn last_edge(&self, angle: u64) -> u64 {
        // Sector `n` begins at `n * REVOLUTION / sectors`, rounded down.
        ((angle + 1) * self.sectors.divisor() - 1) / REVOLUTION
    }

    /// The angle of any number of sectors.
    pub(crate) fn sectors_angle(&self, sectors: u64) -> u64 {
        let (turns, sector) = self.sectors.div_rem_wide(sectors);
        turns * REVOLUTION + self.sector_angle(sector)
    }

    fn switches_before(&self, p: TrackPlace) -> Switches {
        let (runs, steps) = (u64::from(self.surfaces), self.width.divisor() - 1);
        let all = (p.group * runs + p.run) * steps + p.step;
        let back = if self.serpentine {
            (p.group * (runs / 2) + p.run / 2) * steps + (p.run & 1) * p.step
        } else {
            0
        };
        Switches { steps: all - back, back, heads: p.group * (runs - 1) + p.run, groups: p.group }
    }

    /// Switches that a transfer from one track to a later one makes.
    pub(crate) fn switches(&self, from: TrackPlace, to: TrackPlace) -> Switches {
        let (a, b) = (self.switches_before(from), self.switches_before(to));
        Switches {
            steps: b.steps - a.steps,
            back: b.back - a.back,
            heads: b.heads - a.heads,
            groups: b.groups - a.groups,
        }
    }
}
