//! Several traces as one: files of one recording, directories, patterns, archives, chains.

use smrlab_trace::{AddressSpace, Batch, Mix, OpenContext, TraceSource, combine, convert, read_all};
use smrlab_units::SimTime;
use std::io::Write;
use std::path::PathBuf;

fn folder(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("combine").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn opened(texts: &[&str], mix: Mix) -> Result<Box<dyn TraceSource>, String> {
    let texts: Vec<String> = texts.iter().map(|t| (*t).to_owned()).collect();
    combine(&texts, AddressSpace::Overlap, mix, &OpenContext::default()).map_err(|e| e.to_string())
}

fn rows(texts: &[&str], mix: Mix) -> Batch {
    read_all(&mut opened(texts, mix).unwrap()).unwrap()
}

fn refused(text: &str, needles: &[&str]) {
    let e = opened(&[text], Mix::ByTime).err().unwrap_or_else(|| panic!("{text} was read"));
    needles.iter().for_each(|n| assert!(e.contains(n), "{e:?} lacks {n:?}"));
}

/// A line of a volume so many seconds after a date.
fn line(host: &str, s: u64, offset: u64) -> String {
    format!("{},{host},0,Write,{offset},512,1\n", 128_166_372_000_000_000 + s * 10_000_000)
}

/// Two volumes, of which the second begins 50 s later.
fn volumes(name: &str) -> PathBuf {
    let dir = folder(name);
    std::fs::write(dir.join("a.csv"), line("a", 0, 0) + &line("a", 51, 512)).unwrap();
    std::fs::write(dir.join("b.csv"), line("b", 50, 1024)).unwrap();
    std::fs::write(dir.join("README.txt"), "notes").unwrap();
    std::fs::write(dir.join(".c.csv"), line("c", 7, 0)).unwrap();
    dir
}

fn seconds(b: &Batch) -> Vec<u64> {
    b.arrival.iter().map(|at| at.0 / 1_000_000_000).collect()
}

#[test]
fn files_of_one_recording_keep_their_distance() {
    let dir = volumes("origin");
    let (a, b) = (dir.join("a.csv").display().to_string(), dir.join("b.csv").display().to_string());
    for texts in [
        vec![a.as_str(), &b],
        vec![&b, &a],
        vec![dir.to_str().unwrap()],
        vec![&format!("{}/*.csv", dir.display())],
    ] {
        let mut source = opened(&texts, Mix::ByTime).unwrap();
        let all = read_all(&mut source).unwrap();
        assert_eq!(seconds(&all), [0, 50, 51], "{texts:?}");
        let names: Vec<String> = all.device.iter().map(|d| source.device_name(*d)).collect();
        assert_eq!(names, ["a_0", "b_0", "a_0"], "{texts:?}");
    }
    let own = [a.clone() + ":msr,start=zero", b.clone() + ":msr,start=zero"];
    assert_eq!(seconds(&rows(&[&own[0], &own[1]], Mix::ByTime)), [0, 0, 51], "where it is asked for");
    assert_eq!(rows(&[&b], Mix::ByTime).arrival, [SimTime::ZERO], "a file by itself begins at 0");
    let bursts = rows(&[&a, &b], Mix::Bursts { burst: 5, seed: 1 });
    assert_eq!(seconds(&bursts).last(), Some(&51), "bursts are not placed by date");
}

#[test]
fn dates_are_kept_within_what_the_fast_store_holds() {
    let dir = volumes("keep");
    let text = format!("{}:msr,start=keep", dir.display());
    let mut source = opened(&[&text], Mix::ByTime).unwrap();
    let out = dir.join("all.parquet");
    assert_eq!(convert(&mut source, &out, "test", |_| true).unwrap(), 3);
    let all = rows(&[out.to_str().unwrap()], Mix::ByTime);
    // 2007-02-22 16:20:00 UTC in seconds since 1970.
    assert_eq!(seconds(&all), [1_172_163_600, 1_172_163_650, 1_172_163_651]);
    let far = dir.join("far.spc");
    std::fs::write(&far, "0,1,512,r,9300000000\n0,1,512,r,9300000001\n0,1,512,r,9300000002\n").unwrap();
    let e = read_all(&mut opened(&[far.to_str().unwrap()], Mix::ByTime).unwrap()).unwrap_err().to_string();
    assert!(e.contains("start=zero"), "{e}");
}

/// At one time all three: by the numbers in their names, not by their letters.
#[test]
fn files_of_a_folder_come_by_the_numbers_in_their_names() {
    let dir = folder("numbers");
    for n in [100, 9, 10] {
        std::fs::write(dir.join(format!("t.{n}.csv")), line("a", 5, n * 512)).unwrap();
    }
    for text in [dir.display().to_string(), format!("{}/t.*.csv", dir.display())] {
        let all = rows(&[&text], Mix::ByTime);
        assert_eq!(all.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [9, 10, 100], "{text}");
    }
}

/// What lies beside traces as a rule is none: notes by their beginnings and by their ends, in any case, folders, and hidden files. What has
/// such letters elsewhere is a trace.
#[test]
fn notes_beside_traces_are_not_read() {
    let notes = [
        "README",
        "readme.first",
        "License.txt",
        "MD5SUMS",
        "sha256.txt",
        "SHA-512_sums",
        "shasum.txt.asc",
        "a.md",
        "b.PDF",
        "c.html",
        "d.py",
        "e.Sh",
        ".f.csv",
    ];
    let traces = [
        "a.readme.csv",
        "md.csv",
        "a.md.csv",
        "pdf",
        "py.sh.csv",
        "no_license.csv",
        "shared_0.csv",
        "md5s.csv",
    ];
    for name in notes {
        let dir = folder("notes");
        std::fs::write(dir.join("t.csv"), line("a", 0, 0)).unwrap();
        std::fs::write(dir.join(name), "not a trace\n").unwrap();
        std::fs::create_dir(dir.join("folder.csv")).unwrap();
        assert_eq!(rows(&[dir.to_str().unwrap()], Mix::ByTime).len(), 1, "{name}");
    }
    for name in traces {
        let dir = folder("notes");
        std::fs::write(dir.join("t.csv"), line("a", 0, 0)).unwrap();
        std::fs::write(dir.join(name), line("b", 0, 0)).unwrap();
        assert_eq!(rows(&[dir.to_str().unwrap()], Mix::ByTime).len(), 2, "{name}");
    }
}

/// Processors without requests leave an empty file; one with other events only does not stop the others.
#[test]
fn a_directory_of_blktrace_is_one_recording() {
    let dir = folder("blktrace");
    let record = |at: u64, sector: u64, action: u32| {
        let mut r = Vec::new();
        r.extend(0x6561_7407u32.to_le_bytes());
        r.extend(0u32.to_le_bytes());
        r.extend([at, sector].iter().flat_map(|n| n.to_le_bytes()));
        r.extend([4096u32, action | 1 << 17, 1, 8 << 20 | 16, 0].iter().flat_map(|n| n.to_le_bytes()));
        r.extend([0u8; 4]);
        r
    };
    std::fs::write(
        dir.join("sda.blktrace.0"),
        [record(7_000_000_000, 0, 7), record(9_000_000_000, 8, 7)].concat(),
    )
    .unwrap();
    std::fs::write(dir.join("sda.blktrace.2"), record(8_000_000_000, 16, 7)).unwrap();
    std::fs::write(dir.join("sda.blktrace.10"), b"").unwrap();
    std::fs::write(dir.join("sda.blktrace.11"), record(6_000_000_000, 16, 1)).unwrap();
    std::fs::write(dir.join("notes"), b"anything").unwrap();
    let all = rows(&[dir.to_str().unwrap()], Mix::ByTime);
    assert_eq!(seconds(&all), [0, 1, 2]);
    assert_eq!(all.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [0, 16, 8]);
    assert!(all.device.iter().all(|d| *d == all.device[0]), "one device in all files");
}

#[test]
fn traces_follow_each_other() {
    let synth = "synth:sequential,requests=2,size=4KiB,span=1MiB,interarrival=10ms,write=100%";
    let dir = volumes("chain");
    let a = dir.join("a.csv").display().to_string();
    let all = rows(&[synth, &a, synth], Mix::Chain(SimTime::from_ms(1000)));
    let ms: Vec<u64> = all.arrival.iter().map(|at| at.0 / 1_000_000).collect();
    assert_eq!(ms, [0, 10, 1010, 52_010, 53_010, 53_020]);
    assert_eq!(all.stream, [0, 0, 1, 1, 2, 2]);
    // Each directory has an origin of its own.
    let later = folder("later");
    std::fs::write(later.join("a.csv"), line("a", 1000, 0) + &line("a", 1051, 512)).unwrap();
    std::fs::write(later.join("b.csv"), line("b", 1030, 0)).unwrap();
    let chain = rows(&[dir.to_str().unwrap(), later.to_str().unwrap()], Mix::Chain(SimTime::from_ms(1000)));
    assert_eq!(seconds(&chain), [0, 50, 51, 52, 82, 103]);
    for (text, mix) in [
        ("time", Mix::ByTime),
        ("chain,gap=1s", Mix::Chain(SimTime::from_ms(1000))),
        ("bursts,requests=8", Mix::Bursts { burst: 8, seed: 3 }),
        ("bursts,requests=1", Mix::Bursts { burst: 1, seed: 3 }),
    ] {
        assert_eq!(Mix::parse(text, 3).unwrap(), mix);
    }
    assert!(Mix::parse("row", 1).unwrap_err().to_string().contains("chain[,gap=T]"));
}

/// Side by side, each trace begins behind the last block of the one before.
#[test]
fn addresses_of_traces_side_by_side_do_not_meet() {
    let dir = folder("side-by-side");
    let texts = [0, 1, 2].map(|n| {
        let path = dir.join(format!("{n}.csv")).display().to_string();
        std::fs::write(&path, line("a", n, 512 * n)).unwrap();
        path
    });
    let all = combine(&texts, AddressSpace::Concat, Mix::ByTime, &OpenContext::default());
    let all = read_all(&mut all.unwrap()).unwrap();
    assert_eq!(all.lba.iter().map(|l| l.0).collect::<Vec<_>>(), [0, 2, 5]);
}

fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(&mut gz);
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_entry_type(if name.ends_with('/') {
            tar::EntryType::Directory
        } else {
            tar::EntryType::Regular
        });
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.finish().unwrap();
    drop(builder);
    gz.finish().unwrap()
}

