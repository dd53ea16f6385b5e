"""Compares several nodes: finds the differences and the odd node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from waywiser.doctor.facts import NOT_KNOWN
from waywiser.doctor.report import CRITICAL, OK, UNKNOWN, WARNING, Report
from waywiser.look.finding import Status

_PER_PROCESS = ("boot", "namespaces")


@dataclass(frozen=True)
class Difference:
    """A fact that is not the same everywhere. `odd` are the nodes that deviate from `usual`, with their values;
    `usual` is None where no value has a majority."""

    what: str
    usual: str | None
    odd: tuple[tuple[str, str], ...]


def node_names(reports: Sequence[Report]) -> list[str]:
    """A name for each report: the host, with the rank if a host has several reports."""
    often = Counter(report.host for report in reports)
    names = []
    for index, report in enumerate(reports):
        rank = index if report.rank is None else report.rank
        names.append(report.host if often[report.host] == 1 else f"{report.host} rank {rank}")
    return names


def compare(reports: Sequence[Report]) -> list[Difference]:
    """Every fact and every check that differs between the reports."""
    names = node_names(reports)
    found = []
    for key in dict.fromkeys(key for report in reports for key in report.facts):
        if key not in _PER_PROCESS:
            missing = "not set" if key.startswith("$") else NOT_KNOWN
            found.append(_difference(key, names, [report.facts.get(key, missing) for report in reports]))
    for check in dict.fromkeys(answer.check for report in reports for answer in report.answers):
        said = [_answer(report, check.id) for report in reports]
        found.append(_difference(f"{check.id} {check.title}", names, said))
    found.append(_namespaces(reports, names))
    return [difference for difference in found if difference]


def _answer(report: Report, id_: str) -> str:
    return next((a.finding.status.value for a in report.answers if a.check.id == id_), NOT_KNOWN)


def _difference(what: str, names: Sequence[str], values: Sequence[str]) -> Difference | None:
    counts = Counter(values).most_common()
    if len(counts) < 2:
        return None
    majority = counts[0][0] if counts[0][1] * 2 > len(values) else None
    odd = tuple((name, value) for name, value in zip(names, values, strict=True) if value != majority)
    return Difference(what, majority, odd)


def _namespaces(reports: Sequence[Report], names: Sequence[str]) -> Difference | None:
    """Ranks of one machine (the same boot) whose namespaces differ cannot use CUDA IPC or shared memory."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for name, report in zip(names, reports, strict=True):
        boot = report.facts.get("boot", "")
        if boot not in ("", NOT_KNOWN):
            rows.setdefault(boot, []).append((name, report.facts.get("namespaces", NOT_KNOWN)))
    for members in rows.values():
        found = _difference("D18 namespaces of ranks on one machine", *zip(*members, strict=True))
        if found:
            return found
    return None


def code(reports: Sequence[Report], differences: Sequence[Difference], strict: bool = False) -> int:
    """The worst exit code of all nodes; a difference is at least a warning."""
    codes = [report.code(strict) for report in reports]
    for worst in (CRITICAL, WARNING):
        if worst in codes or (worst == WARNING and differences):
            return worst
    return UNKNOWN if UNKNOWN in codes else OK


def worst_first(report: Report) -> list[str]:
    """The ids of the problems and warnings of a node."""
    order = (Status.problem, Status.warning)
    return [a.check.id for status in order for a in report.answers if a.finding.status is status and not a.accepted]
