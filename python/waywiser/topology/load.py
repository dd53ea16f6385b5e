"""One door for every way to name a machine: a file of any format, a machine of the package, a description."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from waywiser import _core
from waywiser.errors import InputError
from waywiser.files import read_text
from waywiser.topology.hwloc_library import looks_synthetic, read_synthetic
from waywiser.topology.hwloc_reader import read_hwloc
from waywiser.topology.matrix import looks_like_matrix, read_matrix
from waywiser.topology.nccl_reader import read_nccl

_FORMATS = "our JSON, NCCL XML, hwloc XML, a table of `nvidia-smi topo -m` or an hwloc synthetic description"


def machine_names() -> list[str]:
    """The machines that come with the package, sorted."""
    folder = resources.files("waywiser").joinpath("machines")
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


def read_topology(text: str, what: str) -> _core.Topology:
    """The machine in `text`, whose format is detected; `what` names it in messages.

    Raises InputError or `_core.Error` (invalid input), each with one line.
    """
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith("{"):
        return _core.Topology.from_json(start, what)
    if start.startswith("<"):
        nccl = any(tag in start[:4096] for tag in ("<system", "<graphs"))
        return read_nccl(start, what) if nccl else read_hwloc(start, what)
    if looks_like_matrix(text):
        return read_matrix(text, what)
    if looks_synthetic(start):
        return read_synthetic(start)
    raise InputError(f"{what}: neither {_FORMATS}")


def read_topology_file(path: Path | str) -> _core.Topology:
    """The machine in a file of any of the formats."""
    return read_topology(read_text(path), str(path))


def read_machine(name: str) -> _core.Topology:
    """A machine that comes with the package."""
    names = machine_names()
    if name not in names:
        raise InputError(f"no machine is called {name[:60]!r}; there are {', '.join(names)}")
    text = resources.files("waywiser").joinpath("machines").joinpath(f"{name}.json").read_text(encoding="utf-8")
    return _core.Topology.from_json(text, name)


def load_topology(source: str | Path) -> _core.Topology:
    """The machine that `source` names: a file, a machine of the package, or the text of any of the formats."""
    text = str(source)
    if isinstance(source, Path) or (len(text) < 4096 and "\n" not in text and "\0" not in text and Path(text).exists()):
        return read_topology_file(text)
    if text in machine_names():
        return read_machine(text)
    if "\n" in text or text.lstrip().startswith(("{", "<")) or looks_synthetic(text):
        return read_topology(text, "the description")
    raise InputError(f"{text[:200]!r} is neither a file nor a machine; machines are {', '.join(machine_names())}")
