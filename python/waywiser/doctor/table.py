"""Answers for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.doctor.compare import Difference, node_names, worst_first
from waywiser.doctor.facts import NOT_KNOWN
from waywiser.doctor.report import Answer, Report
from waywiser.look.finding import Status
from waywiser.terminal import add, console, print_result, table

_STYLES = {
    Status.ok: "green",
    Status.warning: "yellow",
    Status.problem: "bold red",
    Status.unknown: "magenta",
    Status.absent: "dim",
}
_SHORT = {Status.absent: "n/a"}


def print_report(report: Report, everything: bool) -> None:
    """Prints the answers by group; answers that do not apply only with `everything`."""
    groups = dict.fromkeys(answer.check.group for answer in report.answers)
    parts: list[RenderableType] = []
    for group in groups:
        answers = [a for a in report.answers if a.check.group == group]
        shown = [a for a in answers if everything or a.finding.status is not Status.absent]
        if shown:
            parts += [Text(group, "bold"), *_rows(shown, everything), Text()]
    print_result(Group(*parts, _summary(report, everything)))


def _rows(answers: Sequence[Answer], everything: bool) -> list[RenderableType]:
    rows: list[RenderableType] = []
    for answer in answers:
        status, check = answer.finding.status, answer.check
        line = Text(f"  {check.id} ")
        word = "accepted" if answer.accepted else _SHORT.get(status, status.value)
        line.append(f"{word:<8}", "dim" if answer.accepted else _STYLES[status])
        line.append(f" {check.title}: {answer.finding.text}")
        rows.append(_hanging(line))
        if everything:
            rows.append(_hanging(Text(f"               looked at: {check.detection}", "dim")))
        if status in (Status.warning, Status.problem) and not answer.accepted:
            rows.append(_hanging(Text(f"               remedy: {check.remedy}", "cyan")))
    return rows


def _hanging(line: Text) -> Text:
    """Wraps a line and indents the rest to the start of the text."""
    lines = line.wrap(console(), max(40, console().width - 15))
    return Text("\n               ").join(lines) if len(lines) > 1 else line


def _summary(report: Report, everything: bool) -> Text:
    order = (Status.problem, Status.warning, Status.unknown, Status.ok, Status.absent)
    text = Text(f"{report.host}: ", "bold")
    for index, status in enumerate(order):
        text.append(", " if index else "")
        count = report.count(status)
        plural = "s" if count != 1 and status in (Status.problem, Status.warning) else ""
        text.append(f"{count} {status.value}{plural}", _STYLES[status] if count else "dim")
    if report.accepted:
        text.append(f", {report.accepted} accepted", "dim")
    if report.count(Status.absent) and not everything:
        text.append("; --all shows everything", "dim")
    return text


def _members(reports: Sequence[Report]) -> str:
    """ "3 nodes", or "2 ranks of 1 node" if ranks share a node (the same boot)."""
    nodes = len({report.facts.get("boot") or NOT_KNOWN for report in reports} - {NOT_KNOWN}) or len(reports)
    word = f"{nodes} node{'s' if nodes > 1 else ''}"
    return word if nodes == len(reports) else f"{len(reports)} ranks of {word}"


def print_comparison(reports: Sequence[Report], differences: Sequence[Difference]) -> None:
    """Prints the differences, and a line for each node."""
    parts: list[RenderableType] = []
    if differences:
        made = table("what", "most nodes", "odd", "there", title="Nodes differ")
        for one in differences:
            usual = "no majority" if one.usual is None else one.usual or "(empty)"
            for index, (name, value) in enumerate(one.odd):
                add(made, one.what if index == 0 else "", usual if index == 0 else "", name, value or "(empty)")
        parts += [made, Text()]
    else:
        parts += [Text(f"{_members(reports)}, no difference", "green"), Text()]
    made = table("node", ">problems", ">warnings", ">unknown", "which")
    for name, report in zip(node_names(reports), reports, strict=True):
        counts = (Status.problem, Status.warning, Status.unknown)
        add(made, name, *(str(report.count(status)) for status in counts), " ".join(worst_first(report)) or "-")
    print_result(Group(*parts, made))
