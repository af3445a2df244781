//! The login of RFC 7143: who comes, whether it may, and what both sides agree on.

use crate::chap::Chap;
use crate::failure::Failure;
use crate::keys::{self, Keys, Text};
use crate::pdu::{self, Digests, Pdu, opcode};
use crate::target::Target;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of data in one PDU that this side takes.
pub const MOST_RECEIVED: usize = 256 << 10;
/// Bytes of data in one PDU before anything else was agreed.
const AT_FIRST: usize = 8192;
/// Commands that a session may have sent and not been answered.
pub const WINDOW: u32 = 128;
/// Bytes of login text that are collected over several PDUs.
pub(crate) const MOST_TEXT: usize = 64 << 10;

/// What a connection goes by after its login.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// The initiator's name.
    pub initiator: String,
    /// Its part of the session's identity.
    pub isid: [u8; 6],
    /// The number that it gave its connection.
    pub connection: u16,
    /// It may only ask for targets.
    pub discovery: bool,
    /// Digests in both directions.
    pub digests: Digests,
    /// Bytes of data in one PDU that the initiator takes.
    pub most_sent: usize,
    /// Bytes of data that answer one R2T, and of one sequence of Data-In.
    pub burst: usize,
    /// Bytes of immediate data, if there may be some.
    pub first_burst: usize,
    /// Data may come with their command.
    pub immediate: bool,
    /// The number that the next command has.
    pub command: u32,
    /// The number of the next status.
    pub status: u32,
}

impl Agreed {
    fn new(first: &Pdu) -> Self {
        Self {
            initiator: String::new(),
            isid: [8, 9, 10, 11, 12, 13].map(|at| first.header[at]),
            connection: u16::from_be_bytes([first.header[20], first.header[21]]),
            discovery: false,
            digests: Digests::default(),
            most_sent: AT_FIRST,
            burst: 256 << 10,
            first_burst: 64 << 10,
            immediate: true,
            command: first.word(24),
            status: 1,
        }
    }
}

impl Agreed {
    /// The initiator port, as SCSI names it (RFC 7143, 4.2.7.1).
    pub(crate) fn port(&self) -> String {
        let isid: String = self.isid.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{},i,0x{isid}", self.initiator)
    }
}

/// What was said, and is not said again.
struct Said<'a> {
    /// Keys of the initiator, and their values.
    keys: BTreeMap<String, String>,
    whom: bool,
    length: bool,
    /// Who must prove who it is.
    chap: Option<Chap<'a>>,
}

impl Said<'_> {
    /// Whether a key may be said. Initiators with libiscsi say again in the second stage who they are.
    fn may_say(&mut self, key: &str, value: &str) -> bool {
        let identity = matches!(key, "InitiatorName" | "InitiatorAlias" | "TargetName" | "SessionType");
        let before = self.keys.insert(key.to_owned(), value.to_owned());
        before.is_none_or(|before| identity && before == value)
    }
}

/// Stages of a login.
const SECURITY: u8 = 0;
const OPERATIONAL: u8 = 1;
const FULL: u8 = 3;

/// Leads a login to its end; `None`: it failed, and the initiator was told.
///
/// # Errors
/// What the connection met, and what is no login.
pub fn login(target: &Target, from: &mut impl Read, to: &mut impl Write) -> io::Result<Option<Agreed>> {
    let mut agreed: Option<Agreed> = None;
    let mut text = Vec::new();
    let chap = target.secrets.as_ref().map(Chap::new);
    let mut said = Said { keys: BTreeMap::new(), whom: false, length: false, chap };
    loop {
        let request = pdu::read(from, Digests::default(), AT_FIRST)?;
        if request.opcode() != opcode::LOGIN {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a connection that does not begin with a login",
            ));
        }
        let agreed = agreed.get_or_insert_with(|| Agreed::new(&request));
        text.extend_from_slice(&request.data);
        // C: the text goes on in the next PDU.
        let goes_on = request.flags() & 0x40 != 0;
        let answer = if goes_on && text.len() <= MOST_TEXT {
            Ok(Text::default())
        } else {
            let keys = Keys::parse(&text).filter(|_| !goes_on);
            text.clear();
            answer(target, &request, keys, agreed, &mut said)
        };
        let (stage, next) = (request.flags() >> 2 & 3, request.flags() & 3);
        // Nobody leaves the first stage before it is known who it is.
        let known = said.chap.as_ref().is_none_or(|chap| chap.done);
        let moves = request.flags() & 0x80 != 0 && !goes_on && known;
        let done = moves && next == FULL && answer.is_ok();
        let flags = if moves { 0x80 | stage << 2 | next } else { stage << 2 };
        let mut response = Pdu::new(opcode::LOGIN_RESPONSE);
        response.header[8..16].copy_from_slice(&request.header[8..16]);
        let failed = answer.as_ref().err().copied();
        response.header[1] = if failed.is_some() { 0 } else { flags };
        if done {
            response.header[14..16].copy_from_slice(&target.session_number().to_be_bytes());
        }
        [response.header[36], response.header[37]] = failed.map_or([0, 0], |f| f.0);
        let response = response
            .with(16, request.tag())
            .with(24, agreed.status)
            .with(28, agreed.command)
            .with(32, agreed.command.wrapping_add(WINDOW - 1));
        agreed.status = agreed.status.wrapping_add(1);
        pdu::write(to, &response, &answer.unwrap_or_default().0, Digests::default())?;
        to.flush()?;
        if failed.is_some() {
            return Ok(None);
        }
        if done {
            return Ok(Some(agreed.clone()));
        }
    }
}

