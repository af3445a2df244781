#!/usr/bin/env python3
"""Record the traces of this folder anew: real software on a loop device, watched by the kernel's blktrace.

    sudo python3 traces/record.py [postgres|build|sqlite ...] [--out DIR] [--work DIR] [--raw-only]

The kernel's block tracer is read through tracefs, not through debugfs as the command blktrace does: the records are
the same, and a kernel that is locked down allows it. Needs root, a Linux kernel with CONFIG_BLK_DEV_IO_TRACE, about
6 GB of disk under --work, and the tools that it names when they are missing. Everything that it makes (mounts, loop
devices, control groups, servers) is taken away again, also after Ctrl-C or an error. Python's standard library only;
`smrlab trace convert` writes the Parquet files.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TRACEFS = Path("/sys/kernel/tracing")
# struct blk_io_trace of linux/blktrace_api.h: magic, sequence, time, sector, bytes, action, pid, device, cpu, error,
# length of what follows.
EVENT = struct.Struct("<IIQQIIIIIHH")
MAGIC = 0x65617407
PACKAGES = {
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "runuser": "util-linux",
    "make": "make",
    "gcc": "gcc",
    "perl": "perl",
    "cargo": "cargo",
    "git": "git",
}
OPENSSL_CRATE = "openssl-src"
OPENSSL_VERSION = "300.5.4+3.5.4"


class Failure(Exception):
    """Something that the user can put right; its text is all that is shown."""


@dataclass(frozen=True)
class Workload:
    """What is recorded: the file system under it and the page cache that it may use."""

    name: str
    filesystem: str
    mount_options: str
    disk_gib: int
    memory_mib: int


@dataclass(frozen=True)
class Stage:
    """Where a workload runs."""

    device: str
    folder: Path  # where the device is mounted
    procs: Path  # the list of processes of the control group
    raw: Path  # where the events go
    work: Path  # for what is not recorded


WORKLOADS = {
    w.name: w
    for w in (
        Workload("postgres", "ext4", "noatime", 16, 192),
        Workload("build", "xfs", "noatime,discard", 16, 256),
        Workload("sqlite", "ext4", "relatime", 8, 96),
    )
}


def run(*command: str | Path, **options: object) -> str:
    """Runs a command to its end and answers with what it printed; fails with its own message."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise Failure(f"{' '.join(words)}: exit status {done.returncode}\n{said}")
    return str(done.stdout)


def need(*tools: str) -> None:
    """Fails if a tool is not installed, and says in which Debian package it is."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        packages = sorted({PACKAGES[tool] for tool in missing})
        raise Failure(f"{', '.join(missing)} not found; install: apt-get install {' '.join(packages)}")


def postgres_bin() -> Path:
    """The folder of the newest PostgreSQL server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name))
    if not found or not (found[-1] / "initdb").exists() or shutil.which("pgbench") is None:
        raise Failure("no PostgreSQL server with pgbench; install: apt-get install postgresql postgresql-contrib")
    return found[-1]


@contextlib.contextmanager
def tracefs() -> Iterator[None]:
    """Mounts tracefs unless it is mounted."""
    mounted = not os.path.ismount(TRACEFS)
    if mounted:
        run("mount", "-t", "tracefs", "tracefs", TRACEFS)
    try:
        if "blk" not in (TRACEFS / "available_tracers").read_text().split():
            raise Failure("the kernel has no block tracer (CONFIG_BLK_DEV_IO_TRACE)")
        yield
    finally:
        if mounted:
            run("umount", TRACEFS)


@contextlib.contextmanager
def disk(workload: Workload, work: Path) -> Iterator[tuple[str, Path]]:
    """A loop device on a sparse file with an aged file system; gives the device and where it is mounted."""
    image, folder = work / f"{workload.name}.img", work / workload.name
    folder.mkdir()
    with contextlib.ExitStack() as undo:
        undo.callback(image.unlink, missing_ok=True)
        with image.open("wb") as file:
            file.truncate(workload.disk_gib << 30)
        device = run("losetup", "--find", "--show", image).strip()
        undo.callback(run, "losetup", "--detach", device)
        run(f"mkfs.{workload.filesystem}", "-q", device)
        run("mount", "-o", workload.mount_options, device, folder)
        undo.callback(unmount, folder)
        age(folder, workload.disk_gib)
        yield device, folder


