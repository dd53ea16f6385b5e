"""The ways in which programs of PyTorch make process groups: with a device, beside NCCL or Gloo, twice, by splitting.

On two GPUs; without them on hosts, where the ways that need a GPU are left out.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from rank_jobs import HAS_TORCH, TORCHRUN, runtime_folder
from torch_forms import form

__all__ = ["form", "runtime_folder"]
pytestmark = [
    pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed"),
    pytest.mark.usefixtures("form"),
]


def gpus() -> int:
    if not HAS_TORCH:
        return 0
    import torch

    return int(torch.cuda.device_count())


PROGRAM = """
import os, sys, torch, torch.distributed as dist, waywiser.torch_backend
rank, on_gpu = int(os.environ["RANK"]), sys.argv[1] == "gpu"
# Before PyTorch 2.14 exception() of a work in C++, of NCCL too, is a TypeError.
SHOWS = hasattr(dist, "get_backend_impl") or waywiser.torch_backend.why_python()
device = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
if on_gpu: torch.cuda.set_device(device)


def check(group=None):
    x = torch.full((5,), rank + 1.0, device=device)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [3.0] * 5, x
    for work in (dist.all_reduce(x, group=group, async_op=True), dist.broadcast(x, 0, group, async_op=True)):
        work.wait()
        assert not SHOWS or work.exception() is None


WAY
dist.destroy_process_group()
print(f"rank {rank} is through", flush=True)
"""
ANYWHERE = {
    "plain": 'dist.init_process_group("waywiser")\ncheck()',
    "one of two": 'dist.init_process_group("cpu:gloo,cuda:waywiser" if on_gpu else "cpu:waywiser,cuda:gloo")\ncheck()',
    "beside Gloo": 'dist.init_process_group("gloo")\ncheck(dist.new_group(backend="waywiser"))',
    "twice": 'dist.init_process_group("waywiser")\ncheck()\ndist.destroy_process_group()\n'
    'dist.init_process_group("waywiser")\ncheck()',
    "compared by PyTorch": """
if not waywiser.torch_backend.why_python(): dist.set_debug_level(dist.DebugLevel.DETAIL)
dist.init_process_group("waywiser")
check()
dist.reduce(torch.ones(3, device=device), 1)
dist.send(torch.ones(2, device=device), 1) if rank == 0 else dist.recv(torch.ones(2, device=device), 0)
check()""",
    "split_group": """
dist.init_process_group("waywiser")
try: dist.split_group(dist.group.WORLD, [[0], [1]])
except RuntimeError as error: assert "split" in str(error), error
else: raise AssertionError("it was not refused")
check()""",
}
WITH_GPUS = {
    "device_id": 'dist.init_process_group("waywiser", device_id=device)\ncheck()',
    "new_group with device_id": 'dist.init_process_group("waywiser")\n'
    'check(dist.new_group(backend="waywiser", device_id=device))',
    "beside NCCL with device_id": 'dist.init_process_group("nccl", device_id=device)\n'
    'check(dist.new_group(backend="waywiser"))\ncheck()',
    "split_group of NCCL": """
dist.init_process_group("nccl", device_id=device)
ours = dist.new_group(backend="waywiser")
check(ours)
check(dist.split_group(dist.group.WORLD, [[0, 1]]))
check(ours)""",
    "coalesced": """
dist.init_process_group("waywiser", device_id=device)
x, six, half = torch.ones(3, device=device), torch.zeros(6, device=device), torch.zeros(3, device=device)
with dist._coalescing_manager(device=device): dist.all_reduce(x)
with dist._coalescing_manager(device=device): dist.all_gather_into_tensor(six, x)
with dist._coalescing_manager(device=device): dist.reduce_scatter_tensor(half, six)
assert x.tolist() == [2] * 3 and six.tolist() == [2] * 6 and half.tolist() == [4] * 3""",
}


def run_by(way: str, folder: Path, place: str) -> None:
    program = folder / "program.py"
    program.write_text(PROGRAM.replace("WAY", way))
    command = [*TORCHRUN, "--nproc-per-node", "2", str(program), place]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(re.findall(r"rank \d is through", done.stdout)) == ["rank 0 is through", "rank 1 is through"]


@pytest.mark.parametrize("way", ANYWHERE)
def test_on_hosts(way: str, tmp_path: Path) -> None:
    run_by(ANYWHERE[way], tmp_path, "host")


@pytest.mark.skipif(gpus() < 2, reason="two GPUs are needed")
@pytest.mark.parametrize("way", [*ANYWHERE, *WITH_GPUS])
def test_on_gpus(way: str, tmp_path: Path) -> None:
    run_by({**ANYWHERE, **WITH_GPUS}[way], tmp_path, "gpu")
