"""Threads of a Python program that call at once: the second one is refused in words."""

from __future__ import annotations

from rank_jobs import run, runtime_folder

__all__ = ["runtime_folder"]

# Rank 0's first thread receives until the second has tried its calls.
MEETS = """
import threading, time
from pathlib import Path
from waywiser import _core, running

def wait_until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.001)

def is_in(words):
    ranks = running.job_of(os.getpid(), Path(_core.runtime_folder()))
    return any(rank.process == os.getpid() and words in (rank.call or "") for rank in ranks)

def sums(group):
    for turn in range(3):
        assert group.all_reduce(group.rank + turn) == 1 + 2 * turn

part, x, over = group.split(0), np.ones(2), Path("over")
window, future = group.expose(np.zeros(8)), group.start_recv(np.empty(3), 1 - group.rank, 9)
prepared = group.prepare_exchange([ww.Exchange(1 - group.rank, x, np.empty(2))])
heap = ww.Heap(group, "heap", 64)
grid = ww.GridPartition(group, (8, 8), ghost=1)
halo = ww.HaloExchange(group, grid, [np.zeros(grid.local_shape)])
if group.rank == 1:
    wait_until(over.exists, "rank 0 has tried nothing")
    part.send(np.full(800, 7.0), 0)
else:
    got = np.zeros(800)
    receiver = threading.Thread(target=lambda: part.recv(got, 1))
    receiver.start()
    wait_until(lambda: is_in("recv"), "the thread is in no recv")
    calls = {
        "send": lambda: group.send(x, 1),
        "recv": lambda: group.recv(x, 1),
        "probe": lambda: group.probe(),
        "barrier": lambda: group.barrier(),
        "all_reduce": lambda: part.all_reduce(x),
        "start": lambda: group.start_all_reduce(x),
        "split": lambda: group.split(0),
        "objects": lambda: group.send_object("text", 1),
        "gathered": lambda: group.all_gather_objects("text"),
        "expose": lambda: group.expose(x),
        "put": lambda: group.put(x, window, 1),
        "flush": lambda: group.flush(),
        "done": lambda: future.done(),
        "wait": lambda: future.wait(),
        "prepared": lambda: prepared.start(),
        "heap": lambda: heap.put(np.zeros(1, np.uint8), 1),
        "heap wait": lambda: heap.wait(0, 0),
        "team": lambda: heap.world(),
        "halo": lambda: halo.start(),
        "close": lambda: group.close(),
    }
    for name, call in calls.items():
        try:
            call()
            print("not refused:", name)
        except ww.InputError as error:
            assert "rank 0: another thread is in recv #1 of 800 float64 from rank 1" in str(error), (name, error)
    over.touch()
    receiver.join()
    assert (got == 7).all()
group.send(np.zeros(3), 1 - group.rank, 9)
future.wait()
sums(group), sums(part)
"""


def test_a_call_that_meets_another_threads_call_is_refused() -> None:
    assert run(2, MEETS) == (0, [], "")


EACH_JOINS = """
import threading
other = ww.join()

def work(group, number):
    for turn in range(100):
        assert group.all_reduce(group.rank + number) == 1 + 2 * number

thread = threading.Thread(target=work, args=(other, 5))
thread.start()
work(group, 7)
thread.join()
"""


def test_each_thread_may_join_by_itself() -> None:
    assert run(2, EACH_JOINS) == (0, [], "")


# A thread without a call drops what another one's group has made, while that one waits in a call.
DROPS = (
    MEETS.split("part, x, over")[0]
    + """
import gc
over = Path("over")
future = group.start_recv(np.empty(1 << 16), 1 - group.rank, 9)
part = group.split(0)
window = part.expose(np.zeros(8))
if group.rank == 1:
    wait_until(over.exists, "rank 0 has dropped nothing")
    group.send(np.full(800, 7.0), 0)
else:
    def drop():
        global future, part, window
        wait_until(lambda: is_in("recv"), "the main thread is in no recv")
        del future, window, part
        gc.collect()
        over.touch()
    thread = threading.Thread(target=drop)
    thread.start()
    got = np.zeros(800)
    group.recv(got, 1)
    thread.join()
    assert (got == 7).all()
group.send(np.zeros(1 << 16), 1 - group.rank, 9)
sums(group)
"""
)


def test_what_another_thread_drops_does_not_disturb_a_call() -> None:
    assert run(2, DROPS) == (0, [], "")
