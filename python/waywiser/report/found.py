"""The line that `tune --quick` ends in: what the plan found, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.plan import PlanRow
from waywiser.profile import Pair
from waywiser.report.actions import where
from waywiser.results import Results
from waywiser.units import format_bytes

_WORTH_TELLING = 1.05


@dataclass(frozen=True)
class Finding:
    """The choice in the plan that matters most. `size` lies in the range of sizes in which it matters."""

    pair: Pair
    size: int
    text: str


def finding(results: Results) -> Finding | None:
    """From the plan's latency within one process: a pair with a GPU before others, a pair whose path changes with the
    size before others, then the pair whose next best path takes longest. None if the plan has no such row."""
    profile, plan = results.needed_profile(), results.plan
    if plan is None:
        return None
    pairs = [profile.measured_pair(group) for group in profile.classes if group.processes == 1]
    rows = [found for found in (plan.rows_of(pair, 1, "latency") for pair in pairs) if found]
    if not rows:
        return None
    mine = max(rows, key=lambda one: (_with_gpu(one[0].path.pair), len(_pieces(one)) > 1, _ratio(_clearest(one))))
    clearest = _clearest(mine)
    return Finding(clearest.path.pair, _middle(clearest), _sentence(mine, _ratio(clearest)))


def found_line(results: Results) -> str:
    """The finding and the next commands, in one line."""
    profile, at, one = results.needed_profile(), where(results), finding(results)
    label = f" ({profile.warning()})" if profile.warning() else ""
    if one is None:
        return f"found{label}: no path to choose; next: waywiser doctor"
    source, destination = one.pair
    why = f"waywiser explain {source} {destination} {size_word(one.size)}{at}"
    return f"found{label}: {one.text}; next: {why} (why), waywiser apply{at} (settings)"


def size_word(size: int) -> str:
    """The size as one word of a command line: "64KiB", "1000"."""
    return str(size) if size & (size - 1) else format_bytes(size).replace(" ", "")


def _sentence(rows: list[PlanRow], ratio: float) -> str:
    (source, destination), pieces = rows[0].path.pair, _pieces(rows)
    who = f"from {source} to {destination}"
    if len(pieces) == 1:
        text = f"{pieces[0][0]} is the fastest path {who} at every size"
    else:
        changes = "changes" if len(pieces) == 2 else f"changes {len(pieces) - 1} times, first"
        text = f"{who} the fastest path {changes} at {format_bytes(pieces[1][1])}"
        text += f", from {pieces[0][0]} to {pieces[1][0]}"
    return f"{text}; the next best takes up to {ratio:.2f} times as long" if ratio >= _WORTH_TELLING else text


def _pieces(rows: list[PlanRow]) -> list[tuple[str, int]]:
    """The paths over the size, each with its first size: mechanisms, or parameters too if there is one mechanism."""
    one = len({row.path.mechanism for row in rows}) == 1
    found: list[tuple[str, int]] = []
    for row in rows:
        name = row.path.label if one else row.path.mechanism
        if not found or found[-1][0] != name:
            found.append((name, row.from_bytes))
    return found


def _with_gpu(pair: Pair) -> bool:
    return any(place.startswith("gpu") for place in pair)


def _ratio(row: PlanRow) -> float:
    return row.runner_up.ratio if row.runner_up else 1.0


def _clearest(rows: list[PlanRow]) -> PlanRow:
    return max(rows, key=_ratio)


def _middle(row: PlanRow) -> int:
    """The middle one of the sizes that the row's times are for; its smallest size if it has no times."""
    sizes = [size for size, _ in row.expected if row.from_bytes <= size <= row.to_bytes]
    return sizes[len(sizes) // 2] if sizes else max(row.from_bytes, 1)
