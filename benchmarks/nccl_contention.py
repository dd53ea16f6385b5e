"""What NCCL's all-reduce and kernels of a training step take from each other, on two GPUs.

OUT=FOLDER torchrun --nproc-per-node 2 benchmarks/nccl_contention.py. Each kernel runs over and over on one stream
beside all-reduces of 256 MiB on another; times are means while both ran. beside.json has a row for each kernel. The
costs `nccl.beside_products` and so on of the simulator are the means of such rows.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn import functional

REDUCED = 64 << 20  # float32
REDUCTIONS, LEAST, MOST = 12, 12, 300
Call = Callable[[], object]


def kernels(device: torch.device) -> dict[str, Call]:
    """Of a layer of 4096 numbers and 2048 tokens."""
    half = {"device": device, "dtype": torch.bfloat16}
    x, wide, up = torch.randn(2048, 4096, **half), torch.randn(2048, 16384, **half), torch.randn(16384, 4096, **half)
    own, other = torch.randn(16384, 4096, device=device), torch.randn(16384, 4096, device=device)
    square = torch.randn(4096, 4096, **half)
    outputs = torch.empty_like(wide), torch.empty_like(x), torch.empty_like(up), torch.empty_like(x)
    return {
        "gemm_forward_up": lambda: torch.mm(x, up.t(), out=outputs[0]),
        "gemm_input_up": lambda: torch.mm(wide, up, out=outputs[1]),
        "gemm_weight_up": lambda: torch.mm(wide.t(), x, out=outputs[2]),
        "gemm_forward_out": lambda: torch.mm(x, square, out=outputs[3]),
        "add_f32": lambda: own.add_(other),
        "div_f32": lambda: own.div_(1.0),
        "copy_f32": lambda: own.copy_(other),
        "cast_bf16_f32": lambda: own.copy_(up),
        "gelu_bf16": lambda: functional.gelu(wide),
    }


class Both:
    """Kernels on the current stream, all-reduces on another."""

    def __init__(self, device: torch.device) -> None:
        self.buffer = torch.zeros(REDUCED, device=device)
        self.wire = torch.cuda.Stream()

    def ends(self, call: Call | None, calls: int, reductions: int) -> tuple[list[float], list[float]]:
        """When each kernel and each all-reduce ended, in ms from their common start."""
        dist.barrier()
        torch.cuda.synchronize()
        base = torch.cuda.Event(enable_timing=True)
        base.record()
        self.wire.wait_event(base)
        done: list[torch.cuda.Event] = []
        sent: list[torch.cuda.Event] = []
        for number in range(max(calls, reductions)):
            if number < reductions:
                with torch.cuda.stream(self.wire):
                    work = dist.all_reduce(self.buffer, async_op=True)
                    assert work is not None
                    work.wait()
                    sent.append(torch.cuda.Event(enable_timing=True))
                    sent[-1].record()
            if call is not None and number < calls:
                call()
                done.append(torch.cuda.Event(enable_timing=True))
                done[-1].record()
        torch.cuda.synchronize()
        return [base.elapsed_time(one) for one in done], [base.elapsed_time(one) for one in sent]


def between(ends: Sequence[float], begin: float, end: float) -> list[float]:
    return [b - a for a, b in pairwise(ends) if a > begin and b < end]


def main() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    both = Both(device)
    both.ends(None, 0, 3)
    reduction = statistics.median(b - a for a, b in pairwise(both.ends(None, 0, REDUCTIONS)[1]))
    rows = []
    for name, call in kernels(device).items():
        both.ends(call, 3, 0)
        alone = statistics.median(b - a for a, b in pairwise(both.ends(call, LEAST, 0)[0]))
        calls = max(LEAST, min(MOST, int(REDUCTIONS * reduction * 1.3 / max(alone, 0.01))))
        done, sent = both.ends(call, calls, REDUCTIONS)
        row = {"kernel": name, "product": name.startswith("gemm")}
        row |= {"kernel_alone_us": alone * 1e3, "all_reduce_alone_us": reduction * 1e3}
        row["kernel_beside_us"] = statistics.mean(between(done, sent[1], min(sent[-1], done[-1]))) * 1e3
        row["all_reduce_beside_us"] = statistics.mean(between(sent, 0, done[-1])) * 1e3
        rows.append(row)
        if rank == 0:
            print(row, flush=True)
    if rank == 0:
        (Path(os.environ["OUT"]) / "beside.json").write_text(json.dumps(rows, indent=1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
