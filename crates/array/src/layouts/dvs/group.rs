//! A segment-based stripe group: its tables, and how chunks are packed into stripes of any width.

use super::shape::{Shape, home};
use super::victim::Seen;
use crate::layouts::segments::ChunkPlace;
use smrlab_blockmap::prefetch;

/// What a cell of a stripe holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// This logical chunk; perhaps an older version.
    Chunk(u16),
    /// The parity of the others.
    Parity,
    /// Nothing: the stripe is narrower than the array.
    Nothing,
}

/// A cell of the stripe table: what a stripe has on a disk, and where in the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub(super) what: u16,
    /// Index in the disk's segment.
    pub at: u16,
}

pub(super) const PARITY: u16 = u16::MAX - 1;
const NOTHING: u16 = u16::MAX;

impl Cell {
    pub(super) const EMPTY: Self = Self { what: NOTHING, at: 0 };

    /// From its two numbers in a record.
    pub fn from_word(word: u64) -> Self {
        Self { what: (word >> 16) as u16, at: word as u16 }
    }

    /// As it is recorded.
    pub fn word(self) -> u64 {
        u64::from(self.what) << 16 | u64::from(self.at)
    }

    /// What is there.
    pub fn holds(self) -> Holds {
        match self.what {
            NOTHING => Holds::Nothing,
            PARITY => Holds::Parity,
            lcn => Holds::Chunk(lcn),
        }
    }
}

/// In the map: a chunk is nowhere.
const UNMAPPED: u16 = u16::MAX;

/// What [`Group`] has for the parity on disk 0 of so many; those of the other disks follow. No chunk has such a number.
const fn first_parity(disks: u64) -> u16 {
    PARITY - disks as u16
}

/// Cells up to which a group has no address map: its chunks are looked for among them.
const FEW: usize = 64;

/// Where in [`Group::words`] is how many cells there are, how many chunks are live, whether there is a map, how many disks and how
/// many logical chunks there are. The append pointers of the disks follow, then the map, then the cells.
const CELLS: usize = 0;
const LIVE: usize = 1;
const MAPPED: usize = 2;
const DISKS: usize = 3;
const LOGICAL: usize = 4;
const POINTERS: usize = 5;

/// Words come in so many at a time: 32 bytes, as allocators have them.
const LINE: usize = 16;

/// Tables of one group: an append pointer a disk, the stripe table, and, where that is long, the address map.
///
/// An array has a million of them, and a request is to touch one line of memory or two: all is one piece of 2-byte words. Of
/// a stripe there are its parity and then its chunks, two words each: what, and its index in the segment. A chunk's disk is
/// always the same, so the map has the index alone, a word a logical chunk.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Nothing, before the first write.
    words: Box<[u16]>,
}

impl Group {
    /// Whether the chunks and parities of groups of this shape have numbers enough.
    pub fn numbers(shape: &Shape) -> bool {
        (shape.disks - 1) * shape.length + shape.disks < u64::from(PARITY)
    }

    /// Whether nothing was ever written.
    pub fn is_new(&self) -> bool {
        self.words.is_empty()
    }

    /// Asks for the memory of its first chunks' cells.
    #[inline]
    pub fn prefetch(&self) {
        (0..4).for_each(|line| prefetch(&self.words, 2 * LINE * line));
    }

    /// Makes room for what every group has that was written.
    pub fn begin(&mut self, shape: &Shape) {
        if self.is_new() {
            let disks = shape.disks as usize;
            let mut words = vec![0; (POINTERS + disks + 2 * 2).next_multiple_of(LINE)];
            (words[DISKS], words[LOGICAL]) = (shape.disks as u16, shape.logical as u16);
            self.words = words.into_boxed_slice();
        }
    }

    fn word(&self, at: usize) -> usize {
        self.words.get(at).map_or(0, |w| usize::from(*w))
    }

    /// The first word behind the pointers.
    fn behind(&self) -> usize {
        POINTERS + self.word(DISKS)
    }

    fn map(&self) -> Option<&[u16]> {
        let behind = self.behind();
        (self.word(MAPPED) == 1).then(|| &self.words[behind..behind + self.word(LOGICAL)])
    }

    /// The first word of the cells.
    fn first(&self) -> usize {
        self.behind() + self.word(MAPPED) * self.word(LOGICAL)
    }

    /// The cells, two words each.
    fn cells(&self) -> &[[u16; 2]] {
        let (first, n) = (self.first(), 2 * self.word(CELLS));
        self.words.get(first..first + n).map_or(&[], |words| words.as_chunks().0)
    }

    fn home(&self, lcn: u64) -> u64 {
        home(lcn, self.word(DISKS) as u64)
    }

    fn first_parity(&self) -> u16 {
        first_parity(self.word(DISKS) as u64)
    }

