"""Groups of ranks that MPI or torch.distributed has started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import EXAMPLES, HAS_MPI4PY, HAS_TORCH, MPIRUN, ROOT, TORCHRUN, run, runtime_folder, with_options

import waywiser as ww
from waywiser.errors import InputError
from waywiser.group import joining

__all__ = ["runtime_folder"]


class MadeStore:
    """A store of threads of one process."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: str) -> None:
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def get(self, key: str) -> bytes:
        with self.changed:
            assert self.changed.wait_for(lambda: key in self.values, 60)
            return self.values[key].encode()

    def add(self, key: str, amount: int) -> int:
        with self.changed:
            self.values[key] = str(int(self.values.get(key, "0")) + amount)
            return int(self.values[key])


def in_threads(size: int, store: MadeStore, **options: str) -> list[str]:
    """Each rank's result or error."""
    results = [""] * size

    def rank_main(rank: int) -> None:
        try:
            with ww.from_torch(store, rank, size, 30, **options) as group:
                total = group.all_reduce(np.array([group.rank]))[0]
                results[rank] = f"{group.rank} of {group.size}: {total}"
        except Exception as error:
            results[rank] = str(error)

    threads = [threading.Thread(target=rank_main, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    return results


def test_ranks_meet_through_a_store_again_and_again() -> None:
    store = MadeStore()
    for _ in range(2):
        assert in_threads(3, store) == ["0 of 3: 3", "1 of 3: 3", "2 of 3: 3"]
    assert in_threads(1, store) == ["0 of 1: 0"]


def test_when_rank_0_cannot_begin_the_others_hear_why() -> None:
    errors = in_threads(2, MadeStore(), root="192.0.2.7")  # an unused address
    assert "192.0.2.7" in errors[0]
    assert errors[1].startswith("rank 0: ") and "192.0.2.7" in errors[1]
    with pytest.raises(InputError, match="rank 3 of 2: ranks are 0 to 1"):
        ww.from_torch(MadeStore(), 3, 2)


def test_all_hear_what_keeps_a_rank_out_once_it_has_met_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
        import os, waywiser

        if os.environ["WAYWISER_RANK"] == "1":
            os.environ["WAYWISER_FAULT"] = "nonsense"
        try:
            waywiser.join()
        except Exception as error:
            print(error, flush=True)
    """
    monkeypatch.setenv("WAYWISER_BRANCHES", "1")
    _, lines, errors = run(4, code, program="")
    why = "WAYWISER_FAULT='nonsense' is not STEP:WHAT:TIMES"
    assert sorted(lines) == [why, *["rank 1: " + why] * 3], errors


def test_the_address_of_rank_0() -> None:
    here, there = ("boot", "net:[1]"), ("boot", "net:[2]")
    assert joining._address_for([(here, "a"), (here, "a")]) == "127.0.0.1"
    with pytest.raises(InputError, match="loopback address here: give root="):
        joining._address_for([(here, "a"), (there, "localhost")])
    with pytest.raises(InputError, match=r"no way to no-such-host\.invalid"):
        joining._address_for([(here, "a"), (there, "no-such-host.invalid")])


def finished(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)


@pytest.mark.skipif(not (HAS_MPI4PY and MPIRUN), reason="mpi4py or mpirun is missing")
def test_from_mpi4py(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from mpi4py import MPI\nimport numpy as np, waywiser as ww\n"
        "world = MPI.COMM_WORLD\n"
        "for comm in (world, world.Split(world.rank % 2)):\n"
        "    group = ww.from_mpi4py(comm)\n"
        "    assert (group.rank, group.size) == (comm.rank, comm.size)\n"
        "    for count in (3, 100000):\n"
        "        mine = np.full(count, world.rank + 1.0)\n"
        "        assert (group.all_reduce(mine) == comm.allreduce(world.rank + 1.0)).all()\n"
        "    group.close()\n"
        "print('rank', world.rank, 'is through', flush=True)\n"
    )
    done = finished([*MPIRUN, "-n", "3", sys.executable, program])
    assert done.returncode == 0, done.stderr
    assert "UCP API version" not in done.stdout + done.stderr  # MPI may have loaded an older UCX than our headers
    said = [line for line in done.stdout.splitlines() if line.startswith("rank ")]  # UCX may warn there of other things
    assert sorted(said) == [f"rank {rank} is through" for rank in range(3)]


IN_C = ["mpicc", "-std=c99", "-Wall", "-Wextra", "-Werror", ROOT / "tests/consumers/mpi/main.c"]
# MPI's own bindings of C++ give warnings where its header is not one of the system.
IN_CPP = [
    "mpicxx",
    "-DOMPI_SKIP_MPICXX",
    "-DMPICH_SKIP_MPICXX",
    "-std=c++20",
    "-Wall",
    "-Wextra",
    "-Werror",
    ROOT / "tests/consumers/mpi/main.cpp",
]
IN_FORTRAN = ["mpifort", ROOT / "build/package/waywiser.f90", ROOT / "tests/consumers/mpi/main.f90"]


@pytest.mark.parametrize(
    ("compiles", "said"),
    [(IN_C, "two groups"), (IN_CPP, "two groups"), (IN_FORTRAN, "a group")],
    ids=["c", "c++", "fortran"],
)
def test_a_program_joins_from_mpi(compiles: list[str | Path], said: str, tmp_path: Path) -> None:
    """Over the headers alone: the library is linked without MPI."""
    library = ROOT / "build/libwaywiser.so"
    mpirun = Path(shutil.which(compiles[0]) or "none").with_name("mpirun")  # that of PATH may be of another MPI
    if not mpirun.is_absolute() or not mpirun.exists():
        pytest.skip(f"mpirun or {compiles[0]} is missing")
    if not library.exists():
        pytest.skip("the library is not built here")
    program = tmp_path / "program"
    flags = [f"-I{ROOT / 'src'}", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-lwaywiser"]
    made = subprocess.run([*compiles, *flags, "-o", program], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert made.returncode == 0, made.stderr
    done = finished([*with_options(str(mpirun)), "-n", "3", program])
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("rank ")]
    assert sorted(lines) == [f"rank {rank}: {said}" for rank in range(3)]


def test_from_a_unique_id() -> None:
    code = """
    import os, pathlib, sys, time
    place, rank = pathlib.Path(os.environ["PLACE"]), int(sys.argv[1])
    if rank == 0:
        place.with_suffix(".new").write_bytes(ww.unique_id(os.environ["TOWARDS"]))
        place.with_suffix(".new").rename(place)
    while not place.exists():
        time.sleep(0.01)
    with ww.from_unique_id(place.read_bytes(), rank, 2, timeout=50) as group:
        print(group.all_reduce(rank + 1), group.rank, flush=True)
    """
    for towards in ("", "127.0.0.1"):
        with tempfile.TemporaryDirectory() as folder:
            variables = os.environ | {"PLACE": f"{folder}/id", "TOWARDS": towards}
            program = "import waywiser as ww\n" + textwrap.dedent(code)
            ranks = [
                subprocess.Popen(
                    [sys.executable, "-c", program, str(rank)], env=variables, stdout=subprocess.PIPE, text=True
                )
                for rank in (1, 0)
            ]
            assert [rank.communicate(timeout=100)[0] for rank in ranks] == ["3 1\n", "3 0\n"]


def test_a_unique_id_that_is_none() -> None:
    with pytest.raises(ww.InputError, match="a unique id has 128 bytes, not 3"):
        ww.from_unique_id(b"abc", 0, 1)
    with pytest.raises(ww.InputError, match="these bytes are no unique id"):
        ww.from_unique_id(bytes(128), 0, 1)
    with pytest.raises(ww.InputError, match="rank 2 of 2: ranks are 0 to size - 1"):
        ww.from_unique_id(ww.unique_id(), 2, 2)


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
def test_from_the_store_of_torchrun(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, torch, torch.distributed as dist, waywiser as ww\n"
        "store, rank, size = next(dist.rendezvous('env://'))\n"
        "with ww.from_torch(store, rank, size) as group:\n"
        "    total = group.all_reduce(torch.full((4,), rank + 1))\n"
        "    os.write(1, f'rank {rank}: {total.tolist()}\\n'.encode())\n"  # at once: torchrun's Python does not buffer
    )
    done = finished([*TORCHRUN, "--nproc-per-node", "2", program])
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0: [3, 3, 3, 3]", "rank 1: [3, 3, 3, 3]"]


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
def test_started_by_torchrun() -> None:
    done = finished([*TORCHRUN, "--nproc-per-node", "2", EXAMPLES / "01_hello.py"])
    assert done.returncode == 0, done.stderr
    # Python is unbuffered there: a line and its end are written apart.
    lines = re.findall(r"rank \d of 2: hello from rank \d", done.stdout)
    assert sorted(lines) == ["rank 0 of 2: hello from rank 1", "rank 1 of 2: hello from rank 0"]
