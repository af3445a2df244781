//! What the registry entries of layouts with parity share.

use super::log;
use super::method::{Method, Preference};
use super::rows::{Rotation, Rows};
use super::{Parity, ParityOptions};
use crate::entry::{ArrayContext, BuildResult};
use crate::layouts::rebuild::RebuildSettings;
use smrlab_units::Blocks;
use smrlab_units::spec::{Kind, Param, SpecError, Values};

/// See [`Rotation`].
pub const LAYOUT: Param =
    Param::new("layout", Kind::Choice(Rotation::NAMES), "left-asymmetric").doc("how parity goes round");
/// See [`Preference`].
pub const WRITE: Param =
    Param::new("write", Kind::Choice(&["cheapest", "modify", "reconstruct"]), "cheapest").doc(
        "how a part of a row is written: read-modify-write, reconstruct-write, or the one with fewer reads",
    );
/// See [`ParityOptions::intent`].
pub const INTENT: Param = Param::new("intent", Kind::Switch, "off")
    .doc("rows that are being written are remembered, and resynchronised after a power cut");
/// See [`ParityOptions::journal`].
pub const JOURNAL: Param = Param::new("journal", Kind::Switch, "off").doc(
    "rows are on an SSD before their drives are written, so that a power cut and a lost drive together \
     lose nothing",
);

/// The shape that a user wants, and its options; `rows` are left on each disk for rows of `chunk`.
pub(crate) fn common(
    context: &ArrayContext<'_>,
    values: &Values,
    (rotation, parities): (Rotation, u64),
    chunk: Blocks,
    rows: u64,
) -> Result<(Rows, ParityOptions), SpecError> {
    let disks = context.disks().len() as u64;
    let preference = match values.text("write") {
        Some("modify") => Preference::Always(Method::Modify),
        Some("reconstruct") => Preference::Always(Method::Reconstruct),
        _ => Preference::Cheapest { logged: false },
    };
    let (intent, journal) = (values.on("intent"), values.on("journal"));
    if journal && disks * chunk.0 > u64::from(u32::MAX) {
        return Err(values.bad("chunk", "with journal=on rows of less than 2 TiB"));
    }
    let rebuild = RebuildSettings::of(context, values, chunk, rows)?;
    let rows = Rows { chunk: chunk.0, disks, parities, rotation, rows };
    Ok((
        rows,
        ParityOptions { preference, rebuild, intent, journal, log: log::LogSettings::OFF, mixed: false },
    ))
}

/// The array of this shape.
pub fn built(rows: Rows, options: ParityOptions) -> BuildResult {
    Ok(Box::new(Parity::new(rows, options)))
}