    /// The map, made from the cells where there was none.
    fn mapped(&mut self) -> &mut [u16] {
        let (behind, logical) = (self.behind(), self.word(LOGICAL));
        if self.word(MAPPED) == 0 {
            let (mut map, parity) = (vec![UNMAPPED; logical], self.first_parity());
            for &[what, at] in self.cells().iter().filter(|c| c[0] < parity) {
                map[usize::from(what)] = at;
            }
            let words = [&self.words[..behind], &map, &self.words[behind..]].concat();
            self.words = words.into_boxed_slice();
            self.words[MAPPED] = 1;
        }
        &mut self.words[behind..behind + logical]
    }

    /// What a rule for victims may know, but for the requests.
    pub fn seen(&self) -> Seen {
        Seen { obsolete: self.obsolete(), live: self.live_chunks(), ..Seen::default() }
    }

    /// Where the current version of a chunk is.
    #[inline]
    pub fn place(&self, lcn: u64) -> Option<ChunkPlace> {
        let at = match self.map() {
            Some(map) => map[lcn as usize],
            None => self.cells().iter().rfind(|c| u64::from(c[0]) == lcn)?[1],
        };
        (at != UNMAPPED).then(|| ChunkPlace { disk: self.home(lcn), at: u64::from(at) })
    }

    /// Chunks that hold data of the host's, ascending.
    pub fn live(&self) -> impl Iterator<Item = u64> {
        (0..self.word(LOGICAL) as u64).filter(|l| self.place(*l).is_some())
    }

    /// How many of them.
    pub fn live_chunks(&self) -> u64 {
        self.word(LIVE) as u64
    }

    /// Chunks of data and parity that were written since the last collection.
    pub fn written(&self) -> u64 {
        self.pointers().iter().map(|p| u64::from(*p)).sum()
    }

    /// Data chunks that are not current any more.
    pub fn obsolete(&self) -> u64 {
        self.word(CELLS) as u64 - self.stripe_count() - self.live_chunks()
    }

    /// Where each disk's segment is appended to; of a group that was never written, none.
    pub fn pointers(&self) -> &[u16] {
        self.words.get(POINTERS..self.behind()).unwrap_or_default()
    }

    /// The stripes, a cell for each disk.
    pub fn stripes(&self) -> impl Iterator<Item = Vec<Cell>> {
        let (disks, parity) = (self.word(DISKS), self.first_parity());
        self.cells().chunk_by(move |_, next| next[0] < parity).map(move |of| {
            let mut stripe = vec![Cell::EMPTY; disks];
            for &[what, at] in of {
                match what.checked_sub(parity) {
                    Some(disk) => stripe[usize::from(disk)] = Cell { what: PARITY, at },
                    None => stripe[home(u64::from(what), disks as u64) as usize] = Cell { what, at },
                }
            }
            stripe
        })
    }

    /// Where that stripe is that has something at this place.
    pub fn stripe_at(&self, place: ChunkPlace) -> Option<Vec<ChunkPlace>> {
        let of = |stripe: Vec<Cell>| -> Vec<ChunkPlace> {
            let written = (0..).zip(stripe).filter(|(_, cell)| cell.holds() != Holds::Nothing);
            written.map(|(disk, cell)| ChunkPlace { disk, at: u64::from(cell.at) }).collect()
        };
        self.stripes().map(of).find(|places| places.contains(&place))
    }

    /// How many of them.
    pub fn stripe_count(&self) -> u64 {
        let parity = self.first_parity();
        self.cells().iter().filter(|c| c[0] >= parity).count() as u64
    }

    /// Adds a stripe, which has its parity: its chunks are current now.
    pub fn append(&mut self, stripe: &[Cell]) {
        let filled = stripe.iter().filter(|c| c.what != NOTHING).count();
        if self.word(CELLS) + filled > FEW {
            self.mapped();
        }
        self.reserve(2 * filled);
        let (parity, first) = (stripe.iter().position(|c| c.what == PARITY), self.first_parity());
        for disk in parity.into_iter().chain((0..stripe.len()).filter(|d| stripe[*d].what < PARITY)) {
            let Cell { what, at } = stripe[disk];
            let what = if what == PARITY { first + disk as u16 } else { what };
            if what < first {
                self.words[LIVE] += u16::from(self.place(u64::from(what)).is_none());
                if self.word(MAPPED) == 1 {
                    self.mapped()[usize::from(what)] = at;
                }
            }
            let end = self.first() + 2 * self.word(CELLS);
            self.words[end..end + 2].copy_from_slice(&[what, at]);
            self.words[CELLS] += 1;
            self.words[POINTERS + disk] = at + 1;
        }
    }

