//! The specification of one run: the same fields in a TOML file, on the command line and in Python.
//!
//! Every field is checked on its own, so that all faults are reported at once, each with its field.

use crate::error::{Result, RunError};
use serde::Serialize;
use serde_json::{Map, Value};
use smrlab_units::parse_count;
use smrlab_units::problems::Problems;
use smrlab_units::spec::hint;

/// A field of [`Spec`] for `explain` and the docs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it takes: "a text", "texts", "a number", "a count" or "a switch".
    pub accepts: &'static str,
    /// Default as a user would write it; empty: none.
    pub default: &'static str,
    /// What it is, with unit and accepted values.
    pub doc: &'static str,
}

macro_rules! spec {
    ($($name:ident: $type:ty = $default:literal, $doc:literal;)*) => {
        /// What a run is made of; texts have the forms that the command line takes.
        // Brackets in what fields say are optional parts, not links.
        #[allow(rustdoc::broken_intra_doc_links)]
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct Spec {
            $(#[doc = $doc] #[serde(skip_serializing_if = "FromValue::is_absent")] pub $name: $type,)*
        }

        /// All fields.
        pub const FIELDS: &[Field] = &[$(Field { name: stringify!($name), accepts: <$type as FromValue>::ACCEPTS, default: $default, doc: $doc },)*];

        impl Spec {
            /// Reads the fields of a TOML or JSON table.
            ///
            /// # Errors
            /// All unknown fields, with the nearest known one, and all values of a wrong type.
            pub fn from_map(mut map: Map<String, Value>) -> Result<Self> {
                let mut faults = Problems::default();
                let spec = Self {
                    $($name: take(&mut map, stringify!($name), $default, &mut faults),)*
                };
                map.keys().for_each(|key| faults.add(key, unknown(key)));
                faults.finish().map_err(RunError::Spec)?;
                Ok(spec)
            }
        }
    };
}

spec! {
    trace: Vec<String> = "", "the trace, or several: PATH[:FORMAT[,k=v...]], '-' for stdin, or synth:NAME[,k=v...]";
    drive: String = "modern-7200", "a preset's name, or the path of a drive file";
    layer: String = "cmr", "the translation layer: NAME[,k=v...]";
    array: String = "single", "the array: NAME[,k=v...]; 'single' is one drive";
    stack: Vec<String> = "", "array and layer in one: what stands above the drives, from the host down, as 'ssd-cache,write=1GiB / raid5,disks=5 / s-block' or a list of these parts";
    arrivals: String = "trace", "when requests arrive: 'trace': at the times of the trace; 'closed[,depth=N][,think=T]': each request when another one is completed; 'pauses': each when the one before it is completed, after as long as lies between the two in the trace";
    scheduler: String = "fcfs", "order of waiting requests: fcfs, sstf, look, c-look or sptf, with [,depth=N][,max_wait=T]";
    prefill: Option<String> = "", "what is written before the run and takes no time: SHARE[,order=sequential|random][,of=space|cache], or 'read': what the trace reads before it writes it";
    wrap: Option<String> = "", "take each LBA modulo 'capacity' (the host's space) or 'prefilled' (its prefilled part)";
    from: Option<String> = "", "leave out requests that arrive before this time of the trace; it becomes time 0";
    until: Option<String> = "", "leave out requests that arrive at this time of the trace or later";
    filter: Option<String> = "", "take only requests that fit all of this: op=write,device=NAME,lba=FROM..TO,size=FROM..TO, as in lba=0..1000blk,size=4KiB..64KiB";
    scale_time: f64 = "1", "multiply arrival times by this: above 1 is slower";
    limit: Option<u64> = "", "take only the first N requests of the trace";
    skip_bad: u64 = "0", "pass over up to N bad lines of the trace";
    address_space: String = "overlap", "several traces: 'overlap' keeps their LBAs, 'concat' puts them side by side";
    join: String = "time", "several traces: time (merged by arrival), chain[,gap=T] (one after the other) or bursts[,requests=N] (in turn)";
    burst: Option<u64> = "", "several traces: N requests of one, then of another, drawn with the seed; short for join=bursts,requests=N";
    seed: u64 = "1", "seed of all random choices";
    verify_media: bool = "false", "check data: follow what every block of the medium holds, and fail where the host would read anything else";
    requests: bool = "false", "write requests.parquet: one row for each host request, with where its time went";
    media_log: bool = "false", "write media.parquet: one row for each media operation";
    window: Option<String> = "", "width of the timeline's windows, doubled until they are at most 1048576, and 4194304 of all drives of an array; without it at most 2000 windows";
    stall: String = "500ms", "a request whose response takes longer than this is a stall";
    adjusted_blocks: u64 = "1000", "blocks in an adjusted operation (Cassuto)";
    adjusted_rule: String = "ceil", "adjusted operations of n blocks: 'ceil' or 'floor+1'";
    mechanics: Option<String> = "", "what takes time: full, no-rotation or instant; without it as the drive's file says";
    metadata: String = "nv", "where maps and pointers are kept: 'nv' survives at no cost, 'media' is written and costs time";
    from_state: Option<String> = "", "begin with the state in this file (of --save-state or 'device state')";
    save_state: Option<String> = "", "write the state at the end of the run into this file";
    host_blocks: Option<u64> = "", "use only the first N blocks of the host's space (compare: the smallest space of all runs)";
}

/// A field's type: what it takes from a table. Numbers and switches may be written as text, as on a command line.
trait FromValue: Sized {
    /// See [`Field::accepts`].
    const ACCEPTS: &str;
    fn from_value(v: &Value) -> Result<Self, &'static str>;
    fn default_from(text: &str) -> Self;
    /// Whether it need not be shown.
    fn is_absent(&self) -> bool {
        false
    }
}

impl FromValue for String {
    const ACCEPTS: &str = "a text";
    fn from_value(v: &Value) -> Result<Self, &'static str> {
        match v {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) => Err("a text: put it in quotes"),
            _ => Err("a text"),
        }
    }
    fn default_from(text: &str) -> Self {
        text.to_owned()
    }
}

