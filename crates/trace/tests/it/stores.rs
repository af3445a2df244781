//! Objects of a store are read as files of a folder are: each name, pattern and archive alike.

use smrlab_trace::remote::{Ranges, Stores, open_with};
use smrlab_trace::{AddressSpace, Mix, OpenContext, combine, convert, open, read_all};
use smrlab_units::HostOp;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The objects `mem://folder/name` are the files of `folder` below this crate's scratch space.
struct Folder(PathBuf);
struct File(Vec<u8>);

impl Ranges for File {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let from = (offset as usize).min(self.0.len());
        Ok(self.0[from..(from + length).min(self.0.len())].to_vec())
    }
}

impl Stores for Folder {
    fn open(&self, url: &str) -> io::Result<Arc<dyn Ranges>> {
        Ok(Arc::new(File(std::fs::read(self.0.join(url.trim_start_matches("mem://")))?)))
    }

    fn list(&self, url: &str) -> io::Result<Option<Vec<String>>> {
        let (folder, pattern) = url.trim_start_matches("mem://").split_once('/').unwrap();
        if !pattern.is_empty() && !pattern.contains('*') {
            return Ok(None);
        }
        let (begin, end) = pattern.split_once('*').unwrap_or(("", ""));
        let names = self.0.join(folder).read_dir()?.map(|e| e.unwrap().file_name().into_string().unwrap());
        let meant = names.filter(|n| n.starts_with(begin) && n.ends_with(end));
        Ok(Some(meant.map(|n| format!("mem://{folder}/{n}")).collect()))
    }
}

/// Requests of a file, `n` of them from block `first` on.
fn lines(first: u64, n: u64) -> String {
    let line = |i| format!("{},{},4096,{}\n", i * 10, (first + i) * 4096, if i % 3 == 0 { 'W' } else { 'R' });
    (0..n).map(line).collect()
}

const CSV: &str = "csv,columns=time:ms;offset:B;size:B;op";

fn row(text: &str) -> Result<Vec<(u64, HostOp, u64, u32)>, String> {
    let mut source = combine(&[text.to_owned()], AddressSpace::Overlap, Mix::ByTime, &OpenContext::default())
        .map_err(|e| e.to_string())?;
    let all = read_all(&mut source).map_err(|e| e.to_string())?;
    Ok(all.iter().map(|r| (r.arrival.0, r.op, r.lba.0, r.blocks)).collect())
}

fn written(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("t.9.csv"), lines(0, 9)).unwrap();
    // Longer than what is read at once.
    std::fs::write(folder.join("t.10.csv"), lines(100, 20_000)).unwrap();
    let packed = zstd::encode_all(lines(7, 30).as_bytes(), 1).unwrap();
    std::fs::write(folder.join("t.zst"), packed).unwrap();
    let mut zip = zip::ZipWriter::new(std::fs::File::create(folder.join("t.zip")).unwrap());
    zip.start_file("b.csv", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(lines(50, 5).as_bytes()).unwrap();
    zip.finish().unwrap();
    let from = folder.join("t.10.csv");
    let mut source = open(&format!("{}:{CSV}", from.display()), &OpenContext::default()).unwrap();
    convert(&mut source, &folder.join("t.parquet"), "test", |_| true).unwrap();
}

#[test]
fn an_object_is_read_as_a_file_is() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stores");
    let _ = std::fs::remove_dir_all(&root);
    written(&root.join("f"));
    open_with(Box::new(Folder(root.clone())));
    let format = format!(":{CSV}");
    for (name, format, requests) in [
        ("t.9.csv", &*format, 9),
        ("t.10.csv", &format, 20_000),
        ("t.*.csv", &format, 20_009),
        ("*.csv", &format, 20_009),
        ("t.zst", &format, 30),
        ("t.zip", &format, 5),
        ("t.parquet", "", 20_000),
    ] {
        let file = row(&format!("{}/f/{name}{format}", root.display())).unwrap();
        let object = row(&format!("mem://f/{name}{format}")).unwrap();
        assert_eq!(file.len(), requests, "{name}");
        assert!(file == object, "{name}");
    }
    // A folder is its traces: no notes, and no hidden files.
    std::fs::create_dir_all(root.join("g")).unwrap();
    for (name, text) in
        [("a.csv", &*lines(0, 3)), ("b.csv", &lines(9, 4)), ("README.md", "#\n"), (".c.csv", "x\n")]
    {
        std::fs::write(root.join("g").join(name), text).unwrap();
    }
    let file = row(&format!("{}/g{format}", root.display())).unwrap();
    assert_eq!((file.len(), row(&format!("mem://g/{format}"))), (7, Ok(file)));
    for (name, why) in [("*.none", "no file has such a name"), ("none.csv", "there is no such file")] {
        let e = row(&format!("mem://f/{name}{format}")).unwrap_err();
        assert!(e.contains("mem://f/") && e.contains(why), "{name}: {e}");
    }
}
