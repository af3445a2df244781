//! The registry's entry of the S-block layer: its page, its parameters, and building it for a drive.

use super::{Policy, Rules, SBlockLayer, SBlockOptions, Weights};
use crate::entry::{BuildContext, BuildResult, HEAD_TRACKS, LayerEntry};
use crate::parts::stretches::MediumSpace;
use smrlab_units::spec::{Kind, Param, SpecError, Values};

const PAGE: &str = "\
The host's space is cut into sections. Each has two circular buffers with a guard between head and tail: one of S-blocks
(consecutive host blocks that lie together and move as a whole) and one of single cached blocks. Writes are put at the head
of the cache ring; reads take every block from where its newest copy lies; a write of a whole S-block goes to the head of
the S-block ring at once (`bypass`).

When the cache ring is full, room for the write is made at its tail: valid blocks there are copied to the head (in batches)
until an invalid place can be freed, no more of them than are needed. Places become invalid when a block is written again
or by a *group destage*: an S-block and its cached blocks are read, merged in memory, and written to the head of the S-block
ring, which in turn moves S-blocks from its tail to its head where it is full.

`policy` chooses the S-block to destage, always one that has cached blocks:

- `closest-to-tail` of the S-block ring, so that nearly no S-block has to be moved (the paper's winner on random writes);
- `most-cached`: the most blocks for one S-block write, but S-block moves that take seconds;
- `tail-of-cache`: the S-block of the oldest cached block;
- `mix`: the highest `mix_tail` x closeness to the tail + `mix_cached` x cached share + `mix_age` x age of its oldest
  block, among 16 S-blocks near the tail and the winners of the other two.

Rules: the paper destages only when no cached block at all is invalid. Taken to the letter (`rules=literal`) this
collapses, because the few blocks that one destage frees lie anywhere in the ring and everything before them has to be copied.
`rules=repaired` destages once a write (and `destage_ahead` S-blocks more) while less than the share `low_water` of the ring is
invalid. The literal rules also move an S-block from the tail that is about to be rewritten anyway.

S-blocks that hold nothing, because nothing of them was ever written or all of it was discarded, take no slot
(`unwritten=skip`): they are not copied when the ring turns, and a destage reads only their cached blocks. Reads of them go
to where they would lie and answer zeroes. `unwritten=copy` treats them like all others, as the paper does: its drive is full.

The ring of S-blocks turns in order, so overwriting a small region costs much where the rest of the drive is full: each turn
copies every S-block outside the region once, and makes room for as many writes as there are spare slots. With 1 % of
overprovision that is about 99 S-blocks read and written for each one overwritten, for good. `moves=paced` spreads this
evenly: before each S-block that is written the tail moves on by as many slots as it takes to come to the next invalid ones
in time, about `S-blocks / spare slots` (99 at 1 %) and never more than four times as many. It copies up to a third more
S-blocks in all, because invalid slots are reached before they are as many as could be. `moves=at-once` copies nothing
until the ring is full, and then everything that lies before the first invalid slot, up to the whole ring, while one request
waits: hours on a large drive.

Power cuts lose nothing: no write touches or damages a place in use. The guard of a ring is what a write at the head
damages, and in the cache ring one batch more, so that blocks are copied before their place is freed; the S-block ring
keeps one slot free beyond its guard. The map is assumed to survive (`--metadata nv`).

On a drive with tracks a ring goes over several strokes where it has to, and no S-block crosses one. The cache ring is at
least four times as long as what a write damages. Discards drop cached blocks, and read as zeroes until the blocks are
written again. Memory: 16 bytes an S-block and 4 a slot where anything near was written, and 9.4 for up to eight
neighbouring cached blocks.
";

/// See the page.
pub static ENTRY: LayerEntry = LayerEntry {
    name: "s-block",
    aliases: &["sblock", "s-blocks"],
    summary: "sections with a ring of cached blocks and a ring of S-blocks; group destage and two defrags",
    reference: "Cassuto et al. 2010, Indirection systems for shingled-recording disk drives, section V",
    page: PAGE,
    idle: "nothing, by default and with any option: destaging, copying and turning the rings are done while writes wait, so a full cache is as full after a night's rest",
    params: PARAMS,
    tested: &[
        "granularity=8,sblock_blocks=16",
        "policy=most-cached,rules=literal",
        "unwritten=copy,sblock_blocks=16",
        "moves=at-once,policy=mix",
        "policy=tail-of-cache,destage_ahead=2,low_water=20%",
        "policy=mix,bypass=off,sections=2,sblock_blocks=16,tracks=2",
    ],
    ..LayerEntry::new(build)
};

const WEIGHT: Kind = Kind::Real(0.0, 1e6);

const PARAMS: &[Param] = &[
    Param::new("cache", Kind::Share(0.0001, 0.5), "1%")
        .doc("share of a section that is its cache ring (paper: 1 %)"),
    Param::new("overprovision", Kind::Share(0.0, 0.5), "1%")
        .doc("share of the slots kept beyond the S-blocks (paper: 1 %)"),
    Param::new("sections", Kind::Count(1, 1 << 16), "")
        .doc("sections; default: 10 (not stated in the paper), 1 on drives below 1 000 000 blocks"),
    Param::new("sblock_blocks", Kind::Count(8, 1 << 19), "")
        .doc("blocks in an S-block; default: 2000 (paper), less on drives below 1 000 000 blocks"),
    Param::new(
        "policy",
        Kind::Choice(&["closest-to-tail", "most-cached", "tail-of-cache", "mix"]),
        "closest-to-tail",
    )
    .doc("which S-block is destaged (paper V.C: TAIL_S, MOST, TAIL_C)"),
    Param::new("mix_tail", WEIGHT, "1")
        .doc("weight of closeness to the tail of the S-block ring in policy=mix"),
    Param::new("mix_cached", WEIGHT, "1")
        .doc("weight of the share of the S-block that is cached in policy=mix"),
    Param::new("mix_age", WEIGHT, "1")
        .doc("weight of the oldest cached block's closeness to the tail in policy=mix"),
    Param::new("destage_ahead", Kind::Count(0, 1 << 20), "0")
        .doc("S-blocks destaged beyond the one that is needed"),
    Param::new("low_water", Kind::Share(0.0, 0.9), "3%")
        .doc("phi: a destage is due when less than this share of the cache ring is invalid (rules=repaired)"),
    Param::new("rules", Kind::Choice(&["repaired", "literal"]), "repaired")
        .doc("the paper's rules to the letter, or repaired"),
    Param::new("unwritten", Kind::Choice(&["skip", "copy"]), "").doc(
        "S-blocks that hold nothing take no slot and are never moved, or are copied like others; \
         default: skip, with rules=literal copy",
    ),
    Param::new("moves", Kind::Choice(&["paced", "at-once"]), "").doc(
        "S-blocks at the tail are moved on in steps, or all at once when the ring is full; default: \
         paced, with rules=literal at-once",
    ),
    Param::new("bypass", Kind::Switch, "on").doc("writes of whole S-blocks do not go through the cache"),
    Param::new("granularity", Kind::Choice(&["1", "8"]), "1")
        .doc("blocks in a unit that is cached as a whole"),
    Param::new("batch", Kind::Count(1, 1 << 20), "1000")
        .doc("most blocks that one copy moves in the cache ring"),
    HEAD_TRACKS,
];

fn build(context: &BuildContext, values: &Values) -> BuildResult {
    let space = MediumSpace::of(&context.drive);
    let small = space.counted.0 < 1_000_000;
    let size = if small { (space.counted.0 / 100 / 8 * 8).max(8) } else { 2000 };
    let literal = values.text("rules") == Some("literal");
    let rules = Rules {
        size: values.given("sblock_blocks", Values::count).unwrap_or(size),
        policy: match values.text("policy") {
            Some("most-cached") => Policy::MostCached,
            Some("tail-of-cache") => Policy::TailOfCache,
            Some("mix") => Policy::Mix(Weights {
                tail: values.real("mix_tail"),
                cached: values.real("mix_cached"),
                age: values.real("mix_age"),
            }),
            _ => Policy::ClosestToTail,
        },
        destage_ahead: values.count("destage_ahead") as u32,
        low_water: values.share("low_water"),
        skip: values.text("unwritten").map_or(!literal, |v| v == "skip"),
        paced: values.text("moves").map_or(!literal, |v| v == "paced"),
        literal,
        bypass: values.on("bypass"),
        granularity: if values.text("granularity") == Some("8") { 8 } else { 1 },
        batch: values.count("batch"),
    };
    let options = SBlockOptions {
        cache: values.share("cache"),
        overprovision: values.share("overprovision"),
        sections: values.given("sections", Values::count).unwrap_or(if small { 1 } else { 10 }),
        rules,
    };
    let layer = SBlockLayer::new(&space, options);
    Ok(Box::new(layer.map_err(|e| SpecError::Other(format!("{}: {e}", ENTRY.name)))?))
}