def age(folder: Path, gib: int) -> None:
    """Leaves 45 % of the disk in use, in pieces, so that new files land where they would on a disk that has been in
    use: files without content are allocated in many folders and every second one is deleted."""
    rng = random.Random(gib)
    left = int(gib * 0.9 * (1 << 30))
    files: list[Path] = []
    while left > 0:
        file = folder / f"old{rng.randrange(64)}" / str(len(files))
        file.parent.mkdir(exist_ok=True)
        size = rng.randrange(1 << 20, 64 << 20) >> 12 << 12
        with file.open("wb") as out:
            os.posix_fallocate(out.fileno(), 0, size)
        files.append(file)
        left -= size
    rng.shuffle(files)
    for file in files[::2]:
        file.unlink()
    run("sync")


def unmount(folder: Path) -> None:
    """Unmounts, with some patience for a process that is just ending."""
    for attempt in range(20):
        try:
            run("umount", folder)
            return
        except Failure:
            if attempt == 19:
                raise
            time.sleep(0.5)


@contextlib.contextmanager
def memory_limit(mib: int) -> Iterator[Path]:
    """A control group with that much memory, so that reads reach the disk as on a machine whose data outgrows it."""
    v1, v2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    if v1.is_dir():
        group, key = v1 / f"smrlab-record-{os.getpid()}", "memory.limit_in_bytes"
    elif (v2 / "cgroup.controllers").exists() and "memory" in (v2 / "cgroup.subtree_control").read_text():
        group, key = v2 / f"smrlab-record-{os.getpid()}", "memory.max"
    else:
        raise Failure("no memory control group (v1, or v2 with the memory controller on) to limit the page cache")
    group.mkdir()
    try:
        (group / key).write_text(str(mib << 20))
        yield group / "cgroup.procs"
    finally:
        for _ in range(20):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.5)


@contextlib.contextmanager
def settings(*wanted: tuple[Path, str, str]) -> Iterator[None]:
    """Writes values (second) into files of the kernel, and in the end, in reverse, those that undo it (third)."""
    with contextlib.ExitStack() as undo:
        for path, value, after in wanted:
            path.write_text(value)
            undo.callback(path.write_text, after)
        yield


@contextlib.contextmanager
def traced(device: str, raw: Path) -> Iterator[None]:
    """Records the issue events of `device` into `raw`; fails if any was lost."""
    tracer, block = TRACEFS / "current_tracer", Path("/sys/block", Path(device).name, "trace")
    if tracer.read_text().strip() != "nop":
        raise Failure(f"another tracer is at work: {tracer} is not nop")
    run("sync")
    Path("/proc/sys/vm/drop_caches").write_text("3")
    options, buffer = TRACEFS / "trace_options", TRACEFS / "buffer_size_kb"
    with (
        settings(
            (buffer, "16384", buffer.read_text().split()[0]),
            (tracer, "blk", "nop"),
            (options, "bin", "nobin"),
            (options, "nocontext-info", "context-info"),
        ),
        raw.open("wb") as out,
    ):
        reader = subprocess.Popen(["cat", TRACEFS / "trace_pipe"], stdout=out)
        try:
            with settings((block / "act_mask", "issue", "issue"), (block / "enable", "1", "0")):
                yield
                run("sync")
            time.sleep(2)  # for the reader to take the rest
        finally:
            reader.terminate()
            reader.wait()
        for stats in TRACEFS.glob("per_cpu/cpu*/stats"):
            values = dict(line.split(": ") for line in stats.read_text().splitlines())
            lost = int(values["overrun"]) + int(values["dropped events"])
            if lost or int(values["entries"]):
                raise Failure(f"{lost} events were lost, {values['entries']} not read: the machine is too busy")
    in_order(raw)


def in_order(raw: Path) -> None:
    """Sorts the events by time (each processor has its own buffer) and numbers them, as blktrace does. The numbers of
    process and device become 0: they say nothing outside the machine."""
    data, at, events = raw.read_bytes(), 0, []
    while at < len(data):
        head = EVENT.unpack_from(data, at) if at + EVENT.size <= len(data) else (0,) * 11
        if head[0] != MAGIC:
            raise Failure(f"{raw.name}: no event at byte {at} of the kernel's output")
        end = at + EVENT.size + head[10]
        events.append((head, data[at + EVENT.size : end]))
        at = end
    events.sort(key=lambda event: event[0][2])
    with raw.open("wb") as out:
        for number, (head, rest) in enumerate(events, 1):
            out.write(EVENT.pack(MAGIC, number, *head[2:6], 0, 0, *head[8:]) + rest)


def confined(procs: Path, *command: str | Path, **options: object) -> str:
    """Runs a command inside the control group."""
    return run("sh", "-c", 'echo $$ > "$0" && exec "$@"', procs, *command, **options)


