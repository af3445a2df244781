//! Text of logins and of text requests: keys and values, each pair with a zero behind it.

use std::collections::BTreeMap;

/// Characters of the longest key, and of the longest value that anybody needs.
const LONGEST_KEY: usize = 63;
const LONGEST_VALUE: usize = 8192;

/// Pairs in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(BTreeMap<String, String>);

impl Keys {
    /// Reads pairs; what is no UTF-8, has no equals sign, is too long, or has a key twice, is no text: `None`.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let mut keys = BTreeMap::new();
        for pair in data.split(|b| *b == 0).filter(|pair| !pair.is_empty()) {
            let (key, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
            let long = key.len() > LONGEST_KEY || value.len() > LONGEST_VALUE;
            if key.is_empty() || long || keys.insert(key.to_owned(), value.to_owned()).is_some() {
                return None;
            }
        }
        Some(Self(keys))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// All pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// A number as the standard has it: in decimal digits, or in hexadecimal ones behind 0x.
pub(crate) fn number(value: &str) -> Option<u32> {
    let hexadecimal = value.strip_prefix("0x").or(value.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((value, 10), |digits| (digits, 16));
    // A sign is no digit.
    digits.chars().all(|c| c.is_digit(radix)).then(|| u32::from_str_radix(digits, radix).ok()).flatten()
}

/// A number of bytes, as long as a PDU or a burst may be.
pub(crate) fn length(value: &str) -> Option<usize> {
    number(value).filter(|n| (512..1 << 24).contains(n)).map(|n| n as usize)
}

/// Whether a key belongs to logins alone.
pub(crate) fn of_logins(key: &str) -> bool {
    const KEYS: [&str; 25] = [
        "AuthMethod",
        "CHAP_A",
        "CHAP_C",
        "CHAP_I",
        "CHAP_N",
        "CHAP_R",
        "DataDigest",
        "DataPDUInOrder",
        "DataSequenceInOrder",
        "DefaultTime2Retain",
        "DefaultTime2Wait",
        "ErrorRecoveryLevel",
        "FirstBurstLength",
        "HeaderDigest",
        "ImmediateData",
        "InitialR2T",
        "InitiatorName",
        "MaxBurstLength",
        "MaxConnections",
        "MaxOutstandingR2T",
        "SessionType",
        "TargetName",
        "TargetPortalGroupTag",
        "TaskReporting",
        "iSCSIProtocolLevel",
    ];
    KEYS.contains(&key)
}

/// Text that is being written.
#[derive(Clone, Debug, Default)]
pub struct Text(pub Vec<u8>);

impl Text {
    /// Adds a pair.
    pub fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0.extend(format!("{key}={value}\0").bytes());
    }
}
