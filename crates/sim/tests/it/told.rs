//! What is told of a run besides its figures: the specification with every default, where a result is from, states, refused fields, and
//! the parts of its files.

use crate::support::{rows, scratch};
use parquet::basic::{ConvertedType, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use smrlab_sim::table::{Column, Table, TableWriter};
use smrlab_sim::{Control, Spec, run};
use std::path::Path;

/// Two writes of 8 and 4 blocks and a read of the first.
const TRACE: &str = "time_s,op,lba,blocks\n0,W,0,8\n1,W,100,4\n2,R,0,8\n";

fn spec(folder: &Path, more: &str) -> Spec {
    let trace = folder.join("t.csv");
    std::fs::write(&trace, TRACE).unwrap();
    let given = if more.contains("drive = ") { "" } else { "drive = 'tiny'\n" };
    Spec::from_toml(&format!("trace = '{}'\n{given}{more}", trace.display())).unwrap()
}

/// All that a run goes by is in its result, the defaults too; what was not given and has none is not.
#[test]
fn a_result_has_the_specification_with_every_default() {
    let folder = scratch();
    let more =
        "layer = 'rmw'\narray = 'mirror'\narrivals = 'closed'\nscheduler = 'sptf'\nprefill = '10%'\nseed = 7";
    let done = run(&spec(&folder, more), &Control::new(), None).unwrap().json;
    let trace = folder.join("t.csv");
    let mut told = done["spec"].clone();
    for (field, begin) in
        [("array", "mirror,chunk=64KiB,copies=2,disks=2,"), ("layer", "rmw,journal=off,mode=whole")]
    {
        let text = told.as_object_mut().unwrap().remove(field).unwrap();
        assert!(text.as_str().unwrap().starts_with(begin), "{text}");
    }
    let whole = json!({
        "trace": [trace], "drive": "tiny", "arrivals": "closed,depth=1,think=0", "scheduler": "sptf,depth=32",
        "prefill": "10%,of=space,order=sequential", "scale_time": 1.0, "skip_bad": 0, "address_space": "overlap", "join": "time",
        "seed": 7, "verify_media": false, "requests": false, "media_log": false, "stall": "500ms", "adjusted_blocks": 1000,
        "adjusted_rule": "ceil", "mechanics": "full", "metadata": "nv",
    });
    assert_eq!(told, whole);
    assert_eq!(done["schema"], 1);
    // The run of what is told is the run.
    let again =
        run(&Spec::from_json(&done["spec"].to_string()).unwrap(), &Control::new(), None).unwrap().json;
    assert_eq!(again, done);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The version, the commit where the caller says it, the seed, and a digest of the requests in 16 digits.
#[test]
fn a_result_says_where_it_is_from() {
    let folder = scratch();
    let of =
        |more: &str| run(&spec(&folder, more), &Control::new(), None).unwrap().json["provenance"].clone();
    let from = of("seed = 7");
    let digest = from["trace_digest"].as_str().unwrap().to_owned();
    assert!(digest.len() == 16 && digest.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')), "{digest}");
    let mut whole = json!({"version": env!("CARGO_PKG_VERSION"), "trace_digest": digest, "seed": 7});
    if let Ok(git) = std::env::var("SMRLAB_GIT") {
        whole["git"] = git.into();
    }
    assert_eq!(from, whole);
    assert_eq!(of("layer = 'rmw'")["trace_digest"], digest.as_str(), "the requests are the same");
    assert_ne!(of("limit = 2")["trace_digest"], digest.as_str());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A file says whose state it is: of a drive which, of an array how many; the head is behind the last block that was read.
#[test]
fn a_state_says_whose_it_is() {
    let folder = scratch();
    let file = folder.join("s");
    let of = |more: &str| {
        let spec = spec(&folder, &format!("save_state = '{}'\n{more}", file.display()));
        run(&spec, &Control::new(), None).unwrap();
        smrlab_sim::state::summary(&file).unwrap()
    };
    let one = json!({"schema": 1, "records": 0, "written_blocks": 12, "drive": "tiny", "layer": "cmr", "metadata": "nv", "blocks": 2880,
                     "head": 8});
    assert_eq!(of("layer = 'cmr'"), one);
    let logged = of("layer = 'log'\nmetadata = 'media'");
    assert_eq!((&logged["metadata"], &logged["written_blocks"]), (&json!("media"), &json!(12)));
    assert!(logged["records"].as_u64() > Some(0) && logged.get("array").is_none(), "{logged}");
    let two = of("layer = 'cmr'\narray = 'striped,disks=2,stripe_unit=4blk'");
    assert_eq!(
        (&two["disks"], &two["written_blocks"], &two["drive"]),
        (&json!(2), &json!(12), &json!("tiny"))
    );
    assert!(two["array"].as_str().unwrap().starts_with("striped,chunk=4blk,disks=2,"), "{two}");
    let spare = of("layer = 'cmr'\narray = 'mirror,disks=2,fail=0@100ms,replace=100ms'");
    assert_eq!(spare["disks"], 2);
    // A file with nothing in it may become one.
    std::fs::write(&file, "").unwrap();
    assert_eq!(of("layer = 'cmr'"), one);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Fields are refused each with its name and with what would do.
#[test]
fn a_field_that_cannot_be_is_told_in_whole() {
    let folder = scratch();
    for (more, told) in [
        ("from = '2s'\nuntil = '1s'", "until: no time lies from 2s on and before 1s"),
        ("window = '0s'", "window: 0s is not accepted: a time from 1ns"),
        ("stall = 'soon'", "stall: 'soon' is not a time: write 800ns, 50us, 4.5ms, 10s, 5min or 2h"),
        ("wrap = 'prefilled'", "wrap: 'prefilled' needs a prefill: give prefill = \"50%\" or the like"),
        ("wrap = 'prefilled'\nprefill = '0%'", "wrap: 'prefilled' with a prefill of nothing leaves no space"),
        ("host_blocks = 0", "host_blocks: 0 is not accepted: a whole number from 1"),
        (
            "arrivals = 'closed,think=86401s'",
            "arrivals: closed: think=86401s is not accepted: at most 86400s, a day",
        ),
        ("media_log = true", "media_log: it needs a directory to write to: give --out DIR"),
        ("prefill = 'read,order=random'", "prefill: 'read' is not a share: write 25% or 0.25"),
        (
            "host_blocks = 103",
            "request 2 (LBA 100, 4 blocks) lies beyond the host's space of 103 blocks; wrap = \"capacity\" (--wrap capacity) \
             takes LBAs modulo that space",
        ),
        ("from = '9s'", "no request of the trace is left: from leaves all of them out"),
        (
            "array = 'mirror,ssd_write=256KiB,ssd_round=on'\nverify_media = true",
            "verify_media: with ssd_round=on the host's writes are less than what is written: leave one out",
        ),
    ] {
        let e = run(&spec(&folder, more), &Control::new(), None).map(drop).unwrap_err();
        assert_eq!(e.to_string(), told, "{more}");
        assert_eq!(e.kind(), smrlab_sim::error::Kind::Input, "{more}");
    }
    let none =
        smrlab_sim::compared::compared(&spec(&folder, ""), &[], &|_, s| smrlab_sim::resolve(s)).map(drop);
    assert_eq!(none.unwrap_err().to_string(), "layer: name at least one layer to compare");
    let stack = smrlab_sim::resolve::stack_json("ssd-cache,write=1GiB / raid5,disks=5 / s-block").unwrap();
    assert_eq!(stack, json!({"array": "raid5,disks=5,ssd_write=1GiB", "layer": "s-block"}));
    assert_eq!(smrlab_sim::resolve::stack_json("mirror").unwrap(), json!({"array": "mirror", "layer": null}));
    let e = smrlab_sim::resolve::stack_json("mirorr / rmw").unwrap_err().to_string();
    assert!(
        e.starts_with("stack: 'rmw' stands below 'mirorr'") && e.contains("did you mean 'mirror'?"),
        "{e}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

fn table(first: i64, rows: i64) -> Table {
    let all = || first..first + rows;
    let columns = vec![
        ("n", Column::Int(all().collect())),
        ("x", Column::Real(all().map(|n| n as f64 / 4.0).collect())),
        ("maybe", Column::Maybe(all().map(|n| (n % 3 > 0).then_some(n as f64 / 2.0)).collect())),
        ("text", Column::Text(all().map(|n| format!("ü{n}")).collect())),
    ];
    Table { name: "t", columns }
}

/// Each kind of column comes back out of the file, what is missing too, and says what it is.
#[test]
fn a_table_comes_back_out_of_its_file() {
    let folder = scratch();
    let path = folder.join("t.parquet");
    let parts = [table(-2, 5), table(3, 2)];
    let mut writer = TableWriter::new(&parts[0], std::fs::File::create(&path).unwrap()).unwrap();
    parts.iter().for_each(|part| writer.group(part).unwrap());
    writer.finish().unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let file = reader.metadata().file_metadata();
    assert_eq!((file.created_by(), file.schema().name()), (Some("smrlab"), "t"));
    let columns: Vec<_> = file
        .schema_descr()
        .columns()
        .iter()
        .map(|c| (c.name(), c.physical_type(), c.converted_type(), c.max_def_level()))
        .collect();
    use ConvertedType::{NONE, UTF8};
    let own = [
        ("n", Physical::INT64, NONE, 0),
        ("x", Physical::DOUBLE, NONE, 0),
        ("maybe", Physical::DOUBLE, NONE, 1),
        ("text", Physical::BYTE_ARRAY, UTF8, 0),
    ];
    assert_eq!(columns, own);
    let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|g| g.num_rows()).collect();
    assert_eq!(groups, [5, 2]);
    let whole = Table { columns: table(-2, 7).columns, name: "t" };
    let written = reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).enumerate();
    let mut seen = 0;
    for (i, row) in written {
        let n = i as i64 - 2;
        let values: Vec<Field> = row.get_column_iter().map(|(_, field)| field.clone()).collect();
        let maybe = if n % 3 > 0 { Field::Double(n as f64 / 2.0) } else { Field::Null };
        assert_eq!(
            values,
            [Field::Long(n), Field::Double(n as f64 / 4.0), maybe, Field::Str(format!("ü{n}"))]
        );
        seen += 1;
    }
    assert_eq!((seen, whole.rows()), (7, 7));
    let mut appended = table(-2, 5);
    appended.columns.iter_mut().zip(table(3, 2).columns).for_each(|(all, more)| all.1.append(more.1));
    assert_eq!(appended, whole);
    std::fs::write(&path, whole.parquet().unwrap()).unwrap();
    let one = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!((one.num_row_groups(), one.metadata().file_metadata().num_rows()), (1, 7));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Logs keep 65 536 rows in memory: a longer run has parts of that many, and every row once, in its order.
#[test]
fn logs_are_written_in_parts() {
    let folder = scratch();
    let text = "trace = 'synth:uniform,requests=70000,size=512B'\ndrive = 'tiny'\nlayer = 'cmr'\nmechanics = 'instant'\n\
                wrap = 'capacity'\nrequests = true\nmedia_log = true";
    run(&Spec::from_toml(text).unwrap(), &Control::new(), Some(&folder)).unwrap();
    for name in ["requests.parquet", "media.parquet"] {
        let reader = SerializedFileReader::new(std::fs::File::open(folder.join(name)).unwrap()).unwrap();
        let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|g| g.num_rows()).collect();
        assert_eq!(groups, [65_536, 70_000 - 65_536], "{name}");
        let numbers = rows(&folder, name).into_iter().map(|row| row[0].clone());
        assert!(numbers.eq((0..70_000).map(Field::Long)), "{name}");
    }
    // Of one that cannot be made the file is named.
    let nowhere = folder.join("none");
    let e = run(&Spec::from_toml(text).unwrap(), &Control::new(), Some(&nowhere)).map(drop).unwrap_err();
    let begin = format!("{}/requests.parquet: ", nowhere.display());
    assert!(e.to_string().starts_with(&begin) && e.kind() == smrlab_sim::error::Kind::Environment, "{e}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Of a trace in a file the share of its bytes, and before that of the prefill; at the end all of it.
#[test]
fn a_run_tells_how_far_it_is() {
    let folder = scratch();
    for more in ["", "prefill = '100%,order=random'", "array = 'mirror'\nprefill = '100%'"] {
        let control = Control::new();
        assert_eq!(
            (control.requests(), control.share(), control.prefills(), control.cancelled()),
            (0, 0.0, false, false)
        );
        run(&spec(&folder, more), &control, None).unwrap();
        assert_eq!((control.requests(), control.share(), control.prefills()), (3, 1.0, false), "{more}");
    }
    let control = Control::new();
    control.progress(5, Some(0.25));
    control.progress(7, None);
    assert_eq!((control.requests(), control.share()), (7, 0.25), "what is not known stays as it was");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A drive-managed drive's own layer is the one with a cache on the medium; what a validation is of stands at its head.
#[test]
fn a_validation_says_what_it_is_of() {
    use smrlab_sim::validate::{Reference, own_layer, read_measured, validate};
    let folder = scratch();
    let trace = folder.join("t.trace");
    let path = trace.to_str().unwrap();
    std::fs::write(&trace, "# measured\n\nR Miss 0 8 1500.5 20\nW Miss 5 8 1500 20\n").unwrap();
    let (doc, compared) = validate("tiny", path, "cmr", Reference::Repaired).unwrap();
    let head = ["schema", "drive", "layer", "trace", "requests"].map(|key| doc[key].clone());
    assert_eq!(head, [json!(1), json!("tiny"), json!("cmr"), json!(path), json!(2)]);
    assert_eq!(
        (&doc["reads"]["requests"], &doc["writes"]["requests"], compared.len()),
        (&json!(1), &json!(1), 2)
    );
    let keys: Vec<_> = doc["reads"].as_object().unwrap().keys().collect();
    let figures =
        ["demerit_ms", "demerit_percent", "mean_error_percent", "measured_mean_ms", "per_request_mae_ms"];
    assert!(figures.iter().all(|key| doc["reads"][key].is_f64()) && keys.len() == 7, "{keys:?}");
    std::fs::write(&trace, "W Miss 5 8 1500 20\n").unwrap();
    let (doc, _) = validate("tiny", path, "cmr", Reference::Repaired).unwrap();
    assert_eq!(doc["reads"], json!({"requests": 0}), "what does not apply is absent");
    let says = |text: &str| {
        std::fs::write(&trace, text).unwrap();
        read_measured(path, Reference::Repaired).map(drop).unwrap_err().to_string()
    };
    assert_eq!(says("# nothing\n"), format!("{path}: no request in it"));
    let is = "is not a measured request: R|W Hit|Miss LBN blocks service_us gap_us, or a file with .input in its name and columns op,lba,blocks";
    for bad in [
        "R Hit 0 8 100",
        "R Hit 0 8 -1 20",
        "R Hit 0 0 100 20",
        "X Hit 0 8 100 20",
        "R Hit 0 8 100 20 7",
        "R Hit 0 8 inf 20",
    ] {
        assert_eq!(
            says(&format!("# one\nR Hit 0 8 100 20\n{bad}\n")),
            format!("{path}: line 3: '{bad}' {is}")
        );
    }
    let long = says(&format!("{}\t\n", "\u{1b}x".repeat(80)));
    assert_eq!(long, format!("{path}: line 1: '{}' {is}", "\\u{1b}x".repeat(40)));
    let e = Reference::parse("old").map(drop).unwrap_err().to_string();
    assert_eq!(e, "reference: 'old' is not accepted: rep or rel");
    assert_eq!(own_layer("tiny").unwrap(), "cmr");
    let managed = smrlab_disk::DRIVES.iter().filter(|d| d.drive().spec().cache.is_some());
    let layers: Vec<_> = managed.map(|d| own_layer(d.name).unwrap()).collect();
    assert!(!layers.is_empty() && layers.iter().all(|layer| *layer == "persistent-cache"), "{layers:?}");
    let refused = own_layer("tinny").unwrap_err().to_string();
    assert!(refused.starts_with("drive: ") && refused.contains("'tiny'"), "{refused}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Of the requests that were refused the first of each reason with all that it asked for, and the block that stood against it.
#[test]
fn the_first_refused_request_of_each_reason_is_told() {
    let folder = scratch();
    // Zones of 96 blocks: one is written behind its pointer, twice, and one across the end of the first.
    let path = folder.join("z.csv");
    std::fs::write(&path, "time_s,op,lba,blocks\n0,W,0,8\n1,W,16,8\n2,W,24,4\n3,R,92,8\n4,W,8,8\n").unwrap();
    let text = format!(
        "trace = '{}'\ndrive = 'tiny'\nlayer = 'zoned,zone=96blk,conventional=0%'\nrequests = true",
        path.display()
    );
    let told =
        run(&Spec::from_toml(&text).unwrap(), &Control::new(), Some(&folder)).unwrap().json["refusals"]
            .clone();
    let first = told["first"].as_array().unwrap();
    let behind = first.iter().find(|f| f["reason"] == "not-at-pointer").unwrap();
    let whole =
        json!({"reason": "not-at-pointer", "request": 1, "op": "write", "lba": 16, "blocks": 8, "at": 16});
    assert_eq!((behind, &told["by_reason"]["not-at-pointer"]), (&whole, &json!(2)));
    let sum: u64 = told["by_reason"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(
        (told["count"].as_u64(), first.len()),
        (Some(sum), told["by_reason"].as_object().unwrap().len())
    );
    let refusals: Vec<Field> =
        rows(&folder, "requests.parquet").into_iter().map(|row| row[13].clone()).collect();
    assert_eq!(refusals[..3], ["", "not-at-pointer", "not-at-pointer"].map(|why| Field::Str(why.to_owned())));
    assert_eq!(refusals[4], Field::Str(String::new()), "it is where the pointer is");
    std::fs::remove_dir_all(&folder).unwrap();
}