def postgres(stage: Stage) -> None:
    """pgbench's TPC-B-like load, 4 clients, 35 times the size of the server's buffers, checkpoints every 30 s."""
    programs, data = postgres_bin(), stage.folder / "data"
    data.mkdir()
    shutil.chown(data, "postgres", "postgres")
    socket = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    shutil.chown(socket, "postgres", "postgres")
    as_postgres = ("runuser", "-u", "postgres", "--")
    configuration = {
        "listen_addresses": "''",
        "unix_socket_directories": f"'{socket}'",
        "shared_buffers": "16MB",
        "max_wal_size": "160MB",
        "checkpoint_timeout": "30s",
        "full_page_writes": "on",
    }
    server = (*as_postgres, programs / "pg_ctl", "-D", data, "-w", "-l", data / "log")
    client = (*as_postgres, "pgbench", "-h", socket)
    cwd = {"cwd": "/"}
    try:
        run(*as_postgres, programs / "initdb", "-D", data, "-A", "trust", "-E", "UTF8", "--locale=C", **cwd)
        with (data / "postgresql.conf").open("a") as file:
            file.writelines(f"{key} = {value}\n" for key, value in configuration.items())
        confined(stage.procs, *server, "start", **cwd)
        try:
            run(*client, "-i", "-s", "40", "-q", "postgres", **cwd)
            with traced(stage.device, stage.raw):
                run(*client, "-c", "4", "-j", "1", "-M", "prepared", "-T", "60", "--random-seed=1", "postgres", **cwd)
        finally:
            run(*server, "stop", "-m", "fast", **cwd)
    finally:
        shutil.rmtree(socket, ignore_errors=True)


def fetch_openssl(work: Path) -> Path:
    """The source of OpenSSL as published on crates.io, fetched by cargo (not recorded)."""
    home, project = work / "cargo", work / "fetch"
    (project / "src").mkdir(parents=True)
    (project / "src/lib.rs").touch()
    version = OPENSSL_VERSION.partition("+")[0]
    (project / "Cargo.toml").write_text(
        '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n'
        f'[dependencies]\n{OPENSSL_CRATE} = "={version}"\n'
    )
    run("cargo", "fetch", "--manifest-path", project / "Cargo.toml", env={**os.environ, "CARGO_HOME": str(home)})
    return next(home.glob(f"registry/cache/*/{OPENSSL_CRATE}-{OPENSSL_VERSION}.crate"))


def build(stage: Stage) -> None:
    """A source tree's life: OpenSSL's source is unpacked and committed to git (every object synced), eight trees one
    after the other; in the last the TLS library is configured and compiled with full debug information, temporary
    files on the disk too; all are searched through; seven are taken away."""
    archive = fetch_openssl(stage.work)
    scratch = stage.folder / "tmp"
    scratch.mkdir()
    env = {**os.environ, "TMPDIR": str(scratch), "HOME": str(scratch)}
    configuration = ("core.fsync=all", "gc.auto=0", "user.name=smrlab", "user.email=smrlab@localhost")
    git = ("git", *(word for item in configuration for word in ("-c", item)))
    options = ("no-asm", "no-shared", "no-module", "no-tests", "no-apps", "no-docs", "linux-x86_64", "-O0", "-g3")
    trees = [stage.folder / f"tree{i}" for i in range(8)]
    with traced(stage.device, stage.raw):
        for root in trees:
            root.mkdir()
            confined(stage.procs, "tar", "-xzf", archive, "-C", root, "--strip-components=1")
            confined(stage.procs, *git, "init", "-q", cwd=root, env=env)
            confined(stage.procs, *git, "add", "--all", cwd=root, env=env)
            confined(stage.procs, *git, "commit", "-q", "-m", "import", cwd=root, env=env)
        source = trees[-1] / "openssl"
        confined(stage.procs, "perl", "Configure", *options, cwd=source, env=env)
        for target in ("build_generated", "libssl.a"):
            confined(stage.procs, "make", "-j2", target, cwd=source, env=env)
        run("sync")
        for root in trees:
            confined(stage.procs, "grep", "-rc", "OPENSSL_free", root)
        for root in trees[:-1]:
            shutil.rmtree(root)


def sqlite(stage: Stage) -> None:
    """A key-value table in SQLite, each transaction durable: a rollback journal first, then a write-ahead log."""
    database = stage.folder / "load.db"
    fill(database)
    with traced(stage.device, stage.raw):
        for journal, transactions in (("delete", 3_000), ("wal", 12_000)):
            confined(stage.procs, sys.executable, __file__, "--load", database, journal, str(transactions))


