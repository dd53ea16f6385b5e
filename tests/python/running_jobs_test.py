"""`waywiser doctor --job`: jobs that really run here, healthy ones and with a fast path taken away."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rank_jobs import COMMAND, HAS_MPI4PY, MPIRUN, runtime_folder
from verb_runs import Run

__all__ = ["runtime_folder"]
HERE = Path(__file__).parent
NEEDS_MPI = pytest.mark.skipif(not (HAS_MPI4PY and MPIRUN), reason="mpi4py or mpirun is missing")
SPACES = ("unshare", "--user", "--map-root-user")
NEEDS_SPACES = pytest.mark.skipif(
    subprocess.run([*SPACES, "true"], capture_output=True, check=False).returncode != 0,
    reason="no user namespaces here",
)
BY_UCX = ("--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any")
# Long and short messages between two ranks of a group, which then wait.
GROUP = """
import signal, numpy as np, waywiser as ww
group = ww.join()
for n in (1 << 4, 1 << 20):
    x = np.ones(n, np.uint8)
    for _ in range(16):
        group.sendrecv(x, 1 - group.rank, np.empty_like(x), 1 - group.rank)
group.barrier()
if group.rank == 0: print("moved", flush=True)
signal.pause()
"""
_PATIENCE = 60.0


@contextmanager
def running(command: list[str], **variables: str) -> Iterator[int]:
    """Such a job, once its bytes have moved: the process id of its launcher."""
    job = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **variables}, start_new_session=True)
    assert job.stdout is not None
    try:
        end_by, said = time.monotonic() + _PATIENCE, b""
        while b"moved" not in said:
            assert select.select([job.stdout], [], [], max(0.0, end_by - time.monotonic()))[0], "it does not move"
            part = os.read(job.stdout.fileno(), 4096)
            assert part, "the job has ended"
            said += part
        yield job.pid
    finally:
        job.terminate()
        job.wait(_PATIENCE)
        job.stdout.close()


def pair(*options: str) -> list[str]:
    return [*MPIRUN, "-n", "2", *options, sys.executable, str(HERE / "mpi_pair.py")]


def group_of_two() -> list[str]:
    return [*COMMAND, "run", "-n", "2", "--plain", sys.executable, "-c", GROUP]


def ask(run: Run, process: int) -> tuple[int, dict[str, Any]]:
    code, out, err = run("doctor", "--job", str(process), "--seconds", "0", "--json")
    assert not err
    return code, json.loads(out)


def ids(found: dict[str, Any]) -> list[str]:
    return [one["id"] for one in found["fall_backs"]]


def bytes_by(found: dict[str, Any], words: str) -> int:
    return sum(one["bytes"] or 0 for one in found["moved"] if words in one["mechanism"])


@NEEDS_MPI
def test_sockets_in_place_of_shared_memory_are_named_with_their_bytes(run: Run) -> None:
    with running(pair("--mca", "btl", "tcp,self")) as launcher:
        code, found = ask(run, launcher)
        ranks = [one["process"] for one in found["here"]]
        of_a_rank = ask(run, ranks[1])[1]
        shown = run("doctor", "--job", str(ranks[0]), "--seconds", "0")[1]
    assert (code, ids(found)) == (2, ["J01"])
    told = found["fall_backs"][0]["found"]
    assert "by TCP over lo between ranks 0-1 of this machine: OMPI_MCA_btl=tcp,self leaves out shared memory" in told
    assert 32 << 20 <= bytes_by(found, "TCP over lo") < 33 << 20, "16 MiB from each rank, and what surrounds it"
    assert (found["launcher"], found["ranks"]) == ("Open MPI", 2)
    assert [one["rank"] for one in found["here"]] == [0, 1] and len(set(ranks)) == 2
    assert of_a_rank["here"] == found["here"], "a rank leads to the whole job"
    assert "J01 problem: sockets in place of shared memory" in shown and "OMPI_MCA_btl=tcp,self" in shown


@NEEDS_MPI
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "id", "says"),
    [
        (("--mca", "smsc", "^cma"), "J02", "OMPI_MCA_smsc=^cma leaves out CMA"),
        ((*BY_UCX, "-x", "UCX_TLS=tcp,self"), "J01", "UCX_TLS=tcp,self leaves out shared memory"),
        ((*BY_UCX, "-x", "UCX_TLS=posix,self"), "J02", "UCX_TLS=posix,self leaves out CMA"),
        pytest.param(SPACES, "J02", "different user namespaces, so the kernel refuses CMA", marks=NEEDS_SPACES),
    ],
)
def test_a_fall_back_of_a_real_job_is_named_with_its_setting(
    run: Run, options: tuple[str, ...], id: str, says: str
) -> None:
    with running(pair(*options)) as launcher:
        found = ask(run, launcher)[1]
    assert ids(found) == [id]
    assert says in found["fall_backs"][0]["found"]


@NEEDS_MPI
@pytest.mark.slow
def test_ranks_with_other_settings_are_told_apart(run: Run) -> None:
    program = [sys.executable, str(HERE / "mpi_pair.py")]
    one, other = ([*("-n", "1", "-x", f"UCX_RNDV_THRESH={size}"), *program] for size in ("8k", "64k"))
    with running([*MPIRUN, *BY_UCX, *one, ":", *other]) as launcher:
        found = ask(run, launcher)[1]
    assert ids(found) == ["J10"]
    assert "UCX_RNDV_THRESH: 8k at rank 0; 64k at rank 1" in found["fall_backs"][0]["found"]


@NEEDS_MPI
@pytest.mark.slow
@pytest.mark.parametrize("options", [(), BY_UCX])
def test_nothing_is_named_in_a_healthy_job_of_mpi(run: Run, options: tuple[str, ...]) -> None:
    with running(pair(*options)) as launcher:
        code, found = ask(run, launcher)
    assert (code, ids(found)) == (0, [])
    assert any(one["mechanism"].startswith("shared memory") and one["bytes"] is None for one in found["moved"])
    assert any("the kernel counts neither" in one for one in found["unknown"])


def test_a_healthy_group_says_itself_what_has_carried_its_bytes(run: Run) -> None:
    with running(group_of_two()) as launcher:
        code, found = ask(run, launcher)
    assert (code, ids(found)) == (0, [])
    by = {one["mechanism"]: one["bytes"] for one in found["moved"] if one["counted_by"] == "ranks"}
    assert sum(by.values()) >= 2 * 16 * ((1 << 20) + (1 << 4)), "all that the two have sent"
    assert by["waywiser: shared ring"] >= 2 * 16 << 4
    assert found["launcher"] == "waywiser run"


@pytest.mark.slow
def test_groups_that_take_a_slower_way_are_named(run: Run) -> None:
    with running(group_of_two(), WAYWISER_MAILBOX="off") as launcher:
        found = ask(run, launcher)[1]
    assert ids(found) == ["J03"] and "WAYWISER_MAILBOX=off" in found["fall_backs"][0]["found"]
    with running(group_of_two(), WAYWISER_UCX_TLS="tcp,self", WAYWISER_MAILBOX="off") as launcher:
        found = ask(run, launcher)[1]
    assert ids(found) == ["J01", "J03"]
    assert "WAYWISER_UCX_TLS=tcp,self leaves out shared memory" in found["fall_backs"][0]["found"]


def test_ranks_below_shells_that_count_as_several_machines(run: Run) -> None:
    start = [*COMMAND, "run", "-n", "2", "--plain", "sh", "-c"]
    line = f"WAYWISER_MACHINE=m$WAYWISER_RANK {sys.executable} -c '{GROUP}'; true"
    with running([*start, line]) as launcher:
        found = ask(run, launcher)[1]
    assert ids(found) == ["J01"]
    assert "WAYWISER_MACHINE differs (m0, m1)" in found["fall_backs"][0]["found"]
    assert [sorted(one["libraries"]) for one in found["here"]] == [["UCX", "waywiser"]] * 2, "not the shells"
    many = bytes_by(found, "waywiser: UCX"), bytes_by(found, "TCP over lo")
    assert 32 << 20 <= many[0] <= many[1] < 34 << 20, "what the ranks count, and the kernel"


def test_a_process_without_ranks_is_looked_at_alone(run: Run) -> None:
    with running([sys.executable, "-c", "import signal; print('moved', flush=True); signal.pause()"]) as process:
        code, found = ask(run, process)
    assert (code, found["launcher"], found["ranks"]) == (0, "none", 1)
    assert (found["here"][0]["process"], found["moved"]) == (process, [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--job", "4194304"], "there is no process 4194304"),
        (["--seconds", "1"], "--seconds is for --job"),
        (["--job", "1", "--all"], "--job goes with --seconds, --json, --strict and --root alone"),
    ],
)
def test_what_is_no_job_gets_one_line(run: Run, words: list[str], says: str) -> None:
    code, _, err = run("doctor", *words)
    assert code == 3 and says in err and err.count("\n") == 1
