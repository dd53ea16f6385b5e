"""`waywiser place`: finds the GPUs to request from a scheduler."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from waywiser import _core
from waywiser.cli.options import ResultsFolder
from waywiser.results import DEFAULT
from waywiser.topology.choose import FromOption, MachineOption, chosen_topology
from waywiser.topology.gpu_models import is_amd


def place(
    gpus: Annotated[int, typer.Option("--gpus", "-k", metavar="K", min=1, help="Number of GPUs.")],
    nics: Annotated[
        bool, typer.Option("--nics", help="Also take GPUs close to NICs, and name the NIC of each.")
    ] = False,
    from_: FromOption = None,
    machine: MachineOption = None,
    output: ResultsFolder = DEFAULT,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find the K best-connected GPUs, explain the choice, and print the lines that request them.

    Pairs that `tune` has measured count with their measured rates; pairs slower than similar pairs are listed.
    """
    from waywiser.pair_rates import rates_for

    topology = chosen_topology(from_, machine)
    placement = topology.place(gpus, nics, rates_for(topology, output, machine))
    if as_json:
        print(json.dumps(_as_dict(topology, placement), indent=1))
        return
    _print(topology, placement)


def _as_dict(topology: _core.Topology, placement: _core.Placement) -> dict[str, object]:
    chosen = [
        {"gpu": g.gpu, "index": g.index, "numa": g.numa, "cores": g.cores, "nic": g.nic, "nic_relation": g.nic_relation}
        for g in placement.gpus
    ]
    return {
        "machine": topology.name,
        "fingerprint": topology.fingerprint,
        "gpus": chosen,
        "exact": placement.exact,
        "pairs_without_nvlink": placement.pairs_without_nvlink,
        "pairs_unknown": placement.pairs_unknown,
        "odd_pairs": [{"a": o.a, "b": o.b, "rate": o.rate, "typical": o.typical} for o in placement.odd],
        "slowest_pair": placement.slowest_pair,
        "all_pairs": placement.all_pairs,
        "why": placement.why,
        "cuda_visible_devices": placement.cuda_visible_devices,
        "cores": placement.cores,
        "gres_conf": placement.gres_conf,
        "notes": list(topology.notes),
    }


def _print(topology: _core.Topology, placement: _core.Placement) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    names = ", ".join(gpu.gpu for gpu in placement.gpus)
    console.print(f"[bold]{names}[/bold] of {topology.name}", markup=True)
    for line in placement.why:
        console.print(f"  {line}", markup=False)
    with_nics = any(gpu.nic for gpu in placement.gpus)
    table = Table(box=None, pad_edge=False)
    for head in ("GPU", "NUMA", "cores", *(("NIC", "relation") if with_nics else ())):
        table.add_column(head)
    for gpu in placement.gpus:
        nic = (f"{gpu.nic} {topology.device(gpu.nic).name}", gpu.nic_relation) if gpu.nic else ("-", "")
        table.add_row(gpu.gpu, str(gpu.numa), gpu.cores or "unknown", *(nic if with_nics else ()))
    console.print(table)
    console.print(f"\n{_export(topology, placement)}", markup=False)
    console.print("\n# gres.conf of this node type: with it Slurm itself prefers GPUs with many links", markup=False)
    for line in placement.gres_conf:
        console.print(line, markup=False)
    if topology.notes:
        console.print()
    for note in topology.notes:
        console.print(f"note: {note}", markup=False, style="dim")


def _export(topology: _core.Topology, placement: _core.Placement) -> str:
    if is_amd(topology.device(placement.gpus[0].gpu).attributes):
        return f"export HIP_VISIBLE_DEVICES={placement.cuda_visible_devices}"
    return f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={placement.cuda_visible_devices}"
