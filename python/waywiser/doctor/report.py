"""The answers of one machine as a value that can be saved, read back and compared."""

from __future__ import annotations

import json
import socket
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from waywiser.doctor.accepted import Accepted
from waywiser.doctor.check import Check, looked
from waywiser.doctor.checks import CHECKS
from waywiser.doctor.facts import facts_of
from waywiser.errors import InputError
from waywiser.json_fields import Node, clean
from waywiser.look.finding import Finding, Status
from waywiser.look.root import Root

SCHEMA = "waywiser.doctor"
VERSION = 1
# Exit codes of monitoring tools: 3 is "unknown", also for bad usage.
OK, WARNING, CRITICAL, UNKNOWN = 0, 1, 2, 3


@dataclass(frozen=True)
class Answer:
    """A check and what it found."""

    check: Check
    finding: Finding
    accepted: bool = False  # by the administrator: it does not count


@dataclass(frozen=True)
class Report:
    """The answers of one machine, and facts about it that should be the same on all nodes of a cluster."""

    host: str
    rank: int | None
    answers: tuple[Answer, ...]
    facts: dict[str, str]

    def count(self, status: Status) -> int:
        """The number of answers with this status, without accepted ones."""
        return sum(answer.finding.status is status and not answer.accepted for answer in self.answers)

    @property
    def accepted(self) -> int:
        """The number of accepted warnings and problems."""
        return sum(answer.accepted for answer in self.answers)

    def code(self, strict: bool = False) -> int:
        """The exit code of the worst answer. Unknown counts if `strict` is set or all answers are unknown."""
        statuses = [answer.finding.status for answer in self.answers if not answer.accepted]
        seen = self.count(Status.ok) + self.count(Status.absent) + self.accepted
        return exit_code_of(statuses, strict or not seen)

    def to_json(self) -> str:
        """The report as a JSON document."""
        rows = [
            {
                "id": answer.check.id,
                "group": answer.check.group,
                "title": answer.check.title,
                "status": answer.finding.status.value,
                "accepted": answer.accepted,
                "found": answer.finding.text,
                "looked_at": answer.check.detection,
                "remedy": answer.check.remedy,
            }
            for answer in self.answers
        ]
        head = {"schema": SCHEMA, "version": VERSION, "host": self.host, "rank": self.rank}
        return json.dumps({**head, "checks": rows, "facts": self.facts}, indent=1)


def exit_code_of(statuses: Collection[Status], strict: bool) -> int:
    """The exit code of the worst; unknown counts if `strict` is set."""
    if Status.problem in statuses:
        return CRITICAL
    if Status.warning in statuses:
        return WARNING
    return UNKNOWN if strict and Status.unknown in statuses else OK


def selected(words: str, option: str = "--only") -> list[Check]:
    """The checks that "D01,D09,nic" names by id or group; all for an empty text. Raises InputError."""
    wanted = [word.strip().lower() for word in words.split(",") if word.strip()]
    for word in wanted:
        if not any(_named(check, word) for check in CHECKS):
            groups = ", ".join(dict.fromkeys(check.group for check in CHECKS))
            raise InputError(f"{option} {word!r}: write ids (D01 to D55) or groups ({groups})")
    return [check for check in CHECKS if not wanted or any(_named(check, word) for word in wanted)]


def _named(check: Check, word: str) -> bool:
    return word in (check.id.lower(), check.group.lower())


def examine(root: Root, checks: Iterable[Check], rank: int | None = None, accepted: Sequence[Accepted] = ()) -> Report:
    """Runs the checks; they change nothing. Findings that fit one of `accepted` do not count."""
    answers = tuple(_answer(check, looked(check, root), accepted) for check in checks)
    host = socket.gethostname() if root.live else (root.text("/proc/sys/kernel/hostname") or root.folder.name)
    return Report(clean(host)[:64], rank, answers, facts_of(root))


def _answer(check: Check, finding: Finding, accepted: Sequence[Accepted]) -> Answer:
    return Answer(check, finding, any(one.fits(check, finding) for one in accepted))


def read_report(value: Any, what: str) -> Report:
    """A report from its JSON; InputError names the first wrong field. Checks of other versions are kept unchanged."""
    node = Node(value, what)
    known = {check.id: check for check in CHECKS}
    answers = []
    for row in node.items("checks"):
        check = known.get(row.text("id"))
        if check is not None:
            status = Status(row.word("status", tuple(one.value for one in Status)))
            answers.append(Answer(check, Finding(status, row.text("found")), row.flag("accepted")))
    facts = node.child("facts").value
    if not isinstance(facts, dict) or len(facts) > 10_000:
        raise node.child("facts").refuse("must be an object of at most 10000 entries")
    told = {clean(str(key))[:80]: Node(facts, f"{what}: facts").text(key)[:400] for key in facts}
    rank = node.integer("rank", most=1 << 24) if node.has("rank") else None
    return Report(node.text("host")[:64], rank, tuple(answers), told)
