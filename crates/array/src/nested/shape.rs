//! Numbers of drives, SSDs and stripes in an array of arrays.
//!
//! The drives of the first member come first, then those of the second. SSDs follow the drives: the one of the array above, then
//! those of the members. Stripes have the array that they are of in their upper bits: the array above, then the arrays of
//! each member.

use crate::MemberId;
use std::ops::Range;

/// Bits of a stripe's number within its array.
const STRIPE_BITS: u32 = 44;

/// See the [module](self). All members are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Members of the array above.
    pub(crate) members: u32,
    /// SSDs of the array above.
    pub(crate) own_ssds: u32,
    /// Drives of a member.
    pub(crate) disks: u32,
    /// SSDs of a member, with those below it.
    pub(crate) ssds: u32,
    /// Arrays that a member is, with those below it.
    pub(crate) arrays: u32,
}

impl Shape {
    /// The member that a drive is of, and its number there.
    pub(crate) fn disk(&self, flat: MemberId) -> (usize, MemberId) {
        ((flat.0 / self.disks) as usize, MemberId(flat.0 % self.disks))
    }

    /// Who a member of the array above is: a member, or the number of an SSD.
    pub(crate) fn member(&self, above: MemberId) -> Result<usize, MemberId> {
        match above.0.checked_sub(self.members) {
            None => Ok(above.at()),
            Some(ssd) => Err(MemberId(self.members * self.disks + ssd)),
        }
    }

    /// The number of a member's drive or SSD.
    pub(crate) fn flat(&self, at: usize, own: MemberId) -> MemberId {
        let at = at as u32;
        MemberId(match own.0.checked_sub(self.disks) {
            None => at * self.disks + own.0,
            Some(ssd) => self.members * self.disks + self.own_ssds + at * self.ssds + ssd,
        })
    }

    /// The numbers of a member's stripes.
    pub(crate) fn stripes(&self, at: usize, own: &Range<u64>) -> Range<u64> {
        let first = (1 + at as u64 * u64::from(self.arrays)) << STRIPE_BITS;
        first + own.start..first + own.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three members of two drives and one SSD each, and an SSD above: drives 0 to 5, SSDs 6 to 9.
    #[test]
    fn drives_come_first_and_every_number_is_given_once() {
        let shape = Shape { members: 3, own_ssds: 1, disks: 2, ssds: 1, arrays: 1 };
        let mut all: Vec<u32> =
            (0..3).flat_map(|at| (0..3).map(move |own| shape.flat(at, MemberId(own)).0)).collect();
        assert_eq!(all, [0, 1, 7, 2, 3, 8, 4, 5, 9]);
        all.push(shape.member(MemberId(3)).unwrap_err().0);
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        assert_eq!(shape.disk(MemberId(5)), (2, MemberId(1)));
        assert_eq!(shape.member(MemberId(2)), Ok(2));
    }

    /// An array over two arrays over two: seven arrays, and none has another's stripes.
    #[test]
    fn stripes_of_no_two_arrays_are_the_same() {
        let of = |arrays| Shape { members: 2, own_ssds: 0, disks: 2, ssds: 0, arrays };
        let (middle, top) = (of(1), of(3));
        let mut firsts = vec![0];
        for at in 0..2 {
            firsts.push(top.stripes(at, &(0..1)).start);
            firsts.extend((0..2).map(|low| top.stripes(at, &middle.stripes(low, &(0..1))).start));
        }
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts, (0..7).map(|array| array << STRIPE_BITS).collect::<Vec<u64>>());
    }
}
