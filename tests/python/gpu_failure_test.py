"""If a peer is late, gone or in another call on a GPU, the program gets an error, never a result.

On two GPUs, or on one that runs the two ranks by turns.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from free_ports import free_ports
from rank_jobs import HAS_TORCH, runtime_folder

__all__ = ["runtime_folder"]


def gpus() -> int:
    if not HAS_TORCH:
        return 0
    import torch

    return int(torch.cuda.device_count())


pytestmark = pytest.mark.skipif(gpus() == 0, reason="a GPU and PyTorch are needed")
LIMIT = 120

BEGIN = """
import faulthandler, os, signal, sys, time, torch, torch.distributed as dist, waywiser as ww
from datetime import timedelta

faulthandler.dump_traceback_later(100, exit=True)  # says where it hangs
R = int(os.environ["RANK"])
D = R % torch.cuda.device_count()
torch.cuda.set_device(D)
dev = torch.device("cuda", D)
x = torch.ones(5000, device=dev)
y = torch.full_like(x, -77)


def stay():
    print("here", flush=True)
    sys.stdin.read()
    os._exit(0)


def failed(*calls):
    for call in calls:
        try:
            call()
        except Exception as error:
            print("raised", type(error).__name__, str(error).splitlines()[0])
        else:
            print("NOTHING WAS RAISED")
