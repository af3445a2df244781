//! From sizes of tracks to zones: the paper's method, and change points.

use super::dig::Track;

/// Tracks that follow each other and are taken to have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EqualTracks {
    /// Tracks.
    pub tracks: u64,
    /// Sectors on each.
    pub sectors: u64,
}

/// What the paper's method is told (its Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Sizes below are left out.
    pub least: u64,
    /// Sizes above are left out.
    pub most: u64,
    /// Degree of the polynomial.
    pub degree: usize,
    /// Zones.
    pub zones: u64,
}

impl Default for Paper {
    fn default() -> Self {
        Self { least: 1000, most: 2200, degree: 13, zones: 18 }
    }
}

/// A polynomial in Chebyshev form over an interval: powers of degree 13 would lose all digits.
#[derive(Clone, Debug)]
pub struct Curve {
    from: f64,
    to: f64,
    coefficients: Vec<f64>,
}

impl Curve {
    fn terms(&self, x: f64) -> Vec<f64> {
        let t = if self.to > self.from { 2.0 * (x - self.from) / (self.to - self.from) - 1.0 } else { 0.0 };
        let mut out = vec![1.0, t];
        while out.len() < self.coefficients.len() {
            out.push(2.0 * t * out[out.len() - 1] - out[out.len() - 2]);
        }
        out.truncate(self.coefficients.len());
        out
    }

    /// Its value.
    pub fn at(&self, x: f64) -> f64 {
        self.terms(x).iter().zip(&self.coefficients).map(|(t, c)| t * c).sum()
    }

    /// The curve of least squares through the points.
    pub fn fit(points: &[(f64, f64)], degree: usize) -> Self {
        let from = points.iter().map(|p| p.0).fold(f64::INFINITY, f64::min);
        let to = points.iter().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
        let n = (degree + 1).min(points.len());
        let mut curve = Self { from, to, coefficients: vec![0.0; n] };
        let mut a = vec![vec![0.0; n + 1]; n];
        for &(x, y) in points {
            let t = curve.terms(x);
            for i in 0..n {
                for j in 0..n {
                    a[i][j] += t[i] * t[j];
                }
                a[i][n] += t[i] * y;
            }
        }
        curve.coefficients = solved(a);
        curve
    }
}

/// The solution of a system of equations, its right side in the last column (Gauss, largest pivots).
fn solved(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let n = a.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&p, &q| a[p][i].abs().total_cmp(&a[q][i].abs())).unwrap_or(i);
        a.swap(i, pivot);
        if a[i][i] == 0.0 {
            continue;
        }
        let row = a[i].clone();
        for other in a.iter_mut().skip(i + 1) {
            let factor = other[i] / row[i];
            for (x, r) in other.iter_mut().zip(&row).skip(i) {
                *x -= factor * r;
            }
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let rest: f64 = (i + 1..n).map(|j| a[i][j] * x[j]).sum();
        x[i] = if a[i][i] == 0.0 { 0.0 } else { (a[i][n] - rest) / a[i][i] };
    }
    x
}

/// The paper's method (section 6.2): outliers dropped, a polynomial through the sizes, as many zones of equally many tracks,
/// each with the mean of the polynomial. The sizes are then scaled so that the zones hold `blocks`, the rest in the last zone.
pub fn paper(tracks: &[Track], how: Paper, blocks: u64) -> (Curve, Vec<EqualTracks>) {
    let kept: Vec<(f64, f64)> = tracks
        .iter()
        .filter(|t| (how.least..=how.most).contains(&t.sectors))
        .map(|t| (t.number as f64, t.sectors as f64))
        .collect();
    let curve = Curve::fit(&kept, how.degree);
    let (first, end) = (tracks[0].number, tracks[tracks.len() - 1].number + 1);
    let zones = how.zones.clamp(1, end - first);
    let mut means = Vec::new();
    for i in 0..zones {
        let (a, b) = (first + (end - first) * i / zones, first + (end - first) * (i + 1) / zones);
        let mean = (a..b).map(|n| curve.at(n as f64)).sum::<f64>() / (b - a) as f64;
        means.push((b - a, mean.max(1.0)));
    }
    let held: f64 = means.iter().map(|(n, m)| *n as f64 * m).sum();
    let scale = blocks as f64 / held;
    let mut runs: Vec<EqualTracks> =
        means.iter().map(|(n, m)| EqualTracks { tracks: *n, sectors: (m * scale).round() as u64 }).collect();
    if let Some(last) = runs.pop() {
        let before: u64 = runs.iter().map(|r| r.tracks * r.sectors).sum();
        let rest = blocks.saturating_sub(before);
        runs.push(EqualTracks { tracks: last.tracks, sectors: (rest / last.tracks.max(1)).max(1) });
    }
    (curve, runs)
}

