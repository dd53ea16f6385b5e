"""Steps of training on two GPUs by NCCL, beside those of one GPU alone, with traces of PyTorch's profiler.

OUT=FOLDER torchrun --nproc-per-node 2 benchmarks/torch_steps.py. Data-parallel (DistributedDataParallel) and sharded
(fully_shard; alone: over one GPU). A time is the median of nine blocks of five steps. rows.json has the times,
traces.json.gz the traces of the first rank, which `waywiser simulate step --gpu trace=FILE` reads one at a time.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule
from torch_layer import Layer

# Hidden width, layers, sequences, tokens, way.
SHAPES = ((4096, 4, 8, 256), (4096, 4, 1, 128), (8192, 2, 4, 512))
CASES = [(*shape, way) for way in ("ddp", "fsdp") for shape in SHAPES]
KEPT = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "user_annotation")


def model_of(width: int, layers: int, way: str, alone: Any, device: torch.device) -> nn.Module:
    torch.manual_seed(1)
    with device:
        model = nn.Sequential(*[Layer(width) for _ in range(layers)])
    if way == "ddp":
        if alone is not None:
            return model
        return DistributedDataParallel(model, device_ids=[device.index], gradient_as_bucket_view=True)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for part in (*model.children(), model):
        fully_shard(part, mesh=DeviceMesh.from_group(alone or dist.group.WORLD, "cuda"), mp_policy=policy)
    return model


def trace_in(file: str) -> Any:
    told = json.loads(Path(file).read_text())
    told["traceEvents"] = [
        one
        for one in told["traceEvents"]
        if one.get("cat", "-") in KEPT or str(one.get("name", "")).startswith("autograd::engine")
    ]
    return told


def main() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    device, folder = torch.device("cuda", rank), Path(os.environ["OUT"])
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    ones = [dist.new_group([one]) for one in range(2)]
    rows, traces = [], {}
    for width, layers, sequences, tokens, way in CASES:
        row: list[Any] = [width, layers, sequences, tokens, way]
        for what, group in (("alone", ones[rank]), ("both", None)):
            model = model_of(width, layers, way, group, device)
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
            batch = torch.randn(sequences, tokens, width, device=device)

            def step(model: nn.Module = model, optimizer: Any = optimizer, batch: torch.Tensor = batch) -> None:
                with torch.autocast("cuda", torch.bfloat16):
                    loss = model(batch).float().square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)

            for _ in range(6):
                step()
            times = []
            for _ in range(9):
                torch.cuda.synchronize()
                dist.barrier()
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(5):
                    step()
                torch.cuda.synchronize()
                times.append((time.perf_counter() - start) / 5 * 1e3)
            row += [what, statistics.median(times), times]
            file = f"/tmp/step-trace-{rank}"
            with profile(
                activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                schedule=schedule(wait=0, warmup=2, active=3),
                on_trace_ready=lambda one, file=file: one.export_chrome_trace(file),
            ) as profiler:
                for _ in range(5):
                    step()
                    profiler.step()
            if rank == 0:
                traces[f"{row[:5]}{what}"] = trace_in(file)
        rows.append(row)
        if rank == 0:
            print(row[:7], row[8:10], flush=True)
            (folder / "rows.json").write_text(json.dumps(rows))
            with gzip.open(folder / "traces.json.gz", "wt") as out:
                json.dump(traces, out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
