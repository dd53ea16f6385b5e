"""Who started a process, by made-up variables: one table for C++, Python, doctor and bench, the same as in the docs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rank_jobs import (
    COMMAND,
    ROOT,
    runtime_folder,  # noqa: F401 (a fixture of all tests here)
)

from waywiser import _core
from waywiser.errors import InputError
from waywiser.look.job import Job, job, local_rank, nodes

OUTSIDE = {name: value for name, value in os.environ.items() if not _core.tells_of_a_job(name)}
BATCH = {"SLURM_JOB_ID": "9", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_GTIDS": "0",
         "SLURM_NTASKS": "4", "SLURM_NNODES": "2", "SLURM_TASKS_PER_NODE": "2(x2)"}  # fmt: skip
STEP = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "2",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2)"}  # fmt: skip
TASK = {**BATCH, **STEP, "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_GTIDS": "2,3"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_NAMESPACE": "a/b",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}  # fmt: skip
FLUX = {"FLUX_TASK_RANK": "2", "FLUX_JOB_SIZE": "4", "FLUX_TASK_LOCAL_ID": "0", "FLUX_JOB_NNODES": "2",
        "FLUX_JOB_ID": "\u0192Kx", "FLUX_URI": "local:///run/flux/local", "PMI_RANK": "2", "PMI_SIZE": "4",
        "PMI_FD": "9"}  # fmt: skip
POD = {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "train-master-0", "MASTER_PORT": "23456"}
NOBODY = {
    "nothing": {},
    "sbatch": BATCH,
    "sbatch of one machine": {**BATCH, "SLURM_NNODES": "1", "SLURM_TASKS_PER_NODE": "4"},
    "salloc": {name: BATCH[name] for name in ("SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_NNODES")},
    "interactive step": {**BATCH, "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"},
    "step of a batch script": {**BATCH, **STEP, "SLURM_STEP_ID": "4294967291"},
    "sbatch inside a step": {**BATCH, **STEP},
    "PBS": {"PBS_JOBID": "7", "PBS_NODENUM": "1", "PBS_TASKNUM": "2", "PBS_NODEFILE": "/x"},
    "LSF": {"LSB_JOBID": "7", "LSB_HOSTS": "a b"},
    "WORLD_SIZE by hand": {"WORLD_SIZE": "4"},
    "RANK by hand": {"RANK": "1"},
    "a launcher of one rank": {"PMI_RANK": "0", "PMI_SIZE": "1"},
    "a pod alone": {**POD, "RANK": "0", "WORLD_SIZE": "1"},
    "empty variables": {"PMI_RANK": "", "OMPI_COMM_WORLD_RANK": "", "RANK": "", "WORLD_SIZE": ""},
}
WRONG = {
    "a rank too high": ({"PMI_RANK": "4", "PMI_SIZE": "4"}, "PMI_RANK='4' is no number from 0 to 3"),
    "a negative rank": ({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "-1"}, "OMPI_COMM_WORLD_RANK='-1' is no number"),
    "no number": ({**POD, "WORLD_SIZE": "three"}, "WORLD_SIZE='three' is no number"),
    "no size": ({"PMI_RANK": "0"}, "PMI_SIZE is not set"),
    "more here than there are": ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "5"}, "OMPI_COMM_WORLD_LOCAL_SIZE='5'"),
    "no port": ({"RANK": "0", "WORLD_SIZE": "4"}, "unset RANK for one rank alone"),
}


@pytest.mark.parametrize(
    ("variables", "expected", "machines", "here"),
    [
        (TASK, (3, 4, "srun-9-0"), 2, (1, 2)),
        (OPEN_MPI, (0, 4, "Open-MPI-a-b"), 2, (0, 3)),
        ({**TASK, **OPEN_MPI}, (0, 4, "Open-MPI-a-b"), 2, (0, 3)),
        (FLUX, (2, 4, "Flux--Kx-local----run-flux-local"), 2, (0, 1)),
        (POD, (1, 3, "torchrun-train-master-0-23456"), 2, (0, 1)),
        ({"WAYWISER_RANK": "1", "WAYWISER_SIZE": "4", "WAYWISER_JOB": "7", "RANK": "0"}, (1, 4, "waywiser-run-7"), 1,
         (0, 4)),
    ],
)  # fmt: skip
def test_a_rank_of_a_launcher(
    variables: dict[str, str], expected: tuple[int, int, str], machines: int, here: tuple[int, int]
) -> None:
    told = job(variables)
    assert told is not None and (told.rank, told.size, told.name) == expected
    assert (nodes(variables), local_rank(variables)) == (machines, here)


@pytest.mark.parametrize("where", NOBODY)
def test_alone_where_no_launcher_has_started_it(where: str) -> None:
    told = job(NOBODY[where])
    assert told is None or told == Job(0, 1, told.name)


@pytest.mark.parametrize("what", WRONG)
def test_variables_that_contradict_each_other_are_one_line(what: str) -> None:
    variables, said = WRONG[what]
    with pytest.raises(InputError, match=re.escape(said)):
        job(variables)


def python(code: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=OUTSIDE | variables, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_group_of_one_at_once_and_a_line_if_others_do_not_come() -> None:
    """One process plays them all: it reads the variables anew each time."""
    code = f"""
