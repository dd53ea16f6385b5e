"""`waywiser tune --nccl`: with which algorithm, protocol and number of channels NCCL is fastest, measured through the
tuner plug-in as jobs will run it, beside NCCL without a plug-in."""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waywiser.apply.nccl_tuner_switch import COLLNET, COLLNET_SWITCH, COLLNET_WAYS, DEFAULT_WAY, environment_for
from waywiser.bench.conduct import Case
from waywiser.bench.nccl_communicators import plan_of
from waywiser.bench.operations import OPERATIONS
from waywiser.bench.team import Team, Timed
from waywiser.bench.teams import Setup, python_ranks
from waywiser.errors import InputError
from waywiser.look.finding import Unknown
from waywiser.look.in_network import why_no_collnet
from waywiser.look.nccl_library import find_libnccl, look_for_nccl
from waywiser.look.root import Root
from waywiser.partner_rows import chosen_plan, keep_rows
from waywiser.plan import Plan
from waywiser.run.clean_environment import clean_environment
from waywiser.stages import Show
from waywiser.tune.turns import OneWay, take_turns, timed_point

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
# From coarse to fine: what the time is too short for lies between others.
SIZES = tuple(1 << bits for bits in (6, 24, 20, 14, 22, 10, 21, 17, 23, 19, 12, 18, 13))
_PROTOCOLS = ("LL", "LL128", "Simple")
_MOST_BY_LL = 4 << 20  # it sends twice the bytes
_LEAST_OF_CHUNKS = 1 << 20
_CHANNELS, _CHUNKS = (2, 8, 16, 32), (64 << 10, 256 << 10, 1 << 20)
_ROUNDS, _FIRST_ROUNDS, _HOPELESS = 6, 2, 1.3
# The default is what has to be beaten: no way is taken that costs more, and few bytes more of noise do not decide.
_NOT_MEASURED = "no other way was measured as faster at the sizes on both sides"
_HYSTERESIS = {"tolerance": 0.01, "equal": 0.03, "switching": 0.01}


@dataclass(frozen=True)
class Offers:
    """What the plug-in can ask of this NCCL: `nvls`: multicast over NVLink is not switched off; `chunks`: it lets a
    tuner say the size of a chunk; `collnet`: the switches of the network add (daemon, port and plug-in are there)."""

    nvls: bool
    chunks: bool
    collnet: bool = False

    @staticmethod
    def here(environment: Mapping[str, str], library: str, root: Root | None = None) -> Offers:
        try:
            adds = environment.get(COLLNET_SWITCH) != "0" and not why_no_collnet(root or Root())
        except Unknown:  # what cannot be asked is not tried
            adds = False
        return Offers(environment.get("NCCL_NVLS_ENABLE") != "0", _contains(library, b"ncclTunerPlugin_v6"), adds)


def _contains(file: str, words: bytes) -> bool:
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(words) >= 0


def first_ways(operation: str, size: int, offers: Offers) -> list[str]:
    """Algorithms with their protocols; the number of channels is NCCL's."""
    algorithms = ("Ring", "Tree") if operation == "all_reduce" else ("Ring",)
    protocols = [one for one in _PROTOCOLS if one != "LL" or size <= _MOST_BY_LL]
    found = [f"{algorithm}(protocol={protocol})" for algorithm in algorithms for protocol in protocols]
    if offers.nvls and operation in ("all_reduce", "all_gather", "reduce_scatter"):
        found.append("NVLS(protocol=Simple)")
    if offers.collnet and operation == "all_reduce":
        found += [f"{algorithm}(protocol=Simple)" for algorithm in COLLNET_WAYS]
    return found


def finer_ways(best: Sequence[str], size: int, offers: Offers) -> list[str]:
    """The best of the first ways; the very best with other numbers of channels, and with other sizes of chunks."""
    found = [*best, *(best[0].replace("(", f"(channels={count},") for count in _CHANNELS)]
    if offers.chunks and size >= _LEAST_OF_CHUNKS:
        found += [best[0].replace("(", f"(chunk={chunk},") for chunk in _CHUNKS]
    return found


@dataclass(frozen=True)
class NcclTeams:
    """Ranks without a plug-in, and ranks whose tuner follows the way that a request names; `collnet`: of these, those
    for whom the switches add."""

    plain: Timed
    tuned: Timed
    collnet: Timed | None = None

    def of(self, ways: Sequence[str]) -> dict[str, Timed]:
        by_tuner = {way: self.collnet if way.startswith(COLLNET_WAYS) else self.tuned for way in ways}
        return {DEFAULT_WAY: self.plain, **{way: OneWay(team, way) for way, team in by_tuner.items() if team}}


def start_teams(ranks: int, folder: Path, offers: Offers) -> tuple[NcclTeams, list[Team]]:
    """Raises TeamError, InputError with what is missing."""
    if why := look_for_nccl().why_not(ranks):
        raise InputError(f"NCCL cannot be timed: {why}")
    setup, clean = Setup(ranks, "cuda", 0, folder, folder), clean_environment(os.environ)
    plain = python_ranks(setup, "nccl", {**clean, "NCCL_TUNER_PLUGIN": "none"})
    started = [plain]
    try:
        version = plain.version.removeprefix("NCCL ")
        file = folder / "default.json"
        file.write_text(plan_of(DEFAULT_WAY, ranks, version))
        given = {**clean, **environment_for(file.read_text(), file)}
        started.append(python_ranks(setup, "nccl-tuned", given, module="nccl"))
        if offers.collnet:
            started.append(python_ranks(setup, "nccl-collnet", {**given, **COLLNET}, module="nccl"))
    except BaseException:
        for team in started:
            team.close()
        raise
    return NcclTeams(*started), started


