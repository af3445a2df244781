#!/bin/sh
# rustc.sh RUSTC ARGUMENTS: how Cargo calls the compiler for our own crates (.cargo/config.toml). Tests, programs and what is loaded
# into others are compiled by clippy, which is the compiler with more lints: to look at them by `cargo clippy` all that others
# wrote has to be checked once more. Libraries are not, for clippy switches off a part of the optimising; their unit tests
# contain them.
case " $* " in
*" --test "* | *" --crate-type bin "* | *" --crate-type cdylib "*) lint=yes ;;
*" --crate-name smrlab_fuse "*) lint=yes ;; # has no unit tests
*) lint= ;;
esac
[ "$lint" ] && command -v clippy-driver >/dev/null && exec clippy-driver "$@"
exec "$@"
