"""The errors a caller may meet, one class for each exit status of the command line."""

from __future__ import annotations

from .secret import hidden


class SmrlabError(Exception):
    """Base of every error raised on purpose; the message says what is wrong, where, and what to do."""

    exit_status = 2

    def __init__(self, message: str = "") -> None:
        super().__init__(hidden(str(message)))


class InputError(SmrlabError, ValueError):
    """The user's input is wrong: an unknown name, a bad value, an unreadable trace (exit status 2)."""


class CheckFailed(SmrlabError):
    """A check did not hold: a claim of a paper, or data destroyed on the medium (exit status 1)."""

    exit_status = 1


class MissingError(SmrlabError):
    """The environment lacks something; the message says what to install or free (exit status 3)."""

    exit_status = 3


class Interrupted(SmrlabError):
    """Stopped by Ctrl-C; what was finished is kept (exit status 130)."""

    exit_status = 130
