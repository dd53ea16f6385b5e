"""Other libraries of `waywiser bench` without a GPU: NVSHMEM with a stand-in, PyTorch's symmetric memory."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from waywiser.bench import nvshmem_kernels, operations, teams
from waywiser.bench.conduct import FROM_KERNEL, Case
from waywiser.bench.nvshmem_kernels import compiled_for_nvshmem
from waywiser.bench.nvshmem_library import InitAttributes, UniqueId, init_attributes, look_for_nvshmem, unique_id
from waywiser.bench.operations import OPERATIONS
from waywiser.bench.symmetric_slots import SymmetricSlots
from waywiser.bench.team import NotOffered, Team, TeamError
from waywiser.cli import bench

pytestmark = pytest.mark.slow
FAKE = Path(__file__).with_name("fake_nvshmem.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    file = tmp_path_factory.mktemp("fake") / "libnvshmem_host.so.3"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(FAKE), "-o", str(file)], check=True)
    return file


@pytest.fixture
def four_gpus(library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAYWISER_LIBCUDA", str(library))
    monkeypatch.setenv("WAYWISER_LIBNVSHMEM", str(library))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where its ranks meet


def setup(folder: Path, ranks: int = 2, backend: str = "cuda") -> teams.Setup:
    return teams.Setup(ranks, backend, 0, folder, folder)


@contextmanager
def nvshmem(folder: Path, ranks: int = 2, module: Path | None = None, **variables: str) -> Iterator[Team]:
    variant = [] if module is None else [str(module)]
    team = teams.python_ranks(setup(folder, ranks), "nvshmem", os.environ | variables, variant=variant)
    try:
        yield team
    finally:
        team.close()


MODES = ("blocking", "stream", "graph")
TIMED = (
    "latency", "multi_latency", "bandwidth", "bidirectional", "message_rate", "barrier", "broadcast", "all_reduce",
    "reduce_scatter", "all_gather", "all_to_all",
)  # fmt: skip


@pytest.mark.parametrize("ranks", [2, 4])
def test_nvshmem_is_timed_and_its_data_checked(four_gpus: None, tmp_path: Path, ranks: int) -> None:
    with nvshmem(tmp_path, ranks) as team:
        assert team.version == "NVSHMEM 3.4.5"
        for name in TIMED:
            for size in (8, 4096, 2 << 20) if name == "all_reduce" else (8, 4096):
                for mode in MODES:  # an odd number of calls: signals must not be mistaken for those of the last launch
                    case = Case(OPERATIONS[name], "gpu", 0 if name == "barrier" else size, mode)
                    times = team.slice(case.request(3, 4, 7), 60)
                    assert len(times) == ranks and all(len(each) == 4 for each in times)


def by_kernel(name: str, size: int) -> Case:
    return Case(OPERATIONS[name], "gpu", size if OPERATIONS[name].sized and name != "barrier" else 0, FROM_KERNEL)


def test_nvshmem_in_kernels_is_timed_and_its_data_checked(four_gpus: None, tmp_path: Path) -> None:
    module = tmp_path / "calls.cubin"
    module.touch()
    with nvshmem(tmp_path, module=module) as team:
        for name in operations.FROM_KERNEL:
            for size in (8, 200_000):
                times = team.slice(by_kernel(name, size).request(3, 4, 7), 60)
                assert len(times) == 2 and all(len(each) == 4 for each in times)
        with pytest.raises(NotOffered, match="not timed from inside a kernel"):
            team.slice(Case(OPERATIONS["latency"], "gpu", 8, FROM_KERNEL).request(2, 2, 1), 60)
    without = tmp_path / "without"
    without.mkdir()
    with nvshmem(without) as team, pytest.raises(NotOffered, match="its kernels are not timed"):
        team.slice(by_kernel("put", 8).request(2, 2, 1), 60)


@pytest.mark.parametrize("name", ["put", "put_message"])
def test_nvshmem_data_of_kernels_that_is_wrong_ends_the_run(four_gpus: None, tmp_path: Path, name: str) -> None:
    wrong = pytest.raises(TeamError, match="what arrived is not what was sent")
    module = tmp_path / "calls.cubin"
    module.touch()
    with nvshmem(tmp_path, module=module, NVSHMEM_FAKE_DAMAGE="1") as team, wrong:
        team.slice(by_kernel(name, 8).request(1, 1, 1), 60)


def test_why_kernels_of_nvshmem_are_not_there(
    four_gpus: None, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib, include = tmp_path / "nvshmem/lib", tmp_path / "nvshmem/include"
    lib.mkdir(parents=True)
    include.mkdir()
    shutil.copy(library, lib / "libnvshmem_host.so.3")
    monkeypatch.setenv("WAYWISER_LIBNVSHMEM", str(lib / "libnvshmem_host.so.3"))
    with pytest.raises(TeamError, match=r"need .*libnvshmem_device\.a, which is not there"):
        compiled_for_nvshmem(tmp_path)
    (lib / "libnvshmem_device.a").touch()
    (include / "nvshmem.h").write_text("#error a made-up header")
    monkeypatch.setattr(nvshmem_kernels, "find_nvcc", lambda: "/nowhere/nvcc")
    with pytest.raises(TeamError, match=r"/nowhere/nvcc cannot compile nvshmem_calls\.cu"):
        compiled_for_nvshmem(tmp_path)
    told: dict[str, str] = {}
    in_kernels = replace(setup(tmp_path), by_kernel=True)
    assert teams.peer_teams(in_kernels, ["nvshmem"], lambda name, why: told.update({name: why})) == {}
    assert "cannot compile" in told["nvshmem"] and "timed as nvshmem" in told["nvshmem+nccl"]


def test_nvshmem_with_nccl_times_its_collectives_alone(four_gpus: None, tmp_path: Path) -> None:
    with nvshmem(tmp_path, NVSHMEM_DISABLE_NCCL="0") as team:
        assert team.version == "NVSHMEM 3.4.5, collectives by NCCL where it takes that"
        assert team.slice(Case(OPERATIONS["all_reduce"], "gpu", 64).request(2, 2, 1), 60)
        with pytest.raises(NotOffered, match="is timed with nvshmem"):
            team.slice(Case(OPERATIONS["latency"], "gpu", 8).request(2, 2, 1), 60)


def test_nvshmem_data_that_is_wrong_ends_the_run(four_gpus: None, tmp_path: Path) -> None:
    wrong = pytest.raises(TeamError, match="what arrived is not what was sent")
    with nvshmem(tmp_path, NVSHMEM_FAKE_DAMAGE="1") as team, wrong:
        team.slice(Case(OPERATIONS["latency"], "gpu", 8).request(1, 1, 1), 60)


def test_what_nvshmem_does_not_offer_is_a_line_and_the_team_goes_on(four_gpus: None, tmp_path: Path) -> None:
    with nvshmem(tmp_path, NVSHMEM_FAKE_NO_CAPTURE="1") as team:
        for name, size, mode, why in (
            ("gather", 8, "stream", "nothing like it"),
            ("reduce", 8, "stream", "nothing like it"),
            ("overlap", 8, "stream", "overlaps by itself"),
            ("reduce_scatter", 1 << 20, "stream", "needs NVSHMEM_REDUCE_SCRATCH_SIZE=4194304"),
            ("latency", 8, "graph", "signals cannot be recorded in a graph"),
        ):
            with pytest.raises(NotOffered, match=why):
                team.slice(Case(OPERATIONS[name], "gpu", size, mode).request(2, 2, 1), 60)
        with pytest.raises(NotOffered, match="gpu memory only"):
            team.slice(Case(OPERATIONS["all_reduce"], "host", 8).request(2, 2, 1), 60)
        assert team.slice(Case(OPERATIONS["latency"], "gpu", 8).request(2, 2, 1), 60)


def test_structures_are_as_the_headers_say() -> None:
    """Sizes, places and versions that a C++ compiler finds in nvshmem_types.h of 3.4.5."""
    assert (ctypes.sizeof(UniqueId), ctypes.sizeof(InitAttributes)) == (128, 144)
    told = init_attributes()
    assert (unique_id().version, told.version, told.arguments.version) == (65664, 65680, 65664)
    assert told.arguments.unique_id.version == 65560
    assert (told.arguments.unique_id.rank, told.arguments.unique_id.size) == (-1, -1)
    assert (InitAttributes.mpi_comm.offset, InitAttributes.arguments.offset) == (8, 16)
    arguments, inside = type(told.arguments), type(told.arguments.unique_id)
    assert (arguments.unique_id.offset, arguments.content.offset) == (8, 32)
    assert (inside.id.offset, inside.rank.offset, inside.size.offset) == (8, 16, 20)


def test_why_there_is_no_nvshmem(four_gpus: None, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look_for_nvshmem().why_not(4) == ""
    assert look_for_nvshmem().why_not(5) == "5 ranks need a GPU each, and there are 4"
    monkeypatch.setenv("WAYWISER_LIBNVSHMEM", "/nowhere/libnvshmem_host.so.3")
    assert look_for_nvshmem().why_not(2).startswith("/nowhere/libnvshmem_host.so.3: cannot open")
    monkeypatch.setenv("WAYWISER_LIBNVSHMEM", "libc.so.6")
    assert look_for_nvshmem().why_not(2) == "libc.so.6 has no nvshmemx_get_uniqueid"
    monkeypatch.setenv("WAYWISER_LIBCUDA", "/nowhere/libcuda.so.1")
    assert "no NVIDIA driver: /nowhere/libcuda" in look_for_nvshmem().why_not(2)


def test_peers_that_are_not_there_are_left_out_with_their_reason(
    four_gpus: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, str] = {}
    names = ("nvshmem", "torch-symmetric")
    assert teams.peer_teams(setup(tmp_path, backend="host"), names, told.__setitem__) == {}
    assert list(told) == ["nvshmem", "nvshmem+nccl", "torch-one-shot", "torch-two-shot"]
    assert all("moves GPU memory only" in why for why in told.values())
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert teams.peer_teams(setup(tmp_path, 5), names, told.__setitem__) == {}
    assert told["nvshmem"] == "5 ranks need a GPU each, and there are 4"
    assert told["torch-one-shot"] == told["torch-two-shot"] == "the Python package torch is not installed"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert teams.peer_teams(setup(tmp_path, 5), names[1:], told.__setitem__) == {}
    assert told["torch-two-shot"] == "5 ranks need a GPU each, and there are 4"


def test_the_command_line_names_the_peers_that_there_are() -> None:
    assert set(bench._PEERS) == set(teams.PEERS)
    page = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    assert {name for name in teams.PEERS if re.search(rf"^\| `{name}` ", page, re.MULTILINE)} == set(teams.PEERS)


def test_symmetric_slots_grow_alike_and_take_turns() -> None:
    freed: list[str] = []
    made: list[int] = []

    def allocate(size: int) -> str:
        made.append(size)
        return f"{len(made)}"

    slots = SymmetricSlots(allocate, freed.append)
    assert [slots.take(size) for size in (0, 8, 1 << 20, 1)] == ["1", "2", "1", "2"]
    assert [slots.take(size) for size in ((1 << 20) + 1, 8, 2 << 20)] == ["3", "2", "3"]
    assert made == [1 << 20, 1 << 20, 2 << 20] and freed == ["1"]
