"""`explain halo --shape ... --fields ...`: the row of one exchange, and what the formulas estimate, beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

import waywiser._core as _core
from waywiser.errors import InputError
from waywiser.plan import Plan, PlanRow
from waywiser.points import seconds_at
from waywiser.profile import PairClass, Profile
from waywiser.terminal import spaced, table
from waywiser.units import format_bytes, format_seconds

Field = tuple[str, int, bool]  # type, components, whether these come first
Time = Callable[[int], float]  # seconds for so many bytes
_STRAIGHT = ("direct", "gpu_aware")  # from GPU to GPU
_ON_HOSTS = ("whole_field", "per_neighbor", "packed")
_MOST_DIRECT, _MOST_RANKS = 8, 256
_FORMULA = "estimate: the messages and copies of the slowest rank, each at the time of the profile's fastest path"
_FIELD = re.compile(r"(?:(\d{1,6}):)?([a-z][a-z0-9_]*)(?::(\d{1,6}))?")


@dataclass(frozen=True)
class HaloQuestion:
    """An exchange that is asked about: as `waywiser.GridPartition` and its fields."""

    shape: list[int]
    ghost: list[int]
    periodic: list[bool]
    parts: list[int]
    fields: list[Field]
    memory: str
    ranks: int

    @property
    def grid(self) -> _core.HaloGrid:
        """Its boxes."""
        return _core.even_grid(self.shape, self.ghost, self.periodic, self.parts)


def halo_question(
    shape: str, fields: str, ghost: str, periodic: str, parts: str, memory: str, ranks: int
) -> HaloQuestion:
    """From the words of the command line. Raises InputError."""
    if memory not in ("host", "gpu"):
        raise InputError(f"--memory {memory!r}: write host or gpu")
    if ranks > _MOST_RANKS:
        raise InputError(f"-n {ranks}: a halo exchange is explained for up to {_MOST_RANKS} ranks")
    cells = _numbers("--shape", shape)
    if not 1 <= len(cells) <= 4:
        raise InputError(f"--shape {shape}: a grid has 1 to 4 dimensions")
    cut = _numbers("--parts", parts) if parts else _core.ranks_per_dimension(cells, ranks)
    if math.prod(cut) != ranks:
        raise InputError(f"--parts {parts}: {math.prod(cut)} boxes for {ranks} ranks")
    repeats = [bool(each) for each in _of_each("--periodic", periodic, len(cells))]
    widths = _of_each("--ghost", ghost, len(cells))
    if any(width > count for width, count in zip(widths, cells, strict=True)):
        raise InputError(f"--ghost {ghost}: wider than the whole grid")
    asked = HaloQuestion(cells, widths, repeats, cut, [_field(each) for each in fields.split(",")], memory, ranks)
    _core.grid_partition(asked.grid, 0)  # refuses what is no grid
    return asked


def _numbers(name: str, text: str) -> list[int]:
    words = re.split("[x,]", text)
    if not all(re.fullmatch(r"\d{1,18}", word) for word in words):
        raise InputError(f"{name} {text!r}: write a whole number for each dimension, such as 512x512x512")
    return [int(word) for word in words]


def _of_each(name: str, text: str, dimensions: int) -> list[int]:
    found = _numbers(name, text)
    if len(found) not in (1, dimensions):
        raise InputError(f"{name} {text}: write one number, or one for each of {dimensions} dimensions")
    return found if len(found) == dimensions else found * dimensions


def _field(text: str) -> Field:
    found = _FIELD.fullmatch(text.strip())
    if not found or (found[1] and found[3]):
        raise InputError(f"--fields {text!r}: write types such as float64, float32:3, or 3:float32 (components first)")
    components = int(found[1] or found[3] or 1)
    if components == 0:
        raise InputError(f"--fields {text!r}: a field has at least one component")
    return found[2], components, bool(found[1])


def halo_answer(asked: HaloQuestion, plan: Plan | None, profile: Profile | None, gpus: int) -> dict[str, Any]:
    """The row, or the default, with each variant's time, its estimate, and what it moves. `gpus`: of the machine; 0:
    unknown."""
    if plan is None and profile is None:
        raise InputError("no plan.json and no profile.json there: `waywiser tune` makes them")
    backend, machine = _machine(plan, profile)
    shared = asked.memory == "gpu" and 0 < gpus < asked.ranks
    places = [_place(rank, asked.memory, backend, gpus, shared) for rank in range(asked.ranks)]
    shape = _core.halo_shape(asked.grid, asked.fields, places, machine)
    key = ("halo", shape, asked.memory, asked.ranks)
    rows = plan.rows if plan else ()
    row = next((one for one in rows if (one.operation, one.shape, one.memory, one.ranks) == key), None)
    default, why = _default(asked, shared)
    ways = _ways(asked, row, profile)
    chosen = row.way if row else default
    ways.sort(key=lambda one: (one["way"] != chosen, one["ratio"] or math.inf, one["estimate"] or math.inf))
    second = next((one for one in ways if one["way"] != chosen and one["ratio"]), None)
    return {
        "operation": "halo",
        "shape": shape,
        "ranks": asked.ranks,
        "memory": asked.memory,
        "parts": asked.parts,
        "simulated": bool(profile and profile.simulated),
        "measured": row is not None,
        "chosen": chosen,
        "seconds": ways[0]["seconds"],
        "runner_up": {"way": second["way"], "ratio": second["ratio"]} if second else None,
        "why": row.why if row else why,
        "ways": ways,
        "estimate": _verdict(ways, row),
    }


def _machine(plan: Plan | None, profile: Profile | None) -> tuple[str, str]:
    known = plan or profile
    assert known is not None
    return known.backend if known.backend != "host" else "cuda", known.fingerprint


def _place(rank: int, memory: str, backend: str, gpus: int, shared: bool) -> str:
    """Where a rank has its fields, as a plan's shapes have it: rank r on GPU r."""
    if memory == "host":
        return "host"
    return f"{backend} gpu{rank % gpus if gpus else rank}{', ranks share GPUs' if shared else ''}"


