//! When a drive stalls, and when its cache is clean again: against the logs and against arithmetic.

use serde_json::Value;
use smrlab_sim::table::Column;
use smrlab_sim::{Control, RunResult, Spec, run};
use std::path::PathBuf;

/// A trace of writes of one block, `arrivals` in ms.
fn trace(name: &str, arrivals: impl Iterator<Item = (u64, u64)>) -> PathBuf {
    let path = std::env::temp_dir().join(format!("smrlab-recovery-{name}-{}.csv", std::process::id()));
    let lines: String = arrivals.map(|(ms, lba)| format!("{ms},W,{lba},512\n")).collect();
    std::fs::write(&path, lines).unwrap();
    path
}

fn done(name: &str, arrivals: impl Iterator<Item = (u64, u64)>, more: &str) -> RunResult {
    let path = trace(name, arrivals);
    let text = format!("trace = '{}:csv,columns=time:ms;op;lba;size,start=keep'\n{more}", path.display());
    let result = run(&Spec::from_toml(&text).unwrap(), &Control::new(), None);
    std::fs::remove_file(path).unwrap();
    result.unwrap_or_else(|e| panic!("{text}\n{e}"))
}

fn number(v: &Value, path: &str) -> f64 {
    v.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} in {v:#}"))
}

fn reals(r: &RunResult, name: &str) -> Vec<Option<f64>> {
    match &r.tables[0].columns.iter().find(|(n, _)| *n == name).unwrap().1 {
        Column::Real(v) => v.iter().map(|x| Some(*x)).collect(),
        Column::Maybe(v) => v.clone(),
        other => panic!("{other:?}"),
    }
}

/// A cache of one band, emptied in idle time: a burst fills it, a pause empties it, and one request comes after.
#[test]
fn a_cache_that_was_left_alone_is_clean_again_and_says_when() {
    let burst = (0..40).map(|i| (5_000 + i * 20, i * 32));
    let probe = std::iter::once((600_000, 0));
    let r = done(
        "idle",
        burst.chain(probe),
        "drive = 'tiny'\nlayer = 'disk-cache,cache=5%,idle=1s'\nwindow = '1s'",
    );
    let again = number(&r.json, "/cleaning/clean_again_s");
    // From the first request: the burst takes 0.78 s, the drive waits for a second, and cleans.
    assert!(again > 1.78 && again < 100.0, "{again}");
    let fill = reals(&r, "cache_share");
    // Windows count from the first request. The burst ends within one; steps of cleaning begin when a second was idle.
    let emptied = again.floor() as usize;
    let held: Vec<f64> = fill[..emptied].iter().map(|f| f.unwrap()).collect();
    assert!(held[0] > 0.25 && held.is_sorted_by(|a, b| a >= b) && held.iter().all(|f| *f > 0.0), "{held:?}");
    assert!(
        fill[emptied..595].iter().all(|f| *f == Some(0.0)),
        "an idle window has what was there before it"
    );
    assert!(fill.last().unwrap().unwrap() > 0.0, "the probe is cached");
}

/// The same on arrays: of one drive all is as without the array, of several their caches are one.
#[test]
fn caches_of_an_array_are_one_and_clean_when_the_last_of_them_is() {
    let writes = || (0..40).map(|i| (5_000 + i * 20, i * 32)).chain(std::iter::once((600_000, 0)));
    let of = |array: &str| {
        let spec = "drive = 'tiny'\nlayer = 'disk-cache,cache=5%,idle=1s'\nwindow = '1s'";
        done(&array.replace(',', "-"), writes(), &format!("array = '{array}'\n{spec}"))
    };
    let (alone, one, two) = (of("single"), of("spanning,disks=1"), of("striped,disks=2,chunk=32blk"));
    assert_eq!(reals(&alone, "cache_share"), reals(&one, "cache_share"));
    let again = "/cleaning/clean_again_s";
    assert_eq!(number(&alone.json, again), number(&one.json, again));
    let members = [0, 1].map(|m| number(&two.json["members"][m], again));
    // The first request of the second drive comes 20 ms later.
    assert_eq!(number(&two.json, again), members[0].max(members[1] + 0.02));
    let fill = reals(&two, "cache_share");
    let emptied = number(&two.json, again).ceil() as usize;
    // As many blocks in twice the cache, but for those since the last look.
    let (ours, half) = (fill[0].unwrap(), reals(&alone, "cache_share")[0].unwrap() / 2.0);
    assert!((ours - half).abs() < 0.02, "{ours} {half}");
    assert!(fill[emptied..595].iter().all(|f| *f == Some(0.0)), "{fill:?}");
}

#[test]
fn a_cache_that_is_never_emptied_and_a_layer_without_one_have_no_such_key() {
    for layer in ["disk-cache,cache=5%", "rmw"] {
        let r =
            done("never", (0..40).map(|i| (i * 20, i * 32)), &format!("drive = 'tiny'\nlayer = '{layer}'"));
        assert!(r.json.pointer("/cleaning/clean_again_s").is_none(), "{layer}");
        assert_eq!(layer == "rmw", reals(&r, "cache_share").iter().all(Option::is_none), "{layer}");
    }
}

/// One request at a time on a drive that is idle: response = service, so the requests that take longer than the threshold
/// can be counted from the histogram of service times, and none overlap.
#[test]
fn requests_apart_stall_each_for_itself() {
    let arrivals = || (0..50).map(|i| (1_000 + i * 1_003, i * 37 % 2000));
    let base = done("apart", arrivals(), "drive = 'he2014-example'\nlayer = 'rmw,band=4'");
    let mean = number(&base.json, "/response_ms/mean");
    let r = done(
        "apart-again",
        arrivals(),
        &format!(
            "drive = 'he2014-example'\nlayer = 'rmw,band=4'\nstall = '{}us'\nwindow = '1s'",
            (mean * 1e3) as u64
        ),
    );
    let j = &r.json;
    let count = number(j, "/stalls/count");
    assert!(0.0 < count && count < 50.0, "{count}");
    assert_eq!(number(j, "/stalls/episodes"), count);
    let waited = number(j, "/stalls/total_s");
    assert!((number(j, "/stalls/share") * number(j, "/makespan_s") - waited).abs() < 1e-9);
    assert_eq!(number(j, "/stalls/max_s") * 1e3, number(j, "/response_ms/max"));
    let over_time: f64 = reals(&r, "stalled_share").into_iter().flatten().sum();
    assert!((over_time - waited).abs() < 1e-9, "{over_time} {waited}");
}

#[test]
fn a_queue_that_grows_is_one_stall_from_its_first_late_request_to_the_end() {
    // All at 2 s: the k-th waits for all before it; what is late is late until the last is done.
    let r = done(
        "queue",
        (0..200).map(|i| (2_000, i * 1009 % 8000)),
        "drive = 'he2014-example'\nlayer = 'cmr'\nstall = '50ms'",
    );
    let j = &r.json;
    assert_eq!((number(j, "/stalls/episodes"), number(j, "/stalls/first_s")), (1.0, 0.0));
    assert_eq!(number(j, "/stalls/share"), 1.0);
    assert!(number(j, "/stalls/count") < 200.0 && number(j, "/stalls/count") > 100.0);
}
