"""A back end of torch.distributed: `import waywiser.torch_backend`, then `init_process_group("waywiser")`.

Tensors in host memory and on GPUs. On the host an operation is complete when `wait()` returns, and nothing moves
unless a process is inside a call, so asynchronous operations go on in `wait()`. On GPUs collectives are enqueued in the
current stream.

An operation on a GPU whose peer is late, gone or in another call never counts as done: a line on stderr says why, and
every later call of CUDA raises. `init_process_group("waywiser", pg_options=Options(on_failure="abort"))`, or the
environment variable WAYWISER_ON_FAILURE=abort, ends the process instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist

from waywiser.group import Future, Group, from_torch

NAME = "waywiser"
Tensor = Any
_OPERATIONS = (
    (dist.ReduceOp.SUM, "sum"),
    (dist.ReduceOp.AVG, "avg"),
    (dist.ReduceOp.PRODUCT, "prod"),
    (dist.ReduceOp.MIN, "min"),
    (dist.ReduceOp.MAX, "max"),
)
# True + True is True.
_OF_BOOLS = {"sum": "max", "prod": "min", "min": "min", "max": "max"}


@dataclass
class Options:
    """The `pg_options` of init_process_group and new_group."""

    on_failure: Literal["raise", "abort"] | None = None
    encrypt: bool | None = None


class Work(dist._Work):  # type: ignore[misc]
    """An operation that has begun: futures of the host, or what is enqueued in the current stream of a GPU."""

    def __init__(self, futures: Sequence[Future[Any]], result: list[Tensor], lock: threading.RLock) -> None:
        super().__init__()
        self._futures = list(futures)
        self._result = result
        self._lock = lock
        self._device = next((each.device for each in result if each.is_cuda), None)
        self._enqueued = None if self._device is None else torch.cuda.current_stream(self._device).record_event()

    def is_completed(self) -> bool:
        with self._lock:
            self._futures = [each for each in self._futures if not each.done()]
            return not self._futures and (self._enqueued is None or self._enqueued.query())

    def is_success(self) -> bool:
        return self.is_completed()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """On a GPU the current stream waits, not the host. The group's own timeout holds."""
        with self._lock:
            while self._futures:
                self._futures[0].wait()
                del self._futures[0]
        if self._enqueued is not None:
            torch.cuda.current_stream(self._device).wait_event(self._enqueued)
        return True

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list[Tensor]:
        return self._result

    def get_future(self) -> Any:
        """A complete one: PyTorch would wait for it without giving the group a turn."""
        self.wait()
        future = torch.futures.Future(devices=[] if self._device is None else [self._device])
        future.set_result(self._result)
        return future


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """torch.distributed's calls as those of a Group."""

    def __init__(self, group: Group, store: Any) -> None:
        try:
            super().__init__(store, group.rank, group.size)  # symmetric memory asks for it
        except TypeError:
            super().__init__(group.rank, group.size)
            _refuse_symmetric_memory()
        self.group = group
        self._lock = threading.RLock()  # autograd has threads of its own
        self._name = ""

    def getBackendName(self) -> str:
        return NAME

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def getGroupName(self) -> str:
        return self._name

    def getRank(self) -> int:
        return self.group.rank

    def getSize(self) -> int:
        return self.group.size

    def shutdown(self) -> None:
        """Waits until all ranks have come here."""
        with self._lock:
            self.group.close()

    def set_timeout(self, timeout: timedelta) -> None:
        self.group.timeout = timeout.total_seconds()

    def barrier(self, opts: Any = None) -> Work:
        """Also waits for earlier work of the current stream."""
        if torch.cuda.is_initialized():
            torch.cuda.current_stream().synchronize()
        return self._done([], lambda: self.group.barrier())

    def broadcast(self, tensors: list[Tensor], opts: Any) -> Work:
        data = _only(tensors, "broadcast")
        return self._begun("broadcast", data, data, opts.rootRank)

    def allreduce(self, tensors: list[Tensor], opts: Any) -> Work:
        data = _only(tensors, "all_reduce")
        return self._begun("all_reduce", data, data, data, _operation(opts.reduceOp, data))

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any) -> Work:
        return self._together([self.allreduce([each], opts) for each in tensors])

    def reduce(self, tensors: list[Tensor], opts: Any) -> Work:
        data = _only(tensors, "reduce")
        out = data if self.group.rank == opts.rootRank else None
        op = _operation(opts.reduceOp, data)
        return self._begun("reduce", data, data, out, op, opts.rootRank)

    def _allgather_base(self, output: Tensor, data: Tensor, opts: Any = None) -> Work:
        return self._begun("all_gather", output, _plain(data), _plain(output))

    def allgather(self, outputs: list[list[Tensor]], tensors: list[Tensor], opts: Any = None) -> Work:
        data, targets = _only(tensors, "all_gather"), outputs[0]

        def gather() -> None:
            sizes = [each.numel() for each in targets]
            _share_out(self.group.all_gather(data, counts=None if len(set(sizes)) == 1 else sizes), targets)

        return self._done(targets, gather)

    def allgather_into_tensor_coalesced(
        self, outputs: list[Tensor], tensors: list[Tensor], opts: Any = None
    ) -> Work:  # fmt: skip
        return self._together([self._allgather_base(*each) for each in zip(outputs, tensors, strict=True)])

    def gather(self, outputs: list[list[Tensor]], tensors: list[Tensor], opts: Any) -> Work:
        data = _only(tensors, "gather")
        targets = outputs[0] if outputs else []

        def gather() -> None:
            blocks = self.group.gather(data, root=opts.rootRank)
            if blocks is not None:
                _share_out(blocks, targets)

        return self._done(targets, gather)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work:
        output = _only(outputs, "scatter")

        def scatter() -> None:
            blocks = _joined(inputs[0]) if self.group.rank == opts.rootRank else None
            self.group.scatter(blocks, output, opts.rootRank)

        return self._done([output], scatter)

    def _reduce_scatter_base(self, output: Tensor, data: Tensor, opts: Any) -> Work:
        op = _operation(opts.reduceOp, data)
        return self._begun("reduce_scatter", output, _plain(data), _plain(output), op)

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work:
        return self._reduce_scatter_base(_only(outputs, "reduce_scatter"), _joined(inputs[0]), opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any
    ) -> Work:  # fmt: skip
        return self._together([self._reduce_scatter_base(*each, opts) for each in zip(outputs, inputs, strict=True)])

    def alltoall_base(
        self, output: Tensor, data: Tensor, take: Sequence[int], give: Sequence[int], opts: Any = None
    ) -> Work:  # fmt: skip
        """Counts are rows of the first dimension."""
        if not take and not give:
            return self._begun("all_to_all", output, _plain(data), _plain(output))
        gives, takes = _elements(data, give, self.group.size), _elements(output, take, self.group.size)
        return self._done([output], lambda: self.group.all_to_all_v(_plain(data), gives, _plain(output), takes))

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        def exchange() -> None:
            takes = [each.numel() for each in outputs]
            blocks = outputs[0].new_empty(sum(takes))
            self.group.all_to_all_v(_joined(inputs), [each.numel() for each in inputs], blocks, takes)
            _share_out(blocks, outputs)

        return self._done(outputs, exchange)

    def send(self, tensors: list[Tensor], to: int, tag: int) -> Work:
        data = _only(tensors, "send").contiguous()
        with self._lock:
            return Work([self.group.start_send(data, to, tag)], [], self._lock)

    def recv(self, tensors: list[Tensor], source: int, tag: int) -> Work:
        data = _only(tensors, "recv")
        with self._lock:
            return Work([self.group.start_recv(data, source, tag)], [data], self._lock)

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> Work:
        raise NotImplementedError("waywiser receives from a rank that is named: recv(..., src=RANK)")

    def _begun(self, name: str, result: Tensor, *arguments: Any) -> Work:
        """A collective of the group: on a GPU it is enqueued, on the host it goes on in the background."""
        with self._lock:
            if result.is_cuda:
                getattr(self.group, name)(*arguments)
                return Work([], [result], self._lock)
            return Work([getattr(self.group, f"start_{name}")(*arguments)], [result], self._lock)

    def _together(self, works: list[Work]) -> Work:
        futures = [future for work in works for future in work._futures]
        return Work(futures, [tensor for work in works for tensor in work._result], self._lock)

    def _done(self, result: list[Tensor], call: Callable[[], object]) -> Work:
        with self._lock:
            call()
        return Work([], result, self._lock)


