//! Zeroes that are written where a sparse file has a hole already: it stays one.
//!
//! A layer that rewrites whole bands writes mostly what nobody ever wrote. Only long writes are looked at, and of data only the first word of
//! a page, so what an ordinary write costs stays as it is.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Result;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;
/// The shortest run of zeroes that may be left out, in bytes.
const RUN: usize = 8 * PAGE;
/// Shorter writes are not looked at, in bytes.
const LONG: usize = 2 * RUN;

/// Writes `data` at `at`, but for long runs of zeroes in holes.
pub(super) fn write(file: &File, data: &[u8], at: u64) -> Result<()> {
    if data.len() < LONG {
        return file.write_all_at(data, at);
    }
    let put = |part: Range<usize>| file.write_all_at(&data[part.clone()], at + part.start as u64);
    let zero = |pos: usize| data.get(pos..pos + PAGE).is_some_and(is_zero);
    let (mut from, mut hole_end) = (0, 0);
    let mut pos = (at.next_multiple_of(PAGE as u64) - at) as usize;
    while pos + RUN <= data.len() {
        if !zero(pos) {
            pos += PAGE;
            continue;
        }
        if hole_end <= pos {
            let seek = |what| found(file, at, pos..data.len(), what);
            let data_end = seek(libc::SEEK_HOLE).unwrap_or(data.len());
            if data_end > pos {
                // None of these pages needs to be looked at.
                pos = ((at + data_end as u64).next_multiple_of(PAGE as u64) - at) as usize;
                continue;
            }
            hole_end = seek(libc::SEEK_DATA).unwrap_or(pos);
        }
        let first = pos;
        while pos + PAGE <= hole_end && zero(pos) {
            pos += PAGE;
        }
        if pos - first >= RUN {
            put(from..first)?;
            from = pos;
        }
        pos = pos.max(first + PAGE);
    }
    put(from..data.len())
}

/// Where, of a part of what is written at `at`, the first byte lies that is data or in a hole; its end where there is none. `None`: the file
/// system does not say.
fn found(file: &File, at: u64, part: Range<usize>, what: i32) -> Option<usize> {
    // SAFETY: a plain system call on an open descriptor, whose own position nobody uses.
    let found = unsafe { libc::lseek64(file.as_raw_fd(), (at + part.start as u64) as i64, what) };
    match u64::try_from(found) {
        Ok(found) => Some(found.saturating_sub(at).clamp(part.start as u64, part.end as u64) as usize),
        // No data behind it.
        Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => Some(part.end),
        Err(_) => None,
    }
}

/// Most pages that are not zero say so in their first word.
fn is_zero(page: &[u8]) -> bool {
    page[..8] == [0; 8] && page.chunks_exact(64).all(|line| line.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smrlab_units::rng::Rng;
    use std::os::unix::fs::MetadataExt;

    fn empty(bytes: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(bytes).unwrap();
        file
    }

    fn kib(file: &File) -> u64 {
        file.metadata().unwrap().blocks() / 2
    }

    /// One block of data in 8 MiB of zeroes, at odd places: two pages at the edges, and one or two for the data.
    #[test]
    fn a_hole_stays_one() {
        let file = empty(16 << 20);
        let mut data = vec![0; 8 << 20];
        for (n, at) in [512, (3 << 20) + 512].into_iter().enumerate() {
            data[at..at + 512].fill(7);
            write(&file, &data, 1536).unwrap();
            assert!(kib(&file) <= 4 * (3 + 2 * n as u64), "{} KiB", kib(&file));
        }
        let mut found = vec![1; data.len()];
        file.read_exact_at(&mut found, 1536).unwrap();
        assert!(found == data);
    }

    /// A chunk of parity of what nobody wrote, at an odd place: two pages at its edges.
    #[test]
    fn a_chunk_of_zeroes_leaves_a_hole() {
        let file = empty(1 << 20);
        write(&file, &[0; 64 << 10], 512).unwrap();
        assert!(kib(&file) <= 8, "{} KiB", kib(&file));
    }

    /// Writes of data and zeroes, short and long, one over the other, beside bytes in memory.
    #[test]
    fn what_is_written_is_read() {
        for seed in 0..4 {
            let (mut rng, bytes) = (Rng::new(seed), 2 << 20);
            let (file, mut model) = (empty(bytes), vec![0; bytes as usize]);
            for _ in 0..300 {
                let at = rng.below(bytes / 512) * 512;
                let most = if rng.one_in(2) { 8 } else { 2000 };
                let len = (1 + rng.below(most)) * 512;
                let mut data = vec![0; len.min(bytes - at) as usize];
                for _ in 0..rng.below(4) {
                    let from = rng.below(data.len() as u64) as usize;
                    let to = data.len().min(from + rng.below(200_000) as usize);
                    data[from..to].fill(1 + rng.below(255) as u8);
                }
                write(&file, &data, at).unwrap();
                model[at as usize..at as usize + data.len()].copy_from_slice(&data);
            }
            let mut found = vec![1; model.len()];
            file.read_exact_at(&mut found, 0).unwrap();
            assert!(found == model, "{seed}");
        }
    }

    /// Zeroes are written where data were.
    #[test]
    fn data_are_overwritten_by_zeroes() {
        let file = empty(1 << 20);
        write(&file, &[9; 4096], 300 << 10).unwrap();
        write(&file, &vec![0; 1 << 20], 0).unwrap();
        let mut found = vec![1; 1 << 20];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found.iter().all(|byte| *byte == 0) && kib(&file) <= 32, "{} KiB", kib(&file));
    }
}
