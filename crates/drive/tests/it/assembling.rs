//! What stands against a drive, and what the media log says of one that stands.

use smrlab_drive::{Observer, OpDone, ScheduledDrive, Tracks, Wanted, assemble};
use smrlab_stl::{BuildContext, Built, Capabilities, HostRequest};
use smrlab_units::problems::Problems;
use smrlab_units::{Blocks, HostOp, Lba, SimTime};
use std::convert::Infallible;

fn wanted<'a>(drive: &'a str, layer: &'a str, scheduler: &'a str) -> Wanted<'a> {
    Wanted { drive, layer, scheduler, metadata: "nv", mechanics: None, medium: None, seed: 1 }
}

/// Everything that stands against it, as text.
fn faults(drive: &str, layer: &str, scheduler: &str) -> String {
    let mut problems = Problems::default();
    let wanted = wanted(drive, layer, scheduler);
    assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut problems);
    problems.to_string()
}

#[test]
fn all_faults_come_at_once() {
    let all = faults("tinny", "cmrr", "sptff");
    for part in ["tinny", "cmrr", "sptff"] {
        assert!(all.contains(part), "{part}: {all}");
    }
}

#[test]
fn a_scheduler_needs_a_layer_that_knows_where_requests_start() {
    let mut problems = Problems::default();
    // As a layer of a user's own may be.
    let build = |text: &str, context: &BuildContext| {
        let built = smrlab_stl::build(text, context)?;
        Ok(Built { capabilities: Capabilities { locates: false, ..built.capabilities }, ..built })
    };
    assemble(&wanted("tiny", "cmr", "sptf"), |_| Err(String::new()), &build, &mut problems);
    let all = problems.to_string();
    assert!(all.contains("cmr cannot tell where requests start, which sptf asks for: use fcfs"), "{all}");
}

/// Buffer and bus are no more than mechanics that take time have.
#[test]
fn without_time_there_is_no_buffer() {
    for (mechanics, has) in
        [(None, true), (Some("full"), true), (Some("no-rotation"), true), (Some("instant"), false)]
    {
        let wanted = Wanted { mechanics, ..wanted("tiny,cache=on,bus=100", "cmr", "fcfs") };
        let made = assemble(&wanted, |_| Err(String::new()), &smrlab_stl::build, &mut Problems::default());
        let made = made.unwrap();
        assert_eq!(made.controller.is_some(), has, "{mechanics:?}");
        assert_eq!(made.start(false, false).0.buffer().is_some(), has);
    }
}

/// Host-managed presets have their write cache on, as the drives have; that and any scheduler go with zones as they are.
#[test]
fn presets_of_host_managed_drives_go_with_zones_as_they_are() {
    for drive in ["wd-ultrastar-dc-hc680", "wd-ultrastar-dc-hc690"] {
        for scheduler in ["fcfs", "sptf", "look"] {
            assert_eq!(faults(drive, "zoned", scheduler), "", "{drive}, {scheduler}");
        }
    }
}

/// A drive that is cut short keeps its share of conventional zones; without that it could not be shorter than they are.
#[test]
fn presets_of_host_managed_drives_can_be_short() {
    for drive in ["wd-ultrastar-dc-hc680", "wd-ultrastar-dc-hc690"] {
        let zones = |text: &str, layer: &str| {
            let preset = smrlab_disk::model::load(text, |_| Err(String::new())).unwrap();
            let built = smrlab_stl::build(layer, &smrlab_stl::BuildContext::new(preset.into())).unwrap();
            let zones = smrlab_stl::zones_of(&*built.layer);
            let first = zones.iter().take_while(|z| z.pointer.is_none()).count();
            (first, zones.len(), built.layer.host_blocks().0)
        };
        let (conventional, all, blocks) = zones(drive, "zoned");
        let counted = if drive.ends_with("680") { (1006, 100_584) } else { (1192, 119_200) };
        assert_eq!(
            (conventional, all, blocks),
            (counted.0, counted.1, counted.1 as u64 * 524_288),
            "{drive}"
        );
        let short = |capacity, layer| zones(&format!("{drive},capacity={capacity}"), layer);
        assert_eq!(
            short("8GiB", "zoned"),
            (0, 31, 31 * 524_288),
            "{drive}: no zone has room on a hundredth of it"
        );
        assert_eq!(short("64GB", "zoned"), (2, 238, 238 * 524_288), "{drive}");
        assert_eq!(short("64GB,random_access=4000", "zoned,conventional=10%").0, 24, "{drive}");
    }
}

#[derive(Default)]
struct Moves(Vec<Tracks>);

impl Observer for Moves {
    type Error = Infallible;

    fn op(&mut self, done: &OpDone<'_>) {
        self.0.push(done.tracks);
    }
}

/// Tracks of 32 blocks, one a cylinder: from track 0 to tracks 3 to 5, and from there to track 1.
#[test]
fn an_operation_says_where_it_began_and_where_it_ended() {
    let mut problems = Problems::default();
    let drive =
        assemble(&wanted("tiny", "cmr", "fcfs"), |_| Err(String::new()), &smrlab_stl::build, &mut problems);
    let (drive, chosen) = drive.unwrap_or_else(|| panic!("{problems}")).start(false, false);
    let (mut c, mut seen) = (ScheduledDrive::new(drive, &chosen), Moves::default());
    for (lba, blocks) in [(100, 70), (40, 4)] {
        let request = HostRequest::new(HostOp::Read, Lba(lba), Blocks(blocks));
        let Ok(_) = c.submit(SimTime::ZERO, &request, &mut seen);
    }
    let Ok(()) = c.drain(&mut seen);
    let moves: Vec<_> = seen.0.iter().map(|t| (t.before, t.first, t.last, t.cylinders)).collect();
    assert_eq!(moves, [(0, 3, 5, 3), (5, 1, 1, 4)]);
}
