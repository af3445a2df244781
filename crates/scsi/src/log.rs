//! LOG SENSE: which pages there are, the temperature, results of self-tests, informational exceptions, and statistics of zones. A simulated
//! disk has no temperature, and says so; of self-tests it has the one that says nothing but whether it passed.

use crate::Sense;
use crate::command::{Answer, Call};

const SUPPORTED: u8 = 0x00;
const TEMPERATURE: u8 = 0x0d;
const SELF_TESTS: u8 = 0x10;
const STATISTICS: u8 = 0x14;
const EXCEPTIONS: u8 = 0x2f;

/// The subpage of page 00h that lists pages with their subpages, and that of page 14h about zones.
const ALL: u8 = 0xff;
const ZONES: u8 = 0x01;
/// A temperature that is not known.
const UNKNOWN: u8 = 0xff;
/// The control byte of a parameter: a binary list.
const LIST: u8 = 0x03;

/// LOG SENSE. Parameters are lists, of which nothing is a threshold: which values are asked for (PC) makes no difference.
pub(crate) fn sense(call: &Call<'_>) -> Answer {
    let (page, subpage) = (call.cdb[2] & 0x3f, call.cdb[3]);
    let zones = zones(call);
    let of_zones = zones.first().map(|_| [STATISTICS, ZONES]);
    // The temperature and that of reference; no additional sense code, and the temperature last read.
    let parameters = match page {
        SUPPORTED => Vec::new(),
        TEMPERATURE => vec![(0, vec![0, UNKNOWN]), (1, vec![0, UNKNOWN])],
        // The last twenty, of which none was.
        SELF_TESTS => (1..=20).map(|code| (code, vec![0; 16])).collect(),
        STATISTICS if of_zones.is_some() => zones,
        EXCEPTIONS => vec![(0, vec![0, 0, UNKNOWN])],
        _ => return Err(Sense::at_field(2)),
    };
    let listed =
        [[SUPPORTED, 0], [SUPPORTED, ALL], [TEMPERATURE, 0], [SELF_TESTS, 0]].into_iter().chain(of_zones);
    let listed: Vec<[u8; 2]> = listed.chain([[EXCEPTIONS, 0]]).collect();
    if !listed.contains(&[page, subpage]) {
        return Err(Sense::at_field(3));
    }
    let from = call.number(5, 2);
    if from > parameters.last().map_or(0, |p| u64::from(p.0)) {
        return Err(Sense::at_field(5));
    }
    let body: Vec<u8> = match (page, subpage) {
        (SUPPORTED, 0) => listed.iter().filter(|l| l[1] == 0).map(|l| l[0]).collect(),
        (SUPPORTED, _) => listed.concat(),
        _ => parameters.iter().filter(|p| u64::from(p.0) >= from).flat_map(parameter).collect(),
    };
    // SPF: the page has a subpage.
    let first = page | u8::from(subpage != 0) << 6;
    let [high, low] = (body.len() as u16).to_be_bytes();
    Ok([&[first, subpage, high, low], &body[..]].concat())
}

/// What is counted of zones.
fn zones(call: &Call<'_>) -> Vec<(u8, Vec<u8>)> {
    let Some(s) = call.disk.zone_statistics() else { return Vec::new() };
    let counts = [
        s.most_open,
        s.most_explicit,
        s.most_implicit,
        s.least_empty,
        s.most_non_sequential,
        s.emptied,
        s.suboptimal,
        s.over_recommended,
        s.failed_opens,
        s.refused_reads,
        s.refused_writes,
    ];
    (0..).zip(counts).map(|(code, n)| (code, u64::from(n).to_be_bytes().to_vec())).collect()
}

fn parameter((code, value): &(u8, Vec<u8>)) -> Vec<u8> {
    [&[0, *code, LIST, value.len() as u8], &value[..]].concat()
}
