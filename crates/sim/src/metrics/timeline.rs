//! What happened when: one row per window of simulated time.

use super::windows::{Cell, Windows};
use smrlab_drive::OpDone;
use smrlab_units::{Blocks, HostOp, SimTime, ZoneCounts};

/// At most so many windows where the user gave no width.
pub const ADAPTIVE_LIMIT: usize = 2000;
/// All drives of an array have at most so many together where the user gave no width: a window takes 330 bytes here, and a row of
/// the result.
const OF_ALL: usize = 64 * ADAPTIVE_LIMIT;
/// Each drive may have so many however many drives there are.
const AT_LEAST: usize = 16;
/// At most so many windows of a width that the user gave; beyond that it doubles too.
pub const FIXED_LIMIT: usize = 1 << 20;
/// All drives of an array have at most so many together then: with the rows of the result some 4 GB.
const FIXED_OF_ALL: usize = 4 * FIXED_LIMIT;
const FIRST_WIDTH: SimTime = SimTime::from_ms(1);

const ARRIVALS: usize = 0;
const COMPLETIONS: usize = 1;
const MEDIA: usize = 2;
const CLEANING: usize = 3;
const STALLS: usize = 4;
const CACHE: usize = 5;
/// How often the cache is looked at within a window.
const LOOKS: u64 = 16;

/// Sums over one window.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Host requests that arrived.
    pub arrivals: u64,
    /// Host requests that were acknowledged.
    pub completions: u64,
    /// Host blocks by [`HostOp`] number, by the time of completion.
    pub host_blocks: [u64; HostOp::KINDS],
    /// Media blocks by [`Dir`](smrlab_stl::Dir) number, by the end of their operation.
    pub media_blocks: [u64; 2],
    /// Sum of the response times of the completions, ns.
    pub response_ns: u128,
    /// Largest response time of a completion, ns.
    pub response_max: u64,
    /// Time within the window in which the drive worked, ns.
    pub busy_ns: u64,
    /// Time within the window that went into cleaning, ns.
    pub cleaning_ns: u64,
    /// Time within the window in which a stalled request was waiting, ns.
    pub stalled_ns: u64,
    /// Blocks that the layer's cache held when it was looked at last within the window.
    pub cached: Option<u64>,
    /// The zones as they were when they were looked at last within the window.
    pub zones: Option<ZoneCounts>,
    /// Zones that were reset.
    pub resets: u64,
    /// Of the completions: requests that were refused.
    pub refused: u64,
    /// Of the host's blocks read and written: those of refused requests, which moved no data.
    pub undone_blocks: u64,
    /// Media operations that ended.
    pub ops: u64,
    /// Sum, over those, of the track on which the head stood at the end.
    pub track_sum: u64,
    /// Lowest track plus 1; 0: none.
    track_min: u64,
    /// Highest track.
    pub track_max: u64,
}

impl Window {
    /// What the host wrote, where it said and where a zone's write pointer was.
    pub fn blocks_written(&self) -> u64 {
        self.host_blocks[HostOp::Write.index()] + self.host_blocks[HostOp::Append.index()]
    }
}

impl Cell for Window {
    fn absorb(&mut self, later: &Self) {
        self.arrivals += later.arrivals;
        self.completions += later.completions;
        self.host_blocks.iter_mut().zip(later.host_blocks).for_each(|(n, more)| *n += more);
        self.media_blocks.iter_mut().zip(later.media_blocks).for_each(|(n, more)| *n += more);
        self.response_ns += later.response_ns;
        self.response_max = self.response_max.max(later.response_max);
        self.busy_ns += later.busy_ns;
        self.cleaning_ns += later.cleaning_ns;
        self.stalled_ns += later.stalled_ns;
        self.cached = later.cached.or(self.cached);
        self.zones = later.zones.or(self.zones);
        self.resets += later.resets;
        self.refused += later.refused;
        self.undone_blocks += later.undone_blocks;
        self.ops += later.ops;
        self.track_sum += later.track_sum;
        self.track_max = self.track_max.max(later.track_max);
        self.track_min = match (self.track_min, later.track_min) {
            (0, m) | (m, 0) => m,
            (a, b) => a.min(b),
        };
    }
}

impl Window {
    /// Lowest, highest and mean track on which an operation of the window ended; `None` where none did.
    pub fn tracks(&self) -> Option<(u64, u64, f64)> {
        (self.ops > 0).then(|| (self.track_min - 1, self.track_max, self.track_sum as f64 / self.ops as f64))
    }
}