/// Tables such as `{synth = "uniform", requests = "10k"}` and `{idle = "10min"}` as the text of a workload in phases.
fn phases(tables: &[Value]) -> Result<String, &'static str> {
    const WRONG: &str =
        "tables of a workload in phases: each has one of synth, idle, fill, burst, probe, and parameters";
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let mut parts = Vec::new();
    for table in tables {
        let fields = table.as_object().ok_or(WRONG)?;
        let kinds = ["synth", "idle", "fill", "burst", "probe"];
        let mut named = fields.iter().filter(|(k, _)| kinds.contains(&k.as_str()));
        let ((kind, value), None) = (named.next().ok_or(WRONG)?, named.next()) else { return Err(WRONG) };
        let mut arguments: Vec<String> =
            fields.iter().filter(|(k, _)| *k != kind).map(|(k, v)| format!("{k}={}", text(v))).collect();
        let name = if kind == "synth" {
            text(value)
        } else {
            arguments.insert(0, text(value));
            kind.clone()
        };
        parts.push(format!("{name}({})", arguments.join(",")));
    }
    Ok(format!("synth:phases,of={}", parts.join(";")))
}

impl FromValue for Vec<String> {
    const ACCEPTS: &str = "texts";
    fn from_value(v: &Value) -> Result<Self, &'static str> {
        match v {
            Value::Array(all) if !all.is_empty() && all.iter().all(Value::is_object) => {
                return phases(all).map(|text| vec![text]);
            }
            Value::Array(all) => all.iter().map(String::from_value).collect(),
            one => String::from_value(one).map(|s| vec![s]),
        }
        .map_err(|_| "a text, a list of texts, or tables of phases")
    }
    fn default_from(_: &str) -> Self {
        Vec::new()
    }
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl FromValue for f64 {
    const ACCEPTS: &str = "a number";
    fn from_value(v: &Value) -> Result<Self, &'static str> {
        let number = v.as_f64().or_else(|| v.as_str()?.parse().ok());
        number.filter(|x: &f64| x.is_finite()).ok_or("a number such as 0.5 or 20")
    }
    fn default_from(text: &str) -> Self {
        text.parse().unwrap_or_default()
    }
}

