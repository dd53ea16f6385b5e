"""Times of all_reduce by the Group, the back end and NCCL, in gpu_interop.py."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from gpu_interop_values import DEVICE, RANK, SIZE

import waywiser as ww

TIMED = (1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26)


def timed(function: Callable[[], object], calls: int, plain: Any, late: float = 0) -> float:
    """Microseconds of a call, pipelined. Rank 0 begins, and looks at the clock, so many seconds after the others."""
    torch.cuda.synchronize()
    dist.barrier(group=plain)
    if RANK == 0:
        time.sleep(late)
    start = time.perf_counter()
    for _ in range(calls):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls * 1e6


def captured(call: Callable[[], object], calls: int) -> Callable[[], object]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph.replay


def times(group: ww.Group, peer: Any, plain: Any) -> list[dict[str, Any]]:
    """In turns; the slowest rank's median. `peer`, of NCCL, is beside; `plain` is for messages of this program."""
    rows: list[dict[str, Any]] = []
    for size in TIMED:
        data, out = torch.ones(size // 4, device=DEVICE), torch.empty(size // 4, device=DEVICE)
        calls: dict[str, Callable[[], object]] = {
            "group": lambda data=data, out=out: group.all_reduce(data, out),
            "back end": lambda data=data: dist.all_reduce(data),
            "NCCL": lambda data=data: dist.all_reduce(data, group=peer),
        }
        for call in calls.values():
            timed(call, 3, plain)
        many = 50 if size < 1 << 24 else 10
        replays = {name: captured(calls[name], 20) for name in ("group", "NCCL")}
        found: dict[str, list[float]] = {}
        for _ in range(7):
            for name, call in calls.items():
                found.setdefault(f"{name} eager", []).append(timed(call, many, plain))
            found.setdefault("group, one late", []).append(timed(calls["group"], many, plain, late=0.005))
            for name, replay in replays.items():
                found.setdefault(f"{name} graph", []).append(timed(replay, 5, plain) / 20)
        mine = {name: statistics.median(values) for name, values in found.items()}
        everyone: list[Any] = [None] * SIZE
        dist.all_gather_object(everyone, mine, group=plain)
        us = {name: max(each[name] for each in everyone) for name in mine}
        rows.append({"bytes": size, "us": {**us, "group, one late": everyone[0]["group, one late"]}})
    return rows