def _default(asked: HaloQuestion, shared: bool) -> tuple[str, str]:
    how = "; halo.tune(seconds, file=FOLDER) in the program measures it"
    if asked.memory == "host":
        return "packed", f"the default for fields in host memory: this shape was not measured{how}"
    if shared:
        return "packed", f"the default where ranks share a GPU: this shape was not measured{how}"
    if asked.ranks > _MOST_DIRECT:
        return "packed", f"the default for more than {_MOST_DIRECT} ranks: this shape was not measured{how}"
    reach = "the default where kernels reach the neighbours' memory, else packed"
    return "direct", f"{reach}: this shape was not measured{how}"


def _ways(asked: HaloQuestion, row: PlanRow | None, profile: Profile | None) -> list[dict[str, Any]]:
    on_gpu, times = asked.memory == "gpu", _Times(profile)
    work = [_core.halo_work(asked.grid, asked.fields, rank, on_gpu) for rank in range(asked.ranks)]
    least = row.expected[0][1] if row and row.expected else None
    measured = {one.way: one.ratio or None for one in row.ways} if row else {}
    found = []
    for of_ranks in zip(*work, strict=True):
        variant = of_ranks[0][0]
        if not on_gpu and variant not in _ON_HOSTS:
            continue
        estimates = [times.of(variant, on_gpu, *lists) for _, *lists in of_ranks]
        known = [one for one in estimates if one is not None]
        _, messages, out, back = max(of_ranks, key=lambda one: sum(one[1]))
        found.append(
            _way(variant, measured.pop(variant, None), least)
            | {
                "estimate": max(known) if len(known) == len(estimates) else None,
                "messages": len(messages),
                "message_bytes": sum(messages),
                "copies": len(out) + len(back),
                "copy_bytes": sum(out) + sum(back),
            }
        )
    empty = {"estimate": None, "messages": None, "message_bytes": None, "copies": None, "copy_bytes": None}
    return found + [_way(way, ratio, least) | empty for way, ratio in measured.items()]  # mixes


def _way(way: str, ratio: float | None, least: float | None) -> dict[str, Any]:
    return {"way": way, "seconds": least * ratio if least and ratio else None, "ratio": ratio}


