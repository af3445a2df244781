//! The reference pages under `docs/reference/`, made from the registries.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "docs/reference";
const HEAD: &str = "<!-- Made by `cargo xtask docs` from the registries; change it there. -->\n";

/// What there is a page for: registry, title, introduction.
const KINDS: &[(&str, &str, &str)] = &[
    ("drives", "Drives", "Presets for `--drive`; `smrlab drive show NAME` has the source of every number."),
    ("arrays", "Arrays", "Layouts for `--array NAME[,k=v...]`."),
    (
        "formats",
        "Trace formats",
        "For `--trace PATH:FORMAT[,k=v...]`; told from the content where that is possible.",
    ),
    ("generators", "Generators", "For `--trace synth:NAME[,k=v...]`."),
    ("schedulers", "Schedulers", "For `--scheduler NAME[,k=v...]`."),
];

/// Writes all pages below `root` and removes those of entries that are gone.
///
/// # Errors
/// What could not be written.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let pages = pages()?;
    for old in present(root) {
        if !pages.contains_key(&old) {
            fs::remove_file(root.join(&old)).map_err(|e| format!("{}: {e}", old.display()))?;
        }
    }
    for (path, text) in pages {
        let whole = root.join(&path);
        let folder = whole.parent().unwrap_or(root);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&whole, text));
        written.map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Pages that are missing, stale or left over, and entries that lack documentation.
pub(crate) fn faults(root: &Path) -> Vec<String> {
    let pages = match pages() {
        Ok(pages) => pages,
        Err(e) => return vec![e],
    };
    let stale = |path: &Path, text: &str| fs::read_to_string(root.join(path)).is_ok_and(|old| old == text);
    let mut out: Vec<String> = pages
        .iter()
        .filter(|(path, text)| !stale(path, text))
        .map(|(path, _)| format!("{}: is not what the registry says: run cargo xtask docs", path.display()))
        .collect();
    let left = present(root).into_iter().filter(|p| !pages.contains_key(p));
    out.extend(left.map(|p| format!("{}: its entry is gone: run cargo xtask docs", p.display())));
    for kind in KINDS.iter().map(|k| k.0).chain(["layers", "fields", "metrics"]) {
        out.extend(entries(kind).unwrap_or_default().iter().flat_map(|e| undocumented(kind, e)));
    }
    out
}

/// The pages that are there now.
fn present(root: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for folder in [PathBuf::from(FOLDER), Path::new(FOLDER).join("layers")] {
        let files = fs::read_dir(root.join(&folder)).into_iter().flatten().flatten();
        out.extend(
            files.map(|f| folder.join(f.file_name())).filter(|p| p.extension().is_some_and(|e| e == "md")),
        );
    }
    out.sort();
    out
}

fn entries(kind: &str) -> Result<Vec<Value>, String> {
    match smrlab_sim::list_json(kind) {
        Ok(Value::Array(all)) => Ok(all),
        Ok(_) => Err(format!("{kind}: not a list")),
        Err(e) => Err(e.to_string()),
    }
}

fn pages() -> Result<BTreeMap<PathBuf, String>, String> {
    let folder = Path::new(FOLDER);
    let mut out = BTreeMap::new();
    let layers = entries("layers")?;
    let mut index =
        format!("{HEAD}# Layers\n\nFor `--layer NAME[,k=v...]`.\n\n| layer | what it is |\n|---|---|\n");
    for layer in &layers {
        let file = format!("{}.md", slug(text(layer, "name")));
        let _ = writeln!(
            index,
            "| [`{}`](layers/{file}) | {} |",
            text(layer, "name"),
            cell(text(layer, "summary"))
        );
        out.insert(folder.join("layers").join(file), format!("{HEAD}{}", entry(layer, "#")));
    }
    out.insert(folder.join("layers.md"), index);
    for (kind, title, introduction) in KINDS {
        let mut page = format!("{HEAD}# {title}\n\n{introduction}\n");
        for e in entries(kind)? {
            let _ = write!(page, "\n{}", entry(&e, "##"));
        }
        out.insert(folder.join(format!("{kind}.md")), page);
    }
    out.insert(folder.join("spec.md"), fields()?);
    out.insert(folder.join("metrics.md"), metrics()?);
    out.insert(folder.join("drive-files.md"), drive_files()?);
    Ok(out)
}

