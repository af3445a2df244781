//! Traces with what a real drive, or a reference model, took for every request.

use super::extent;
use crate::error::{Result, RunError};
use smrlab_trace::Stop;
use smrlab_trace::input::Input;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};

/// Which answers of a reference model count, where its file has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// With its errors repaired.
    Repaired,
    /// As it was released.
    Released,
}

impl Reference {
    /// The names that `--reference` takes.
    pub const NAMES: [&'static str; 2] = ["rep", "rel"];

    /// By name.
    ///
    /// # Errors
    /// Another name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "rep" => Ok(Self::Repaired),
            "rel" => Ok(Self::Released),
            _ => Err(RunError::field("reference", format!("'{name}' is not accepted: rep or rel"))),
        }
    }

    fn column(self) -> &'static str {
        match self {
            Self::Repaired => "rep_ms",
            Self::Released => "rel_ms",
        }
    }
}

/// A request and what it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Read or write.
    pub op: HostOp,
    /// First block.
    pub lba: Lba,
    /// Length.
    pub blocks: Blocks,
    /// From its arrival to its completion.
    pub service: SimTime,
    /// From its completion to the next arrival.
    pub gap: SimTime,
}

/// Reads `R|W Hit|Miss LBN blocks service_us gap_us` a line (DiskSim's validation traces), or a pair of CSV files of which one
/// has `.input` in its name and holds `op,lba,blocks`, and the one with `.latency` instead the answers in milliseconds.
/// Compressed files are read as they are.
///
/// # Errors
/// A file that cannot be read, or a line that is not so, with its number.
pub fn read_measured(path: &str, reference: Reference) -> Result<Vec<Measured>> {
    let rows = if path.contains(".input") { answered(path, reference)? } else { replayed(path)? };
    if rows.is_empty() {
        return Err(RunError::Request(format!("{path}: no request in it")));
    }
    Ok(rows)
}

/// Calls `each` with the lines of a file.
fn lines(path: &str, mut each: impl FnMut(&str) -> Option<()>) -> Result<()> {
    let mut input = Input::open(path, &Stop::default())?;
    let mut number = 0;
    loop {
        let (text, with_end) = input.line()?;
        if with_end == 0 {
            return Ok(());
        }
        number += 1;
        let line = String::from_utf8_lossy(&input.window()[..text]).into_owned();
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') && each(line).is_none() {
            // What is no text at all is not for a terminal.
            let begin: String = line.chars().take(80).flat_map(char::escape_debug).collect();
            return Err(RunError::Request(format!(
                "{path}: line {number}: '{begin}' is not a measured request: R|W Hit|Miss LBN blocks service_us gap_us, or a \
                 file with .input in its name and columns op,lba,blocks"
            )));
        }
        input.consume(with_end);
    }
}

fn op(text: &str) -> Option<HostOp> {
    match text {
        "R" | "r" => Some(HostOp::Read),
        "W" | "w" => Some(HostOp::Write),
        _ => None,
    }
}

/// A duration in units of so many nanoseconds.
fn duration(text: &str, unit: f64) -> Option<SimTime> {
    let t: f64 = text.parse().ok().filter(|t: &f64| t.is_finite() && *t >= 0.0)?;
    Some(SimTime((t * unit).round() as u64))
}

fn replayed(path: &str) -> Result<Vec<Measured>> {
    let mut rows = Vec::new();
    lines(path, |line| {
        let f: Vec<&str> = line.split_whitespace().collect();
        let [o, _, lba, blocks, service, gap] = f[..] else { return None };
        let (lba, blocks) = extent(lba.parse().ok()?, blocks.parse().ok().filter(|n| *n > 0)?);
        rows.push(Measured {
            op: op(o)?,
            lba,
            blocks,
            service: duration(service, 1e3)?,
            gap: duration(gap, 1e3)?,
        });
        Some(())
    })?;
    Ok(rows)
}

/// The columns of a CSV file by the names in its first line.
fn columns<const N: usize>(
    path: &str,
    names: [&str; N],
    mut row: impl FnMut([&str; N]) -> Option<()>,
) -> Result<()> {
    let mut at: Option<[usize; N]> = None;
    lines(path, |line| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let Some(at) = at else {
            let mut found = [0; N];
            for (to, name) in found.iter_mut().zip(names) {
                *to = fields.iter().position(|f| *f == name)?;
            }
            at = Some(found);
            return Some(());
        };
        let mut values = [""; N];
        for (value, i) in values.iter_mut().zip(at) {
            *value = fields.get(i)?;
        }
        row(values)
    })
}

fn answered(path: &str, reference: Reference) -> Result<Vec<Measured>> {
    let mut rows = Vec::new();
    columns(path, ["op", "lba", "blocks"], |[o, lba, blocks]| {
        let (lba, blocks) = extent(lba.parse().ok()?, blocks.parse().ok().filter(|n| *n > 0)?);
        rows.push(Measured { op: op(o)?, lba, blocks, service: SimTime::ZERO, gap: SimTime::ZERO });
        Some(())
    })?;
    let answers = path.replacen(".input", ".latency", 1);
    let mut next = 0;
    columns(&answers, [reference.column()], |[ms]| {
        rows.get_mut(next)?.service = duration(ms, 1e6)?;
        next += 1;
        Some(())
    })?;
    if next < rows.len() {
        let reason = format!("{answers}: {next} answers to the {} requests of {path}", rows.len());
        return Err(RunError::Request(reason));
    }
    Ok(rows)
}
