"""The stages of `waywiser tune` after measuring, the time of each, and its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import waywiser._core as _core
from waywiser import stages
from waywiser.progress import bar, say
from waywiser.results import Results
from waywiser.tune.campaign import Request

_MEASURING = 0.65  # of the budget; verification takes the rest
# Upper limits for measuring and verifying: with GPUs, set-up and report a run takes under 10 min.
_QUICK_SECONDS, _HOST_SECONDS, _GPU_SECONDS = (31.0, 14.0), (150.0, 50.0), (335.0, 170.0)
# A quick run takes under 60 s in all. With GPUs it measures for less time, since collectives and the report take more;
# it verifies until this long after the start.
_QUICK_MEASURING_GPUS, _QUICK_VERIFIED, _QUICK_VERIFIED_GPUS, _LEAST_VERIFYING = 26.0, 53.0, 50.0, 5.0
_QUICK_COLLECTIVES, _COLLECTIVES = 2.0, 12.0  # for each number of ranks and kind of memory


def budgets(request: Request, topology: Any) -> tuple[float | None, float]:
    """Seconds for measuring and for verifying."""
    if request.budget:
        return request.budget * _MEASURING, request.budget * (1 - _MEASURING)
    if request.kind == "simulated":  # virtual time
        return None, float(request.options()["budget_seconds"])
    gpus = request.kind == "real" and topology.ids("gpu")
    if request.quick:
        return (_QUICK_MEASURING_GPUS if gpus else _QUICK_SECONDS[0]), _QUICK_SECONDS[1]
    return _GPU_SECONDS if gpus else _HOST_SECONDS


def until_verified(most: float, topology: Any, elapsed: float) -> float:
    """Seconds that a quick run has left for verifying after `elapsed`."""
    end = _QUICK_VERIFIED_GPUS if topology.ids("gpu") else _QUICK_VERIFIED
    return min(most, max(_LEAST_VERIFYING, end - elapsed))


def seconds_for_collectives(request: Request) -> float:
    if request.quick:
        return _QUICK_COLLECTIVES
    return max(_QUICK_COLLECTIVES, min(_COLLECTIVES, 0.1 * (request.budget or _COLLECTIVES / 0.1)))


def choose_and_verify(results: Results, topology: Any, request: Request, seconds: float) -> None:
    profile = results.needed_profile_text()
    plan = stages.choose(profile)
    results.write_plan(plan)
    options = {**request.options(), "budget_seconds": seconds}
    simulation = request.simulation(topology)
    with bar("verifying", simulation is not None) as show:
        watch = stages.Watch(show)
        text = stages.verify(topology, profile, plan, options, watch, simulation, request.other_machine)
    if watch.stop:
        raise stages.Stopped(
            f"interrupted: profile and plan are kept in {results.folder}; the same command continues", watch.stop
        )
    results.write("verification", text)


def report_peers(results: Results, topology: Any, request: Request) -> None:
    """An optional step: if it fails, prints one line with the reason and goes on."""
    try:
        with bar("peer report") as show:
            watch = stages.Watch(show)
            text = stages.peer_report(topology, request.options(), watch)
    except _core.Error as error:
        say(f"no peer report: {error}")
        return
    if not watch.stop:
        results.write("peers", text)


def answer_of(results: Results, page: Path | None, seconds: float) -> dict[str, Any]:
    profile, checked = results.needed_profile(), results.verification
    return {
        "machine": profile.machine,
        "seconds": round(seconds, 3),
        "paths_measured": len(profile.paths()),
        "paths_unavailable": len(profile.unavailable),
        "cases": checked.cases if checked else 0,
        "within_5_percent": checked.fraction if checked else None,
        "worst_ratio": checked.worst_ratio if checked else None,
        "report": str(page) if page else None,
        "profile": str(results.file("profile")),
        "plan": str(results.file("plan")),
    }
