//! The parameters of SSD caches.

use super::{destage_policies, read_policies};
use smrlab_units::spec::{Kind, Param};

/// The parameters of every array that concern an SSD before it.
pub(crate) const PARAMS: &[Param] = &[
    Param::new("ssd_read", Kind::Size, "")
        .doc("read cache on an SSD: a size, or a share of the host's space; none without it"),
    Param::new("ssd_write", Kind::Size, "").doc(
        "write cache on an SSD, which acknowledges writes: a size, or a share of the host's space; none \
         without it",
    ),
    Param::new("ssd_latency", Kind::Time, "75us").doc("time of a request to the SSD beside its transfer"),
    Param::new("ssd_rate", Kind::Real(0.001, 1e6), "200").doc("MB/s of the SSD, one request after the other"),
    Param::new("ssd_page", Kind::Size, "64KiB").doc(
        "blocks that have a place on the SSD together, at most 64KiB; which of them are valid is known \
         block by block",
    ),
    Param::new("ssd_group", Kind::Size, "").doc(
        "blocks of the host's that are destaged together; default: the array's own group (dvs) or row \
         (raid5), else 1MiB",
    ),
    Param::new("ssd_read_policy", Kind::Choice(read_policies::NAMES), "lru")
        .doc("which page of the read cache goes"),
    Param::new("ssd_write_policy", Kind::Choice(destage_policies::NAMES), "lru-lfu").doc(
        "which group is destaged: by recency and then frequency (Luo et al.), lru, least-rewrite \
         (fewest pages rewritten in place for each page freed; Wan et al.), scan (by address, CSCAN), \
         wow (by address, what was touched since is passed over once; Gill & Modha), stow (sequential \
         and random writes in a queue each, as WOW's, of sizes that adapt; Gill et al.: take \
         ssd_control=rate with it)",
    ),
    Param::new("ssd_high", Kind::Share(0.0, 1.0), "90%")
        .doc("destaging begins when so much of the write cache is dirty"),
    Param::new("ssd_low", Kind::Share(0.0, 1.0), "80%").doc("and ends when only so much is"),
    Param::new("ssd_control", Kind::Choice(&["threshold", "rate"]), "threshold").doc(
        "threshold: all of ssd_depth between high and low; rate: destages under way grow from none at \
         low to ssd_depth at high (after STOW)",
    ),
    Param::new("ssd_depth", Kind::Count(1, 1024), "4").doc("groups destaged at a time"),
    Param::new("ssd_batch", Kind::Count(0, 1 << 20), "0")
        .doc("pages of a group destaged at a time, those written longest ago first; 0: all"),
    Param::new("ssd_round", Kind::Switch, "off").doc(
        "a write makes all of its pages dirty, as if the host wrote whole chunks (as in the counts of \
         Luo et al.); not where bytes are kept, for it has none to fill them with",
    ),
    Param::new("ssd_age", Kind::Count(1, 1 << 40), "10000")
        .doc("writes after which lru-lfu halves its references"),
];
