//! Requests as fast as the drive takes them.

use super::Generator;
use super::uniform::Uniform;

/// The registry entry.
pub(super) const GENERATOR: Generator = Generator {
    name: "back-to-back",
    summary: "uniform requests that all arrive at once: the drive is never idle",
    reference: "Back-to-back load (Cassuto et al., MSST 2010, on drops of performance). With closed-loop arrivals the times do not count.",
    params: &[],
    defaults: &[("interarrival", "0"), ("write", "100%")],
    make: |_, _| Ok(Box::new(Uniform)),
};