impl FromValue for u64 {
    const ACCEPTS: &str = "a count";
    fn from_value(v: &Value) -> Result<Self, &'static str> {
        let text = |v: &Value| parse_count(v.as_str()?).ok();
        // A number such as 1e5 is a real one in TOML and JSON.
        let real =
            |v: &Value| v.as_f64().filter(|x| x.fract() == 0.0 && (0.0..9e15).contains(x)).map(|x| x as u64);
        v.as_u64().or_else(|| real(v)).or_else(|| text(v)).ok_or("a whole number from 0, below 2^64")
    }
    fn default_from(text: &str) -> Self {
        parse_count(text).unwrap_or_default()
    }
}

impl FromValue for bool {
    const ACCEPTS: &str = "a switch";
    fn from_value(v: &Value) -> Result<Self, &'static str> {
        match v {
            Value::Bool(b) => Ok(*b),
            Value::String(s) if s == "true" || s == "on" => Ok(true),
            Value::String(s) if s == "false" || s == "off" => Ok(false),
            _ => Err("true or false"),
        }
    }
    fn default_from(text: &str) -> Self {
        text == "true"
    }
}

impl<T: FromValue> FromValue for Option<T> {
    const ACCEPTS: &str = T::ACCEPTS;
    fn from_value(v: &Value) -> Result<Self, &'static str> {
        if v.is_null() { Ok(None) } else { T::from_value(v).map(Some) }
    }
    fn default_from(_: &str) -> Self {
        None
    }
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// Counts of which 0 is none.
const FROM_ONE: [&str; 4] = ["limit", "burst", "adjusted_blocks", "host_blocks"];

fn take<T: FromValue>(map: &mut Map<String, Value>, name: &str, default: &str, faults: &mut Problems) -> T {
    let Some(value) = map.remove(name) else { return T::default_from(default) };
    T::from_value(&value).unwrap_or_else(|accepted| {
        let accepted =
            if FROM_ONE.contains(&name) { accepted.replace("from 0", "from 1") } else { accepted.into() };
        faults.add(name, format!("{value} is not accepted: {accepted}"));
        T::default_from(default)
    })
}

fn unknown(key: &str) -> String {
    let names = || FIELDS.iter().map(|f| f.name);
    let known = names().collect::<Vec<_>>().join(", ");
    format!("there is no such field{}; known: {known}", hint(key, names()))
}

/// Whether something of it is what JSON cannot say: a date, infinity, what is no number.
fn no_value(v: &toml::Value) -> bool {
    match v {
        toml::Value::Datetime(_) => true,
        toml::Value::Float(x) => !x.is_finite(),
        toml::Value::Array(list) => list.iter().any(no_value),
        toml::Value::Table(table) => table.values().any(no_value),
        _ => false,
    }
}

impl Spec {
    /// A run of `trace` on `drive` with `layer`, everything else by default.
    pub fn new(trace: &str, drive: &str, layer: &str) -> Self {
        let text = |s: &str| Value::String(s.to_owned());
        let fields = [("trace", text(trace)), ("drive", text(drive)), ("layer", text(layer))];
        let map = fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        Self::from_map(map).unwrap_or_default()
    }

