"""Errors of the Python side, and the exit code that each failure has on the command line."""

from __future__ import annotations

BAD_INPUT = 2
FAILURE = 1
INTERRUPTED = 130

_EXIT_CODES = {"invalid input": BAD_INPUT, "io": BAD_INPUT, "interrupted": INTERRUPTED}


class InputError(Exception):
    """A file, option, argument or variable from outside is wrong. The message is one line that names it."""


def exit_code(error: BaseException) -> int:
    """The exit code for `error`: its own, 2 for bad input and files, 130 for an interruption, else 1."""
    told = getattr(error, "exit_code", None)
    if isinstance(told, int):
        return told
    if isinstance(error, (InputError, OSError)):
        return BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return _EXIT_CODES.get(str(getattr(error, "kind", "")), FAILURE)
