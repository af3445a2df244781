# make demo    set-up, then the main job on a recorded trace: a table here, figures in demo-out/report.html
# make setup   besides, what serves block devices
# make test    set-up, then lints and every test that each change must pass
# make test-changed   what tests of your change (against BASE=main, or HEAD) fit into two minutes; says what it left out
# make test-full   besides: what takes long and finds little for most changes; its result is kept in tools/test-full.json
# make test-zones   what is about zones alone: hosts of host-managed drives on bytes, libzbc's tests, iscsi-test-cu, guests with a kernel,
#               and fio's tests of zoned block devices where SMRLAB_FIO names its source
# make test-cluster   studies that are disturbed: workers, schedulers killed, a store with errors (5 minutes)
# make wheel   a wheel with everything in it, the server of block devices too: dist/
# make test-wheel   that wheel, installed in an empty environment, serves a device
# make soak    the random tests, the walk over media logs and figures of random runs with new seeds and many more cases, until one fails or the time is up (SOAK=600 s)
# make fuzz    bytes that nobody would send, to what reaches a served disk from outside: FUZZ=60 seconds each for FUZZED="scsi iscsi"
# make bench   requests per second and memory of the engine; kept in benches/history.json
# make bench-device   served devices against nbdkit's own plugins, over iSCSI against plain memory behind the same target, and attached
#               by ublk in a guest against the kernel's own zoned memory
# make papers   the papers' figures and claims from our own runs, full scale; out/papers/index.html. Recorded traces,
#               where TRACES=../shared/traces has them, are run too
# Set-up is remembered in .setup/; a second call does only what changed.

PYTHON ?= python3
BIN := .venv/bin
# What is imported is compiled when it is first imported.
PIP = tools/install-python.sh .venv
TARGET := $(or $(CARGO_TARGET_DIR),target)
TRACES ?= $(or $(SMRLAB_SHARED),../shared)/traces
SOURCES := $(shell find crates drives -name '*.rs' -o -name 'Cargo.toml' -o -name '*.toml') Cargo.toml Cargo.lock pyproject.toml
# Downloads and compilers side by side.
MAKEFLAGS += --jobs=3

.PHONY: papers setup-test demo test test-changed test-full test-cluster wheel test-wheel soak fuzz bench bench-device setup lint test-rust test-python docs clean
.DEFAULT_GOAL := demo

setup: .setup/native

setup-test: .setup/venv-test .setup/native

demo: .setup/core
	$(BIN)/smrlab demo

test: .setup/packages-test .setup/guest-kernel .setup/venv-test .setup/native .setup/tests .setup/components
	$(BIN)/python tools/gate.py

test-full: .setup/packages-test .setup/guest-kernel .setup/venv-test .setup/native .setup/tests .setup/components
	$(BIN)/python tools/gate.py --full

test-changed: .setup/venv-test .setup/components
	$(BIN)/python tools/changed.py $(BASE)

lint: .setup/venv-test .setup/components
	tools/lint.sh $(BIN)

# The same cases on every run; `make soak` looks for new ones.
test-rust:
	tools/test-rust.sh

soak: .setup/native
	tools/soak.sh $(or $(SOAK),600)

fuzz: .setup/cargo-fuzz/bin/cargo-fuzz
	PATH="$(CURDIR)/.setup/cargo-fuzz/bin:$$PATH" tools/fuzz.sh $(or $(FUZZ),60) $(or $(FUZZED),scsi iscsi)

test-python: .setup/venv-test .setup/native
	$(BIN)/pytest -n 3 --dist loadgroup

test-zones: .setup/packages-zones .setup/guest-kernel .setup/guest-kernel-6.1 .setup/venv-test .setup/native
	cargo test --quiet -p smrlab-testkit --test it -- zoned
	$(BIN)/pytest tests/device/test_zones.py tests/device/test_iscsi.py tests/device/test_guests.py \
	    tests/device/test_dm_zoned.py tests/device/test_suites.py

test-cluster: .setup/venv-test .setup/native .setup/tests
	$(BIN)/python tests/cluster/disturbed.py --rounds $(or $(ROUNDS),2) --page docs/studies-disturbed.md

