//! What a drive was asked for, in a few figures: a number for each part of a measurement, which is another one as soon as one request
//! is, or its time, or what who watches is told.

use smrlab_probe::{TargetError, TimedTarget, Timing, Watch};
use smrlab_units::{Blocks, Dir, Lba, SimTime, Zone};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A part of a measurement, as who watches is told of it.
#[derive(Default)]
struct Part {
    name: String,
    requests: u64,
    sum: u64,
}

/// All of it, shared by the target and by who watches.
#[derive(Clone)]
pub(crate) struct Log(Rc<RefCell<Vec<Part>>>);

/// A number made of others, in their order.
pub(crate) fn sum(before: u64, words: &[u64]) -> u64 {
    words.iter().fold(before, |sum, word| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31))
}

/// A number made of a text.
pub(crate) fn sum_of(text: &str) -> String {
    let words: Vec<u64> = text.bytes().map(u64::from).collect();
    format!("{:06x}", sum(1, &words) >> 40)
}

impl Log {
    pub(crate) fn new() -> Self {
        Self(Rc::new(RefCell::new(vec![Part::default()])))
    }

    fn note(&self, requests: u64, words: &[u64]) {
        if let Some(part) = self.0.borrow_mut().last_mut() {
            part.requests += requests;
            part.sum = sum(part.sum, words);
        }
    }

    /// The parts, each with its requests and its number.
    pub(crate) fn said(&self) -> String {
        let each = |part: &Part| format!("{} {} {:06x}", part.name, part.requests, part.sum >> 40);
        self.0.borrow().iter().map(each).collect::<Vec<_>>().join(", ").trim_start().to_owned()
    }
}

/// A target whose requests are noted.
pub(crate) struct Noted<T>(pub T, pub Log);

impl<T> Noted<T> {
    fn note(&self, words: &[u64], found: &Result<Timing, TargetError>) {
        let end = found.as_ref().map_or(u64::MAX, |t| t.end.0);
        self.1.note(1, &[words, &[end]].concat());
    }
}

impl<T: TimedTarget> TimedTarget for Noted<T> {
    fn blocks(&self) -> Blocks {
        self.0.blocks()
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        let found = self.0.access(dir, lba, blocks);
        self.note(&[u64::from(dir == Dir::Write), lba.0, blocks.0], &found);
        found
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        let found = self.0.flush();
        self.note(&[2], &found);
        found
    }

    fn zone(&self) -> Option<Zone> {
        self.0.zone()
    }

    fn pause(&mut self, span: SimTime) {
        self.1.note(0, &[3, span.0]);
        self.0.pause(span);
    }
}

/// Notes what it is told, and asks to stop after so many checks.
pub(crate) struct Watcher(pub Log, pub Cell<u64>);

impl Watch for Watcher {
    fn progress(&mut self, stage: &str, share: f64, at: f64) {
        assert!((0.0..=1.0).contains(&share), "{share} of {stage}");
        if self.0.0.borrow().last().is_none_or(|last| last.name != stage) {
            self.0.0.borrow_mut().push(Part { name: stage.to_owned(), ..Part::default() });
        }
        self.0.note(0, &[(share * 1e6).round() as u64, (at * 1e6).round() as u64]);
    }

    fn stopped(&self) -> bool {
        self.1.set(self.1.get().saturating_sub(1));
        self.1.get() == 0
    }
}
