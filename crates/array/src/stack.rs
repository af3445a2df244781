//! Stacks: what stands before and above a drive, from the host down, as one text: filters, an array, a layer.
//!
//! `ssd-cache,write=1GiB / raid5,disks=5 / s-block` is the array `raid5,disks=5,ssd_write=1GiB` of drives with the layer
//! `s-block`. A filter stands before whatever comes below it, one drive too; each of its keys is a parameter of arrays.

use crate::layouts::single;
use crate::registry::ARRAYS;
use smrlab_units::spec::{SpecError, nearest, split_item};

/// Something that stands before an array or a drive.
pub struct Filter {
    /// The name that users write.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What its keys begin with as parameters of an array.
    prefix: &'static str,
    /// Its keys.
    pub keys: &'static [&'static str],
}

/// Every filter.
pub static FILTERS: &[Filter] = &[
    Filter {
        name: "ssd-cache",
        summary: "caches on an SSD: read=, write= and what else arrays know as ssd_",
        prefix: "ssd_",
        keys: &[
            "read",
            "write",
            "latency",
            "rate",
            "page",
            "group",
            "read_policy",
            "write_policy",
            "high",
            "low",
            "control",
            "depth",
            "batch",
            "round",
            "age",
        ],
    },
    Filter {
        name: "bus",
        summary: "one bus that all drives share: rate= in MB/s",
        prefix: "",
        keys: &["rate"],
    },
    Filter {
        name: "timeout",
        summary: "the host's command timeout: after= a time",
        prefix: "",
        keys: &["after"],
    },
];

/// A stack as the two texts that arrays and layers are built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The array with its filters.
    pub array: String,
    /// The layer, where the stack ends in one.
    pub layer: Option<String>,
}

/// Parses `FILTER[,key=value...] / ... / ARRAY[,key=value...] / LAYER[,key=value...]`; each part may be missing.
///
/// # Errors
/// A filter below an array, a second array, what comes below a layer, and keys that a filter does not have.
pub fn parse(text: &str) -> Result<Stack, SpecError> {
    let (mut array, mut layer, mut filters) = (None, None, String::new());
    for part in text.split(" / ").map(str::trim).filter(|part| !part.is_empty()) {
        let (name, pairs) = split_item(part);
        let wrong = |what: &str| Err(SpecError::Other(format!("'{part}' {what}")));
        if layer.is_some() {
            return wrong("stands below a layer: the layer is the last part");
        }
        if let Some(filter) = FILTERS.iter().find(|f| f.name == name) {
            if array.is_some() {
                return wrong(
                    "stands below an array: a filter comes before the array, or before a single drive",
                );
            }
            for (key, value) in pairs {
                filters += &format!(",{}={value}", filter.parameter(key)?);
            }
        } else if ARRAYS.iter().any(|a| a.name == name) {
            if array.replace(part).is_some() {
                return wrong("is a second array: arrays of arrays cannot be run");
            }
        } else {
            layer = Some(part.to_owned());
        }
    }
    let one = if filters.is_empty() { single::ENTRY.name } else { "spanning,disks=1" };
    let array = array.unwrap_or(one);
    if array == single::ENTRY.name && !filters.is_empty() {
        return Err(SpecError::Other("'single' has no filters before it: leave it out".to_owned()));
    }
    Ok(Stack { array: format!("{array}{filters}"), layer })
}

impl Filter {
    /// The parameter of arrays that a key is.
    fn parameter(&self, key: &str) -> Result<String, SpecError> {
        if !self.keys.contains(&key) {
            let keys = self.keys.join(", ");
            let meant = nearest(key, self.keys.iter().copied()).map(|k| format!(", did you mean '{k}'?"));
            let meant = meant.unwrap_or_default();
            return Err(SpecError::Other(format!("{} has no '{key}'{meant} It has {keys}", self.name)));
        }
        // The bus and the timeout are one parameter each.
        Ok(if self.prefix.is_empty() { self.name.to_owned() } else { format!("{}{key}", self.prefix) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(array: &str, layer: &str) -> Stack {
        Stack { array: array.into(), layer: (!layer.is_empty()).then(|| layer.to_owned()) }
    }

    #[test]
    fn a_stack_is_an_array_and_a_layer() {
        let all = "ssd-cache,write=1GiB,high=80% / bus,rate=250 / raid5,disks=5 / s-block,cache=2%";
        let whole = stack("raid5,disks=5,ssd_write=1GiB,ssd_high=80%,bus=250", "s-block,cache=2%");
        assert_eq!(parse(all).unwrap(), whole);
        let before_one = stack("spanning,disks=1,ssd_read=64MiB", "s-block");
        assert_eq!(parse("ssd-cache,read=64MiB / s-block").unwrap(), before_one);
        assert_eq!(parse("dvs").unwrap(), stack("dvs", ""));
        assert_eq!(parse("python:/a/b.py:C").unwrap(), stack("single", "python:/a/b.py:C"));
    }

    #[test]
    fn every_key_of_a_filter_is_a_parameter_of_arrays() {
        let known = ARRAYS.iter().find(|a| a.name == "striped").unwrap().parameters();
        for filter in FILTERS {
            for key in filter.keys {
                let parameter = filter.parameter(key).unwrap();
                assert!(known.iter().any(|p| p.name == parameter), "{} {key}: {parameter}", filter.name);
            }
        }
        let cache = known.iter().filter(|p| p.name.starts_with("ssd_")).count();
        assert_eq!(FILTERS[0].keys.len(), cache);
    }

    #[test]
    fn what_cannot_stand_so_is_refused() {
        let says = |text: &str| parse(text).unwrap_err().to_string();
        assert!(says("raid5 / ssd-cache,write=1GiB / cmr").contains("before the array"));
        assert!(says("raid5 / striped / cmr").contains("a second array"));
        assert!(says("cmr / raid5").contains("below a layer"));
        assert!(says("ssd-cache,writes=1GiB / cmr").contains("did you mean 'write'?"));
        assert!(says("ssd-cache,write=1GiB / single / cmr").contains("leave it out"));
    }
}
