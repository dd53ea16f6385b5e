"""`waywiser tune`: discover, measure, choose, verify, report."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from waywiser.cli.options import Backend, Budget, ClusterFile, Costs, Nodes, Quick, ResultsFolder, cluster_of
from waywiser.cli.tune_remote import tune_remote
from waywiser.errors import InputError
from waywiser.plot_packages import why_no_plots
from waywiser.results import DEFAULT, Results
from waywiser.signals import ended_by_signals
from waywiser.tune.campaign import Request, measure_into
from waywiser.tune.collective_tuning import collectives_into
from waywiser.tune.other_machine import takes_part_only, the_other_machine

_MEASURING = 0.65  # of the budget; verification takes the rest
# Upper limits for measuring and verifying: with GPUs, set-up and report a run takes under 10 min.
_QUICK_SECONDS, _HOST_SECONDS, _GPU_SECONDS = (31.0, 14.0), (150.0, 50.0), (335.0, 170.0)
# A quick run takes under 60 s in all. With GPUs it measures for less time, since collectives and the report take more;
# it verifies until this long after the start.
_QUICK_MEASURING_GPUS, _QUICK_VERIFIED, _QUICK_VERIFIED_GPUS, _LEAST_VERIFYING = 26.0, 53.0, 50.0, 5.0
_QUICK_COLLECTIVES, _COLLECTIVES = 2.0, 12.0  # for each number of ranks and kind of memory


def tune(
    output: ResultsFolder = DEFAULT,
    quick: Quick = False,
    budget: Budget = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only one JSON object.")] = False,
    backend: Backend = "auto",
    machine: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Simulate this machine; with virtual GPUs: its peers."),
    ] = None,
    costs: Costs = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Repeat all measurements.")] = False,
    nodes: Nodes = 1,
    cluster: ClusterFile = None,
    remote: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Only the roads to this server's GPUs (waywiser serve)."),
    ] = "",
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="For --remote: the server's key.")] = None,
    data_plain: Annotated[
        bool, typer.Option("--data-plain", help="For --remote: also without encryption of arrays.")
    ] = False,
) -> None:
    """Discover this machine, measure its paths, choose the best, verify the choices, write the report.

    For a cluster with several node types, each type gets a folder in DIR.
    """
    if remote:
        others = {"--machine": machine, "--cluster": cluster, "--costs": costs, "--nodes": nodes != 1, "--fresh": fresh}
        return tune_remote(remote, key, output, 5.0 if quick else budget or 20.0, as_json, others, data_plain)
    if key is not None or data_plain:
        raise InputError("--key and --data-plain are for --remote")
    wanted = Request(quick, budget, backend=backend, machine=machine, fresh=fresh, costs_file=costs)
    spec = cluster_of(machine, nodes, cluster)
    if spec is None:
        wanted.check()
        if wanted.kind == "real" and takes_part_only():
            return
        return _tune(wanted, output, as_json)
    folders = {name: output / Path(name).stem if spec.others else output for name in spec.machines}
    for name, folder in folders.items():
        one = replace(wanted, machine=name, cluster=spec.beginning_with(name))
        one.check()
        _tune(one, folder, as_json)


def _tune(request: Request, output: Path, as_json: bool) -> None:
    """Tunes one machine into one folder."""
    from waywiser.report.found import found_line
    from waywiser.report.simulated import print_assumed
    from waywiser.report.summary import summary, to_do
    from waywiser.simulator.assumptions import of_profile
    from waywiser.terminal import print_result

    start = time.monotonic()
    quick, budget = request.quick, request.budget
    results = Results(output)
    topology = request.topology()
    with ended_by_signals(), results.held(), the_other_machine(request):
        in_a_minute = quick and budget is None and request.kind == "real"
        request.budget, verifying = _budgets(request, topology)
        measure_into(results, topology, request)
        if request.kind != "simulated":
            collectives_into(results, len(topology.ids("gpu")), _seconds_for_collectives(request), request.fresh)
        if in_a_minute:
            verifying = _until_verified(verifying, topology, time.monotonic() - start)
        _choose_and_verify(results, topology, request, verifying)
        page = _report(results, topology, request)
    seconds = time.monotonic() - start
    if as_json:
        typer.echo(json.dumps(_answer(results, page, seconds)))
        return
    for part in summary(results):
        print_result(part)
    typer.echo(f"report: {page} ({seconds:.0f} s)" if page else f"results: {output} ({seconds:.0f} s)")
    profile = results.needed_profile()
    print_assumed(of_profile(profile.state) if profile.simulated else [])
    print_result(to_do(results))
    _hint(results)
    if quick:
        typer.echo(found_line(results))


def _budgets(request: Request, topology: Any) -> tuple[float | None, float]:
    """Seconds for measuring and for verifying."""
    if request.budget:
        return request.budget * _MEASURING, request.budget * (1 - _MEASURING)
    if request.kind == "simulated":  # virtual time
        return None, float(request.options()["budget_seconds"])
    gpus = request.kind == "real" and topology.ids("gpu")
    if request.quick:
        return (_QUICK_MEASURING_GPUS if gpus else _QUICK_SECONDS[0]), _QUICK_SECONDS[1]
    return _GPU_SECONDS if gpus else _HOST_SECONDS


def _until_verified(most: float, topology: Any, elapsed: float) -> float:
    """Seconds that a quick run has left for verifying after `elapsed`."""
    end = _QUICK_VERIFIED_GPUS if topology.ids("gpu") else _QUICK_VERIFIED
    return min(most, max(_LEAST_VERIFYING, end - elapsed))


def _seconds_for_collectives(request: Request) -> float:
    if request.quick:
        return _QUICK_COLLECTIVES
    return max(_QUICK_COLLECTIVES, min(_COLLECTIVES, 0.1 * (request.budget or _COLLECTIVES / 0.1)))


def _choose_and_verify(results: Results, topology: Any, request: Request, seconds: float) -> None:
    from waywiser import stages
    from waywiser.progress import bar

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


def _report(results: Results, topology: Any, request: Request) -> Path | None:
    """The page; None without the packages that draw it."""
    from waywiser.progress import say

    if request.kind == "real" and len(topology.ids("gpu")) > 1:
        _peer_report(results, topology, request)
    if why := why_no_plots():
        say(f"no report: {why}")
        return None
    from waywiser.report.write import write_report

    say("writing the report")
    return write_report(results, results.folder)


def _peer_report(results: Results, topology: Any, request: Request) -> None:
    """An optional step: if it fails, prints one line with the reason and goes on."""
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


def _answer(results: Results, page: Path | None, seconds: float) -> dict[str, Any]:
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


def _hint(results: Results) -> None:
    """Without a GPU, prints how to see a machine with GPUs."""
    if any(
        place.startswith("gpu")
        for group in results.needed_profile().classes
        for pair in group.members
        for place in pair
    ):
        return
    typer.echo("no GPU here; to see a machine with GPUs: waywiser demo")
