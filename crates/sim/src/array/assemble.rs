//! The drives of an array and the layout that joins them, from a user's words.

use smrlab_array::{Array, ArrayContext, Chosen, registry};
use smrlab_drive::assemble::BuildLayer;
use smrlab_drive::{Assembled, Wanted, assemble};
use smrlab_units::Blocks;
use smrlab_units::problems::Problems;

/// An array that can be started; its first drive is the run's own.
pub struct ArrayRun {
    /// What was asked for.
    pub chosen: Chosen,
    /// The state machine.
    pub array: Box<dyn Array>,
    /// The other drives, spares last.
    pub others: Vec<Assembled>,
}

/// Builds the array of a run on drives like `first`; `None`: one drive alone, or faults were noted.
pub(crate) fn assemble_array(
    text: &str,
    first: Option<&Assembled>,
    wanted: &Wanted<'_>,
    read: impl Fn(&str) -> Result<String, String> + Copy,
    build: BuildLayer<'_>,
    faults: &mut Problems,
) -> Option<ArrayRun> {
    let chosen = faults.keep("array", registry::parse(text))?;
    let first = first.filter(|_| !chosen.is_single())?;
    let mut others = Vec::new();
    for i in 1..u64::from(chosen.disks + chosen.spares) {
        let wanted = Wanted { seed: wanted.seed + i, ..*wanted };
        others.push(assemble(&wanted, read, build, faults)?);
    }
    let all = std::iter::once(first).chain(&others).take(chosen.disks as usize);
    let sizes: Vec<Blocks> = all.map(|d| d.built.layer.host_blocks()).collect();
    let context = ArrayContext::new(&sizes).seeded(wanted.seed);
    let array = faults.keep("array", chosen.build(&context))?;
    Some(ArrayRun { chosen, array, others })
}
