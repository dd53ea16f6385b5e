"""`waywiser tune`: discover, measure, choose, verify, report."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from waywiser.cli.options import Backend, Budget, ClusterFile, Costs, Nodes, Quick, ResultsFolder, cluster_of
from waywiser.cli.tune_nccl import tune_nccl
from waywiser.cli.tune_remote import tune_remote
from waywiser.cli.tune_storage import tune_storage
from waywiser.errors import InputError
from waywiser.plot_packages import why_no_plots
from waywiser.results import DEFAULT, Results
from waywiser.signals import ended_by_signals
from waywiser.tune.campaign import Request, measure_into
from waywiser.tune.collective_tuning import collectives_into
from waywiser.tune.flow import (
    answer_of,
    budgets,
    choose_and_verify,
    report_peers,
    seconds_for_collectives,
    until_verified,
)
from waywiser.tune.other_machine import takes_part_only, the_other_machine


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
    storage: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Only the ways to files in this folder; with --machine: of such storage."),
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="For --remote: the server's key.")] = None,
    data_plain: Annotated[
        bool, typer.Option("--data-plain", help="For --remote: also without encryption of arrays.")
    ] = False,
    nccl: Annotated[
        bool, typer.Option("--nccl", help="Only what NCCL's tuner chooses: algorithm, protocol, channels.")
    ] = False,
    ranks: Annotated[
        int | None, typer.Option("--ranks", "-n", metavar="N", min=2, max=1024, help="For --nccl: of how many GPUs.")
    ] = None,
) -> None:
    """Discover this machine, measure its paths, choose the best, verify the choices, write the report.

    For a cluster with several node types, each type gets a folder in DIR.
    """
    if nccl:
        others = {"--machine": machine, "--cluster": cluster, "--costs": costs, "--nodes": nodes != 1, "--fresh": fresh,
                  "--remote": remote, "--backend": backend not in ("auto", "cuda")}  # fmt: skip
        return tune_nccl(output, ranks, 30.0 if quick else budget or 240.0, as_json, others)
    if ranks is not None:
        raise InputError("--ranks is for --nccl")
    if storage is not None:
        others = {"--cluster": cluster, "--costs": costs, "--nodes": nodes != 1, "--fresh": fresh,
                  "--remote": remote, "--key": key, "--backend": backend not in ("auto", "host")}  # fmt: skip
        return tune_storage(storage, output, 15.0 if quick else budget or 60.0, as_json, others, machine)
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
        request.budget, verifying = budgets(request, topology)
        measure_into(results, topology, request)
        if request.kind != "simulated":
            collectives_into(results, len(topology.ids("gpu")), seconds_for_collectives(request), request.fresh)
        if in_a_minute:
            verifying = until_verified(verifying, topology, time.monotonic() - start)
        choose_and_verify(results, topology, request, verifying)
        page = _report(results, topology, request)
    seconds = time.monotonic() - start
    if as_json:
        typer.echo(json.dumps(answer_of(results, page, seconds)))
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


def _report(results: Results, topology: Any, request: Request) -> Path | None:
    """The page; None without the packages that draw it."""
    from waywiser.progress import say

    if request.kind == "real" and len(topology.ids("gpu")) > 1:
        report_peers(results, topology, request)
    if why := why_no_plots():
        say(f"no report: {why}")
        return None
    from waywiser.report.write import write_report

    say("writing the report")
    return write_report(results, results.folder)


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
