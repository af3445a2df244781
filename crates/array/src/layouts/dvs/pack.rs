//! How chunks are packed into stripes of any width.

use super::group::{Cell, Holds, PARITY};
use super::shape::Shape;
use std::collections::VecDeque;

/// Packs chunks into new stripes. Keeps its memory from one time to the next.
#[derive(Clone, Debug, Default)]
pub struct Packer {
    /// Chunks that are left, by disk.
    lists: Vec<VecDeque<u64>>,
    pointers: Vec<u16>,
    order: Vec<usize>,
    stripes: Vec<Cell>,
}

impl Packer {
    /// Packs chunks into stripes behind `pointers`: up to N of the disks with most chunks left, the one with the smaller
    /// pointer first; the parity on the disk that was not picked and has the smallest pointer. `fill` is asked for another
    /// chunk of a disk, in a row or after it, to make a narrow stripe wider. The cells of all stripes, one stripe after the
    /// other; `None`: a segment is full.
    ///
    /// It takes as many stripes as there must be: the longest list, or all chunks over N where that is more.
    pub fn pack(
        &mut self,
        shape: &Shape,
        lcns: impl Iterator<Item = u64>,
        pointers: &[u16],
        mut fill: impl FnMut(u64, u64) -> Option<u64>,
    ) -> Option<&[Cell]> {
        let disks = shape.disks as usize;
        let mut left = self.start(shape, lcns, pointers);
        let Self { lists, pointers, order, stripes } = self;
        stripes.clear();
        while left > 0 {
            order.sort_by_key(|d| (std::cmp::Reverse(lists[*d].len()), pointers[*d], *d));
            let first = stripes.len();
            stripes.resize(first + disks, Cell::EMPTY);
            let stripe = &mut stripes[first..];
            // Of the chunk on the first disk.
            let mut row = (disks, 0);
            for &disk in &order[..disks - 1] {
                if let Some(lcn) = lists[disk].pop_front() {
                    stripe[disk] = Cell { what: lcn as u16, at: pointers[disk] };
                    left -= 1;
                    row = row.min((disk, lcn / (shape.disks - 1)));
                }
            }
            let free = (0..disks).filter(|d| stripe[*d] == Cell::EMPTY);
            let parity = free.min_by_key(|d| (pointers[*d], *d))?;
            stripe[parity] = Cell { what: PARITY, at: pointers[parity] };
            for (disk, cell) in stripe.iter_mut().enumerate() {
                if *cell == Cell::EMPTY
                    && u64::from(pointers[disk]) < shape.length
                    && let Some(lcn) = fill(disk as u64, row.1)
                {
                    *cell = Cell { what: lcn as u16, at: pointers[disk] };
                }
            }
            for (disk, cell) in stripe.iter().enumerate().filter(|(_, c)| c.holds() != Holds::Nothing) {
                if u64::from(cell.at) >= shape.length {
                    return None;
                }
                pointers[disk] += 1;
            }
        }
        Some(stripes)
    }

    /// Takes what is to be packed; answers how many chunks that are.
    fn start(&mut self, shape: &Shape, lcns: impl Iterator<Item = u64>, pointers: &[u16]) -> usize {
        self.lists.resize_with(pointers.len(), VecDeque::new);
        self.lists.iter_mut().for_each(VecDeque::clear);
        self.pointers.clear();
        self.pointers.extend_from_slice(pointers);
        self.order.clear();
        self.order.extend(0..pointers.len());
        lcns.map(|lcn| self.lists[shape.home(lcn) as usize].push_back(lcn)).count()
    }
}

/// The same into an emptied group, and without fillers.
pub fn pack_all(shape: &Shape, lcns: &[u64]) -> Option<Vec<Cell>> {
    let pointers = vec![0; shape.disks as usize];
    let mut packer = Packer::default();
    packer.pack(shape, lcns.iter().copied(), &pointers, |_, _| None).map(<[Cell]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(disks: u64, length: u64) -> Shape {
        Shape { chunk: 1, disks, length, logical: (disks - 1) * length, groups: 1, zone: None }
    }

    /// The same example, where D8 and D9 take D10 and D11 with them if these are there: two chunks more are written, and a
    /// chunk that is not there is not made up.
    #[test]
    fn a_narrow_stripe_is_filled_from_its_row() {
        let shape = shape(5, 50);
        let (mut asked, mut packer) = (Vec::new(), Packer::default());
        let stripes = packer.pack(&shape, 8..10, &[3, 3, 3, 3, 3], |disk, row| {
            asked.push((disk, row));
            (disk == 3).then_some(10)
        });
        let holds: Vec<_> = stripes.unwrap().iter().map(|c| c.holds()).collect();
        let want = [Holds::Chunk(8), Holds::Chunk(9), Holds::Parity, Holds::Chunk(10), Holds::Nothing];
        assert_eq!((holds, asked), (want.to_vec(), vec![(3, 2), (4, 2)]));
        // A segment that is full is not filled up.
        let full = packer.pack(&shape, 8..10, &[3, 3, 3, 50, 50], |_, _| panic!("no room there"));
        assert_eq!(full.unwrap()[3].holds(), Holds::Nothing);
    }

    /// The bound of the packing, and that no pointer is pushed beyond it, on random sets of chunks.
    #[test]
    fn the_packing_takes_as_many_stripes_as_there_must_be() {
        let mut rng = smrlab_units::rng::Rng::new(5);
        let mut draw = |n: u64| rng.below(n);
        for _ in 0..4000 {
            let shape = shape(3 + draw(6), 20);
            let most = 1 + draw(shape.logical);
            let lcns: Vec<u64> = (0..shape.logical).filter(|_| draw(shape.logical) < most).collect();
            let cells = pack_all(&shape, &lcns).expect("all of a group fits");
            let stripes: Vec<_> = cells.chunks(shape.disks as usize).collect();
            let on = |d| lcns.iter().filter(|l| shape.home(**l) == d).count() as u64;
            let longest = (0..shape.disks).map(on).max().unwrap();
            let bound = longest.max((lcns.len() as u64).div_ceil(shape.disks - 1));
            assert_eq!(stripes.len() as u64, bound);
            let cells = cells.iter().filter(|c| c.holds() != Holds::Nothing);
            assert!(cells.clone().all(|c| u64::from(c.at) < bound));
            let chunks = cells.filter(|c| c.holds() != Holds::Parity).count();
            assert_eq!(chunks, lcns.len());
            assert!(stripes.iter().all(|s| s.iter().filter(|c| c.holds() == Holds::Parity).count() == 1));
        }
    }

    /// Writes of a stripe of width w: w + 1, so (N + 1) / N a chunk where it is full.
    #[test]
    fn a_stripe_of_any_width_costs_one_more_than_its_width() {
        let shape = shape(5, 50);
        for width in 1..=4u64 {
            let lcns: Vec<u64> = (0..width).collect();
            let stripe = pack_all(&shape, &lcns).unwrap();
            let written = stripe.iter().filter(|c| c.holds() != Holds::Nothing).count() as u64;
            assert_eq!((stripe.len(), written), (5, width + 1));
        }
    }
}
