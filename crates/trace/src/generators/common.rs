//! What all generators have in common.

use crate::OpenContext;
use smrlab_units::rng::Rng;
use smrlab_units::spec::{Kind, Param, SpecError, Values};
use smrlab_units::{Blocks, HostOp, Quantity, SimTime, Size, parse_time};

/// The parameters of every generator.
pub const COMMON: &[Param] = &[
    Param::new("requests", Kind::Count(1, u64::MAX), "100_000").doc("how many requests"),
    Param::new("size", Kind::Text, "4KiB")
        .doc("length of a request: 4KiB, exp(4KiB) or uniform(4KiB;64KiB), in whole blocks, at least one"),
    Param::new("write", Kind::Share(0.0, 1.0), "70%").doc("share of the requests that are writes"),
    Param::new("fua", Kind::Share(0.0, 1.0), "0%").doc(
        "share of the writes that are to be on the medium before they are answered (FUA); the requests \
         are the same whatever it is",
    ),
    Param::new("span", Kind::Size, "100%")
        .doc("addresses from 0 to here are used: a size, or a share of the drive's capacity"),
    Param::new("interarrival", Kind::Text, "10ms").doc(
        "time between arrivals: 10ms, exp(10ms) or normal(50ms;10ms) (mean and deviation; below 0 \
         counts as 0)",
    ),
    Param::new("align", Kind::Size, "")
        .doc("addresses are multiples of this; by default of the size where that is fixed, else of 4KiB"),
    Param::new("seed", Kind::Count(0, u64::MAX), "").doc("seed of the random numbers; by default the run's"),
];

/// One request as drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Time since the request before.
    pub gap: SimTime,
    /// Operation.
    pub op: HostOp,
    /// First block.
    pub lba: u64,
    /// Length in blocks.
    pub blocks: u32,
    /// A write that is to be on the medium before it is answered.
    pub fua: bool,
}

/// How long requests are, in blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// All the same.
    Fixed(u64),
    /// Geometric from one on: the exponential of whole blocks. The scale of the exponential that is rounded up.
    Exponential(f64),
    /// Whole blocks from the first to the second, both included.
    Uniform(u64, u64),
}

/// How far apart requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gaps {
    /// All the same.
    Fixed(SimTime),
    /// Exponential with this mean: Poisson arrivals.
    Exponential(SimTime),
    /// Normal with this mean and deviation, cut off at 0.
    Normal(SimTime, SimTime),
}

/// `name(a;b)` taken apart.
fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = text.split_once('(')?;
    Some((name.trim(), rest.strip_suffix(')')?.split(';').map(str::trim).collect()))
}

/// The scale with which `1 + floor(scale · Exp(1))` has exactly this mean.
fn geometric_scale(mean: f64) -> f64 {
    if mean <= 1.0 { 0.0 } else { -1.0 / smrlab_units::rng::ln(1.0 - 1.0 / mean) }
}

impl Sizes {
    fn parse(text: &str) -> Option<Self> {
        let blocks = |t: &str| match Size::parse(t).ok()? {
            Size::Bytes(b) => {
                let n = Blocks::holding(b).0;
                (1..=1 << 24).contains(&n).then_some(n)
            }
            Size::Share(_) => None,
        };
        match call(text) {
            None => Some(Self::Fixed(blocks(text)?)),
            Some(("exp", a)) if a.len() == 1 => {
                Some(Self::Exponential(geometric_scale(blocks(a[0])? as f64)))
            }
            Some(("uniform", a)) if a.len() == 2 => {
                let (lo, hi) = (blocks(a[0])?, blocks(a[1])?);
                (lo <= hi).then_some(Self::Uniform(lo, hi))
            }
            Some(_) => None,
        }
    }

    /// Geometric with this mean.
    pub(super) fn mean_bytes(bytes: f64) -> Self {
        Self::Exponential(geometric_scale(bytes / 512.0))
    }

    pub(super) fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::Fixed(n) => n,
            Self::Exponential(scale) => 1 + (rng.exponential() * scale) as u64,
            Self::Uniform(lo, hi) => lo + rng.below(hi - lo + 1),
        }
    }
}

impl Gaps {
    /// `10ms`, `exp(10ms)` or `normal(50ms;10ms)`.
    pub fn parse(text: &str) -> Option<Self> {
        let time = |t: &str| parse_time(t).ok();
        match call(text) {
            None => Some(Self::Fixed(time(text)?)),
            Some(("exp", a)) if a.len() == 1 => Some(Self::Exponential(time(a[0])?)),
            Some(("normal", a)) if a.len() == 2 => Some(Self::Normal(time(a[0])?, time(a[1])?)),
            Some(_) => None,
        }
    }

    /// A gap.
    #[inline]
    pub fn draw(self, rng: &mut Rng) -> SimTime {
        match self {
            Self::Fixed(gap) => gap,
            Self::Exponential(mean) => rng.exp_time(mean),
            Self::Normal(mean, deviation) => {
                SimTime((mean.0 as f64 + rng.normal() * deviation.0 as f64).max(0.0) as u64)
            }
        }
    }
}

