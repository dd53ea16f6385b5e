"""torch.distributed with backend="waywiser", compared with Gloo's results of the same calls."""

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

# Every call is made with each back end; the results must be equal.
PROGRAM = """
import threading, torch, torch.distributed as dist, waywiser.torch_backend
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("waywiser")
rank, size = dist.get_rank(), dist.get_world_size()
ours, gloo = dist.group.WORLD, dist.new_group(backend="gloo")
TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.int64, torch.uint8)
OF_PYTORCH = hasattr(dist, "get_backend_impl")  # its works never say that they are complete


def made(count, dtype, salt=0):
    return ((torch.arange(count) * 7 + 3 * rank + salt) % 5).to(dtype)


def everything(group, dtype):
    seen = []
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
        data = made(11, dtype)
        dist.all_reduce(data, op, group)
        seen.append(data)
    work = dist.all_reduce(data := made(11, dtype), group=group, async_op=True)
    work.wait()
    assert work.is_completed() or OF_PYTORCH
    seen.append(data)
    dist.reduce(data := made(4, dtype), 1, group=group)
    seen.append(data if rank == 1 else made(4, dtype))
    dist.broadcast(data := made(4, dtype), 1, group=group)
    seen.append(data)
    outputs = [torch.empty(3, dtype=dtype) for _ in range(size)]
    dist.all_gather(outputs, made(3, dtype), group=group)
    seen += outputs
    dist.all_gather_into_tensor(data := torch.empty(3 * size, dtype=dtype), made(3, dtype), group=group)
    seen.append(data)
    dist.gather(made(3, dtype), outputs if rank == 0 else None, 0, group=group)
    seen += outputs
    blocks = list(made(3 * size, dtype).split(3))
    dist.scatter(data := torch.empty(3, dtype=dtype), blocks if rank == 1 else None, 1, group=group)
    seen.append(data)
    rows = [rank + to + 1 for to in range(size)]
    data = torch.empty(sum(rows), 2, dtype=dtype)
    dist.all_to_all_single(data, made(2 * sum(rows), dtype).view(-1, 2), rows, rows, group=group)
    seen.append(data)
    dist.all_to_all_single(data := torch.empty(size, dtype=dtype), made(size, dtype), group=group)
    seen.append(data)
    right, left = (rank + 1) % size, (rank - 1) % size
    data = torch.empty(5, dtype=dtype)
    for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, made(5, dtype), right, group),
                                           dist.P2POp(dist.irecv, data, left, group)]):
        request.wait()
    seen.append(data)
    dist.barrier(group)
    return seen


for dtype in TYPES:
    for one, other in zip(everything(ours, dtype), everything(gloo, dtype), strict=True):
        assert torch.equal(one, other), (dtype, one, other)

# Calls that Gloo lacks, or lacks for some types.
for one, other in zip(everything(ours, torch.int16), everything(ours, torch.int64), strict=True):
    assert torch.equal(one, other.to(torch.int16))
for op, expected in ((dist.ReduceOp.SUM, [True, True, False]), (dist.ReduceOp.PRODUCT, [True, False, False])):
    dist.all_reduce(flags := torch.tensor([True, rank == 0, False]), op)
    assert flags.tolist() == expected
average = made(6, torch.float32)
dist.all_reduce(average, dist.ReduceOp.AVG)
assert torch.equal(average * size, sum((torch.arange(6) * 7 + 3 * each) % 5 for each in range(size)))
part = torch.empty(2)
dist.reduce_scatter_tensor(part, torch.arange(2.0 * size) + rank)
assert part.tolist() == [size * 2 * rank + 1, size * (2 * rank + 1) + 1]
dist.reduce_scatter(part, [torch.full((2,), float(block)) for block in range(size)])
assert part.tolist() == [size * rank] * 2
outputs = [torch.empty(rank + 1) for _ in range(size)]
dist.all_to_all(outputs, [torch.full((to + 1,), float(rank)) for to in range(size)])
assert [each.tolist() for each in outputs] == [[float(each)] * (rank + 1) for each in range(size)]

# What is built on them: objects, parts of the ranks, functional collectives, data-parallel training.
everyone = [None] * size
dist.all_gather_object(everyone, {"rank": rank})
assert everyone == [{"rank": each} for each in range(size)]
alone = [dist.new_group([each]) for each in range(size)][rank]
dist.all_reduce(data := torch.ones(2), group=alone)
assert data.tolist() == [1, 1]
import torch.distributed._functional_collectives as functional
assert functional.all_reduce(torch.ones(2), "sum", dist.group.WORLD).tolist() == [size, size]
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(3, 2))
model(torch.ones(4, 3) * (rank + 1)).sum().backward()
assert model.module.weight.grad.tolist() == [[6.0] * 3] * 2

# Blocks of several sizes, and tensors in the order of channels_last.
blocks = [torch.full((to + 1,), float(to + 1)) for to in range(size)]
for op, factor in ((dist.ReduceOp.SUM, size), (dist.ReduceOp.AVG, 1), (dist.ReduceOp.MAX, 1)):
    dist.reduce_scatter(part := torch.empty(rank + 1), blocks, op)
    assert part.tolist() == [factor * (rank + 1)] * (rank + 1), (op, part)
for shape, order in (((2, 3, 4, 5), torch.channels_last), ((2, 3, 2, 2, 2), torch.channels_last_3d)):
    counted = torch.arange(float(torch.Size(shape).numel())).view(shape)
    image = (counted * (rank + 1)).to(memory_format=order)
    dist.all_reduce(image)
    assert torch.equal(image, counted * sum(range(size + 1))) and image.is_contiguous(memory_format=order)
    dist.broadcast(image.mul_(rank + 1), 1)
    assert torch.equal(image, counted * 2 * sum(range(size + 1)))
    copies = [torch.empty(shape) for _ in range(size)]
    dist.all_gather(copies, image.mul_(rank + 1))
    assert all(torch.equal(copy, copies[0] * (each + 1)) for each, copy in enumerate(copies))
    dist.reduce(image, 0)
    assert rank != 0 or torch.equal(image, copies[0] * sum(range(size + 1)))
for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
    dist.all_reduce(data := torch.ones(3).to(dtype))
    assert data.float().tolist() == [size] * 3
for op, of_all in ((dist.ReduceOp.BAND, 2), (dist.ReduceOp.BOR, 3), (dist.ReduceOp.BXOR, 2 * (size % 2) + 1)):
    dist.all_reduce(data := torch.tensor([2 + (rank == 0)]), op)
    assert data.item() == of_all, op
twice = dist._make_nccl_premul_sum(2.0)
dist.all_reduce(data := torch.ones(3) * (rank + 1), twice)
assert data.tolist() == [size * (size + 1.0)] * 3
dist.reduce_scatter_tensor(part := torch.empty(2), torch.ones(2 * size), twice)
assert part.tolist() == [2.0 * size] * 2
dist.reduce(data := torch.ones(3), 1, twice)
assert data.tolist() == ([2.0 * size] if rank == 1 else [1.0]) * 3
if not OF_PYTORCH:
    copies = [[torch.empty(3), torch.empty(2)] for _ in range(size)]
    dist.all_gather_coalesced(copies, [torch.ones(3) * rank, torch.ones(2) * (rank + 5)])
    assert [[one.tolist() for one in each] for each in copies] == [[[k] * 3, [k + 5] * 2] for k in range(size)]
with dist._coalescing_manager():
    dist.all_reduce(data := torch.ones(3))
    dist.all_reduce(more := torch.ones(2) * rank)
assert data.tolist() == [size] * 3 and more.tolist() == [sum(range(size))] * 2
sums = []
add_up = lambda: (dist.all_reduce(ones := torch.ones(3)), sums.extend(ones.tolist()))
threads = [threading.Thread(target=add_up) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sums == [size] * 6

for call, words in (
    (lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BXOR), "no bxor of float32, which is no integer"),
    (lambda: dist.all_reduce(torch.ones(2, dtype=torch.int32), twice), "no PREMUL_SUM of torch.int32"),
    (lambda: dist.recv(torch.ones(2)), "needs a source rank"),
):
    try:
        call()
    except Exception as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
dist.destroy_process_group()
print(f"rank {rank} is through", flush=True)
"""


