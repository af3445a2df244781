//! What each generator draws for a seed, recorded once: a change means that results of old seeds change.

use smrlab_trace::{OpenContext, open, read_all};
use smrlab_units::Blocks;

/// A generator with parameters, and the digest of its requests.
const ON_RECORD: &[(&str, u64)] = &[
    ("uniform,requests=300", 0x4cd4_dc28_62a1_9449),
    (
        "uniform,requests=300,write=30%,fua=50%,size=uniform(1blk;100blk),align=1blk,interarrival=normal(5ms;9ms)",
        0x820e_d5a1_72f1_4cc2,
    ),
    (
        "uniform,requests=300,size=exp(64KiB),align=16KiB,span=10%,interarrival=exp(1s),seed=3",
        0x290d_4ed9_e771_024e,
    ),
    ("uniform,requests=300,size=exp(512B)", 0x664d_464d_c214_eb61),
    ("sequential,requests=300,size=uniform(8blk;40blk),span=4000blk,write=10%", 0x36fb_8a60_2681_9518),
    ("sequential,requests=300,streams=3,size=48blk,span=1000blk,align=1blk", 0x1ad0_c02e_209f_2072),
    ("sequential,streams=3,once=on,size=48blk,span=1000blk", 0xf59b_0399_1e69_59a2),
    ("zipf,requests=300", 0x4ca2_0dc3_c681_f89b),
    ("zipf,requests=300,theta=0.4,scatter=off,size=4blk", 0xbaf3_f48f_979c_cf0b),
    ("zipf,requests=300,theta=1,align=1blk", 0x9cc3_3c94_5524_d581),
    ("zipf,requests=300,theta=2.5,size=exp(8KiB)", 0x3043_cf9b_0865_5ef2),
    ("hotcold,requests=300,hot=30%,share=60%,size=uniform(1blk;9blk)", 0xbb06_c1c1_2d7f_d867),
    ("bursty,requests=300,burst=7", 0xc919_c15c_5711_e71f),
    ("bursty,requests=300,burst=2,pause=normal(2s;1s)", 0xd2f7_943b_e3f8_d7b3),
    ("backup,requests=300", 0xd484_3ff4_2d1c_abe0),
    ("backup,once=off,span=500blk,requests=300", 0x3662_f448_e81d_7281),
    ("mix,requests=300", 0x3c3e_2539_c791_7a3b),
    ("mix,requests=300,of=runs:3;hotcold:1;local-time:2,size=uniform(4KiB;8KiB)", 0x066e_e43d_4500_7bdc),
    ("local-space,requests=300,near=1MiB,stay=5", 0x7de5_592e_c478_168f),
    ("local-time,requests=300,reuse=60%,memory=7", 0x2e47_0232_e8c0_aa04),
    ("back-to-back,requests=300", 0x95d1_1195_9750_21f2),
    ("idle-gaps,requests=300,busy=25ms,idle=1s,interarrival=exp(10ms)", 0x9574_e2e3_e99b_ec5c),
    ("runs,requests=300,hot=20%,share=50%,run=3,write=40%,size=uniform(4blk;30blk)", 0xe327_3661_99f3_2144),
    ("phases", 0xb181_30ba_d364_93c4),
    (
        "phases,repeat=3,span=4MiB,of=idle(1s);idle(2s);burst(9,size=8KiB);fill(5%,size=16KiB);zipf(7);idle(5s);probe(3)",
        0x8125_88b8_294a_b940,
    ),
    ("dvs-raid,requests=300,stream=usr0", 0x0adb_12ed_a8e0_746a),
    ("dvs-raid,requests=300,stream=web0,run=2.5,hot=30%", 0xcb62_563c_b981_685f),
    ("dvs-raid,requests=300,stream=prxy0,unique=1MB", 0x0bfd_28a1_d0ee_607a),
    ("dvs-raid,requests=300,stream=mds0,written=50%,write=20%", 0x586f_5933_bf19_c2d4),
    ("dvs-raid,requests=300,stream=financial1,size=8KiB", 0x55e3_c549_04d8_7f57),
    ("dvs-raid,requests=2000,stream=financial2,unique=100KB", 0x95c7_bfb3_6d92_bf72),
    ("zoned,requests=300", 0x5c56_d099_1887_3722),
    (
        "zoned,requests=600,writers=3,zone=128blk,span=2000blk,from=200blk,write=60%,size=exp(8KiB)",
        0x5b6b_b36e_9648_5154,
    ),
    ("kv-store,records=2000,operations=2000,table=64KiB,span=40000blk,reset=on", 0x2b3d_61aa_897c_004f),
    (
        "kv-store,records=2000,operations=2000,store=leveldb,table=32KiB,value=3blk,theta=0,write=90%",
        0x43d2_eb9e_7836_f3e9,
    ),
    ("kv-store,records=2000,operations=2000,store=leveldb,load=off,value=512B", 0x3c74_0d73_f074_583d),
    (
        "kv-store,records=1500,operations=3000,store=btree,cache=5%,span=24000blk,value=3blk",
        0x3041_39ba_840e_a81e,
    ),
];

#[test]
fn each_generator_draws_what_is_on_record() {
    let context = OpenContext { capacity: Some(Blocks(1_000_000)), seed: 7, ..OpenContext::default() };
    let mut off = Vec::new();
    for (item, recorded) in ON_RECORD {
        let all = open(&format!("synth:{item}"), &context).and_then(|mut s| read_all(&mut s));
        let all = all.unwrap_or_else(|e| panic!("{item}: {e}"));
        let digest = all.iter().fold(0xcbf2_9ce4_8422_2325, |digest: u64, r| {
            let words = [r.arrival.0, r.op.index() as u64, r.lba.0, u64::from(r.blocks), u64::from(r.fua)];
            words.iter().fold(digest, |d, word| (d ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(23))
        });
        if digest != *recorded {
            let [a, b, c, d] = [48, 32, 16, 0].map(|shift| digest >> shift & 0xffff);
            off.push(format!("    ({item:?}, 0x{a:04x}_{b:04x}_{c:04x}_{d:04x}),"));
        }
    }
    assert!(off.is_empty(), "not what is on record:\n{}", off.join("\n"));
}
