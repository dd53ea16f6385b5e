"""Waits of heaps while a rank dies, or while this rank is interrupted: by calls of the host and on streams."""

from __future__ import annotations

import pytest
from rank_jobs import run, runtime_folder  # noqa: F401

pytestmark = pytest.mark.slow
# Rank 1 dies while the others wait for it; `timeout` is against hangs only.
PROGRAM = """
import functools, os, signal, sys, threading, time, numpy as np, waywiser as ww
print = functools.partial(print, flush=True)
place, call, thread, apart = PARAMETERS
if apart:
    os.environ["WAYWISER_MACHINE"] = os.environ["WAYWISER_RANK"]
gpus = ww.virtual_gpus(4) if place == "gpu" else None
group = ww.join(gpus=gpus, timeout=60, progress_thread=thread)
rank, size = group.rank, group.size
gpu = rank if place == "gpu" else None
heap = ww.Heap(group, "ghosts", 4096, gpu=gpu)
team = heap.world()
stream = gpus.open_stream(rank) if "stream" in call else None
def run_call():
    if "barrier" in call:
        heap.barrier(team, stream=stream)
    elif "take" in call:
        heap.wait_and_take(0, 1, source=1, stream=stream)
    else:
        heap.wait(0, 1, "==", source=1, stream=stream)
    if "group" in call:
        group.synchronize(heap.array(8), stream=stream)
    elif stream is not None:
        heap.synchronize(stream)
group.barrier()
"""
CALLS = [
    *(("host", call) for call in ("wait", "take", "barrier")),
    *(("gpu", call) for call in ("wait", "take", "barrier", "wait stream", "take stream", "barrier stream")),
    ("gpu", "wait stream group"),
]
EVERY = pytest.mark.parametrize(("place", "call"), CALLS, ids=[f"{call}-{place}" for place, call in CALLS])


def in_ranks(ranks: int, parameters: tuple[str, str, bool, bool], code: str) -> tuple[int, list[str], str]:
    return run(ranks, code, program=PROGRAM.replace("PARAMETERS", repr(parameters)))


DEAD = """
    left = os.path.join(os.environ["WAYWISER_RUNTIME_DIR"], "left-the-barrier-")
    if rank == 1:  # nobody is to hear of its end before that call
        by = time.monotonic() + 60
        while not all(os.path.exists(left + str(other)) for other in range(size) if other != rank):
            assert time.monotonic() < by
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGKILL)
    open(left + str(rank), "x").close()
    try:
        run_call()
        print("over")
    except ww.TransferError as error:
        print("named" if "rank 1 (process " in str(error) and "is gone" in str(error) else error)
    try:
        heap.check()
        print("nothing")
    except ww.TransferError as error:
        print("still named" if "rank 1 (process " in str(error) else error)
    os._exit(0)
"""


@EVERY
@pytest.mark.parametrize("thread", [False, True], ids=["", "progress_thread"])
def test_a_dead_rank_is_named(place: str, call: str, thread: bool) -> None:
    _, out, err = in_ranks(3, (place, call, thread, False), DEAD)
    assert out == ["named"] * 2 + ["still named"] * 2, err


@pytest.mark.parametrize("place", ["host", "gpu"])
def test_a_dead_rank_is_named_by_a_proxied_heap(place: str) -> None:
    _, out, err = in_ranks(3, (place, "wait", False, True), DEAD)
    assert out == ["named"] * 2 + ["still named"] * 2, err


INTERRUPTED = """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident
    def interrupt():
        here = os.path.dirname(ww.__file__)
        while not sys._current_frames()[main].f_code.co_filename.startswith(here):
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
    if rank == 0:
        threading.Thread(target=interrupt, daemon=True).start()
    try:
        run_call() if rank == 0 else heap.wait(8, 1)
        print("over")
    except KeyboardInterrupt:
        print("interrupted")
    except ww.Error as error:
        # The signal may come just before the wait begins: then rank 0 has ended.
        print("told" if "rank 0: interrupted in" in str(error) or "rank 0 (process " in str(error) else error)
    os._exit(0)
"""


@EVERY
def test_a_wait_obeys_ctrl_c(place: str, call: str) -> None:
    _, out, err = in_ranks(2, (place, call, False, False), INTERRUPTED)
    assert out == ["interrupted", "told"], err
