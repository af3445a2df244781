#!/bin/sh
# warnings.sh: what the compiler and clippy (tools/rustc.sh) said of what is built for the tests; fails where that is anything.
# Cargo keeps it with what it built, and says it again. Crates without unit tests, which tie others to Python, nbdkit and FUSE,
# are looked at by clippy in `make lint` and `make test-full`; so are benchmarks.
set -u
command -v clippy-driver >/dev/null || { echo "clippy is missing: rustup component add clippy" >&2; exit 3; }
said=$({
    cargo build -p smrlab-py -p smrlab-nbdkit
    cargo test --workspace --test '*' --no-run
    cargo test -p smrlab-testkit --lib --no-run
    tools/test-units.sh --no-run
} 2>&1) || { echo "$said"; exit 1; }
echo "$said" | grep -qE '^(warning|error)' || exit 0
echo "$said" | grep -vE '^ +(Compiling|Finished|Executable) '
exit 1
