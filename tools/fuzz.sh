#!/bin/sh
# Runs fuzz targets one after the other, each for so many seconds, from the corpus that the project has; what finds more is
# kept in target/fuzz/NAME for the next run. Ends at the first finding, whose input is in fuzz/artifacts/NAME.
#   fuzz.sh 60 scsi iscsi
set -eu
seconds=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)
for name in "$@"; do
    found=${CARGO_TARGET_DIR:-$root/target}/fuzz/$name
    mkdir -p "$found"
    echo "fuzz: $name for $seconds s"
    (cd "$root/fuzz" && cargo +nightly fuzz run "$name" "$found" "$root/fuzz/corpus/$name" -- \
        -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1)
done
