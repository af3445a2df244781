"""The command line: one file a command group, each put into the table below."""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
import threading
from typing import NoReturn

import typer
from typer import _completion_shared

from ..errors import InputError, Interrupted, MissingError, SmrlabError
from . import console, shell

# The command groups, in the order of `smrlab --help`. A module adds its commands in `register(app)`; it is called as
# its command is, or the command is in NAMED below.
GROUPS = (
    "run", "compare", "sweep", "report", "catalogue", "trace", "drive", "validate", "geometry", "probe", "paper",
    "device", "demo",
)  # fmt: skip
NAMED = {"list": "catalogue", "explain": "catalogue"}
# What the system answers where a place cannot be written, or not by this user, or can be no place: nothing that the
# program does wrong.
OF_PLACES = {
    errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP,
}  # fmt: skip


def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """A laboratory for shingled (SMR) disks: simulate them on block traces, or serve them as block devices."""
    if version:
        from .._version import described

        print(described())
        raise typer.Exit


def build(words: list[str]) -> typer.Typer:
    """The program with the groups that `words`, what follows its name, ask for: one, or all where none is named."""
    app = typer.Typer(
        name="smrlab",
        help="A laboratory for shingled (SMR) disks: simulate them on block traces, or serve them as block devices.",
        epilog="Start with: [bold]smrlab compare --trace synth:uniform --drive he2014-example --arrivals closed "
        "--prefill 100% --layer cmr --layer rmw --layer static-1234[/bold]",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(root)
    first = words[0] if words else ""
    named = NAMED.get(first, first)
    for group in (named,) if named in GROUPS else () if words == ["--version"] else GROUPS:
        importlib.import_module(f".{group}", __name__).register(app)
    return app


def main() -> None:
    """The program. Where nobody reads what it prints any more, it ends as other programs do."""
    for name in ("stdout", "stderr"):
        # Closed by who started it: what is said there is lost, and no file takes its number.
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    # Where the user's characters have no dash, a table is printed with a question mark for it.
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.encoding.lower().startswith("utf"):
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            _main()
        finally:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
    except BrokenPipeError:
        _unread()
    except SystemExit as e:
        # Click catches a closed pipe itself and ends with 1, which here stands for a check that failed.
        if isinstance(e.__context__, BrokenPipeError):
            _unread()
        # Python would wait for a thread that waits for a pipe.
        if e.code == Interrupted.exit_status and threading.active_count() > 1:
            os._exit(Interrupted.exit_status)
        raise


def _unread() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(128 + signal.SIGPIPE)


def _check_utf8(words: list[str]) -> None:
    """Names of files may be any bytes; the specifications and results that would name them are text."""
    for word in words:
        shown = word.encode(errors="surrogateescape").decode(errors="backslashreplace")
        if shown != word:
            raise InputError(f"{shown} is not UTF-8: rename the file, or name it by a link")


def _main() -> None:
    """Every error of ours is one message on stderr and its exit status."""
    # Typer has no other way to say what its scripts are.
    shell.without_space(getattr(_completion_shared, "_completion_scripts", {}))
    try:
        _check_utf8(sys.argv[1:])
        with shell.completing():
            build(sys.argv[1:])(prog_name="smrlab")
    except SmrlabError as e:
        console.fail(str(e))
        sys.exit(e.exit_status)
    except SystemExit as e:
        # Click ends itself at Ctrl-C, without a word.
        if e.code == Interrupted.exit_status:
            console.fail("interrupted")
        raise
    except OSError as e:
        if e.errno not in OF_PLACES:
            raise
        console.fail(f"{e.filename}: {e.strerror}" if e.filename else str(e.strerror))
        sys.exit(MissingError.exit_status)
