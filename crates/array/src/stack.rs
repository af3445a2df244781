//! Stacks: what stands before and above a drive, from the host down, as one text: filters, arrays, a layer.
//!
//! `ssd-cache,write=1GiB / raid5,disks=5 / s-block` is the array `raid5,disks=5,ssd_write=1GiB` of drives with the layer
//! `s-block`. A filter stands before whatever comes below it, one drive too; each of its keys is a parameter of arrays.
//! `raid5,disks=5 / ssd-cache,write=1GiB / s-block` has an SSD before each drive: the array
//! `raid5,disks=5 / spanning,disks=1,ssd_write=1GiB`, whose members are arrays of one drive.

pub use crate::entry::BELOW;
use crate::layouts::single;
use crate::registry::ARRAYS;
use smrlab_units::spec::{SpecError, hint, nearest, split_item};

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

/// Whether a layer's text is a stack, perhaps one whose parts are not told apart.
pub fn is_stack(text: &str) -> bool {
    text.contains(BELOW) || runs_together(split_item(text).0)
}

/// Only layers in Python have a path for a name.
fn runs_together(name: &str) -> bool {
    name.contains('/') && !name.contains(':')
}

/// Parses `FILTER[,key=value...] / ... / ARRAY[,key=value...] / LAYER[,key=value...]`; each part may be missing, and below an
/// array may come filters and another array, which its members are.
///
/// # Errors
/// What comes below a layer, filters without a key, and keys that a filter does not have or that were given before.
pub fn parse(text: &str) -> Result<Stack, SpecError> {
    let (mut arrays, mut layer, mut filters) = (Vec::new(), None::<String>, String::new());
    for part in text.split(BELOW).map(str::trim) {
        let (name, pairs) = split_item(part);
        if name.is_empty() {
            return Err(SpecError::Other(format!("'{text}' names nothing in one of its parts")));
        }
        let wrong = |what: &str| Err(SpecError::Other(format!("'{part}' {what}")));
        if let Some(above) = &layer {
            let above = split_item(above).0;
            let known = ARRAYS.iter().map(|a| a.name).chain(FILTERS.iter().map(|f| f.name));
            let meant = hint(above, known);
            return wrong(&format!(
                "stands below '{above}', which is no array and no filter{meant}: a layer is the last part"
            ));
        }
        if runs_together(name) {
            return wrong("runs parts together: blanks stand before and behind each '/' between them");
        }
        if let Some(filter) = FILTERS.iter().find(|f| f.name == name) {
            if pairs.is_empty() {
                return wrong(&format!("does nothing by itself: it is {}", filter.summary));
            }
            for (key, value) in pairs {
                let parameter = filter.parameter(key)?;
                if split_item(&filters).1.iter().any(|(given, _)| *given == parameter) {
                    return wrong(&format!("gives {key}= once more to what stands below it"));
                }
                filters += &format!(",{parameter}={value}");
            }
        } else if ARRAYS.iter().any(|a| a.name == name) {
            if name == single::ENTRY.name && !filters.is_empty() {
                return wrong("has no filters before it: leave it out");
            }
            arrays.push(part.to_owned() + &std::mem::take(&mut filters));
        } else {
            layer = Some(part.to_owned());
        }
    }
    if !filters.is_empty() {
        arrays.push(format!("spanning,disks=1{filters}"));
    }
    if arrays.is_empty() {
        arrays.push(single::ENTRY.name.to_owned());
    }
    Ok(Stack { array: arrays.join(BELOW), layer })
}

impl Filter {
    /// The parameter of arrays that a key is.
    fn parameter(&self, key: &str) -> Result<String, SpecError> {
        if !self.keys.contains(&key) {
            let keys = self.keys.join(", ");
            let meant = nearest(key, self.keys.iter().copied()).map(|k| format!(" (did you mean '{k}'?)"));
            let meant = meant.unwrap_or_default();
            return Err(SpecError::Other(format!("{} has no '{key}'{meant}; it has {keys}", self.name)));
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
        let before_each = stack("raid5,disks=5 / spanning,disks=1,ssd_write=1GiB", "s-block");
        assert_eq!(parse("raid5,disks=5 / ssd-cache,write=1GiB / s-block").unwrap(), before_each);
        let between = stack("striped,timeout=3s / mirror,copies=2,bus=250", "cmr");
        assert_eq!(
            parse("timeout,after=3s / striped / bus,rate=250 / mirror,copies=2 / cmr").unwrap(),
            between
        );
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
        assert_eq!(
            says("cmr / raid5"),
            "'raid5' stands below 'cmr', which is no array and no filter: a layer is the last part"
        );
        // A name that was not written as it is called is not a layer's.
        let meant = "'rmw' stands below 'mirorr', which is no array and no filter (did you mean 'mirror'?): a layer is the last part";
        assert_eq!(says("striped / mirorr,disks=2 / rmw"), meant);
        assert!(says("ssd-cash,write=1GiB / raid5 / cmr").contains("(did you mean 'ssd-cache'?)"));
        assert!(says("ssd-cache,writes=1GiB / cmr").contains("did you mean 'write'?"));
        assert!(says("ssd-cache,write=1GiB / single / cmr").contains("leave it out"));
        for text in ["", " / ", "raid5 /  / cmr", " / cmr", "raid5 / "] {
            assert!(says(text).contains("names nothing in one of its parts"), "{text}");
        }
        assert!(says("ssd-cache / cmr").contains("does nothing by itself: it is caches on an SSD"));
        assert!(says("dm-zoned/zoned").contains("blanks stand before and behind each '/'"));
        assert!(says("bus / raid5 / cmr").contains("rate= in MB/s"));
        assert!(
            says("ssd-cache,write=1GiB / ssd-cache,read=1GiB,write=2GiB / cmr").contains("write= once more")
        );
        assert!(parse("ssd-cache,write=1GiB / ssd-cache,read=1GiB / cmr").is_ok());
    }
}
