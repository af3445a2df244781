//! The parameters of SSD caches.

use super::{evict, lists};
use smrlab_units::spec::{Kind, Param};

/// The parameters of every array that concern an SSD before it.
pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "ssd_read",
        kind: Kind::Size,
        default: "",
        doc: "read cache on an SSD: a size, or a share of the host's space; none without it",
    },
    Param {
        name: "ssd_write",
        kind: Kind::Size,
        default: "",
        doc: "write cache on an SSD, which acknowledges writes: a size, or a share of the host's space; none without it",
    },
    Param {
        name: "ssd_latency",
        kind: Kind::Time,
        default: "75us",
        doc: "time of a request to the SSD beside its transfer",
    },
    Param {
        name: "ssd_rate",
        kind: Kind::Real(0.001, 1e6),
        default: "200",
        doc: "MB/s of the SSD, one request after the other",
    },
    Param {
        name: "ssd_page",
        kind: Kind::Size,
        default: "64KiB",
        doc: "blocks that have a place on the SSD together, at most 64KiB; which of them are valid is known block by block",
    },
    Param {
        name: "ssd_group",
        kind: Kind::Size,
        default: "",
        doc: "blocks of the host's that are destaged together; default: the array's own group (dvs) or row (raid5), else 1MiB",
    },
    Param {
        name: "ssd_read_policy",
        kind: Kind::Choice(lists::NAMES),
        default: "lru",
        doc: "which page of the read cache goes",
    },
    Param {
        name: "ssd_write_policy",
        kind: Kind::Choice(evict::NAMES),
        default: "lru-lfu",
        doc: "which group is destaged: by recency and then frequency (Luo et al.), lru, least-rewrite (fewest pages rewritten in \
              place for each page freed; Wan et al.), scan (by address, CSCAN), wow (by address, what was touched since is passed over once; \
              Gill & Modha), stow (sequential and random writes in a queue each, as WOW's, of sizes that adapt; Gill et al.: take \
              ssd_control=rate with it)",
    },
    Param {
        name: "ssd_high",
        kind: Kind::Share(0.0, 1.0),
        default: "90%",
        doc: "destaging begins when so much of the write cache is dirty",
    },
    Param {
        name: "ssd_low",
        kind: Kind::Share(0.0, 1.0),
        default: "80%",
        doc: "and ends when only so much is",
    },
    Param {
        name: "ssd_control",
        kind: Kind::Choice(&["threshold", "rate"]),
        default: "threshold",
        doc: "threshold: all of ssd_depth between high and low; rate: destages under way grow from none at low to ssd_depth at \
              high (after STOW)",
    },
    Param { name: "ssd_depth", kind: Kind::Count(1, 1024), default: "4", doc: "groups destaged at a time" },
    Param {
        name: "ssd_batch",
        kind: Kind::Count(0, 1 << 20),
        default: "0",
        doc: "pages of a group destaged at a time, those written longest ago first; 0: all",
    },
    Param {
        name: "ssd_round",
        kind: Kind::Switch,
        default: "off",
        doc: "a write makes all of its pages dirty, as if the host wrote whole chunks (as in the counts of Luo et al.); not where \
              bytes are kept, for it has none to fill them with",
    },
    Param {
        name: "ssd_age",
        kind: Kind::Count(1, 1 << 40),
        default: "10000",
        doc: "writes after which lru-lfu halves its references",
    },
];