"""
GROUP = """
group = ww.join(timeout=TIMEOUT)
group.all_reduce(x, y)
torch.cuda.synchronize()
assert y[0].item() == 2, y
"""
BACKEND = """
import waywiser.torch_backend
dist.init_process_group("waywiser", timeout=timedelta(seconds=TIMEOUT))
dist.all_reduce(x)
torch.cuda.synchronize()
assert x[0].item() == 2, x
"""
GRAPH = """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    group.all_reduce(x, y)
"""


@dataclass
class Ended:
    code: int
    out: str
    err: str


def run_pair(program: str, timeout: float, **variables: str) -> list[Ended]:
    """Two ranks; rank 1 stays until rank 0 has ended."""
    port = free_ports(2)  # the store listens at the first, rank 0 at the second
    name = secrets.token_hex(4)
    ranks = []
    for rank in range(2):
        own = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1"}
        own["WAYWISER_SHARED_GPU"] = "kernels"
        env = {**os.environ, **own, "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": name, **variables}
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", program.replace("TIMEOUT", str(timeout))],
                env=env,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
    ended = []
    try:
        for process in ranks:
            out, err = process.communicate(timeout=LIMIT)
            ended.append(Ended(process.returncode, out, err))
    finally:
        for process in ranks:
            process.kill()
    return ended


SYNC = "torch.cuda.synchronize"
LATE = {
    "a host that waits in CUDA": (GROUP, f"group.all_reduce(x, y)\nfailed({SYNC}, {SYNC}, lambda: y.sum().item())"),
    "a consumer": (GROUP, "group.all_reduce(x, y)\nfailed(lambda: print(y[0].item()))"),
    "a graph": (GROUP + GRAPH, f"graph.replay()\nfailed({SYNC}, lambda: y.sum().item())"),
    "the group": (
        GROUP,
        "group.all_reduce(x, y)\nfailed(lambda: group.synchronize(y), lambda: group.all_reduce(x, y))",
    ),
    "the back end": (BACKEND, f"dist.all_reduce(x)\nfailed({SYNC}, lambda: dist.all_reduce(x))"),
    "its work": (BACKEND, f"dist.all_reduce(x, async_op=True).wait()\nfailed(lambda: x[0].item(), {SYNC})"),
    "close": (GROUP, "group.all_reduce(x, y)\nfailed(group.close)"),
    "destroy_process_group": (BACKEND, "dist.all_reduce(x)\nfailed(dist.destroy_process_group)"),
    "exit": (GROUP, "group.all_reduce(x, y)"),
}


@pytest.mark.parametrize("who", LATE)
@pytest.mark.faults("gpus T")
def test_a_rank_that_is_late_never_gives_a_result(who: str) -> None:
    begin, end = LATE[who]
    first, _ = run_pair(BEGIN + begin + "if R == 1:\n    stay()\n" + end, 2)
    assert "rank 1 did not send within 2.00 s in all_reduce #" in first.err, first
    assert "of 5000 float32, sum" in first.err, first
    assert "NOTHING WAS RAISED" not in first.out, first
    assert who == "exit" or "raised" in first.out, first


@pytest.mark.faults("gpus L")
@pytest.mark.parametrize("who", ["the group", "the back end"])
def test_a_rank_that_is_late_within_the_timeout_is_no_error(who: str) -> None:
    begin, call = {
        "the group": (GROUP, "group.all_reduce(x, y)"),
        "the back end": (BACKEND, "y = x.fill_(1)\ndist.all_reduce(y)"),
    }[who]
    program = BEGIN + begin + f"time.sleep(R * 1.9)\n{call}\ntorch.cuda.synchronize()\nprint(y[0].item())"
    for rank in run_pair(program, 60):
        assert rank.out == "2.0\n", rank
        assert rank.code == 0, rank


@pytest.mark.parametrize("how", ["eager", "graph", "back end"])
@pytest.mark.faults("gpus D")
def test_a_rank_that_has_died_is_known_at_once_to_who_waits_in_cuda(how: str, tmp_path: Path) -> None:
    """Rank 1 dies when rank 0 is known to have enqueued its operation: before, the call itself would raise."""
    enqueued = tmp_path / "enqueued"
    os.mkfifo(enqueued)
    begin = {"eager": GROUP, "graph": GROUP + GRAPH, "back end": BACKEND}[how]
    call = {"eager": "group.all_reduce(x, y)", "graph": "graph.replay()", "back end": "dist.all_reduce(x)"}[how]
    died = f"if R == 1:\n    open({str(enqueued)!r}).read()\n    print(time.monotonic(), flush=True)\n"
    died += "    os.kill(os.getpid(), signal.SIGKILL)\n"
    waited = f"\n{call}\nopen({str(enqueued)!r}, 'w').close()\nfailed({SYNC})\nprint(time.monotonic())"
    first, second = run_pair(BEGIN + begin + died + waited, 600)
    assert "raised" in first.out, first
    assert "while it waited for rank 1: rank 1 (process " in first.err, first
    took = float(first.out.split()[-1]) - float(second.out.split()[-1])
    print(f"{how}: known after {took:.3f} s")
    assert took < 30, first


def test_the_process_ends_where_that_is_wanted() -> None:
    program = BEGIN + GROUP + "if R == 1:\n    stay()\ngroup.all_reduce(x, y)\ntime.sleep(100)"
    first, _ = run_pair(program, 2, WAYWISER_ON_FAILURE="abort")
    assert first.code == 1, first
    assert "rank 1 did not send" in first.err, first
    options = 'pg_options=waywiser.torch_backend.Options(on_failure="abort"), timeout=timedelta'
    program = BEGIN + BACKEND.replace("timeout=timedelta", options)
    first, _ = run_pair(program + "if R == 1:\n    stay()\ndist.all_reduce(x)\ntime.sleep(100)", 2)
    assert first.code == 1, first


UNLIKE = {
    "calls of the back end": ("dist.all_reduce(x[:100])", "dist.all_reduce(x[:80])", "80 float32, sum"),
    "sizes": ("group.all_reduce(x[:100], y[:100])", "group.all_reduce(x[:80], y[:80])", "80 float32, sum"),
    "methods": ("group.all_reduce(x[:100], y[:100])", "group.all_reduce(x, y)", "5000 float32, sum"),
    "types": (
        "group.all_reduce(x[:100], y[:100])",
        "group.all_reduce(x[:100].view(torch.int32), y[:100].view(torch.int32))",
        "100 int32, sum",
    ),
    "operations": ("group.all_reduce(x[:100], y[:100])", "group.broadcast(x[:100], 0)", "100 float32, root 0"),
    "reductions": ("group.all_reduce(x[:100], y[:100])", "group.all_reduce(x[:100], y[:100], 'max')", "float32, max"),
    "long arrays": ("group.all_reduce(big, big)", "group.all_reduce(big[1:], big[1:])", "79999999 float32, sum"),
}


@pytest.mark.parametrize("what", UNLIKE)
@pytest.mark.faults("gpus W")
def test_ranks_that_call_different_things_are_told_so(what: str) -> None:
    one, other, named = UNLIKE[what]
    big = "big = torch.ones(80000000, device=dev)\n" if "big" in one else ""
    warm = "group.all_reduce(big, big)\ntorch.cuda.synchronize()\n" if big else ""
    program = (
        BEGIN
        + (BACKEND if one.startswith("dist.") else GROUP)
        + big
        + warm
        + f"if R == 0:\n    {one}\nelse:\n    {other}\nfailed({SYNC})"
    )
    ranks = run_pair(program, 100)
    text = ranks[0].err + ranks[1].err
    assert "rank 0 is in " in text, ranks
    assert "rank 1 is in " in text, ranks
    assert named in text, ranks
    for rank in ranks:
        assert "NOTHING WAS RAISED" not in rank.out, ranks


def test_messages_of_two_sizes_are_told_so() -> None:
    for sent, received in ((80, 100), (100, 80), (5000, 80), (80, 5000)):
        call = (
            f"if R == 0:\n    group.recv(x[:{received}], 1, stream=s)\nelse:\n    group.send(x[:{sent}], 0, stream=s)\n"
        )
        program = BEGIN + GROUP + "s = torch.cuda.current_stream()\n" + call + f"if R == 1:\n    stay()\nfailed({SYNC})"
        first, _ = run_pair(program, 100)
        assert f"rank 0 receives {received} float32 from rank 1, which sends {sent}" in first.err, first
        assert "raised" in first.out, first


def test_what_is_got_from_windows_without_a_plan() -> None:
    program = (
        BEGIN
        + GROUP
        + """