import os, waywiser as ww
for where, variables in {NOBODY!r}.items():
    os.environ.update(variables)
    print(where, ww.join(timeout=1000).size)
    for name in variables: del os.environ[name]
os.environ.update(PMI_RANK="0", PMI_SIZE="4")
try: ww.join(timeout=0.1)
except ww.DeadlineError as error: print(error)
"""
    done = python(code, {})
    *alone, line = done.stdout.splitlines()
    assert alone == [f"{where} 1" for where in NOBODY], done.stderr
    assert line.startswith("3 of 4 ranks did not come")
    assert line.endswith(
        "; PMI_SIZE=4 says that PMI has started 4 ranks: start all of them, or unset PMI_RANK for one rank alone"
    )


@pytest.mark.parametrize("verb", [["doctor", "--only", "D20"], ["bench", "latency"], ["run", "true"], ["tune"]])
def test_each_verb_refuses_wrong_variables_in_one_line(verb: list[str]) -> None:
    variables, said = WRONG["a rank too high"]
    done = subprocess.run(
        [*COMMAND, *verb], env=OUTSIDE | variables, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (3 if verb[0] == "doctor" else 2, "")
    assert done.stderr.count("\n") == 1 and said in done.stderr


def test_doctor_in_a_batch_script_is_alone() -> None:
    done = subprocess.run(
        [*COMMAND, "doctor", "--only", "D20"], env=OUTSIDE | BATCH, capture_output=True, text=True, timeout=60
    )
    assert "D20" in done.stdout and done.stderr == ""


def test_the_page_has_the_table() -> None:
    rows = []
    for line in (ROOT / "docs" / "launchers.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 8 and cells[0] not in ("Launcher", "---"):
            rows.append((cells[0], [re.findall("`(.*?)`", cell) for cell in cells[1:]]))
    assert rows == _core.launchers()


def test_ranks_are_started_by_hand_as_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs/launchers.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^```\n(WAYWISER_JOB=.*?)^```$", page, re.DOTALL | re.MULTILINE)
    program = tmp_path / "program"
    program.write_text(
        f"#!{sys.executable}\nimport waywiser as ww\ngroup = ww.join()\n"
        "print(f'rank {group.rank} of {group.size}', flush=True)\ngroup.close()\n"
    )
    program.chmod(0o755)
    script = lines.replace("gdb ", "") + "wait\n"
    outside = {name: value for name, value in os.environ.items() if not _core.tells_of_a_job(name)}
    answer = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=outside, capture_output=True, text=True, timeout=100, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert sorted(answer.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