class _Times:
    """The time of one message or copy: that of the profile's fastest path between such memories."""

    def __init__(self, profile: Profile | None) -> None:
        self._profile = profile
        self._known: dict[tuple[str, int], Time | None] = {}

    def of(
        self, variant: str, on_gpu: bool, messages: Sequence[int], out: Sequence[int], back: Sequence[int]
    ) -> float | None:
        """Of all that one exchange makes a rank do; None if the profile lacks a figure that it takes."""
        straight = on_gpu and variant in _STRAIGHT
        parts = (
            ("gpu>gpu" if straight else "host>host", 2, messages),
            ("gpu>host" if on_gpu else "host>host", 1, out),
            ("host>gpu" if on_gpu else "host>host", 1, back),
        )
        total = 0.0
        for kinds, processes, sizes in parts:
            time = self._time(kinds, processes) if sizes else None
            if sizes and time is None:
                return None
            total += sum(time(size) for size in sizes) if time else 0.0
        return total

    def _time(self, kinds: str, processes: int) -> Time | None:
        if (kinds, processes) not in self._known:
            self._known[kinds, processes] = self._found(kinds, processes)
        return self._known[kinds, processes]

    def _found(self, kinds: str, processes: int) -> Time | None:
        if self._profile is None:
            return None
        for group in self._profile.classes:
            if group.processes == processes and _kinds(group) == kinds:
                series = self._profile.series_of(self._profile.measured_pair(group), processes, "latency")
                lines = [[(point.bytes, point.seconds) for point in one.points] for one in series if one.points]
                if lines:
                    return lambda size: _fastest(lines, size)
        return None


def _kinds(group: PairClass) -> str:
    """ "gpu>host"; of two GPUs only if they are not one."""
    source, destination = group.members[0]
    kinds = [re.sub(r"\d+$", "", place) for place in (source, destination)]
    return "" if kinds == ["gpu", "gpu"] and source == destination else ">".join(kinds)


def _fastest(lines: list[list[tuple[int, float]]], size: int) -> float:
    """Between the measured sizes; beyond the largest at its rate, below the smallest its time."""
    known = [seconds for seconds in (seconds_at(points, size) for points in lines) if seconds is not None]
    if known:
        return min(known)
    largest = max(points[-1][0] for points in lines)
    if size > largest:
        return min(points[-1][1] for points in lines if points[-1][0] == largest) * size / largest
    return min(points[0][1] for points in lines)


def _verdict(ways: list[dict[str, Any]], row: PlanRow | None) -> dict[str, Any]:
    """What the estimate would choose; where the row knows better, how much longer that takes as measured."""
    able = [one for one in ways if one["estimate"] is not None and (row is None or one["ratio"])]
    if not able:
        return {"chosen": None, "wrong": None, "ratio": None}
    best = min(able, key=lambda one: float(one["estimate"]))
    ratio = best["ratio"] if row else None
    return {"chosen": best["way"], "wrong": None if row is None else best["way"] != row.way, "ratio": ratio}


def halo_table(answer: dict[str, Any], head: str, warning: str) -> RenderableType:
    """The answer for the terminal."""
    return Group(*_parts(answer, head, warning))


def _parts(answer: dict[str, Any], head: str, warning: str) -> Iterator[RenderableType]:
    yield Text(head, "bold")
    made = table("", "way", ">measured", ">ratio", ">estimate", ">messages", ">copies")
    verdict = answer["estimate"]
    for one in answer["ways"]:
        taken, guessed = one["way"] == answer["chosen"], one["way"] == verdict["chosen"]
        cells = (
            "*" if taken else "",
            spaced(one["way"]),
            format_seconds(one["seconds"]) if one["seconds"] else "-",
            f"{one['ratio']:.2f}" if one["ratio"] else "-",
            (format_seconds(one["estimate"]) if one["estimate"] else "-") + (" <" if guessed else ""),
            _moved(one["messages"], one["message_bytes"]),
            _moved(one["copies"], one["copy_bytes"]),
        )
        style = "bold" if taken else "red" if guessed and verdict["wrong"] else ""
        made.add_row(*(Text(cell, style) for cell in cells))
    yield made
    yield Text(answer["why"], "dim")
    if verdict["wrong"]:
        longer = f"takes {verdict['ratio']:.2f} times as long as measured"
        yield Text(f"WRONG ESTIMATE: it would choose {verdict['chosen']}, which {longer}", "red")
    elif verdict["wrong"] is False:
        yield Text("the estimate would choose the same", "dim")
    elif verdict["chosen"]:
        yield Text(f"the estimate would choose {verdict['chosen']}; nothing here shows whether that is right", "dim")
    else:
        yield Text("no estimate: `waywiser measure` makes the times of messages and copies that it takes", "dim")
    yield Text(_FORMULA, "dim")
    if warning:
        yield Text(warning.upper())


def _moved(count: int | None, size: int | None) -> str:
    return "-" if count is None or size is None else f"{count}, {format_bytes(size)}" if count else "0"
