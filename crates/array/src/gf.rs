//! GF(256) as Linux md has it for RAID-6 (H. P. Anvin, The mathematics of RAID-6): bytes as polynomials modulo
//! x^8 + x^4 + x^3 + x^2 + 1. A sum is an XOR; every byte but zero is a power of x.

use std::ops::{Add, Mul};

/// What is left of x^8: the polynomial without its highest term.
const REST: u8 = 0x1d;
/// Powers of x until they come again.
const PERIOD: usize = 255;

/// Powers of x, twice over; and of which power a byte is.
const TABLES: ([u8; 2 * PERIOD], [u8; 256]) = {
    let (mut powers, mut logs) = ([0; 2 * PERIOD], [0; 256]);
    let (mut byte, mut n) = (1_u8, 0);
    while n < PERIOD {
        (powers[n], powers[n + PERIOD]) = (byte, byte);
        logs[byte as usize] = n as u8;
        byte = (byte << 1) ^ if byte & 0x80 == 0 { 0 } else { REST };
        n += 1;
    }
    (powers, logs)
};

/// An element of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gf(pub u8);

impl Gf {
    /// The sum of nothing.
    pub const ZERO: Self = Self(0);
    /// The product of nothing.
    pub const ONE: Self = Self(1);

    /// A power of x.
    pub fn power(n: u64) -> Self {
        Self(TABLES.0[(n % PERIOD as u64) as usize])
    }

    /// What times this is one; zero for zero, which has no such thing.
    #[inline]
    pub fn inverse(self) -> Self {
        match self.0 {
            0 => Self::ZERO,
            byte => Self(TABLES.0[PERIOD - usize::from(TABLES.1[usize::from(byte)])]),
        }
    }

    /// Adds this many times `from` to `to`, byte by byte.
    pub fn add_times(self, from: &[u8], to: &mut [u8]) {
        if self == Self::ONE {
            return to.iter_mut().zip(from).for_each(|(a, b)| *a ^= b);
        }
        // A byte is the sum of its halves, and so is its product.
        let low: [u8; 16] = std::array::from_fn(|half| (self * Self(half as u8)).0);
        let high: [u8; 16] = std::array::from_fn(|half| (self * Self((half as u8) << 4)).0);
        for (a, b) in to.iter_mut().zip(from) {
            *a ^= low[usize::from(b & 15)] ^ high[usize::from(b >> 4)];
        }
    }
}

impl Add for Gf {
    type Output = Self;

    #[expect(clippy::suspicious_arithmetic_impl, reason = "this is the sum of the field")]
    fn add(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
}

impl Mul for Gf {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        if self == Self::ZERO || other == Self::ZERO {
            return Self::ZERO;
        }
        let log = |of: Self| usize::from(TABLES.1[usize::from(of.0)]);
        Self(TABLES.0[log(self) + log(other)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication by hand: shift, and take the polynomial off where a bit falls out.
    fn slow(mut a: u8, mut b: u8) -> u8 {
        let mut product = 0;
        while b != 0 {
            product ^= if b & 1 == 1 { a } else { 0 };
            a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { REST };
            b >>= 1;
        }
        product
    }

    #[test]
    fn products_and_inverses_are_those_of_the_polynomials() {
        for a in 0..=255_u8 {
            for b in 0..=255_u8 {
                assert_eq!((Gf(a) * Gf(b)).0, slow(a, b), "{a} times {b}");
            }
            let one = if a == 0 { Gf::ZERO } else { Gf::ONE };
            assert_eq!(Gf(a) * Gf(a).inverse(), one, "{a}");
            let (from, mut to): (Vec<u8>, _) = ((0..=255).collect(), vec![7; 256]);
            Gf(a).add_times(&from, &mut to);
            let want: Vec<u8> = from.iter().map(|b| 7 ^ slow(a, *b)).collect();
            assert_eq!(to, want, "{a} times all bytes");
        }
        // Every byte but zero is one of the first 255 powers.
        let powers: std::collections::BTreeSet<u8> = (0..255).map(|n| Gf::power(n).0).collect();
        assert_eq!((powers.len(), powers.contains(&0), Gf::power(255)), (255, false, Gf::ONE));
    }
}
