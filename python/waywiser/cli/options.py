"""Options that several verbs share."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from waywiser.results import DEFAULT, Results, recorded, recorded_machines

Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the results.", show_default=True)
]
Recorded = Annotated[
    str | None, typer.Option("--machine", metavar="NAME|FILE", help="A recorded machine, or one to simulate.")
]
Budget = Annotated[
    float | None, typer.Option("--budget", min=1.0, max=86400.0, metavar="SECONDS", help="Time to spend on measuring.")
]
Mpirun = Annotated[
    Path | None, typer.Option("--mpirun", metavar="PATH", help="Of the Open MPI that jobs use; default: that in PATH.")
]
Costs = Annotated[
    Path | None, typer.Option("--costs", metavar="FILE", help="Of waywiser calibrate, for a simulated machine.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer sizes and samples: under a minute.")]
AcceptSimulated = Annotated[
    bool, typer.Option("--accept-simulated", help="Also settings that are predicted, not measured on such a machine.")
]
Backend = Annotated[str, typer.Option("--backend", metavar="auto|cuda|host|virtual_gpu", help="What to measure.")]


def results_of(folder: Path = DEFAULT, machine: str | None = None) -> Results:
    """The results in `folder`, or those of a machine: recorded ones, else simulated now."""
    if machine is None:
        return Results(folder)
    return recorded(machine) if machine in recorded_machines() else simulated(machine)


def simulated(machine: str) -> Results:
    """Results of a machine that is not here, in a folder that lasts as long as the process."""
    from waywiser.campaign import Request, measure_into

    request = Request(machine=machine)
    topology = request.topology()
    folder = Path(tempfile.mkdtemp(prefix="waywiser-simulated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    results = Results(folder, f"machine {machine}, simulated")
    measure_into(results, topology, request)
    return results
