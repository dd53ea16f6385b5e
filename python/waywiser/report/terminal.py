"""Tables for the terminal. Every string from the data is shown as it is: no markup is read in it."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from waywiser.checked import clean
from waywiser.plan import Plan
from waywiser.profile import PairClass, Profile, pair_text
from waywiser.report import definitions
from waywiser.report.choices import Choice, choices, joined
from waywiser.report.matrices import places
from waywiser.report.peers import blocks, cell_text, is_matrix
from waywiser.report.reasons import Reason, grouped_reasons
from waywiser.results import Results
from waywiser.units import format_bytes, format_percent, format_range, format_rate, format_seconds

_MOST_ROWS = 20
_MOST_REASONS = 5
CSV_COLUMNS = (
    "source",
    "destination",
    "processes",
    "operation",
    "path",
    "bytes",
    "seconds",
    "low",
    "high",
    "p50",
    "p99",
    "samples",
    "cpu_seconds",
    "verified",
    "bytes_per_second",
)


def console() -> Console:
    """Standard output; 100 columns where it is neither a terminal nor told by COLUMNS."""
    found = Console(highlight=False)
    told = found.is_terminal or "COLUMNS" in os.environ
    return found if told else Console(highlight=False, width=100)


def print_result(what: RenderableType) -> None:
    """To standard output."""
    console().print(Group(what))  # a Text alone would lose its own wrapping


def table(*columns: str, title: str = "") -> Table:
    """A table with thin lines; columns that start with ">" are right-aligned, those with "!" keep their width."""
    gap = (0, 2 if console().width >= 100 else 1, 0, 0)
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=gap, title_justify="left")
    made.title = Text(title, "bold") if title else None
    for column in columns:
        name = column.lstrip(">!")
        right, fixed = column.startswith(">"), column != name
        made.add_column(name, justify="right" if right else "left", no_wrap=fixed, overflow="fold")
    return made


def add(made: Table, *cells: str) -> None:
    """A row of plain text."""
    made.add_row(*(Text(cell) for cell in cells))


def group_name(group: PairClass) -> str:
    """The class, with "2p" where two processes take part."""
    return group.name if group.processes == 1 else f"{group.name} (2p)"


def _percent(choice: Choice) -> str:
    return format_percent(choice.percent) if choice.percent is not None else "-"


def plan_table(profile: Profile | None, plan: Plan) -> RenderableType:
    """Every choice: sizes, path, time at the smallest and bandwidth at the largest size, share of the limit, why."""
    wide = console().width >= 120
    parts: list[RenderableType] = []
    last, made = ("", ""), table("")
    for choice in choices(profile or _bare(plan), plan):
        name = (group_name(choice.group), choice.operation)
        if name != last:
            made = table("!sizes", "path", ">time", ">bandwidth", ">limit", ">next best", *(["why"] if wide else []))
            parts += [Text(f"{name[0]}, {choice.operation}", "bold"), made, Text()]
        last = name
        cells = [
            format_range(choice.from_bytes, choice.to_bytes),
            spaced(choice.path.label),
            format_seconds(choice.first_seconds) if choice.first_seconds else "-",
            format_rate(choice.rate) if choice.rate else "-",
            _percent(choice),
            f"{choice.runner_up.ratio:.2f} x" if choice.runner_up else "-",
        ]
        add(made, *cells, *([choice.why] if wide else []))
    return Group(*parts[:-1]) if parts else Text("no choices: nothing was measured")


def spaced(label: str) -> str:
    """A path's label that can be broken between its parameters."""
    return label.replace("(", " (").replace(",", ", ")


def _bare(plan: Plan) -> Profile:
    """A profile without figures, so that a plan can be shown alone."""
    groups = dict.fromkeys((row.pairs, row.processes) for row in plan.rows)
    named = tuple(PairClass(pair_text(pairs[0], processes), pairs, processes) for pairs, processes in groups)
    return Profile(plan.fingerprint, plan.machine, plan.backend, plan.simulated, "", {}, named, ())