def tuned_nccl(results: Path, ranks: int, seconds: float, show: Show) -> tuple[Plan, str]:
    """Measures in about `seconds`, and keeps the rows in the plan of `results`; the plan, and the name and version of
    NCCL, by which its rows are known. Raises TeamError, InputError."""
    with tempfile.TemporaryDirectory() as folder:
        offers = Offers.here(os.environ, find_libnccl())
        teams, started = start_teams(ranks, Path(folder), offers)
        try:
            series = measured(teams, ranks, offers, time.monotonic() + seconds, show)
        finally:
            for team in started:
                team.close()
    return keep(results / "plan.json", series, teams.plain.version, ranks), teams.plain.version


def keep(file: Path, series: Sequence[dict[str, Any]], partner: str, ranks: int) -> Plan:
    """Chooses, and writes the rows in place of those of this library for as many ranks."""
    chosen = chosen_plan([{**one, "partner": partner} for one in series], "cuda", _HYSTERESIS)
    times: dict[str, _Times] = {}
    for one in series:
        of_way = {point["bytes"]: point["seconds"] for point in one["points"]}
        times.setdefault(one["operation"], {})[one["way"]] = of_way
    rows = [row for name, of_one in times.items() for row in _where_measured(chosen["rows"], name, of_one)]
    return keep_rows(file, partner, {**chosen, "rows": rows}, ranks)


_Times = dict[str, dict[int, float]]  # of each way, by size


def _where_measured(chosen: Sequence[dict[str, Any]], operation: str, times: _Times) -> list[dict[str, Any]]:
    """At the sizes that were measured, and below the least of them, what was chosen; between two of them the way that
    was faster than the default at both; above them the default. Elsewhere NCCL may change its own protocol."""
    mine = [row for row in chosen if row["operation"] == operation]
    sizes = sorted(times[DEFAULT_WAY])
    rows: list[dict[str, Any]] = []

    def add(first: int, last: int, row: dict[str, Any]) -> None:
        if rows and rows[-1]["ways"][0]["way"] == row["ways"][0]["way"]:
            first = rows.pop()["from_bytes"]
        of_way = times[row["ways"][0]["way"]]
        expected = [{"bytes": size, "seconds": of_way[size]} for size in sizes if first <= size <= last]
        rows.append({**row, "from_bytes": first, "to_bytes": last, "expected": expected})

    for size, following in zip(sizes, [*sizes[1:], None], strict=True):
        (here,) = (row for row in mine if row["from_bytes"] <= size <= row["to_bytes"])
        add(0 if size == sizes[0] else size, size, here)
        way, why = _faster_at_both(times, size, following) if following else (DEFAULT_WAY, _NOT_MEASURED)
        rest = {**here, "ways": [{"way": way, "ratio": 1.0}], "why": why}
        add(size + 1, following - 1 if following else mine[-1]["to_bytes"], rest)
    return rows


def _faster_at_both(times: _Times, low: int, high: int) -> tuple[str, str]:
    """The best of the ways that beat the default at both sizes by more than noise, and why."""
    usual = times[DEFAULT_WAY]
    ratios = {
        way: (found[low] / usual[low], found[high] / usual[high])
        for way, found in times.items()
        if low in found and high in found
    }
    most = 1 - _HYSTERESIS["equal"]
    able = [way for way, both in ratios.items() if max(both) <= most]
    if not able:
        return DEFAULT_WAY, _NOT_MEASURED
    best = min(able, key=lambda way: (ratios[way][0] * ratios[way][1], way))
    return best, "faster than the default at the sizes on both sides"


def measured(
    teams: NcclTeams, ranks: int, offers: Offers, until: float, show: Show, sizes: Sequence[int] = SIZES
) -> list[dict[str, Any]]:
    """Series for a profile; sizes for which the time is too short are left out, the last of `sizes` first."""
    series: dict[tuple[str, str], list[dict[str, Any]]] = {}
    cases = [Case(OPERATIONS[name], "gpu", size, "graph") for size in sizes for name in COLLECTIVES]
    started = time.monotonic()
    for done, case in enumerate(cases):
        left = until - time.monotonic()
        if left <= 0 and done >= len(COLLECTIVES):
            break
        show(done, len(cases), left, f"{case.operation.name} {case.bytes}")
        share = (until - started) * (done + 1) / len(cases) + started
        for way, found in _timed(teams, case, offers, share):
            series.setdefault((case.operation.name, way), []).append(found)
    head = {"memory": "gpu", "ranks": ranks}
    # The default first: of equals the first is taken.
    ordered = sorted(series.items(), key=lambda one: (one[0][0], one[0][1] != DEFAULT_WAY))
    return [
        {"operation": name, "way": way, "points": sorted(points, key=lambda point: int(point["bytes"])), **head}
        for (name, way), points in ordered
    ]


def _timed(teams: NcclTeams, case: Case, offers: Offers, until: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """First the protocols, then what is finer about the best two of them."""
    first = teams.of(first_ways(case.operation.name, case.bytes, offers))
    looked = take_turns(first, dict.fromkeys(first, case), until, _FIRST_ROUNDS, _HOPELESS)
    medians = {way: one.median for way, one in looked.items() if way != DEFAULT_WAY}
    best = sorted(medians, key=lambda way: medians[way])[:2]
    finer = teams.of(finer_ways(best, case.bytes, offers))
    for way, one in take_turns(finer, dict.fromkeys(finer, case), until, _ROUNDS, _HOPELESS).items():
        yield way, timed_point(case, one)
