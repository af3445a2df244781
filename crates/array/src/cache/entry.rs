//! Building the caches that are asked for before an array.

use super::{Cached, Settings, destage_policies, pages, read_policies};
use crate::{Array, ArrayContext, MemberId, Ssd};
use smrlab_units::spec::{SpecError, Values};
use smrlab_units::{BLOCK_BYTES, Blocks, counted};

/// How large a cache is asked for.
pub(crate) fn asked(values: &Values, key: &str, host: Blocks) -> Blocks {
    values.given(key, |v, key| v.size(key, host)).unwrap_or_default()
}

/// Whether an SSD cache is asked for.
pub(crate) fn wanted(values: &Values) -> bool {
    ["ssd_read", "ssd_write"].iter().any(|key| wants(values, key))
}

/// Whether this one is, however few blocks it would have.
fn wants(values: &Values, key: &str) -> bool {
    asked(values, key, Blocks(1 << 40)) > Blocks::ZERO
}

/// The SSD that is needed beside an array with so large a space.
pub(crate) fn ssd(values: &Values, array: &dyn Array) -> Option<Ssd> {
    let host = array.host_blocks();
    let caches = if wanted(values) {
        asked(values, "ssd_read", host) + asked(values, "ssd_write", host)
    } else {
        Blocks::ZERO
    };
    let all = caches + array.journal_blocks();
    (all > Blocks::ZERO).then(|| {
        let rate = values.real("ssd_rate");
        let block_ns = (BLOCK_BYTES as f64 * 1e3 / rate).round() as u64;
        Ssd::new(values.time("ssd_latency"), block_ns, all)
    })
}

/// Puts the caches that are asked for before an array.
pub(crate) fn before(
    array: Box<dyn Array>,
    context: &ArrayContext<'_>,
    values: &Values,
    discards: bool,
) -> Result<Box<dyn Array>, SpecError> {
    if !wanted(values) {
        return Ok(array);
    }
    let host = array.host_blocks();
    let page = values.size("ssd_page", host).0;
    if page == 0 || page > pages::LARGEST {
        return Err(values.bad("ssd_page", "from one block to 64KiB"));
    }
    let pages = |key| match asked(values, key, host).0 / page {
        0 if wants(values, key) => {
            Err(values.bad(key, format!("a cache of at least a page of {}", counted(page, "block"))))
        }
        pages => Ok(pages),
    };
    let (read, write) = (pages("ssd_read")?, pages("ssd_write")?);
    let (high, low) = (values.share("ssd_high"), values.share("ssd_low"));
    if low > high {
        return Err(values.bad("ssd_low", "at most ssd_high"));
    }
    let group = values
        .given("ssd_group", |v, key| v.size(key, host))
        .or_else(|| array.group_blocks())
        .unwrap_or(Blocks(2048));
    let settings = Settings {
        ssd: MemberId(context.disks().len() as u32),
        base: array.journal_blocks().0,
        page,
        group: (group.0 / page).max(1),
        read,
        write,
        high: (write as f64 * high) as u64,
        low: (write as f64 * low) as u64,
        rate: values.text("ssd_control") == Some("rate"),
        depth: values.count("ssd_depth"),
        batch: values.count("ssd_batch"),
        round: values.on("ssd_round"),
        discards,
    };
    let read_policy = read_policies::named(values.text("ssd_read_policy").unwrap_or_default(), read);
    let (name, age) = (values.text("ssd_write_policy").unwrap_or_default(), values.count("ssd_age"));
    let destage_policy = destage_policies::named(name, age);
    Ok(Box::new(Cached::new(array, settings, read_policy, destage_policy)))
}