/// The fields of a specification file.
fn fields() -> Result<String, String> {
    let mut page = format!(
        "{HEAD}# A run's specification\n\nThe fields of `SPEC.toml`, of `--set FIELD=VALUE` and of `smrlab.run(...)`; as options they are \
         written `--like-this`.\n\n| field | default | what it is |\n|---|---|---|\n"
    );
    for f in entries("fields")? {
        let (name, default, doc) = (text(&f, "name"), text(&f, "default"), text(&f, "summary"));
        let _ = writeln!(page, "| `{name}` | {} | {} |", code(default), cell(doc));
    }
    Ok(page)
}

const DRIVE_FILES: &str = "A drive is a TOML file: `--drive FILE.toml` wherever a preset's name goes. The shortest way to one is another \
drive:\n\n```sh\n\
    smrlab drive new --like modern-7200 --capacity 2TB --rpm 5400 --zones 25 --rate 210MB/s..100MB/s --out mine.toml\n\
    smrlab drive check mine.toml\n```\n\n\
`drive check` says what is wrong with a file, all of it at once, or what drive it is: size, zones, rates, bands, and how much \
of it is known. `smrlab drive show mine.toml` lists every number; `smrlab drive import disksim` and `smrlab geometry extract` \
make files from DiskSim's parameters and from a real drive.\n\n\
A number is written with its unit, its kind (`spec`, `measured`, `fitted` or `assumed`) and its source:\n\n```toml\n\
    rpm = { value = 7200, unit = \"1/min\", kind = \"spec\", source = \"product manual, table 2\" }\n```\n\n\
or alone, and then it counts as *assumed*: `rpm = 7200`, `head_switch = \"1 ms\"` (a time needs its unit; other bare numbers \
are in the first unit below). Lists have one `kind` and `source` for all of their rows. Unknown fields are refused. The \
columns of a zone: cylinders, sectors a track, spare sectors a track, spare cylinders, blocks left out at the front, at the \
end, spare blocks a range of cylinders, cylinders in a range, and its own track skew, cylinder skew and start of the first \
track in sectors; the first two are needed. Tables in which no field is needed may be left out.\n";

/// The fields of a drive file.
fn drive_files() -> Result<String, String> {
    let mut page = format!("{HEAD}# Drive files\n\n{DRIVE_FILES}");
    let mut table = None;
    for f in entries("drive-fields")? {
        let name = text(&f, "name");
        let (of, field) = name.rsplit_once('.').unwrap_or(("", name));
        if table.as_deref() != Some(of) {
            let title = if of.is_empty() { "The file itself".to_owned() } else { format!("`[{of}]`") };
            let _ = write!(
                page,
                "\n## {title}\n\n| field | needed | units or words | what it is |\n|---|---|---|---|\n"
            );
            table = Some(of.to_owned());
        }
        let needed = if f.get("needed") == Some(&Value::Bool(true)) { "yes" } else { "" };
        let (accepts, doc) = (cell(text(&f, "accepts")), cell(text(&f, "summary")));
        let _ = writeln!(page, "| `{field}` | {needed} | {accepts} | {doc} |");
    }
    Ok(page)
}

/// The keys of a result.
fn metrics() -> Result<String, String> {
    let mut page = format!(
        "{HEAD}# What a result says\n\nThe keys of `result.json` and `--json`, in the order of the document; `*` stands for one name. Then the columns of the \
         tables beside it, as `FILE.COLUMN`; `requests.parquet` and `media.parquet` are written with `--requests` and \
         `--media-log`. \
         Units are in the keys, and a key that does not apply is absent. `smrlab explain KEY` (or a name: `smrlab explain \
         WAR`) says the same.\n\n| key | called | unit | what it is |\n|---|---|---|---|\n"
    );
    for k in entries("metrics")? {
        let mut what = format!("{}.", sentence(text(&k, "summary")).trim_end_matches('.'));
        if !text(&k, "formula").is_empty() {
            let _ = write!(what, " `{}`.", text(&k, "formula"));
        }
        if !text(&k, "reference").is_empty() {
            let _ = write!(what, " {}.", text(&k, "reference"));
        }
        let (name, title, unit) = (text(&k, "name"), text(&k, "title"), text(&k, "unit"));
        let _ = writeln!(page, "| `{name}` | {} | {} | {} |", cell(title), cell(unit), cell(&what));
    }
    Ok(page)
}

