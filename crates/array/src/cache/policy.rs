//! What a policy of destaging is: it is told what is written, and says which group goes next.

/// What a policy may know of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirty {
    /// Dirty pages.
    pub pages: u64,
    /// Place of the first of them in the group.
    pub first: u64,
    /// Pages of a group.
    pub of: u64,
}

/// A page that the host wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrote {
    /// Its group.
    pub group: u64,
    /// Its number in the host's space.
    pub page: u64,
    /// Some of the blocks were dirty before.
    pub again: bool,
}

/// Chooses among the groups that have dirty pages.
pub(super) trait DestagePolicy: Send {
    /// A group has dirty pages that nobody wrote now: it was destaged in part, or comes from a record.
    fn touched(&mut self, group: u64);
    /// The host wrote a page.
    fn wrote(&mut self, wrote: Wrote) {
        self.touched(wrote.group);
    }
    /// The group to destage next; it is forgotten until it is touched again. `dirty` tells about a group.
    fn victim(&mut self, dirty: &dyn Fn(u64) -> Dirty) -> Option<u64>;
}
