"""`waywiser run`, srun, Open MPI, MPICH and torchrun start the same job: for each the cores of its ranks, its exit
codes, and how long the others need to hear of a rank that is killed. docs/groups.md has the same table.

`WAYWISER_LAUNCHER_RUNS=5 pytest -s tests/python/launchers_test.py` prints it, with the middle of 5 runs.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from one_slurm import OneSlurm, slurm
from rank_jobs import COMMAND, HAS_TORCH, MPIRUN, PROGRAM, ROOT

__all__ = ["slurm"]
pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "groups.md"
RUNS = int(os.environ.get("WAYWISER_LAUNCHER_RUNS", "1"))
# Rank 1 ends with a code of its own, or is killed, while rank 0 waits for it. Rank 0 writes to a file, and does not let
# its launcher end it first.
ENDS = """
import time
from pathlib import Path
for one in (signal.SIGTERM, signal.SIGCONT, signal.SIGUSR1): signal.signal(one, signal.SIG_IGN)
how, kept = sys.argv[1], Path(sys.argv[2])
print(f"rank {group.rank} of {group.size}, cores", *sorted(os.sched_getaffinity(0)), flush=True)
group.barrier()
if group.rank == 1:
    (kept / "ended").write_text(str(time.time()))
    sys.exit(7) if how == "code" else os.kill(os.getpid(), signal.SIGKILL)
