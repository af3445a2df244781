//! Scenarios: prose with fenced blocks of host operations and the media operations that they cause.
//!
//! A block that begins with three back quotes and `smrlab` is run. Lines at its left margin are what is done, indented
//! ones below each are what must come of it:
//!
//! ```text
//! drive plain,tracks=20,sectors=10,k=2     a preset with overrides, or a plain one
//! layer rmw,mode=whole
//! write 12 4                               also: read, discard (LBA BLOCKS [STREAM]); flush; background
//!   read clean 0 40                        direction, cause, PBA, blocks
//!   write clean 0 40
//! cut 1: write 0 4                         the power fails after one operation; what recovery does follows
//! claim write clean 1, write host 0        media operations by cause since the last claim: else the file is refused
//! claim write clean 40 blocks
//! reset 16 16                              zone commands, and append; `zones` lists the zones, each with its condition
//!   refused zone-full at 16
//! array raid5,disks=4,chunk=2KiB           an array of such drives: member requests follow each host operation, phase
//! fail 2                                   by phase; also: replace DISK
//! ```
//!
//! A claim is what the prose says in numbers. `UPDATE=1` rewrites what happens, never what is claimed. Blocks without `drive` and `layer` go on where the last one ended. Lines that begin with `#` are comments.

mod array;

use crate::drives;
use array::Rig;
use smrlab_disk::DriveModel;
use smrlab_stl::{BuildContext, Cause, Dir, HostRequest, Plan, Records, StepEnd, TranslationLayer};
use smrlab_units::spec::split_item;
use smrlab_units::{Blocks, HostOp, Lba, SimTime, ZoneAction};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The text with what really happened.
    pub actual: String,
    /// The layers that it builds, by name.
    pub layers: Vec<String>,
    /// The arrays.
    pub arrays: Vec<String>,
    /// How many claims held.
    pub claims: u64,
}

/// Runs all blocks of a file.
///
/// # Errors
/// With the line, when a line cannot be understood.
pub fn run(text: &str) -> Result<Outcome, String> {
    let mut stage = Stage::default();
    let mut actual = String::new();
    let mut inside = false;
    for (i, line) in text.lines().enumerate() {
        let at = |e: String| format!("line {}: {e}", i + 1);
        if line.starts_with("```") {
            inside = line.trim() == "```smrlab";
        } else if inside {
            if line.starts_with(' ') {
                continue;
            }
            actual.push_str(line.trim_end());
            actual.push('\n');
            let done = line.split('#').next().unwrap_or_default().trim();
            if !done.is_empty() {
                actual.push_str(&stage.act(done).map_err(at)?);
            }
            continue;
        }
        actual.push_str(line);
        actual.push('\n');
    }
    Ok(Outcome { actual, layers: stage.layers, arrays: stage.arrays, claims: stage.claims })
}

/// The lines in which two texts differ, with some around them.
pub fn diff(expected: &str, actual: &str) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (expected.lines().collect(), actual.lines().collect());
    let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let rest = a[same..].iter().rev().zip(b[same..].iter().rev()).take_while(|(x, y)| x == y).count();
    let mut out = String::new();
    let mut show = |mark: char, lines: &[&str]| lines.iter().for_each(|l| _ = writeln!(out, "{mark} {l}"));
    show(' ', &a[same.saturating_sub(6)..same]);
    show('-', &a[same..a.len() - rest]);
    show('+', &b[same..b.len() - rest]);
    show(' ', &a[a.len() - rest..][..rest.min(3)]);
    out
}

/// Operations and blocks since the last claim, by direction and cause.
type Done = BTreeMap<(&'static str, &'static str), (u64, u64)>;

#[derive(Default)]
struct Stage {
    drive: Option<Arc<DriveModel>>,
    text: String,
    layer: Option<Box<dyn TranslationLayer>>,
    records: Records,
    layers: Vec<String>,
    /// In place of a layer.
    array: Option<Rig>,
    arrays: Vec<String>,
    done: Done,
    claims: u64,
}

