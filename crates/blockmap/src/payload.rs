//! What a tree keeps for each unit, and how runs of it are packed.

/// What a tree keeps for each unit. The default value means "nothing here".
pub(crate) trait Payload: Copy + Eq + Default {
    /// Offset in a region, length and value of a run of units, as packed in sorted arrays.
    type Entry: Copy;
    /// Units in a run, at most.
    const RUN: usize;
    /// Entries of a leaf's sorted array beyond which the plain array is taken.
    const LEAF_ENTRIES: usize;
    /// Packs the offset of a run with its length and its value.
    fn pack(offset: usize, len: usize, value: Self) -> Self::Entry;
    /// The offset of an entry.
    fn offset(entry: &Self::Entry) -> usize;
    /// Its units.
    fn len(entry: &Self::Entry) -> usize;
    /// The value of an entry.
    fn value(entry: &Self::Entry) -> Self;
    /// How much a unit with this value counts in the weight of what holds it; 0 only for the default.
    fn weight(self) -> u64;
    /// The value that every unit must have if `units` of them weigh `weight`, where that follows.
    fn saturated(weight: u64, units: usize) -> Option<Self>;
}
