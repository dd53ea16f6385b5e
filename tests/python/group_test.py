"""Groups of Python programs: waywiser.join(), every call, ranks that end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rank_jobs import EXAMPLES, MPIRUN, finish, run, runtime_folder, start

__all__ = ["runtime_folder"]


def test_every_call() -> None:
    code = """
    rank, size = group.rank, group.size
    mine = np.array([rank, 10 + rank], dtype=np.int64)
    blocks = np.arange(size) * 10 + rank
    group.barrier()
    assert (group.all_reduce(mine) == [3, 33]).all()
    assert (group.all_reduce(mine, out=np.empty_like(mine), op="max") == [2, 12]).all()
    assert (group.start_all_reduce(mine, op="min").wait() == [0, 10]).all()
    reduced = group.reduce(mine, op="prod", root=1)
    assert (reduced == [0, 1320]).all() if rank == 1 else reduced is None
    assert (group.broadcast(mine.copy(), root=2) == [2, 12]).all()
    assert group.all_gather(mine).tolist() == [[0, 10], [1, 11], [2, 12]]
    parts = np.full(rank, rank)
    assert group.all_gather(parts, counts=[0, 1, 2]).tolist() == [1, 2, 2]
    gathered = group.gather(mine, root=0)
    assert gathered.tolist() == [[0, 10], [1, 11], [2, 12]] if rank == 0 else gathered is None
    assert group.scatter(gathered, np.empty(2, np.int64)).tolist() == [rank, 10 + rank]
    assert group.all_to_all(blocks).tolist() == [10 * rank, 10 * rank + 1, 10 * rank + 2]
    taken = group.all_to_all_v(np.arange(3), [0, 1, 2], np.empty(3 * rank, np.int64), [rank] * 3)
    assert taken.tolist() == {0: [], 1: [0, 0, 0], 2: [1, 2, 1, 2, 1, 2]}[rank]
    assert group.reduce_scatter(blocks, np.empty(1, np.int64)).tolist() == [30 * rank + 3]
    right, left = (rank + 1) % 3, (rank + 2) % 3
    from_left, from_right = np.empty(1, np.int64), np.empty(1, np.int64)
    on_the_left = ww.Exchange(left, mine[:1], from_left, give_tag=1, take_tag=2)
    group.neighbor_exchange([on_the_left, ww.Exchange(right, mine[1:], from_right, 2, 1)])
    assert (from_left[0], from_right[0]) == (10 + left, right)
    part = group.split(rank % 2)
    assert part.all_reduce(np.array([1.0]))[0] == (2 if rank != 1 else 1)
    assert group.split(-1) is None
    text = bytearray(5)
    if rank == 0: group.send(b"hello", 1)
    if rank == 1: assert group.recv(text, 0) == b"hello"
    halves = np.full(7, 0.5, np.float16)
    assert (group.all_reduce(halves) == 1.5).all()
    group.timeout = 30
    assert (group.timeout, repr(group)) == (30, f"<waywiser.Group: rank {rank} of 3>")
    group.close()
    try: group.barrier()
    except Exception as error: print(error)
    """
    assert run(3, code) == (0, ["the group is closed"] * 3, "")


def test_collectives_in_the_background() -> None:
    code = """
    import asyncio
    rank, size = group.rank, group.size
    mine, blocks = np.array([rank, 10 + rank], dtype=np.int64), np.arange(size) * 10 + rank

    async def all_at_once():
        return await asyncio.gather(
            group.start_all_reduce(mine), group.start_reduce(mine, op="prod", root=1), group.start_all_gather(mine),
            group.start_reduce_scatter(blocks), group.start_all_to_all(blocks), group.start_broadcast(mine.copy(), 2),
            group.start_gather(mine, root=1), group.start_scatter(blocks, np.empty(1, np.int64), 0),
            group.start_barrier())

    everyone = [[0, 10], [1, 11], [2, 12]]
    total, product, gathered, part, exchanged, sent, root_has, shared, nothing = asyncio.run(all_at_once())
    assert (total.tolist(), gathered.tolist(), sent.tolist()) == ([3, 33], everyone, [2, 12])
    assert (part.tolist(), exchanged.tolist()) == ([30 * rank + 3], [10 * rank, 10 * rank + 1, 10 * rank + 2])
    assert (shared.tolist(), nothing) == ([10 * rank], None)
    assert (product.tolist(), root_has.tolist()) == ([0, 1320], everyone) if rank == 1 else product is root_has is None
    # Begun before a message that the others need in order to come: no rank waits in between.
    if rank == 0:
        late = group.start_all_reduce(mine)
        for to in (1, 2): group.send(mine, to)
    else:
        group.recv(np.empty(2, np.int64), 0)
        late = group.start_all_reduce(mine)
    assert late.wait().tolist() == [3, 33]
    try: group.start_all_to_all(blocks, blocks)
    except Exception as error: assert "all_to_all: the two arrays overlap; in this mode" in str(error)
    else: raise AssertionError
    group.barrier()
    """
    code, lines, errors = run(3, code)
    assert (code, lines) == (0, []), errors


def test_arrays_that_cannot_be_sent_are_refused_in_words() -> None:
    code = """
    frozen = np.zeros(3); frozen.flags.writeable = False
    for call in (lambda: group.send([1, 2], 0), lambda: group.send(np.zeros((4, 4)).T, 0),
                 lambda: group.send(np.zeros(2, np.dtype("S4")), 0), lambda: group.recv(frozen, 0),
                 lambda: group.all_reduce(np.zeros(2), np.zeros(3)), lambda: group.all_reduce(np.zeros(1), op="mean")):
        try: call()
        except Exception as error: print(error.kind, "|", error)
    try: group.all_reduce(bytearray(3))
    except TypeError as error: print(error)
    """
    code, lines, errors = run(1, code)
    assert (code, errors) == (0, "")
    assert len(lines) == 7
    words = "'list' is no array", "not contiguous", "cannot be sent", "written to", "3 elements", "'mean' is no"
    for part in words:
        assert any(line.startswith("invalid input | ") and part in line for line in lines), part


def test_without_a_launcher_there_is_one_rank() -> None:
    done = subprocess.run([sys.executable, EXAMPLES / "01_hello.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "rank 0 of 1: hello from rank 0\n")


@pytest.mark.skipif(not MPIRUN, reason="no mpirun here")
def test_under_mpirun() -> None:
    done = subprocess.run(
        [*MPIRUN, "-n", "2", sys.executable, EXAMPLES / "01_hello.py"],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == [
        "rank 0 of 2: hello from rank 1",
        "rank 1 of 2: hello from rank 0",
    ], done.stderr


def test_as_torchrun_sets_the_variables() -> None:
    variables = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400"}
    ranks = [
        subprocess.Popen(
            [sys.executable, EXAMPLES / "01_hello.py"],
            env=os.environ | variables | {"RANK": str(rank), "TORCHELASTIC_RUN_ID": "test"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for rank, process in enumerate(ranks):
        assert finish(process) == (0, [f"rank {rank} of 2: hello from rank {1 - rank}"], "")


@pytest.mark.faults("forming R")
def test_a_rank_that_raises_ends_the_job_with_its_words() -> None:
    code, _, errors = run(3, "if group.rank == 1: raise ValueError('a bug')\ngroup.barrier()")
    assert code == 1
    assert errors.count("waywiser.TransferError: rank 1: ValueError: a bug") == 2
    assert "ended with exit code 1" in errors


def test_a_rank_that_is_killed_ends_the_job() -> None:
    code, _, errors = run(3, "if group.rank == 2: os.kill(os.getpid(), signal.SIGKILL)\ngroup.barrier()")
    assert code in (1, 137)  # whichever was seen first
    assert len(re.findall(r"Error: rank 2 \(process \d+ on .*\) is gone", errors)) == 2


def test_ranks_that_do_not_listen_are_ended() -> None:
    program = "import os, time\nif os.environ['WAYWISER_RANK'] == '1': raise SystemExit(7)\nwhile True: time.sleep(1)"
    code, _, errors = finish(start("run", "-n", "2", sys.executable, "-c", program))
    assert (code, errors.count("\n")) == (7, 1)
    assert re.fullmatch(r"waywiser: rank 1 \(process \d+\) ended with exit code 7\n", errors)


def test_a_plan_that_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "plan")
    monkeypatch.setenv("WAYWISER_PLAN", str(tmp_path / "plan"))
    code, _, errors = run(1, "pass")
    assert code == 1 and f"{tmp_path}/plan: is not a file" in errors


def test_a_window_knows_its_ranks_only() -> None:
    code, _, errors = run(1, "window = group.expose(np.zeros(4))\nassert window.bytes_of(0) == 32\nwindow.bytes_of(-1)")
    assert code == 1 and "Error: the window has no rank -1\n" in errors


def test_output_is_prefixed_and_arguments_belong_to_the_program() -> None:
    program = "import sys; print(sys.argv[1:])"
    process = start("run", "-n", "2", "--prefix", sys.executable, "-c", program, "--verbose", "-n", "plan")
    assert finish(process) == (0, [f"[{rank}] ['--verbose', '-n', 'plan']" for rank in range(2)], "")
