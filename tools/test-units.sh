#!/bin/sh
# test-units.sh [OPTION OF cargo test ...]: the unit tests of all crates but the testkit's. A crate is compiled once more for its
# unit tests: where these are quick, without being optimised, which takes a quarter of the time.
set -u
status=0
rest="--exclude smrlab-testkit"
for crate in smrlab-array smrlab-disk smrlab-trace smrlab-device; do
    cargo test --lib -p $crate --config "profile.dev.package.$crate.opt-level=0" "$@" || status=1
    rest="$rest --exclude $crate"
done
# shellcheck disable=SC2086 # each word is one of its own
cargo test --workspace --lib --bins --no-fail-fast $rest "$@" || status=1
exit $status
