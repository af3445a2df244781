//! What drives do on the medium: operations, pauses, cleaning.

use super::Metrics;
use super::tallies::{Cleanings, Tally};
use smrlab_drive::{OpDone, TimedPlan};
use smrlab_stl::{Cause, Dir, Part, Pause};
use smrlab_units::SimTime;

impl Metrics {
    /// A media operation was carried out.
    // In place: an operation's description is small parts, slow to copy.
    #[inline(always)]
    pub fn op(&mut self, done: &OpDone<'_>) {
        let n = done.op.blocks.0;
        let ns = done.end.0 - done.start.0;
        let units = self.adjusted.units(n);
        self.media[done.cause as usize][done.op.dir as usize].add(n, units, ns);
        self.worked(done.start, done.end);
        if done.request.is_none() {
            self.background.add(n, units, ns);
        }
        self.movement.switches += u64::from(done.tracks.before != done.tracks.first);
        self.movement.distance += u64::from(done.tracks.cylinders);
        if let Some(walk) = &mut self.bands {
            walk.op(done.op.pba, done.op.blocks);
        }
        self.timeline.media(done, self.origin);
    }

    /// A drive spent time without a media operation, for this request or in idle time.
    pub fn paused(&mut self, request: Option<u64>, pause: &Pause, start: SimTime) {
        self.worked(start, start + pause.time);
        self.media[pause.cause as usize][Dir::Write as usize].ns += pause.time.0;
        self.timeline.paused(start, start + pause.time, self.origin);
        if request.is_none() {
            self.background.ns += pause.time.0;
        }
    }

    /// The drive was busy from `start` to `end`.
    #[inline]
    fn worked(&mut self, start: SimTime, end: SimTime) {
        self.busy_ns += end.0 - start.0;
        let origin = self.origin;
        if start < origin {
            self.before_ns += end.min(origin).0 - start.0;
        }
    }

    /// A cleaning event of several drives together.
    pub fn cleaned_event(&mut self, kind: &'static str, from: SimTime, to: SimTime, relocated: u64) {
        self.cleaning.of(kind).add(from, to, relocated);
        let origin = self.origin;
        self.timeline.cleaning(from.since(origin), to.since(origin));
    }

    /// A plan was carried out, or the part of a step that will be.
    #[inline]
    pub fn executed(&mut self, executed: &TimedPlan<'_>) {
        if !executed.plan.cleanings().is_empty() || executed.plan.unfinished().is_some() {
            self.cleaned(executed);
        }
        if !executed.plan.zones_reset().is_empty() {
            let at = executed.served.ack.since(self.origin);
            self.timeline.reset(at, executed.plan.zones_reset().len() as u64);
        }
    }

    #[cold]
    #[inline(never)]
    fn cleaned(&mut self, executed: &TimedPlan<'_>) {
        let plan = executed.plan;
        if !plan.cleanings().is_empty() {
            self.fill.cleaned();
        }
        for (c, part) in plan.cleanings().iter().zip(plan.cleaning_parts()) {
            if let Some(span) = worked_on(executed, part) {
                self.cleaned_within(span, executed.whole, |all, (from, to)| {
                    all.of(c.kind).add(from, to, c.relocated.0);
                });
            }
        }
        if let Some((kind, step)) = plan.unfinished()
            && let Some(span) = worked_on(executed, &step)
        {
            self.cleaned_within(span, executed.whole, |all, (from, to)| all.of(kind).step(from, to));
        }
    }

    /// Cleaning from and to these times. A step that was given up took its time, and cleaned nothing.
    fn cleaned_within(
        &mut self,
        span: (SimTime, SimTime),
        whole: bool,
        add: impl Fn(&mut Cleanings, (SimTime, SimTime)),
    ) {
        if whole {
            add(&mut self.cleaning, span);
        } else {
            self.given_up.add(span.0, span.1, 0);
        }
        let origin = self.origin;
        self.timeline.cleaning(span.0.since(origin), span.1.since(origin));
    }

    /// Media commands in one direction, over all causes.
    pub fn media_total(&self, dir: Dir) -> Tally {
        self.media.iter().fold(Tally::default(), |sum, t| sum + t[dir as usize])
    }

    /// Time that was worked for what the host asked: neither in idle time nor to rebuild a drive.
    pub fn work_ns(&self) -> u64 {
        let [read, write] = self.of_cause(Cause::Rebuild);
        self.busy_ns - self.background.ns - read.ns - write.ns
    }

    /// Both directions of a cause.
    pub fn of_cause(&self, cause: Cause) -> [Tally; 2] {
        self.media[cause as usize]
    }
}

/// When a part of a plan was worked on; `None`: not at all. A pause right before it that is not for cleaning, such as a commit, belongs to what
/// was done before.
fn worked_on(executed: &TimedPlan<'_>, part: &Part) -> Option<(SimTime, SimTime)> {
    let (plan, done) = (executed.plan, executed.done);
    let before = |op: usize| match op {
        0 => Some(executed.began),
        n => executed.ends.get(n - 1).copied(),
    };
    let (first, end) = (part.first as usize, part.end as usize);
    let pauses = &plan.pauses()[..part.pauses as usize];
    let pauses = &pauses[pauses.partition_point(|(at, _)| *at < part.first)..];
    let other = |(at, pause): &&(u32, Pause)| *at == part.first && pause.cause != Cause::Clean;
    let (others, own) = pauses.split_at(pauses.iter().take_while(other).count());
    let time = |pauses: &[(u32, Pause)]| SimTime(pauses.iter().map(|(_, pause)| pause.time.0).sum());
    let from = before(first)? + time(others);
    if done < end {
        // Given up amid it.
        return (first < done).then_some((from, before(done)?));
    }
    let own = if executed.whole { own } else { &[] };
    if first == end {
        return (!own.is_empty()).then(|| (from, from + time(own)));
    }
    let behind = &own[own.partition_point(|(at, _)| *at < part.end)..];
    Some((from, before(end)? + time(behind)))
}