# What builds on process groups by their devices, from PyTorch 2.14 on.
OF_DEVICES = """
import torch, torch.distributed as dist, waywiser.torch_backend
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

if not hasattr(dist, "get_backend_impl"):
    raise SystemExit(print("rank of an older PyTorch is through"))
dist.init_process_group("cpu:waywiser,cuda:gloo")
rank = dist.get_rank()
assert dist.get_backend_impl(device=torch.device("cpu")).name() == "waywiser"
mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("rows", "columns"))
dist.all_reduce(data := torch.ones(3) * (rank + 1), group=mesh.get_group("rows"))
assert data.tolist() == [3] * 3
table = distribute_tensor(torch.arange(8.0).view(4, 2), mesh, [Shard(0), Replicate()])
assert table.to_local().tolist() == torch.arange(8.0).view(4, 2)[2 * rank : 2 * rank + 2].tolist()
assert table.full_tensor().tolist() == torch.arange(8.0).view(4, 2).tolist()
assert table.sum().full_tensor().item() == 28
torch.manual_seed(1)
whole, sharded = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
sharded.load_state_dict(whole.state_dict())
fully_shard(sharded, mesh=mesh["rows"])
assert torch.equal(sharded(torch.ones(1, 4)), whole(torch.ones(1, 4)))
sharded(torch.ones(1, 4) * (2 * rank + 1)).sum().backward()
assert sharded.weight.grad.full_tensor().tolist() == [[2.0] * 4] * 2
dist.destroy_process_group()
print(f"rank {rank} is through", flush=True)
"""