/// Zones by change points: sizes far from those around are replaced by the median there; then the tracks are split where
/// that lowers the sum of squares the most, as long as it does by more than chance would.
pub fn change_points(tracks: &[Track]) -> Vec<EqualTracks> {
    let sizes = smoothed(tracks);
    let mut sums = vec![(0.0, 0.0)];
    for s in &sizes {
        let (a, b) = sums[sums.len() - 1];
        sums.push((a + s, b + s * s));
    }
    let steps: Vec<f64> = sizes.windows(2).map(|w| w[1] - w[0]).collect();
    let sigma = (crate::stats::spread(&steps) / 1.414).max(0.3);
    let doublings = f64::from(usize::BITS - sizes.len().leading_zeros());
    let mut ends = Vec::new();
    split(&sums, 0, sizes.len(), 6.0 * sigma * sigma * doublings, &mut ends);
    ends.sort_unstable();
    let mut runs: Vec<EqualTracks> = Vec::new();
    let mut from = 0;
    for end in ends {
        let sectors = crate::stats::median(&sizes[from..end]).round() as u64;
        match runs.last_mut() {
            Some(last) if last.sectors == sectors => last.tracks += (end - from) as u64,
            _ => runs.push(EqualTracks { tracks: (end - from) as u64, sectors }),
        }
        from = end;
    }
    runs
}

/// Sizes with outliers replaced by the median of the tracks around.
fn smoothed(tracks: &[Track]) -> Vec<f64> {
    const AROUND: usize = 15;
    let sizes: Vec<f64> = tracks.iter().map(|t| t.sectors as f64).collect();
    (0..sizes.len())
        .map(|i| {
            let near = &sizes[i.saturating_sub(AROUND)..(i + AROUND + 1).min(sizes.len())];
            let middle = crate::stats::median(near);
            let limit = (4.0 * crate::stats::spread(near)).max(0.02 * middle);
            if (sizes[i] - middle).abs() > limit { middle } else { sizes[i] }
        })
        .collect()
}

/// The sum of squares about the mean of `from..to`.
fn squares(sums: &[(f64, f64)], from: usize, to: usize) -> f64 {
    let n = (to - from) as f64;
    let (a, b) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
    (b - a * a / n).max(0.0)
}

