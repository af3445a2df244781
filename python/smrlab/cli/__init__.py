"""The command line: one file a command group, each put into the table below."""

from __future__ import annotations

import importlib
import os
import sys

import typer

from ..errors import SmrlabError
from . import console

# The command groups, in the order of `smrlab --help`. A module adds its commands in `register(app)`.
GROUPS = ("run", "compare", "sweep", "report", "catalogue", "trace", "drive", "device")

app = typer.Typer(
    name="smrlab",
    help="A laboratory for shingled (SMR) disks: simulate them on block traces, or serve them as block devices.",
    epilog="Start with: [bold]smrlab compare --trace synth:uniform --layer cmr --layer rmw --layer static-1234[/bold]",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """A laboratory for shingled (SMR) disks: simulate them on block traces, or serve them as block devices."""
    if version:
        from .._version import __version__

        print(f"smrlab {__version__}")
        raise typer.Exit


for _group in GROUPS:
    importlib.import_module(f".{_group}", __name__).register(app)


def main() -> None:
    """The program: every error of ours is one message on stderr and its exit status."""
    try:
        app()
    except SmrlabError as e:
        console.fail(str(e))
        sys.exit(e.exit_status)
    except KeyboardInterrupt:
        console.fail("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
