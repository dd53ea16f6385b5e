"""The options `--from` and `--machine` of all verbs that examine a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology.load import load_topology, machine_names, read_topology, read_topology_file

FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="A description instead of this machine: our JSON, NCCL or hwloc XML, `nvidia-smi topo -m`, "
        "or an hwloc synthetic string. - is stdin.",
    ),
]
MachineOption = Annotated[
    str | None,
    typer.Option("--machine", metavar="NAME|FILE", help="A machine of the package, like dgx-1v, or its description."),
]


def chosen_topology(from_: str | None, machine: str | None) -> _core.Topology:
    """The machine of the two options, else this machine. Raises InputError or `_core.Error`."""
    if from_ and machine:
        raise InputError("give --from or --machine, not both")
    if machine:
        return load_topology(machine)
    if not from_:
        return _core.discover()
    if from_ == "-":
        return read_topology(_stdin(), "stdin")
    if not Path(from_).exists() and ":" in from_ and "/" not in from_:
        return read_topology(from_, "--from")
    if from_ in machine_names() and not Path(from_).is_file():
        raise InputError(f"--from {from_}: there is no such file; the machine of that name is --machine {from_}")
    return read_topology_file(from_)


def _stdin() -> str:
    import sys

    try:
        return sys.stdin.buffer.read(32 << 20).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"stdin: not text in UTF-8 (byte {error.start})") from None
