"""Host time of eager calls of torch.distributed: the back end in C++, the one in Python, and NCCL (hosts: Gloo).

torchrun --standalone --nproc-per-node 2 benchmarks/torch_calls.py [--json FILE] [--rounds N]. Blocks of calls take
turns; a time is the median of the blocks at the slowest rank, in microseconds of a call until it returns. On GPUs that
is what the host needs to enqueue it: the blocks are short enough for the queue of a stream. On hosts it is the whole
call. With GPUs, one for each rank; else, and with --host, tensors in host memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from waywiser.torch_backend.compiled import VARIABLE

CALLS = 100  # in a block


def calls(group: Any, device: torch.device) -> dict[str, Callable[[], object]]:
    size = dist.get_world_size()
    x, wide, other = (torch.ones(count, device=device) for count in (2, 2 * size, 2 * size))
    found: dict[str, Callable[[], object]] = {
        "all_reduce": lambda: dist.all_reduce(x, dist.ReduceOp.MAX, group),
        "all_reduce, asynchronous": lambda: dist.all_reduce(x, dist.ReduceOp.MAX, group, async_op=True).wait(),
        "broadcast": lambda: dist.broadcast(x, 0, group),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(wide, x, group),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(x, wide, dist.ReduceOp.MAX, group),
        "all_to_all_single": lambda: dist.all_to_all_single(wide, other, group=group),
    }
    if dist.get_backend(group) == "gloo":
        del found["reduce_scatter_tensor"]  # it has none
    return found


def block(call: Callable[[], object], control: Any, on_gpu: bool) -> float:
    """Microseconds of a call."""
    if on_gpu:
        torch.cuda.synchronize()
    dist.barrier(group=control)
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    took = time.perf_counter() - start
    if on_gpu:
        torch.cuda.synchronize()
    return took / CALLS * 1e6


def groups_of(peer: str) -> dict[str, Any]:
    found = {}
    for form in ("cpp", "python"):
        os.environ[VARIABLE] = form
        found[form] = dist.new_group(backend="waywiser")
    return {**found, peer: dist.new_group(backend=peer)}


def run(groups: dict[str, Any], device: torch.device, rounds: int, control: Any) -> dict[str, dict[str, float]]:
    """The times of every call by every group."""
    by_group = {name: calls(group, device) for name, group in groups.items()}
    rows = {}
    for what in by_group["cpp"]:
        found: dict[str, list[float]] = {}
        for turn in range(rounds + 1):
            for name, its_calls in by_group.items():
                if what not in its_calls:
                    continue
                took = block(its_calls[what], control, device.type == "cuda")
                if turn:  # the first one sets up
                    found.setdefault(name, []).append(took)
        mine = {name: statistics.median(values) for name, values in found.items()}
        everyone: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, mine, group=control)
        rows[what] = {name: max(each[name] for each in everyone) for name in mine}
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="where the result goes")
    parser.add_argument("--rounds", type=int, default=15, help="of blocks (default: 15)")
    parser.add_argument("--host", action="store_true", help="tensors in host memory, although there are GPUs")
    arguments = parser.parse_args()
    on_gpu = torch.cuda.is_available() and not arguments.host
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("gloo")
    control = dist.group.WORLD
    rows = run(groups_of("nccl" if on_gpu else "gloo"), device, arguments.rounds, control)
    if dist.get_rank() == 0:
        for what, us in rows.items():
            print(f"{what}: " + ", ".join(f"{name} {value:.1f} us" for name, value in us.items()), flush=True)
        if arguments.json:
            about = {"pytorch": torch.__version__, "ranks": dist.get_world_size(), "device": device.type}
            with open(arguments.json, "w") as file:
                json.dump({**about, "us": rows}, file, indent=1)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
