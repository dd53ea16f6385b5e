"""The summary that `tune` prints at the end."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from waywiser.plan import Plan
from waywiser.profile import Profile
from waywiser.report.choices import Choice, choices, joined
from waywiser.report.matrices import matrices, places
from waywiser.report.reasons import Reason, grouped_reasons
from waywiser.report.terminal import group_name, table
from waywiser.results import Results
from waywiser.units import format_percent, format_range, format_rate, format_seconds

_MOST_ROWS = 20
_MOST_REASONS = 5
_MOST_ODD = 1


def summary(results: Results) -> list[RenderableType]:
    """The summary that `tune` prints at the end, in at most 40 lines."""
    profile = results.needed_profile()
    head = Text()
    if profile.warning():
        head.append(profile.warning().upper() + "\n", "bold yellow")
    head.append(profile.machine, "bold")
    memories = _count(len(places(profile)), "memory", "memories")
    head.append(f"  {memories}, {_count(len(profile.paths()), 'path', 'paths')} measured")
    head.append(f", {len(profile.unavailable)} unavailable")
    best = [_best(profile, results.plan)] if results.plan else []
    return [head, *best, *_odd(profile), *_reasons(profile), _verdict(results)]


def _odd(profile: Profile) -> list[Text]:
    """Pairs that are slower than similar pairs."""
    lines = [line for matrix in matrices(profile, None, 1) for line in matrix.odd()]
    more = [f"{len(lines) - _MOST_ODD} more odd pairs in the report"] if len(lines) > _MOST_ODD else []
    return [Text(line, "bold yellow") for line in lines[:_MOST_ODD] + more]


def _percent(choice: Choice) -> str:
    return format_percent(choice.percent) if choice.percent is not None else "-"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _best(profile: Profile, plan: Plan) -> Table:
    rows = [row for row in choices(profile, plan) if row.operation in ("latency", "streaming")]
    rows = joined(rows)
    if len(rows) > _MOST_ROWS:
        rows = [row for row in rows if row.operation == "latency"]
    made = table("pairs", "!operation", "!sizes", "!best path", ">time", ">bandwidth", ">limit")
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
    middle = f", median {checked.median_ratio:.2f} x" if checked.median_ratio else ""
    worst = f", worst {checked.worst_ratio:.2f} x" if checked.worst_ratio else ""
    skipped = f"; {checked.skipped} more not run" if checked.skipped else ""
    return Text(
        f"{text} ({format_percent(checked.fraction)}){middle}{worst}{skipped}",
        "green" if checked.fraction >= 0.95 else "yellow",
    )
