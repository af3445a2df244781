//! Random numbers that are the same bits on every machine: integer generator, own logarithm and square root.

use crate::SimTime;

/// xoshiro256++ (Blackman & Vigna 2019, public domain algorithm), seeded by splitmix64.
#[derive(Clone, Debug)]
pub struct Rng {
    s: [u64; 4],
}

/// A step of splitmix64: also a good mixing function.
pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream of numbers of `seed`.
    pub fn new(mut seed: u64) -> Self {
        Self { s: std::array::from_fn(|_| splitmix(&mut seed)) }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.s;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform from 0 to `n - 1`; 0 where `n` is 0. Bias below 2^-64 · n, by one multiplication (Lemire).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True once in `n` times.
    #[inline]
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -ln(1.0 - self.unit())
    }

    /// Normal with mean 0 and deviation 1 (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                // A square root is exact by IEEE 754.
                return x * (-2.0 * ln(s) / s).sqrt();
            }
        }
    }

    /// An exponential span with the given mean.
    #[inline]
    pub fn exp_time(&mut self, mean: SimTime) -> SimTime {
        SimTime((self.exponential() * mean.0 as f64) as u64)
    }
}

/// A number below `n` that has no divisor in common with it, near `bits`: multiples of it visit all `n` places.
pub fn coprime(n: u64, bits: u64) -> u64 {
    if n < 3 {
        return 1;
    }
    // The middle half, so that neighbours come to lie far apart.
    let mut step = n / 4 + bits % (n / 2).max(1);
    while gcd(step, n) != 1 {
        step += 1;
    }
    step
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// 1/21, 1/19, … 1: the series of artanh, highest power first.
const ODD_RECIPROCALS: [f64; 11] = {
    let mut c = [0.0; 11];
    let mut i = 0;
    while i < 11 {
        c[i] = 1.0 / (21 - 2 * i) as f64;
        i += 1;
    }
    c
};

/// 1/14!, 1/13!, … 1: the series of the exponential, highest power first.
const INVERSE_FACTORIALS: [f64; 15] = {
    let mut c = [1.0; 15];
    let mut factorial = 1.0;
    let mut n = 1;
    while n < 15 {
        factorial *= n as f64;
        c[14 - n] = 1.0 / factorial;
        n += 1;
    }
    c
};

/// Natural logarithm of a positive, normal number, error below 1e-15 relative to ln 2.
///
/// Uses only operations that IEEE 754 defines exactly, so the result is the same everywhere; libm's is not.
#[inline]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh t with |t| < 0.1716: t^2 < 0.0295, eleven terms reach 1e-17.
    let t = (m - 1.0) / (m + 1.0);
    let t2 = t * t;
    let sum = ODD_RECIPROCALS.iter().fold(0.0, |sum, c| sum * t2 + c);
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * t * sum
}

/// `e^x` for |x| below 700, relative error below 1e-14; the same on every machine, like [`ln`].
#[inline]
pub fn exp(x: f64) -> f64 {
    let k = (x / std::f64::consts::LN_2).round();
    let r = x - k * std::f64::consts::LN_2;
    let sum = INVERSE_FACTORIALS.iter().fold(0.0, |sum, c| sum * r + c);
    sum * f64::from_bits(((1023 + k as i64) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_exponential_agree_with_libm() {
        let mut r = Rng::new(1);
        for _ in 0..100_000 {
            let x = r.unit() + 1e-12;
            assert!((ln(x) - x.ln()).abs() <= 4e-16 * (1.0 + x.ln().abs()), "ln {x}");
            let y = (r.unit() - 0.5) * 1200.0;
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-13, "exp {y}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut r = Rng::new(42);
        let first: Vec<u64> = (0..3).map(|_| r.bits()).collect();
        assert_eq!(first, [0xd076_4d4f_4476_689f, 0x519e_4174_576f_3791, 0xfbe0_7cfb_0c24_ed8c]);
        assert_eq!(Rng::new(7).exponential().to_bits(), Rng::new(7).exponential().to_bits());
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut r = Rng::new(3);
        let n = 200_000;
        let (mut e, mut m, mut v) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            e += r.exponential();
            let z = r.normal();
            m += z;
            v += z * z;
        }
        let n = f64::from(n);
        assert!((e / n - 1.0).abs() < 0.01 && (m / n).abs() < 0.01 && (v / n - 1.0).abs() < 0.02);
    }
}
