"""Operations of the back end that have begun, and how tensors become arrays of a group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist

from waywiser.group import Future

Tensor = Any
_OPERATIONS = (
    (dist.ReduceOp.SUM, "sum"),
    (dist.ReduceOp.AVG, "avg"),
    (dist.ReduceOp.PRODUCT, "prod"),
    (dist.ReduceOp.MIN, "min"),
    (dist.ReduceOp.MAX, "max"),
    (dist.ReduceOp.BAND, "band"),
    (dist.ReduceOp.BOR, "bor"),
    (dist.ReduceOp.BXOR, "bxor"),
)
# True + True is True.
_OF_BOOLS = {"sum": "max", "prod": "min", "min": "min", "max": "max", "band": "min", "bor": "max", "bxor": "bxor"}


class Work(dist._Work):  # type: ignore[misc]
    """An operation that has begun: futures of the host, or what is enqueued in a stream of a GPU.

    `then`: what is left to do when the futures are complete. `enqueued`: the event after it in `stream`, which is
    another one than the caller's.
    """

    def __init__(
        self, futures: Sequence[Future[Any]], result: list[Tensor], lock: threading.RLock,
        then: Sequence[Callable[[], object]] = (), enqueued: Any = None, stream: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._futures = list(futures)
        self._then = list(then)
        self._result = result
        self._lock = lock
        self._device = device_of(result)
        self._enqueued = enqueued
        self.stream = stream

    @classmethod
    def of_all(cls, works: Sequence[Work], lock: threading.RLock) -> Work:
        """One for several, which began in this order: on a GPU each waits for those before it."""
        futures = [future for work in works for future in work._futures]
        then = [each for work in works for each in work._then]
        result = [tensor for work in works for tensor in work._result]
        events = [work._enqueued for work in works if work._enqueued is not None]
        stream = works[-1].stream if events and not futures else None
        return cls(futures, result, lock, then, events[-1] if events else None, stream)

    def is_completed(self) -> bool:
        with self._lock:
            self._futures = [each for each in self._futures if not each.done()]
            if not self._futures:
                self._finish()
            return not self._futures and (self._enqueued is None or self._enqueued.query())

    def is_success(self) -> bool:
        return self.is_completed()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """On a GPU the current stream waits, not the host. The group's own timeout applies."""
        with self._lock:
            while self._futures:
                self._futures[0].wait()
                del self._futures[0]
            self._finish()
        if self._enqueued is not None:
            torch.cuda.current_stream(self._device).wait_event(self._enqueued)
        return True

    def _finish(self) -> None:
        while self._then:
            self._then.pop(0)()

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list[Tensor]:
        return self._result

    def exception(self) -> None:
        """None: an operation that fails raises in wait() and is_completed()."""

    def get_future(self) -> Any:
        """A complete future: PyTorch would wait for an incomplete one without letting the group progress. On a GPU who
        waits for it waits for the stream of the operation.
        """
        future = torch.futures.Future(devices=[] if self._device is None else [self._device])
        if self.stream is None:
            self.wait()
        with torch.cuda.stream(self.stream):
            future.set_result(self._result)
        return future


class AsyncStream:
    """A stream of one GPU for asynchronous operations."""

    def __init__(self, device: Any) -> None:
        self.stream = torch.cuda.Stream(device, priority=-1)
        self._device = device
        self._before = torch.cuda.Event()

    def enqueue(
        self, call: Callable[[], object], call_on: Callable[[Any], object] | None, tensors: Iterable[Tensor]
    ) -> Any:  # fmt: skip
        """After all that the current stream has now. Returns the event after it."""
        self._before.record(torch.cuda.current_stream(self._device))
        self.stream.wait_event(self._before)
        if call_on is not None:
            call_on(self.stream)
        else:
            with torch.cuda.stream(self.stream):
                call()
        for each in tensors:  # their memory is not used again before this operation has ended
            each.record_stream(self.stream)
        return self.stream.record_event()


def device_of(tensors: Sequence[Tensor]) -> Any:
    """The GPU of the tensors; None: they are in host memory."""
    return next((each.device for each in tensors if each.is_cuda), None)


def plain(tensor: Tensor) -> Tensor:
    """The same memory, without autograd history."""
    return tensor.detach()


