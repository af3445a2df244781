//! Pages that the benches make: `docs/probe-*.md`.

use std::path::PathBuf;

/// A page that is printed as it grows.
pub(crate) struct Page(String);

impl Page {
    /// With its first line.
    pub(crate) fn new(title: &str, bench: &str) -> Self {
        let made = format!("<!-- Made by `cargo bench -p smrlab-probe --bench {bench} -- --write`. -->");
        let mut page = Self(String::new());
        page.line(&format!("{made}\n# {title}\n"));
        page
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, text: &str) {
        println!("{text}");
        self.0.push_str(text);
        self.0.push('\n');
    }

    /// Replaces the page in `docs`, where the command asks for that with `--write` and chooses no rows.
    pub(crate) fn finish(self, name: &str) {
        if std::env::args().any(|a| a == "--write") && wanted().is_empty() {
            std::fs::write(path(name), self.0).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

/// Where the page is.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// The text that the wanted rows contain: the command's first argument that is no option.
pub(crate) fn wanted() -> String {
    std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default()
}

/// Seconds of the processor that this program has used.
pub(crate) fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}
