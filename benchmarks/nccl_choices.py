"""What NCCL chooses by size, and its rings by each protocol, between two GPUs.

OUT=FOLDER NCCL_NVLS_ENABLE=0 torchrun --nproc-per-node 2 benchmarks/nccl_choices.py. Times are those of a call in a
CUDA graph, the median of five replays of 20 calls (5 above 16 MiB), each verified; choices are what NCCL's log tells.
"""

from __future__ import annotations

import json
import os
import re
import statistics
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
TIMED = OPERATIONS[:3]
SIZES = [1 << power for power in range(3, 29)]
TOLD = re.compile(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo..Hi\}=\{(\d+)\.\.(\d+)\}")


def call(operation: str, whole: torch.Tensor, half: torch.Tensor, group: Any) -> None:
    if operation == "all_reduce":
        dist.all_reduce(whole, group=group)
    elif operation == "all_gather":
        dist.all_gather_into_tensor(whole, half, group=group)
    elif operation == "reduce_scatter":
        dist.reduce_scatter_tensor(half, whole, group=group)
    elif operation == "broadcast":
        dist.broadcast(whole, 0, group=group)
    else:
        dist.reduce(whole, 0, group=group)


def groups_of(device: torch.device) -> dict[str, Any]:
    """NCCL reads its variables when the first call of a group makes its communicator."""
    groups = {"default": dist.group.WORLD}
    dist.all_reduce(torch.ones(4, device=device))
    for protocol in ("LL", "LL128", "Simple"):
        os.environ |= {"NCCL_ALGO": "Ring", "NCCL_PROTO": protocol}
        groups[protocol] = dist.new_group([0, 1])
        dist.all_reduce(torch.ones(4, device=device), group=groups[protocol])
        torch.cuda.synchronize()
    del os.environ["NCCL_ALGO"], os.environ["NCCL_PROTO"]
    return groups


def timed(operation: str, size: int, group: Any, rank: int, device: torch.device) -> tuple[float, bool]:
    count = 20 if size <= 1 << 24 else 5
    whole = torch.empty(max(2, size // 4), device=device)
    half = torch.empty(whole.numel() // 2, device=device)

    def begin() -> None:
        whole.fill_(rank + 1 if operation != "all_gather" else 0)
        half.fill_(rank + 1 if operation == "all_gather" else 0)

    begin()
    for _ in range(2):
        call(operation, whole, half, group)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(count):
            call(operation, whole, half, group)
    graph.replay()
    took, right = [], True
    for _ in range(5):
        begin()
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        graph.replay()
        after.record()
        torch.cuda.synchronize()
        took.append(before.elapsed_time(after) * 1e-3 / count)
        if operation == "all_reduce":
            right &= bool((whole == 3.0 * 2 ** (count - 1)).all())
        elif operation == "all_gather":
            right &= bool((whole[: half.numel()] == 1).all() and (whole[half.numel() : 2 * half.numel()] == 2).all())
        else:
            right &= bool((half == 3).all())
    return statistics.median(took), right


def choices_in(log: str) -> list[dict[str, Any]]:
    """Of the default group, which chooses first at each size; bytes of the whole buffer."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for name, size, algorithm, protocol, low, high in TOLD.findall(log):
        operation = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
        whole = int(size) * (2 if operation in ("all_gather", "reduce_scatter") else 1)
        row = {"algorithm": algorithm, "protocol": protocol, "channels": int(high) - int(low) + 1}
        found.setdefault((operation, whole), {"operation": operation, "bytes": whole, **row})
    return list(found.values())


def main() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    device, log = torch.device("cuda", rank), f"/tmp/nccl-choices-{os.getpid()}"
    os.environ |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "TUNING", "NCCL_DEBUG_FILE": log}
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    groups = groups_of(device)
    dist.barrier()
    before = Path(log).stat().st_size
    for operation in OPERATIONS:
        for size in SIZES:
            whole = torch.zeros(max(2, size // 4), device=device)
            call(operation, whole, whole[: whole.numel() // 2].clone(), groups["default"])
    torch.cuda.synchronize()
    choices = choices_in(Path(log).read_text()[before:])
    rows = []
    for operation in TIMED:
        for size in SIZES:
            row: dict[str, Any] = {"operation": operation, "bytes": size, "seconds": {}, "verified": True}
            for name, group in groups.items():
                both: list[Any] = [None, None]
                dist.all_gather_object(both, timed(operation, size, group, rank, device))
                row["seconds"][name] = max(seconds for seconds, _ in both)
                row["verified"] &= all(right for _, right in both)
            rows.append(row)
    if rank == 0:
        told = {"torch": torch.__version__, "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
        told |= {"device": torch.cuda.get_device_name(0), "ranks": 2}
        file = Path(os.environ["OUT"]) / "nccl-rings-2xh200.json"
        file.write_text(json.dumps({"program": "benchmarks/nccl_choices.py", **told, "rows": rows, "choices": choices}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
