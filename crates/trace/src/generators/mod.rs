//! The registry of generators (`synth:NAME[,k=v...]`): one file a generator, one line here.
//!
//! A generator is a [`Pattern`] that draws one request after the other; what all have in common (how many, how large,
//! how often, reads or writes, where at most) is [`Common`].

mod back_to_back;
mod backup;
mod bursty;
mod common;
mod dvs_raid;
mod hotcold;
mod idle;
mod kv_store;
mod local_space;
mod local_time;
mod mix;
mod phases;
mod runs;
mod sequential;
mod uniform;
mod zipf;
mod zoned;

pub use common::{COMMON, Common, Drawn, Gaps, Sizes};

use crate::{Batch, OpenContext, Record, Result, TraceSource};
use smrlab_units::spec::{Param, SpecError, Values, split_item};
use smrlab_units::{Lba, SimTime};

/// Time between requests all over a drive, by default: the slowest drives take some 16 ms for one of 4 KiB.
const RANDOM_GAP: &str = "20ms";

/// Draws requests.
pub trait Pattern: Send {
    /// The next request, `None` where the pattern has come to its end; everything random comes from `common`.
    fn next(&mut self, common: &mut Common) -> Option<Drawn>;

    /// How long nothing comes before the first request, known when that was given.
    fn lead(&self) -> SimTime {
        SimTime::ZERO
    }
}

/// What making a pattern gives.
pub type Made = Result<Box<dyn Pattern>, SpecError>;

/// A generator.
#[derive(Clone, Copy)]
pub struct Generator {
    /// What users call it, after `synth:`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is from.
    pub reference: &'static str,
    /// Its own parameters; [`Generator::parameters`] has the common ones too.
    pub params: &'static [Param],
    /// Common parameters whose default differs here.
    pub defaults: &'static [(&'static str, &'static str)],
    /// Makes the pattern from checked values.
    pub make: fn(&Values, &Common) -> Made,
}

/// All generators, in the order in which they are listed.
pub const GENERATORS: &[Generator] = &[
    uniform::GENERATOR,
    sequential::GENERATOR,
    zipf::GENERATOR,
    hotcold::GENERATOR,
    bursty::GENERATOR,
    backup::GENERATOR,
    mix::GENERATOR,
    local_space::GENERATOR,
    local_time::GENERATOR,
    back_to_back::GENERATOR,
    idle::GENERATOR,
    runs::GENERATOR,
    phases::GENERATOR,
    dvs_raid::GENERATOR,
    zoned::GENERATOR,
    kv_store::GENERATOR,
];

impl Generator {
    /// The generator called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        GENERATORS.iter().find(|g| g.name == name)
    }

    /// All parameters: the generator's own and the common ones.
    pub fn parameters(&self) -> Vec<Param> {
        let mut all = self.params.to_vec();
        all.extend_from_slice(COMMON);
        for (name, value) in self.defaults {
            all.iter_mut().filter(|p| p.name == *name).for_each(|p| p.default = value);
        }
        all
    }
}

/// Opens `NAME[,k=v...]`.
///
/// # Errors
/// When the name or a parameter is wrong, or a share is given and the capacity is not known.
pub fn open(item: &str, context: &OpenContext) -> Result<Box<dyn TraceSource>> {
    let (name, pairs) = split_item(item);
    let unknown = || SpecError::unknown("generator", name, GENERATORS.iter().map(|g| g.name), []);
    let generator = Generator::find(name).ok_or_else(unknown)?;
    let values = Values::check(name, &generator.parameters(), &pairs)?;
    let common = Common::new(&values, context)?;
    let pattern = (generator.make)(&values, &common)?;
    let total = common.requests;
    Ok(Box::new(Synth { pattern, common, left: total, total, now: SimTime::ZERO, started: false }))
}

/// A pattern as a source. The first request arrives at 0, or behind its lead.
struct Synth {
    pattern: Box<dyn Pattern>,
    common: Common,
    left: u64,
    total: u64,
    now: SimTime,
    started: bool,
}

impl TraceSource for Synth {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        out.clear();
        let n = self.left.min(Batch::ROWS as u64);
        for _ in 0..n {
            let Some(d) = self.pattern.next(&mut self.common) else {
                self.left = 0;
                return Ok(!out.is_empty());
            };
            let gap = if self.started { d.gap } else { self.pattern.lead() };
            self.now = SimTime(self.now.0.saturating_add(gap.0));
            self.started = true;
            let (lba, blocks) = (Lba(d.lba), d.blocks);
            out.push(Record { arrival: self.now, op: d.op, lba, blocks, device: 0, stream: 0, fua: d.fua });
        }
        self.left -= n;
        Ok(n > 0)
    }

    fn progress(&self) -> Option<f64> {
        // Patterns that end by themselves have no number to count against.
        (self.total < u64::MAX).then(|| 1.0 - self.left as f64 / self.total as f64)
    }
}