/// What is answered to one request, whose text is whole.
fn answer(
    target: &Target,
    request: &Pdu,
    keys: Option<Keys>,
    agreed: &mut Agreed,
    said: &mut Said<'_>,
) -> Result<Text, Failure> {
    if target.closing.load(Relaxed) {
        return Err(Failure::UNAVAILABLE);
    }
    let keys = keys.ok_or(Failure::INITIATOR)?;
    let (stage, next) = (request.flags() >> 2 & 3, request.flags() & 3);
    let moves = request.flags() & 0x80 != 0;
    if request.header[3] > 0 {
        return Err(Failure::VERSION);
    }
    if stage > OPERATIONAL || moves && (next <= stage || next == 2) {
        return Err(Failure::INVALID);
    }
    let mut text = Text::default();
    if !said.whom {
        // A session has one connection: another one cannot join it.
        if request.header[14..16] != [0, 0] {
            return Err(Failure::NO_SESSION);
        }
        whom(target, &keys, agreed)?;
        said.whom = true;
        if !agreed.discovery {
            text.add("TargetPortalGroupTag", 1);
        }
    }
    match (&mut said.chap, keys.get("AuthMethod").filter(|_| stage == SECURITY)) {
        (Some(chap), _) if stage == SECURITY => chap.take(&keys, &mut text)?,
        (Some(chap), _) if !chap.done => return Err(Failure::AUTHENTICATION),
        (None, Some(methods)) if !methods.split(',').any(|m| m == "None") => {
            return Err(Failure::AUTHENTICATION);
        }
        (None, Some(_)) => text.add("AuthMethod", "None"),
        _ => {}
    }
    if !keys.pairs().all(|(key, value)| said.may_say(key, value)) {
        return Err(Failure::INITIATOR);
    }
    // The longest burst bounds the first one.
    let mut pairs: Vec<_> = keys.pairs().collect();
    pairs.sort_by_key(|(key, _)| *key != "MaxBurstLength");
    for (key, value) in pairs {
        agree(agreed, key, value, &mut text).ok_or(Failure::INITIATOR)?;
    }
    if stage == OPERATIONAL && !said.length {
        said.length = true;
        text.add("MaxRecvDataSegmentLength", MOST_RECEIVED);
    }
    Ok(text)
}

/// Who comes, and to what.
fn whom(target: &Target, keys: &Keys, agreed: &mut Agreed) -> Result<(), Failure> {
    let name = keys.get("InitiatorName").filter(|name| !name.contains(char::is_control));
    agreed.initiator = name.ok_or(Failure::MISSING)?.to_owned();
    match keys.get("SessionType").unwrap_or("Normal") {
        "Discovery" => agreed.discovery = true,
        "Normal" => {
            let name = keys.get("TargetName").ok_or(Failure::MISSING)?;
            if name != target.name() {
                return Err(Failure::NOT_FOUND);
            }
        }
        _ => return Err(Failure::SESSION_TYPE),
    }
    Ok(())
}

/// Answers one key; `None`: its value cannot be.
fn agree(agreed: &mut Agreed, key: &str, value: &str, text: &mut Text) -> Option<()> {
    let number = || keys::number(value);
    let length = || keys::length(value);
    let digest = |text: &mut Text| {
        let chosen = value.split(',').find(|v| matches!(*v, "CRC32C" | "None"));
        text.add(key, chosen.unwrap_or("Reject"));
        chosen == Some("CRC32C")
    };
    match key {
        "InitiatorName" | "InitiatorAlias" | "TargetName" | "SessionType" | "AuthMethod" => {}
        "CHAP_A" | "CHAP_I" | "CHAP_C" | "CHAP_N" | "CHAP_R" => {}
        "HeaderDigest" => agreed.digests.header = digest(text),
        "DataDigest" => agreed.digests.data = digest(text),
        "MaxRecvDataSegmentLength" => agreed.most_sent = length()?,
        "MaxBurstLength" => {
            agreed.burst = length()?;
            text.add(key, agreed.burst);
        }
        "FirstBurstLength" => {
            agreed.first_burst = length()?.min(MOST_RECEIVED).min(agreed.burst);
            text.add(key, agreed.first_burst);
        }
        // Data without being asked come with the command or not at all.
        "InitialR2T" => text.add(key, "Yes"),
        "ImmediateData" => {
            agreed.immediate = value == "Yes";
            text.add(key, if agreed.immediate { "Yes" } else { "No" });
        }
        "MaxConnections" | "MaxOutstandingR2T" => text.add(key, 1),
        "ErrorRecoveryLevel" | "DefaultTime2Retain" => text.add(key, 0),
        "DefaultTime2Wait" => text.add(key, number().filter(|n| *n <= 3600)?.max(2)),
        "DataPDUInOrder" | "DataSequenceInOrder" => text.add(key, "Yes"),
        "IFMarker" | "OFMarker" => text.add(key, "No"),
        "OFMarkInt" | "IFMarkInt" => text.add(key, "Irrelevant"),
        // RFC 7143 itself, and not what was added behind it.
        "iSCSIProtocolLevel" => text.add(key, number().filter(|n| *n <= 31)?.min(1)),
        "TaskReporting" => {
            let plain = value.split(',').any(|v| v == "RFC3720");
            text.add(key, if plain { "RFC3720" } else { "Reject" });
        }
        _ => text.add(key, "NotUnderstood"),
    }
    Some(())
}
