//! Robust statistics of few numbers.

/// The middle one, or the mean of the two in the middle; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut v = values.to_vec();
    v.sort_unstable_by(f64::total_cmp);
    match v.len() {
        0 => 0.0,
        n if n % 2 == 1 => v[n / 2],
        n => (v[n / 2 - 1] + v[n / 2]) / 2.0,
    }
}

/// The standard deviation as the median distance from the median shows it: outliers do not count.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let m = median(values);
    1.4826 * median(&values.iter().map(|v| (v - m).abs()).collect::<Vec<_>>())
}

/// To the half-open revolution around 0: from -0.5 to below 0.5.
pub(crate) fn wrap(turns: f64) -> f64 {
    turns - (turns + 0.5).floor()
}

/// To 0 or more and below 1.
pub(crate) fn turn(turns: f64) -> f64 {
    let t = turns - turns.floor();
    if t >= 1.0 { 0.0 } else { t }
}

/// The one of the angles (in revolutions) that is nearest to all others: what single ones that are anything at all do not
/// move.
fn central(angles: &[f64]) -> f64 {
    let far = |a: f64| angles.iter().map(|b| wrap(a - b).abs()).sum::<f64>();
    angles.iter().copied().min_by(|a, b| far(*a).total_cmp(&far(*b))).unwrap_or(0.0)
}

/// The median of angles (in revolutions) that lie close together, in [-0.5, 0.5).
pub(crate) fn median_angle(angles: &[f64]) -> f64 {
    let about = central(angles);
    wrap(about + median(&angles.iter().map(|a| wrap(a - about)).collect::<Vec<_>>()))
}

/// The [earliest] of angles (in revolutions) that lie close together, in [-0.5, 0.5).
pub(crate) fn earliest_angle(angles: &[f64], limit: f64) -> f64 {
    let about = central(angles);
    wrap(about + earliest(&angles.iter().map(|a| wrap(a - about)).collect::<Vec<_>>(), limit))
}

/// The earliest of completions of the same thing: the host sees them late, never early. What is earlier than the middle one
/// by more than `limit` was late by a whole turn nearly; of many one such may also lie within that.
pub(crate) fn earliest(values: &[f64], limit: f64) -> f64 {
    let middle = median(values);
    let mut v: Vec<f64> = values.iter().copied().filter(|v| *v >= middle - limit).collect();
    v.sort_unstable_by(f64::total_cmp);
    v.get(usize::from(v.len() >= MANY)).copied().unwrap_or(middle)
}

/// Of so many completions the second is taken as the earliest.
const MANY: usize = 12;

/// The straight line `a + b x` of least squares through the points whose residual is not an outlier; a, b, the standard
/// error of b, and the robust deviation of the points from the line.
pub(crate) fn line(points: &[(f64, f64)]) -> (f64, f64, f64, f64) {
    let mut kept = points.to_vec();
    let mut fit = least_squares(&kept);
    for _ in 0..3 {
        let residuals: Vec<f64> = kept.iter().map(|p| p.1 - fit.0 - fit.1 * p.0).collect();
        let (middle, limit) = (median(&residuals), 4.0 * spread(&residuals) + 1.0);
        let before = kept.len();
        let mut at = residuals.iter();
        kept.retain(|_| at.next().is_some_and(|r| (r - middle).abs() <= limit));
        fit = least_squares(&kept);
        if kept.len() == before {
            break;
        }
    }
    let residuals: Vec<f64> = kept.iter().map(|p| p.1 - fit.0 - fit.1 * p.0).collect();
    let deviation = spread(&residuals);
    let mean = kept.iter().map(|p| p.0).sum::<f64>() / kept.len().max(1) as f64;
    let squares: f64 = kept.iter().map(|p| (p.0 - mean) * (p.0 - mean)).sum();
    let variance = residuals.iter().map(|r| r * r).sum::<f64>() / kept.len().saturating_sub(2).max(1) as f64;
    let error = if squares > 0.0 { (variance / squares).sqrt() } else { 0.0 };
    (fit.0, fit.1, error, deviation)
}

fn least_squares(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len().max(1) as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx) * (p.0 - mx)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    let b = if sxx > 0.0 { sxy / sxx } else { 0.0 };
    (my - b * mx, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_count() {
        assert_eq!((median(&[3.0, 1.0, 900.0]), median(&[1.0, 2.0])), (3.0, 1.5));
        let mut points: Vec<(f64, f64)> = (0..40).map(|i| (i as f64, 5.0 + 2.0 * i as f64)).collect();
        points[7].1 += 1000.0;
        let (a, b, ..) = line(&points);
        assert!((a - 5.0).abs() < 1e-9 && (b - 2.0).abs() < 1e-9);
        // Of three that lift the line without tilting it, all others are equally far.
        let mut points: Vec<(f64, f64)> = (0..21).map(|i| (f64::from(i), 5.0 + 2.0 * f64::from(i))).collect();
        [0, 10, 20].iter().for_each(|i: &usize| points[*i].1 += 1000.0);
        let (a, b, error, deviation) = line(&points);
        assert!((a - 5.0).abs() < 1e-9 && (b - 2.0).abs() < 1e-9 && error < 1e-9 && deviation < 1e-9);
    }

    /// Residuals of -0.1, 0.3, -0.3 and 0.1 about 0.1 + 0.6 x, two of four degrees of freedom: sqrt(0.2 / 2 / 5).
    #[test]
    fn a_slope_is_as_exact_as_its_points_say() {
        let (a, b, error, _) = line(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.0), (3.0, 2.0)]);
        assert!((a - 0.1).abs() < 1e-9 && (b - 0.6).abs() < 1e-9, "{a} {b}");
        assert!((error - 0.02f64.sqrt()).abs() < 1e-9, "{error}");
    }

    #[test]
    fn of_many_the_second_is_the_earliest() {
        let mut late: Vec<f64> = (0..14).map(|i| 0.001 * f64::from(i)).collect();
        // Late by nearly a turn: far too early, or just within the limit.
        (late[3], late[5]) = (-0.4, -0.002);
        assert_eq!(earliest(&late, 0.01), 0.0);
        assert_eq!(earliest(&late[..4], 0.01), 0.0, "few have no second to lose");
        let ascending: Vec<f64> = (0..12).map(f64::from).collect();
        assert_eq!([11, 12].map(|n| earliest(&ascending[..n], 99.0)), [0.0, 1.0], "twelve are many");
    }

    #[test]
    fn angles_go_round() {
        assert!((wrap(0.75) + 0.25).abs() < 1e-12 && (turn(-0.25) - 0.75).abs() < 1e-12);
        assert!((median_angle(&[0.99, 0.01, 0.02]) - 0.01).abs() < 1e-12);
    }
}
