//! An NBD export as a target: a minimal client, one request at a time, so that nothing but the server is measured.
//!
//! Fixed newstyle handshake with `NBD_OPT_GO`, simple replies (protocol document of the NetworkBlockDevice project).

use super::clock::Clock;
use crate::target::{TargetError, TimedTarget, Timing, refuses};
use smrlab_units::{BLOCK_BYTES, Blocks, Dir, Lba, SimTime, Zone};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPT_GO: u32 = 7;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// A server that does not answer for so long is gone.
const PATIENCE: Duration = Duration::from_secs(120);

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// See the [module](self).
pub struct Nbd {
    stream: Box<dyn Stream>,
    place: String,
    bytes: u64,
    read_only: bool,
    grain: u64,
    clock: Clock,
    handle: u64,
    buffer: Vec<u8>,
    /// A zone of the drive behind the export, which NBD has no words for.
    zone: Option<Zone>,
    /// The server answered the last request.
    answers: bool,
}

fn gone(place: &str, e: &std::io::Error) -> TargetError {
    use std::io::ErrorKind as K;
    let what = match e.kind() {
        K::UnexpectedEof | K::BrokenPipe | K::ConnectionReset => "the server ended the connection".to_owned(),
        K::WouldBlock | K::TimedOut => format!("the server did not answer for {} s", PATIENCE.as_secs()),
        K::ConnectionRefused | K::NotFound => format!("there is no server ({e})"),
        _ => e.to_string(),
    };
    TargetError { what: format!("{place}: {what}"), gone: true }
}

/// A server's error number for a request: what is not allowed, or does not fit, is the user's; all else the device's.
fn failed(place: &str, error: u32, length: u64, offset: u64) -> TargetError {
    let known = std::io::Error::from_raw_os_error(error as i32);
    let input = matches!(error as i32, libc::EPERM | libc::EINVAL);
    TargetError { what: format!("{place}: {known} for {length} bytes at byte {offset}"), gone: !input }
}

fn refused(place: &str, why: &str) -> TargetError {
    TargetError { what: format!("{place}: {why}"), gone: false }
}

/// Where an NBD URI leads, and the export's name.
enum Address {
    Unix(String, String),
    Tcp(String, String),
}