import numpy
gpus, other = ww.cuda_gpus(), 1 - R
mine = next(g for g in range(len(gpus)) if gpus.empty(1, "u1", g).__dlpack_device__()[1] == D)
memory = gpus.empty(1 << 22, "f4", mine)
shown = torch.from_dlpack(memory)
shown.fill_(R + 5)
torch.cuda.synchronize()
window = group.expose(memory)
group.barrier()
for count in (1, 1000, 1 << 18, (1 << 18) + 1, 1 << 20):
    on_gpu, on_host = torch.zeros(count, device=dev), numpy.zeros(count, "f4")
    group.get(on_gpu, window, other, 4)
    group.get(on_host, window, other, 4)
    assert bool((on_gpu == other + 5).all()) and bool((on_host == other + 5).all()), count
    group.barrier()
print("right")
"""
    )
    for rank in run_pair(program, 60):
        assert rank.out == "right\n", rank


def test_nan_and_signed_zero_are_alike_at_all_ranks() -> None:
    program = (
        BEGIN
        + GROUP
        + """
nan, zero = float("nan"), 0.0
ours = [[nan, 1, zero, -zero, nan, -zero, -1, float("inf")], [1, nan, -zero, zero, nan, -zero, nan, nan]]
for repeats in (10, 5000, 50000, 400000):  # by each method
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for op, torch_op in (("min", torch.minimum), ("max", torch.maximum)):
            a, b = (torch.tensor(each, device=dev, dtype=dtype).repeat(repeats) for each in ours)
            results = []
            for mine in (R, 1 - R):
                out = torch.empty_like(a)
                group.all_reduce((a, b)[mine], out, op)
                results.append(out)
            assert torch.equal(results[0].view(torch.uint8), results[1].view(torch.uint8)), (repeats, dtype, op)
            assert torch.equal(results[0].isnan(), torch_op(a, b).isnan()), (repeats, dtype, op)
            assert bool(results[0][2].signbit()) == bool(results[0][3].signbit()) == (op == "min"), (repeats, dtype, op)
print("right")
"""
    )
    for rank in run_pair(program, 60):
        assert rank.out == "right\n", rank


def test_symmetric_memory_on_a_group_of_the_back_end_works_or_says_why_not() -> None:
    program = (
        BEGIN
        + BACKEND
        + """
import torch.distributed._symmetric_memory as symmetric
shared = symmetric.empty(1024, device=dev)
shared.fill_(R + 1)
try:
    symmetric.rendezvous(shared, dist.group.WORLD.group_name)
except RuntimeError as error:
    print(error)
else:
    dist.barrier()
    total = torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", dist.group.WORLD.group_name)
    assert bool((total == 3).all())
    print("right")
dist.destroy_process_group()
"""
    )
    for rank in run_pair(program, 60):
        assert rank.code == 0, rank
        assert rank.out == "right\n" or "symmetric memory needs a group whose store" in rank.out, rank