/// See the [module](self).
pub struct Timeline {
    windows: Windows<Window>,
}

impl Timeline {
    /// Windows of `width`, twice as wide until [`FIXED_LIMIT`] are enough; `None`: as narrow as [`ADAPTIVE_LIMIT`] of them allow. Fewer
    /// for many drives.
    pub fn new(width: Option<SimTime>, drives: usize) -> Self {
        let most = |all: usize, limit| (all / drives.max(1)).clamp(AT_LEAST, limit);
        let windows = match width {
            Some(w) => Windows::new(w, most(FIXED_OF_ALL, FIXED_LIMIT)),
            None => Windows::new(FIRST_WIDTH, most(OF_ALL, ADAPTIVE_LIMIT)),
        };
        Self { windows }
    }

    /// A host request arrives.
    #[inline]
    pub fn arrival(&mut self, at: SimTime) {
        self.arrivals(at, 1);
    }

    /// So many arrive in the window of this time.
    #[inline]
    pub fn arrivals(&mut self, at: SimTime, n: u64) {
        self.windows.at(ARRIVALS, at).arrivals += n;
    }

    /// Whether requests that arrive between these times, and are acknowledged between those, do both in one window.
    pub fn same_windows(&mut self, arrivals: (SimTime, SimTime), acks: (SimTime, SimTime)) -> bool {
        self.windows.same(ARRIVALS, arrivals.0, arrivals.1) && self.windows.same(COMPLETIONS, acks.0, acks.1)
    }

    /// A host request is acknowledged; `op` is its [`HostOp`]'s number.
    #[inline]
    pub fn completion(&mut self, at: SimTime, response: SimTime, op: usize, blocks: u64) {
        self.completions(at, response, op, Blocks(blocks), 1);
    }

    /// So many, of so many blocks each, are acknowledged in the window of this time, each after the same time.
    #[inline]
    pub fn completions(&mut self, at: SimTime, response: SimTime, op: usize, blocks: Blocks, n: u64) {
        let w = self.windows.at(COMPLETIONS, at);
        w.completions += n;
        w.response_ns += u128::from(response.0) * u128::from(n);
        w.response_max = w.response_max.max(response.0);
        w.host_blocks[op] += n * blocks.0;
    }

    /// A media operation ended; windows count from `origin` on.
    #[inline(always)]
    pub fn media(&mut self, done: &OpDone, origin: SimTime) {
        let (start, end) = (done.start.since(origin), done.end.since(origin));
        let w = self.windows.spread_to(MEDIA, start, end, |w, ns| w.busy_ns += ns);
        w.media_blocks[done.op.dir as usize] += done.op.blocks.0;
        let track = done.tracks.last;
        w.ops += 1;
        w.track_sum += track;
        w.track_max = w.track_max.max(track);
        // Less 1, none is beyond every track.
        w.track_min = w.track_min.wrapping_sub(1).min(track) + 1;
    }

    /// The drive was busy without a media operation.
    pub fn paused(&mut self, start: SimTime, end: SimTime, origin: SimTime) {
        let (start, end) = (start.since(origin), end.since(origin));
        self.windows.spread(MEDIA, start, end, |w, ns| w.busy_ns += ns);
    }

    /// The drive cleaned from `from` to `to`.
    pub fn cleaning(&mut self, from: SimTime, to: SimTime) {
        self.windows.spread(CLEANING, from, to, |w, ns| w.cleaning_ns += ns);
    }

    /// A stalled request was waiting from `from` to `to`, and none that was told of before.
    pub fn stalled(&mut self, from: SimTime, to: SimTime) {
        self.windows.spread(STALLS, from, to, |w, ns| w.stalled_ns += ns);
    }

    /// The layer's cache holds so many blocks at `at`, and its zones are like this; returns when to look again, a small part of a window
    /// later.
    pub fn looked(&mut self, at: SimTime, cached: Option<u64>, zones: Option<ZoneCounts>) -> SimTime {
        let w = self.windows.at(CACHE, at);
        (w.cached, w.zones) = (cached, zones);
        at + SimTime((self.windows.width().0 / LOOKS).max(1))
    }

    /// So many zones were reset at `at`.
    pub fn reset(&mut self, at: SimTime, zones: u64) {
        self.windows.at(COMPLETIONS, at).resets += zones;
    }

