"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.errors import InputError

if TYPE_CHECKING:
    from waywiser.simulator.cluster import Cluster

ResultsFolder = Annotated[
    Path,
    typer.Option("--results", "-r", envvar="WAYWISER_RESULTS", metavar="DIR", help="Folder of the results."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Recorded = Annotated[
    str | None, typer.Option("--machine", metavar="NAME|FILE", help="A recorded machine, or one to simulate.")
]
Budget = Annotated[
    float | None, typer.Option("--budget", min=1.0, max=86400.0, metavar="SECONDS", help="Time to spend on measuring.")
]
Mpirun = Annotated[
    Path | None,
    typer.Option("--mpirun", metavar="PATH", help="mpirun of the Open MPI that jobs use; default: in PATH."),
]
Costs = Annotated[
    Path | None, typer.Option("--costs", metavar="FILE", help="Costs from waywiser calibrate, for a simulated machine.")
]
For = Annotated[
    str,
    typer.Option(
        "--for",
        metavar="LIST",
        help="One or more of ucx,openmpi,mpich,nccl; between nodes latency, bandwidth or mixed.",
    ),
]
Nodes = Annotated[int, typer.Option(metavar="N", help="Also simulate the paths between this many nodes.")]
ClusterFile = Annotated[
    Path | None, typer.Option("--cluster", metavar="FILE", help="Simulate the nodes of a cluster file, of any types.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer sizes and samples: under a minute.")]
AcceptSimulated = Annotated[
    bool,
    typer.Option("--accept-simulated", help="Also use settings that are predicted, not measured on such a machine."),
]
Backend = Annotated[
    str, typer.Option("--backend", metavar="auto|cuda|host|virtual_gpu", help="The devices to measure.")
]


def cluster_of(machine: str | None, nodes: int, file: Path | None) -> Cluster | None:
    """The cluster of `--machine`, `--nodes` and `--cluster`; None for a single machine. Raises InputError."""
    from waywiser.simulator.cluster import Cluster
    from waywiser.simulator.cluster_file import read_cluster
    from waywiser.simulator.cluster_words import MOST_NODES

    if not 1 <= nodes <= MOST_NODES:
        raise InputError(f"--nodes {nodes}: a cluster has 1 to {MOST_NODES} nodes")
    if file is not None and (machine is not None or nodes > 1):
        raise InputError("--cluster already lists the nodes: leave out --machine and --nodes")
    if nodes > 1 and machine is None:
        raise InputError("--nodes is for a simulated machine: write --machine NAME too")
    if file is not None:
        return read_cluster(file)
    return Cluster(str(machine), {"nodes": nodes}) if nodes > 1 else None
