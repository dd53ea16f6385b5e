"""What a check can answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from waywiser.json_fields import clean

_LONGEST = 400


class Status(str, Enum):
    """The result of one check; `unknown` always says what the check would need."""

    ok = "ok"
    warning = "warning"
    problem = "problem"
    unknown = "unknown"
    absent = "not applicable"


@dataclass(frozen=True)
class Finding:
    """A status and one line, safe to print, that says what was found."""

    status: Status
    text: str


class Unknown(Exception):
    """Raised if a check cannot look at something; the message says what it needs."""


def _finding(status: Status, text: str) -> Finding:
    line = " ".join(clean(text.replace("\n", " ")).split())
    return Finding(status, line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "...")


def ok(text: str) -> Finding:
    """Checked and good."""
    return _finding(Status.ok, text)


def warning(text: str) -> Finding:
    """Works, but slower or more fragile than it could be."""
    return _finding(Status.warning, text)


def problem(text: str) -> Finding:
    """Broken, or much slower than the machine allows."""
    return _finding(Status.problem, text)


def unknown(text: str) -> Finding:
    """Could not be checked."""
    return _finding(Status.unknown, text)


def absent(text: str) -> Finding:
    """The check does not apply to this machine."""
    return _finding(Status.absent, text)
