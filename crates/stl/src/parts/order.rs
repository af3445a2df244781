//! The notation of static maps: in which order the tracks of bands are filled (He & Du 2014).

use smrlab_units::spec::SpecError;
use std::fmt;

/// Positions that are filled together: of one band after the other (`124`), or each through all bands before the next
/// (`R(23)`).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    positions: Vec<u32>,
    round_robin: bool,
}

/// A permutation of the positions `1..=N` of a band, in groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    groups: Vec<Group>,
    tracks: u32,
}

const FORMS: &str = "an order such as 1234, R(4123), 124R(3) or 14R(23): every position of a band once; R(...) fills each \
                     position through all bands before the next; with more than 9 positions write 1-100 or 1.3-12R(2)";

impl Order {
    /// Parses the notation. Within a group single digits follow each other; numbers above 9 are separated by `.`, and
    /// `a-b` is a run of positions, also a falling one.
    ///
    /// # Errors
    /// With the place, when a position is missing, comes twice, or cannot be read.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let wrong = |what: String| SpecError::Other(format!("order '{text}': {what}; write {FORMS}"));
        let mut groups = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let round_robin = rest.starts_with('R') || rest.starts_with('r');
            let (inner, behind) = if round_robin {
                let inner = rest[1..].strip_prefix('(').ok_or_else(|| wrong("R without '('".to_owned()))?;
                inner.split_once(')').ok_or_else(|| wrong("'(' without ')'".to_owned()))?
            } else {
                rest.split_at(rest.find(['R', 'r']).unwrap_or(rest.len()))
            };
            let positions = group(inner).map_err(wrong)?;
            groups.push(Group { positions, round_robin });
            rest = behind.trim_start();
        }
        let tracks = groups.iter().map(|g| g.positions.len() as u32).sum();
        let mut seen = vec![false; tracks as usize + 1];
        for &p in groups.iter().flat_map(|g| &g.positions) {
            match seen.get_mut(p as usize) {
                _ if p == 0 => return Err(wrong("positions count from 1".to_owned())),
                None => return Err(wrong(format!("{tracks} positions, so there is no position {p}"))),
                Some(true) => return Err(wrong(format!("position {p} comes twice"))),
                Some(new) => *new = true,
            }
        }
        if tracks == 0 {
            return Err(wrong("no positions".to_owned()));
        }
        Ok(Self { groups, tracks })
    }

    /// Positions in a band (`N`).
    pub fn tracks(&self) -> u32 {
        self.tracks
    }

    /// The phases in which LBAs fill the bands: positions (from 0) that one band after the other gets.
    pub fn phases(&self) -> impl Iterator<Item = Vec<u32>> + '_ {
        self.groups.iter().flat_map(|g| {
            let size = if g.round_robin { 1 } else { g.positions.len() };
            g.positions.chunks(size).map(|c| c.iter().map(|p| p - 1).collect())
        })
    }
}

fn group(text: &str) -> Result<Vec<u32>, String> {
    let number = |t: &str| {
        t.trim().parse().ok().filter(|n| *n <= 1 << 20).ok_or_else(|| format!("'{t}' is no position"))
    };
    if !text.contains(['.', '-']) {
        let digit = |c: char| c.to_digit(10).ok_or_else(|| format!("'{c}' is no position"));
        return text.chars().filter(|c| !c.is_whitespace()).map(digit).collect();
    }
    let mut positions = Vec::new();
    for item in text.split('.') {
        match item.split_once('-') {
            Some((a, b)) => {
                let (a, b): (u32, u32) = (number(a)?, number(b)?);
                if a <= b { positions.extend(a..=b) } else { positions.extend((b..=a).rev()) }
            }
            None => positions.push(number(item)?),
        }
    }
    Ok(positions)
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.tracks > 9 { "." } else { "" };
        for g in &self.groups {
            let inner = g.positions.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator);
            if g.round_robin { write!(f, "R({inner})") } else { f.write_str(&inner) }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(text: &str) -> Vec<Vec<u32>> {
        Order::parse(text).unwrap().phases().collect()
    }

    #[test]
    fn the_four_published_orders() {
        assert_eq!(phases("1234"), [[0, 1, 2, 3]]);
        assert_eq!(phases("R(4123)"), [[3], [0], [1], [2]]);
        assert_eq!(phases("124R(3)"), [vec![0, 1, 3], vec![2]]);
        assert_eq!(phases("14R(23)"), [vec![0, 3], vec![1], vec![2]]);
    }

    #[test]
    fn long_bands_are_written_as_runs() {
        assert_eq!(phases("1-100"), [(0..100).collect::<Vec<_>>()]);
        assert_eq!(phases("1.12-10R(2-9)")[0], [0, 11, 10, 9]);
        assert_eq!(Order::parse("1.12-10R(2-9)").unwrap().to_string(), "1.12.11.10R(2.3.4.5.6.7.8.9)");
    }

    #[test]
    fn what_is_no_permutation_is_refused_with_the_reason() {
        for (bad, reason) in [
            ("1224", "position 2 comes twice"),
            ("1245", "there is no position 5"),
            ("0123", "count from 1"),
            ("R1234", "R without '('"),
            ("14R(23", "without ')'"),
            ("12x4", "'x' is no position"),
            ("", "no positions"),
            ("1-9999999999", "is no position"),
        ] {
            let e = Order::parse(bad).unwrap_err().to_string();
            assert!(e.contains(reason) && e.contains("R(4123)"), "{bad}: {e}");
        }
    }
}
