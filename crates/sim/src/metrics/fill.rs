//! How full the layer's cache is over time, and when it was empty again.

use smrlab_units::SimTime;

/// See the [module](self). The cache is looked at a few times a window, and after every cleaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fill {
    /// When it is looked at next.
    next: SimTime,
    /// Something was cleaned since it was looked at.
    cleaned: bool,
    /// It held something when it was looked at.
    held: bool,
    /// When it was last found empty after it had held something.
    pub emptied: Option<SimTime>,
    /// What it can hold, in blocks; 0: no cache.
    pub capacity: u64,
}

impl Fill {
    /// Whether to look at it at `at`.
    pub fn due(&self, at: SimTime) -> bool {
        at >= self.next || self.cleaned
    }

    /// Something was cleaned, which may have emptied it.
    pub fn cleaned(&mut self) {
        self.cleaned = self.next != SimTime::MAX;
    }

    /// There is no cache, and something else to look at, next at `next`.
    pub fn again(&mut self, next: SimTime) {
        (self.next, self.cleaned) = (next, false);
    }

    /// There is no cache to look at.
    pub fn absent(&mut self) {
        *self = Self { next: SimTime::MAX, ..Self::default() };
    }

    /// It holds `used` of `capacity` blocks at `at`, and is looked at again at `next`.
    pub fn looked(&mut self, at: SimTime, used: u64, capacity: u64, next: SimTime) {
        if used == 0 && (self.held || self.cleaned) {
            self.emptied = Some(at);
        }
        *self = Self { next, cleaned: false, held: used > 0, emptied: self.emptied, capacity };
    }

    /// Several caches as one: what all can hold, and when the last of them was empty, if each that held anything ever was.
    pub fn together<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let never = all.clone().any(|f| f.held && f.emptied.is_none());
        let emptied = all.clone().filter_map(|f| f.emptied).max().filter(|_| !never);
        Self { emptied, capacity: all.map(|f| f.capacity).sum(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_at_now_and_then_and_after_cleaning() {
        let (mut f, ms) = (Fill::default(), SimTime::from_ms);
        assert!(f.due(ms(0)));
        f.looked(ms(0), 0, 100, ms(10));
        assert!(!f.due(ms(9)) && f.due(ms(10)));
        assert_eq!(f.emptied, None, "it held nothing before");
        f.looked(ms(10), 7, 100, ms(20));
        f.cleaned();
        assert!(f.due(ms(11)));
        f.looked(ms(11), 0, 100, ms(20));
        assert_eq!(f.emptied, Some(ms(11)));
        f.cleaned();
        f.looked(ms(12), 0, 100, ms(20));
        assert_eq!(f.emptied, Some(ms(12)), "filled and emptied between two looks");
        f.looked(ms(20), 0, 100, ms(30));
        assert_eq!(f.emptied, Some(ms(12)), "it was empty already");
        f.looked(ms(30), 1, 100, ms(40));
        f.looked(ms(40), 0, 100, ms(50));
        assert_eq!(f.emptied, Some(ms(40)), "what it held went without a cleaning");
        f.absent();
        f.cleaned();
        assert!(!f.due(ms(1_000_000)));
    }

    /// Of several caches: what all can hold, and when the last one was empty; not where one still holds what it held.
    #[test]
    fn several_caches_are_one() {
        let ms = SimTime::from_ms;
        let cache = |emptied: Option<u64>, held, capacity| Fill {
            emptied: emptied.map(ms),
            held,
            capacity,
            ..Fill::default()
        };
        let together = |all: &[Fill]| {
            let one = Fill::together(all.iter());
            (one.emptied, one.capacity)
        };
        let (early, late) = (cache(Some(5), false, 10), cache(Some(9), true, 20));
        assert_eq!(together(&[early, late]), (Some(ms(9)), 30));
        assert_eq!(
            together(&[late, early, cache(None, false, 3)]),
            (Some(ms(9)), 33),
            "it never held anything"
        );
        assert_eq!(together(&[early, cache(None, true, 3)]), (None, 13), "it was never empty again");
        assert_eq!(together(&[]), (None, 0));
    }
}
