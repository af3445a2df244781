//! Search in a sorted slice of which the place of the answer can be guessed.

/// Items around the guess that are all looked at: a cache line of the smallest ones.
const WINDOW: usize = 16;

/// The first index at which `below` is false, as `partition_point`, but found outwards from `guess`: where keys lie
/// evenly it reads one or two cache lines instead of one for each halving.
#[inline]
pub(crate) fn partition_near<T>(items: &[T], guess: usize, below: impl Fn(&T) -> bool) -> usize {
    let mut guess = guess.min(items.len());
    let from = guess.saturating_sub(WINDOW / 2).min(items.len().saturating_sub(WINDOW));
    if let Some(window) = items[from..].first_chunk::<WINDOW>() {
        // All of them, without a branch: which way a random key goes cannot be predicted.
        let inside = window.iter().map(|i| u32::from(below(i))).sum::<u32>() as usize;
        if (inside > 0 || from == 0) && (inside < WINDOW || from + WINDOW == items.len()) {
            return from + inside;
        }
        guess = from + inside;
    }
    search_from(items, guess, below)
}

/// In steps that double.
fn search_from<T>(items: &[T], guess: usize, below: impl Fn(&T) -> bool) -> usize {
    let (mut low, mut high) = (0, items.len());
    let mut step = 2;
    if guess < high && below(&items[guess]) {
        low = guess + 1;
        while low + step <= high && below(&items[low + step - 1]) {
            low += step;
            step *= 2;
        }
        high = high.min(low + step);
    } else {
        high = guess;
        while high > step && !below(&items[high - step]) {
            high -= step;
            step *= 2;
        }
        low = low.max(high.saturating_sub(step));
    }
    low + items[low..high].partition_point(below)
}

#[cfg(test)]
mod tests {
    use super::partition_near;

    #[test]
    fn agrees_with_partition_point_from_every_guess() {
        for len in 0..70 {
            let items: Vec<usize> = (0..len).collect();
            for (guess, key) in (0..=len + 1).flat_map(|g| (0..=len + 1).map(move |k| (g, k))) {
                let expected = items.partition_point(|i| *i < key);
                assert_eq!(
                    partition_near(&items, guess, |i| *i < key),
                    expected,
                    "{key} of {len} from {guess}"
                );
            }
        }
    }
}
