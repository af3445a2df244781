//! Seek curves: from a distance to a time.

use smrlab_units::SimTime;

/// How long a seek takes over a distance of at least one; no distance takes no time.
#[derive(Clone, Debug, PartialEq)]
pub enum SeekCurve {
    /// The same for every distance.
    Constant(SimTime),
    /// `base + span * sqrt(d / full)` (Ruemmler and Wilkes 1994).
    Sqrt {
        /// Time of an infinitely short seek.
        base: SimTime,
        /// What the full distance adds.
        span: SimTime,
        /// The full distance.
        full: u64,
    },
    /// Through three points: like a square root from one to a third of the full distance (the mean of random seeks),
    /// then straight to the full distance.
    ThreePoint {
        /// Seek over a distance of one.
        single: SimTime,
        /// Seek over a third of the full distance.
        average: SimTime,
        /// Seek over the full distance.
        full_stroke: SimTime,
        /// The full distance.
        full: u64,
    },
    /// Measured points (distance, time), ascending; straight lines between and beyond them, never below 0.
    Table(Vec<(u64, SimTime)>),
    /// The same for each direction.
    Directed {
        /// Towards higher cylinders (or blocks).
        rising: Vec<(u64, SimTime)>,
        /// Back.
        falling: Vec<(u64, SimTime)>,
    },
    /// Measured points for each direction, ascending in distance, times in any order: the point that is nearest in distance,
    /// scaled to the distance (the released model of Shafaei et al. 2017).
    Nearest {
        /// Towards higher cylinders (or blocks).
        rising: Vec<(u64, SimTime)>,
        /// Back.
        falling: Vec<(u64, SimTime)>,
    },
}

impl SeekCurve {
    /// The longest of the times that say what it is.
    pub(crate) fn longest_stated(&self) -> SimTime {
        let longest = |points: &[(u64, SimTime)]| points.iter().map(|p| p.1).max().unwrap_or_default();
        match self {
            Self::Constant(time) => *time,
            Self::Sqrt { base, span, .. } => SimTime(base.0.saturating_add(span.0)),
            Self::ThreePoint { single, average, full_stroke, .. } => *single.max(average).max(full_stroke),
            Self::Table(points) => longest(points),
            Self::Directed { rising, falling } | Self::Nearest { rising, falling } => {
                longest(rising).max(longest(falling))
            }
        }
    }
}

impl SeekCurve {
    /// Whether no longer way takes less time than a shorter one, as far as the curve says it (rounding aside).
    pub(crate) fn ascends(&self) -> bool {
        let rises = |points: &[(u64, SimTime)]| points.is_sorted_by_key(|p| p.1);
        match self {
            Self::Constant(_) | Self::Sqrt { .. } => true,
            Self::ThreePoint { single, average, full_stroke, .. } => {
                single <= average && average <= full_stroke
            }
            Self::Table(points) => rises(points),
            Self::Directed { rising, falling } => rises(rising) && rises(falling),
            Self::Nearest { .. } => false,
        }
    }

    /// Whether the line beyond the last row falls to nothing within `farthest`, though that row takes time.
    pub(crate) fn ends_in_nothing(&self, farthest: u64) -> bool {
        let beyond = |points: &[(u64, SimTime)]| {
            points.last().is_some_and(|p| p.0 < farthest && p.1 > SimTime::ZERO)
                && Lines::new(points).time(farthest) == 0
        };
        match self {
            Self::Table(points) => beyond(points),
            Self::Directed { rising, falling } => beyond(rising) || beyond(falling),
            _ => false,
        }
    }

    /// The longest seek over a distance of at most `farthest`.
    pub(crate) fn longest(&self, farthest: u64) -> SimTime {
        let ends = |points: &[(u64, SimTime)]| -> Vec<u64> {
            // What is scaled from the nearest point is longest where the next one is as near.
            let between = points.windows(2).map(|pair| pair[0].0.midpoint(pair[1].0));
            points.iter().map(|p| p.0).chain(between).collect()
        };
        let mut distances = match self {
            Self::Constant(_) | Self::Sqrt { .. } => Vec::new(),
            Self::ThreePoint { full, .. } => vec![(*full / 3).max(2)],
            Self::Table(points) => ends(points),
            Self::Directed { rising, falling } | Self::Nearest { rising, falling } => {
                [ends(rising), ends(falling)].concat()
            }
        };
        distances.extend([1, farthest]);
        let curve = self.ready();
        let both_ways = |d: u64| curve.between(0, d).max(curve.between(d, 0));
        SimTime(distances.into_iter().filter(|d| *d <= farthest).map(both_ways).max().unwrap_or_default())
    }
}

/// See [`Curve::Piecewise`]; nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    base: f64,
    root: f64,
    slope: f64,
}

