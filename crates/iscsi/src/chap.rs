//! CHAP (RFC 1994, RFC 7143 section 12.1.3) with MD5: who logs in proves that it knows a secret, and the target proves it, too, where it is asked to.

use crate::failure::Failure;
use crate::keys::{self, Keys, Text};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a challenge that this side makes.
const CHALLENGE: usize = 16;
/// The shortest secret: 96 bits, as RFC 7143 asks for.
const LEAST: usize = 12;
/// MD5, in lists of algorithms.
const MD5: &str = "5";

/// Somebody's name, and what proves it.
#[derive(Clone, PartialEq, Eq)]
struct Identity {
    name: String,
    secret: Vec<u8>,
}

/// Who may log in, and who the target is. What it holds is never shown.
pub struct Secrets {
    initiator: Identity,
    target: Option<Identity>,
}

impl Secrets {
    /// Reads the file that `--chap` names, which nobody but its owner may read.
    ///
    /// # Errors
    /// What is wrong with it, without its contents.
    pub fn read(path: &Path) -> Result<Self, String> {
        use std::os::unix::fs::PermissionsExt;
        let told = |e: io::Error| format!("--chap {}: {e}", path.display());
        let mode = std::fs::metadata(path).map_err(told)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(format!("--chap {}: others can read it; chmod 600", path.display()));
        }
        let text = std::fs::read_to_string(path).map_err(told)?;
        Self::parse(&text).map_err(|e| format!("--chap {}: {e}", path.display()))
    }

    /// Reads lines `initiator NAME SECRET` and perhaps `target NAME SECRET`; empty ones and those that begin with # are left out.
    ///
    /// # Errors
    /// What is wrong, without the secrets.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut initiator, mut target) = (None, None);
        for (i, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (place, name, secret) = match words[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                ["initiator", name, secret] => (&mut initiator, name, secret),
                ["target", name, secret] => (&mut target, name, secret),
                _ => {
                    return Err(format!(
                        "line {}: write initiator NAME SECRET, or target NAME SECRET",
                        i + 1
                    ));
                }
            };
            if secret.len() < LEAST {
                return Err(format!("line {}: a secret has at least {LEAST} characters", i + 1));
            }
            let identity = Identity { name: name.to_owned(), secret: secret.as_bytes().to_vec() };
            if place.replace(identity).is_some() {
                return Err(format!("line {}: a second {}", i + 1, words[0]));
            }
        }
        let initiator = initiator.ok_or("the line initiator NAME SECRET is missing")?;
        // Otherwise a client could have its own proof made for it.
        if target.as_ref().is_some_and(|t| t.secret == initiator.secret) {
            return Err("the two secrets must differ".to_owned());
        }
        Ok(Self { initiator, target })
    }
}

/// One login on its way.
pub(crate) struct Chap<'a> {
    secrets: &'a Secrets,
    /// Both sides said that CHAP is used.
    chosen: bool,
    /// The challenge that is out, and its number.
    asked: Option<(u8, [u8; CHALLENGE])>,
    /// The initiator has proved who it is.
    pub done: bool,
}

impl<'a> Chap<'a> {
    pub(crate) fn new(secrets: &'a Secrets) -> Self {
        Self { secrets, chosen: false, asked: None, done: false }
    }

    /// Takes the keys of one request, and adds what is answered.
    pub(crate) fn take(&mut self, keys: &Keys, text: &mut Text) -> Result<(), Failure> {
        if let Some(methods) = keys.get("AuthMethod") {
            if !methods.split(',').any(|m| m == "CHAP") {
                return Err(Failure::AUTHENTICATION);
            }
            self.chosen = true;
            text.add("AuthMethod", "CHAP");
        }
        if let Some(algorithms) = keys.get("CHAP_A") {
            if !self.chosen || self.asked.is_some() || !algorithms.split(',').any(|a| a == MD5) {
                return Err(Failure::AUTHENTICATION);
            }
            let (number, challenge) = challenge().map_err(|_| Failure::RESOURCES)?;
            text.add("CHAP_A", MD5);
            text.add("CHAP_I", number);
            text.add("CHAP_C", written(&challenge));
            self.asked = Some((number, challenge));
        }
        match (keys.get("CHAP_N"), keys.get("CHAP_R")) {
            (None, None) => Ok(()),
            (Some(name), Some(response)) => {
                self.check(name, response)?;
                self.done = true;
                self.prove(keys, text)
            }
            _ => Err(Failure::AUTHENTICATION),
        }
    }

    fn check(&self, name: &str, response: &str) -> Result<(), Failure> {
        // A challenge is answered once.
        let asked = self.asked.filter(|_| !self.done);
        let (number, challenge) = asked.ok_or(Failure::AUTHENTICATION)?;
        let wanted = proof(number, &self.secrets.initiator.secret, &challenge);
        let told = bytes(response).unwrap_or_default();
        let differs = wanted.iter().zip(&told).fold(0, |d, (a, b)| d | a ^ b);
        let good = told.len() == wanted.len() && differs == 0 && name == self.secrets.initiator.name;
        if good { Ok(()) } else { Err(Failure::AUTHENTICATION) }
    }

