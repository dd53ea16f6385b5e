"""The summary that `tune` prints at the end."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from waywiser.plan import Plan
from waywiser.profile import Profile
from waywiser.report.actions import REPAIR, SET, actions
from waywiser.report.choices import Choice, choices
from waywiser.report.headline import headline
from waywiser.report.matrices import places
from waywiser.report.pair_kinds import merged
from waywiser.report.reasons import Reason, grouped_reasons
from waywiser.report.score import SAME_MODEL
from waywiser.report.settings_worth import settings_of
from waywiser.results import Results
from waywiser.terminal import add, console, table
from waywiser.units import format_percent, format_range, format_rate, format_seconds

_CAPTION = "time of the smallest and bandwidth of the largest size of each row"
_FOLDED = "; (+1): and one more class of pairs within 10 % of it"
_MOST_ROWS = 20
_MOST_REASONS = 3
# Of each kind: what is slow or broken, what to set.
_MOST_ACTIONS = 2


def summary(results: Results) -> list[RenderableType]:
    """What was measured; with what to do at most 40 lines."""
    profile = results.needed_profile()
    head = Text()
    if profile.warning():
        head.append(profile.warning().upper() + "\n", "bold yellow")
    head.append(headline(results.topology, profile.machine), "bold")
    memories = _count(len(places(profile)), "memory", "memories")
    paths = _count(len(profile.paths()), "path", "paths")
    head.append(f"  {profile.machine}, {memories}, {paths} {profile.verb}")
    head.append(f", {len(profile.unavailable)} unavailable")
    best = [_best(profile, results.plan)] if results.plan else []
    return [head, *best, *_reasons(profile), _verdict(results)]


def to_do(results: Results) -> Text:
    """The first statements of the page: what is slow or broken and what to set, each with its command."""
    text = Text("what to do:", "bold")
    found = actions(results, settings_of(results))
    for kind in (REPAIR, SET):
        mine = [one for one in found if one.kind == kind]
        for one in mine[:_MOST_ACTIONS]:
            text.append(f"\n- {kind.lower()}: {one.text}", "yellow not bold" if one.bad else "not bold")
            text.append(f"\n    {one.command}" if one.command else "", "not bold")
        if len(mine) > _MOST_ACTIONS:
            text.append(f"\n- {kind.lower()}: {len(mine) - _MOST_ACTIONS} more in the report", "not bold")
    return text


def _percent(choice: Choice) -> str:
    return format_percent(choice.percent) if choice.percent is not None else "-"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _best(profile: Profile, plan: Plan) -> Table:
    rows = merged([row for row in choices(profile, plan) if row.operation in ("latency", "streaming")])
    operations = len(rows) <= _MOST_ROWS
    rows = rows if operations else [(kind, row) for kind, row in rows if row.operation == "latency"]
    wide = console().width >= 100
    heads = ["pairs", "!procs", *(["!operation"] if operations else []), "!sizes", "!best path", ">time", ">bandwidth"]
    folded = any(kind.others for kind, _ in rows)
    title = f"Best paths, {'' if operations else 'latency, '}{_CAPTION}{_FOLDED if folded else ''}"
    made = table(*heads, *([">limit"] if wide else []), title=title)
    made.columns[0].min_width = 21 if wide else 16
    last = ("", "")
    for kind, row in rows[:_MOST_ROWS]:
        name = f"{row.group.words}{f' (+{len(kind.others)})' if kind.others else ''}", str(row.group.processes)
        shown = name if name != last else ("", "")
        size = format_range(row.from_bytes, row.to_bytes)
        figures = (
            format_seconds(row.first_seconds) if row.first_seconds else "-",
            format_rate(row.rate) if row.rate else "-",
        )
        operation = [row.operation] if operations else []
        add(made, *shown, *operation, size, row.path.mechanism, *figures, *([_percent(row)] if wide else []))
        last = name
    if len(rows) > _MOST_ROWS:
        add(made, f"{len(rows) - _MOST_ROWS} more in the report")
    return made


def _reasons(profile: Profile) -> list[Text]:
    found = grouped_reasons(profile.unavailable)
    shown = [_reason(one) for one in found[:_MOST_REASONS]]
    rest = len(found) - len(shown)
    if rest > 0:
        shown.append(Text(f"unavailable: {rest} more reason{'s' * (rest > 1)} in the report", "dim"))
    return shown


def _reason(one: Reason) -> Text:
    return Text(f"unavailable: {one.mechanism} {one.pairs_text(1)}: {one.reason}", "dim")


def _verdict(results: Results) -> Text:
    checked = results.verification
    if checked is None or checked.fraction is None:
        return Text("not verified", "yellow")
    if results.needed_profile().simulated:
        return Text(SAME_MODEL, "dim")
    text = f"chosen within 5 % of the fastest in {checked.within_5_percent} of {checked.cases} cases"
    middle = f", median {checked.median_ratio:.2f} x" if checked.median_ratio else ""
    worst = f", worst {checked.worst_ratio:.2f} x" if checked.worst_ratio else ""
    skipped = f"; {checked.skipped} more not run" if checked.skipped else ""
    return Text(
        f"{text} ({format_percent(checked.fraction)}){middle}{worst}{skipped}",
        "green" if checked.fraction >= 0.95 else "yellow",
    )