/// `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`.
fn parse(uri: &str) -> Result<Address, TargetError> {
    let (scheme, rest) = uri.split_once("://").unwrap_or((uri, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
    match scheme {
        "nbd+unix" => {
            let socket = query.split('&').find_map(|p| p.strip_prefix("socket="));
            let socket =
                socket.ok_or_else(|| refused(uri, "an nbd+unix URI names its socket: ?socket=PATH"))?;
            Ok(Address::Unix(percent_decoded(socket), percent_decoded(export)))
        }
        "nbd" => {
            let has_port = host.rsplit_once(':').is_some_and(|(_, p)| p.parse::<u16>().is_ok());
            let host = if has_port { host.to_owned() } else { format!("{host}:10809") };
            Ok(Address::Tcp(host, percent_decoded(export)))
        }
        _ => {
            Err(refused(uri, "only nbd:// and nbd+unix:// are known (TLS would be measured with the drive)"))
        }
    }
}

fn percent_decoded(text: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    let digit = |c: &u8| char::from(*c).to_digit(16);
    while let Some((byte, behind)) = rest.split_first() {
        match (byte, behind) {
            (b'%', [high, low, further @ ..]) if digit(high).is_some() && digit(low).is_some() => {
                out.extend(digit(high).zip(digit(low)).map(|(high, low)| (high * 16 + low) as u8));
                rest = further;
            }
            _ => {
                out.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Nbd {
    /// Connects and asks for the export.
    ///
    /// # Errors
    /// When there is no server, it refuses, or the export is too small.
    pub fn open(uri: &str) -> Result<Self, TargetError> {
        let io = |e: std::io::Error| gone(uri, &e);
        let (stream, export): (Box<dyn Stream>, String) = match parse(uri)? {
            Address::Unix(path, export) => {
                let s = UnixStream::connect(path).map_err(io)?;
                s.set_read_timeout(Some(PATIENCE)).map_err(io)?;
                (Box::new(s), export)
            }
            Address::Tcp(host, export) => {
                let s = TcpStream::connect(host).map_err(io)?;
                s.set_nodelay(true).map_err(io)?;
                s.set_read_timeout(Some(PATIENCE)).map_err(io)?;
                (Box::new(s), export)
            }
        };
        let mut nbd = Self {
            stream,
            place: uri.to_owned(),
            bytes: 0,
            read_only: false,
            grain: 1,
            clock: Clock::start(),
            handle: 0,
            buffer: Vec::new(),
            zone: None,
            answers: false,
        };
        nbd.handshake(&export)?;
        Ok(nbd)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], TargetError> {
        let mut out = [0; N];
        self.stream.read_exact(&mut out).map_err(|e| gone(&self.place, &e))?;
        Ok(out)
    }

    fn give(&mut self, bytes: &[u8]) -> Result<(), TargetError> {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).map_err(|e| gone(&self.place, &e))
    }

    fn handshake(&mut self, export: &str) -> Result<(), TargetError> {
        let (init, option) = (u64::from_be_bytes(self.take()?), u64::from_be_bytes(self.take()?));
        let flags = u16::from_be_bytes(self.take()?);
        if init != INIT_MAGIC || option != OPTION_MAGIC || flags & 1 == 0 {
            return Err(refused(&self.place, "this server does not speak NBD (fixed newstyle)"));
        }
        self.give(&(u32::from(flags) & 3).to_be_bytes())?;
        let mut data = (export.len() as u32).to_be_bytes().to_vec();
        data.extend(export.as_bytes());
        // One piece of information is asked for: block sizes.
        data.extend([0, 1, 0, 3]);
        let mut ask = OPTION_MAGIC.to_be_bytes().to_vec();
        ask.extend(OPT_GO.to_be_bytes());
        ask.extend((data.len() as u32).to_be_bytes());
        ask.extend(data);
        self.give(&ask)?;
        loop {
            let magic = u64::from_be_bytes(self.take()?);
            let _option: [u8; 4] = self.take()?;
            let (kind, length) = (u32::from_be_bytes(self.take()?), u32::from_be_bytes(self.take()?));
            if magic != REPLY_MAGIC || length > 1 << 16 {
                return Err(refused(&self.place, "the server's answer is not NBD"));
            }
            let mut data = vec![0; length as usize];
            self.stream.read_exact(&mut data).map_err(|e| gone(&self.place, &e))?;
            match kind {
                1 => return Ok(()),
                3 => self.learn(&data),
                _ => {
                    let text = String::from_utf8_lossy(&data).into_owned();
                    return Err(refused(
                        &self.place,
                        &format!("the server refuses the export '{export}' {text}"),
                    ));
                }
            }
        }
    }

    /// Takes in a piece of information about the export: its size and flags, or its block sizes.
    fn learn(&mut self, data: &[u8]) {
        match data {
            [0, 0, rest @ ..] if rest.len() >= 10 => {
                self.bytes = rest[..8].iter().fold(0, |n, b| n << 8 | u64::from(*b));
                self.read_only = rest[9] & 2 != 0;
            }
            [0, 3, rest @ ..] if rest.len() >= 4 => {
                let least = rest[..4].iter().fold(0, |n, b| n << 8 | u64::from(*b));
                self.grain = (least / BLOCK_BYTES).max(1);
            }
            _ => {}
        }
    }

    fn request(&mut self, kind: u16, offset: u64, length: u64) -> Result<Timing, TargetError> {
        self.handle += 1;
        let mut header = REQUEST_MAGIC.to_be_bytes().to_vec();
        header.extend(0u16.to_be_bytes());
        header.extend(kind.to_be_bytes());
        header.extend(self.handle.to_be_bytes());
        header.extend(offset.to_be_bytes());
        header.extend((length as u32).to_be_bytes());
        if kind == 1 {
            header.resize(header.len() + length as usize, 0);
        }
        self.answers = false;
        let start = self.clock.now();
        self.give(&header)?;
        let magic = u32::from_be_bytes(self.take()?);
        let error = u32::from_be_bytes(self.take()?);
        let handle = u64::from_be_bytes(self.take()?);
        if magic != SIMPLE_REPLY_MAGIC || handle != self.handle {
            return Err(refused(&self.place, "the server's reply is not NBD"));
        }
        self.answers = true;
        if error != 0 {
            return Err(failed(&self.place, error, length, offset));
        }
        if kind == 0 {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.resize(length as usize, 0);
            self.stream.read_exact(&mut buffer).map_err(|e| gone(&self.place, &e))?;
            self.buffer = buffer;
        }
        Ok(Timing { start, end: self.clock.now() })
    }
}

impl TimedTarget for Nbd {
    fn blocks(&self) -> Blocks {
        Blocks(self.bytes / BLOCK_BYTES)
    }

    fn access(&mut self, dir: Dir, lba: Lba, blocks: Blocks) -> Result<Timing, TargetError> {
        if dir == Dir::Write && self.read_only {
            return Err(refused(&self.place, "the export is read-only"));
        }
        let first = lba.0 / self.grain * self.grain;
        let end = (lba.0 + blocks.0).next_multiple_of(self.grain);
        let done =
            self.request(u16::from(dir == Dir::Write), first * BLOCK_BYTES, (end - first) * BLOCK_BYTES);
        let refused = refuses(self.zone.as_ref(), dir) && self.answers;
        done.map_err(|e| TargetError { gone: e.gone && !refused, ..e })
    }

    fn zone(&self) -> Option<Zone> {
        self.zone
    }

    fn reports(&mut self, zone: Zone) {
        self.zone = Some(zone);
    }

    fn flush(&mut self) -> Result<Timing, TargetError> {
        self.request(3, 0, 0)
    }

    fn pause(&mut self, span: SimTime) {
        self.clock.pause(span);
    }
}

impl Drop for Nbd {
    /// Says goodbye; there is no reply to that.
    fn drop(&mut self) {
        let mut bye = REQUEST_MAGIC.to_be_bytes().to_vec();
        bye.extend([0, 0, 0, 2]);
        bye.extend([0; 20]);
        let _ = self.stream.write_all(&bye);
    }
}

#[cfg(test)]
#[path = "nbd_tests.rs"]
mod served;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_connection_is_said_in_words() {
        use std::io::{Error, ErrorKind};
        let said = |kind: ErrorKind| gone("nbd://h", &Error::from(kind)).what;
        assert_eq!(said(ErrorKind::UnexpectedEof), "nbd://h: the server ended the connection");
        assert_eq!(said(ErrorKind::WouldBlock), "nbd://h: the server did not answer for 120 s");
        assert!(said(ErrorKind::ConnectionRefused).starts_with("nbd://h: there is no server ("));
        let error = |n| failed("nbd://h", n, 512, 1024);
        assert_eq!(error(5).what, "nbd://h: Input/output error (os error 5) for 512 bytes at byte 1024");
        assert!(error(5).gone, "that of a device that fails");
        assert!(!error(1).gone && !error(22).gone, "a request that is not allowed, or does not fit");
    }

    #[test]
    fn uris_name_a_socket_or_a_host() {
        let unix = |uri| match parse(uri) {
            Ok(Address::Unix(path, export)) => (path, export),
            _ => panic!("{uri}"),
        };
        assert_eq!(unix("nbd+unix:///?socket=/a%20b/s"), ("/a b/s".to_owned(), String::new()));
        assert_eq!(unix("nbd+unix:///x?socket=s"), ("s".to_owned(), "x".to_owned()));
        // Codes beside each other, of more than ASCII, and what is none.
        let codes = unix("nbd+unix:///%41%2f%c3%A9x%?a=1&socket=%2fs%zz%4&b=2");
        assert_eq!(codes, ("/s%zz%4".to_owned(), "A/éx%".to_owned()));
        let tcp = |uri| match parse(uri) {
            Ok(Address::Tcp(host, export)) => (host, export),
            _ => panic!("{uri}"),
        };
        assert_eq!(tcp("nbd://localhost"), ("localhost:10809".to_owned(), String::new()));
        assert_eq!(tcp("nbd://h:1/e"), ("h:1".to_owned(), "e".to_owned()));
        assert!(parse("nbds://h").is_err() && parse("nbd+unix:///x").is_err());
    }
}