    /// A request was answered at `at` that was refused: so many blocks were not read or written.
    pub fn refused(&mut self, at: SimTime, blocks: u64) {
        let w = self.windows.at(COMPLETIONS, at);
        w.refused += 1;
        w.undone_blocks += blocks;
    }

    /// What `of` says of every window of which it says something, with the window's beginning.
    pub fn seen<T>(&self, of: impl Fn(&Window) -> Option<T>) -> impl Iterator<Item = (SimTime, T)> {
        let start = |i: usize| SimTime(self.width().0 * i as u64);
        self.windows.cells().iter().enumerate().filter_map(move |(i, w)| Some((start(i), of(w)?)))
    }

    /// Has `set` say of each window what holds at its end.
    pub fn set(&mut self, mut set: impl FnMut(&mut Window, SimTime)) {
        let width = self.windows.width().0;
        for (i, w) in self.windows.cells_mut().iter_mut().enumerate() {
            set(w, SimTime(width * (i as u64 + 1)));
        }
    }

    /// Width of the windows.
    pub fn width(&self) -> SimTime {
        self.windows.width()
    }

    /// Has the windows of `other`, where those are wider or more.
    pub fn follow(&mut self, other: &Self) {
        self.windows.follow(&other.windows);
    }

    /// The windows with the number of requests in the system at the end of each.
    pub fn rows(&self) -> impl Iterator<Item = (&Window, u64)> {
        let mut backlog = 0u64;
        self.windows.cells().iter().map(move |w| {
            backlog = (backlog + w.arrivals).saturating_sub(w.completions);
            (w, backlog)
        })
    }

    /// The largest number of requests in the system at the end of a window.
    pub fn backlog_max(&self) -> u64 {
        self.rows().map(|(_, b)| b).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a week, windows are as many as the drives leave, and half as many at least.
    #[test]
    fn many_drives_have_fewer_windows_each() {
        let week = SimTime::from_ms(7 * 24 * 3_600_000);
        let windows = |width, drives| {
            let mut timeline = Timeline::new(width, drives);
            timeline.arrival(week);
            timeline.windows.cells().len()
        };
        for (drives, most) in [(1, 2000), (64, 2000), (128, 1000), (800, 160), (65_535, 16)] {
            let n = windows(None, drives);
            assert!((most / 2..=most).contains(&n), "{drives} drives: {n}");
        }
        // A width that was given stays where the memory allows that.
        let minute = Some(SimTime::from_ms(60_000));
        assert_eq!([1, 64, 400].map(|drives| windows(minute, drives)), [7 * 24 * 60 + 1; 3]);
        assert!((32..=64).contains(&windows(minute, 65_535)));
        assert!((FIXED_LIMIT * 2 / 5..=FIXED_LIMIT * 4 / 5).contains(&windows(Some(SimTime::from_ms(1)), 5)));
    }

    /// Two windows that become one: what is counted adds up, the extremes are those of both, the cache is as it was last.
    #[test]
    fn a_window_of_two_has_what_both_had() {
        let one = |k: u64, (track_min, track_max)| Window {
            arrivals: k,
            completions: 2 * k,
            host_blocks: std::array::from_fn(|kind| (kind as u64 + 3) * k),
            media_blocks: [7, 8].map(|n| n * k),
            response_ns: u128::from(9 * k),
            response_max: 10 * k,
            busy_ns: 11 * k,
            cleaning_ns: 12 * k,
            stalled_ns: 13 * k,
            cached: Some(14 * k),
            zones: Some(ZoneCounts { open: 17 * k, ..ZoneCounts::default() }),
            resets: 18 * k,
            refused: 19 * k,
            undone_blocks: 5 * k,
            ops: 15 * k,
            track_sum: 16 * k,
            track_max,
            track_min,
        };
        let together = |first: &Window, later: &Window| {
            let mut both = first.clone();
            both.absorb(later);
            both
        };
        let (small, large) = (one(10, (6, 30)), one(100, (4, 20)));
        let same = |a: &Window, b: &Window| assert_eq!(format!("{a:?}"), format!("{b:?}"));
        let both = Window { response_max: 1000, cached: Some(1400), zones: large.zones, ..one(110, (4, 30)) };
        same(&together(&small, &large), &both);
        same(&together(&large, &small), &Window { cached: Some(140), zones: small.zones, ..both });
        let none = Window::default();
        same(&together(&none, &small), &small);
        same(&together(&small, &none), &small);
    }
}
