//! The spaces that the sources of a workload see: one for all, or one each.

use smrlab_stl::HostRequest;
use smrlab_units::{Blocks, Lba};

/// So many spaces of the same size. What is kept of all of them has them one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Spaces {
    count: u16,
    each: Blocks,
}

impl Spaces {
    /// One space of so many blocks.
    pub fn one(blocks: Blocks) -> Self {
        Self::several(1, blocks)
    }

    /// `count` spaces of so many blocks each.
    pub fn several(count: u16, each: Blocks) -> Self {
        Self { count: count.max(1), each }
    }

    /// The blocks of all of them.
    pub fn blocks(&self) -> Blocks {
        Blocks(self.each.0 * u64::from(self.count))
    }

    /// A request as one to all of them: its stream says which space it is to.
    pub fn placed(&self, request: &HostRequest) -> HostRequest {
        let space = u64::from(request.stream % self.count);
        HostRequest { lba: Lba(request.lba.0 + space * self.each.0), ..*request }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::HostOp;

    #[test]
    fn a_stream_sees_its_own_space() {
        let place = |spaces: Spaces, stream| {
            spaces.placed(&HostRequest { stream, ..HostRequest::new(HostOp::Read, Lba(7), Blocks(2)) }).lba
        };
        let three = Spaces::several(3, Blocks(100));
        assert_eq!([0, 1, 2, 3, 65_535].map(|s| place(three, s)), [7, 107, 207, 7, 7].map(Lba));
        assert_eq!(three.blocks(), Blocks(300));
        assert_eq!([0, 1].map(|s| place(Spaces::one(Blocks(100)), s)), [Lba(7); 2]);
    }
}