/// A curve made ready for use: nanoseconds as reals, rounded to the nearest at the end. Only `+ - * sqrt` are used, so
/// that results are the same on every machine.
#[derive(Clone, Debug)]
pub(crate) enum Curve {
    Constant(u64),
    /// `base + root * sqrt(d) + slope * d`, as of the first up to `knee`, as of the second beyond it: one of `root` and `slope` is 0.
    Piecewise {
        knee: u64,
        parts: [Part; 2],
    },
    Table(Lines),
    /// Rising and falling.
    Directed([Lines; 2]),
    /// Rising and falling.
    Nearest([Vec<(u64, u64)>; 2]),
}

/// Straight lines between and beyond points.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// Distance, time there, slope from there on.
    points: Vec<(u64, f64, f64)>,
    /// The times themselves, of every distance up to the last point, on drives of few cylinders. Empty on others.
    times: Vec<u32>,
    /// By the upper bits of the distance: the point to start looking from.
    start: Vec<u32>,
    shift: u32,
}

fn ns(t: SimTime) -> f64 {
    t.0 as f64
}

impl SeekCurve {
    pub(crate) fn ready(&self) -> Curve {
        match self {
            Self::Constant(t) => Curve::Constant(t.0),
            Self::Sqrt { base, span, full } => Curve::Piecewise {
                knee: u64::MAX,
                parts: [
                    Part { base: ns(*base), root: ns(*span) / ((*full).max(1) as f64).sqrt(), slope: 0.0 },
                    Part::default(),
                ],
            },
            Self::ThreePoint { single, average, full_stroke, full } => {
                let third = (*full / 3).max(2);
                let slope = (ns(*average) - ns(*single)) / ((third as f64).sqrt() - 1.0);
                let rest = (*full).max(third + 1) - third;
                let slope2 = (ns(*full_stroke) - ns(*average)) / rest as f64;
                Curve::Piecewise {
                    knee: third,
                    parts: [
                        Part { base: ns(*single) - slope, root: slope, slope: 0.0 },
                        Part { base: ns(*average) - slope2 * third as f64, root: 0.0, slope: slope2 },
                    ],
                }
            }
            Self::Table(points) => Curve::Table(Lines::new(points)),
            Self::Directed { rising, falling } => {
                Curve::Directed([rising, falling].map(|points| Lines::new(points)))
            }
            Self::Nearest { rising, falling } => Curve::Nearest(
                [rising, falling].map(|points| points.iter().map(|&(d, t)| (d, t.0)).collect()),
            ),
        }
    }

    /// From one cylinder (or block) to another.
    pub fn time(&self, from: u64, to: u64) -> SimTime {
        SimTime(self.ready().between(from, to))
    }
}

/// The point nearest in distance, the nearer end of equals, scaled to the distance.
fn nearest(points: &[(u64, u64)], distance: u64) -> u64 {
    let i = points.partition_point(|p| p.0 < distance);
    let away = |p: &(u64, u64)| p.0.abs_diff(distance);
    let below = i.checked_sub(1).and_then(|i| points.get(i));
    let (d, t) = match (below, points.get(i)) {
        (Some(a), Some(b)) => *if away(a) <= away(b) { a } else { b },
        (Some(p), None) | (None, Some(p)) => *p,
        (None, None) => return 0,
    };
    ((u128::from(t) * u128::from(distance) + u128::from(d / 2)) / u128::from(d)) as u64
}

impl Lines {
    fn new(points: &[(u64, SimTime)]) -> Self {
        let mut out: Vec<(u64, f64, f64)> = points.iter().map(|&(d, t)| (d, ns(t), 0.0)).collect();
        for i in 1..out.len() {
            out[i - 1].2 = (out[i].1 - out[i - 1].1) / (out[i].0 - out[i - 1].0) as f64;
        }
        if let [.., before, last] = out.as_mut_slice() {
            last.2 = before.2;
        }
        let end = out.last().map_or(0, |p| p.0);
        let mut shift = 0;
        while end >> shift >= SLOTS {
            shift += 1;
        }
        let start = (0..=end >> shift)
            .scan(0, |i, slot| {
                while *i + 1 < out.len() && out[*i + 1].0 <= slot << shift {
                    *i += 1;
                }
                Some(*i as u32)
            })
            .collect();
        let mut lines = Self { points: out, times: Vec::new(), start, shift };
        if shift == 0 {
            let times: Result<Vec<u32>, _> = (0..=end).map(|d| u32::try_from(lines.on_line(d))).collect();
            lines.times = times.unwrap_or_default();
        }
        if !lines.times.is_empty() {
            // What lies beyond is on the last line.
            (lines.start, lines.shift) = (vec![lines.points.len() as u32 - 1], u64::BITS - 1);
        }
        lines
    }

