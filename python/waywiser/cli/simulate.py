"""`waywiser simulate WHAT`: predicts times on another machine or cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from waywiser import _core
from waywiser.errors import InputError
from waywiser.files import write_text_atomically
from waywiser.lists import words_in
from waywiser.plot_packages import need_plots
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.collectives import COMPARED
from waywiser.simulator.question import (
    STEP,
    cluster_of,
    collective_of,
    gpus_in,
    second_step_of,
    settings_of,
    step_of,
    sweep_of,
)
from waywiser.simulator.step import Step
from waywiser.simulator.step_changes import as_json as step_json
from waywiser.simulator.step_changes import changes
from waywiser.simulator.step_jobs import Jobs, jobs_json
from waywiser.simulator.step_trace import trace_of, trace_of_jobs
from waywiser.simulator.sweep import OPERATIONS, Sweep, best_settings


def simulate(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="latency, bandwidth, bidirectional, all_reduce, ..., step")
    ],
    machine: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="The type of the nodes. For published: NAME,...")
    ] = None,
    nodes: Annotated[int, typer.Option(metavar="N", help="Number of nodes.")] = 2,
    cluster: Annotated[Path | None, typer.Option(metavar="FILE", help="A cluster file (YAML).")] = None,
    sizes: Annotated[
        str, typer.Option(metavar="LIST", help="8,1K,64M; 8..64M: powers of two between; 4K..8K/64: steps of 64.")
    ] = "",
    vary: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Try all of gdr,gdrcopy,nics; for collectives gdr,nodes,network,taper,pxn,ranks,algorithm,placement.",
        ),
    ] = "",
    algorithms: Annotated[str, typer.Option(metavar="LIST", help="For a collective: ring,double_tree,...")] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting: nic=ndr400, gdr=off."),
    ] = None,
    pair: Annotated[
        str, typer.Option(metavar="SRC-to-DST,...", help="Places on the first and last node; several: all at once.")
    ] = "gpu0-to-gpu0",
    path: Annotated[
        str, typer.Option(metavar="PATH", help="A path other than UCX over RDMA: 'copy_engine', within one node.")
    ] = "",
    order: Annotated[
        str, typer.Option(metavar="LIST", help="For a collective: the GPUs of a node's ranks, 0,3,2,1.")
    ] = "",
    model: Annotated[
        str, typer.Option(metavar="LIST", help="For step: parameters=7e9,layers=32,sequence=2048,batch=512,...")
    ] = "",
    parallel: Annotated[
        str, typer.Option(metavar="LIST", help="For step: tensor=1,pipeline=1,sequence=1,expert=1,shard=no,...")
    ] = "",
    gpu: Annotated[
        str, typer.Option(metavar="LIST", help="For step: peak=989e12,utilisation=0.4,slowdown=1; trace=FILE")
    ] = "",
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curves into a .png or .svg.")] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Timeline of the last run or the step, .json for Perfetto, .png or .svg."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option(help="For published: the tables of docs/experiments.md.")] = False,
) -> None:
    """Predict a transfer or a collective on another machine or cluster."""
    if what == "published":
        return _published(words_in(machine or ""), as_json, markdown)
    known = [*OPERATIONS, *COMPARED, STEP, "published"]
    if plot is not None or (trace is not None and trace.suffix != ".json"):
        need_plots(f"{plot or trace}")
    if what not in known:
        raise InputError(f"{what!r}: write one of {', '.join(known)}")
    of_others = {"--sizes": sizes, "--vary": vary, "--algorithms": algorithms, "--order": order, "--plot": plot}
    of_step = {"--model": model, "--parallel": parallel, "--gpu": gpu}
    for option, value in (of_others if what == STEP else of_step).items():
        if value:
            raise InputError(f"{option} is not for {what}")
    spec = cluster_of(machine, nodes, cluster)
    fixed = settings_of(spec, set_ or [], what in COMPARED or what == STEP)
    try:
        if what == STEP:
            step = step_of(spec, model, parallel, gpu, fixed)
            if spec.second:
                return _jobs(Jobs((step, second_step_of(spec, step))), trace, as_json)
            return _step(step, trace, as_json)
        if what in OPERATIONS:
            sweep = sweep_of(spec, what, sizes or "8..64M", words_in(vary), fixed, pair, path)
            return _transfer(sweep, plot, trace, as_json)
        _collective(
            spec,
            what,
            sizes or "8..256M",
            words_in(vary),
            words_in(algorithms),
            fixed,
            gpus_in(order),
            plot,
            trace,
            as_json,
        )
    except _core.Error as error:
        if getattr(error, "kind", "") != "invalid input":
            raise
        raise InputError(spec.located(str(error))) from None


def _transfer(sweep: Sweep, plot: Path | None, trace: Path | None, as_json: bool) -> None:
    from waywiser import terminal
    from waywiser.progress import bar
    from waywiser.report import simulated

    sweep.trace = trace is not None
    with bar("simulating") as show:
        curves = sweep.run(show)
    name, pairs = sweep.topology.name, sweep.pairs()
    where = f"between two {name}" if sweep.remote() else f"by {sweep.path()} within {name}"
    which = f"{sweep.source}>{sweep.destination}" if len(pairs) == 1 else f"of {len(pairs)} pairs at once"
    title = f"{sweep.operation} {which} {where}"
    if trace is not None:
        _write_trace(trace, curves[-1].trace or {})
    if plot is not None:
        simulated.plot_curves(curves, sweep.sizes, title, plot)
    if as_json:
        best = [{"from": a, "to": b, "setting": curve.setting} for a, b, curve in best_settings(curves, sweep.sizes)]
        told = {"curves": [_as_json(c) for c in curves], "best": best, "assumed": sweep.assumed}
        typer.echo(json.dumps({"simulated": True, **told}, indent=1))
        return
    terminal.print_result(simulated.curves_table(curves, sweep.sizes, title))
    if len(sweep.settings()) > 1:
        terminal.print_result(simulated.best_table(curves, sweep.sizes, "Best setting by size"))
    simulated.print_assumed(sweep.assumed)


def _collective(
    spec: Cluster,
    what: str,
    sizes: str,
    vary: list[str],
    algorithms: list[str],
    fixed: dict[str, str],
    order: list[int],
    plot: Path | None,
    trace: Path | None,
    as_json: bool,
) -> None:
    from waywiser import terminal
    from waywiser.progress import bar
    from waywiser.report import simulated
    from waywiser.report.step_tables import nccl_table

    run = collective_of(spec, what, sizes, vary, algorithms, fixed, order)
    run.trace = trace is not None
    with bar("simulating") as show:
        cases = run.run(show)
    if "algorithm" in vary:
        able = {case.algorithm for case in cases if not case.unavailable}
        cases = [case for case in cases if case.algorithm in able]
    title = f"{what} on {'up to ' if len(run.nodes) > 1 else ''}{spec.nodes} x {' and '.join(spec.machines)}"
    if trace is not None:
        _write_trace(trace, run.last_trace)
    if plot is not None:
        simulated.plot_cases(cases, title, plot)
        if len(run.nodes) > 1 and len(run.algorithms) > 1 and len(run.direct) == 1 and not run.variants:
            simulated.plot_fastest(cases, title, plot.with_stem(plot.stem + "-crossover"))
    if as_json:
        rows = [{**vars(case), "bus_bandwidth": case.bus_bandwidth(what)} for case in cases]
        told = {"cases": rows, "assumed": run.assumed}
        typer.echo(json.dumps({"simulated": True, **told}, indent=1))
    else:
        terminal.print_result(simulated.cases_table(cases, what, title))
        if any(case.chosen for case in cases):
            terminal.print_result(nccl_table(cases))
        simulated.print_assumed(run.assumed)


def _step(step: Step, trace: Path | None, as_json: bool) -> None:
    from waywiser import terminal
    from waywiser.progress import bar
    from waywiser.report import simulated, step_tables

    with bar("simulating") as show:
        timed = step.run(show)
        others = changes(step, show)
    if trace is not None:
        _write_trace(trace, trace_of(step, timed))
    if as_json:
        typer.echo(json.dumps(step_json(step, timed, others), indent=1))
        return
    for shown in step_tables.tables(step, timed, others):
        terminal.print_result(shown)
    simulated.print_assumed(step.assumed)


def _jobs(jobs: Jobs, trace: Path | None, as_json: bool) -> None:
    from waywiser import terminal
    from waywiser.progress import bar
    from waywiser.report import simulated, step_tables

    with bar("simulating") as show:
        first, second = (step.run(show) for step in jobs.steps)
        shared = jobs.run((first, second))
    if trace is not None:
        _write_trace(trace, trace_of_jobs(jobs, shared))
    if as_json:
        rows = [step_json(step, timed, ()) for step, timed in zip(jobs.steps, (first, second), strict=True)]
        typer.echo(json.dumps(jobs_json(jobs, shared, rows), indent=1))
        return
    for number, (step, timed) in enumerate(zip(jobs.steps, (first, second), strict=True), 1):
        terminal.print_result(f"job {number}, alone, on {step.cluster.nodes} nodes:")
        for shown in step_tables.tables(step, timed, ()):
            terminal.print_result(shown)
    for shown in step_tables.jobs_tables(shared, jobs.meetings):
        terminal.print_result(shown)
    simulated.print_assumed(jobs.assumed)


def _write_trace(file: Path, trace: dict[str, Any]) -> None:
    if not trace:
        raise InputError(f"--trace {file}: the last run has no timeline, because it is not available")
    if file.suffix == ".json":
        write_text_atomically(file, json.dumps(trace))
    else:
        from waywiser.report.simulated import plot_trace

        plot_trace(trace, file)


def _published(machines: list[str], as_json: bool, markdown: bool) -> None:
    from waywiser import cli, terminal
    from waywiser.report import published
    from waywiser.simulator.findings import summary
    from waywiser.simulator.published import compare

    rows = compare(cli.run, machines)
    if as_json:
        typer.echo(json.dumps({"simulated": True, "rows": [row.as_json() for row in rows]}, indent=1))
    elif markdown:
        typer.echo(published.published_markdown(rows))
    else:
        terminal.print_result(published.published_table(rows))
        typer.echo("\n".join([*published.published_commands(rows), *published.published_sources(rows), summary(rows)]))


def _as_json(curve: Any) -> dict[str, Any]:
    points = [{"bytes": size, "seconds": seconds} for size, seconds in curve.points.items()]
    return {
        "setting": curve.setting,
        "operation": curve.operation,
        "points": points,
        "unavailable": curve.unavailable or None,
    }
