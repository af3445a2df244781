//! The medium as layers with regions of their own see it: stretches of consecutive PBAs in which writes harm only what
//! lies behind them, and how far that reaches.

use crate::parts::ring::Stretch;
use smrlab_disk::{DriveModel, Interference, TrackNo};
use smrlab_units::{Blocks, Pba};

/// A drive's stretches.
#[derive(Clone, Debug)]
pub struct MediumSpace {
    /// One for each stroke, without what must stay free at its end.
    pub stretches: Vec<Stretch>,
    /// How many consecutive PBAs a write may damage from a written block on, that block included (`I_b`).
    pub reach: Blocks,
    /// The blocks that count as the drive's size; the rest of the medium is there for guards.
    pub counted: Blocks,
}

impl MediumSpace {
    /// The stretches of `drive`. A head of `W` tracks reaches at most to the end of the `W - 1` tracks behind the written
    /// one (of as many cylinders, where PBAs go round the surfaces), and one further where damage spreads along tracks.
    /// The random-access zone at the beginning is left out.
    pub fn of(drive: &DriveModel) -> Self {
        let geometry = drive.geometry();
        let set_aside = drive.spec().bands.random_access;
        let (stretches, reach) = match drive.interference() {
            Interference::Blocks(p) => {
                let first = Pba(p.from);
                (vec![Stretch { first, blocks: Blocks(geometry.blocks().0 - first.0) }], p.reach)
            }
            Interference::Physical(p) => {
                let longest = geometry.zones().map(|z| u64::from(z.sectors)).max().unwrap_or(1);
                let width = drive.head_width() + u64::from(p.phi_cw > 0 || p.phi_ccw > 0);
                let conventional = drive.head_width() == 1;
                let mut reach = 1;
                let mut out = Vec::new();
                for (s, aside) in geometry.set_aside(set_aside) {
                    let first = geometry.track_start(TrackNo(s.first.0 + aside * s.unit));
                    let end = geometry.track_start(TrackNo(s.first.0 + s.tracks));
                    if !conventional {
                        reach = reach.max(longest * s.unit * width);
                    }
                    out.push(Stretch { first, blocks: end - first });
                }
                (out, reach)
            }
        };
        let cut = |s: Stretch| Stretch { blocks: Blocks(s.blocks.0.saturating_sub(reach - 1)), ..s };
        Self {
            stretches: stretches.into_iter().map(cut).filter(|s| s.blocks.0 > 0).collect(),
            reach: Blocks(reach),
            counted: drive.counted_blocks(),
        }
    }

    /// Blocks that must stay free behind a region so that it does not harm the next one.
    pub fn guard(&self) -> Blocks {
        Blocks(self.reach.0 - 1)
    }
}
