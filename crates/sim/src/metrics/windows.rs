//! Equal windows of simulated time whose width doubles so that their number stays bounded.

use smrlab_units::SimTime;

/// What a window holds: it can take in its right-hand neighbour when the width doubles.
pub trait Cell: Default + Clone {
    /// Adds `later`, the next window, to this one.
    fn absorb(&mut self, later: &Self);
}

/// Several nearly monotone streams of times go into the same windows; each remembers where it was.
const CURSORS: usize = 6;

#[derive(Clone, Copy, Debug)]
struct Cursor {
    start: u64,
    index: usize,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Windows<T> {
    width: u64,
    limit: usize,
    cells: Vec<T>,
    cursors: [Cursor; CURSORS],
}

impl<T: Cell> Windows<T> {
    /// Windows of `width` at first, at most `limit` of them.
    ///
    /// # Panics
    /// When `width` is zero or `limit` less than 2.
    pub fn new(width: SimTime, limit: usize) -> Self {
        assert!(width.0 > 0 && limit >= 2);
        let cursors = [Cursor { start: 0, index: 0 }; CURSORS];
        Self { width: width.0, limit, cells: vec![T::default()], cursors }
    }

    /// The present width.
    pub fn width(&self) -> SimTime {
        SimTime(self.width)
    }

    /// The windows so far, from time 0.
    pub fn cells(&self) -> &[T] {
        &self.cells
    }

    /// The same, to change them.
    pub fn cells_mut(&mut self) -> &mut [T] {
        &mut self.cells
    }

    /// The window that holds `t`; `cursor` (below 6) names the stream that `t` belongs to.
    #[inline]
    pub fn at(&mut self, cursor: usize, t: SimTime) -> &mut T {
        let c = self.cursors[cursor];
        let index = if t.0.wrapping_sub(c.start) < self.width { c.index } else { self.move_to(cursor, t.0) };
        &mut self.cells[index]
    }

    /// Whether `to` lies in the window of `from`.
    pub fn same(&mut self, cursor: usize, from: SimTime, to: SimTime) -> bool {
        self.at(cursor, from);
        to.0.wrapping_sub(self.cursors[cursor].start) < self.width
    }

    #[cold]
    fn move_to(&mut self, cursor: usize, ns: u64) -> usize {
        let mut index = ns / self.width;
        while index >= self.limit as u64 {
            self.double();
            index = ns / self.width;
        }
        let index = index as usize;
        if index >= self.cells.len() {
            self.cells.resize_with(index + 1, T::default);
        }
        self.cursors[cursor] = Cursor { start: index as u64 * self.width, index };
        index
    }

    /// Makes them as wide and as many as those of another run of windows of the same width at first, where they are fewer or
    /// narrower.
    pub fn follow<U: Cell>(&mut self, other: &Windows<U>) {
        while self.width < other.width {
            self.double();
        }
        if self.width == other.width && self.cells.len() < other.cells.len() {
            self.cells.resize_with(other.cells.len(), T::default);
        }
    }

    fn double(&mut self) {
        let half = self.cells.len().div_ceil(2);
        for i in 0..half {
            // What stood at `i` is in a window before it by now.
            self.cells.swap(i, 2 * i);
            let (merged, later) = self.cells.split_at_mut(i + 1);
            if let Some(later) = later.get(i) {
                merged[i].absorb(later);
            }
        }
        self.cells.truncate(half);
        self.width = self.width.saturating_mul(2);
        self.cursors = [Cursor { start: 0, index: 0 }; CURSORS];
    }

    /// As [`spread`](Self::spread); answers the window that holds `to`.
    #[inline(always)]
    pub fn spread_to(
        &mut self,
        cursor: usize,
        from: SimTime,
        to: SimTime,
        mut add: impl FnMut(&mut T, u64),
    ) -> &mut T {
        let c = self.cursors[cursor];
        if c.start <= from.0 && from <= to && to.0 - c.start < self.width {
            let cell = &mut self.cells[c.index];
            add(cell, to.0 - from.0);
            return cell;
        }
        self.spread_over(cursor, from, to, add)
    }

    #[cold]
    #[inline(never)]
    fn spread_over(
        &mut self,
        cursor: usize,
        from: SimTime,
        to: SimTime,
        add: impl FnMut(&mut T, u64),
    ) -> &mut T {
        self.spread(cursor, from, to, add);
        self.at(cursor, to)
    }

    /// The window that holds the whole span from `from` to `to`, where one does and `cursor` is there already.
    #[inline]
    fn whole(&mut self, cursor: usize, from: SimTime, to: SimTime) -> Option<&mut T> {
        let c = self.cursors[cursor];
        (from.0 >= c.start && to.0.wrapping_sub(c.start) < self.width).then(|| &mut self.cells[c.index])
    }

    /// Splits the span from `from` to `to` at the edges of windows and hands each part's length in ns to `add`.
    #[inline]
    pub fn spread(&mut self, cursor: usize, from: SimTime, to: SimTime, mut add: impl FnMut(&mut T, u64)) {
        if from < to
            && let Some(cell) = self.whole(cursor, from, to)
        {
            return add(cell, to.0 - from.0);
        }
        let mut at = from.0;
        while at < to.0 {
            self.at(cursor, SimTime(at));
            let c = self.cursors[cursor];
            let end = c.start.saturating_add(self.width).min(to.0);
            add(&mut self.cells[c.index], end - at);
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Cell for u64 {
        fn absorb(&mut self, later: &Self) {
            *self += later;
        }
    }

    #[test]
    fn doubling_keeps_every_count_in_its_place() {
        let mut w = Windows::<u64>::new(SimTime(10), 4);
        for t in [0, 5, 39, 12, 10] {
            *w.at(0, SimTime(t)) += 1;
        }
        assert_eq!((w.cells(), w.width()), (&[2, 2, 0, 1][..], SimTime(10)));
        *w.at(1, SimTime(160)) += 1;
        assert_eq!((w.cells(), w.width()), (&[5, 0, 1][..], SimTime(80)));
    }

    #[test]
    fn windows_follow_those_of_another() {
        let [mut one, mut other] = [10, 10].map(|width| Windows::<u64>::new(SimTime(width), 4));
        [0, 5, 39].into_iter().for_each(|t| *one.at(0, SimTime(t)) += 1);
        *other.at(0, SimTime(75)) += 1;
        one.follow(&other);
        assert_eq!((one.cells(), one.width()), (&[2, 1, 0, 0][..], SimTime(20)));
        other.follow(&one);
        assert_eq!((other.cells(), other.width()), (&[0, 0, 0, 1][..], SimTime(20)));
    }

    #[test]
    fn spans_are_split_at_edges_and_nothing_is_lost() {
        let mut w = Windows::<u64>::new(SimTime(10), 100);
        w.spread(0, SimTime(5), SimTime(27), |c, ns| *c += ns);
        assert_eq!(w.cells(), &[5, 10, 7]);
        let mut w = Windows::<u64>::new(SimTime(1), 2);
        w.spread(0, SimTime(3), SimTime(1000), |c, ns| *c += ns);
        assert_eq!(w.cells().iter().sum::<u64>(), 997);
        w.spread(0, SimTime(3), SimTime(3), |c, _| *c += 1_000_000);
        assert_eq!(w.cells().iter().sum::<u64>(), 997);
    }
}
