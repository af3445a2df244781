//! LOG SENSE: which pages there are, counters of errors, the temperature, results of self-tests, of scans in the background and informational
//! exceptions, and statistics of zones. A simulated disk has no temperature, and says so; its self-tests pass, and it never scans itself.

use crate::command::{Answer, Call};
use crate::{SelfTest, Sense};

const SUPPORTED: u8 = 0x00;
const WRITE_ERRORS: u8 = 0x02;
const READ_ERRORS: u8 = 0x03;
const TEMPERATURE: u8 = 0x0d;
const SELF_TESTS: u8 = 0x10;
const STATISTICS: u8 = 0x14;
const SCANS: u8 = 0x15;
const EXCEPTIONS: u8 = 0x2f;

/// The subpage of page 00h that lists pages with their subpages, and that of page 14h about zones.
const ALL: u8 = 0xff;
const ZONES: u8 = 0x01;
/// A temperature that is not known.
const UNKNOWN: u8 = 0xff;
/// The control byte of a parameter: a binary list, or a counter that stops at its largest value.
const LIST: u8 = 0x03;
const COUNTER: u8 = 0x02;
/// Parameters of counters of errors: bytes that were read or written, and errors for which there was no help.
const PROCESSED: u8 = 0x05;
const UNCORRECTED: u8 = 0x06;

/// LOG SENSE. Parameters are lists, of which nothing is a threshold: which values are asked for (PC) makes no difference.
pub(crate) fn sense(call: &Call<'_>) -> Answer {
    let (page, subpage) = (call.cdb[2] & 0x3f, call.cdb[3]);
    let zones = zones(call);
    let of_zones = zones.first().map(|_| [STATISTICS, ZONES]);
    // The temperature and that of reference; no additional sense code, and the temperature last read.
    let usage = call.disk.usage();
    let count = |code, n: u64| (code, n.to_be_bytes().to_vec());
    let parameters = match page {
        SUPPORTED => Vec::new(),
        WRITE_ERRORS => vec![count(PROCESSED, usage.written)],
        READ_ERRORS => vec![count(PROCESSED, usage.read), count(UNCORRECTED, usage.unrecovered)],
        TEMPERATURE => vec![(0, vec![0, UNKNOWN]), (1, vec![0, UNKNOWN])],
        // The last twenty, or fewer and zeroes.
        SELF_TESTS => {
            let made = call.disk.self_tests();
            let told = (0..20).map(|i| made.get(i).map_or_else(|| vec![0; 16], self_test));
            (1..).zip(told).collect()
        }
        STATISTICS if of_zones.is_some() => zones,
        // Minutes with power; nothing is scanned, and nothing was.
        SCANS => vec![(0, [&usage.minutes.to_be_bytes()[..], &[0; 8]].concat())],
        EXCEPTIONS => vec![(0, vec![0, 0, UNKNOWN])],
        _ => return Err(Sense::at_field(2)),
    };
    let plain = |page| [page, 0];
    let listed = [[SUPPORTED, 0], [SUPPORTED, ALL]].into_iter();
    let listed = listed.chain([WRITE_ERRORS, READ_ERRORS, TEMPERATURE, SELF_TESTS].map(plain));
    let listed: Vec<[u8; 2]> = listed.chain(of_zones).chain([SCANS, EXCEPTIONS].map(plain)).collect();
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
        _ => {
            let control = if matches!(page, WRITE_ERRORS | READ_ERRORS) { COUNTER } else { LIST };
            let asked = parameters.iter().filter(|p| u64::from(p.0) >= from);
            asked
                .flat_map(|(code, value)| [&[0, *code, control, value.len() as u8], &value[..]].concat())
                .collect()
        }
    };
    // SPF: the page has a subpage.
    let first = page | u8::from(subpage != 0) << 6;
    let [high, low] = (body.len() as u16).to_be_bytes();
    Ok([&[first, subpage, high, low], &body[..]].concat())
}

/// The result of a self-test: what it was and that it passed, which of its parts failed (none), hours with power, the block at fault (none), sense.
fn self_test(made: &SelfTest) -> Vec<u8> {
    let hours = u16::try_from(made.minutes / 60).unwrap_or(u16::MAX);
    [&[made.code << 5, 0][..], &hours.to_be_bytes(), &[0xff; 8], &[0; 4]].concat()
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
