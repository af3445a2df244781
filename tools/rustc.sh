#!/bin/sh
# rustc.sh RUSTC ARGUMENTS: how Cargo calls the compiler for our own crates (.cargo/config.toml). Tests and programs are compiled
# by clippy, which is the compiler with more lints: for `cargo clippy` all that others wrote has to be checked once more. What is
# to be fast is not, for clippy switches off a part of the optimising; libraries are looked at with their unit tests.
case " $* " in
*" lto=fat "*) ;; # a release, or a benchmark
*" --test "* | *" --crate-type bin "*) command -v clippy-driver >/dev/null && exec clippy-driver "$@" ;;
esac
exec "$@"
