//! The text form of the emulator's paper (section 6.2; DIG): a line a track.

use crate::{ProbeError, Result};

/// A line: a track as the tool saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Track {
    /// Number from the outermost.
    pub number: u64,
    /// Sectors.
    pub sectors: u64,
    /// Microseconds from the first sector of the outermost track to this track's first sector.
    pub us: f64,
}

/// Reads lines of track number, sectors and microseconds, parted by blanks, tabs or commas. Empty lines and those that begin
/// with `#` say nothing.
///
/// # Errors
/// [`ProbeError::Input`] with the line, or where there are too few tracks.
pub fn parse(text: &str) -> Result<Vec<Track>> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split([' ', '\t', ',', ';']).filter(|f| !f.is_empty()).collect();
        let number = |k: usize| fields.get(k).and_then(|f| f.parse::<f64>().ok()).filter(|n| *n >= 0.0);
        let (Some(n), Some(sectors), Some(us)) = (number(0), number(1), number(2)) else {
            return Err(ProbeError::Input(format!(
                "line {}: '{line}' is not a track: write its number, its sectors, and microseconds",
                i + 1
            )));
        };
        out.push(Track { number: n as u64, sectors: sectors as u64, us });
    }
    if out.len() < 8 {
        return Err(ProbeError::Input(format!("too few tracks to fit, {}: at least 8", out.len())));
    }
    out.sort_unstable_by_key(|t| t.number);
    Ok(out)
}

/// The revolution in microseconds and the skew from track to track in revolutions, from the times: they rise by the skew
/// from track to track, and fall by a revolution less the skew where they pass it.
///
/// # Errors
/// [`ProbeError::Unclear`] where they never fall.
pub fn rotation(tracks: &[Track]) -> Result<(f64, f64)> {
    let steps: Vec<f64> =
        tracks.windows(2).filter(|w| w[1].number == w[0].number + 1).map(|w| w[1].us - w[0].us).collect();
    let up: Vec<f64> = steps.iter().copied().filter(|s| *s > 0.0).collect();
    let down: Vec<f64> = steps.iter().copied().filter(|s| *s < 0.0).collect();
    if up.len() < 2 || down.len() < 2 {
        return Err(ProbeError::Unclear("the times never pass a revolution: give --rpm".to_owned()));
    }
    let (rise, fall) = (crate::stats::median(&up), crate::stats::median(&down));
    let period = rise - fall;
    Ok((period, rise / period))
}
