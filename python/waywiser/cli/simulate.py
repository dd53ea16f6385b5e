"""`waywiser simulate WHAT`: predicts times on another machine or cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from waywiser import _core
from waywiser.errors import InputError
from waywiser.files import write_text_atomically
from waywiser.plot_packages import need_plots
from waywiser.simulator.cluster import MOST_NODES, Cluster, read_cluster
from waywiser.simulator.collectives import COMPARED, GDR
from waywiser.simulator.costs import settings_in
from waywiser.simulator.sweep import OPERATIONS, VARIED, WAY, Sweep, best_settings
from waywiser.units import parse_bytes

MOST_SIZES = 256


def simulate(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="latency, bandwidth, bidirectional, all_reduce, ...")],
    machine: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="The type of the nodes. For published: NAME,...")
    ] = None,
    nodes: Annotated[int, typer.Option(metavar="N", help="Number of nodes.")] = 2,
    cluster: Annotated[Path | None, typer.Option(metavar="FILE", help="A cluster file (YAML).")] = None,
    sizes: Annotated[
        str, typer.Option(metavar="LIST", help="8,1K,64M; 8..64M: powers of two between; 4K..8K/64: steps of 64.")
    ] = "",
    vary: Annotated[
        str, typer.Option(metavar="LIST", help="One or more of gdr,gdrcopy,nics,nodes: try all settings.")
    ] = "",
    algorithms: Annotated[str, typer.Option(metavar="LIST", help="For a collective: ring,double_tree,...")] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting: nic=ndr400, gdr=off."),
    ] = None,
    pair: Annotated[
        str, typer.Option(metavar="SRC-to-DST", help="Places on the first and last node.")
    ] = "gpu0-to-gpu0",
    path: Annotated[
        str, typer.Option(metavar="PATH", help="A path other than UCX over RDMA: 'copy_engine', within one node.")
    ] = WAY,
    order: Annotated[
        str, typer.Option(metavar="LIST", help="For a collective: the GPUs of a node's ranks, 0,3,2,1.")
    ] = "",
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curves into a .png or .svg.")] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Timeline of the last run, .json for Perfetto, .png or .svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option(help="For published: the tables of docs/experiments.md.")] = False,
) -> None:
    """Predict a transfer or a collective on another machine or cluster."""
    if what == "published":
        return _published(_words(machine or ""), as_json, markdown)
    known = [*OPERATIONS, *COMPARED, "published"]
    if plot is not None or (trace is not None and trace.suffix != ".json"):
        need_plots(f"{plot or trace}")
    if what not in known:
        raise InputError(f"{what!r}: write one of {', '.join(known)}")
    spec = _cluster(machine, nodes, cluster)
    fixed = _settings(spec, set_ or [], what in COMPARED)
    try:
        if what in OPERATIONS:
            sweep = _sweep(spec, what, sizes or "8..64M", _words(vary), fixed, pair)
            sweep.way = path
            return _transfer(sweep, pair, plot, trace, as_json)
        _collective(
            spec, what, sizes or "8..256M", _words(vary), _words(algorithms), fixed, _gpus(order), plot, trace, as_json
        )
    except _core.Error as error:
        if getattr(error, "kind", "") != "invalid input":
            raise
        raise InputError(spec.located(str(error))) from None


def _cluster(machine: str | None, nodes: int, file: Path | None) -> Cluster:
    if (machine is None) == (file is None):
        raise InputError("which cluster? write --machine NAME, such as hse-e, for two nodes of it, or --cluster FILE")
    if not 1 <= nodes <= MOST_NODES:
        raise InputError(f"--nodes {nodes}: a cluster has 1 to {MOST_NODES} nodes")
    return read_cluster(file) if file is not None else Cluster(str(machine), {"nodes": nodes})


def _say_port(spec: Cluster, topology: Any) -> None:
    from waywiser.progress import say

    if note := spec.port_note(topology):
        say(note)


def _settings(spec: Cluster, texts: list[str], collective: bool) -> dict[str, str]:
    """Adds costs and ports of `--set` to `spec`; returns the settings of the path."""
    fixed, known = {}, {**VARIED, "pxn": ("off", "on")}
    if collective:
        known["gdr"] = GDR
    for text in texts:
        name, equals, value = text.partition("=")
        if name in known and equals:
            if value not in known[name] and not (name == "nics" and re.fullmatch(r"[1-9]\d?", value)):
                raise InputError(f"--set {text!r}: {name} is one of {', '.join(known[name])}")
            fixed[name] = value
    values, port = settings_in([text for text in texts if text.split("=")[0] not in known])
    spec.costs.update(values)
    if port is not None:
        spec.network["port_rate"] = port
    return fixed


def _sweep(spec: Cluster, what: str, sizes: str, vary: list[str], fixed: dict[str, str], pair: str) -> Sweep:
    from waywiser.topology import load_topology

    source, arrow, destination = pair.replace("-to-", ">").partition(">")
    if not arrow:
        raise InputError(f"--pair {pair!r}: write two places, such as gpu0-to-gpu0")
    topology = load_topology(spec.machine)
    _say_port(spec, topology)
    spec.check_size(max(1, len(topology.ids("gpu"))))
    others = [load_topology(machine) for machine in spec.others]
    last = [topology, *others][spec.network["types"][-1]] if others else topology
    for place, machine in ((source, topology), (destination, last)):
        if place not in machine.places():
            raise InputError(f"--pair {pair!r}: {place!r} is not in {machine.name}: {', '.join(machine.places())}")
    if "nodes" in vary:
        raise InputError("--vary nodes is for collectives: a transfer is between the first and the last node")
    if "pxn" in fixed:
        raise InputError("--set pxn is for collectives: a transfer takes the NICs beside its GPUs")
    network = {**spec.network, "nodes": max(2, spec.nodes)}
    sweep = Sweep(topology, network, what, sizes_in(sizes), vary, fixed, source, destination, spec.costs)
    sweep.others = others
    return sweep


def _transfer(sweep: Sweep, pair: str, plot: Path | None, trace: Path | None, as_json: bool) -> None:
    from waywiser import terminal
    from waywiser.progress import bar
    from waywiser.report import simulated

    sweep.trace = trace is not None
    with bar("simulating") as show:
        curves = sweep.run(show)
    where = f"between two {sweep.topology.name}" if sweep.remote() else f"by {sweep.way} within {sweep.topology.name}"
    title = f"{sweep.operation} {pair.replace('-to-', '>')} {where}"
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
    if len(curves) > 1:
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
    from waywiser.simulator.collectives import Collective
    from waywiser.topology import load_topology

    spec.of_one_type()
    for name in [*vary, *fixed]:
        if name not in ("gdr", "nodes", *fixed.keys() & {"pxn"}):
            raise InputError(f"{name!r} does not vary for {what}: write some of gdr,nodes")
    chosen = algorithms or [
        name for name in COMPARED[what] if name != "in_network" or spec.network.get("in_network_reduction")
    ]
    counts = [1 << power for power in range(1, 18) if 1 << power < spec.nodes]
    nodes = [*counts, spec.nodes] if "nodes" in vary else [spec.nodes]
    direct = ("off", "on") if "gdr" in vary else (fixed.get("gdr", "best"),)
    topology = load_topology(spec.machine)
    _say_port(spec, topology)
    spec.check_size(max(1, len(topology.ids("gpu"))))
    run = Collective(topology, spec, what, sizes_in(sizes), chosen, nodes, direct)
    run.order, run.pxn = order, fixed.get("pxn") == "on"
    run.trace = trace is not None
    with bar("simulating") as show:
        cases = run.run(show)
    title = f"{what} on {'up to ' if len(nodes) > 1 else ''}{spec.nodes} x {run.topology.name}"
    if trace is not None:
        _write_trace(trace, run.last_trace)
    if plot is not None:
        simulated.plot_cases(cases, title, plot)
        if len(nodes) > 1 and {"ring", "double_tree"} <= set(chosen) and len(direct) == 1:
            beside = plot.with_stem(plot.stem + "-crossover")
            simulated.plot_crossover(cases, "ring", "double_tree", title, beside)
    if as_json:
        told = {"cases": [vars(case) for case in cases], "assumed": run.assumed}
        typer.echo(json.dumps({"simulated": True, **told}, indent=1))
    else:
        terminal.print_result(simulated.cases_table(cases, title))
        simulated.print_assumed(run.assumed)


def _write_trace(file: Path, trace: dict[str, Any]) -> None:
    if not trace:
        raise InputError(f"--trace {file}: the last run has no timeline, because it is not available")
    if file.suffix == ".json":
        write_text_atomically(file, json.dumps(trace))
    else:
        from waywiser.report.simulated import plot_trace

        plot_trace(trace, file)


def _published(machines: list[str], as_json: bool, markdown: bool) -> None:
    from waywiser import terminal
    from waywiser.cli import run
    from waywiser.report import simulated
    from waywiser.simulator.published import compare

    rows = compare(run, machines)
    if as_json:
        typer.echo(json.dumps({"simulated": True, "rows": [row.as_json() for row in rows]}, indent=1))
    elif markdown:
        typer.echo(simulated.published_markdown(rows))
    else:
        terminal.print_result(simulated.published_table(rows))
        typer.echo("\n".join(simulated.published_commands(rows)))


def sizes_in(text: str) -> list[int]:
    """ "8,1K", "8..64M" (powers of two, both ends included) or "4K..8K/64" (steps) -> bytes, ascending."""
    found: set[int] = set()
    for word in _words(text):
        ends, steps, step = word.partition("/")
        first, dots, last = ends.partition("..")
        low, high = parse_bytes(first), parse_bytes(last) if dots else parse_bytes(first)
        if high < low:
            raise InputError(f"--sizes {word!r}: the second size is below the first")
        stride = parse_bytes(step) if steps else 0
        if steps and (not dots or stride < 1):
            raise InputError(f"--sizes {word!r}: steps need two sizes, such as 4K..8K/64")
        if steps and (high - low) // stride < MOST_SIZES:
            found.update(range(low, high + 1, stride))
        elif steps:
            raise InputError(f"--sizes {word!r}: more than {MOST_SIZES} sizes")
        else:
            found.update(1 << power for power in range(51) if low <= 1 << power <= high)
        found.update((low, high))
    if not found or len(found) > MOST_SIZES:
        raise InputError(f"--sizes {text!r}: write 1 to {MOST_SIZES} sizes, such as 8,1K,64M or 8..64M")
    return sorted(found)


def _gpus(text: str) -> list[int]:
    words = _words(text)
    if not all(re.fullmatch(r"\d{1,3}", word) for word in words):
        raise InputError(f"--order {text!r}: write the numbers of GPUs, such as 0,3,2,1")
    return [int(word) for word in words]


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]


def _as_json(curve: Any) -> dict[str, Any]:
    points = [{"bytes": size, "seconds": seconds} for size, seconds in curve.points.items()]
    return {
        "setting": curve.setting,
        "operation": curve.operation,
        "points": points,
        "unavailable": curve.unavailable or None,
    }
