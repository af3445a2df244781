//! Arrays in scenarios: one host operation after the other, over the event loop that runs and served devices use. Members answer at
//! once, whatever they are asked for: their requests are all that counts.

use super::{Done, request};
use smrlab_array::plan::Outcome;
use smrlab_array::{
    ArrayContext, ArrayObserver, EventLoop, Member, MemberId, MemberPlan, Schedule, Ssd, Ticket,
};
use smrlab_disk::DriveModel;
use smrlab_drive::Observer;
use smrlab_stl::{BuildContext, HostRequest, zones_of};
use smrlab_units::{Blocks, SimTime};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;

/// A member that takes no time and holds nothing.
fn instant(blocks: Blocks) -> Member {
    Member::Ssd(Ssd::new(SimTime::ZERO, 0, blocks))
}

/// Writes down what members are asked for.
#[derive(Default)]
struct Log {
    disks: usize,
    dead: BTreeSet<MemberId>,
    /// Works that have asked for something.
    begun: BTreeSet<Ticket>,
    /// The next plan is the first one of a request of the host's.
    arrives: bool,
    text: String,
    done: Done,
}

impl Observer for Log {
    type Error = Infallible;
}

impl ArrayObserver for Log {
    fn began(&mut self, _: Ticket, _: &HostRequest) {
        self.arrives = true;
    }

    fn died(&mut self, member: MemberId) {
        self.dead.insert(member);
    }

    fn planned(&mut self, _: SimTime, plan: &MemberPlan) {
        for outcome in plan.outcomes() {
            match outcome {
                Outcome::Acknowledged(_) => self.text.push_str("  acknowledged\n"),
                Outcome::Refused(_, why) => _ = writeln!(self.text, "  refused: {why:?}"),
                Outcome::Ended(_) => {}
            }
            // Tickets are used again.
            if !matches!(outcome, Outcome::Acknowledged(_)) {
                self.begun.remove(&outcome.ticket());
            }
        }
        let goes_on = plan.ops().iter().any(|op| self.begun.contains(&op.ticket));
        let arrives = std::mem::take(&mut self.arrives);
        if !plan.ops().is_empty() && !arrives {
            self.text.push_str(if goes_on { "  then\n" } else { "  by itself\n" });
        }
        for op in plan.ops() {
            self.begun.insert(op.ticket);
            let (r, disk) = (&op.request, op.member.at());
            let name = if disk < self.disks { format!("disk {disk}") } else { "ssd".to_owned() };
            let answer = if self.dead.contains(&op.member) { ": dead" } else { "" };
            let (word, why) = (r.op.name(), r.why.name());
            let _ = writeln!(self.text, "  {name} {word} {why} {} {}{answer}", r.lba, r.blocks);
            let counts = self.done.entry((word, why)).or_default();
            *counts = (counts.0 + 1, counts.1 + r.blocks.0);
        }
    }
}

/// An array whose members hold nothing.
pub(super) struct Rig {
    event_loop: EventLoop,
    disk: Blocks,
    log: Log,
}

impl Rig {
    /// `text` on as many drives as it needs, with the layer behind ` / ` if there is one; answers its name, too.
    pub(super) fn new(text: &str, drive: &Arc<DriveModel>) -> Result<(Self, &'static str), String> {
        let stack = smrlab_array::stack::parse(text).map_err(|e| e.to_string())?;
        let chosen = smrlab_array::parse(&stack.array).map_err(|e| e.to_string())?;
        let (mut each, mut zones) = (drive.geometry().blocks(), Vec::new());
        if let Some(layer) = stack.layer {
            let context = BuildContext::new(Arc::clone(drive));
            let built = smrlab_stl::build(&layer, &context).map_err(|e| e.to_string())?;
            (each, zones) = (built.layer.host_blocks(), zones_of(&*built.layer));
        }
        let (sizes, zones) = (vec![each; chosen.disks as usize], vec![zones; chosen.disks as usize]);
        let built = chosen.build(&ArrayContext::new(&sizes).zoned(&zones)).map_err(|e| e.to_string())?;
        let ssds = built.ssds.iter().map(|ssd| ssd.blocks);
        let members = sizes.iter().copied().chain(ssds).map(instant).collect();
        let event_loop = EventLoop::new(built.array, members, Vec::new(), Schedule::default(), false);
        let log = Log { disks: sizes.len(), ..Log::default() };
        Ok((Self { event_loop, disk: each, log }, chosen.entry.name))
    }

    /// Does a line, and all that comes of it at once; answers with what members are asked for.
    pub(super) fn act(&mut self, line: &str, done: &mut Done) -> Result<String, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let now = self.event_loop.now();
        let (event_loop, log) = (&mut self.event_loop, &mut self.log);
        let Ok(()) = match word {
            "fail" | "replace" => {
                let disk = rest.trim().parse().ok().filter(|i| *i < log.disks as u32).map(MemberId);
                let disk = disk.ok_or_else(|| format!("'{}' is none of {} disks", rest.trim(), log.disks))?;
                if word == "fail" {
                    event_loop.fail(now, disk, log)
                } else {
                    log.dead.remove(&disk);
                    event_loop.replace(now, disk, instant(self.disk), log)
                }
            }
            "background" => match event_loop.next_event() {
                // It wakes before this time.
                Some(at) => event_loop.step(Some(at + SimTime(1)), log).map(|_| ()),
                None => return Ok("  nothing to do\n".to_owned()),
            },
            _ => event_loop.submit(now, &request(line, event_loop.array().host_blocks())?, log),
        };
        let Ok(()) = event_loop.advance(event_loop.now(), log);
        while event_loop.next_done().is_some() {}
        for (what, (requests, blocks)) in std::mem::take(&mut log.done) {
            let counts = done.entry(what).or_default();
            *counts = (counts.0 + requests, counts.1 + blocks);
        }
        Ok(std::mem::take(&mut log.text))
    }
}
