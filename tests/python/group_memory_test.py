"""Ownership of arrays, calls of a forked child, and Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from rank_jobs import PROGRAM, run, runtime_folder  # noqa: F401

pytestmark = pytest.mark.slow
# A launcher's variables for a rank whose other ranks never come.
LONELY = """
import os, sys
os.environ.update(WAYWISER_RANK=sys.argv[1], WAYWISER_SIZE="2", WAYWISER_LOCAL_RANK=sys.argv[1],
                  WAYWISER_LOCAL_SIZE="2", WAYWISER_JOB="lonely")
import waywiser as ww
print("ready", flush=True)
try:
    ww.join(timeout=60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("length", [100, 20000, 100000, 1 << 20])
def test_a_message_is_sent_as_it_was_when_its_future_is_dropped(length: int) -> None:
    code = f"""
        if group.rank == 0:
            group.start_send(np.full({length}, 77, np.uint8), 1, tag=3)
            others = [np.full({length}, 1, np.uint8) for _ in range(4)]
            group.barrier()
        else:
            group.barrier()
            here = group.recv(np.zeros({length}, np.uint8), 0, tag=3)
            print("wrong:", int((here != 77).sum()))
        group.barrier()
        """
    assert run(2, code) == (0, ["wrong: 0"], "")


@pytest.mark.parametrize("length", [100, 4096, 100000, 1 << 20])
def test_a_dropped_receive_writes_into_nobodys_array(length: int) -> None:
    code = f"""
        if group.rank == 0:
            group.start_recv(np.empty({length}, np.uint8), 1, tag=3)
            others = [np.zeros({length}, np.uint8) for _ in range(4)]
            group.barrier()
            group.recv(np.zeros(1), 1, tag=4)
            print("written:", sum(int(other.any()) for other in others))
        else:
            group.barrier()
            group.send(np.full({length}, 77, np.uint8), 0, tag=3)
            group.send(np.ones(1), 0, tag=4)
        """
    assert run(2, code) == (0, ["written: 0"], "")


def test_arrays_are_let_go_of_when_their_message_has_gone() -> None:
    code = """
        import weakref
        class Kept(np.ndarray): pass
        other = 1 - group.rank
        mine = np.full(100000, 7, np.uint8).view(Kept)
        last = weakref.ref(mine)
        group.start_send(mine, other)
        del mine
        group.recv(np.zeros(100000, np.uint8), other)
        for turn in range(100):
            group.sendrecv(np.zeros(1), other, np.zeros(1), other, tag=2)
        print("kept:", last() is not None)
        group.barrier()
        """
    assert run(2, code) == (0, ["kept: False"] * 2, "")


def test_reductions_of_bools_are_bools() -> None:
    code = """
        mine = np.array([True, group.rank == 0, False])
        for op in ("sum", "prod", "min", "max"):
            print(op, group.all_reduce(mine, op=op).view(np.uint8))
        print("scattered", group.reduce_scatter(np.ones(3, bool)).view(np.uint8))
        print("begun", group.start_all_reduce(mine).wait().view(np.uint8))
        try: group.all_reduce(mine, op="avg")
        except Exception as error: print(error)
        """
    lines = ["begun [1 1 0]", "max [1 1 0]", "min [1 0 0]", "prod [1 0 0]", "scattered [1]", "sum [1 1 0]",
             "there is no average of bools"]  # fmt: skip
    assert run(3, code) == (0, sorted(lines * 3), "")


def test_sendrecv_from_and_into_one_array() -> None:
    code = """
        right, left = (group.rank + 1) % 3, (group.rank + 2) % 3
        data = np.full(100000, group.rank)
        group.sendrecv(data, right, data, left)
        print("right:", bool((data == left).all()))
        try: group.sendrecv(data[:60000], right, data[40000:], left)
        except Exception as error: print(error)
        group.barrier()
        """
    lines = ["right: True", "sendrecv: the two arrays overlap; they may be the same, or apart"]
    assert run(3, code) == (0, sorted(lines * 3), "")


FORKS = {
    "os.fork": """
        child = os.fork()
        if child == 0:
            try: group.barrier()
            except Exception as error: print(str(error)[:38], flush=True)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
    "multiprocessing": """
        import multiprocessing
        child = multiprocessing.get_context("fork").Process(target=lambda: print("child", flush=True))
        child.start()
        child.join()
        assert child.exitcode == 0
        """,
}


@pytest.mark.parametrize("way", FORKS)
def test_a_forked_child_ends_and_does_no_harm(way: str) -> None:
    code = (
        FORKS[way]
        + """
        print("sum", group.all_reduce(np.ones(10000))[0])
        """
    )
    said = "this process was forked off a rank and" if way == "os.fork" else "child"
    assert run(2, code) == (0, sorted(["sum 2.0", said] * 2), "")


@pytest.mark.parametrize("rank", ["0", "1"])
def test_ctrl_c_ends_join(rank: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", LONELY, rank], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)  # into join(); before, Ctrl-C would raise as well
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)  # of 60 that join() would wait
    assert out == "interrupted\n"


def test_ctrl_c_ends_close() -> None:
    code = """
        import threading
        if group.rank == 0: threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            if group.rank == 0: group.close()
            else: group.recv(np.zeros(1), 0)
        except KeyboardInterrupt: print("interrupted")
        except Exception as error: print(error)
        """
    assert run(2, code)[1] == ["interrupted", "rank 0: interrupted in leave"]