def fill(database: Path) -> None:
    """400 000 rows of 100 to 900 bytes (not recorded)."""
    rng = random.Random(1)
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.execute("create table item (key integer primary key, owner integer, body blob)")
        rows = ((key, rng.randrange(5_000), rng.randbytes(rng.randint(100, 900))) for key in range(400_000))
        db.executemany("insert into item values (?, ?, ?)", rows)
        db.execute("create index item_owner on item (owner)")
        db.commit()


def load(database: str, journal: str, transactions: str) -> None:
    """The load itself, in a process of its own: 70 % updates, 20 % inserts, 10 % deletes, 1 to 5 rows at a time; keys
    are skewed (the square of a uniform number)."""
    rng = random.Random(journal)
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.execute(f"pragma journal_mode = {journal}")
        db.execute("pragma synchronous = full")
        db.execute("pragma cache_size = -8192")
        for _ in range(int(transactions)):
            db.execute("begin immediate")
            for _ in range(rng.randint(1, 5)):
                key = int(400_000 * rng.random() ** 2) * 2_654_435_761 % 400_000
                body, kind = rng.randbytes(rng.randint(100, 900)), rng.random()
                if kind < 0.7:
                    db.execute("update item set body = ? where key = ?", (body, key))
                elif kind < 0.9:
                    db.execute("insert into item (owner, body) values (?, ?)", (rng.randrange(5_000), body))
                else:
                    db.execute("delete from item where key = ?", (key,))
            db.execute("commit")


LOADS = {"postgres": postgres, "build": build, "sqlite": sqlite}


def record(workload: Workload, work: Path, raw: Path) -> None:
    """Records one workload into `raw`, a single file in blktrace's binary format, ordered by time."""
    with disk(workload, work) as (device, folder), memory_limit(workload.memory_mib) as procs:
        LOADS[workload.name](Stage(device, folder, procs, raw, work))


def convert(raw: Path, out: Path, smrlab: Path) -> None:
    """Writes the Parquet file. The name given to the command is relative: it is kept in the file as its source."""
    run(smrlab.absolute(), "trace", "convert", raw.name, "-o", out.absolute(), cwd=raw.parent)
    size = out.stat().st_size
    if size > 3_000_000:
        raise Failure(f"{out} has {size} bytes; a trace that ships stays below 3 000 000")


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="*", help=f"{', '.join(WORKLOADS)} (default: all)")
    parser.add_argument("--out", type=Path, default=here, help="where the traces go (default: this folder)")
    parser.add_argument("--work", type=Path, help="folder for the disks (default: a new one under the system's)")
    parser.add_argument("--raw-only", action="store_true", help="keep blktrace's binary records, convert nothing")
    parser.add_argument("--smrlab", type=Path, default=here.parent / ".venv/bin/smrlab", help="the converter")
    parser.add_argument("--load", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    for name in chosen.workload:
        if name not in WORKLOADS:
            parser.error(f"unknown workload '{name}'; known: {', '.join(WORKLOADS)}")
    chosen.workload = chosen.workload or list(WORKLOADS)
    return chosen


def check(chosen: argparse.Namespace) -> None:
    """Fails before anything is made if something is missing."""
    if os.geteuid() != 0:
        raise Failure("recording needs root (loop devices, the kernel's tracer): run it with sudo")
    need("losetup", "runuser", *(f"mkfs.{WORKLOADS[name].filesystem}" for name in chosen.workload))
    if "postgres" in chosen.workload:
        postgres_bin()
    if "build" in chosen.workload:
        need("make", "gcc", "perl", "cargo", "git")
    if not chosen.raw_only and not chosen.smrlab.exists():
        raise Failure(f"{chosen.smrlab} not found: set the project up first (make demo), or use --raw-only")


def record_all(chosen: argparse.Namespace) -> None:
    """Records and converts what was asked for."""
    check(chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.work:
        chosen.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="smrlab-record-", dir=chosen.work) as name, tracefs():
        work = Path(name)
        work.chmod(0o755)  # the database's user has to get in
        for workload in chosen.workload:
            print(f"recording {workload} ...", file=sys.stderr, flush=True)
            raw = work / f"{workload}.blktrace.0"
            record(WORKLOADS[workload], work, raw)
            if chosen.raw_only:
                shutil.move(raw, chosen.out / raw.name)
            else:
                convert(raw, chosen.out / f"{workload}.parquet", chosen.smrlab)


def main() -> int:
    """Exit status: 0, 3 if the environment lacks something or a step failed, 130 interrupted."""
    chosen = arguments()
    if chosen.load:
        load(*chosen.load)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        record_all(chosen)
    except Failure as failure:
        print(f"record.py: {failure}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