fn zipped(files: &[(&str, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn archives_with_one_trace_are_read_and_others_say_what_to_do() {
    let dir = folder("archives");
    let text: String = (0..2000).map(|s| line("a", s, s * 512)).collect();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    // A long name is an entry of its own before the file's, padded as each is; macOS adds notes to each file of a zip.
    let long = "t".repeat(150);
    let notes: [(&str, &[u8]); 2] = [("t.csv", text.as_bytes()), ("__MACOSX/._t.csv", b"notes")];
    let one: [(&str, Vec<u8>); 6] = [
        ("one.tar.gz", tar_gz(&[("d/", b""), ("d/t.csv", text.as_bytes())])),
        ("long.tar.gz", tar_gz(&[(&long, text.as_bytes())])),
        ("notes.zip", zipped(&notes, zip::CompressionMethod::Deflated)),
        ("gz-inside.tar.gz", tar_gz(&[("t.csv.gz", &gz)])),
        ("one.zip", zipped(&[("t.csv", text.as_bytes())], zip::CompressionMethod::Deflated)),
        ("stored.zip", zipped(&[("t.csv.gz", &gz)], zip::CompressionMethod::Stored)),
    ];
    for (name, bytes) in one {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(rows(&[path.to_str().unwrap()], Mix::ByTime).len(), 2000, "{name}");
    }
    let two: [(&str, &[u8]); 2] = [("a.csv", text.as_bytes()), ("b.csv", b"x")];
    for (name, bytes) in
        [("two.tgz", tar_gz(&two)), ("two.zip", zipped(&two, zip::CompressionMethod::Deflated))]
    {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        refused(path.to_str().unwrap(), &["archive of 2 files (a.csv, b.csv)", "unpack it", "folder"]);
    }
    let four = ["d/a", "d/b", "d/c", "d/e"].map(|name| (name, text.as_bytes()));
    let method = zip::CompressionMethod::Deflated;
    for (name, bytes) in [("four.tgz", tar_gz(&four)), ("four.zip", zipped(&four, method))] {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        let of = "an archive of 4 files (d/a, d/b, d/c, …): unpack it, then name its folder (all files, merged by time) or one of the files";
        refused(path.to_str().unwrap(), &[&format!("{}: {of}", path.display())]);
    }
    let no_file = dir.join("none.tgz");
    std::fs::write(&no_file, tar_gz(&[("d/", b"")])).unwrap();
    refused(no_file.to_str().unwrap(), &["none.tgz: there is no file in this archive"]);
    std::fs::write(&no_file, b"PK\x03\x04 and no more").unwrap();
    refused(no_file.to_str().unwrap(), &["none.tgz: a damaged or unusual zip archive ("]);
    // Packed in a way that nothing here knows, says the number behind the flags.
    let mut bytes = zipped(&[("t.csv", text.as_bytes())], zip::CompressionMethod::Stored);
    for (signature, at) in [(b"PK\x03\x04", 8), (b"PK\x01\x02", 10)] {
        let header = bytes.windows(4).position(|w| w == signature).unwrap();
        bytes[header + at] = 97;
    }
    let path = dir.join("odd.zip");
    std::fs::write(&path, bytes).unwrap();
    refused(path.to_str().unwrap(), &["odd.zip: a zip archive packed with ", "97", ": unpack it"]);
    // What a packer says of a file that it encrypts: bit 0 of its flags, before the file and in the list at the end.
    let mut bytes = zipped(&[("t.csv", text.as_bytes())], zip::CompressionMethod::Stored);
    for (signature, flags) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let at = bytes.windows(4).position(|w| w == signature).unwrap();
        bytes[at + flags] |= 1;
    }
    let path = dir.join("secret.zip");
    std::fs::write(&path, bytes).unwrap();
    refused(path.to_str().unwrap(), &["secret.zip", "the archive is encrypted: unpack it"]);
    refused(&format!("{}/no-such-*.csv", dir.display()), &["no file has such a name"]);
    refused(folder("nothing").to_str().unwrap(), &["no file in this directory"]);
}

#[test]
fn ambiguous_files_show_what_each_reading_would_mean() {
    let path = folder("ambiguous").join("five.txt");
    std::fs::write(&path, "0 0 1024 512 1\n1000 0 512 512 0\n").unwrap();
    let e = opened(&[path.to_str().unwrap()], Mix::ByTime).err().unwrap();
    for needle in [
        "disksim    2 requests (1 read) in 1.000000 s (2.000 requests/s), 256.0 KiB each, up to 0.001 GB",
        "mqsim      2 requests (1 read) in 0.000001 s",
        "msr-cut    2 requests (1 read) in 1.000000 s (2.000 requests/s), 0.5 KiB each",
        ":csv,columns=",
    ] {
        assert!(e.contains(needle), "{e} lacks {needle}");
    }
    // The request that ends last may come first: 4 000 512 blocks.
    std::fs::write(&path, "0 0 4000000 512 1\n1000 0 512 512 0\n").unwrap();
    let e = opened(&[path.to_str().unwrap()], Mix::ByTime).err().unwrap();
    assert!(e.contains("(2.000 requests/s), 256.0 KiB each, up to 2.048 GB"), "{e}");
    // A sample may begin late and end within a line, which is no request of it.
    let line = |i: u64| format!("{} 0 {} 512 1\n", 5000 + i, 1024 + i % 10);
    std::fs::write(&path, (0..200_000).map(line).collect::<String>()).unwrap();
    let e = opened(&[path.to_str().unwrap()], Mix::ByTime).err().unwrap();
    let told = e.lines().find(|l| l.contains("disksim  ")).unwrap_or_else(|| panic!("{e}"));
    let words: Vec<f64> =
        told.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|w| w.parse().ok()).collect();
    // Requests, reads, seconds: one each millisecond, 256 KiB all of them.
    let (requests, seconds) = (words[0], words[2]);
    assert!(
        requests > 1000.0 && requests == words[1] && (seconds - (requests - 1.0) / 1e3).abs() < 1e-6,
        "{told}"
    );
    assert!(told.contains(" 256.0 KiB each, up to 0.001 GB"), "{told}");
}

/// Of two files one may hold a header alone; where both do there is nothing to read.
#[test]
fn files_without_a_request_are_left_out_but_not_all_of_them() {
    let head = "time_s,op,lba,blocks\n";
    let of = |name: &str, texts: [&str; 2]| {
        let dir = folder(name);
        ["a.csv", "b.csv"].iter().zip(texts).for_each(|(n, text)| std::fs::write(dir.join(n), text).unwrap());
        dir.display().to_string()
    };
    let good = format!("{head}1,R,8,8\n2,W,16,8\n");
    for texts in [[head, &good], [&good, head]] {
        let all = rows(&[&of("some", texts)], Mix::ByTime);
        assert_eq!((all.lba[0].0, all.lba[1].0, all.len()), (8, 16, 2));
    }
    refused(&of("none", [head, head]), &["none", "the trace is empty"]);
    // Where the format is given that is found out when it is read.
    let given = |name: &str, texts| of(name, texts) + ":msr";
    let good = line("a", 1, 0) + &line("a", 2, 512);
    for texts in [["\n\n", &good], [&good, "\n\n"]] {
        assert_eq!(seconds(&rows(&[&given("some-given", texts)], Mix::ByTime)), [0, 1]);
    }
    refused(&given("none-given", ["\n", "\n\n"]), &["none-given", "the trace is empty"]);
}
