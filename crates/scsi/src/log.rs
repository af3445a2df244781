//! LOG SENSE: which pages there are, the temperature, and informational exceptions. A simulated disk has no temperature, and says so.

use crate::Sense;
use crate::command::{Answer, Call};

const SUPPORTED: u8 = 0x00;
const TEMPERATURE: u8 = 0x0d;
const EXCEPTIONS: u8 = 0x2f;
const PAGES: [u8; 3] = [SUPPORTED, TEMPERATURE, EXCEPTIONS];

/// The subpage of page 00h that lists pages with their subpages.
const ALL: u8 = 0xff;
/// A temperature that is not known.
const UNKNOWN: u8 = 0xff;
/// The control byte of a parameter: a binary list.
const LIST: u8 = 0x03;

/// LOG SENSE. Parameters are lists, of which nothing is a threshold: which values are asked for (PC) makes no difference.
pub(crate) fn sense(call: &Call<'_>) -> Answer {
    let (page, subpage) = (call.cdb[2] & 0x3f, call.cdb[3]);
    // The temperature and that of reference; no additional sense code, and the temperature last read.
    let parameters: &[&[u8]] = match page {
        SUPPORTED => &[],
        TEMPERATURE => &[&[0, UNKNOWN], &[0, UNKNOWN]],
        EXCEPTIONS => &[&[0, 0, UNKNOWN]],
        _ => return Err(Sense::at_field(2)),
    };
    if subpage != 0 && (page, subpage) != (SUPPORTED, ALL) {
        return Err(Sense::at_field(3));
    }
    let from = call.number(5, 2) as usize;
    if from >= parameters.len().max(1) {
        return Err(Sense::at_field(5));
    }
    let body: Vec<u8> = match (page, subpage) {
        (SUPPORTED, 0) => PAGES.to_vec(),
        (SUPPORTED, _) => [[SUPPORTED, 0], [SUPPORTED, ALL], [TEMPERATURE, 0], [EXCEPTIONS, 0]].concat(),
        _ => (0..).zip(parameters).skip(from).flat_map(|(code, p)| parameter(code, p)).collect(),
    };
    // SPF: the page has a subpage.
    let first = page | u8::from(subpage != 0) << 6;
    Ok([&[first, subpage, 0, body.len() as u8], &body[..]].concat())
}

fn parameter(code: u8, value: &[u8]) -> Vec<u8> {
    [&[0, code, LIST, value.len() as u8], value].concat()
}
