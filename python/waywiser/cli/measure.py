"""`waywiser measure`: measures every path at every size that is missing or out of date."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import Backend, Budget, Costs, Quick, ResultsFolder
from waywiser.errors import InputError
from waywiser.profile import warning
from waywiser.results import DEFAULT, Results
from waywiser.tune.campaign import Request, measure_into, operations_in

if TYPE_CHECKING:
    from waywiser.simulator.assumptions import Assumption


def measure(
    output: ResultsFolder = DEFAULT,
    quick: Quick = False,
    budget: Budget = None,
    pairs: Annotated[str, typer.Option(metavar="class|all", help="One pair of each class, or all.")] = "class",
    operations: Annotated[
        str, typer.Option(metavar="LIST", help="One or more of latency,streaming,bidirectional,loaded.")
    ] = "",
    backend: Backend = "auto",
    machine: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Simulate this machine; with virtual GPUs: its peers."),
    ] = None,
    costs: Costs = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Repeat all measurements.")] = False,
    form: Annotated[str | None, typer.Option("--format", metavar="table|json|csv", help="Print every figure.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    peers: Annotated[bool, typer.Option("--peers", help="Report peer access between GPUs.")] = False,
) -> None:
    """Measure every path between the memories of this machine; writes profile.json."""
    if pairs not in ("class", "all"):
        raise InputError(f"--pairs {pairs!r}: write class or all")
    if form not in (None, "table", "json", "csv"):
        raise InputError(f"--format {form!r}: write table, json or csv")
    if as_json and form not in (None, "json"):
        raise InputError(f"--json and --format {form}: write one of them")
    form = "json" if as_json else form
    request = Request(quick, budget, pairs == "all", operations_in(operations), backend, machine, fresh, costs)
    request.check()
    results = Results(output)
    with results.held():
        if peers:
            return _peers(results, request, form)
        topology = request.topology()
        request.check_pairs(topology)
        measure_into(results, topology, request)
    _print(results, form, request.operations)


def _print(results: Results, form: str | None, operations: list[str]) -> None:
    from waywiser import terminal
    from waywiser.progress import say
    from waywiser.report import profile_table
    from waywiser.report.simulated import print_assumed
    from waywiser.simulator.assumptions import of_profile

    profile = results.needed_profile()
    missing = profile_table.nothing_of(profile, operations)
    if form in ("json", "csv"):
        for line in missing:
            say(line)
    if form == "json":
        typer.echo(results.text("profile"))
    elif form == "csv":
        typer.echo(profile_table.profile_csv(profile), nl=False)
    else:
        if profile.warning():
            terminal.print_result(profile.warning().upper())
        if any(one.points for one in profile.series):
            made = profile_table.profile_table(profile) if form == "table" else profile_table.best_paths(profile)
            terminal.print_result(made)
        for line in missing:
            terminal.print_result(line)
        print_assumed(of_profile(profile.state) if profile.simulated else [])


def _peers(results: Results, request: Request, form: str | None) -> None:
    from waywiser import stages, terminal
    from waywiser.progress import bar
    from waywiser.report.peers import peers_table
    from waywiser.report.simulated import print_assumed
    from waywiser.simulator.peers import simulated_peers

    if form == "csv":
        raise InputError("--peers has no CSV form: write --format table or json")
    topology = request.topology()
    assumed: list[Assumption] = []
    with bar("peer report") as show:
        if simulation := request.simulation(topology):
            report, assumed = simulated_peers(topology, simulation.costs, show)
            text = json.dumps(report, indent=1)
        else:
            watch = stages.Watch(show)
            text = stages.peer_report(topology, request.options(), watch)
            if watch.stop:
                raise stages.Stopped("interrupted: the peer report was not finished", watch.stop)
    results.write("peers", text)
    if form == "json":
        typer.echo(text)
        return
    report = json.loads(text)
    label = warning(str(report.get("backend", "")), bool(report.get("simulated")))
    if label:
        terminal.print_result(label.upper())
    terminal.print_result(peers_table(report))
    print_assumed(assumed)
