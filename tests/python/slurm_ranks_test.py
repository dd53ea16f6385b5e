"""Who is a rank under a real Slurm: tasks of srun, and nothing else that an allocation starts."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from one_slurm import OneSlurm, slurm
from rank_jobs import COMMAND, HAS_TORCH, MPIRUN, ROOT

__all__ = ["slurm"]
pytestmark = pytest.mark.slow
PROGRAM = (
    "import waywiser as ww, numpy as np\ngroup = ww.join(timeout=60)\n"
    "print('a rank of', int(group.all_reduce(np.ones(1))[0]), flush=True)\n"
)


class Jobs:
    """Scripts for this Slurm, in which $JOIN joins and $SBATCH, $SRUN, $SALLOC are its commands."""

    def __init__(self, slurm: OneSlurm, folder: Path) -> None:
        self.slurm, self.folder = slurm, folder
        (folder / "join.py").write_text(PROGRAM)
        (folder / "runtime").mkdir(mode=0o700)
        names = {"JOIN": f"{sys.executable} {folder}/join.py", "RUN": shlex.join(COMMAND), "PYTHON": sys.executable}
        names |= {name.upper(): slurm.program(name) for name in ("srun", "sbatch", "salloc")}
        names |= {"MPIRUN": shlex.join(MPIRUN), "PYTHONPATH": str(ROOT / "python")}
        names["WAYWISER_RUNTIME_DIR"] = str(folder / "runtime")
        self.begin = "#!/bin/bash\n" + "".join(f"export {name}={shlex.quote(value)}\n" for name, value in names.items())

    def script(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.write_text(f'{self.begin}run() {{ $PYTHON -c {shlex.quote(COMMAND[-1])} "$@"; }}\n{text}\n')
        file.chmod(0o700)
        return file

    def batch(self, text: str, *options: str) -> list[str]:
        """The lines of a batch script."""
        out = self.folder / "out"
        done = self.slurm.run("sbatch", "--wait", "-O", "-o", str(out), *options, str(self.script("batch", text)))
        return [*sorted(out.read_text().splitlines()), *([] if done.returncode == 0 else [done.stderr])]


@pytest.fixture
def jobs(slurm: OneSlurm, tmp_path: Path) -> Jobs:
    return Jobs(slurm, tmp_path)


def until(happens: Callable[[], bool], what: str) -> None:
    end_by = time.monotonic() + 90
    while not happens():
        assert time.monotonic() < end_by, what
        time.sleep(0.05)


@pytest.mark.parametrize(
    "options",
    [
        ("-n", "2"),
        pytest.param((), marks=pytest.mark.long),
        pytest.param(("--ntasks-per-node=2",), marks=pytest.mark.long),
    ],
)
def test_a_batch_script_is_alone_and_its_srun_is_not(jobs: Jobs, options: tuple[str, ...]) -> None:
    assert jobs.batch("$JOIN\n$SRUN -n 2 -O $JOIN\n$JOIN", *options) == ["a rank of 1"] * 2 + ["a rank of 2"] * 2


def test_one_launcher_inside_another(jobs: Jobs) -> None:
    inner = jobs.script("inner", "run run -n 2 --plain $JOIN")
    assert jobs.batch(f"$SRUN -n 2 -O {inner}") == ["a rank of 2"] * 4
    srun = jobs.script("srun", "$SRUN -n 2 -O $JOIN")
    assert jobs.batch(f"run run -n 1 --plain {srun}") == ["a rank of 2"] * 2


@pytest.mark.long
def test_one_launcher_inside_another_in_other_ways(jobs: Jobs) -> None:
    assert jobs.batch("run run -n 2 --plain $JOIN", "-n", "3") == ["a rank of 2"] * 2
    inner = jobs.script("inner", "run run -n 2 --plain $JOIN")
    assert jobs.batch(f"$SRUN -n 1 {inner}") == ["a rank of 2"] * 2
    assert jobs.batch("$SRUN -n 2 -O bash -c \"bash -c '$JOIN; true'\"") == ["a rank of 2"] * 2


@pytest.mark.skipif(not MPIRUN, reason="no mpirun")
def test_mpirun_inside_a_rank_of_srun(jobs: Jobs) -> None:
    alone = "unset ${!SLURM*}\n"  # else this mpirun asks for the allocation's srun by its usual name
    inner = jobs.script("mpirun", f"$MPIRUN -n 2 {jobs.script('rank', '$JOIN')}")
    assert jobs.batch(f"{alone}$MPIRUN -n 2 $JOIN") == ["a rank of 2"] * 2
    assert jobs.batch(f"$SRUN -n 1 bash -c '{alone.strip()}; exec {inner}'") == ["a rank of 2"] * 2


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
def test_torchrun_inside_a_rank_of_srun(jobs: Jobs) -> None:
    words = "$PYTHON -m torch.distributed.run --standalone --nproc-per-node 2 --no-python $JOIN"
    assert jobs.batch(f"$SRUN -n 1 {words} 2>/dev/null") == ["a rank of 2"] * 2


@pytest.mark.parametrize("mpi", ["none", pytest.param("pmi2", marks=pytest.mark.long)])
def test_a_script_that_a_rank_submits_is_alone(jobs: Jobs, mpi: str) -> None:
    out = jobs.folder / "submitted"
    inner = jobs.script("inner", "$JOIN; $SRUN -n 2 -O $JOIN")
    submit = jobs.script("submit", f"[ $SLURM_PROCID = 0 ] || exec $SBATCH -O -o {out} {inner}")
    assert "Submitted" in jobs.batch(f"$SRUN --mpi={mpi} -n 2 -O {submit}")[0]
    until(lambda: out.exists() and out.read_text().count("rank") == 3, "the submitted script")
    assert sorted(out.read_text().splitlines()) == ["a rank of 1", "a rank of 2", "a rank of 2"]


def test_a_script_that_a_rank_of_waywiser_run_submits_is_alone(jobs: Jobs) -> None:
    inner = jobs.script("inner", "$JOIN; $SRUN -n 2 -O $JOIN")
    out = jobs.folder / "submitted"
    submit = jobs.script("submit", f"[ $WAYWISER_RANK = 0 ] || exec $SBATCH --wait -O -o {out} {inner}")
    jobs.slurm.environment["PYTHONPATH"] = str(ROOT / "python")
    done = subprocess.run(
        [*COMMAND, "run", "-n", "2", "--plain", submit], env=jobs.slurm.environment, cwd=jobs.folder, timeout=100,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(out.read_text().splitlines()) == ["a rank of 1", "a rank of 2", "a rank of 2"]


def test_salloc_is_alone_and_its_srun_is_not(jobs: Jobs) -> None:
    done = jobs.slurm.run("salloc", "-n", "2", "-O", str(jobs.script("shell", "$JOIN; $SRUN -n 2 -O $JOIN")))
    assert sorted(done.stdout.splitlines()) == ["a rank of 1", "a rank of 2", "a rank of 2"], done.stderr


def test_an_interactive_shell_is_alone_and_its_srun_is_not(jobs: Jobs) -> None:
    """salloc without a command starts an interactive step, whose shell has a terminal."""
    script = jobs.script("shell", "echo step $SLURM_STEP_ID; $JOIN; $SRUN -n 2 -O $JOIN")
    command = f"{jobs.slurm.program('salloc')} -n 2 -O"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"], env={**jobs.slurm.environment, "SHELL": "/bin/bash"},
        input=f"exec {script} </dev/null\n", capture_output=True, text=True, check=False, timeout=100, cwd=jobs.folder,
    )  # fmt: skip
    assert re.findall(r"step \d+|a rank of \d", done.stdout) == [
        "step 4294967290", "a rank of 1", "a rank of 2", "a rank of 2",
    ], done.stdout  # fmt: skip


def test_a_shell_by_srun_is_a_rank_alone(jobs: Jobs) -> None:
    done = jobs.slurm.run("srun", "-n", "1", "bash", "-c", f"{jobs.script('shell', '$JOIN')}")
    assert done.stdout == "a rank of 1\n", done.stderr
