"""Findings that an administrator knows and accepts: they are shown, and do not count in the exit code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from waywiser.doctor.check import Check
from waywiser.errors import InputError
from waywiser.files import read_text
from waywiser.look.finding import Finding, Status

_LINE = re.compile(r"(D\d{2})(?:\s*:\s*(.{1,200}))?", re.IGNORECASE)
_MOST = 1000


@dataclass(frozen=True)
class Accepted:
    """Warnings and problems of check `id` whose text contains `words` (empty: all of them)."""

    id: str
    words: str = ""

    def fits(self, check: Check, finding: Finding) -> bool:
        """Whether it accepts this finding."""
        counted = finding.status in (Status.warning, Status.problem)
        return counted and self.id == check.id and self.words.lower() in finding.text.lower()


def ignored(checks: Iterable[Check]) -> list[Accepted]:
    """Every finding of these checks."""
    return [Accepted(check.id) for check in checks]


def read_accepted(file: Path, known: Sequence[Check]) -> list[Accepted]:
    """A file with one line for each: "D33", or "D33: words of the finding"; # begins a comment. Raises InputError."""
    ids = {check.id for check in known}
    lines = read_text(file).splitlines()
    if len(lines) > _MOST:
        raise InputError(f"{file}: more than {_MOST} lines")
    found = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        match = _LINE.fullmatch(text)
        if text and (not match or match[1].upper() not in ids):
            raise InputError(f"{file}, line {number}: write a check and words of its finding, such as D33: /opt/hpcx")
        if match:
            found.append(Accepted(match[1].upper(), (match[2] or "").strip()))
    return found
