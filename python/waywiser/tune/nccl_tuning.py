"""`waywiser tune --nccl`: with which algorithm, protocol and number of channels NCCL is fastest, measured through the
tuner plug-in as jobs will run it, also where the tuner says nothing, beside NCCL without a plug-in."""

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
from waywiser.look.nccl_log import ways_taken
from waywiser.look.root import Root
from waywiser.plan import Plan
from waywiser.run.clean_environment import clean_environment
from waywiser.stages import Show
from waywiser.tune.nccl_rows import UNTUNED, Series, keep, under_a_tuner
from waywiser.tune.turns import OneWay, take_turns, timed_point

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
# From coarse to fine: what the time is too short for lies between others.
SIZES = tuple(1 << bits for bits in (6, 24, 20, 14, 22, 10, 21, 17, 23, 19, 12, 18, 13))
_PROTOCOLS = ("LL", "LL128", "Simple")
_MOST_BY_LL = 4 << 20  # it sends twice the bytes
_LEAST_OF_CHUNKS = 1 << 20
_CHANNELS, _CHUNKS = (2, 8, 16, 32), (64 << 10, 256 << 10, 1 << 20)
_ROUNDS, _FIRST_ROUNDS, _HOPELESS = 6, 2, 1.3
_LOG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "TUNING"}  # a line when a collective is captured, none when it runs


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
    for whom the switches add. `logs`: a folder with what the ranks without a plug-in say of their choices."""

    plain: Timed
    tuned: Timed
    collnet: Timed | None = None
    logs: Path | None = None

    def of(self, ways: Sequence[str]) -> dict[str, Timed]:
        by_tuner = {way: self.collnet if way.startswith(COLLNET_WAYS) else self.tuned for way in (DEFAULT_WAY, *ways)}
        return {UNTUNED: self.plain, **{way: OneWay(team, way) for way, team in by_tuner.items() if team}}

    def own_way(self, operation: str) -> list[str]:
        """What NCCL took of itself for the last call of that kind, if its log says so."""
        texts = [file.read_text(errors="replace") for file in self.logs.glob("*.log")] if self.logs else []
        return [found[operation] for found in map(ways_taken, texts) if operation in found]


def start_teams(ranks: int, folder: Path, offers: Offers) -> tuple[NcclTeams, list[Team]]:
    """Raises TeamError, InputError with what is missing."""
    if why := look_for_nccl().why_not(ranks):
        raise InputError(f"NCCL cannot be timed: {why}")
    setup, clean = Setup(ranks, "cuda", 0, folder, folder), clean_environment(os.environ)
    logs = {**_LOG, "NCCL_DEBUG_FILE": str(folder / "nccl-%p.log")}
    plain = python_ranks(setup, "nccl", {**clean, **logs, "NCCL_TUNER_PLUGIN": "none"})
    started, collnet = [plain], None
    try:
        version = plain.version.removeprefix("NCCL ")
        file = folder / "default.json"
        file.write_text(plan_of(DEFAULT_WAY, ranks, version))
        given = {**clean, **environment_for(file.read_text(), file)}
        started.append(python_ranks(setup, "nccl-tuned", given, module="nccl"))
        if offers.collnet:
            collnet = python_ranks(setup, "nccl-collnet", {**given, **COLLNET}, module="nccl")
            started.append(collnet)
    except BaseException:
        for team in started:
            team.close()
        raise
    return NcclTeams(plain, started[1], collnet, folder), started


def tuned_nccl(results: Path, ranks: int, seconds: float, show: Show) -> tuple[Plan, str, dict[str, float]]:
    """Measures in about `seconds`, and keeps the rows in the plan of `results`; the plan, the name and version of NCCL,
    by which its rows are known, and what a tuner costs that says nothing. Raises TeamError, InputError."""
    with tempfile.TemporaryDirectory() as folder:
        offers = Offers.here(os.environ, find_libnccl())
        teams, started = start_teams(ranks, Path(folder), offers)
        try:
            series = measured(teams, ranks, offers, time.monotonic() + seconds, show)
        finally:
            for team in started:
                team.close()
    partner = teams.plain.version
    return keep(results / "plan.json", series, partner, ranks), partner, under_a_tuner(series)


def measured(
    teams: NcclTeams, ranks: int, offers: Offers, until: float, show: Show, sizes: Sequence[int] = SIZES
) -> list[Series]:
    """Series for a profile; sizes for which the time is too short are left out, the last of `sizes` first. Marked as a
    `glance`: what was timed a few times only."""
    series: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
    cases = [Case(OPERATIONS[name], "gpu", size, "graph") for size in sizes for name in COLLECTIVES]
    started = time.monotonic()
    for done, case in enumerate(cases):
        left = until - time.monotonic()
        if left <= 0 and done >= len(COLLECTIVES):
            break
        show(done, len(cases), left, f"{case.operation.name} {case.bytes}")
        share = (until - started) * (done + 1) / len(cases) + started
        for way, glance, found in _timed(teams, case, offers, share):
            series.setdefault((case.operation.name, way, glance), []).append(found)
    head = {"memory": "gpu", "ranks": ranks}
    # The default first: of equals the first is taken.
    ordered = sorted(series.items(), key=lambda one: (one[0][0], one[0][1] != DEFAULT_WAY))
    return [
        {"operation": name, "way": way, "points": sorted(points, key=lambda point: int(point["bytes"])), **head}
        | ({"glance": True} if glance else {})
        for (name, way, glance), points in ordered
    ]


def _timed(teams: NcclTeams, case: Case, offers: Offers, until: float) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """First the protocols, then what is finer about the best two of them, and what NCCL takes without a tuner."""
    first = teams.of(first_ways(case.operation.name, case.bytes, offers))
    looked = take_turns(first, dict.fromkeys(first, case), until, _FIRST_ROUNDS, _HOPELESS)
    medians = {way: one.median for way, one in looked.items() if way not in (UNTUNED, DEFAULT_WAY)}
    best = sorted(medians, key=lambda way: medians[way])[:2]
    finer = teams.of([*finer_ways(best, case.bytes, offers), *teams.own_way(case.operation.name)])
    found = take_turns(finer, dict.fromkeys(finer, case), until, _ROUNDS, _HOPELESS)
    for way, one in found.items():
        yield way, False, timed_point(case, one)
    for way, one in looked.items():
        if way not in found:
            yield way, True, timed_point(case, one)
