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

    /// Draws the next requests, at most `most`, behind those in `out`; `before` is when the last one arrived. One call for all of them,
    /// so that each pattern's own [`next`](Self::next) is called where it is known.
    fn draw(&mut self, common: &mut Common, before: &mut Option<SimTime>, out: &mut Batch, most: usize) {
        out.push_all(most, || {
            let d = self.next(common)?;
            let arrival = match *before {
                Some(before) => SimTime(before.0.saturating_add(d.gap.0)),
                None => self.lead(),
            };
            *before = Some(arrival);
            let (op, lba, blocks, fua) = (d.op, Lba(d.lba), d.blocks, d.fua);
            Some(Record { arrival, op, lba, blocks, device: 0, stream: 0, fua })
        });
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
    Ok(Box::new(Synth { pattern, common, left: total, total, before: None }))
}

/// A pattern as a source. The first request arrives at 0, or behind its lead.
struct Synth {
    pattern: Box<dyn Pattern>,
    common: Common,
    left: u64,
    total: u64,
    /// When the last request arrived.
    before: Option<SimTime>,
}

impl TraceSource for Synth {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool> {
        out.clear();
        let most = self.left.min(Batch::ROWS as u64);
        self.pattern.draw(&mut self.common, &mut self.before, out, most as usize);
        let drawn = out.len() as u64;
        self.left = if drawn < most { 0 } else { self.left - drawn };
        Ok(drawn > 0)
    }

    fn progress(&self) -> Option<f64> {
        // Patterns that end by themselves have no number to count against.
        (self.total < u64::MAX).then(|| 1.0 - self.left as f64 / self.total as f64)
    }
}