fn entry(e: &Value, level: &str) -> String {
    let mut out = format!("{level} {}\n\n{}\n", text(e, "name"), sentence(text(e, "summary")));
    if !text(e, "page").is_empty() {
        let _ = write!(out, "\n{}\n", text(e, "page").trim());
    }
    if !text(e, "idle").is_empty() {
        let _ = write!(out, "\nWhen it is idle: {}.\n", text(e, "idle").trim_end_matches('.'));
    }
    if !text(e, "reference").is_empty() {
        let _ = write!(out, "\nReference: {}.\n", text(e, "reference").trim_end_matches('.'));
    }
    if let Some(Value::Object(capabilities)) = e.get("capabilities") {
        let has: Vec<String> =
            capabilities.iter().filter(|(_, v)| **v != false).map(|(k, v)| capability(k, v)).collect();
        let _ =
            write!(out, "\nCapabilities: {}.\n", if has.is_empty() { "none".into() } else { has.join(", ") });
    }
    if let Some(Value::Array(params)) = e.get("params")
        && !params.is_empty()
    {
        out.push_str("\n| parameter | default | accepts | what it is |\n|---|---|---|---|\n");
        for p in params {
            let (default, accepts) = (code(text(p, "default")), cell(text(p, "accepts")));
            let _ =
                writeln!(out, "| `{}` | {default} | {accepts} | {} |", text(p, "name"), cell(text(p, "doc")));
        }
    }
    out
}

fn text<'a>(e: &'a Value, key: &str) -> &'a str {
    e.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", cell(text)) }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// A name as part of a file's name: `static-R(4123)` becomes `static-R-4123`.
fn slug(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    plain.trim_matches('-').to_owned()
}

/// What an entry must say and does not.
fn undocumented(kind: &str, e: &Value) -> Vec<String> {
    let name = text(e, "name");
    let mut out = Vec::new();
    if text(e, "summary").is_empty() {
        out.push(format!("{kind}: {name} has no summary"));
    }
    if kind == "layers" && (text(e, "page").is_empty() || text(e, "reference").is_empty()) {
        out.push(format!("{kind}: {name} has no page or no reference"));
    }
    if kind == "layers" && text(e, "idle").is_empty() {
        out.push(format!("{kind}: {name} does not say what it does when it is idle"));
    }
    let params = e.get("params").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let silent = params.iter().filter(|p| text(p, "doc").is_empty());
    out.extend(silent.map(|p| format!("{kind}: {name}: parameter {} has no documentation", text(p, "name"))));
    out
}

/// A capability in words, with its condition where it has one.
fn capability(key: &str, value: &Value) -> String {
    let condition = value.as_str().map(|c| format!(" {c}")).unwrap_or_default();
    key.replace('_', " ") + &condition
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_without_documentation_is_found() {
        let e = json!({"name": "x", "summary": "", "params": [{"name": "k", "doc": ""}]});
        assert_eq!(undocumented("layers", &e).len(), 4);
        let e = json!({"name": "x", "summary": "s", "page": "p", "idle": "i", "reference": "r", "params": [{"name": "k", "doc": "d"}]});
        assert_eq!(undocumented("layers", &e), Vec::<String>::new());
    }

    #[test]
    fn names_become_files_and_bars_stay_in_their_cells() {
        assert_eq!(slug("static-R(4123)"), "static-R-4123");
        let page = entry(&json!({"name": "x", "summary": "s", "params": [{"name": "k", "doc": "a|b"}]}), "#");
        assert!(page.contains("| `k` |  |  | a\\|b |"), "{page}");
    }
}