    /// Of most drives it is one look: how many points to pass by could not be predicted.
    #[inline(always)]
    fn time(&self, distance: u64) -> u64 {
        match self.times.get(distance as usize) {
            Some(time) => u64::from(*time),
            None => self.on_line(distance),
        }
    }

    #[inline(never)]
    fn on_line(&self, distance: u64) -> u64 {
        let slot = ((distance >> self.shift) as usize).min(self.start.len() - 1);
        let mut i = self.start[slot] as usize;
        while i + 1 < self.points.len() && self.points[i + 1].0 <= distance {
            i += 1;
        }
        let (from, t, slope) = self.points[i];
        rounded((t + (distance as i64 as f64 - from as i64 as f64) * slope).max(0.0))
    }
}

/// At most so many distances have a time, or a place to start looking from, of their own.
const SLOTS: u64 = 1 << 14;

/// To the nearest whole number, for `0 <= t < 2^51`: adding 2^52 leaves the number in the lower bits.
#[inline]
fn rounded(t: f64) -> u64 {
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    (t + SHIFT).to_bits() - SHIFT.to_bits()
}

impl Curve {
    /// In nanoseconds, from one cylinder (or block) to another.
    #[inline(always)]
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        match self {
            Self::Directed(_) | Self::Nearest(_) => self.one_way(usize::from(to < from), from.abs_diff(to)),
            _ => self.time(from.abs_diff(to)),
        }
    }

    /// Of a curve for each direction. By itself, so that others are not slower for it.
    #[inline(never)]
    fn one_way(&self, way: usize, distance: u64) -> u64 {
        match self {
            Self::Directed(lines) if distance > 0 => lines[way].time(distance),
            Self::Nearest(points) => nearest(&points[way], distance),
            _ => 0,
        }
    }

    /// In nanoseconds; towards higher cylinders.
    #[inline(always)]
    pub(crate) fn time(&self, distance: u64) -> u64 {
        let time = match self {
            Self::Constant(t) => *t,
            Self::Piecewise { knee, parts } => {
                // Which part of the curve it is cannot be predicted. Compilers make a jump of every choice between reals, so what is chosen
                // are factors in memory.
                let part = &parts[usize::from(distance > *knee)];
                // Signed conversion is one instruction.
                let d = distance as i64 as f64;
                // On a drive of few cylinders the square root may start below zero.
                rounded((part.base + part.root * d.sqrt() + part.slope * d).max(0.0))
            }
            Self::Table(lines) => lines.time(distance),
            Self::Directed(_) | Self::Nearest(_) => self.one_way(0, distance),
        };
        if distance == 0 { 0 } else { time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    fn us(n: u64) -> SimTime {
        SimTime::from_us(n)
    }

    #[test]
    fn three_points_on_a_drive_of_few_cylinders() {
        let ms = SimTime::from_ms;
        let curve = SeekCurve::ThreePoint { single: ms(1), average: ms(8), full_stroke: ms(16), full: 24 };
        let times: Vec<_> = [0, 1, 8, 24].iter().map(|d| curve.time(0, *d)).collect();
        assert_eq!(times, [ms(0), ms(1), ms(8), ms(16)]);
        // Over so few that a third is less than two, the middle point is at two.
        for full in 3..9 {
            let curve = SeekCurve::ThreePoint { single: ms(1), average: ms(8), full_stroke: ms(16), full };
            let times = [1, (full / 3).max(2), full].map(|d| curve.time(0, d));
            assert_eq!(times, [ms(1), ms(8), ms(16)], "{full}");
        }
    }

    /// Tables of few distances, of many, and with a time that is not kept beside the line: on each line what the line says, below the
    /// first point and beyond the last one too.
    #[test]
    fn every_distance_of_a_table_has_the_time_of_its_line() {
        let long = SimTime(u64::from(u32::MAX));
        for end in [2000, 16_383, 16_384, 100_000] {
            for last in [us(9_000), long, long + SimTime(1)] {
                let points = [(5, us(700)), (6, us(900)), (1000, us(4001)), (end, last)];
                let curve = SeekCurve::Table(points.to_vec());
                let ready = curve.ready();
                for d in (1..20).chain(990..1010).chain(end - 3..end + 3).chain([end * 2]) {
                    let i = points.iter().rposition(|p| p.0 <= d).unwrap_or(0).min(2);
                    let [(a, from), (b, to)] = [points[i], points[i + 1]];
                    let exact = ns(from) + (d as f64 - a as f64) * ((ns(to) - ns(from)) / (b - a) as f64);
                    assert_eq!(ready.time(d), exact.round_ties_even() as u64, "{d} of {end}");
                }
            }
        }
    }

    #[test]
    fn curves_pass_through_their_points() {
        let c = SeekCurve::Sqrt { base: us(800), span: us(4000), full: 600 }.ready();
        assert_eq!((c.time(0), c.time(600), c.time(150)), (0, 4_800_000, 2_800_000));
        let c = SeekCurve::ThreePoint {
            single: us(1000),
            average: us(8000),
            full_stroke: us(16_000),
            full: 30_000,
        }
        .ready();
        assert_eq!(
            (c.time(0), c.time(1), c.time(10_000), c.time(30_000)),
            (0, 1_000_000, 8_000_000, 16_000_000)
        );
        assert_eq!(c.time(20_000), 12_000_000, "straight beyond a third");
        let half = 1e6 + 7e6 * (2500f64.sqrt() - 1.0) / 99.0;
        assert_eq!(c.time(2500), half.round() as u64, "a square root before");
        let c = SeekCurve::Nearest { rising: vec![(10, us(50)), (30, us(60))], falling: vec![(20, us(40))] };
        // Scaled from the first point, from the nearer of two (of equals the lower), from the last; and back.
        let at = |to| c.time(100, to).0;
        assert_eq!([at(104), at(120), at(121), at(160), at(100)], [20_000, 100_000, 42_000, 120_000, 0]);
        assert_eq!((at(90), at(60)), (20_000, 80_000));
        let c = SeekCurve::Directed { rising: vec![(10, us(50)), (30, us(60))], falling: vec![(20, us(40))] };
        // A line through two points, one for all distances, and no way.
        let at = |to| c.time(100, to).0;
        assert_eq!((at(120), at(90), at(40), at(100)), (55_000, 40_000, 40_000, 0));
        let c = SeekCurve::Table(vec![(1, us(1)), (3, us(5)), (10_000, us(10_002))]).ready();
        assert_eq!((c.time(1), c.time(2), c.time(3)), (1000, 3000, 5000));
        assert_eq!((c.time(5000), c.time(10_001)), (5_002_000, 10_003_000));
    }

    /// A square root up to a third, a line beyond it, to the last bit, over drives of few cylinders and of many blocks.
    #[test]
    fn each_part_of_a_three_point_curve_has_the_time_of_its_formula() {
        let mut rng = Rng::new(9);
        let [single, average, full_stroke] = [us(1200), us(8123), us(16_077)];
        for full in [600, 30_000, 90_001, 9 << 32] {
            let curve = SeekCurve::ThreePoint { single, average, full_stroke, full }.ready();
            let third = full / 3;
            let slope = (ns(average) - ns(single)) / ((third as f64).sqrt() - 1.0);
            let slope2 = (ns(full_stroke) - ns(average)) / (full - third) as f64;
            for d in (0..2000).map(|_| 1 + rng.below(full)).chain([1, third, third + 1, full]) {
                let at = d as f64;
                let near = ns(single) - slope + slope * at.sqrt();
                let far = ns(average) - slope2 * third as f64 + slope2 * at;
                let time = if d <= third { near } else { far };
                assert_eq!(curve.time(d), time.round_ties_even() as u64, "{d} of {full}");
            }
        }
    }

    /// From 8 at 4 down to 2 at 6: 0 at 6 2/3, and no time before the start beyond.
    #[test]
    fn a_line_that_falls_beyond_the_last_point_ends_at_zero() {
        let c = SeekCurve::Table(vec![(1, us(1)), (4, us(8)), (6, us(2))]).ready();
        assert_eq!([5, 6, 7, 96].map(|d| c.between(0, d)), [5000, 2000, 0, 0]);
    }

    /// Of random curves, looked at over every distance and both ways.
    #[test]
    fn the_longest_seek_is_as_long_as_the_longest_of_all() {
        let mut rng = Rng::new(3);
        for _ in 0..300 {
            let points = |rng: &mut Rng| -> Vec<(u64, SimTime)> {
                let mut d = 0;
                let next = |_| {
                    d += 1 + rng.below(9);
                    (d, us(rng.below(900)))
                };
                (0..4).map(next).collect()
            };
            let (rising, falling) = (points(&mut rng), points(&mut rng));
            let curve = match rng.below(4) {
                0 => SeekCurve::Table(rising),
                1 => SeekCurve::Directed { rising, falling },
                2 => SeekCurve::Nearest { rising, falling },
                _ => SeekCurve::ThreePoint {
                    single: us(3),
                    average: us(3 + rng.below(9)),
                    full_stroke: us(12 + rng.below(9)),
                    full: 1 + rng.below(40),
                },
            };
            let farthest = 1 + rng.below(40);
            let all = (1..=farthest).flat_map(|d| [curve.time(0, d), curve.time(d, 0)]);
            assert_eq!(curve.longest(farthest), all.max().unwrap(), "{farthest}: {curve:?}");
        }
    }
}
