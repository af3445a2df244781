//! Reading ahead: after a read the medium goes on into the read's segment, until it is stopped or has read far enough.
//!
//! How far it has come is worked out when a command needs to know, in closed form: no event is spent on a sector.

use super::DriveBuffer;
use super::medium::cylinder_end;
use smrlab_disk::Mechanics;
use smrlab_disk::model::ReadAhead;
use smrlab_units::{Blocks, Pba, SimTime};

/// Reading ahead into a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub segment: usize,
    /// The next block, since when, and where it ends.
    pub from: u64,
    pub began: SimTime,
    pub to: u64,
    /// Where the stream of reads began.
    pub first: u64,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// What is being read ahead, noted up to some moment.
    pub stream: Option<Stream>,
    /// A command began then, and how far reading ahead had come was not worked out yet: most commands stop it a little later and
    /// need not know.
    unnoted: Option<SimTime>,
}

impl Ahead {
    /// A command begins at `start`.
    #[inline]
    pub(super) fn interrupted(&mut self, start: SimTime) {
        debug_assert!(self.unnoted.is_none(), "the command before left reading ahead behind");
        self.unnoted = Some(start);
    }

    /// The segment that is being read into.
    #[inline]
    pub(super) fn segment(&self) -> Option<usize> {
        self.stream.as_ref().map(|s| s.segment)
    }

    /// What is being read into segment `i`.
    #[inline]
    pub(super) fn filling(&self, i: usize) -> Option<Stream> {
        self.stream.filter(|s| s.segment == i)
    }
}

impl DriveBuffer {
    /// Notes how far reading ahead had come when the present command began.
    #[inline]
    pub(crate) fn catch_up(&mut self, m: &mut Mechanics) {
        if let Some(began) = self.ahead.unnoted.take() {
            self.read_on(began, m);
        }
    }

    /// The same where it could matter to a command on blocks up to `end`: these are near what is read ahead.
    #[inline]
    pub(super) fn catch_up_near(&mut self, lba: u64, end: u64, m: &mut Mechanics) {
        let Some(s) = &self.ahead.stream else { return };
        if self.segments.get(s.segment).start <= end && lba <= s.to {
            self.catch_up(m);
        }
    }

    /// Notes how far reading ahead has come at `now`.
    #[inline(always)]
    pub(super) fn read_on(&mut self, now: SimTime, m: &mut Mechanics) {
        if self.ahead.stream.is_some() {
            self.read_on_stream(now, m);
        }
    }

    fn read_on_stream(&mut self, now: SimTime, m: &mut Mechanics) {
        let Some(s) = &mut self.ahead.stream else { return };
        let most = s.to - s.from;
        let (Blocks(done), end) = m.read_until(s.began, Pba(s.from), Blocks(most), now);
        if done > 0 {
            (s.from, s.began) = (s.from + done, end);
            self.counters.read_ahead += done;
            self.segments.extend(s.segment, s.from);
        }
        if done == most {
            self.ahead.stream = None;
        }
    }

    /// Reading ahead stops at `at`; answers when the medium can begin with something else. That is later where a command that waited for
    /// the bus has noted more of it meanwhile.
    #[inline]
    pub(crate) fn stop(&mut self, at: SimTime, m: &mut Mechanics) -> SimTime {
        self.ahead.unnoted = None;
        self.read_on(at, m);
        self.ahead.stream = None;
        at.max(m.head().ready)
    }

    /// Goes on reading behind a read that ended at block `from`, into segment `segment`; the stream of reads began at `first`.
    #[inline]
    pub(super) fn go_on(&mut self, segment: usize, from: u64, began: SimTime, first: u64, m: &Mechanics) {
        let to = self.limit(from, first, m);
        self.ahead.stream = (to > from).then_some(Stream { segment, from, began, to, first });
    }

    /// A read of what segment `i` has up to `end`: what is read ahead moves on with it.
    #[inline(always)]
    pub(super) fn hit(&mut self, i: usize, end: u64, now: SimTime, m: &Mechanics) {
        if let Some(s) = self.ahead.filling(i) {
            let to = s.to.max(self.limit(end, s.first, m));
            self.ahead.stream = Some(Stream { to, ..s });
        } else if self.spec.buffer.ahead_on_hit && self.ahead.stream.is_none() && self.writes.is_empty() {
            let from = self.segments.get(i).end();
            let to = self.limit(end, end - 1, m).max(from);
            let began = now.max(self.medium.free);
            self.ahead.stream = (to > from).then_some(Stream { segment: i, from, began, to, first: end - 1 });
        }
    }

    /// How far to read ahead behind a request that ended at `end`, in a stream that began at `first`.
    #[inline]
    fn limit(&mut self, end: u64, first: u64, m: &Mechanics) -> u64 {
        let b = &self.spec.buffer;
        let room = u64::from(b.segment_blocks).saturating_sub(self.asked);
        let most = u64::from(b.read_ahead_blocks);
        let most = end + if b.keeps_requested { most.min(room) } else { most };
        let to = match b.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::Segment => most,
            ReadAhead::Track => self.medium.track(end - 1, m).end.min(most),
            ReadAhead::Cylinder => cylinder_end(end - 1, m).min(most),
            ReadAhead::TwoTracks => {
                let (start, to) = (self.medium.track(end - 1, m).start, self.medium.track(end - 1, m).end);
                if first < start { self.medium.track(to, m).end } else { to }
            }
        };
        to.min(m.geometry().blocks().0).max(end)
    }
}
