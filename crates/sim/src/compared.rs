//! Several runs that are compared.

use crate::error::{Result, RunError};
use crate::prefill::without_cache;
use crate::resolve::Resolved;
use crate::spec::Spec;
use smrlab_units::problems::Problems;

/// The specifications of a comparison: `base` with each of `layers`, all within the smallest host space among them, so
/// that all see the same requests. `resolve` is told the number of the layer.
///
/// # Errors
/// All faults of all of them; those of a layer name it.
pub fn compared(
    base: &Spec,
    layers: &[String],
    resolve: &dyn Fn(usize, &Spec) -> Result<Resolved>,
) -> Result<Vec<Spec>> {
    let mut faults = Problems::default();
    let mut specs = Vec::new();
    let mut least = u64::MAX;
    for (i, layer) in layers.iter().enumerate() {
        let mut spec = Spec { layer: layer.clone(), ..base.clone() };
        if let Some(nothing) = spec.prefill.as_deref().and_then(without_cache) {
            let without = Spec { prefill: Some(nothing.clone()), ..spec.clone() };
            if resolve(i, &without).is_ok_and(|run| run.drive.built.layer.facts().cache.is_none()) {
                spec.prefill = Some(nothing);
            }
        }
        match resolve(i, &spec) {
            Ok(run) => least = least.min(run.host.0),
            Err(RunError::Spec(more)) => {
                let more = more.0.into_iter().filter(|f| !faults.0.contains(f)).collect::<Vec<_>>();
                faults.0.extend(more);
            }
            Err(e) => return Err(e),
        }
        specs.push(spec);
    }
    if layers.is_empty() {
        return Err(RunError::field("layer", "name at least one layer to compare"));
    }
    faults.finish().map_err(RunError::Spec)?;
    specs.iter_mut().for_each(|s| s.host_blocks = Some(least));
    Ok(specs)
}
