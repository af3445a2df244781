#!/bin/sh
# test-units.sh [--no-run]: tests of the crates that have unit tests alone, all of them quick. Each such crate is compiled once more for
# them: without being optimised, which takes a quarter of the time.
set -u
status=0
for crate in smrlab-array smrlab-disk; do
    cargo test --lib -p $crate --config "profile.dev.package.$crate.opt-level=0" "$@" || status=1
done
exit $status
