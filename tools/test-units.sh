#!/bin/sh
# test-units.sh [OPTION OF cargo test ...]: the unit tests of all crates but the testkit's. A crate is compiled once more for its
# unit tests: where these are quick, without being optimised, which takes a quarter of the time, or less optimised. A crate
# without any is left out: `--lib` would compile it all the same.
set -u
status=0
rest="--exclude smrlab-testkit"
for crate in crates/*; do
    grep -rq 'cfg(test)' "$crate/src" || rest="$rest --exclude smrlab-${crate#crates/}"
done
for unit in array:0 disk:0 trace:0 device:0 drive:0 units:0 scsi:0 iscsi:0 ublk:0 probe:0 py:0 sim:1 stl:1; do
    crate=smrlab-${unit%:*}
    cargo test --lib -p "$crate" --config "profile.dev.package.$crate.opt-level=${unit#*:}" "$@" || status=1
    rest="$rest --exclude $crate"
done
# shellcheck disable=SC2086 # each word is one of its own
cargo test --workspace --lib --bins --no-fail-fast $rest "$@" || status=1
exit $status
