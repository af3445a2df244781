#!/bin/sh
# lint.sh BIN: every check of the sources, also after one has failed; at the end what failed, each with its command.
# BIN is the folder with ruff and mypy.
set -u
bin=$1
failed=""
check() {
    "$@" || failed="$failed
    $*"
}
check cargo fmt --all --check
check cargo xtask tidy
check cargo xtask docs --check
check cargo clippy --workspace --all-targets --quiet --keep-going -- -D warnings
check "$bin/ruff" check python tests benches tools traces
check "$bin/ruff" format --check python tests benches tools traces
check "$bin/mypy"
[ -z "$failed" ] && exit 0
echo "failed:$failed" >&2
exit 1
