#!/bin/sh
# test-rust.sh: the workspace's tests with fixed seeds, all of them whatever fails; at the end, which of them were skipped, and why.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
PROPTEST_RNG_SEED=20261122 cargo test --workspace --quiet --no-fail-fast "$@" 2>"$log"
status=$?
grep -v '^skipped: ' "$log" >&2
sort -u "$log" | sed -n '/^skipped: /p'
echo "$(awk '/^skipped: /{ print $2 }' "$log" | sort -u | wc -l) Rust tests were skipped"
exit $status
