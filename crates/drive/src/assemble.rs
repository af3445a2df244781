//! From what a user wrote to a working drive: the one place, for simulated and served drives and members of arrays alike.

use crate::sched::{self, Chosen};
use crate::{Drive, DriveSetup};
use smrlab_disk::model::ControllerSpec;
use smrlab_disk::{DriveModel, Mechanics, Model};
use smrlab_stl::{BuildContext, Built, Metadata};
use smrlab_units::Blocks;
use smrlab_units::problems::Problems;
use smrlab_units::spec::{SpecError, Values, split_item};
use std::sync::Arc;

/// What a drive is to be, as users write it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// A preset's name with overrides, or the path of a drive file.
    pub drive: &'a str,
    /// `NAME[,key=value...]`.
    pub layer: &'a str,
    /// `NAME[,depth=N][,max_wait=T]`.
    pub scheduler: &'a str,
    /// `nv` or `media`.
    pub metadata: &'a str,
    /// Which parts of the mechanics count; `None`: what the drive file says.
    pub mechanics: Option<&'a str>,
    /// Blocks of medium to which the drive is shortened.
    pub medium: Option<Blocks>,
    /// Seed of whatever the layer draws.
    pub seed: u64,
}

/// How a layer is built from its text: from the registry, or one of the caller's own.
pub type BuildLayer<'a> = &'a dyn Fn(&str, &BuildContext) -> Result<Built, SpecError>;

/// A drive that was assembled.
pub struct Assembled {
    /// The drive's text with every override; a drive file's path.
    pub drive: String,
    /// The layer, and the drive model on whose medium it works.
    pub built: Built,
    /// Which parts of the mechanics count.
    pub model: Model,
    /// The mechanics.
    pub mechanics: Mechanics,
    /// Who is served next.
    pub scheduler: Chosen,
    /// The drive's own overheads, bus and buffer; none where nothing takes time.
    pub controller: Option<ControllerSpec>,
}

impl Assembled {
    /// The drive at work, with what its callers need, and the scheduler.
    pub fn start(self, wants_data: bool, wants_records: bool) -> (Drive, Chosen) {
        let stable_locations = self.built.capabilities.stable_location;
        let setup = DriveSetup { wants_data, wants_records, stable_locations };
        (Drive::new(self.built.layer, self.mechanics, setup).behind(self.controller), self.scheduler)
    }
}

/// Assembles a drive, or notes everything that stands against it, each fault under the name of its field. `read` gives the
/// text of a drive file.
pub fn assemble(
    wanted: &Wanted<'_>,
    read: impl Fn(&str) -> Result<String, String>,
    build: BuildLayer<'_>,
    problems: &mut Problems,
) -> Option<Assembled> {
    let scheduler = problems.keep("scheduler", sched::parse(wanted.scheduler));
    let media = problems.choice("metadata", wanted.metadata, &["nv", "media"]) == Some(1);
    let metadata = if media { Metadata::Media } else { Metadata::Nv };
    let own_model = wanted.mechanics.map(|name| {
        problems.choice("mechanics", name, Model::NAMES);
        Model::named(name)
    });
    let Some(model) = drive_model(wanted, read, problems) else {
        problems.keep("layer", layer_name(wanted.layer));
        return None;
    };
    // A drive file's path is kept: its name alone would not find it again.
    let preset = smrlab_disk::DRIVES.iter().any(|d| d.name == split_item(wanted.drive).0);
    let drive = if preset { model.resolved() } else { wanted.drive.to_owned() };
    let context = BuildContext { seed: wanted.seed, metadata, ..BuildContext::new(Arc::new(model)) };
    let built = problems.keep("layer", build(wanted.layer, &context))?;
    let scheduler = scheduler?;
    if scheduler.entry.reorders() && !built.capabilities.locates {
        let (s, l) = (scheduler.entry.name, built.entry.name);
        problems
            .add("scheduler", format!("{l} cannot tell where requests start, which {s} asks for: use fcfs"));
    }
    let model = own_model.flatten().unwrap_or(built.drive.spec().model);
    let mechanics = built.drive.mechanics(Some(model));
    let mechanics = mechanics.map_err(|e| problems.add("drive", e)).ok()?;
    let controller = built.drive.spec().controller.filter(|_| model != Model::Instant);
    Some(Assembled { drive, built, model, mechanics, scheduler, controller })
}

fn drive_model(
    wanted: &Wanted<'_>,
    read: impl Fn(&str) -> Result<String, String>,
    problems: &mut Problems,
) -> Option<DriveModel> {
    let model = problems.keep("drive", smrlab_disk::model::load(wanted.drive, read))?;
    match wanted.medium {
        Some(blocks) => model.shorten(blocks).map_err(|e| problems.add("size", e)).ok(),
        None => Some(model),
    }
}

/// Checks as much of a layer as can be checked without a drive.
fn layer_name(text: &str) -> Result<(), SpecError> {
    let (entry, text) = smrlab_stl::registry::described(text)?;
    let (_, pairs) = split_item(&text);
    Values::check(entry.name, entry.params, &pairs).map(|_| ())
}