# Optimised as a whole, for users. Zig's C compiler and linker bind it to an old glibc: 2.28 is of 2018, and in every
# distribution of the last five years.
GLIBC := 2.28
HOST = $(shell uname -m)
WHEEL_TARGET = $(TARGET)/$(HOST)-unknown-linux-gnu/release
wheel: .setup/venv-wheel
	rm -rf dist
	PATH="$(CURDIR)/$(BIN):$$PATH" cargo-zigbuild zigbuild --release --quiet --target $(HOST)-unknown-linux-gnu.$(GLIBC) -p smrlab-nbdkit
	cp $(WHEEL_TARGET)/libsmrlab_nbdkit.so python/smrlab/
	git rev-parse --short HEAD > python/smrlab/commit.txt
	cp traces/postgres.parquet python/smrlab/
	PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin build --release --quiet --out dist --zig \
	    --target $(HOST)-unknown-linux-gnu --compatibility manylinux_$(subst .,_,$(GLIBC)); status=$$?; \
	    rm -f python/smrlab/commit.txt python/smrlab/postgres.parquet .setup/core .setup/native; exit $$status
	@ls dist/*.whl

test-wheel: wheel .setup/venv-test
	$(BIN)/pytest tests/wheel

bench: .setup/venv
	@mkdir -p target
	@set -e; for what in "smrlab-sim" "smrlab-stl --bench indirection" "smrlab-stl --bench hot" "smrlab-trace"; do \
	    cargo bench --quiet -p $$what; done | tee $(TARGET)/bench.txt
	$(BIN)/python tools/bench_history.py $(TARGET)/bench.txt

bench-device: .setup/packages-test .setup/guest-kernel .setup/venv-test .setup/native
	cargo build --release --quiet -p smrlab-nbdkit
	cargo build --release --quiet -p smrlab-iscsi --example memory_target
	$(BIN)/python benches/device/bench.py --plugin $(TARGET)/release/libsmrlab_nbdkit.so --json out/bench-device.json
	$(BIN)/python benches/device/iscsi.py --plugin $(TARGET)/release/libsmrlab_nbdkit.so \
	    --memory $(TARGET)/release/examples/memory_target --json out/bench-iscsi.json
	$(BIN)/python benches/device/ublk.py --plugin $(TARGET)/release/libsmrlab_nbdkit.so --json out/bench-ublk.json

papers: .setup/packages-test .setup/native
	$(BIN)/smrlab paper run all --out out/papers $(if $(wildcard $(TRACES)),--traces $(TRACES))

docs:
	cargo xtask docs

.setup/packages-build: tools/packages-build.txt tools/install-packages.sh
	@mkdir -p .setup
	tools/install-packages.sh tools/packages-build.txt
	@touch $@

.setup/packages-test: tools/packages-test.txt tools/install-packages.sh | .setup/packages-device
	@mkdir -p .setup
	tools/install-packages.sh tools/packages-test.txt
	@touch $@

.setup/packages-zones: tools/packages-zones.txt | .setup/packages-test
	tools/install-packages.sh tools/packages-zones.txt
	@touch $@

# The kernel that guests of the tests run; nothing of it is installed.
.setup/guest-kernel: tools/guest-kernel.sh | .setup/packages-test
	tools/guest-kernel.sh 6.12 $(TARGET)/kernels/6.12
	@touch $@

# Bookworm's own: `make test-zones` has it see a host-managed disk, too.
.setup/guest-kernel-6.1: tools/guest-kernel.sh | .setup/packages-test
	tools/guest-kernel.sh 6.1 $(TARGET)/kernels/6.1
	@touch $@

.setup/components:
	@mkdir -p .setup
	@{ cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
	@touch $@

.setup/packages-device: tools/packages-device.txt tools/install-packages.sh | .setup/packages-build
	@mkdir -p .setup
	tools/install-packages.sh tools/packages-device.txt
	@touch $@

.setup/venv: tools/requirements.txt tools/install-python.sh | .setup/packages-build
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: set PYTHON=" >&2; exit 3; }
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(PIP) tools/requirements.txt
	@touch $@

.setup/venv-test: tools/requirements-test.txt .setup/venv
	$(PIP) tools/requirements-test.txt
	@touch $@

.setup/venv-wheel: tools/requirements-wheel.txt .setup/venv
	$(PIP) tools/requirements-wheel.txt
	@touch $@

.setup/engine: $(SOURCES) | .setup/packages-build .setup/cargo
	cargo build -p smrlab-py
	@touch $@

.setup/core: .setup/venv .setup/engine tools/develop.py
	$(BIN)/python tools/develop.py $(TARGET)/debug lib_core.so
	@touch $@

.setup/native: .setup/core .setup/packages-device
	cargo build -p smrlab-nbdkit
	$(BIN)/python tools/develop.py $(TARGET)/debug libsmrlab_nbdkit.so
	@touch $@

.setup/cargo:
	@mkdir -p .setup
	@command -v cargo >/dev/null || { echo "Rust is missing: install it from https://rustup.rs (1.88 or newer)" >&2; exit 3; }
	@touch $@

# Fuzzing needs sanitizers, which only nightly Rust has.
.setup/cargo-fuzz/bin/cargo-fuzz: | .setup/packages-build .setup/cargo
	rustup toolchain list | grep -q '^nightly-' || rustup toolchain install nightly --profile minimal
	cargo +nightly install --quiet --locked cargo-fuzz --root .setup/cargo-fuzz

# Clippy compiles them (tools/rustc.sh).
.setup/tests: .setup/native $(shell find crates -path '*/tests/*' -name '*.rs') | .setup/components
	cargo test --workspace --test '*' --no-run --quiet
	cargo test -p smrlab-testkit --lib --no-run --quiet
	tools/test-units.sh --no-run --quiet
	@touch $@

clean:
	rm -rf .setup .venv $(TARGET) demo-out dist
