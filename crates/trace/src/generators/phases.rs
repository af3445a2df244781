//! A workload in phases: fill, burst, idle, probe, or any generator, one after the other.

use super::{Common, Drawn, Generator, Made, Pattern};
use crate::OpenContext;
use smrlab_units::spec::{Kind, Param, SpecError, Values, split_item};
use smrlab_units::{Blocks, SimTime, parse_time};

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "phases",
    summary: "phases one after the other: fill, burst, idle, probe, or any generator with its parameters",
    reference: "The form of experiments on drives that clean when idle: age, load, leave alone, look. Phases follow each other \
                by their arrivals: give `idle` after a load that the drive cannot keep up with, or use closed arrivals. \
                Shares are of this generator's span.",
    params: &[
        Param::new("of", Kind::Text, "fill(10%);idle(10s);burst(1000);idle(60s);probe(100)").doc(
            "the phases, separated by ';': idle(TIME); fill(SHARE): sequential writes of 1MiB, 20ms \
             apart, that fill the share once; burst(N): N uniform writes, 1ms apart; probe(N): N \
             uniform reads, 100ms apart; or GENERATOR(N). More parameters follow the first: \
             burst(10k,size=8KiB,interarrival=0)",
        ),
        Param::new("repeat", Kind::Count(1, 1 << 32), "1").doc("how often all phases are gone through"),
    ],
    // The phases say how many.
    defaults: &[("requests", "18446744073709551615")],
    make,
};

/// A phase by a name of its own: the generator, the parameter that its first value is, and other parameters' defaults.
type Short = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const SHORT: [Short; 3] = [
    (
        "fill",
        "sequential",
        "span",
        &[
            ("once", "on"),
            ("size", "1MiB"),
            ("write", "100%"),
            ("interarrival", "20ms"),
            ("requests", "18446744073709551615"),
        ],
    ),
    ("burst", "uniform", "requests", &[("write", "100%"), ("interarrival", "1ms")]),
    ("probe", "uniform", "requests", &[("write", "0%"), ("interarrival", "100ms")]),
];

enum Phase {
    Idle(SimTime),
    Requests(&'static Generator, Values),
}

/// A pattern at work, and how many requests of it are left.
struct Current {
    pattern: Box<dyn Pattern>,
    common: Common,
    left: u64,
}

struct Phases {
    phases: Vec<Phase>,
    repeat: u64,
    /// Phases begun, over all repetitions.
    begun: u64,
    current: Option<Current>,
    /// Idle time before the next request.
    idle: SimTime,
    /// The same before the first one of all.
    lead: SimTime,
    started: bool,
    context: OpenContext,
}

fn make(v: &Values, common: &Common) -> Made {
    let context = OpenContext {
        capacity: Some(Blocks(common.span)),
        seed: common.rng.clone().bits(),
        ..OpenContext::default()
    };
    let mut phases = Vec::new();
    for text in parts(v.text("of").unwrap_or_default()) {
        let phase = phase(text).map_err(|e| v.bad("of", e.to_string()))?;
        if let Phase::Requests(generator, values) = &phase {
            begin(generator, values, &context).map_err(|e| v.bad("of", e.to_string()))?;
        }
        phases.push(phase);
    }
    if !phases.iter().any(|p| matches!(p, Phase::Requests(..))) {
        return Err(v.bad("of", "no phase has requests"));
    }
    let repeat = v.count("repeat");
    Ok(Box::new(Phases {
        phases,
        repeat,
        begun: 0,
        current: None,
        idle: SimTime::ZERO,
        lead: SimTime::ZERO,
        started: false,
        context,
    }))
}

/// The text cut at semicolons outside parentheses.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let split = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ';' && depth == 0
    });
    split.map(str::trim).filter(|p| !p.is_empty()).collect()
}

/// `NAME` or `NAME(VALUE[,k=v...])`.
fn phase(text: &str) -> Result<Phase, SpecError> {
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => {
            let inner = rest.strip_suffix(')');
            (name.trim(), inner.ok_or_else(|| SpecError::Other(format!("'{text}' lacks its closing ')'")))?)
        }
        None => (text, ""),
    };
    if name == "idle" {
        return parse_time(arguments).map(Phase::Idle).map_err(|e| SpecError::Other(format!("idle: {e}")));
    }
    let short = SHORT.iter().find(|s| s.0 == name);
    let (generator, first, defaults) = short.map_or((name, "requests", &[][..]), |s| (s.1, s.2, s.3));
    let generator = Generator::find(generator).filter(|g| g.name != GENERATOR.name).ok_or_else(|| {
        SpecError::Other(format!("'{name}' is no phase: idle, fill, burst, probe, or a generator's name"))
    })?;
    let item = format!("{name},{arguments}");
    let given = split_item(&item).1;
    let given = given.iter().filter(|(k, v)| !(k.is_empty() && v.is_empty()));
    let given = given.map(|(k, v)| if v.is_empty() { (first, *k) } else { (*k, *v) });
    let mut pairs: Vec<_> = given.collect();
    let missing = defaults.iter().filter(|(k, _)| !pairs.iter().any(|(key, _)| key == k)).copied();
    pairs.extend(missing.collect::<Vec<_>>());
    Ok(Phase::Requests(generator, Values::check(name, &generator.parameters(), &pairs)?))
}

fn begin(generator: &Generator, values: &Values, context: &OpenContext) -> Result<Current, SpecError> {
    let common = Common::new(values, context)?;
    let pattern = (generator.make)(values, &common)?;
    Ok(Current { pattern, left: common.requests, common })
}

impl Phases {
    /// Goes on to the next phase; `false` behind the last.
    fn advance(&mut self) -> bool {
        let all = self.phases.len() as u64;
        if self.begun >= all.saturating_mul(self.repeat) {
            return false;
        }
        let phase = &self.phases[(self.begun % all) as usize];
        self.begun += 1;
        match phase {
            Phase::Idle(time) => self.idle = SimTime(self.idle.0.saturating_add(time.0)),
            Phase::Requests(generator, values) => {
                // Each phase draws other numbers, in each repetition too.
                let seed = self.context.seed.wrapping_add(self.begun);
                // It was made once before, without an error.
                self.current = begin(generator, values, &OpenContext { seed, ..self.context.clone() }).ok();
            }
        }
        true
    }
}

impl Pattern for Phases {
    fn next(&mut self, _: &mut Common) -> Option<Drawn> {
        loop {
            let drawn = self.current.as_mut().filter(|c| c.left > 0).and_then(|c| {
                c.left -= 1;
                c.pattern.next(&mut c.common)
            });
            if let Some(mut drawn) = drawn {
                if !std::mem::replace(&mut self.started, true) {
                    self.lead = self.idle;
                }
                drawn.gap = SimTime(drawn.gap.0.saturating_add(std::mem::take(&mut self.idle).0));
                return Some(drawn);
            }
            self.current = None;
            if !self.advance() {
                return None;
            }
        }
    }

    fn lead(&self) -> SimTime {
        self.lead
    }
}
