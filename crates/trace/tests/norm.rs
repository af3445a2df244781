//! Every reader agrees row by row with the independent conversion beside the trace.

mod support;

use support::{assert_agree, norm, ours, shared};

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