def in_order(tensor: Tensor) -> Tensor:
    """The tensor, or a copy in C order if it has another one (channels_last, transposed, with gaps, expanded) or is the
    conjugate or negative of its memory: ranks may keep the same values in different orders.
    """
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def give_back(target: Tensor, ordered: Tensor) -> None:
    """Copies what in_order() has made of a tensor, and a call has filled, to the tensor."""
    if ordered is target:
        return
    extent = 0
    for stride, size in sorted(zip(target.stride(), target.shape, strict=True)):
        if size > 1 and stride <= extent and target.numel():
            raise ValueError(f"a result of shape {tuple(target.shape)} and strides {target.stride()}: elements overlap")
        extent += stride * (size - 1)
    target.copy_(ordered)


def only(tensors: list[Tensor], what: str) -> Tensor:
    if len(tensors) != 1:
        raise ValueError(f"{what} of {len(tensors)} tensors at once: one process has one tensor in a call")
    return plain(tensors[0])


def joined(tensors: list[Tensor]) -> Tensor:
    return torch.cat([plain(each).reshape(-1) for each in tensors])


def share_out(blocks: Tensor, targets: list[Tensor]) -> None:
    parts = blocks.reshape(-1).split([each.numel() for each in targets])
    for target, part in zip(targets, parts, strict=True):
        plain(target).copy_(part.view(target.shape))


def refuse_overlap(what: str, outputs: Sequence[Tensor], inputs: Sequence[Tensor] = ()) -> None:
    """Raises ValueError if an output shares memory with another output, or with the input of another one."""
    spans = sorted(_bytes_of(each) for each in (*outputs, *inputs))
    if all(end <= after for (_, end), (after, _) in pairwise(spans)):
        return
    for i, output in enumerate(outputs):
        others = [*outputs[:i], *(each for k, each in enumerate(inputs) if k != i)]
        if any(_share_memory(output, each) for each in others):
            raise ValueError(f"{what}: output {i} overlaps another tensor of the call")


def _share_memory(a: Tensor, b: Tensor) -> bool:
    """Whether elements of the two have bytes in common; exactly, also for views whose elements lie apart."""
    (first, end), (other, other_end) = _bytes_of(a), _bytes_of(b)
    if end <= other or other_end <= first:
        return False
    if a.is_contiguous() and b.is_contiguous():
        return True
    start = min(first, other)
    marks = torch.zeros(max(end, other_end) - start, dtype=torch.bool)
    _marks_of(marks, a, first - start).fill_(True)
    return bool(_marks_of(marks, b, other - start).any())


def _bytes_of(tensor: Tensor) -> tuple[int, int]:
    """Where its elements begin and end; empty tensors have no bytes."""
    first = tensor.data_ptr()
    if tensor.is_contiguous():
        return first, first + tensor.numel() * tensor.element_size()
    if tensor.numel() == 0:
        return first, first
    last = sum((count - 1) * stride for count, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return first, first + (last + 1) * tensor.element_size()


def _marks_of(marks: Tensor, tensor: Tensor, offset: int) -> Tensor:
    size = tensor.element_size()
    strides = [stride * size for stride in tensor.stride()]
    return marks.as_strided((*tensor.shape, size), (*strides, 1), offset)


def elements(tensor: Tensor, rows: Sequence[int], size: int) -> list[int]:
    """Elements of each rank's block; equal blocks if no rows are given."""
    if not rows:
        return [tensor.numel() // size] * size
    row = tensor.numel() // max(1, tensor.shape[0])
    return [row * count for count in rows]


def operation(op: Any, tensor: Tensor) -> str:
    name = next((name for known, name in _OPERATIONS if op == known), None)
    if name is not None and tensor.dtype == torch.bool:
        name = _OF_BOOLS.get(name)
    if name is None:
        raise ValueError(
            f"waywiser has no {_name(op)} of {tensor.dtype}: SUM, AVG, PRODUCT, MIN and MAX of numbers, "
            "BAND, BOR and BXOR of integers, PREMUL_SUM of floating-point numbers"
        )
    return name


def scaled(op: Any, tensor: Tensor) -> tuple[Any, Tensor]:
    """SUM of a copy that is multiplied by the factor, for PREMUL_SUM; else the two as they are."""
    kind = getattr(dist.ReduceOp, "PREMUL_SUM", None)
    if kind is None or op != kind or not (tensor.is_floating_point() or tensor.is_complex()):
        return op, tensor
    _, factor = op.__getstate__()
    return dist.ReduceOp.SUM, tensor * (factor.to(tensor.dtype) if isinstance(factor, torch.Tensor) else factor)


def _name(op: Any) -> str:
    """ "BAND"; PyTorch shows an address for an object with this operation."""
    kinds = ("PREMUL_SUM", *(name for _, name in _OPERATIONS))
    return next((kind for kind in kinds if op == getattr(dist.ReduceOp, kind, None)), str(op))