    /// Proves who the target is, where the initiator asks for that.
    fn prove(&self, keys: &Keys, text: &mut Text) -> Result<(), Failure> {
        let (number, challenge) = match (keys.get("CHAP_I"), keys.get("CHAP_C")) {
            (None, None) => return Ok(()),
            (Some(number), Some(challenge)) => {
                (keys::number(number).and_then(|number| u8::try_from(number).ok()), bytes(challenge))
            }
            _ => return Err(Failure::AUTHENTICATION),
        };
        let target = self.secrets.target.as_ref().ok_or(Failure::AUTHENTICATION)?;
        let number = number.ok_or(Failure::INITIATOR)?;
        let challenge = challenge.filter(|c| (1..=1024).contains(&c.len())).ok_or(Failure::INITIATOR)?;
        // Else the initiator could let this side answer its own challenge.
        if self.asked.is_some_and(|(_, own)| own[..] == challenge[..]) {
            return Err(Failure::AUTHENTICATION);
        }
        text.add("CHAP_N", &target.name);
        text.add("CHAP_R", written(&proof(number, &target.secret, &challenge)));
        Ok(())
    }
}

/// The response to a challenge: the digest of its number, the secret and itself.
fn proof(number: u8, secret: &[u8], challenge: &[u8]) -> [u8; 16] {
    md5::compute([&[number][..], secret, challenge].concat()).0
}

/// A number and bytes that nobody can foresee.
fn challenge() -> io::Result<(u8, [u8; CHALLENGE])> {
    let mut drawn = [0; CHALLENGE + 1];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut drawn)?;
    let mut bytes = [0; CHALLENGE];
    bytes.copy_from_slice(&drawn[1..]);
    Ok((drawn[0], bytes))
}

/// A binary value in hexadecimal digits.
fn written(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A binary value in hexadecimal digits or in base 64; `None`: it is neither.
fn bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let digits: Vec<u8> =
            digits.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
        // The first of an odd number of digits stands alone.
        let (alone, pairs) = digits.split_at(digits.len() % 2);
        return Some(alone.iter().copied().chain(pairs.chunks(2).map(|p| p[0] << 4 | p[1])).collect());
    }
    let coded = text.strip_prefix("0b").or_else(|| text.strip_prefix("0B"))?.trim_end_matches('=');
    let mut out = Vec::new();
    let (mut held, mut bits) = (0u32, 0);
    for c in coded.bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The MD5 of RFC 1321, appendix A.5, of the bytes 'a', "bc" and "".
    #[test]
    fn a_proof_is_the_digest_of_number_secret_and_challenge() {
        assert_eq!(written(&proof(b'a', b"b", b"c")), "0x900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(written(&proof(b'm', b"essage ", b"digest")), "0xf96b697d7cb7938d525a2f31aaf161d0");
    }

    /// One byte to 1024 (RFC 7143, 12.1.3); none, more, and a number that is none are the initiator's fault.
    #[test]
    fn a_challenge_has_a_length_that_can_be() {
        let secrets =
            Secrets::parse("initiator anna correct-horse-battery\ntarget lab staple-of-the-lab").ok();
        let secrets = secrets.unwrap();
        let asked = |number: &str, length: usize| {
            let text = format!("CHAP_I={number}\0CHAP_C=0x{}\0", "07".repeat(length));
            let mut told = Text::default();
            let proved = Chap::new(&secrets).prove(&Keys::parse(text.as_bytes()).unwrap(), &mut told);
            proved.map(|()| told.0.starts_with(b"CHAP_N=lab\0CHAP_R=0x"))
        };
        assert_eq!([1, 1024].map(|length| asked("7", length)), [Ok(true); 2]);
        assert_eq!(["255", "0xff", "0X0"].map(|number| asked(number, 1)), [Ok(true); 3]);
        assert_eq!([0, 1025].map(|length| asked("7", length)), [Err(Failure::INITIATOR); 2]);
        assert_eq!(["256", "x", "0x100"].map(|number| asked(number, 1)), [Err(Failure::INITIATOR); 3]);
    }

    #[test]
    fn binary_values_are_read_in_both_ways() {
        assert_eq!(bytes("0x0aFf"), Some(vec![0x0a, 0xff]));
        assert_eq!(bytes("0Xabc"), Some(vec![0x0a, 0xbc]));
        assert_eq!(bytes("0bTWFu"), Some(b"Man".to_vec()));
        assert_eq!(bytes("0bTWE="), Some(b"Ma".to_vec()));
        assert_eq!(bytes("0BTQ=="), Some(b"M".to_vec()));
        assert_eq!((bytes("0xg0"), bytes("12"), bytes("0bT-")), (None, None, None));
    }

    #[test]
    fn files_of_secrets_are_checked_line_by_line() {
        let fails = |text| Secrets::parse(text).map(|_| ()).unwrap_err();
        let good = "# who\n\ninitiator anna correct-horse-battery\ntarget lab staple-of-the-lab\n";
        let secrets = Secrets::parse(good).ok().unwrap();
        assert_eq!((secrets.initiator.name, secrets.target.unwrap().name), ("anna".into(), "lab".into()));
        assert!(fails("target lab staple-of-the-lab").contains("initiator NAME SECRET is missing"));
        let short = fails("initiator anna short");
        assert!(short.contains("line 1") && !short.contains("short,"), "{short}");
        assert!(fails("initiator anna").contains("line 1: write initiator"));
        let twice = "initiator a correct-horse-battery\ninitiator b correct-horse-battery";
        assert!(fails(twice).contains("line 2: a second initiator"));
        let same = "initiator a correct-horse-battery\ntarget b correct-horse-battery";
        assert!(fails(same).contains("must differ"));
    }
}