def profile_table(profile: Profile) -> RenderableType:
    """The fastest path for each class, operation and size that was measured."""
    made = table("pairs", "!operation", ">size", "fastest", ">time", ">bandwidth", ">limit", ">roads")
    last = ("", "")
    for group in profile.classes:
        for operation in definitions.OPERATIONS:
            series = profile.series_of(profile.measured_pair(group), group.processes, operation)
            for size in sorted({point.bytes for one in series for point in one.points}):
                found = [(point, one) for one in series for point in one.points if point.bytes == size]
                best, of = min(found, key=lambda pair: pair[0].seconds)
                name = (group_name(group), operation)
                add(
                    made,
                    name[0] if name[0] != last[0] else "",
                    name[1] if name != last else "",
                    format_bytes(size),
                    spaced(of.path.label),
                    format_seconds(best.seconds),
                    format_rate(best.rate),
                    format_percent(best.rate / of.limit) if of.limit else "-",
                    str(len(found)),
                )
                last = name
    return made


def profile_csv(profile: Profile) -> str:
    """One line for each point, with the columns CSV_COLUMNS; times in seconds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for one in profile.series:
        path = one.path
        for p in one.points:
            row = (
                path.source,
                path.destination,
                path.processes,
                one.operation,
                _harmless(path.label),
                p.bytes,
                p.seconds,
                p.low,
                p.high,
            )
            writer.writerow((*row, p.p50, p.p99, p.samples, p.cpu_seconds, str(p.verified).lower(), p.rate))
    return text.getvalue()


def _harmless(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@" else text


def summary(results: Results) -> list[RenderableType]:
    """What `tune` says at the end, in at most 38 lines."""
    profile = results.needed_profile()
    head = Text()
    if profile.warning():
        head.append(profile.warning().upper() + "\n", "bold yellow")
    head.append(profile.machine, "bold")
    memories = _count(len(places(profile)), "memory", "memories")
    head.append(f"  {memories}, {_count(len(profile.paths()), 'road', 'roads')} measured")
    head.append(f", {len(profile.unavailable)} unavailable")
    return [head, *([_best(profile, results.plan)] if results.plan else []), *_reasons(profile), _verdict(results)]


def roads(profile: Profile) -> RenderableType:
    """The fastest roads without a plan: small transfers and the best bandwidth of each class."""
    made = table("pairs", "small transfers", ">time", "large transfers", ">bandwidth", ">limit", ">roads")
    for group in profile.classes:
        pair = profile.measured_pair(group)
        points = [
            (p, one)
            for kind in ("latency", "streaming")
            for one in profile.series_of(pair, group.processes, kind)
            for p in one.points
        ]
        if not points:
            continue
        least = min(p.bytes for p, _ in points)
        quick, by = min(((p, one) for p, one in points if p.bytes == least), key=lambda found: found[0].seconds)
        wide, through = max(points, key=lambda found: (found[0].bytes, found[0].rate))
        limit = format_percent(wide.rate / through.limit) if through.limit else "-"
        count = len({one.path for _, one in points})
        add(
            made,
            group_name(group),
            by.path.mechanism,
            format_seconds(quick.seconds),
            through.path.mechanism,
            format_rate(wide.rate),
            limit,
            str(count),
        )
    return made


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _best(profile: Profile, plan: Plan) -> Table:
    rows = [row for row in choices(profile, plan) if row.operation in ("latency", "streaming")]
    rows = joined(rows)
    if len(rows) > _MOST_ROWS:
        rows = [row for row in rows if row.operation == "latency"]
    made = table("pairs", "!operation", "!sizes", "!best road", ">time", ">bandwidth", ">limit")
    last = ("", "")
    for row in rows[:_MOST_ROWS]:
        name = (group_name(row.group), row.operation)
        seconds = format_seconds(row.first_seconds) if row.first_seconds else "-"
        shown = (name[0] if name[0] != last[0] else "", name[1] if name != last else "")
        made.add_row(
            *(
                Text(cell, no_wrap=True, overflow="ellipsis")
                for cell in (*shown, format_range(row.from_bytes, row.to_bytes), row.path.mechanism)
            ),
            seconds,
            format_rate(row.rate) if row.rate else "-",
            _percent(row),
        )
        last = name
    if len(rows) > _MOST_ROWS:
        made.add_row("", "", f"{len(rows) - _MOST_ROWS} more in the report", "", "", "", "")
    return made


def _reasons(profile: Profile) -> list[Text]:
    found = grouped_reasons(profile.unavailable)
    shown = [_reason(one) for one in found[:_MOST_REASONS]]
    rest = len(found) - len(shown)
    if rest > 0:
        shown.append(Text(f"unavailable: {rest} more reason{'s' * (rest > 1)} in the report", "dim"))
    return shown


def _reason(one: Reason) -> Text:
    text = Text(
        f"unavailable: {one.mechanism} {one.pairs_text(1)}: {one.reason}", "dim", no_wrap=True, overflow="ellipsis"
    )
    return text


def _verdict(results: Results) -> Text:
    checked = results.verification
    if checked is None or checked.fraction is None:
        return Text("not verified", "yellow")
    text = f"chosen within 5 % of the fastest in {checked.within_5_percent} of {checked.cases} cases"
    worst = f", worst {checked.worst_ratio:.2f} x" if checked.worst_ratio else ""
    return Text(
        f"{text} ({format_percent(checked.fraction)}){worst}", "green" if checked.fraction >= 0.95 else "yellow"
    )


def explain_table(answer: dict[str, Any], head: str) -> RenderableType:
    """The answer of `explain`: candidates, cheapest first, then what is unavailable."""
    wide = console().width >= 110
    extra = [">predicted", ">bandwidth", ">limit"] if wide else []
    made = table("road", ">measured" if wide else ">time", *extra, ">ratio", "why")
    made.columns[0].min_width = 30
    chosen = _label(answer.get("chosen"))
    for one in _objects(answer.get("candidates")):
        measured = one.get("measured")
        seconds = measured.get("seconds") if isinstance(measured, dict) else None
        label = _label(one.get("label") or one.get("path"))
        rate, limit = _figure(one.get("rate"), format_rate), _figure(one.get("percent_of_limit"), _of_limit)
        cells = [
            f"{'* ' if label == chosen else '  '}{spaced(label)}",
            _figure(seconds or (None if wide else one.get("predicted")), format_seconds),
            *([_figure(one.get("predicted"), format_seconds), rate, limit] if wide else []),
            _figure(one.get("ratio"), lambda value: f"{value:.2f}"),
            spaced(clean(str(one.get("why") or ""))),
        ]
        made.add_row(*(Text(cell, "bold" if label == chosen else "") for cell in cells))
    lines = [Text(f"unavailable: {_unavailable(one)}", "dim") for one in _objects(answer.get("unavailable"))]
    return Group(Text(head, "bold"), made, *lines)


def _of_limit(percent: float) -> str:
    return format_percent(percent / 100)


def _unavailable(one: dict[str, Any]) -> str:
    label, reason = _label(one.get("label")), clean(str(one.get("reason") or ""))
    return reason if reason.startswith(label) else f"{label}: {reason}"


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _label(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("label") or value.get("mechanism")
    return clean(str(value or ""))


def _figure(value: Any, shown: Any) -> str:
    return str(shown(value)) if isinstance(value, (int, float)) and value > 0 else "-"


def peers_table(peers: dict[str, Any]) -> RenderableType:
    """The classic peer report as tables."""
    parts: list[RenderableType] = []
    for name, value in blocks(peers):
        if is_matrix(value):
            parts.append(Text(name, "bold"))
            made = table("", *(f">gpu{index}" for index in range(len(value[0]))))
            for index, row in enumerate(value):
                add(made, f"gpu{index}", *(cell_text(one) for one in row))
            parts.append(made)
        else:
            parts.append(Text(f"{name}: {cell_text(value)}"))
    return Group(*parts) if parts else Text("no GPUs")
