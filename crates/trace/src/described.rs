//! Files that describe something, as a drive: short ones, read whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of such a file, at most: a list of all defects of a drive and a map of all its tracks have some megabytes.
const LONGEST: u64 = 64 << 20;
/// Between two looks at a pipe into which nothing was written.
const PAUSE: Duration = Duration::from_millis(10);
/// How long nothing may come from a pipe that somebody has opened for writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes of a file that describes a drive. A device that has no end is none, nor is a pipe into which nobody writes; one that a shell
/// fills (`<(…)`, `/dev/stdin`) is, as long as it is read once.
///
/// # Errors
/// What the operating system answers; what else is wrong, with what to do.
pub fn read_described(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let is_pipe = fs::metadata(path).is_ok_and(|of| of.file_type().is_fifo());
    if is_pipe {
        Pipe::open(path, PATIENCE)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > LONGEST {
        let text = format!("no file of a drive: longer than {} MiB", LONGEST >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    if is_pipe && bytes.is_empty() {
        return Err(io::Error::other(
            "is a pipe, and nobody writes into it, or it was read before: name a file",
        ));
    }
    Ok(bytes)
}

/// The text of a drive file.
///
/// # Errors
/// Why there is none.
pub fn read_drive(path: &str) -> Result<String, String> {
    match read_described(Path::new(path)) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| "no drive file: it is no text".to_owned()),
        Err(e) if e.kind() == ErrorKind::NotFound => Err("there is no such file".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// A pipe that is not waited for without an end: whoever opens one as files are opened waits for a writer, deaf to Ctrl-C.
struct Pipe {
    file: File,
    patience: Duration,
}

impl Pipe {
    fn open(path: &Path, patience: Duration) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        Ok(Self { file, patience })
    }
}

impl Read for Pipe {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let end = Instant::now() + self.patience;
        loop {
            match self.file.read(buf) {
                Err(e) if e.kind() == ErrorKind::WouldBlock && Instant::now() < end => thread::sleep(PAUSE),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                other => return other,
            }
        }
        let text = format!("is a pipe into which nothing was written for {:?}: name a file", self.patience);
        Err(io::Error::new(ErrorKind::TimedOut, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;

    #[test]
    fn a_drive_file_has_an_end() {
        assert_eq!(read_drive("/dev/zero").unwrap_err(), "no file of a drive: longer than 64 MiB");
        assert_eq!(read_drive("/dev/null").unwrap(), "");
        let binary = std::env::temp_dir().join(format!("smrlab-binary-{}", std::process::id()));
        fs::write(&binary, [0xff, 0xfe]).unwrap();
        let said = read_drive(binary.to_str().unwrap()).unwrap_err();
        fs::remove_file(&binary).unwrap();
        assert_eq!(said, "no drive file: it is no text");
    }

    fn pipe(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("smrlab-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    #[test]
    fn a_pipe_into_which_nobody_writes_is_not_waited_for() {
        let path = pipe("silent");
        let said = read_drive(path.to_str().unwrap()).unwrap_err();
        fs::remove_file(&path).unwrap();
        assert_eq!(said, "is a pipe, and nobody writes into it, or it was read before: name a file");
    }

    #[test]
    fn a_pipe_that_somebody_holds_open_is_waited_for_a_while() {
        let path = pipe("held");
        let writer = File::options().read(true).write(true).open(&path).unwrap();
        let e = Pipe::open(&path, 2 * PAUSE).unwrap().read(&mut [0]).unwrap_err();
        drop(writer);
        fs::remove_file(&path).unwrap();
        assert_eq!(e.to_string(), "is a pipe into which nothing was written for 20ms: name a file");
    }

    /// As what a shell puts in a command's place: somebody has it open, and writes a little later, more than a pipe holds at once.
    #[test]
    fn a_pipe_that_is_filled_is_read_to_its_end() {
        let path = pipe("filled");
        // Open for reading, too: else the writer would wait for whoever reads.
        let mut writer = File::options().read(true).write(true).open(&path).unwrap();
        let text = "speed = 1\n".repeat(20_000);
        let written = text.clone();
        let other = thread::spawn(move || {
            thread::sleep(5 * PAUSE);
            writer.write_all(written.as_bytes()).unwrap();
        });
        let read = read_drive(path.to_str().unwrap());
        fs::remove_file(&path).unwrap();
        // Before the other thread is waited for, which has no end where nobody reads.
        assert_eq!(read.unwrap(), text);
        other.join().unwrap();
    }
}
