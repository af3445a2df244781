//! Changes all over a huge space, put off until there are many, and then made neighbourhood by neighbourhood.
//!
//! Over a whole drive every look at a [`BlockSet`] is a cache miss. Where nothing depends on the answer at once, changes
//! are gathered, brought together by address, and made with the next ones' memory already on its way.

use crate::BlockSet;

/// Items gathered before it is time to hand them out.
const GATHER: usize = 1 << 18;
/// Neighbourhoods of the space, at most.
const PLACES: usize = 1 << 10;
/// Blocks of the smallest neighbourhood, as a power of two: few requests reach into two.
const LEAST: u32 = 16;
/// How far ahead memory is fetched.
const AHEAD: usize = 16;

/// See the [module](self). Takes up to 2^19 times the size of an item while in use, nothing before.
#[derive(Debug)]
pub struct Gather<T> {
    items: Vec<T>,
    sorted: Vec<T>,
    shift: u32,
}

impl<T: Copy + Default> Gather<T> {
    /// For changes of blocks below `space` (higher ones are the last one's neighbours).
    pub fn new(space: u64) -> Self {
        let mut shift = LEAST;
        while space >> shift >= PLACES as u64 {
            shift += 1;
        }
        Self { items: Vec::new(), sorted: Vec::new(), shift }
    }

    /// Whether two blocks lie in different neighbourhoods, so that changes of them are not handed out in their order.
    pub fn apart(&self, a: u64, b: u64) -> bool {
        a >> self.shift != b >> self.shift
    }

    /// Whether nothing is gathered.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds an item; answers whether it is time to [`drain`](Self::drain).
    #[inline]
    pub fn push(&mut self, item: T) -> bool {
        self.items.push(item);
        self.items.len() >= GATHER
    }

    /// Hands out all items, those of a neighbourhood together and in the order in which they came; `block` says where
    /// in `set` an item lies.
    pub fn drain(
        &mut self,
        set: &mut BlockSet,
        block: impl Fn(&T) -> u64,
        mut each: impl FnMut(&mut BlockSet, &T),
    ) {
        let mut ends = [0u32; PLACES];
        let place = |item: &T| ((block(item) >> self.shift) as usize).min(PLACES - 1);
        self.items.iter().for_each(|item| ends[place(item)] += 1);
        let mut sum = 0;
        for end in &mut ends {
            (*end, sum) = (sum, sum + *end);
        }
        self.sorted.resize(self.items.len(), T::default());
        for item in &self.items {
            let to = &mut ends[place(item)];
            self.sorted[*to as usize] = *item;
            *to += 1;
        }
        for (i, item) in self.sorted.iter().enumerate() {
            if let Some(later) = self.sorted.get(i + AHEAD) {
                set.prefetch(block(later));
            }
            each(set, item);
        }
        self.items.clear();
    }

    /// Gives its memory back; what is gathered is forgotten.
    pub fn free(&mut self) {
        (self.items, self.sorted) = (Vec::new(), Vec::new());
    }
}