impl Stage {
    fn act(&mut self, line: &str) -> Result<String, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "drive" => {
                self.drive = Some(drive(rest)?);
                return Ok(String::new());
            }
            "layer" => {
                self.text = rest.trim().to_owned();
                self.layer = Some(self.build()?);
                self.array = None;
                self.records.clear();
                self.done.clear();
                return Ok(String::new());
            }
            "array" => {
                let drive =
                    self.drive.as_ref().ok_or("an array needs a drive first: add a line 'drive NAME'")?;
                let (rig, name) = Rig::new(rest.trim(), drive)?;
                self.array = Some(rig);
                self.arrays.push(name.to_owned());
                self.done.clear();
                return Ok(String::new());
            }
            "claim" => {
                self.claim(rest)?;
                return Ok(String::new());
            }
            _ => {}
        }
        if let Some(array) = &mut self.array {
            return array.act(line, &mut self.done);
        }
        let mut plan = Plan::new(true, true);
        if let Some((cut, request)) = rest.split_once(':').filter(|_| word == "cut") {
            let cut = cut.trim().parse().map_err(|_| format!("'{cut}' is no number of operations"))?;
            self.submit(request.trim(), &mut plan)?;
            return self.cut(&plan, cut);
        }
        if word == "zones" {
            return Ok(described_zones(&**self.layer()?));
        }
        if word == "background" {
            let layer = self.layer()?;
            if layer.background_after().is_none() {
                return Ok("  nothing to do\n".to_owned());
            }
            layer.background(SimTime::ZERO, &mut plan);
            layer.background_end(StepEnd::Done);
        } else {
            self.submit(line, &mut plan)?;
        }
        self.records.append(plan.records());
        self.count(&plan, plan.ops().len());
        Ok(describe(&plan, plan.ops().len()))
    }

    fn count(&mut self, plan: &Plan, ops: usize) {
        for op in &plan.ops()[..ops] {
            let (n, blocks) = self.done.entry((dir(op.dir), op.cause.name())).or_default();
            *n += 1;
            *blocks += op.blocks.0;
        }
    }

    /// `DIRECTION CAUSE NUMBER [blocks]`, several separated by commas: what was done since the last claim.
    fn claim(&mut self, text: &str) -> Result<(), String> {
        for claim in text.split(',') {
            let words: Vec<&str> = claim.split_whitespace().collect();
            let (key, number, of_blocks) = match words[..] {
                [dir, cause, n] => ((dir, cause), n, false),
                [dir, cause, n, "blocks"] => ((dir, cause), n, true),
                _ => {
                    return Err(format!(
                        "'{}' is no claim: write DIRECTION CAUSE NUMBER [blocks]",
                        claim.trim()
                    ));
                }
            };
            if !["read", "write"].contains(&key.0) || Cause::named(key.1).is_none() {
                return Err(format!("'{} {}' is no direction and cause of media operations", key.0, key.1));
            }
            let claimed: u64 = number.parse().map_err(|_| format!("'{number}' is no number"))?;
            let (ops, blocks) = self.done.get(&key).copied().unwrap_or_default();
            let is = if of_blocks { blocks } else { ops };
            if is != claimed {
                return Err(format!("claimed '{}', but it was {is}", claim.trim()));
            }
        }
        self.done.clear();
        self.claims += 1;
        Ok(())
    }

    fn build(&mut self) -> Result<Box<dyn TranslationLayer>, String> {
        let drive = self.drive.clone().ok_or("a layer needs a drive first: add a line 'drive NAME'")?;
        let built = smrlab_stl::build(&self.text, &BuildContext::new(drive)).map_err(|e| e.to_string())?;
        self.layers.push(built.entry.name.to_owned());
        Ok(built.layer)
    }

    fn layer(&mut self) -> Result<&mut Box<dyn TranslationLayer>, String> {
        self.layer.as_mut().ok_or_else(|| "there is no layer yet: add a line 'layer NAME'".to_owned())
    }

    fn submit(&mut self, line: &str, plan: &mut Plan) -> Result<(), String> {
        let layer = self.layer()?;
        let request = request(line, layer.host_blocks())?;
        layer.submit(SimTime::ZERO, &request, plan);
        Ok(())
    }

    fn cut(&mut self, plan: &Plan, cut: usize) -> Result<String, String> {
        let cut = cut.min(plan.ops().len());
        self.records.extend(plan.records_within(cut));
        let mut layer = self.build()?;
        let mut recovery = Plan::new(true, true);
        layer.recover(&self.records, &mut recovery);
        self.records.append(recovery.records());
        self.count(plan, cut);
        self.count(&recovery, recovery.ops().len());
        self.layer = Some(layer);
        let repair = describe(&recovery, recovery.ops().len());
        let repair = if repair.is_empty() { "  nothing to repair\n" } else { &repair };
        Ok(format!("{}  power cut\n{repair}", describe(plan, cut)))
    }
}

/// `OPERATION [LBA BLOCKS [STREAM]]` to a host's space of `space`.
fn request(line: &str, space: Blocks) -> Result<HostRequest, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let op = match words[0] {
        "read" => HostOp::Read,
        "write" => HostOp::Write,
        "discard" => HostOp::Discard,
        "flush" => HostOp::Flush,
        "append" => HostOp::Append,
        other => match ZoneAction::named(other) {
            Some(action) => HostOp::Zone(action),
            None => {
                return Err(format!(
                    "'{other}' is none of read, write, append, discard, flush, open, close, finish, reset, zones, background, \
                     cut, fail, replace"
                ));
            }
        },
    };
    let number = |i: usize| -> Result<u64, String> {
        let word = words.get(i).ok_or_else(|| format!("'{line}' needs LBA and BLOCKS"))?;
        word.parse().map_err(|_| format!("'{word}' is no number"))
    };
    let (lba, blocks) = if op == HostOp::Flush { (0, 0) } else { (number(1)?, number(2)?) };
    let stream = if words.len() > 3 { number(3)? as u16 } else { 0 };
    if lba + blocks > space.0 {
        return Err(format!("the host has {space} blocks"));
    }
    Ok(HostRequest { stream, ..HostRequest::new(op, Lba(lba), Blocks(blocks)) })
}