try: group.barrier()
except ww.Error as error: (kept / "raised").write_text(f"{time.time()} {error}")
"""


@dataclass
class Launcher:
    """How to start two ranks."""

    words: list[str]
    environment: dict[str, str]

    def run(self, *program: str, folder: Path) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, "WAYWISER_RUNTIME_DIR": str(folder / "runtime")}
        environment["PYTHONPATH"] = f"{ROOT / 'python'}:{environment.get('PYTHONPATH', '')}"
        command = [*self.words, *program]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=100, cwd=folder
        )


def waywiser_run(request: pytest.FixtureRequest) -> Launcher:
    return Launcher([*COMMAND, "run", "-n", "2"], dict(os.environ))


def srun(request: pytest.FixtureRequest) -> Launcher:
    made: OneSlurm = request.getfixturevalue("slurm")
    return Launcher([made.program("srun"), "-n", "2", "-O", "-Q"], made.environment)


def open_mpi(request: pytest.FixtureRequest) -> Launcher:
    if not MPIRUN:
        pytest.skip("no mpirun")
    patience = {f"{name}_MCA_odls_base_sigkill_timeout": "60" for name in ("OMPI", "PRTE")}
    return Launcher([*MPIRUN, "-n", "2"], {**os.environ, **patience})


def mpich(request: pytest.FixtureRequest) -> Launcher:
    folder = ROOT / "build" / "mpich"
    hydra = folder / "bin" / "mpiexec.hydra"
    if not hydra.exists():
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), "mpich"]
        done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=100)
        if done.returncode != 0 or not hydra.exists():
            pytest.skip("no MPICH: its wheel cannot be had here")
    return Launcher([str(hydra), "-n", "2"], dict(os.environ))


def torchrun(request: pytest.FixtureRequest) -> Launcher:
    if not HAS_TORCH:
        pytest.skip("PyTorch is not installed")
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
    return Launcher(words, dict(os.environ))


# The exit code if one rank ends with 7, and if one is killed.
CODES = {"waywiser run": (7, 137), "srun": (7, 137), "Open MPI": (7, 137), "MPICH": (7, 9), "torchrun": (1, 1)}
KILLS_AT_ONCE = {"MPICH"}  # SIGKILL to the other ranks, which may not get to write that they have heard
ALL = {"waywiser run": waywiser_run, "srun": srun, "Open MPI": open_mpi, "MPICH": mpich, "torchrun": torchrun}
BY_EACH = pytest.mark.parametrize("name", ALL)


def cores_of(lines: str) -> dict[int, list[int]]:
    found = re.findall(r"rank (\d+) of 2, cores ([\d ]+)", lines)
    return {int(rank): [int(core) for core in cores.split()] for rank, cores in found}


def heard(folder: Path, name: str, words: str) -> list[float]:
    """Checks what rank 0 has heard of the end of rank 1, and after how many seconds, if its launcher let it."""
    file = folder / "raised"
    if name in KILLS_AT_ONCE and not (file.exists() and file.read_text()):  # killed before or while it opened the file
        return []
    raised, _, error = file.read_text().partition(" ")
    assert re.match(words, error), error
    return [float(raised) - float((folder / "ended").read_text())]


def test_the_page_has_the_codes() -> None:
    rows = re.findall(r"^\| (?:`(.*?)`|(.*?)) \| .* \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert {code or plain: (int(after_7), int(after_kill)) for code, plain, after_7, after_kill in rows} == CODES


def test_programs_of_tests_write_whole_lines() -> None:
    read, write = os.pipe2(os.O_DIRECT)  # keeps what one write() wrote apart from the next
    subprocess.run([sys.executable, "-c", "print('rank', 0, flush=True)"], stdout=write, check=True, timeout=100)
    os.close(write)
    with os.fdopen(read, "rb", buffering=0) as lines:
        assert lines.read(100) == b"rank 0\n"


@BY_EACH
def test_ranks_have_cores_of_their_own_and_a_code_is_known_to_all(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with_binding = [sys.executable] if name == "waywiser run" else [*COMMAND, "run", sys.executable]
    here = ALL[name](request)
    done = here.run(*with_binding, "-c", PROGRAM + ENDS, "code", str(tmp_path), folder=tmp_path)
    assert done.returncode == CODES[name][0], done.stderr
    heard(tmp_path, name, r"rank 1 \(process \d+ on .*\) ended with exit code 7$")
    cores = cores_of(done.stdout)
    assert sorted(cores) == [0, 1] and all(cores.values()), done.stdout
    assert len(os.sched_getaffinity(0)) < 2 or not set(cores[0]) & set(cores[1]), done.stdout
    print(f"\n{name}: cores {cores[0]} and {cores[1]}, exit code {done.returncode} after 7")


@BY_EACH
def test_ranks_behind_shells_of_their_own_meet(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text(PROGRAM + "group.barrier()\nprint('a rank of', group.size, flush=True)\n")
    done = ALL[name](request).run("sh", "-c", f"{sys.executable} rank.py; true", folder=tmp_path)
    assert done.stdout.splitlines() == ["a rank of 2"] * 2, done.stderr


@BY_EACH
def test_a_killed_rank_is_known_at_once(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    here = ALL[name](request)
    seconds: list[float] = []
    for run in range(RUNS):
        folder = tmp_path / str(run)
        folder.mkdir()
        done = here.run(sys.executable, "-c", PROGRAM + ENDS, "kill", str(folder), folder=folder)
        assert done.returncode == CODES[name][1], done.stderr
        seconds += heard(folder, name, r"rank 1 \(process \d+ on .*\) is gone")
    middle = f"{statistics.median(seconds):.3f} s, the middle of {len(seconds)}" if seconds else "no time: ended, too"
    print(f"\n{name}: exit code {done.returncode} after a kill, known after {middle}")


@pytest.mark.parametrize("keep_going", [False, True])
def test_the_others_go_on_after_a_failure_only_where_the_user_says_so(keep_going: bool, tmp_path: Path) -> None:
    """Without patience with the others."""
    rank = "import os, sys, time\nif os.environ['WAYWISER_RANK'] == '1': sys.exit(7)\ntime.sleep(1)\nprint('goes on')"
    code = f"""
import sys
from waywiser.run import launcher
from waywiser.run.job import Job
launcher.GRACE = 0.0
sys.exit(launcher.Launcher(Job([sys.executable, "-c", {rank!r}], 2, keep_going={keep_going})).run())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (7, "goes on\n" * keep_going), done.stderr
