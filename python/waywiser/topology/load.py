"""Loads a machine from any source: a file of any format, a machine of the package, a description."""

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

_ENDINGS = (".json", ".xml", ".txt")
NAMES_OR_FILES = "a file is written with a slash or ends in .json, .xml or .txt; machines are"
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
    """A machine that comes with the package, one of `machine_names()`."""
    text = resources.files("waywiser").joinpath("machines").joinpath(f"{name}.json").read_text(encoding="utf-8")
    return _core.Topology.from_json(text, name)


def looks_like_file(text: str) -> bool:
    """Whether a word has the form of a file; any other word is a name, even if a file or folder of that name exists."""
    return "/" in text or text.endswith(_ENDINGS)


def load_topology(source: str | Path) -> _core.Topology:
    """The machine of `source`: a name in the package, a file, or the text of any of the formats.

    A known name comes first; `source` is the text of a file only if it looks like one.
    """
    if isinstance(source, Path):
        return read_topology_file(source)
    if source in machine_names():
        return read_machine(source)
    if "\n" in source or source.lstrip().startswith(("{", "<")) or looks_synthetic(source):
        return read_topology(source, "the description")
    if looks_like_file(source):
        return read_topology_file(source)
    raise InputError(f"{source[:60]!r} is not a machine; {NAMES_OR_FILES} {', '.join(machine_names())}")
