//! Several runs at once, each on its own thread; the engine itself has none.

use crate::control::Control;
use crate::error::RunError;
use crate::resolve::Resolved;
use crate::run::{RunResult, run};
use crate::spec::Spec;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One of several runs.
#[derive(Debug)]
pub struct Job {
    /// What to run.
    pub spec: Spec,
    /// Where its logs go, where there are any.
    pub logs: Option<PathBuf>,
    /// Its cancel flag and progress.
    pub control: Control,
}

impl Job {
    /// A run without logs.
    pub fn new(spec: Spec) -> Self {
        Self { spec, logs: None, control: Control::new() }
    }
}

/// The specifications of a comparison: `base` with each of `layers`, all within the smallest host space among them, so
/// that all see the same requests. `resolve` is told the number of the layer.
///
/// # Errors
/// All faults of all of them; those of a layer name it.
pub fn compared(
    base: &Spec,
    layers: &[String],
    resolve: &dyn Fn(usize, &Spec) -> Result<Resolved, RunError>,
) -> Result<Vec<Spec>, RunError> {
    let mut faults = Vec::new();
    let mut specs = Vec::new();
    let mut least = u64::MAX;
    for (i, layer) in layers.iter().enumerate() {
        let spec = Spec { layer: layer.clone(), ..base.clone() };
        match resolve(i, &spec) {
            Ok(run) => least = least.min(run.host.0),
            Err(RunError::Spec(more)) => {
                more.into_iter().for_each(|f| {
                    if !faults.contains(&f) {
                        faults.push(f);
                    }
                });
            }
            Err(e) => return Err(e),
        }
        specs.push(spec);
    }
    if layers.is_empty() {
        return Err(RunError::field("layer", "name at least one layer to compare"));
    }
    if !faults.is_empty() {
        return Err(RunError::Spec(faults));
    }
    specs.iter_mut().for_each(|s| s.host_blocks = Some(least));
    Ok(specs)
}

/// Does all jobs, at most `threads` at a time; results come in the order of the jobs. A failed job does not stop others.
pub fn run_all(jobs: &[Job], threads: usize) -> Vec<Result<RunResult, RunError>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<RunResult, RunError>>>> =
        jobs.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(i) else { return };
                    let result = run(&job.spec, &job.control, job.logs.as_deref());
                    if let Ok(mut slot) = results[i].lock() {
                        *slot = Some(result);
                    }
                }
            });
        }
    });
    results
        .into_iter()
        .map(|slot| slot.into_inner().ok().flatten().unwrap_or(Err(RunError::Interrupted)))
        .collect()
}
