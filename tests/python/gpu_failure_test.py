"""If a peer is late, gone or in another call on a GPU, the program gets an error, never a result.

On two GPUs, or on one that runs the two ranks by turns.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gpu_pair import BACKEND, BEGIN, GROUP, gpus, run_pair
from rank_jobs import runtime_folder

__all__ = ["runtime_folder"]


pytestmark = pytest.mark.skipif(gpus() == 0, reason="a GPU and PyTorch are needed")

GRAPH = """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    group.all_reduce(x, y)
"""


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


KEPT = """
z = y * 2 + 1
torch.cuda.synchronize()
assert y.isnan().all() and z.isnan().all(), (y, z)
a = torch.ones(4096, 4096, device=dev)
assert (a @ a == 4096).all()
failed(lambda: group.synchronize(y), lambda: group.all_reduce(x, y))
group.close()
with ww.from_unique_id(ww.unique_id(), 0, 1) as alone:
    assert (alone.all_reduce(x) == 1).all()
print("CUDA GOES ON")
"""


@pytest.mark.parametrize("how", ["eager", "graph"])
@pytest.mark.parametrize("count", [2, 5000, 3_000_000, 40_000_000])
@pytest.mark.faults("gpus V")
def test_with_on_failure_raise_a_dead_rank_leaves_nan_and_the_context(how: str, count: int, tmp_path: Path) -> None:
    enqueued = tmp_path / "enqueued"
    os.mkfifo(enqueued)
    begin = BEGIN.replace("torch.ones(5000", f"torch.ones({count}") + GROUP + (GRAPH if how == "graph" else "")
    begin = begin.replace("ww.join(", 'ww.join(on_failure="raise", ')
    died = f"if R == 1:\n    open({str(enqueued)!r}).read()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    call = "graph.replay()" if how == "graph" else "group.all_reduce(x, y)"
    first, _ = run_pair(begin + died + f"{call}\nopen({str(enqueued)!r}, 'w').close()\n" + KEPT, 600)
    assert first.out.count("raised") == 2 and "CUDA GOES ON" in first.out, first
    assert "NOTHING WAS RAISED" not in first.out and "rank 1 (process " in first.err, first


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
