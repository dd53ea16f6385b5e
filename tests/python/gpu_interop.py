"""Run by torchrun, a process for each GPU: tensors of PyTorch and arrays of CuPy in a Group and in the back end,
compared with PyTorch; streams, graphs, windows; times beside NCCL. Rank 0 prints a table and writes JSON.

torchrun --standalone --nproc-per-node 4 gpu_interop.py [RESULT.json]       (WAYWISER_INTEROP_DEVICE=cpu: what there is
without a GPU, beside Gloo; WAYWISER_TORCH_FORM=python or cpp: the form of the back end)
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from gpu_interop_asynchronous import asynchronous
from gpu_interop_times import times
from gpu_interop_values import COUNTS, DEVICE, ON_GPU, OPS, RANK, SIZE, TYPES, combined, equal, made

import waywiser as ww
import waywiser.torch_backend

rows: list[dict[str, Any]] = []


def check(what: str, function: Callable[[], None]) -> None:
    """One line of the table."""
    problem = ""
    try:
        function()
    except Exception as error:
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    problems: list[Any] = [None] * SIZE
    dist.all_gather_object(problems, problem, group=plain)
    first = next((f"rank {rank}: {text}" for rank, text in enumerate(problems) if text), "")
    rows.append({"check": what, "passed": not first, "problem": first})


def group_calls(dtype: torch.dtype) -> None:
    for count in COUNTS:
        mine = made(count, dtype)
        for op in OPS:
            result = group.all_reduce(mine, op=op)
            assert result.device == mine.device
            equal(result, combined(count, dtype, op))
        everyone = torch.stack([made(count, dtype, rank) for rank in range(SIZE)])
        equal(group.all_gather(mine), everyone)
        equal(group.broadcast(made(count, dtype), root=SIZE - 1), everyone[-1])
        blocks = made(count * SIZE, dtype).view(SIZE, count)
        equal(group.all_to_all(blocks), torch.stack([made(count * SIZE, dtype, rank).view(SIZE, count)[RANK]
                                                     for rank in range(SIZE)]))  # fmt: skip
        equal(group.reduce_scatter(blocks.flatten()), combined(count * SIZE, dtype, "sum").view(SIZE, count)[RANK])
        right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
        equal(group.sendrecv(mine, right, torch.empty_like(mine), left), everyone[left])
        gathered = group.gather(mine, root=0)
        if RANK == 0:
            equal(gathered, everyone)
        equal(group.scatter(gathered, torch.empty_like(mine)), mine)


def backend_calls(dtype: torch.dtype) -> None:
    for count in COUNTS:
        for op, torch_op in OPS.items():
            data = made(count, dtype)
            work = dist.all_reduce(data, torch_op, async_op=True)
            work.wait()
            equal(data, combined(count, dtype, op))
        mine = made(count, dtype)
        everyone = [made(count, dtype, rank) for rank in range(SIZE)]
        outputs = [torch.empty_like(mine) for _ in range(SIZE)]
        dist.all_gather(outputs, mine)
        equal(torch.stack(outputs), torch.stack(everyone))
        dist.all_gather_into_tensor(flat := torch.empty(count * SIZE, dtype=dtype, device=DEVICE), mine)
        equal(flat, torch.cat(everyone))
        dist.broadcast(data := made(count, dtype), 0)
        equal(data, everyone[0])
        blocks = made(count * SIZE, dtype)
        dist.reduce_scatter_tensor(part := torch.empty_like(mine), blocks)
        equal(part, combined(count * SIZE, dtype, "sum").view(SIZE, count)[RANK])
        dist.all_to_all_single(flat, blocks)
        equal(flat, torch.cat([made(count * SIZE, dtype, rank).view(SIZE, count)[RANK] for rank in range(SIZE)]))
        right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
        requests = [dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, part, left)]
        for request in dist.batch_isend_irecv(requests):
            request.wait()
        equal(part, everyone[left])
    dist.barrier()


def peers_agree(dtype: torch.dtype) -> None:
    """The same bits as NCCL (Gloo without GPUs) on numbers that are not whole."""
    torch.manual_seed(RANK)
    data = torch.rand(5000, dtype=torch.float64).to(dtype).to(DEVICE)
    ours, theirs = data.clone(), data.clone()
    dist.all_reduce(ours, dist.ReduceOp.MAX)
    dist.all_reduce(theirs, dist.ReduceOp.MAX, group=peer)
    equal(ours, theirs)


def training() -> None:
    torch.manual_seed(RANK)
    inputs, models = torch.rand(16, 3, device=DEVICE), []
    for chosen in (None, peer):
        torch.manual_seed(7)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2).to(DEVICE), process_group=chosen)
        model(inputs).square().sum().backward()
        models.append(model.module.weight.grad)
    torch.testing.assert_close(models[0], models[1])


def streams() -> None:
    """The side stream is busy before it writes: a call that does not wait for it would read old data."""
    for given in (None, "object", "number"):
        side = torch.cuda.Stream()
        data, total = torch.zeros(1000, device=DEVICE), torch.empty(1000, device=DEVICE)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(100_000_000)
            data.fill_(RANK + 1)
            if given is None:
                group.all_reduce(data, total)
        if given is not None:
            group.all_reduce(data, total, stream=side if given == "object" else side.cuda_stream)
        rows.append({"fact": f"all_reduce on a stream ({given or 'current'}) returned before the stream was through",
                     "value": not side.query()})  # fmt: skip
        with torch.cuda.stream(side):
            result = total * 2
        side.synchronize()
        equal(result, torch.full_like(result, SIZE * (SIZE + 1)))


def messages_on_streams() -> None:
    side = torch.cuda.Stream()
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for count in (1, 1000, 1 << 20):
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            mine = made(count, torch.float32)
            back = torch.empty_like(mine)
            group.sendrecv(mine, right, back, left, stream=side)
        group.synchronize(back, stream=side)
        equal(back, made(count, torch.float32, left))


def graphs() -> None:
    values, total = torch.full((3000,), RANK + 1.0, device=DEVICE), torch.empty(3000, device=DEVICE)
    group.all_reduce(values, total)
    dist.all_reduce(values.clone())
    torch.cuda.synchronize()
    at_root, stream = torch.zeros(3000, device=DEVICE), torch.cuda.current_stream()
    mine, above, below = (torch.full((500,), value, device=DEVICE) for value in (RANK + 1.0, 0.0, 0.0))
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    around = [ww.Exchange(right, mine, above, 1, 2), ww.Exchange(left, mine, below, 2, 1)]
    group.neighbor_exchange(around, stream=stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            group.all_reduce(values, total)
            values.copy_(total / SIZE)
        dist.all_reduce(total)
        group.reduce(total, at_root, root=0)
        group.neighbor_exchange(around, stream=torch.cuda.current_stream())
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
    equal(total, torch.full_like(total, SIZE * SIZE * (SIZE + 1) / 2))
    equal(at_root, total * (SIZE if RANK == 0 else 0))
    equal(above, torch.full_like(above, right + 1.0))
    equal(below, torch.full_like(below, left + 1.0))


def cupy_arrays() -> None:
    import cupy

    with cupy.cuda.Device(DEVICE.index):
        for dtype in ("f8", "f4", "f2", "i1", "i2", "i4", "i8", "u1"):
            with cupy.cuda.Stream(non_blocking=True) as stream:
                mine = (cupy.arange(5000) * 7 + 3 * RANK).astype(dtype) % cupy.asarray(4, dtype)
                total = group.all_reduce(mine)
                assert isinstance(total, cupy.ndarray) and total.device.id == DEVICE.index
                everyone = group.all_gather(mine)
                stream.synchronize()
            wanted = sum((cupy.arange(5000) * 7 + 3 * rank).astype(dtype) % cupy.asarray(4, dtype)
                         for rank in range(SIZE))  # fmt: skip
            assert bool((total == wanted.astype(dtype)).all()), dtype
            assert bool((everyone[RANK] == mine).all()), dtype


def windows() -> None:
    gpus = ww.cuda_gpus()
    tried = (gpus.empty(1024, "f4", gpu) for gpu in range(len(gpus)))
    memory = next(each for each in tried if each.__dlpack_device__()[1] == DEVICE.index)  # CUDA's own number
    view = torch.from_dlpack(memory)
    assert view.is_cuda and view.data_ptr() == memory.__cuda_array_interface__["data"][0]
    view.zero_()
    torch.cuda.synchronize()
    window = group.expose(memory)
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    group.put(torch.full((100,), RANK + 1.0, device=DEVICE), window, right, 64)
    group.signal(window, right, 4088, 3)
    group.wait(window, 4088, 3)
    equal(view[16:116].clone(), torch.full((100,), left + 1.0, device=DEVICE))
    group.barrier()


def show() -> None:
    for row in rows:
        if "check" in row:
            print(f"{'ok ' if row['passed'] else 'BAD'} {row['check']}  {row['problem']}")
        elif "fact" in row:
            print(f"    {row['fact']}: {row['value']}")
    timed_rows = [row for row in rows if "us" in row]
    if timed_rows:
        names = list(timed_rows[0]["us"])
        print("all_reduce of float32, microseconds of a call (slowest rank, median of 7, back to back)")
        print(f"{'bytes':>10} " + " ".join(f"{name:>15}" for name in names))
        for row in timed_rows:
            print(f"{row['bytes']:>10} " + " ".join(f"{row['us'][name]:>15.1f}" for name in names))


def free_mib() -> int:
    torch.cuda.synchronize()
    return int(torch.cuda.mem_get_info()[0] >> 20)


def begin() -> None:
    """Makes the default group; notes how long that takes with the first all_reduce, and what memory it takes."""
    if ON_GPU:
        torch.cuda.set_device(DEVICE)
    first = torch.ones(3, device=DEVICE)  # CUDA's context is not the back end's
    free = free_mib() if ON_GPU else 0
    start = time.perf_counter()
    dist.init_process_group("waywiser")
    dist.all_reduce(first)
    assert first.tolist() == [SIZE] * 3
    rows.append({"fact": "init_process_group and the first all_reduce, seconds", "value": time.perf_counter() - start})
    if ON_GPU:
        rows.append({"fact": "memory of the GPU that these take, MiB", "value": free - free_mib()})


begin()
plain = dist.new_group(backend="gloo")  # for messages of this program
peer = dist.new_group(backend="nccl") if ON_GPU else plain
store = dist.PrefixStore("interop", dist.distributed_c10d._get_default_store())
group = ww.from_torch(store, RANK, SIZE)
for each in TYPES:
    check(f"Group, tensors of {str(each).removeprefix('torch.')}", lambda each=each: group_calls(each))
for each in TYPES:
    check(f"back end, {str(each).removeprefix('torch.')}", lambda each=each: backend_calls(each))
for each in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
    check(f"same bits as the peer, {str(each).removeprefix('torch.')}", lambda each=each: peers_agree(each))
check("DistributedDataParallel, gradients as the peer's", training)
if ON_GPU:
    check("streams: current, given as object, given as number", streams)
    check("asynchronous calls of the back end beside the current stream", lambda: rows.append(asynchronous()))
    check("messages on a stream", messages_on_streams)
    check("CUDA graph of Group and back end, 20 replays", graphs)
    check("CuPy arrays of all types, on streams of their own", cupy_arrays)
    check("windows: GpuArray as a tensor, put, signal, wait", windows)
    check("times", lambda: rows.extend(times(group, peer, plain)))
if RANK == 0:
    show()
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            json.dump({"ranks": SIZE, "device": str(DEVICE.type), "rows": rows}, file, indent=1)
failed = [row for row in rows if not row.get("passed", True)]
group.close()
dist.destroy_process_group()
sys.exit(1 if failed else 0)
