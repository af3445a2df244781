//! A set of small numbers, a bit for each: for sets of which any part may be in, and numbers come and go one by one. A block set is
//! shorter where few or long runs are in; here no change moves anything.

use super::chunked::Chunked;
use std::ops::Range;

const WORD: u32 = u64::BITS;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Bits {
    words: Chunked<u64>,
    /// Numbers are below.
    end: u32,
}

impl Bits {
    /// No number, of those below `end`.
    pub fn new(end: u32) -> Self {
        Self { words: Chunked::new(end.div_ceil(WORD) as usize), end }
    }

    #[inline]
    fn word(&self, i: u32) -> u64 {
        self.words.get(i as usize).copied().unwrap_or(0)
    }

    /// Puts a number in.
    #[inline]
    pub fn insert(&mut self, number: u32) {
        debug_assert!(number < self.end, "{number} of {}", self.end);
        *self.words.get_mut((number / WORD) as usize, |_| 0) |= 1 << (number % WORD);
    }

    /// Takes a number out.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        if self.word(number / WORD) >> (number % WORD) & 1 == 1 {
            *self.words.get_mut((number / WORD) as usize, |_| 0) &= !(1 << (number % WORD));
        }
    }

    /// How many of these numbers, at most 64, are in before the first that is not.
    #[inline]
    pub fn run_in(&self, numbers: Range<u32>) -> u32 {
        let count = numbers.end - numbers.start;
        debug_assert!(count <= WORD && numbers.end <= self.end, "{numbers:?} of {}", self.end);
        let (i, shift) = (numbers.start / WORD, numbers.start % WORD);
        let mut bits = self.word(i) >> shift;
        if shift + count > WORD {
            bits |= self.word(i + 1) << (WORD - shift);
        }
        bits.trailing_ones().min(count)
    }

    /// The numbers that are in, as runs, ascending and apart.
    pub fn runs(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (i, word) in self.words.touched() {
            let first = i as u64 * u64::from(WORD);
            for number in (0..WORD).filter(|n| word >> n & 1 == 1).map(|n| first + u64::from(n)) {
                match runs.last_mut() {
                    Some(run) if run.end == number => run.end += 1,
                    _ => runs.push(number..number + 1),
                }
            }
        }
        runs
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> u64 {
        self.words.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words end behind 63 and 127; the chunk of 64 words that is taken at once ends behind 4095.
    #[test]
    fn numbers_are_in_until_they_are_taken_out() {
        let mut bits = Bits::new(5000);
        let empty = bits.bytes();
        bits.remove(4999);
        assert_eq!((bits.run_in(4990..5000), bits.bytes()), (0, empty), "what was never in takes no memory");
        (60..130).chain([4095, 4096, 4999]).for_each(|n| bits.insert(n));
        assert_eq!(bits.runs(), [60..130, 4095..4097, 4999..5000]);
        bits.remove(64);
        bits.remove(64);
        assert_eq!(bits.runs(), [60..64, 65..130, 4095..4097, 4999..5000]);
        assert_eq!([59, 60, 64, 65, 129].map(|first| bits.run_in(first..first + 64)), [0, 4, 0, 64, 1]);
        assert_eq!([60..63, 67..128, 67..129].map(|numbers| bits.run_in(numbers)), [3, 61, 62]);
        assert_eq!([4999..5000, 4999..4999, 4095..4097].map(|numbers| bits.run_in(numbers)), [1, 0, 2]);
        assert_eq!(bits.bytes(), empty + 2 * 64 * 8);
    }
}