/// The common parameters, and the random numbers that everything is drawn from.
#[derive(Clone, Debug)]
pub struct Common {
    /// How many requests.
    pub requests: u64,
    /// Lengths.
    pub sizes: Sizes,
    /// Share of writes.
    pub write: f64,
    /// Blocks from 0 on that may be addressed.
    pub span: u64,
    /// Times between arrivals.
    pub gaps: Gaps,
    /// Addresses are multiples of this many blocks.
    pub align: u64,
    /// Where randomness comes from.
    pub rng: Rng,
    /// Share of the writes that are FUA, and where that is drawn from: apart, so that nothing else depends on it.
    fua: (f64, Rng),
}

impl Common {
    /// From checked values.
    ///
    /// # Errors
    /// When a size or time is wrong, the span is a share of an unknown capacity, or too small for one request.
    pub fn new(v: &Values, context: &OpenContext) -> Result<Self, SpecError> {
        // A generator with lengths of its own has no default.
        let sizes = Sizes::parse(v.text("size").unwrap_or("exp(4KiB)"))
            .ok_or_else(|| v.bad("size", "write 4KiB, exp(4KiB) or uniform(4KiB;64KiB)"))?;
        let gaps = Gaps::parse(v.text("interarrival").unwrap_or_default())
            .ok_or_else(|| v.bad("interarrival", "write 10ms, exp(10ms) or normal(50ms;10ms)"))?;
        let span = blocks(v, "span", context)?;
        let align = match (v.given("align", |v, key| v.size(key, Blocks(span))), sizes) {
            (Some(Blocks(0)), _) => return Err(v.bad("align", "it must be at least one block")),
            (Some(align), _) => align.0,
            (None, Sizes::Fixed(n)) => n,
            (None, _) => 8,
        };
        let smallest = match sizes {
            Sizes::Fixed(n) | Sizes::Uniform(n, _) => n,
            Sizes::Exponential(_) => 1,
        };
        if span < smallest {
            return Err(v.bad("span", "it must hold at least one request"));
        }
        let seed = v.given("seed", Values::count).unwrap_or(context.seed);
        Ok(Self {
            requests: v.count("requests"),
            sizes,
            write: v.given("write", Values::share).unwrap_or_default(),
            span,
            gaps,
            align,
            rng: Rng::new(seed),
            fua: (v.share("fua"), Rng::new(!seed)),
        })
    }

    /// A length in blocks, at most the span.
    #[inline]
    pub fn size(&mut self) -> u64 {
        self.sizes.draw(&mut self.rng).min(self.span)
    }

    /// Read or write.
    #[inline]
    pub fn op(&mut self) -> HostOp {
        if self.rng.chance(self.write) { HostOp::Write } else { HostOp::Read }
    }

    /// Time since the request before.
    #[inline]
    pub fn gap(&mut self) -> SimTime {
        self.gaps.draw(&mut self.rng)
    }

    /// An aligned address, uniform over all in `[from, from + width)` where `blocks` blocks end within it; `from`
    /// itself where they do not fit.
    #[inline]
    pub fn place(&mut self, from: u64, width: u64, blocks: u64) -> u64 {
        let slots = width.saturating_sub(blocks) / self.align + 1;
        from + self.rng.below(slots) * self.align
    }

    /// A request at `lba` with everything else drawn; cut off at the span's end.
    pub fn at(&mut self, lba: u64, blocks: u64) -> Drawn {
        let blocks = blocks.min(self.span.saturating_sub(lba)).max(1);
        let (gap, op) = (self.gap(), self.op());
        Drawn { gap, op, lba, blocks: u32::try_from(blocks).unwrap_or(u32::MAX), fua: self.fua(op) }
    }

    /// A request at `lba` that does `op`, with everything else drawn.
    pub fn does(&mut self, op: HostOp, lba: u64, blocks: u64) -> Drawn {
        let drawn = self.at(lba, blocks);
        Drawn { op, fua: self.fua(op), ..drawn }
    }

    fn fua(&mut self, op: HostOp) -> bool {
        let (share, rng) = &mut self.fua;
        *share > 0.0 && op == HostOp::Write && rng.chance(*share)
    }
}

/// A size parameter in blocks, a share being taken of the capacity.
///
/// # Errors
/// When it is a share and the capacity is not known.
pub(super) fn blocks(v: &Values, key: &str, context: &OpenContext) -> Result<u64, SpecError> {
    let share = v.text(key).is_some_and(|t| t.contains('%'));
    match context.capacity {
        None if share => Err(v.bad(
            key,
            "a share needs a drive's capacity, which is not known here: write a size such as 100GB",
        )),
        capacity => Ok(v.size(key, capacity.unwrap_or_default()).0),
    }
}
