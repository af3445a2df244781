//! What is seen of a drive's layer now and then: its cache and its zones.

use super::Metrics;
use super::fill::Fill;
use super::timeline::Window;
use smrlab_stl::Facts;
use smrlab_units::SimTime;
use std::ops::Add;

impl Metrics {
    /// The layer is like this at `at`.
    #[cold]
    pub fn looked(&mut self, at: SimTime, facts: &Facts<'_>) {
        let (fill, zones, origin) = (facts.fill(), facts.zone_counts, self.origin);
        if fill.is_none() && zones.is_none() {
            return self.fill.absent();
        }
        let next = self.timeline.looked(at.since(origin), fill.map(|f| f.0.0), zones) + origin;
        match fill {
            Some((used, capacity)) => self.fill.looked(at, used.0, capacity.0, next),
            None => self.fill.again(next),
        }
    }

    /// The caches, and the zones, of the drives of an array, as each was watched, are those of the whole.
    pub fn looked_by(&mut self, members: &[Self]) {
        self.fill = Fill::together(members.iter().map(|m| &m.fill));
        let cached = self.together(members, &|w| w.cached);
        let zones = self.together(members, &|w| w.zones);
        self.timeline.set(|w, end| (w.cached, w.zones) = (cached(end), zones(end)));
    }

    /// What all members have together at a time, each what it had at the end of the last window of which `of` says something.
    fn together<T: Copy + Add<Output = T>>(
        &self,
        members: &[Self],
        of: &dyn Fn(&Window) -> Option<T>,
    ) -> impl Fn(SimTime) -> Option<T> + use<T> {
        let origin = self.origin;
        let seen = |m: &Self| -> Vec<(SimTime, T)> {
            m.timeline.seen(of).map(|(start, n)| ((start + m.origin).since(origin), n)).collect()
        };
        let seen: Vec<_> = members.iter().map(seen).collect();
        move |end| {
            let last = |of: &Vec<(SimTime, T)>| of[..of.partition_point(|x| x.0 < end)].last().map(|x| x.1);
            seen.iter().filter_map(last).reduce(|a, b| a + b)
        }
    }
}
