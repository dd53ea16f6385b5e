"""What the package reads from files of others: each target takes the bytes of a file.

It is read, or refused by the package's own error in one line; anything else is a defect.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from waywiser import _core
from waywiser.errors import InputError
from waywiser.files import read_bytes
from waywiser.plan import read_plan
from waywiser.prove.savings import read_jobs
from waywiser.results import load_profile
from waywiser.run.hosts import read_hosts
from waywiser.simulator.cluster_file import read_cluster
from waywiser.topology.load import read_topology_file

_LONGEST_REFUSAL = 1500


@contextlib.contextmanager
def _file(data: bytes) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(dir="/dev/shm", prefix="waywiser-fuzz-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield Path(name)
    finally:
        Path(name).unlink()


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (InputError, _core.Error) as error:
        words = str(error)
        assert getattr(error, "kind", "invalid input") == "invalid input", words
        assert words.isprintable() and 0 < len(words) < _LONGEST_REFUSAL, words


def foreign_topology(data: bytes) -> None:
    """NCCL's XML, hwloc's XML, a matrix of nvidia-smi."""
    if data.lstrip().startswith(b"{"):
        return  # ours: topology_json
    with _file(data) as file, _refusals():
        machine = read_topology_file(file)
        again = _core.Topology.from_json(machine.to_json())
        assert again.fingerprint == machine.fingerprint
        if len(again.places()) <= 64:
            machine.matrix()


def _hosts(file: Path) -> None:
    assert all(host.slots > 0 for host in read_hosts(file))


def _jobs(file: Path) -> None:
    read_jobs(read_bytes(file).decode("utf-8", "replace"), str(file))


def _profile(file: Path) -> None:
    load_profile(file)


def _plan(file: Path) -> None:
    read_plan(read_bytes(file), str(file))


_READERS: tuple[Callable[[Path], object], ...] = (_hosts, read_cluster, _jobs, _profile, _plan)


def job_files(data: bytes) -> None:
    """The first byte says which: a list of hosts, a cluster, a table of jobs, a profile, a plan."""
    if data:
        with _file(data[1:]) as file, _refusals():
            _READERS[data[0] % len(_READERS)](file)


TARGETS: dict[str, Callable[[bytes], None]] = {"foreign_topology": foreign_topology, "job_files": job_files}
