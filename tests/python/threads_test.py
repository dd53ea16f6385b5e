"""Threads of a Python program that call at once: refused in words, or let in with join(threads=True)."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import HAS_TORCH, TORCHRUN, run, runtime_folder
from remote_gpu import Server, server
from torch_forms import form

import waywiser as ww

__all__ = ["form", "runtime_folder", "server"]

# Rank 0's first thread receives until the second has tried its calls.
MEETS = """
import threading, time
from pathlib import Path
from waywiser import _core
from waywiser.run import rank_status

def wait_until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.001)

def is_in(words):
    ranks = rank_status.job_of(os.getpid(), Path(_core.runtime_folder()))
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


# As mpi4py's programs do, with one communicator: right, or an error in words.
UNLUCKY = """
import threading
peer, errors = 1 - group.rank, []

def work(tag):
    data = np.full(800, group.rank + 0.5)
    try:
        for _ in range(300):
            got = np.zeros(800)
            for turn in (0, 1):
                if turn == group.rank: group.send(data, peer, tag)
                else: group.recv(got, peer, tag)
            assert (got == peer + 0.5).all()
    except ww.Error as error:
        errors.append(str(error))

threads = [threading.Thread(target=work, args=(tag,)) for tag in range(3)]
for one in threads: one.start()
for one in threads: one.join()
words = "another thread is in", "waited 2", "left the group"
assert all(any(each in error for each in words) for error in errors), errors
"""


def test_threads_in_one_group_end_with_an_error_at_worst() -> None:
    program = "import os\nimport numpy as np, waywiser as ww\ngroup = ww.join(timeout=60)\ngroup.timeout = 2\n"
    code, lines, errors = run(2, UNLUCKY, program=program)
    assert (code, lines) == (0, []), errors


SHARED = """
import threading
group = ww.join(timeout=60, threads=True, progress_thread={progress})
parts = [group.split(0) for _ in range(4)]
problems = []

def work(part, number):
    try:
        for turn in range(50):
            count = 1 + 37 * turn
            total = part.all_reduce(np.full(count, part.rank + number))
            assert (total == part.size * (part.size - 1) / 2 + part.size * number).all()
            everyone = part.all_gather_objects((number, turn))
            assert everyone == [(number, turn)] * part.size
            future = part.start_all_reduce(np.full(count, number))
            while not future.done(): pass
            if turn % 10 == 0:
                assert part.split(0).all_reduce(number) == part.size * number
    except BaseException as error:
        problems.append(error)
        raise

threads = [threading.Thread(target=work, args=(part, number)) for number, part in enumerate(parts)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not problems
group.barrier()
"""


@pytest.mark.parametrize("progress", [False, True])
def test_threads_may_share_a_rank(progress: bool) -> None:
    program = "import os\nimport numpy as np, waywiser as ww\n"
    assert run(2, SHARED.format(progress=progress), program=program) == (0, [], "")


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


@pytest.mark.skipif(not HAS_TORCH, reason="no PyTorch")
@pytest.mark.usefixtures("form")
@pytest.mark.slow
def test_autograd_threads_call_the_back_end_of_torch(tmp_path: Path) -> None:
    code = """
import threading, datetime
import torch, torch.distributed as dist, waywiser.torch_backend
dist.init_process_group("waywiser")
torch.manual_seed(3)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64), bucket_cap_mb=0.001)
rank = dist.get_rank()
for step in range(5):
    loss = model(torch.full((8, 64), rank + 1.0)).sum()
    worker = threading.Thread(target=loss.backward)
    worker.start()
    worker.join()
    assert all(torch.isfinite(each.grad).all() for each in model.parameters())
grads = [each.grad.clone() for each in model.parameters()]
for grad in grads:
    other = grad.clone()
    dist.broadcast(other, 0)
    assert torch.equal(grad, other)
dist.destroy_process_group()
"""
    path = tmp_path / "program.py"
    path.write_text(code)
    command = [*TORCHRUN, "--nproc-per-node", "2", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_a_remote_gpu_refuses_a_second_thread(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu:
        said: list[str] = []
        values = np.arange(5.0)
        here = gpu.array(values)

        class Room:
            """Makes room for what get() receives: in the middle of the call."""

            def __call__(self, shape: object, dtype: object) -> object:
                thread = threading.Thread(target=try_calls)
                thread.start()
                thread.join()
                return np.empty(shape, dtype)  # type: ignore[arg-type, call-overload]

        def try_calls() -> None:
            for call in (lambda: gpu.array(values), lambda: gpu.run("add", here, here), here.get, gpu.synchronize):
                try:
                    call()
                    said.append("no error")
                except ww.InputError as error:
                    said.append(str(error))

        got = gpu._core.get(here._number, Room())
        np.testing.assert_array_equal(got, values)
        assert len(said) == 4 and all("another thread is in a call of this GPU" in each for each in said), said
        np.testing.assert_array_equal(gpu.run("add", here, here).get(), 2 * values)


@pytest.mark.slow
def test_threads_with_remote_gpus_of_their_own_get_their_own_sums(server: Server) -> None:
    problems: list[object] = []

    def work(number: int) -> None:
        try:
            with ww.remote(server.address, key=server.key, gpu=number % 2) as gpu:
                for turn in range(30):
                    values = np.full(5000, number * 100 + turn, np.int64)
                    array = gpu.array(values)
                    np.testing.assert_array_equal(gpu.run("add", array, array).get(), 2 * values)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
