//! `cmr`: a conventional drive, the baseline of every comparison.

use crate::entry::{BuildContext, BuildResult, LayerEntry};
use crate::{Capabilities, Facts, HostRequest, Plan, Refusal, TranslationLayer};
use smrlab_disk::Bands;
use smrlab_units::spec::Values;
use smrlab_units::{Blocks, Dir, HostOp, Lba, Pba, SimTime};
use std::ops::Range;

const PAGE: &str = "\
The same drive without shingling: LBA equals PBA, every block may be written in place, and a write touches one track.
It needs no guards, so its capacity is larger than that of a shingled layer on the same geometry: `compare` wraps all runs to
the smallest. Where a drive counts its guards apart (`counted_blocks`), it has the counted blocks.

A request is one media operation. Discards are accepted and do nothing, so a discarded block keeps its data.
A power cut in the middle of a write may lose the one sector under the head, as on any disk.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "cmr",
    aliases: &["hdd", "conventional"],
    summary: "conventional drive: the same geometry without shingling",
    reference: "the baseline of He & Du 2014 (\"HDD\") and Cassuto et al. 2010",
    page: PAGE,
    idle: "nothing, by default and with any option: every write is in place when it is acknowledged",
    capabilities: Capabilities {
        keeps_data: true,
        survives_cut: true,
        locates: true,
        stable_location: true,
        discards: false,
    },
    conventional: true,
    ..LayerEntry::new(build)
};

fn build(context: &BuildContext, _: &Values) -> BuildResult {
    Ok(Box::new(Identity { blocks: context.drive.counted_blocks(), bands: None }))
}

/// LBA equals PBA over the whole medium.
pub(super) struct Identity {
    pub(super) blocks: Blocks,
    /// What lies between these cannot be written.
    pub(super) bands: Option<Bands>,
}

impl Identity {
    /// Whether a write stays within one band.
    #[inline]
    fn may_write(&self, r: &HostRequest) -> bool {
        let inside =
            |bands: &Bands| bands.around(Pba(r.lba.0)).is_some_and(|b| r.lba.0 + r.blocks.0 <= b.end);
        self.bands.as_ref().is_none_or(inside)
    }
}

impl TranslationLayer for Identity {
    fn host_blocks(&self) -> Blocks {
        self.blocks
    }

    fn reads_in_place(&self) -> bool {
        true
    }

    #[inline]
    fn submit(&mut self, _: SimTime, r: &HostRequest, plan: &mut Plan) {
        match r.op {
            HostOp::Read | HostOp::Write => {}
            HostOp::Flush | HostOp::Discard => return,
            _ => return plan.refuse(Refusal::Unsupported, r.lba),
        }
        // No branch for read or write where they are done alike: which of them comes cannot be predicted.
        let dir = if r.op == HostOp::Write { Dir::Write } else { Dir::Read };
        if self.bands.is_some() && dir == Dir::Write && !self.may_write(r) {
            return plan.refuse(Refusal::WriteProtected, r.lba);
        }
        plan.in_place(dir, Pba(r.lba.0), r.blocks);
    }

    /// What is refused is refused at once: a drive's buffer acknowledges what is admitted.
    fn admit(&mut self, r: &HostRequest) -> Result<Range<u64>, (Refusal, Lba)> {
        if r.op == HostOp::Write && !self.may_write(r) {
            return Err((Refusal::WriteProtected, r.lba));
        }
        Ok(r.span())
    }

    fn facts(&self) -> Facts<'_> {
        Facts { identity: true, bands: self.bands.as_ref(), ..Facts::default() }
    }

    #[inline]
    fn locate(&self, r: &HostRequest) -> Option<(Pba, Dir)> {
        match r.op {
            HostOp::Read => Some((Pba(r.lba.0), Dir::Read)),
            HostOp::Write => self.may_write(r).then_some((Pba(r.lba.0), Dir::Write)),
            _ => None,
        }
    }
}