    /// Room for so many words more, in lines of 32 bytes.
    fn reserve(&mut self, more: usize) {
        let used = self.first() + 2 * self.word(CELLS);
        if self.words.len() < used + more {
            let mut words = std::mem::take(&mut self.words).into_vec();
            let room = (used + more.max(used / 8)).next_multiple_of(LINE);
            words.reserve_exact(room - words.len());
            words.resize(room, 0);
            self.words = words.into_boxed_slice();
        }
    }

    /// A chunk holds nothing any more.
    pub fn unmap(&mut self, lcn: u64) {
        let was = std::mem::replace(&mut self.mapped()[lcn as usize], UNMAPPED);
        self.words[LIVE] -= u16::from(was != UNMAPPED);
    }

    /// The segments are empty again.
    pub fn reset(&mut self, shape: &Shape) {
        self.words = Box::default();
        self.begin(shape);
    }

    /// Bytes of memory beside its own.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::pack::Packer;
    use super::*;

    fn shape(disks: u64, length: u64) -> Shape {
        Shape { chunk: 1, disks, length, logical: (disks - 1) * length, groups: 1, zone: None }
    }

    fn destage(group: &mut Group, shape: &Shape, lcns: &[u64]) {
        let mut packer = Packer::default();
        let stripes = packer.pack(shape, lcns.iter().copied(), group.pointers(), |_, _| None);
        stripes.expect("it fits").chunks(shape.disks as usize).for_each(|s| group.append(s));
    }

    /// Luo et al., Figures 3 and 4: D0 to D7, then D2' to D5', D8 and D9, D10 to D13.
    #[test]
    fn the_papers_example_comes_out_cell_by_cell() {
        let shape = shape(5, 50);
        let mut group = Group::default();
        group.begin(&shape);
        for lcns in [vec![0, 1, 2, 3, 4, 5, 6, 7], vec![2, 3, 4, 5], vec![8, 9], vec![10, 11, 12, 13]] {
            destage(&mut group, &shape, &lcns);
        }
        let place = |lcn| group.place(lcn).map(|p| (p.disk, p.at)).unwrap();
        let map: Vec<_> = (0..14).map(place).collect();
        let want = [
            (0, 0),
            (1, 0),
            (2, 2),
            (3, 2),
            (0, 2),
            (1, 2),
            (2, 1),
            (4, 1),
            (0, 3),
            (1, 3),
            (3, 3),
            (4, 3),
            (0, 4),
            (2, 4),
        ];
        assert_eq!(map, want);
        let cell = |c: &Cell| match c.holds() {
            Holds::Chunk(lcn) => format!("D{lcn}"),
            Holds::Parity => "P".to_owned(),
            Holds::Nothing => "NUL".to_owned(),
        };
        let table: Vec<String> =
            group.stripes().map(|s| s.iter().map(cell).collect::<Vec<_>>().join(" ")).collect();
        let want =
            ["D0 D1 D2 D3 P", "D4 D5 D6 P D7", "D4 D5 D2 D3 P", "D8 D9 P NUL NUL", "D12 P D13 D10 D11"];
        assert_eq!(table, want);
        assert_eq!((group.live_chunks(), group.obsolete()), (14, 4));
        assert_eq!(group.pointers(), [5, 5, 5, 4, 4]);
    }

    /// Looked for among few cells or in the map, a chunk is where it was put last, and one that is gone is nowhere.
    #[test]
    fn a_chunk_is_found_with_and_without_a_map() {
        let shape = shape(5, 50);
        let mut rng = smrlab_units::rng::Rng::new(3);
        let mut draw = |n: u64| rng.below(n);
        for unmaps in [false, true] {
            let mut group = Group::default();
            group.begin(&shape);
            let mut want = vec![None; shape.logical as usize];
            for i in 0..30 {
                let lcns = [draw(40), 40 + draw(40)];
                let mut packer = Packer::default();
                let stripes = packer.pack(&shape, lcns.into_iter(), group.pointers(), |_, _| None);
                for stripe in stripes.unwrap().chunks(5) {
                    group.append(stripe);
                    for (disk, cell) in stripe.iter().enumerate() {
                        if let Holds::Chunk(lcn) = cell.holds() {
                            let place = ChunkPlace { disk: disk as u64, at: u64::from(cell.at) };
                            want[usize::from(lcn)] = Some(place);
                        }
                    }
                }
                if unmaps && i % 3 == 0 {
                    let lcn = draw(80);
                    group.unmap(lcn);
                    want[lcn as usize] = None;
                }
                let got: Vec<_> = (0..shape.logical).map(|lcn| group.place(lcn)).collect();
                assert_eq!(got, want, "after write {i}");
                let live: Vec<u64> = (0..).zip(&want).filter_map(|(l, w)| w.map(|_| l)).collect();
                assert_eq!(group.live().collect::<Vec<_>>(), live);
                assert_eq!(group.live_chunks(), live.len() as u64);
                assert_eq!(group.map().is_some(), unmaps || group.cells().len() > FEW);
            }
        }
    }
}