def _plain(tensor: Tensor) -> Tensor:
    """The same memory, without autograd history."""
    return tensor.detach()


def _only(tensors: list[Tensor], what: str) -> Tensor:
    if len(tensors) != 1:
        raise ValueError(f"{what} of {len(tensors)} tensors at once: one process has one tensor in a call")
    return _plain(tensors[0])


def _joined(tensors: list[Tensor]) -> Tensor:
    return torch.cat([_plain(each).reshape(-1) for each in tensors])


def _share_out(blocks: Tensor, targets: list[Tensor]) -> None:
    parts = blocks.reshape(-1).split([each.numel() for each in targets])
    for target, part in zip(targets, parts, strict=True):
        _plain(target).copy_(part.view(target.shape))


def _elements(tensor: Tensor, rows: Sequence[int], size: int) -> list[int]:
    """Elements of each rank's block; equal blocks where no rows are given."""
    if not rows:
        return [tensor.numel() // size] * size
    row = tensor.numel() // max(1, tensor.shape[0])
    return [row * count for count in rows]


def _operation(op: Any, tensor: Tensor) -> str:
    name = next((name for known, name in _OPERATIONS if op == known), None)
    if name is not None and tensor.dtype == torch.bool:
        name = _OF_BOOLS.get(name)
    if name is None:
        raise ValueError(f"waywiser has no {op} of {tensor.dtype}: SUM, AVG, PRODUCT, MIN and MAX of numbers")
    return name


def _refuse_symmetric_memory() -> None:
    """A process group that is made in Python has no store in this PyTorch, where symmetric memory would read one."""
    with suppress(ImportError, AttributeError):
        import torch.distributed._symmetric_memory as symmetric

        if hasattr(symmetric.rendezvous, "before_waywiser"):
            return
        before = symmetric.rendezvous

        def rendezvous(tensor: Tensor, group: Any) -> Any:
            name = group if isinstance(group, str) else group.group_name
            if isinstance(dist.distributed_c10d._resolve_process_group(name), ProcessGroup):
                raise RuntimeError(
                    "symmetric memory needs a group whose store it can use, and one of the back end waywiser has none:"
                    ' make a group with new_group(backend="nccl") for it'
                )
            return before(tensor, group)

        rendezvous.before_waywiser = before  # type: ignore[attr-defined]
        symmetric.rendezvous = rendezvous


def _create(about: Any, options: Options | None) -> ProcessGroup:
    options = options or Options()
    rank, size, seconds = about.group_rank, about.group_size, about.timeout.total_seconds()
    group = from_torch(
        about.store, rank, size, seconds, on_failure=options.on_failure, encrypt=options.encrypt
    )  # fmt: skip
    return ProcessGroup(group, about.store)


dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu", "cuda"])
