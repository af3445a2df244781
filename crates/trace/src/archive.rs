//! Archives with one trace in them, read as they are; others are refused with what to do.

use crate::{Result, TraceError, remote};
use std::io::{self, Read, Seek, SeekFrom};

/// A kind of archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// tar, whatever it is compressed with.
    Tar,
    /// zip.
    Zip,
}

/// Bytes that tell an archive.
pub(crate) const HEAD: usize = 512;

/// The kind of archive that begins with `head`.
pub(crate) fn kind(head: &[u8]) -> Option<Kind> {
    match head {
        h if h.len() >= 262 && &h[257..262] == b"ustar" => Some(Kind::Tar),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Kind::Zip),
        _ => None,
    }
}

/// The bytes of the only file in the archive `path`; `whole` gives it decompressed from its start.
///
/// # Errors
/// An archive that cannot be read, or holds no file, or several.
pub(crate) fn only_file(
    path: &str,
    kind: Kind,
    whole: impl Fn() -> io::Result<Box<dyn Read + Send>>,
) -> Result<Box<dyn Read + Send>> {
    let shown = &*remote::shown(path);
    let err = |e| TraceError::io(shown, e);
    if path == "-" {
        let what = "an archive cannot be read from a pipe: unpack it, or name the file";
        return Err(TraceError::unreadable("(standard input)", what));
    }
    match kind {
        Kind::Zip => zip_file(path),
        Kind::Tar => {
            one(shown, &tar_names(whole().map_err(err)?).map_err(err)?)?;
            tar_file(whole().map_err(err)?).map_err(err)
        }
    }
}

/// Refuses all but one file.
fn one(path: &str, names: &[String]) -> Result<()> {
    match names {
        [_] => Ok(()),
        [] => Err(TraceError::unreadable(path, "there is no file in this archive")),
        _ => {
            let shown: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
            let more = if names.len() > 3 { ", …" } else { "" };
            Err(TraceError::unreadable(
                path,
                format!(
                    "an archive of {} files ({}{more}): unpack it, then name its folder (all files, merged by time) or one \
                     of the files",
                    names.len(),
                    shown.join(", "),
                ),
            ))
        }
    }
}

fn tar_names(whole: impl Read) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in tar::Archive::new(whole).entries()? {
        let entry = entry?;
        if entry.header().entry_type().is_file() {
            names.push(entry.path()?.display().to_string());
        }
    }
    Ok(names)
}

/// The first regular file of a tar.
fn tar_file(mut whole: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    loop {
        let mut header = tar::Header::new_old();
        whole.read_exact(header.as_mut_bytes())?;
        let size = header.entry_size()?;
        if header.entry_type().is_file() {
            return Ok(Box::new(whole.take(size)));
        }
        let padded = size.checked_next_multiple_of(512).ok_or(io::ErrorKind::InvalidData)?;
        io::copy(&mut whole.by_ref().take(padded), &mut io::sink())?;
    }
}

fn zip_file(path: &str) -> Result<Box<dyn Read + Send>> {
    let shown = &*remote::shown(path);
    let bad = |e: zip::result::ZipError| {
        TraceError::unreadable(shown, format!("a damaged or unusual zip archive ({e})"))
    };
    let mut archive = zip::ZipArchive::new(remote::sought(path)?).map_err(bad)?;
    let names: Vec<String> = archive
        .file_names()
        .filter(|n| !n.ends_with('/') && !n.starts_with("__MACOSX/"))
        .map(str::to_owned)
        .collect();
    one(shown, &names)?;
    let place = archive.index_for_name(&names[0]).unwrap_or(0);
    let (start, size, method) = {
        let entry = archive.by_index_raw(place).map_err(bad)?;
        if entry.encrypted() {
            return Err(TraceError::unreadable(shown, "the archive is encrypted: unpack it"));
        }
        (entry.data_start(), entry.compressed_size(), entry.compression())
    };
    let mut file = archive.into_inner();
    file.seek(SeekFrom::Start(start)).map_err(|e| TraceError::io(shown, e))?;
    let packed = file.take(size);
    match method {
        zip::CompressionMethod::Stored => Ok(Box::new(packed)),
        zip::CompressionMethod::Deflated => Ok(Box::new(flate2::read::DeflateDecoder::new(packed))),
        other => Err(TraceError::unreadable(shown, format!("a zip archive packed with {other}: unpack it"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_in_a_pipe_is_refused_before_it_is_read() {
        let whole = || -> io::Result<Box<dyn Read + Send>> { panic!("nothing is read") };
        for kind in [Kind::Zip, Kind::Tar] {
            let e = only_file("-", kind, whole).err().unwrap().to_string();
            assert!(e.contains("unpack it, or name the file"), "{e}");
        }
    }
}