# Every call gives the same values whatever the order in memory of each rank's tensors.
MEMORY_ORDERS = """
import itertools, torch, torch.distributed as dist, waywiser.torch_backend
dist.init_process_group("waywiser")
rank, other = dist.get_rank(), 1 - dist.get_rank()
SHAPE = (2, 3, 2, 4)
ORDERS = {
    "c": lambda t: t.clone(),
    "channels_last": lambda t: t.to(memory_format=torch.channels_last),
    "channels_last_3d": lambda t: t[None].contiguous(memory_format=torch.channels_last_3d)[0],
    "transposed": lambda t: t.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "gaps": lambda t: torch.empty(4, 3, 2, 9)[::2, :, :, 1:9:2].copy_(t),
}


def calls(order):
    def made(factor):
        return order((torch.arange(48.0) * factor).view(SHAPE))

    def wide():
        return torch.cat([made(rank + 1), made(rank + 3)])

    def by_order(t):
        if rank == 0: return t
        return t.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)

    dist.broadcast(t := made(rank + 1), 0); yield t
    dist.broadcast(t := made(rank + 1), 1); yield t
    dist.all_reduce(t := made(rank + 1)); yield t
    work = dist.all_reduce(t := made(rank + 1), async_op=True); work.wait(); yield t
    dist.reduce(t := made(rank + 1), 1); yield t if rank == 1 else None
    outs = [made(0), made(0)]
    dist.all_gather(outs, made(rank + 1)); yield from outs
    dist.gather(made(rank + 1), outs if rank == 0 else None, 0); yield outs[0]; yield outs[1]
    dist.scatter(t := made(0), [made(5), made(7)] if rank == 1 else None, 1); yield t
    dist.all_gather_into_tensor(t := by_order(torch.cat([made(0), made(0)])), made(rank + 1)); yield t
    dist.reduce_scatter_tensor(t := made(0), by_order(wide())); yield t
    dist.reduce_scatter(t := made(0), [made(rank + 1), made(rank + 2)]); yield t
    dist.all_to_all_single(t := by_order(wide() * 0), by_order(wide())); yield t
    dist.all_to_all_single(t := by_order(wide() * 0), by_order(wide()), [2, 2], [2, 2]); yield t
    dist.all_to_all(outs := [made(0), made(0)], [made(rank + 1), made(rank + 5)]); yield from outs
    work = dist.isend(made(rank + 1), other); dist.recv(t := made(0), other); work.wait(); yield t


for mine, theirs in itertools.product(ORDERS, ORDERS):
    order = ORDERS[mine if rank == 0 else theirs]
    for number, (found, right) in enumerate(zip(calls(order), calls(ORDERS["c"]), strict=True)):
        assert right is None or torch.equal(found, right), (mine, theirs, number, found, right)

# A result that cannot hold the values: an error there, and right values elsewhere.
for call in (dist.all_reduce, lambda t: dist.broadcast(t, 0),
             lambda t: dist.send(t, 1) if rank == 0 else dist.recv(t, 0),
             lambda t: dist.all_gather_into_tensor(t, torch.full((2,), rank + 1.0))):
    t = torch.arange(4.0) if rank == 0 else torch.ones(1).expand(4)
    try:
        call(t)
    except ValueError as error:
        assert rank == 1 and "elements overlap" in str(error)
    else:
        assert rank == 0
dist.destroy_process_group()
print(f"rank {rank} is through", flush=True)
"""


def run_with_torchrun(program: str, folder: Path) -> list[str]:
    """The lines "rank ... is through" of two ranks, sorted."""
    path = folder / "program.py"
    path.write_text(program)
    command = [*TORCHRUN, "--nproc-per-node", "2", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if line.startswith("[rank"))
    # Python is unbuffered there: a line and its end are written apart.
    return sorted(re.findall(r"rank \d is through|rank of an older PyTorch", done.stdout))


def test_every_call_gives_what_gloo_gives(tmp_path: Path) -> None:
    assert run_with_torchrun(PROGRAM, tmp_path) == ["rank 0 is through", "rank 1 is through"]


def test_the_order_in_memory_changes_no_value(tmp_path: Path) -> None:
    assert run_with_torchrun(MEMORY_ORDERS, tmp_path) == ["rank 0 is through", "rank 1 is through"]


def test_it_is_one_back_end_of_several_and_serves_meshes(tmp_path: Path) -> None:
    lines = run_with_torchrun(OF_DEVICES, tmp_path)
    if "older" in lines[0]:
        pytest.skip("PyTorch before 2.14 has no back ends that are written in Python")
    assert lines == ["rank 0 is through", "rank 1 is through"]
