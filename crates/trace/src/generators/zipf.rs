//! Requests whose places are as unevenly popular as words.

use super::{Common, Drawn, Generator, Pattern, RANDOM_GAP};
use smrlab_units::rng::{Rng, coprime, exp, ln};
use smrlab_units::spec::{Kind, Param};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "zipf",
    summary: "the k-th most popular place is taken with probability proportional to k^-theta",
    reference: "YCSB's default theta is 0.99. Drawn by rejection-inversion (Hörmann & Derflinger 1996), exact for any number \
                of places without a table.",
    params: &[
        Param::new("theta", Kind::Real(0.01, 10.0), "0.99").doc("skew: 0 would be uniform"),
        Param::new("scatter", Kind::Switch, "on").doc(
            "on: popular places lie all over the span; off: the most popular is at 0, the next behind it",
        ),
    ],
    defaults: &[("interarrival", RANDOM_GAP)],
    make: |v, common| {
        let places = (common.span / common.align).max(1);
        let step = if v.on("scatter") { coprime(places, 0x9e37_79b9_7f4a_7c15) } else { 1 };
        Ok(Box::new(ZipfPlaces { zipf: Zipf::new(places, v.real("theta")), places, step }))
    },
};

struct ZipfPlaces {
    zipf: Zipf,
    places: u64,
    step: u64,
}

impl Pattern for ZipfPlaces {
    fn next(&mut self, common: &mut Common) -> Option<Drawn> {
        let rank = self.zipf.draw(&mut common.rng);
        let place = (u128::from(rank) * u128::from(self.step) % u128::from(self.places)) as u64;
        let blocks = common.size();
        Some(common.at(place * common.align, blocks))
    }
}

/// Ranks from 0 to `n - 1`; rank `k` has weight `(k + 1)^-theta`.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    theta: f64,
    n: f64,
    low: f64,
    high: f64,
    shortcut: f64,
}

impl Zipf {
    pub(super) fn new(n: u64, theta: f64) -> Self {
        let mut z = Self { theta, n: n as f64, low: 0.0, high: 0.0, shortcut: 0.0 };
        z.low = z.area(1.5) - 1.0;
        z.high = z.area(z.n + 0.5);
        z.shortcut = 2.0 - z.inverse(z.area(2.5) - z.weight(2.0));
        z
    }

    /// `x^-theta`.
    fn weight(&self, x: f64) -> f64 {
        exp(-self.theta * ln(x))
    }

    /// An antiderivative of the weight.
    fn area(&self, x: f64) -> f64 {
        let e = 1.0 - self.theta;
        if e.abs() < 1e-9 { ln(x) } else { (exp(e * ln(x)) - 1.0) / e }
    }

    /// The inverse of [`Self::area`].
    fn inverse(&self, y: f64) -> f64 {
        let e = 1.0 - self.theta;
        if e.abs() < 1e-9 { exp(y) } else { exp(ln((1.0 + e * y).max(f64::MIN_POSITIVE)) / e) }
    }

    /// A rank.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.shortcut || u >= self.area(k + 0.5) - self.weight(k) {
                return k as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_as_often_as_their_weights_say() {
        for theta in [0.5, 0.99, 1.0, 1.5] {
            let (n, draws) = (50u64, 400_000);
            let z = Zipf::new(n, theta);
            let mut rng = Rng::new(9);
            let mut counts = vec![0u32; n as usize];
            (0..draws).for_each(|_| counts[z.draw(&mut rng) as usize] += 1);
            let total: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
            for (i, c) in counts.iter().enumerate() {
                let expected = f64::from(draws) * ((i + 1) as f64).powf(-theta) / total;
                let deviation = (f64::from(*c) - expected).abs() / expected.sqrt();
                assert!(deviation < 5.0, "theta {theta} rank {i}: {c} instead of {expected}");
            }
        }
    }
}