fn dir(dir: Dir) -> &'static str {
    if dir == Dir::Read { "read" } else { "write" }
}

/// A line for each zone: its number and condition, and how much of it is written where it has a write pointer.
fn described_zones(layer: &dyn TranslationLayer) -> String {
    let (mut out, mut number) = (String::new(), 0);
    layer.zones(Lba(0), &mut |zone| {
        let _ = write!(out, "  {number} {}", zone.condition.name());
        if let Some(pointer) = zone.pointer {
            let _ = write!(out, " {}", pointer.0 - zone.start.0);
        }
        out.push('\n');
        number += 1;
        true
    });
    out
}

/// The first `ops` operations of a plan, and all else that a reader wants to know.
fn describe(plan: &Plan, ops: usize) -> String {
    let mut out = String::new();
    match plan.outcome() {
        smrlab_stl::Outcome::Done => {}
        smrlab_stl::Outcome::Appended(lba) => _ = writeln!(out, "  appended at {}", lba.0),
        smrlab_stl::Outcome::Refused { why, lba } => {
            _ = writeln!(out, "  refused {} at {}", why.name(), lba.0)
        }
    }
    for (i, op) in plan.ops()[..ops].iter().enumerate() {
        if i == plan.ack_after() {
            out.push_str("  acknowledged\n");
        }
        let _ = writeln!(out, "  {} {} {} {}", dir(op.dir), op.cause.name(), op.pba, op.blocks);
    }
    if ops == plan.ops().len() {
        for (from, blocks) in plan.zeroes() {
            let _ = writeln!(out, "  zeroes at {from} for {blocks}");
        }
    }
    out
}

/// A preset, or `plain,tracks=N,sectors=N[,k=2][,band=4]`: one surface, one zone, no skew.
fn drive(text: &str) -> Result<Arc<DriveModel>, String> {
    let (name, pairs) = split_item(text.trim());
    if name != "plain" {
        let none = |path: &str| Err(format!("{path}: scenarios read no files"));
        return smrlab_disk::model::load(text.trim(), none).map(Arc::new).map_err(|e| e.to_string());
    }
    let number = |key: &str, default: Option<u32>| -> Result<u32, String> {
        match pairs.iter().find(|p| p.0 == key) {
            Some((_, v)) => v.parse().map_err(|_| format!("{key}={v} is no number")),
            None => default.ok_or_else(|| format!("a plain drive needs {key}=")),
        }
    };
    let (tracks, sectors) = (number("tracks", None)?, number("sectors", None)?);
    Ok(drives::plain(tracks, sectors, number("k", Some(2))?, u64::from(number("band", Some(4))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "Prose.\n```smrlab\ndrive plain,tracks=10,sectors=10\nlayer cmr\nwrite 3 4\n  write host 3 4\n```\n";

    #[test]
    fn what_happens_as_written_stays_as_it_is() {
        assert_eq!(
            run(TEXT).unwrap(),
            Outcome {
                actual: TEXT.to_owned(),
                layers: vec!["cmr".to_owned()],
                arrays: Vec::new(),
                claims: 0
            }
        );
    }

    #[test]
    fn what_happens_otherwise_is_shown() {
        let wrong = TEXT.replace("write host 3 4", "write host 7 4");
        let diff = diff(&wrong, &run(&wrong).unwrap().actual);
        assert!(diff.contains("-   write host 7 4\n+   write host 3 4\n  ```"), "{diff}");
    }

    #[test]
    fn a_false_claim_is_refused_whatever_happens() {
        let with = |claim: &str| run(&TEXT.replace("3 4\n```", &format!("3 4\n{claim}\n```")));
        assert_eq!(with("claim write host 1, read host 0").unwrap().claims, 1);
        assert_eq!(with("claim write host 4 blocks").unwrap().claims, 1);
        let e = with("claim write host 1, write clean 2").unwrap_err();
        assert!(e.contains("line 7") && e.contains("claimed 'write clean 2', but it was 0"), "{e}");
        assert!(with("claim write hosts 1").unwrap_err().contains("no direction and cause"));
    }

    #[test]
    fn what_cannot_be_understood_is_named_with_its_line() {
        let e = run(&TEXT.replace("write 3", "wriet 3")).unwrap_err();
        assert!(e.contains("line 5") && e.contains("wriet"), "{e}");
        let e = run(&TEXT.replace("layer cmr", "layer cmmr")).unwrap_err();
        assert!(e.contains("line 4") && e.contains("did you mean 'cmr'?"), "{e}");
    }
}