/// Splits `from..to` where it pays, and notes where the parts end.
fn split(sums: &[(f64, f64)], from: usize, to: usize, price: f64, ends: &mut Vec<usize>) {
    let mut stack = vec![(from, to)];
    while let Some((from, to)) = stack.pop() {
        let whole = squares(sums, from, to);
        let best = (from + 1..to)
            .map(|at| (whole - squares(sums, from, at) - squares(sums, at, to), at))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match best {
            Some((gain, at)) if gain > price => {
                stack.push((from, at));
                stack.push((at, to));
            }
            _ => ends.push(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;

    fn staircase(noise: bool) -> Vec<Track> {
        let mut out = Vec::new();
        let mut rng = Rng::new(1);
        for number in 0..6000u64 {
            let sectors = 2000 - 50 * (number / 500);
            let odd = noise && rng.one_in(40);
            let jitter = if noise { rng.below(3) } else { 1 };
            let sectors = if odd { sectors / 3 } else { sectors + jitter - 1 };
            out.push(Track { number, sectors, us: 0.0 });
        }
        out
    }

    /// Among tracks of 1000 sectors one of 1015 is no outlier, one of 1030 is.
    #[test]
    fn what_differs_by_a_fiftieth_stays() {
        let of = |number| match number {
            20 => 1015,
            40 => 1030,
            _ => 1000,
        };
        let tracks: Vec<Track> =
            (0..60).map(|number| Track { number, sectors: of(number), us: 0.0 }).collect();
        let sizes = smoothed(&tracks);
        assert_eq!((sizes[19], sizes[20], sizes[40]), (1000.0, 1015.0, 1000.0));
    }

    fn of_sizes(sizes: impl IntoIterator<Item = u64>) -> Vec<Track> {
        let track = |(number, sectors)| Track { number: number as u64, sectors, us: 0.0 };
        sizes.into_iter().enumerate().map(track).collect()
    }

    /// Sizes at the limits count: half of them are the least, half the most.
    #[test]
    fn the_limits_of_the_papers_method_are_sizes_too() {
        let how = Paper { least: 1000, most: 2000, degree: 0, zones: 1 };
        let (curve, _) = paper(&of_sizes([1000, 2000, 999, 2001, 1000, 2000]), how, 10_000);
        assert!((curve.at(2.0) - 1500.0).abs() < 1e-9);
    }

    /// Where the mean rises and the size of most tracks does not, no zone begins.
    #[test]
    fn neighbours_with_as_many_sectors_are_one_zone() {
        let odd = (0..200).map(|i| 1000 + u64::from(i % 3 == 0));
        let found = change_points(&of_sizes([1000; 200].into_iter().chain(odd)));
        assert_eq!(found, [EqualTracks { tracks: 400, sectors: 1000 }]);
    }

    #[test]
    fn change_points_find_the_zones_where_they_are() {
        let truth: Vec<EqualTracks> =
            (0..12).map(|i| EqualTracks { tracks: 500, sectors: 2000 - 50 * i }).collect();
        assert_eq!(change_points(&staircase(false)), truth);
        let noisy = change_points(&staircase(true));
        assert_eq!(
            noisy.iter().map(|r| r.sectors).collect::<Vec<_>>(),
            truth.iter().map(|r| r.sectors).collect::<Vec<_>>()
        );
        let mut at = 0i64;
        for (i, r) in noisy.iter().enumerate() {
            at += r.tracks as i64;
            assert!((at - 500 * (i as i64 + 1)).abs() <= 2, "{noisy:?}");
        }
    }

    #[test]
    fn the_papers_method_holds_the_drives_blocks() {
        let tracks = staircase(true);
        let blocks: u64 = staircase(false).iter().map(|t| t.sectors).sum();
        let (curve, runs) = paper(&tracks, Paper::default(), blocks);
        assert_eq!((runs.len(), runs.iter().map(|r| r.tracks).sum::<u64>()), (18, 6000));
        let held: u64 = runs.iter().map(|r| r.tracks * r.sectors).sum();
        assert!(blocks.abs_diff(held) < 6000, "{held} of {blocks}");
        // Of a drive with a tenth more each zone has a tenth more.
        let (_, more) = paper(&tracks, Paper::default(), blocks / 10 * 11);
        let tenth =
            |(a, b): (&EqualTracks, &EqualTracks)| (b.sectors as f64 / a.sectors as f64 - 1.1).abs() < 0.002;
        assert!(runs.iter().zip(&more).take(17).all(tenth), "{more:?}");
        // No more zones than tracks.
        let few = [0, 1, 2].map(|number| Track { number, sectors: 1800, us: 0.0 });
        let (_, few) = paper(&few, Paper { degree: 0, ..Paper::default() }, 5400);
        assert_eq!(few.iter().map(|r| r.tracks).collect::<Vec<_>>(), [1; 3]);
        // In the middle of a step the curve is near the step.
        assert!((curve.at(250.0) - 2000.0).abs() < 20.0 && (curve.at(3250.0) - 1700.0).abs() < 20.0);
    }

    #[test]
    fn a_polynomial_of_degree_13_comes_back() {
        let f = |x: f64| (0..14).fold(0.0, |s, k| s * (x / 1000.0 - 1.0) + 1.0 + f64::from(k % 3));
        let points: Vec<(f64, f64)> = (0..2000).map(|i| (f64::from(i), f(f64::from(i)))).collect();
        let curve = Curve::fit(&points, 13);
        assert!(points.iter().all(|p| (curve.at(p.0) - p.1).abs() < 1e-6));
    }
}
