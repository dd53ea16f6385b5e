"""Steps of training with the back end beside NCCL: data-parallel (DistributedDataParallel; also without communication),
sharded (fully_shard), tensor-parallel (parallelize_module).

torchrun --standalone --nproc-per-node 2 benchmarks/torch_training.py [--json FILE] [--seconds S] [--cases LIST].
Blocks of five steps take turns; a time is the median of the blocks at the slowest rank. The losses of the first steps
must be equal to those with NCCL up to rounding. Needs PyTorch with CUDA, a GPU for each rank. WAYWISER_TORCH_FORM
chooses the back end's form.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch_layer import Layer

import waywiser.torch_backend

STEPS = 5  # in a block
WARM_UP = 4


def transformer(width: int, layers: int) -> nn.Module:
    return nn.Sequential(*[Layer(width) for _ in range(layers)], nn.Linear(width, 512))


def convolutions() -> nn.Module:
    """About 11 million parameters, as ResNet-18 has, in many small tensors."""
    widths = (64, 64, 128, 128, 256, 256, 512, 512, 512)
    parts: list[nn.Module] = []
    for before, after in zip((3, *widths), widths, strict=False):
        parts += [nn.Conv2d(before, after, 3, 2 if before != after else 1, 1, bias=False), nn.BatchNorm2d(after)]
        parts += [nn.ReLU()]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def data_parallel(model: nn.Module, group: Any, device: torch.device, bucket: int) -> nn.Module:
    options: Any = {"process_group": group, "bucket_cap_mb": bucket, "gradient_as_bucket_view": True}
    return DistributedDataParallel(model, device_ids=[device.index], **options)


def sharded(model: nn.Module, group: Any, device: torch.device, _bucket: int) -> nn.Module:
    """Parameters are gathered as bfloat16, layer by layer; gradients are summed as float32."""
    mesh = DeviceMesh.from_group(group, device.type)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for part in (*model.children(), model):
        fully_shard(part, mesh=mesh, mp_policy=policy)
    return model


def tensor_parallel(model: nn.Module, group: Any, device: torch.device, _bucket: int) -> nn.Module:
    mesh = DeviceMesh.from_group(group, device.type)
    split: dict[str, Any] = {name: ColwiseParallel() for name in ("qkv", "up")}
    split |= {name: RowwiseParallel() for name in ("out", "down")}
    for part in model.children():
        if isinstance(part, Layer):
            parallelize_module(part, mesh, split)
    return model


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], nn.Module]
    batch: tuple[int, ...]
    spread: Callable[[nn.Module, Any, torch.device, int], nn.Module] = data_parallel
    bucket: int = 25  # MB


LARGE, SMALL = "transformer, 808 M parameters", "transformer, 85 M parameters"
CASES = (
    Case(f"{LARGE}, 8 x 256 tokens", lambda: transformer(4096, 4), (8, 256, 4096)),
    Case(f"{LARGE}, 2 x 256 tokens", lambda: transformer(4096, 4), (2, 256, 4096)),
    Case(f"{SMALL}, 32 x 256 tokens", lambda: transformer(768, 12), (32, 256, 768)),
    Case("convolutions, 11 M parameters, 256 images", convolutions, (256, 3, 32, 32)),
    Case("convolutions, 11 M parameters, 8 images, buckets of 1 MB", convolutions, (8, 3, 32, 32), bucket=1),
    Case(f"{LARGE}, 8 x 256 tokens, sharded", lambda: transformer(4096, 4), (8, 256, 4096), sharded),
    Case(f"{SMALL}, 32 x 256 tokens, sharded", lambda: transformer(768, 12), (32, 256, 768), sharded),
    Case(f"{LARGE}, 8 x 256 tokens, tensor-parallel", lambda: transformer(4096, 4), (8, 256, 4096), tensor_parallel),
    Case(f"{SMALL}, 32 x 256 tokens, tensor-parallel", lambda: transformer(768, 12), (32, 256, 768), tensor_parallel),
)


class Trainer:
    """One model with one back end. Every back end begins with the same parameters."""

    def __init__(self, case: Case, group: Any, device: torch.device) -> None:
        torch.manual_seed(1)
        with device:  # parameters are made there
            model = case.make()
        self.model = case.spread(model, group, device, case.bucket)
        alike: dict[type, list[nn.Parameter]] = {}  # DTensor and plain: one operation over lists takes no mixture
        for each in self.model.parameters():
            alike.setdefault(type(each), []).append(each)
        self.optimizer = torch.optim.SGD([{"params": each} for each in alike.values()], lr=1e-3)

    def step(self, batch: torch.Tensor, communicates: bool = True) -> torch.Tensor:
        # The forward pass, too: it decides whether the gradients of the backward pass are summed.
        with nullcontext() if communicates else self.model.no_sync():
            with torch.autocast(batch.device.type, torch.bfloat16):
                loss = self.model(batch).float().square().mean()
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        return loss.detach()


def block(trainer: Trainer, batch: torch.Tensor, communicates: bool, control: Any) -> float:
    """Milliseconds of a step."""
    torch.cuda.synchronize()
    dist.barrier(group=control)
    start = time.perf_counter()
    for _ in range(STEPS):
        trainer.step(batch, communicates)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / STEPS * 1e3


def slowest(values: dict[str, float], control: Any) -> dict[str, float]:
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, values, group=control)
    return {name: max(each[name] for each in everyone) for name in values}


def run(case: Case, groups: dict[str, Any], control: Any, device: torch.device, seconds: float) -> dict[str, Any]:
    seed = 0 if case.spread is tensor_parallel else dist.get_rank()
    batch = torch.randn(case.batch, device=device, generator=torch.Generator(device).manual_seed(seed))
    trainers = {by: Trainer(case, group, device) for by, group in groups.items()}
    losses = {by: [trainer.step(batch).item() for _ in range(WARM_UP)] for by, trainer in trainers.items()}
    turns = [(by, True) for by in groups] + ([("nccl", False)] if case.spread is data_parallel else [])
    found: dict[str, list[float]] = {}
    enough, end = False, time.perf_counter() + seconds
    while not enough:
        for by, communicates in turns:
            found.setdefault(by if communicates else "alone", []).append(
                block(trainers[by], batch, communicates, control)
            )
        turns.reverse()
        mine = {"enough": float(len(found["nccl"]) >= 7 and time.perf_counter() > end)}
        enough = slowest(mine, control)["enough"] == 1
    ms = slowest({by: statistics.median(values) for by, values in found.items()}, control)
    ours = [by for by in groups if by != "nccl"]
    pairs = [pair for by in ours for pair in zip(losses[by], losses["nccl"], strict=True)]
    quartiles = {by: statistics.quantiles(values) for by, values in found.items()}
    return {"case": case.name, "ms": ms, "rounds": len(found["nccl"]), "losses": losses,
            "quartiles_apart_ms": slowest({by: each[2] - each[0] for by, each in quartiles.items()}, control),
            "ratios": {by: ms[by] / ms["nccl"] for by in ours},
            "losses_equal": all(abs(a - b) <= 2e-3 * abs(b) for a, b in pairs)}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="where the result goes")
    parser.add_argument("--seconds", type=float, default=8, help="for each case (default: 8); at least seven rounds")
    parser.add_argument("--max-ctas", default="", metavar="LIST", help="several back ends, as 0,16 (default: its own)")
    parser.add_argument("--cases", default="", metavar="LIST", help="those whose names have one of these, as sharded")
    arguments = parser.parse_args()
    words = [word for word in arguments.cases.split(",") if word] or [""]
    cases = [case for case in CASES if any(word in case.name for word in words)]
    if not cases:
        parser.error(f"--cases {arguments.cases}: no case has such a name")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    groups: dict[str, Any] = {"nccl": dist.group.WORLD}
    for most in arguments.max_ctas.split(","):
        options = waywiser.torch_backend.Options(max_ctas=int(most)) if most else None
        groups[f"waywiser {most}".strip()] = dist.new_group(backend="waywiser", pg_options=options)
    control = dist.new_group(backend="gloo")
    rows = []
    for case in cases:
        rows.append(run(case, groups, control, device, arguments.seconds))
        torch.cuda.empty_cache()
        if dist.get_rank() == 0:
            row = rows[-1]
            times = ", ".join(f"{by} {row['ms'][by]:.2f} ms ({ratio:.3f})" for by, ratio in row["ratios"].items())
            losses = "equal" if row["losses_equal"] else row["losses"]
            alone = f", without communication {row['ms']['alone']:.2f} ms" if "alone" in row["ms"] else ""
            print(f"{case.name}: NCCL {row['ms']['nccl']:.2f} ms, {times}{alone}; losses {losses}", flush=True)
    means = {by: statistics.geometric_mean(row["ratios"][by] for row in rows) for by in groups if by != "nccl"}
    if dist.get_rank() == 0:
        print("geometric means of the ratios: " + ", ".join(f"{by} {mean:.3f}" for by, mean in means.items()))
        if arguments.json:
            about = {
                "pytorch": torch.__version__,
                "device": torch.cuda.get_device_name(),
                "ranks": dist.get_world_size(),
            }
            with open(arguments.json, "w") as file:
                json.dump({**about, "rows": rows, "geometric_means": means}, file, indent=1)
    right = all(row["losses_equal"] for row in rows)
    dist.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
