"""`waywiser simulate WHAT`: times on a machine or a cluster that is not here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from waywiser.errors import InputError
from waywiser.files import write_text_atomically
from waywiser.units import parse_bytes

MOST_SIZES = 256


def simulate(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="latency, bandwidth or bidirectional.")],
    machine: Annotated[str | None, typer.Option(metavar="NAME|FILE", help="Two nodes of this machine.")] = None,
    sizes: Annotated[str, typer.Option(metavar="LIST", help="8,1K,64M; 8..64M: powers of two between.")] = "8..64M",
    vary: Annotated[str, typer.Option(metavar="LIST", help="Some of gdr,gdrcopy,nics: all their settings.")] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="What if: nic=ndr400, gdr=off."),
    ] = None,
    pair: Annotated[str, typer.Option(metavar="SRC>DST", help="Places on the first and last node.")] = "gpu0>gpu0",
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curves into a .png or .svg.")] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Timeline of the largest size, for Perfetto or Chrome.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Predict a transfer on a machine or a cluster that is not here."""
    from waywiser.progress import bar
    from waywiser.report import simulated, terminal
    from waywiser.simulator.sweep import OPERATIONS, best_settings

    if what not in OPERATIONS:
        raise InputError(f"{what!r}: write one of {', '.join(OPERATIONS)}")
    sweep = _sweep(what, machine, sizes, _words(vary), set_ or [], pair)
    sweep.trace = trace is not None
    with bar("simulating") as show:
        curves = sweep.run(show)
    title = f"{what} {pair} between two {sweep.topology.name}"
    if trace is not None:
        write_text_atomically(trace, json.dumps(curves[-1].trace))
    if plot is not None:
        simulated.plot_curves(curves, sweep.sizes, title, plot)
    if as_json:
        best = [{"from": a, "to": b, "setting": curve.setting} for a, b, curve in best_settings(curves, sweep.sizes)]
        typer.echo(json.dumps({"simulated": True, "curves": [_as_json(c) for c in curves], "best": best}, indent=1))
        return
    terminal.print_result(simulated.curves_table(curves, sweep.sizes, title))
    if len(curves) > 1:
        terminal.print_result(simulated.best_table(curves, sweep.sizes, "Best setting by size"))


def _sweep(what: str, machine: str | None, sizes: str, vary: list[str], settings: list[str], pair: str) -> Any:
    from waywiser.simulator.costs import settings_in
    from waywiser.simulator.sweep import VARIED, Sweep
    from waywiser.topology import load_topology

    if machine is None:
        raise InputError("which machine? write --machine NAME, such as hse-e")
    fixed = dict(text.split("=", 1) for text in settings if text.split("=")[0] in VARIED and "=" in text)
    values, port = settings_in([text for text in settings if text.split("=")[0] not in VARIED])
    cluster: dict[str, Any] = {"nodes": 2}
    if port is not None:
        cluster["port_rate"] = port
    source, arrow, destination = pair.partition(">")
    if not arrow:
        raise InputError(f"--pair {pair!r}: write two places, such as gpu0>gpu0")
    topology = load_topology(machine)
    for place in (source, destination):
        if place not in topology.places():
            raise InputError(f"--pair {pair!r}: {place!r} is not in {topology.name}: {', '.join(topology.places())}")
    return Sweep(topology, cluster, what, sizes_in(sizes), vary, fixed, source, destination, values)


def sizes_in(text: str) -> list[int]:
    """ "8,1K" or "8..64M" (powers of two, both ends included) -> bytes, ascending."""
    found: set[int] = set()
    for word in _words(text):
        first, dots, last = word.partition("..")
        low = parse_bytes(first)
        found.add(low)
        if not dots:
            continue
        high = parse_bytes(last)
        if high < low:
            raise InputError(f"--sizes {word!r}: the second size is below the first")
        found.update(1 << power for power in range(51) if low <= 1 << power <= high)
        found.add(high)
    if not found or len(found) > MOST_SIZES:
        raise InputError(f"--sizes {text!r}: write 1 to {MOST_SIZES} sizes, such as 8,1K,64M or 8..64M")
    return sorted(found)


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
