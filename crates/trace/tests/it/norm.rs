//! Every reader agrees row by row with the independent conversion beside the trace.

use crate::support::{assert_agree, norm, ours, shared};

/// Compares `trace` (with options) with `norm` where both are here.
fn check(trace: &str, options: &str, norm_file: &str) {
    let (Some(t), Some(n)) = (shared(trace), shared(norm_file)) else { return };
    assert_agree(&ours(&format!("{t}{options}")), &norm(&n));
}

#[test]
fn msr() {
    for name in ["hm_0.first1000", "prxy_0.first20000"] {
        let (t, n) = (format!("msr-cambridge/{name}.csv.zst"), format!("msr-cambridge/{name}.norm.csv.zst"));
        check(&t, "", &n);
        check(&t, ":msr", &n);
    }
}

#[test]
fn spc() {
    check("umass-spc/Financial1_first948.spc.zst", "", "umass-spc/Financial1_first948.norm.csv.zst");
}

#[test]
fn mqsim_columns() {
    let (Some(t), Some(n)) =
        (shared("umass-spc/wsrch-small.trace.zst"), shared("umass-spc/wsrch-small.norm.csv.zst"))
    else {
        return;
    };
    let mut norm = norm(&n);
    norm.iter_mut().for_each(|r| r.device = r.device.replace("asu", ""));
    assert_agree(&ours(&t), &norm);
    assert_agree(&ours(&format!("{t}:csv,preset=mqsim")), &norm);
}

#[test]
fn msr_cut() {
    for name in ["msr.cut.per_10k.rw_20_80.105", "msr.cut.per_10k.rw_40_60.1370"] {
        let (t, n) =
            (format!("msr-cambridge/{name}.trace.zst"), format!("msr-cambridge/{name}.norm.csv.zst"));
        check(&t, "", &n);
    }
}

#[test]
fn diskmon() {
    for name in ["mayun", "mayun4", "sys1"] {
        let (t, n) =
            (format!("diskmon-desktop/{name}.txt.zst"), format!("diskmon-desktop/{name}.txt.norm.csv.zst"));
        check(&t, "", &n);
    }
}

#[test]
fn blkparse() {
    check(
        "blkparse-samples/apress_hadoop_blktrace.txt.zst",
        ":blkparse,event=issued",
        "blkparse-samples/apress_hadoop_D.norm.csv.zst",
    );
    check(
        "blkparse-samples/evelii_nvme_sample.txt.zst",
        ":blkparse,event=queued",
        "blkparse-samples/evelii_nvme_Q.norm.csv.zst",
    );
    check("blkparse-samples/wiscsee_blkparse-output.txt.zst", "", "blkparse-samples/wiscsee_D.norm.csv.zst");
}

#[test]
fn blktrace() {
    let (Some(t), Some(n)) = (
        shared("blkparse-samples/takeoverjp_sample.blktrace.0.zst"),
        shared("blkparse-samples/takeoverjp_D.norm.csv.zst"),
    ) else {
        return;
    };
    let mut norm = norm(&n);
    norm.iter_mut().for_each(|r| r.device = r.device.replace("0x10300000", "259,0"));
    assert_agree(&ours(&format!("{t}:auto,start=keep")), &norm);
    assert_eq!(ours(&t)[0].us, 0, "times since boot start at 0 unless asked otherwise");
}

#[test]
fn hp_srt() {
    check("hp-hplajw/ajw.1week.srt.zst", "", "hp-hplajw/hplajw_week.norm.csv.zst");
}

#[test]
fn cloudphysics_binary() {
    check("cloudphysics/cloudPhysicsIO.vscsi.zst", "", "cloudphysics/cloudPhysicsIO.norm.csv.zst");
}

/// The CSV form has whole seconds only; everything else is the same.
#[test]
fn cloudphysics_csv() {
    let (Some(t), Some(n)) =
        (shared("cloudphysics/cloudPhysicsIO.csv.zst"), shared("cloudphysics/cloudPhysicsIO.norm.csv.zst"))
    else {
        return;
    };
    let (ours, mut norm) = (ours(&t), norm(&n));
    for (a, b) in ours.iter().zip(norm.iter_mut()) {
        assert!(a.us.abs_diff(b.us) <= 1_000_000, "{a:?} {b:?}");
        (b.us, b.device) = (a.us, "0".to_owned());
    }
    assert_agree(&ours, &norm);
}

/// The norm keeps the file's order, which runs back; ours is sorted, equal arrivals in the file's order.
fn check_sorted(trace: &str, norm_file: &str) {
    let (Some(t), Some(n)) = (shared(trace), shared(norm_file)) else { return };
    let mut norm = norm(&n);
    norm.sort_by_key(|r| r.us);
    assert_agree(&ours(&t), &norm);
}

#[test]
fn tencent() {
    check_sorted("tencent-cbs/cloud_storage-sample.bz2", "tencent-cbs/cloud_storage-sample.norm.csv.zst");
}

#[test]
fn systor17() {
    for name in ["systor17-additional-sample", "systor17-traces-sample"] {
        check_sorted(&format!("systor17/{name}.csv.gz"), &format!("systor17/{name}.norm.csv.zst"));
    }
}

#[test]
fn fiu() {
    for name in ["home1sample", "home2sample"] {
        let (t, n) =
            (format!("fiu-homes/{name}.blkparse.zst"), format!("fiu-homes/{name}.blkparse.norm.csv.zst"));
        check(&t, "", &n);
    }
}

/// No independent conversion of these exists: whole files are read, and a few facts of them hold.
#[test]
fn the_other_shared_traces_are_read_whole() {
    if let Some(log) = shared("http-logs/yeppio_sample_nasa_log.txt.zst") {
        let rows = ours(&log);
        assert!(
            rows.len() > 800 && rows.iter().all(|r| r.op == smrlab_units::HostOp::Read && r.blocks <= 256)
        );
        assert_eq!((rows[0].lba, rows[0].blocks), (0, 13), "the first file sent, 6245 bytes");
    }
    for drive in ["atlas10k", "hp_c2247a", "ibm18es"] {
        let Some(t) = shared(&format!("../validation/disksim/traces/{drive}.trace.zst")) else { continue };
        let rows = ours(&t);
        assert!(rows.len() > 1000 && rows[0].us == 0, "{drive}");
    }
}