    /// From the text of a TOML file.
    ///
    /// # Errors
    /// Text that is not TOML, with its line, and everything that [`Spec::from_map`] refuses.
    pub fn from_toml(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            RunError::field(format!("line {line}"), e.message())
        })?;
        if let Some((field, value)) = table.iter().find(|(_, v)| no_value(v)) {
            return Err(RunError::field(
                field,
                format!("{value} is not accepted: a text, a number, true or false"),
            ));
        }
        match serde_json::to_value(table) {
            Ok(Value::Object(map)) => Self::from_map(map),
            _ => Err(RunError::field("file", "it is not a table of fields")),
        }
    }

    /// From JSON, as Python sends it.
    ///
    /// # Errors
    /// Text that is not a JSON object, and everything that [`Spec::from_map`] refuses.
    pub fn from_json(text: &str) -> Result<Self> {
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Self::from_map(map),
            Ok(_) => Err(RunError::field("spec", "it is not a JSON object")),
            Err(e) => Err(RunError::field("spec", e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_are_told_at_once_with_their_fields() {
        let e =
            Spec::from_toml("trase = 'x'\nseed = -1\nscale_time = 'fast'\nverify_media = 1\n").unwrap_err();
        let text = e.to_string();
        for part in [
            "trase: there is no such field (did you mean 'trace'?)",
            "seed: -1 is not accepted: a whole number from 0",
            "scale_time: \"fast\" is not accepted: a number",
            "verify_media: 1 is not accepted: true or false",
        ] {
            assert!(text.contains(part), "{part}\nin\n{text}");
        }
        assert_eq!(e.kind(), crate::error::Kind::Input);
        // What is too large is a whole number from 0, too.
        let e =
            Spec::from_json(&serde_json::json!({"seed": "18446744073709551616"}).to_string()).unwrap_err();
        assert!(e.to_string().ends_with("a whole number from 0, below 2^64"), "{e}");
    }

    /// A negative number is told the same as 0 is.
    #[test]
    fn a_count_of_which_0_is_none_begins_with_1() {
        for name in FROM_ONE {
            let e = Spec::from_json(&serde_json::json!({name: "-1"}).to_string()).unwrap_err().to_string();
            assert_eq!(e, format!("{name}: \"-1\" is not accepted: a whole number from 1, below 2^64"));
        }
    }

    #[test]
    fn broken_toml_names_its_line() {
        let e = Spec::from_toml("seed = 1\nlayer = [\n").unwrap_err().to_string();
        assert!(e.starts_with("line "), "{e}");
    }

    /// Of TOML the line is told in which it is, counted from 1 on; of JSON that it is no object.
    #[test]
    fn what_is_no_table_says_where() {
        for (text, begin) in [
            ("= 3\n", "line 1: "),
            ("seed = 1\nlayer = rmw\n", "line 2: "),
            ("seed = 1\n\n# a note\nlayer = = 'rmw'\nlimit = 3\n", "line 4: "),
        ] {
            let e = Spec::from_toml(text).unwrap_err().to_string();
            assert!(e.starts_with(begin) && e.len() > begin.len(), "{text}: {e}");
        }
        let of = |text: &str| Spec::from_json(text).unwrap_err().to_string();
        assert_eq!(of("[1]"), "spec: it is not a JSON object");
        assert!(of("{\"seed\": }").starts_with("spec: "), "{}", of("{\"seed\": }"));
    }

    /// What a field takes, by its type; a list in which something is no text is refused as a whole.
    #[test]
    fn fields_say_what_they_take() {
        let takes = |name: &str| FIELDS.iter().find(|f| f.name == name).map(|f| (f.accepts, f.default));
        assert_eq!(takes("trace"), Some(("texts", "")));
        assert_eq!(takes("layer"), Some(("a text", "cmr")));
        assert_eq!(takes("window"), Some(("a text", "")));
        assert_eq!(takes("scale_time"), Some(("a number", "1")));
        assert_eq!(
            (takes("limit"), takes("adjusted_blocks")),
            (Some(("a count", "")), Some(("a count", "1000")))
        );
        assert_eq!(takes("verify_media"), Some(("a switch", "false")));
        for (text, told) in [
            (
                "trace = ['a', 3]",
                "trace: [\"a\",3] is not accepted: a text, a list of texts, or tables of phases",
            ),
            ("layer = 3", "layer: 3 is not accepted: a text: put it in quotes"),
            ("layer = true", "layer: true is not accepted: a text"),
            ("verify_media = 'yes'", "verify_media: \"yes\" is not accepted: true or false"),
            ("scale_time = 'fast'", "scale_time: \"fast\" is not accepted: a number such as 0.5 or 20"),
        ] {
            assert_eq!(Spec::from_toml(text).unwrap_err().to_string(), told);
        }
        let shown = serde_json::to_value(Spec::new("t", "tiny", "cmr")).unwrap();
        let optional =
            ["stack", "prefill", "wrap", "from", "until", "filter", "limit", "burst", "window", "mechanics"];
        let absent = optional.iter().chain(&["from_state", "save_state", "host_blocks"]);
        assert_eq!(shown.as_object().unwrap().len(), FIELDS.len() - absent.clone().count());
        assert!(absent.into_iter().all(|name| shown.get(name).is_none()), "{shown}");
    }

    #[test]
    fn dates_and_what_is_no_number_are_refused() {
        for text in ["limit = 2026-01-01", "limit = nan", "scale_time = inf", "trace = [{idle = -inf}]"] {
            let e = Spec::from_toml(text).unwrap_err().to_string();
            let field = text.split(' ').next().unwrap();
            assert!(
                e.contains(&format!("{field}: ")) && e.contains("is not accepted: a text, a number"),
                "{e}"
            );
        }
    }

    #[test]
    fn a_list_of_tables_is_a_workload_in_phases() {
        let spec = Spec::from_toml(
            "trace = [{fill = '50%'}, {idle = '10min'}, {synth = 'zipf', requests = 1000, write = '0%'}, {burst = 5}]",
        );
        let trace = spec.unwrap().trace;
        assert_eq!(trace, ["synth:phases,of=fill(50%);idle(10min);zipf(requests=1000,write=0%);burst(5)"]);
        for bad in ["[{wait = '1s'}]", "[{idle = '1s', synth = 'zipf'}]", "[{idle = '1s'}, 'a.csv']"] {
            let e = Spec::from_toml(&format!("trace = {bad}")).unwrap_err().to_string();
            assert!(e.contains("phases"), "{bad}: {e}");
        }
    }

    #[test]
    fn counts_are_what_people_write() {
        for text in [r#""100k""#, r#""1e5""#, "1e5", "100000", r#""100_000""#] {
            let spec = Spec::from_json(&format!(r#"{{"limit": {text}}}"#)).unwrap();
            assert_eq!(spec.limit, Some(100_000), "{text}");
        }
        for (text, n) in [("1e9", 1_000_000_000), ("8e15", 8_000_000_000_000_000)] {
            assert_eq!(Spec::from_toml(&format!("limit = {text}")).unwrap().limit, Some(n), "{text}");
        }
        // Beyond what a real number says exactly, or no whole one.
        for text in ["1.5", "9e15", "-1e3"] {
            assert!(Spec::from_json(&format!(r#"{{"limit": {text}}}"#)).is_err(), "{text}");
        }
    }

    #[test]
    fn defaults_and_texts_from_a_command_line() {
        let s = Spec::from_json(r#"{"trace": "a.csv", "limit": "1_000", "verify_media": "on"}"#).unwrap();
        assert_eq!((s.trace, s.limit, s.verify_media), (vec!["a.csv".to_owned()], Some(1000), true));
        assert_eq!((s.layer.as_str(), s.adjusted_blocks, s.scale_time), ("cmr", 1000, 1.0));
        assert_eq!(Spec::new("t", "modern-7200", "cmr").seed, 1);
        let three = Spec::from_toml("trace = 't'\ndrive = 'tiny'\nlayer = 'rmw'").unwrap();
        assert_eq!(Spec::new("t", "tiny", "rmw"), three);
    }
}
