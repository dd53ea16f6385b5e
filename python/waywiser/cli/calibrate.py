"""`waywiser calibrate PROFILE`: fits the simulator's costs of a machine to its measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from waywiser.errors import InputError
from waywiser.files import write_text_atomically
from waywiser.results import measured_at


def calibrate(
    profile: Annotated[
        str, typer.Argument(metavar="PROFILE", help="A profile, a folder of results, or a recorded machine.")
    ],
    machine: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Its topology; default: the one beside the profile.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the costs.")] = Path(
        "costs.json"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the errors as JSON.")] = False,
) -> None:
    """Fit the simulator's costs to a measured profile; fitted on every second size, tested on the others."""
    from waywiser import _core, terminal
    from waywiser.progress import bar
    from waywiser.report.simulated import errors_table, kinds_table
    from waywiser.simulator.calibration import calibrate as run
    from waywiser.topology import load_topology

    beside, measured = measured_at(profile)
    if measured.warning():
        raise InputError(f"{profile}: {measured.warning()}: it cannot be used for calibration")
    if machine is not None:
        topology = load_topology(machine)
    elif beside.topology is not None:
        topology = _core.Topology.from_json(json.dumps(beside.topology), "topology.json")
    else:
        raise InputError(f"{profile}: no topology.json beside it: name the machine with --machine")
    if topology.fingerprint != measured.fingerprint:
        raise InputError(f"{profile}: measured on another machine ({measured.machine}) than {topology.name}")
    with bar("calibrating") as show:
        found = run(topology, measured, show)
    write_text_atomically(output, found.text())
    if as_json:
        typer.echo(
            json.dumps(
                {"machine": found.machine, "errors": found.errors, "kinds": found.kinds, "costs": str(output)}, indent=1
            )
        )
        return
    terminal.print_result(errors_table(found.errors, found.machine))
    terminal.print_result(kinds_table(found.kinds))
    typer.echo(f"costs written to {output}; use them with: waywiser measure --machine ... --costs {output}")
