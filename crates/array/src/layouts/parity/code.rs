//! What the parities of a row are made of, and what makes up for roles whose disks do not hold their parts.
//!
//! Parity j is the sum of the chunks, chunk i times x^(i j) in GF(256): the first parity is their XOR (P), the second is RAID-6's Q.

use crate::gf::Gf;

/// Most parities of a row.
pub const MOST: usize = 2;

/// Most chunks of a row with two parities: each needs another power of x.
pub const CHUNKS: u64 = 255;

/// The shape of a row: roles from 0 on are chunks, those behind them parities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Chunks.
    pub data: u64,
    /// Parities, at most [`MOST`].
    pub parities: u64,
}

/// Roles that are missing in a row: at most as many as there can be parities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    roles: [u64; MOST],
    count: usize,
}

impl Lost {
    /// Nothing.
    pub const NONE: Self = Self { roles: [0; MOST], count: 0 };

    /// This one, too; `None`: that is one too many.
    pub fn and(mut self, role: u64) -> Option<Self> {
        *self.roles.get_mut(self.count)? = role;
        self.count += 1;
        Some(self)
    }

    /// Those that are missing.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        self.roles.into_iter().take(self.count)
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count as u64
    }

    /// Whether this one is.
    #[inline]
    pub fn contains(&self, role: u64) -> bool {
        self.iter().any(|r| r == role)
    }
}

/// So many times a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The role.
    pub role: u64,
    /// How many times.
    pub times: Gf,
}

impl Code {
    /// Roles.
    pub fn roles(&self) -> u64 {
        self.data + self.parities
    }

    /// The parities that are there.
    pub fn parities_without(&self, lost: Lost) -> impl Iterator<Item = u64> + use<> {
        (self.data..self.roles()).filter(move |p| !lost.contains(*p))
    }

    /// How many times a parity has a chunk.
    #[inline]
    pub(crate) fn times(&self, parity: u64, chunk: u64) -> Gf {
        Gf::power((parity - self.data) * chunk)
    }

    /// The shares of other roles that `role` is the sum of, where `lost` are missing: no more of these than there are parities.
    pub fn made_of(&self, role: u64, lost: Lost) -> Vec<Share> {
        let known = || (0..self.data).filter(|c| *c != role && !lost.contains(*c));
        let missing: Vec<u64> = lost.iter().filter(|l| *l < self.data && *l != role).collect();
        if role >= self.data {
            let mut all: Vec<Share> =
                known().map(|c| Share { role: c, times: self.times(role, c) }).collect();
            for chunk in missing {
                let times = self.times(role, chunk);
                all.extend(
                    self.made_of(chunk, lost).into_iter().map(|s| Share { times: times * s.times, ..s }),
                );
            }
            return merged(all);
        }
        let mut there = self.parities_without(lost);
        let weights: Vec<Share> = match (there.next(), there.next(), missing.first()) {
            (Some(p), _, None) => vec![Share { role: p, times: self.times(p, role).inverse() }],
            // Two equations, p and q, with two unknowns.
            (Some(p), Some(q), Some(&other)) => {
                let (a, b) = (self.times(p, other), self.times(q, other));
                let all = (self.times(p, role) * b + self.times(q, role) * a).inverse();
                vec![Share { role: p, times: b * all }, Share { role: q, times: a * all }]
            }
            _ => Vec::new(),
        };
        let of_chunk = |chunk: u64| {
            let sum = weights.iter().fold(Gf::ZERO, |sum, w| sum + w.times * self.times(w.role, chunk));
            Share { role: chunk, times: sum }
        };
        merged(known().map(of_chunk).chain(weights.iter().copied()).collect())
    }
}

/// One share a role, ascending, and none of nothing.
fn merged(mut all: Vec<Share>) -> Vec<Share> {
    all.sort_by_key(|s| s.role);
    all.dedup_by(|next, first| {
        let same = next.role == first.role;
        first.times = if same { first.times + next.times } else { first.times };
        same
    });
    all.retain(|s| s.times != Gf::ZERO);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte a role, parities as the definition says.
    fn row(code: Code) -> Vec<Gf> {
        let mut row: Vec<Gf> = (0..code.data).map(|c| Gf((c * 37 + 11) as u8)).collect();
        for j in 0..code.parities {
            let chunks = (0..code.data).map(|c| Gf::power(j * c) * row[c as usize]);
            row.push(chunks.fold(Gf::ZERO, |a, b| a + b));
        }
        row
    }

    #[test]
    fn every_role_is_made_of_the_others_whatever_is_lost() {
        for (data, parities) in [(2, 1), (4, 1), (1, 2), (2, 2), (5, 2), (255, 2)] {
            let code = Code { data, parities };
            let row = row(code);
            let all = || (0..code.roles()).rev().take(9).chain(0..code.roles().min(4));
            for one in all() {
                let single = Lost::NONE.and(one).unwrap();
                let pairs = all().filter(|two| *two != one && parities == 2);
                let pairs = pairs.map(|two| single.and(two).unwrap());
                for lost in pairs.chain([single]) {
                    for role in lost.iter() {
                        let shares = code.made_of(role, lost);
                        assert!(shares.iter().all(|s| !lost.contains(s.role)), "{code:?} {lost:?} {role}");
                        let sum = shares.iter().map(|s| s.times * row[s.role as usize]);
                        assert_eq!(sum.fold(Gf::ZERO, |a, b| a + b), row[role as usize], "{code:?} {lost:?}");
                    }
                }
            }
        }
    }

    /// With one parity all others are needed, once each; with two, Q only where P or another chunk is lost.
    #[test]
    fn the_second_parity_is_read_where_it_must_be() {
        let roles = |code: Code, lost: &[u64]| {
            let all = lost.iter().fold(Lost::NONE, |l, r| l.and(*r).unwrap());
            code.made_of(lost[0], all).iter().map(|s| (s.role, s.times == Gf::ONE)).collect::<Vec<_>>()
        };
        let five = Code { data: 3, parities: 1 };
        assert_eq!(roles(five, &[1]), [(0, true), (2, true), (3, true)]);
        let six = Code { data: 3, parities: 2 };
        assert_eq!(roles(six, &[1]), [(0, true), (2, true), (3, true)]);
        assert_eq!(roles(six, &[1, 4]), [(0, true), (2, true), (3, true)]);
        assert_eq!(roles(six, &[1, 3]).iter().map(|r| r.0).collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(roles(six, &[1, 2]).iter().map(|r| r.0).collect::<Vec<_>>(), [0, 3, 4]);
        assert_eq!(roles(six, &[4]), [(0, true), (1, false), (2, false)]);
    }
}
