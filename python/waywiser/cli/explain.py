"""`waywiser explain SRC DST SIZE`: explains the choice of a path."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import Recorded, ResultsFolder
from waywiser.errors import InputError
from waywiser.other_nodes import for_core, is_elsewhere
from waywiser.profile import COLLECTIVES, MESSAGE, OPERATIONS, PREPARED, PUT_MESSAGE, pair_text
from waywiser.results import DEFAULT, Results
from waywiser.units import format_bytes, parse_bytes

if TYPE_CHECKING:
    from waywiser.report.halo_rows import HaloQuestion

_ROWS = ("halo", "remote", "read", "write")  # of which the plan has rows that are added apart
_SHUFFLE_NOTE = "Each piece of a table goes as such a message, between each pair of ranks by the group's own choice."
_PUT_NOTE = (
    "LL128 needs GPUs that are all joined by NVLink; bulk needs compute capability 9.0 and shared memory that the "
    "block has to spare: else stores. A put without a message: by stores, or bulk where that is taken here."
)


def explain(
    source: Annotated[
        str, typer.Argument(metavar="SRC|OPERATION", help="host0, gpu3, ...; all_reduce, ..., put, halo, remote, read")
    ] = "",
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
    caller: Annotated[str, typer.Option("--from", metavar="host|kernel", help="kernel: put SIZE of a block.")] = "host",
    shape: Annotated[str, typer.Option(metavar="LIST", help="halo: cells of the whole grid, 512x512x512.")] = "",
    fields: Annotated[
        str, typer.Option(metavar="LIST", help="halo: types; float32:3: 3 components, 3:float32: they come first.")
    ] = "",
    ghost: Annotated[str, typer.Option(metavar="LIST", help="halo: width of ghosts, of all or each dimension.")] = "1",
    periodic: Annotated[str, typer.Option(metavar="LIST", help="halo: 0 or 1, of all or each dimension.")] = "0",
    parts: Annotated[str, typer.Option(metavar="LIST", help="halo: boxes in each dimension, 2x1x1.")] = "",
    memory: Annotated[str, typer.Option(metavar="host|gpu", help="halo: where the fields are.")] = "host",
    rail: Annotated[str, typer.Option(metavar="DEVICE", help="To another node: only over this network device.")] = "",
    ranks: Annotated[
        int | None,
        typer.Option(
            "-n", metavar="N", min=1, max=4096, help="Number of ranks, for a collective (2) or --binding (one per GPU)."
        ),
    ] = None,
) -> None:
    """Show every path from SRC to DST for SIZE bytes: measured and predicted time, and why it was not chosen.

    For a collective, show every timed algorithm: `waywiser explain all_reduce gpu 1M -n 4`; `explain put SIZE --from
    kernel` shows the protocols of a kernel's message. `explain halo` shows what halo exchanges have measured, with
    --shape and --fields one exchange and its estimate, `explain remote HOST:PORT SIZE` the roads to a server's GPUs,
    `explain read FILE SIZE` and `explain write FILE SIZE` the ways to a file, `explain shuffle` those of a piece of a
    table between two ranks of this machine.
    """
    from waywiser import stages, terminal
    from waywiser.report.collective_table import collective_answer, collective_table
    from waywiser.report.explanation import explain_table
    from waywiser.report.halo_rows import halo_question
    from waywiser.report.simulated import print_assumed
    from waywiser.report.steps_table import add_steps, steps_table
    from waywiser.report.transfer_question import check_place, links_note, needed_for, plan_of, refuse_unmeasured
    from waywiser.simulator.assumptions import of_profile
    from waywiser.tune.machine_results import results_of

    of_shuffle = source == "shuffle"
    source, destination, size = _asked_of(caller, source, destination, size)
    if steps and (
        binding or source in ("halo", "remote", "read", "write", *COLLECTIVES, MESSAGE, PREPARED, PUT_MESSAGE)
    ):
        raise InputError("--steps shows the way of one transfer: write SRC DST SIZE, such as host0 gpu0 64K")
    if binding:
        return _binding(output, machine, ranks, as_json)
    if shape or fields or parts or (ghost, periodic, memory) != ("1", "0", "host"):
        if source != "halo" or not (shape and fields):
            raise InputError("of one halo exchange: write halo --shape LIST --fields LIST, and then more of it")
        asked = halo_question(shape, fields, ghost, periodic, parts, memory, ranks or 2)
        return _halo(output, machine, asked, as_json)
    if source in _ROWS:
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
        refuse_unmeasured(machine, source)
    results = results_of(output, machine, **needed_for(source, destination, operation, processes))
    profile = results.needed_profile()
    if collective:
        ranks = ranks or 2
        answer = collective_answer(results.needed_profile_text(), (source, destination, ranks), count)
        what = f"{ranks} ranks, arrays in {destination} memory"
        if source == PUT_MESSAGE:
            what, answer["notes"] = "from a block of a kernel to another GPU", [_PUT_NOTE]
        if of_shuffle:
            answer["notes"] = [_SHUFFLE_NOTE]
        answer["backend"] = profile.backend
        head = f"{source} of {format_bytes(count)}, {what} on {profile.machine}"
        if as_json:
            typer.echo(json.dumps(answer, indent=1))
        else:
            if profile.warning():
                terminal.print_result(profile.warning().upper())
            terminal.print_result(collective_table(answer, head))
        return
    places = [for_core(place, profile.other_nodes) for place in (source, destination)]
    for place in (source, destination):
        if not is_elsewhere(place):
            check_place(place, profile, results)
    text = results.needed_profile_text()
    answer = stages.explain(
        text, plan_of(results, profile, text), places[0], places[1], processes, operation, count, rail
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
    if note := links_note(results, source, destination):
        terminal.print_result(note)


def _halo(output: Path, machine: str | None, asked: HaloQuestion, as_json: bool) -> None:
    """Shows one halo exchange: its row, and the estimate."""
    from waywiser import terminal
    from waywiser.report.halo_rows import halo_answer, halo_table
    from waywiser.tune.machine_results import results_of

    places = ["host0", "gpu0", "gpu1"] if asked.memory == "gpu" else ["host0"]
    results = results_of(output, machine, operations=["latency"], processes=[1, 2], places=places)
    devices = (results.topology or {}).get("devices")
    gpus = sum(1 for each in devices if each.get("kind") == "gpu") if isinstance(devices, list) else 0
    answer = halo_answer(asked, results.plan, results.profile, gpus)
    if as_json:
        typer.echo(json.dumps(answer, indent=1))
        return
    cells, parts = ("x".join(map(str, each)) for each in (asked.shape, asked.parts))
    known = results.plan or results.needed_profile()
    head = f"halo exchange of {cells} cells, {asked.ranks} ranks ({parts}), {asked.memory} memory on {known.machine}"
    terminal.print_result(halo_table(answer, head, results.profile.warning() if results.profile else ""))


def _asked_of(caller: str, source: str, destination: str, size: str) -> tuple[str, str, str]:
    """What is asked of a caller: of a kernel the messages that a block puts; a shuffle's pieces are messages."""
    if caller not in ("host", "kernel"):
        raise InputError(f"--from {caller!r}: write host or kernel")
    if source == "shuffle":
        from waywiser.table.shuffle import PIECE

        if destination not in ("", "host") or caller == "kernel":
            raise InputError("explain shuffle [host [SIZE]]: pieces between GPUs are explained by gpu0 gpu1 SIZE")
        return MESSAGE, "host", size or str(PIECE)
    if caller == "host":
        if source == "put":
            raise InputError("only puts of kernels have protocols to choose from: write put SIZE --from kernel")
        return source, destination, size
    if source not in ("put", PUT_MESSAGE) or (size and destination != "gpu"):
        raise InputError("--from kernel: only puts have protocols to choose from: write put SIZE --from kernel")
    return PUT_MESSAGE, "gpu", size or destination


