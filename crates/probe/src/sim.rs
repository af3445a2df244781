//! A simulated drive as a target: its clock is virtual, so that a day of the drive's time passes in seconds.

use crate::target::{TargetError, TimedTarget, Timing, zone_with_room};
use smrlab_drive::assemble::{Wanted, assemble};
use smrlab_drive::{Drive, ScheduledDrive};
use smrlab_stl::{HostRequest, zones_of};
use smrlab_units::problems::Problems;
use smrlab_units::spec::SpecError;
use smrlab_units::{Blocks, Dir, HostOp, Lba, SimTime, Zone, counted};

/// See the [module](self).
pub struct SimTarget {
    drive: ScheduledDrive,
    now: SimTime,
}

impl SimTarget {
    /// At time 0.
    pub fn new(drive: Drive) -> Self {
        Self { drive: ScheduledDrive::first_come(drive), now: SimTime::ZERO }
    }

    /// Serves a request that arrives now.
    fn timed(&mut self, op: HostOp, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        let start = self.now;
        let Ok(served) = self.drive.submit(start, &HostRequest::new(op, lba, blocks), &mut ());
        if self.drive.drive().plan().refusal().is_some() {
            let what = format!("the drive refuses a {} at LBA {lba}", op.name());
            return Err(TargetError { what, gone: false });
        }
        self.now = served.map_or(start, |served| served.ack.max(start));
        Ok(Timing { start, end: self.now })
    }
}

impl TimedTarget for SimTarget {
    fn blocks(&self) -> Blocks {
        self.drive.drive().layer().host_blocks()
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        let end = lba.0.checked_add(blocks.0);
        if blocks == Blocks::ZERO || end.is_none_or(|e| e > self.blocks().0) {
            let what =
                format!("{} from LBA {lba} do not lie within {}", counted(blocks.0, "block"), self.blocks());
            return Err(TargetError { what, gone: false });
        }
        let op = match dir {
            Dir::Read => HostOp::Read,
            Dir::Write => HostOp::Write,
        };
        self.timed(op, lba, blocks)
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        self.timed(HostOp::Flush, Lba(0), Blocks::ZERO)
    }

    fn pause(&mut self, span: SimTime) {
        self.now += span;
    }

    fn zone(&self) -> Option<Zone> {
        zone_with_room(zones_of(self.drive.drive().layer()))
    }
}

/// The drive that `text` (`DRIVE[/LAYER]`) names, the layer being `cmr` where none is given; `read` brings the text of a
/// drive file.
///
/// # Errors
/// What is wrong with the drive's or the layer's text.
pub(crate) fn open(
    text: &str,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<SimTarget, SpecError> {
    let (drive, layer) = split(text);
    let wanted =
        Wanted { drive, layer, scheduler: "fcfs", metadata: "nv", mechanics: None, medium: None, seed: 0 };
    let mut problems = Problems::default();
    let assembled = assemble(&wanted, read, &smrlab_stl::build, &mut problems);
    match assembled.filter(|_| problems.is_empty()) {
        Some(assembled) => Ok(SimTarget::new(assembled.start(false, false).0)),
        None => Err(SpecError::Other(problems.to_string())),
    }
}

/// Drive and layer. The last slash parts them if what follows begins with the name of a layer; the path of a drive file
/// has slashes too.
fn split(text: &str) -> (&str, &str) {
    if let Some((drive, layer)) = text.rsplit_once('/') {
        let name = layer.split(',').next().unwrap_or_default();
        if !name.ends_with(".toml") && !drive.is_empty() {
            return (drive, layer);
        }
    }
    (text, "cmr")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drive_and_layer_are_parted_at_the_last_slash() {
        assert_eq!(split("tiny"), ("tiny", "cmr"));
        assert_eq!(split("tiny,k=3/rmw,band=4"), ("tiny,k=3", "rmw,band=4"));
        assert_eq!(split("a/b.toml"), ("a/b.toml", "cmr"));
        assert_eq!(split("a/b.toml,k=2/static-1234"), ("a/b.toml,k=2", "static-1234"));
    }

    /// A zoned drive's refusal is an answer: nothing is gone, and no time has passed.
    #[test]
    fn what_the_drive_refuses_is_said() {
        let mut t =
            open("tiny/zoned,conventional=0%,zone=64KiB,capacity=48KiB", |_| Err(String::new())).unwrap();
        t.access(Dir::Write, Lba(0), Blocks(8)).unwrap();
        let before = t.now;
        let e = t.access(Dir::Write, Lba(64), Blocks(8)).unwrap_err();
        assert_eq!((&*e.what, e.gone, t.now), ("the drive refuses a write at LBA 64", false, before));
        t.access(Dir::Write, Lba(8), Blocks(8)).unwrap();
        assert!(t.now > before);
    }

    #[test]
    fn the_clock_is_the_drives() {
        let mut t = open("tiny", |_| Err(String::new())).unwrap();
        let a = t.access(Dir::Read, Lba(5), Blocks(1)).unwrap();
        let b = t.access(Dir::Read, Lba(5), Blocks(1)).unwrap();
        assert_eq!(b.end.since(a.end), SimTime::from_ms(10), "one revolution at 6000 rpm");
        let before = t.now;
        for (lba, blocks) in [(2880, 1), (2879, 2), (5, 0), (u64::MAX, 1)] {
            for dir in [Dir::Read, Dir::Write] {
                let e = t.access(dir, Lba(lba), Blocks(blocks)).unwrap_err();
                assert!(!e.gone && e.what.contains("do not lie within"), "{}", e.what);
            }
        }
        assert_eq!(t.now, before, "what is refused takes no time");
        assert!(t.access(Dir::Read, Lba(2879), Blocks(1)).is_ok());
    }
}
