"""`waywiser tune`: discover, measure, choose, verify, report."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from waywiser.campaign import Request, measure_into
from waywiser.cli.options import Backend, Budget, Costs, Output, Quick
from waywiser.results import DEFAULT, Results, recorded_machines

_MEASURING = 0.65  # of the budget; verification takes the rest
_VERIFY_SECONDS, _VERIFY_QUICK_SECONDS = 160.0, 15.0  # at most
_QUICK_SECONDS = 34.0  # for measuring: with verification and report under 60 s on a busy machine


def tune(
    output: Output = DEFAULT,
    quick: Quick = False,
    budget: Budget = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    backend: Backend = "auto",
    machine: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Simulate this machine; with virtual GPUs: its peers."),
    ] = None,
    costs: Costs = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what is known already.")] = False,
) -> None:
    """Discover this machine, measure its roads, choose the best, verify the choices, write the report."""
    from waywiser.report.summary import summary
    from waywiser.report.terminal import print_result

    start = time.monotonic()
    measuring = budget * _MEASURING if budget else (_QUICK_SECONDS if quick and machine is None else None)
    request = Request(quick, measuring, backend=backend, machine=machine, fresh=fresh, costs_file=costs)
    request.check()
    results = Results(output)
    results.make_writable()
    topology = request.topology()
    measure_into(results, topology, request)
    _choose_and_verify(results, topology, request, budget)
    page = _report(results, topology, request)
    seconds = time.monotonic() - start
    if as_json:
        typer.echo(json.dumps(_answer(results, page, seconds)))
        return
    for part in summary(results):
        print_result(part)
    typer.echo(f"report: {page} ({seconds:.0f} s)")
    _hint(results)


def _choose_and_verify(results: Results, topology: Any, request: Request, budget: float | None) -> None:
    from waywiser import stages
    from waywiser.progress import bar

    profile = results.needed_profile_text()
    plan = stages.choose(profile)
    results.write("plan", plan)
    spend = budget * (1 - _MEASURING) if budget else (_VERIFY_QUICK_SECONDS if request.quick else _VERIFY_SECONDS)
    if request.kind == "simulated" and not budget:
        spend = float(request.options()["budget_seconds"])
    options = {**request.options(), "budget_seconds": spend}
    with bar("verifying") as show:
        watch = stages.Watch(show)
        text = stages.verify(topology, profile, plan, options, watch, request.costs(topology))
    if watch.stop:
        raise stages.Stopped(f"interrupted: profile and plan are kept in {results.folder}; the same command goes on")
    results.write("verification", text)


def _report(results: Results, topology: Any, request: Request) -> Path:
    from waywiser.progress import say
    from waywiser.report.write import write_report

    if request.kind == "real" and len(topology.ids("gpu")) > 1:
        _peer_report(results, topology, request)
    say("writing the report")
    return write_report(results, results.folder)


def _peer_report(results: Results, topology: Any, request: Request) -> None:
    """An extra: when it fails, one line says why and the rest goes on."""
    import waywiser._core as _core
    from waywiser import stages
    from waywiser.progress import bar, say

    try:
        with bar("peer report") as show:
            watch = stages.Watch(show)
            text = stages.peer_report(topology, request.options(), watch)
    except _core.Error as error:
        say(f"no peer report: {error}")
        return
    if not watch.stop:
        results.write("peers", text)


def _answer(results: Results, page: Path, seconds: float) -> dict[str, Any]:
    profile, checked = results.needed_profile(), results.verification
    return {
        "machine": profile.machine,
        "seconds": round(seconds, 3),
        "paths_measured": len(profile.paths()),
        "paths_unavailable": len(profile.unavailable),
        "cases": checked.cases if checked else 0,
        "within_5_percent": checked.fraction if checked else None,
        "worst_ratio": checked.worst_ratio if checked else None,
        "report": str(page),
        "profile": str(results.file("profile")),
        "plan": str(results.file("plan")),
    }


def _hint(results: Results) -> None:
    """Without a GPU, how to see a machine that has some."""
    if any(
        place.startswith("gpu")
        for group in results.needed_profile().classes
        for pair in group.members
        for place in pair
    ):
        return
    names = recorded_machines()
    seen = f"waywiser report --machine {names[0]}" if names else "waywiser topology --machine dgx-a100"
    typer.echo(f"no GPU here; to see a machine with GPUs: {seen}")