def _rows(results: Results, what: str, partner: str, size: str, as_json: bool) -> None:
    """Shows rows that programs have added to the plan."""
    from waywiser import terminal
    from waywiser.report.plan_rows import rows_answer, rows_table

    if what != "halo" and not size:
        raise InputError(f"which arrays? write {what} {'HOST:PORT' if what == 'remote' else 'FILE'} SIZE")
    if results.plan is None:
        raise InputError(f"{results.name}: no plan.json there")
    if what in ("read", "write") and results.plan.simulated:
        from waywiser.tune.storage_simulated import partner_of

        partner = partner_of(partner)
    elif what in ("read", "write"):
        from waywiser.tune.storage_tuning import storage_of_path

        partner = storage_of_path(Path(partner))
    answer = rows_answer(results.plan, what, partner, parse_bytes(size) if size else None)
    if as_json:
        typer.echo(json.dumps(answer, indent=1))
    else:
        terminal.print_result(rows_table(answer))


def _binding(output: Path, machine: str | None, ranks: int | None, as_json: bool) -> None:
    """Shows the binding of ranks: to the CPUs that this process may use, or to all CPUs of another machine."""
    from waywiser import _core
    from waywiser.apply.store import kept
    from waywiser.pair_rates import rates_for
    from waywiser.run.setups import bindings, setups_json, show_binding
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
