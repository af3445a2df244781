//! What DVS costs, by the formulas that follow from its design (Luo et al.), against RAID-5.

use serde_json::Value;
use smrlab_sim::{Control, Spec, run};

/// Writes of `size` blocks all over a prefilled array; chunks read and written on the drives per chunk written by the host.
fn per_chunk(array: &str, size: u64) -> (f64, f64) {
    let text = format!(
        "drive = 'tiny'\nlayer = 'cmr'\narray = '{array}'\narrivals = 'closed'\nprefill = '100%'\nwrap = 'capacity'\n\
         trace = 'synth:uniform,requests=20000,size={size}blk,align={size}blk,write=100%,span=100%'\n"
    );
    let r =
        run(&Spec::from_toml(&text).unwrap(), &Control::new(), None).unwrap_or_else(|e| panic!("{e}")).json;
    let n = |path: &str| r.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {r:#}"));
    let host = n("/host/blocks_written");
    (n("/media/blocks_read") / host, n("/media/blocks_written") / host)
}

const N: f64 = 4.0;
const L: f64 = 20.0;

fn dvs(rho: f64) -> String {
    format!("dvs,disks=5,chunk=2blk,segment={L},overprovision={}%", (100.0 - rho * 100.0).round())
}

fn near(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 0.05, "{got}, not {want}");
}

/// Full stripes at a live share rho of all chunks: a group takes L stripes a cycle, of which rho L - 1 hold what was moved.
/// For long segments that is (N + 1) / (N (1 - rho)) writes and rho / (1 - rho) reads a chunk.
#[test]
fn full_stripes_cost_what_the_live_share_says() {
    for rho in [0.25, 0.5, 0.75] {
        let (reads, writes) = per_chunk(&dvs(rho), 8);
        let rows = L * (1.0 - rho) + 1.0;
        println!("rho {rho}: {reads:.2} reads, {writes:.2} writes a chunk");
        near(writes, (N + 1.0) / N * L / rows);
        near(reads, (rho * L - 1.0) / rows);
        assert!(writes < (N + 1.0) / (N * (1.0 - rho)) && reads < rho / (1.0 - rho));
    }
}

/// What a prefill wrote is live at the end, too: all chunks of a full array, whatever is written over them.
#[test]
fn chunks_of_a_prefill_are_live_at_the_end() {
    let text = format!(
        "drive = 'tiny'\nlayer = 'cmr'\narray = '{}'\nprefill = '100%'\n\
         trace = 'synth:uniform,requests=3,size=2blk,align=2blk,write=100%'\n",
        dvs(0.5)
    );
    let r = run(&Spec::from_toml(&text).unwrap(), &Control::new(), None).unwrap().json;
    let host_blocks = r["space"]["host_blocks"].as_u64().unwrap();
    assert_eq!(r["array"]["used_chunks"], host_blocks / 2);
}

/// Single chunks: RAID-5 takes two reads and two writes; DVS two writes and what collection costs, 2 + 3.6 rho / (1 - rho),
/// less where rho is below 0.357 and more above.
#[test]
fn single_chunks_are_cheaper_than_raid5_only_while_little_is_live() {
    let (reads, writes) = per_chunk("raid5,disks=5,chunk=2blk", 2);
    near(reads, 2.0);
    near(writes, 2.0);
    let all = |rho: f64| {
        let (reads, writes) = per_chunk(&dvs(rho), 2);
        println!("rho {rho}: {reads:.2} reads, {writes:.2} writes a chunk");
        reads + writes
    };
    assert!(all(0.2) < 4.0 && all(0.6) > 4.0);
    // Without any room left every write collects a group: worse than RAID-5 by far.
    assert!(all(1.0) > 20.0);
}

/// A stripe filled from old chunks is always full: N + 1 writes and N - 1 reads for one chunk, and a collection after
/// (1 - rho) L + 1 of them. The paper rejects it; so do the figures: more than twice the cost of narrow stripes at rho = 0.25.
#[test]
fn filling_stripes_from_old_chunks_costs_more_than_narrow_ones() {
    for rho in [0.25, 0.5] {
        let (reads, writes) = per_chunk(&format!("{},stripes=fill", dvs(rho)), 2);
        let rows = L * (1.0 - rho) + 1.0;
        println!("filled, rho {rho}: {reads:.2} reads, {writes:.2} writes a chunk");
        near(writes, (N + 1.0) * L / rows);
        near(reads, ((N - 1.0) * (rows - 1.0) + rho * N * L - 1.0) / rows);
        let (narrow_reads, narrow_writes) = per_chunk(&dvs(rho), 2);
        println!("narrow, rho {rho}: {narrow_reads:.2} reads, {narrow_writes:.2} writes a chunk");
        assert!(reads + writes > 2.0 * (narrow_reads + narrow_writes));
    }
}

/// Single chunks all over the array through a write cache of so many: full and narrow stripes, mean response in ms.
fn cached(chunks: u64, own: &str) -> [f64; 3] {
    let cache = format!("ssd_write={}blk,ssd_page=2blk{own}", chunks * 2);
    let text = format!(
        "drive = 'tiny'\nlayer = 'cmr'\narray = '{},{cache}'\narrivals = 'closed'\nprefill = '100%'\nwrap = 'capacity'\n\
         trace = 'synth:uniform,requests=4000,size=2blk,align=2blk,write=100%,span=100%'\n",
        dvs(0.5)
    );
    let r =
        run(&Spec::from_toml(&text).unwrap(), &Control::new(), None).unwrap_or_else(|e| panic!("{e}")).json;
    ["/array/stripes_full", "/array/stripes_partial", "/response_ms/mean"]
        .map(|path| r.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {r:#}")))
}

/// Chunks that wait for a full stripe: on writes all over the array this pays where the cache holds several chunks of each
/// group, and costs where it does not, because what waits fills it (the reason for which the paper does not wait).
#[test]
fn waiting_for_full_stripes_pays_only_with_a_large_cache() {
    let compare = |chunks| {
        let both = (cached(chunks, ""), cached(chunks, ",stripes=wait"));
        println!("{chunks} chunks: full, narrow, mean ms: {:.2?}; waiting: {:.2?}", both.0, both.1);
        both
    };
    let (narrow, waits) = compare(40);
    assert!(waits[1] < narrow[1] && waits[2] > 1.2 * narrow[2]);
    let (narrow, waits) = compare(400);
    assert!(waits[1] < narrow[1] / 10.0 && waits[0] > narrow[0] && waits[2] < narrow[2]);
}

/// A collection reads and writes in proportion to the length of the segment.
#[test]
fn collection_takes_as_long_as_the_segment() {
    let cost = |length: u64| {
        let array = format!("dvs,overprovision=0%,disks=5,chunk=1blk,segment={length}");
        let (reads, writes) = per_chunk(&array, 1);
        reads + writes
    };
    let (short, long) = (cost(25), cost(50));
    println!("reads and writes of a collection: {short:.1} at 25 chunks, {long:.1} at 50");
    near(long / short, 2.0);
}
