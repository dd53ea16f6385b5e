"""`waywiser explain SRC DST SIZE`: explains the choice of a path."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from waywiser.cli.options import Recorded, ResultsFolder, results_of
from waywiser.errors import InputError
from waywiser.other_nodes import for_core, is_elsewhere
from waywiser.profile import COLLECTIVES, MESSAGE, OPERATIONS, PREPARED, PUT_MESSAGE, Profile, pair_text
from waywiser.results import DEFAULT, Results, recorded_machines
from waywiser.units import format_bytes, parse_bytes


def explain(
    source: Annotated[str, typer.Argument(metavar="SRC|COLLECTIVE", help="host0, gpu3, ...; all_reduce, ...")] = "",
    destination: Annotated[
        str, typer.Argument(metavar="DST|MEMORY", help="host0, gpu3, other:host0, ...; host, gpu")
    ] = "",
    size: Annotated[str, typer.Argument(metavar="SIZE", help="17, 64K, 2M, 1G")] = "",
    operation: Annotated[
        str, typer.Option(metavar="|".join(OPERATIONS), help="The operation that is timed.")
    ] = "latency",
    processes: Annotated[int, typer.Option(metavar="1|2", min=1, max=2, help="2: each end is in its own process.")] = 1,
    output: ResultsFolder = DEFAULT,
    machine: Recorded = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    binding: Annotated[bool, typer.Option("--binding", help="Show instead how waywiser run binds each rank.")] = False,
    steps: Annotated[
        bool, typer.Option("--steps", help="Show what happens on the way: copies, engines, buses, who works.")
    ] = False,
    rail: Annotated[str, typer.Option(metavar="DEVICE", help="To another node: only over this network device.")] = "",
    ranks: Annotated[
        int | None,
        typer.Option(
            "-n", metavar="N", min=1, max=4096, help="Number of ranks, for a collective (2) or --binding (one per GPU)."
        ),
    ] = None,
) -> None:
    """Show every path from SRC to DST for SIZE bytes: measured and predicted time, and why it was not chosen.

    For a collective, show every timed algorithm: `waywiser explain all_reduce gpu 1M -n 4`. `explain halo` shows what
    halo exchanges have measured, `explain remote HOST:PORT SIZE` the roads of arrays to a server's GPUs.
    """
    from waywiser import stages, terminal
    from waywiser.report.collective_table import collective_answer, collective_table
    from waywiser.report.explanation import explain_table
    from waywiser.report.simulated import print_assumed
    from waywiser.report.steps_table import add_steps, steps_table
    from waywiser.simulator.assumptions import of_profile

    if steps and (binding or source in ("halo", "remote", *COLLECTIVES, MESSAGE, PREPARED, PUT_MESSAGE)):
        raise InputError("--steps shows the way of one transfer: write SRC DST SIZE, such as host0 gpu0 64K")
    if binding:
        return _binding(output, machine, ranks, as_json)
    if source in ("halo", "remote"):
        return _rows(results_of(output, machine), source, destination, size, as_json)
    if not size:
        raise InputError("which transfer? write SRC DST SIZE, such as host0 gpu0 64K, or --binding")
    if operation not in OPERATIONS:
        raise InputError(f"--operation {operation!r}: write one of {', '.join(OPERATIONS)}")
    count = parse_bytes(size)
    if any(map(is_elsewhere, (source, destination))):
        processes = 2
    collective = source in (*COLLECTIVES, MESSAGE, PREPARED, PUT_MESSAGE)
    if collective and machine is not None:
        _check_measured(machine, source)
    results = results_of(output, machine, **_asked(source, destination, operation, processes))
    profile = results.needed_profile()
    if collective:
        ranks = ranks or 2
        answer = collective_answer(results.needed_profile_text(), (source, destination, ranks), count)
        head = f"{source} of {format_bytes(count)}, {ranks} ranks, arrays in {destination} memory on {profile.machine}"
        if as_json:
            typer.echo(json.dumps(answer, indent=1))
        else:
            terminal.print_result(collective_table(answer, head))
        return
    places = [for_core(place, profile.other_nodes) for place in (source, destination)]
    for place in (source, destination):
        if not is_elsewhere(place):
            _check_place(place, profile, results)
    text = results.needed_profile_text()
    answer = stages.explain(
        text, _plan(results, profile, text), places[0], places[1], processes, operation, count, rail
    )
    answer["pair"] = pair_text((source, destination), processes)
    if steps:
        add_steps(answer, results.topology)
    if as_json:
        typer.echo(json.dumps(answer, indent=1))
        return
    if profile.warning():
        terminal.print_result(profile.warning().upper())
    who = "" if processes == 1 or is_elsewhere(destination) else ", two processes"
    head = (
        f"{pair_text((source, destination), processes)}, {format_bytes(count)}, {operation}{who} on {profile.machine}"
    )
    terminal.print_result(explain_table(answer, head))
    if steps:
        terminal.print_result(steps_table(answer))
    print_assumed(of_profile(profile.state) if profile.simulated else [])
    if note := _open_links(results, source, destination):
        terminal.print_result(note)


def _rows(results: Results, what: str, partner: str, size: str, as_json: bool) -> None:
    """Shows rows that programs have added to the plan."""
    from waywiser import terminal
    from waywiser.report.plan_rows import rows_answer, rows_table

    if what == "remote" and not size:
        raise InputError("which arrays? write remote HOST:PORT SIZE")
    if results.plan is None:
        raise InputError(f"{results.name}: no plan.json there")
    answer = rows_answer(results.plan, what, partner, parse_bytes(size) if size else None)
    if as_json:
        typer.echo(json.dumps(answer, indent=1))
    else:
        terminal.print_result(rows_table(answer))


def _check_measured(machine: str, operation: str) -> None:
    """Refuses a machine whose paths would first be simulated: such a profile has no collectives."""
    from waywiser.topology import load_topology

    if machine not in recorded_machines():
        load_topology(machine)  # its own error comes first
        hint = f"; waywiser simulate {operation} --machine {machine}" if operation in COLLECTIVES else ""
        raise InputError(f"{operation} is explained only where it was measured, not for a simulated machine{hint}")


def _asked(source: str, destination: str, operation: str, processes: int) -> dict[str, Any]:
    """What has to be simulated to answer for one transfer."""
    found: dict[str, Any] = {"operations": [operation], "processes": [processes]}
    if operation != "loaded" and not any(map(is_elsewhere, (source, destination))):
        found["places"] = list(dict.fromkeys([source, destination]))
    return found


def _open_links(results: Results, source: str, destination: str) -> str:
    """The note if it is unknown whether NVLinks join two GPUs; else empty."""
    from waywiser import _core

    if results.topology is None or not (source.startswith("gpu") and destination.startswith("gpu")):
        return ""
    machine = _core.Topology.from_json(json.dumps(results.topology), "topology.json")
    if not {source, destination} <= set(machine.ids("gpu")) or machine.gpu_links_known(source, destination):
        return ""
    return f"note: it is unknown whether NVLinks join {source} and {destination}: paths over NVLinks are missing here"


def _binding(output: Path, machine: str | None, ranks: int | None, as_json: bool) -> None:
    """Shows the binding of ranks: to the CPUs that this process may use, or to all CPUs of another machine."""
    from waywiser import _core
    from waywiser.apply.store import kept
    from waywiser.pair_rates import rates_for
    from waywiser.run.running import bindings, setups_json, show_binding
    from waywiser.topology import load_topology

    topology = _core.discover() if machine is None else load_topology(machine)
    allowed = os.sched_getaffinity(0) if machine is None else set(range(1 << 16))
    count = ranks or max(1, len(topology.ids("gpu")))
    rates = rates_for(topology, output, machine)
    setups = bindings(topology, kept(output, topology.fingerprint), count, allowed, rates)
    if as_json:
        typer.echo(setups_json(range(count), setups))
    else:
        show_binding(topology, setups)


def _plan(results: Results, profile: Profile, text: str) -> str:
    """The stored plan if it belongs to the profile, else a new one."""
    from waywiser import stages

    plan = results.plan
    if plan is not None and plan.fingerprint == profile.fingerprint and plan.messages():
        return results.text("plan") or ""
    return stages.choose(text)


def _check_place(place: str, profile: Profile, results: Results) -> None:
    from waywiser.report.matrices import places

    known = list(places(profile))
    devices = (results.topology or {}).get("devices")
    for device in devices if isinstance(devices, list) else []:
        name = device.get("id") if isinstance(device, dict) and device.get("kind") in ("gpu", "host") else None
        if isinstance(name, str) and name not in known:
            known.append(name)
    if place not in known:
        raise InputError(f"{place!r} is not in {profile.machine}: it has {', '.join(known) or 'nothing measured'}")
