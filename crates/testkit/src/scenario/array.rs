//! Arrays in scenarios: one host operation after the other, each carried out phase by phase.

use super::{Done, request};
use smrlab_array::plan::Outcome;
use smrlab_array::{Array, ArrayContext, MemberId, MemberPlan, Phase, Ticket, Work};
use smrlab_disk::DriveModel;
use smrlab_stl::{BuildContext, zones_of};
use smrlab_units::{Blocks, HostOp, SimTime};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

/// An array of disks that hold nothing: its member requests are all that counts.
pub(super) struct Rig {
    array: Box<dyn Array>,
    dead: Vec<bool>,
    tickets: u32,
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
        let array = chosen.build(&ArrayContext::new(&sizes).zoned(&zones)).map_err(|e| e.to_string())?.array;
        Ok((Self { array, dead: vec![false; sizes.len()], tickets: 0 }, chosen.entry.name))
    }

    /// Does a line; answers with what members are asked for.
    pub(super) fn act(&mut self, line: &str, done: &mut Done) -> Result<String, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut plan = MemberPlan::new(false);
        match word {
            "fail" | "replace" => {
                let disk = rest.trim().parse().ok().filter(|&i: &usize| i < self.dead.len());
                let i =
                    disk.ok_or_else(|| format!("'{}' is none of {} disks", rest.trim(), self.dead.len()))?;
                self.dead[i] = word == "fail";
                match word {
                    "fail" => self.array.failed(SimTime::ZERO, MemberId(i as u32), &mut plan),
                    _ => self.array.replaced(SimTime::ZERO, MemberId(i as u32), &mut plan),
                }
            }
            "background" => match self.array.wake_at(Some(SimTime::ZERO)) {
                Some(at) => self.array.wake(at, &mut plan),
                None => return Ok("  nothing to do\n".to_owned()),
            },
            _ => {
                let request = request(line, self.array.host_blocks())?;
                let ticket = self.ticket();
                self.array.start(SimTime::ZERO, ticket, &Work::Host(request), &mut plan);
            }
        }
        Ok(self.carry_out(plan, done))
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// All phases of what a plan began, and of the jobs that come of it.
    fn carry_out(&mut self, mut plan: MemberPlan, done: &mut Done) -> String {
        let (mut out, mut phases, mut jobs) = (String::new(), VecDeque::new(), VecDeque::new());
        let mut heading = "";
        loop {
            for outcome in plan.outcomes() {
                match outcome {
                    Outcome::Acknowledged(_) => out.push_str("  acknowledged\n"),
                    Outcome::Refused(_, why) => _ = writeln!(out, "  refused: {why:?}"),
                    Outcome::Ended(_) => {}
                }
            }
            if !plan.ops().is_empty() {
                out.push_str(std::mem::take(&mut heading));
            }
            for op in plan.ops() {
                let (r, disk) = (&op.request, op.member.at());
                let dead = self.dead.get(disk).is_some_and(|dead| *dead);
                let name = if disk < self.dead.len() { format!("disk {disk}") } else { "ssd".to_owned() };
                let word = r.op.name();
                let answer = if dead { ": dead" } else { "" };
                let _ = writeln!(out, "  {name} {word} {} {} {}{answer}", r.why.name(), r.lba, r.blocks);
                let (n, Blocks(blocks)) = (done.entry((word, r.why.name())).or_default(), r.blocks);
                (n.0, n.1) = (n.0 + 1, n.1 + blocks);
                match phases.iter_mut().find(|p: &&mut (Ticket, bool)| p.0 == op.ticket) {
                    Some(phase) => phase.1 |= dead && r.op == HostOp::Read,
                    None => phases.push_back((op.ticket, dead && r.op == HostOp::Read)),
                }
            }
            jobs.extend(plan.jobs());
            plan.clear();
            if let Some((ticket, lost)) = phases.pop_front() {
                heading = "  then\n";
                self.array.complete(SimTime::ZERO, Phase { ticket, lost, busy: false }, &mut plan);
            } else if let Some(job) = jobs.pop_front() {
                heading = "  by itself\n";
                let ticket = self.ticket();
                self.array.start(SimTime::ZERO, ticket, &Work::Job(job), &mut plan);
            } else {
                return out;
            }
        }
    }
}
