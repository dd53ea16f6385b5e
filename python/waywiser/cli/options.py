"""Options that several verbs share."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waywiser.errors import InputError
from waywiser.results import DEFAULT, Results, recorded, recorded_machines

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


def results_of(folder: Path = DEFAULT, machine: str | None = None, for_settings: bool = False, **only: Any) -> Results:
    """The results in `folder`, or those of a machine: recorded ones, else what `tune` has simulated in `folder`, else
    simulated now: all paths, those that settings are chosen by (`for_settings`), or `only` those of some operations,
    places or numbers of processes (as in Request)."""
    if machine is None:
        return Results(folder)
    if machine in recorded_machines():
        return recorded(machine)
    return _tuned(folder, machine) or simulated(machine, for_settings=for_settings, **only)


def _tuned(folder: Path, machine: str, nodes: Sequence[str] = ()) -> Results | None:
    """Simulated results in `folder` of the same machine, with paths to nodes of these types; None if there are none."""
    from waywiser.topology.load import load_topology

    results = Results(folder, f"machine {machine}, simulated in {folder}")
    try:
        profile = results.profile
    except InputError:  # the folder may hold another machine
        return None
    if profile is None:
        return None
    wanted = {load_topology(one).fingerprint for one in nodes}
    same = profile.simulated and profile.fingerprint == load_topology(machine).fingerprint
    return results if same and profile.other_nodes and wanted <= set(profile.other_nodes) else None


def node_results(folder: Path, cluster: Cluster) -> dict[str, Results]:
    """The results of each type of node, as `tune --cluster` has left them in `folder`, else simulated now as far as
    settings are chosen by them."""
    found = {}
    for name in cluster.machines:
        types = cluster.types_reached(name)
        at = folder / Path(name).stem if cluster.others else folder
        found[name] = _tuned(at, name, types) or simulated(name, cluster.beginning_with(name), for_settings=True)
    return found


def cluster_of(machine: str | None, nodes: int, file: Path | None) -> Cluster | None:
    """The cluster of `--machine`, `--nodes` and `--cluster`; None for a single machine. Raises InputError."""
    from waywiser.simulator.cluster import MOST_NODES, Cluster, read_cluster

    if not 1 <= nodes <= MOST_NODES:
        raise InputError(f"--nodes {nodes}: a cluster has 1 to {MOST_NODES} nodes")
    if file is not None and (machine is not None or nodes > 1):
        raise InputError("--cluster already lists the nodes: leave out --machine and --nodes")
    if nodes > 1 and machine is None:
        raise InputError("--nodes is for a simulated machine: write --machine NAME too")
    if file is not None:
        return read_cluster(file)
    return Cluster(str(machine), {"nodes": nodes}) if nodes > 1 else None


def simulated(machine: str, cluster: Cluster | None = None, for_settings: bool = False, **only: Any) -> Results:
    """Simulated results of another machine, in a folder that exists as long as the process.

    They include paths to the other nodes of `cluster`; without a cluster to a second node of its type, if it has NICs.
    """
    from waywiser.apply.node_switches import OPERATIONS, SIZES
    from waywiser.tune.campaign import Request, measure_into

    request = Request(machine=machine, **only)
    if for_settings:
        request.operations, request.max_bytes = list(OPERATIONS), SIZES[-1]
    topology = request.topology()
    request.cluster = None if request.places else cluster or pair_of_nodes(machine, topology)
    folder = Path(tempfile.mkdtemp(prefix="waywiser-simulated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    results = Results(folder, f"machine {machine}, simulated")
    measure_into(results, topology, request)
    return results


def pair_of_nodes(machine: str, topology: Any) -> Cluster | None:
    """Two nodes of a machine; None if it has no NIC with a known rate."""
    from waywiser.simulator.cluster import Cluster

    ports = [link for link in topology.links if link.kind == "network" and (link.achievable or link.nominal)]
    return Cluster(machine, {"nodes": 2}) if ports else None
