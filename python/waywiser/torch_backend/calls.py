"""Implements torch.distributed's calls with those of a Group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch

from waywiser.group import Group
from waywiser.torch_backend.work import (
    AsyncStream,
    Tensor,
    Work,
    device_of,
    elements,
    give_back,
    in_order,
    joined,
    only,
    operation,
    plain,
    refuse_overlap,
    scaled,
    share_out,
)

NAME = "waywiser"


class Calls:
    """The methods that PyTorch calls, for a class that also derives from one of PyTorch's."""

    group: Group

    def attach(self, group: Group, lock: Any = None) -> None:
        self.group = group
        self._lock = lock or threading.RLock()  # autograd has threads of its own
        self._async_streams: dict[Any, AsyncStream] = {}  # of each GPU
        self._begun_together: list[Work] | None = None  # since start_coalescing

    def getBackendName(self) -> str:
        return NAME

    def shutdown(self) -> None:
        """Waits until all ranks have called it."""
        with self._lock:
            self.group.close()

    def set_timeout(self, timeout: timedelta) -> None:
        self.group.timeout = timeout.total_seconds()

    def barrier(self, opts: Any = None) -> Work:
        """Also waits for earlier work of the current stream, and for all that has begun."""
        if torch.cuda.is_initialized():
            torch.cuda.current_stream().synchronize()
        for own in self._async_streams.values():
            own.stream.synchronize()
        return self._done([], lambda: self.group.barrier())

    def broadcast(self, tensors: list[Tensor], opts: Any) -> Work:
        tensor = only(tensors, "broadcast")
        data = in_order(tensor)
        return self._begun("broadcast", opts, tensor, data, data, opts.rootRank)

    def allreduce(self, tensors: list[Tensor], opts: Any) -> Work:
        tensor = only(tensors, "all_reduce")
        out = in_order(tensor)
        op, data = scaled(opts.reduceOp, out)
        return self._begun("all_reduce", opts, tensor, out, data, out, operation(op, data))

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any) -> Work:
        refuse_overlap("all_reduce", tensors)
        return Work.of_all([self.allreduce([each], opts) for each in tensors], self._lock)

    def reduce(self, tensors: list[Tensor], opts: Any) -> Work:
        tensor = only(tensors, "reduce")
        out = in_order(tensor)
        is_root = self.group.rank == opts.rootRank
        op, data = scaled(opts.reduceOp, out)
        filled = tensor if is_root else out
        into = out if is_root else None
        return self._begun("reduce", opts, filled, out, data, into, operation(op, data), opts.rootRank)

    def all_gather_single(self, output: Tensor, data: Tensor, opts: Any = None) -> Work:
        output = plain(output)
        out = in_order(output)
        return self._begun("all_gather", opts, output, out, in_order(plain(data)), out)

    def allgather(self, outputs: list[list[Tensor]], tensors: list[Tensor], opts: Any = None) -> Work:
        data, targets = in_order(only(tensors, "all_gather")), outputs[0]
        refuse_overlap("all_gather", targets)

        def gather() -> None:
            sizes = [each.numel() for each in targets]
            share_out(self.group.all_gather(data, counts=None if len(set(sizes)) == 1 else sizes), targets)

        return self._done(targets, gather, [data], opts)

    def allgather_coalesced(self, outputs: list[list[Tensor]], tensors: list[Tensor], opts: Any = None) -> Work:
        """`outputs` has a list for each rank, of a tensor for each of `tensors`."""
        if len(outputs) != self.group.size or any(len(each) != len(tensors) for each in outputs):
            raise ValueError(
                f"all_gather_coalesced of {len(tensors)} tensors: needs a list of as many outputs for each of "
                f"{self.group.size} ranks"
            )
        refuse_overlap("all_gather", [each for of_rank in outputs for each in of_rank])
        works = [
            self.allgather([list(targets)], [one], opts)
            for one, targets in zip(tensors, zip(*outputs, strict=True), strict=True)
        ]
        return Work.of_all(works, self._lock)

    def all_gather_single_coalesced(
        self, outputs: list[Tensor], tensors: list[Tensor], opts: Any = None
    ) -> Work:  # fmt: skip
        refuse_overlap("all_gather", outputs, tensors)
        works = [self.all_gather_single(*each, opts) for each in zip(outputs, tensors, strict=True)]
        return Work.of_all(works, self._lock)

    def gather(self, outputs: list[list[Tensor]], tensors: list[Tensor], opts: Any) -> Work:
        data = in_order(only(tensors, "gather"))
        targets = outputs[0] if outputs else []
        refuse_overlap("gather", targets)

        def gather() -> None:
            blocks = self.group.gather(data, root=opts.rootRank)
            if blocks is not None:
                share_out(blocks, targets)

        return self._done(targets, gather, [data], opts)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work:
        output = only(outputs, "scatter")

        def scatter() -> None:
            blocks = joined(inputs[0]) if self.group.rank == opts.rootRank else None
            out = in_order(output)
            self.group.scatter(blocks, out, opts.rootRank)
            give_back(output, out)

        return self._done([output], scatter, inputs[0] if inputs else [], opts)

    def reduce_scatter_single(self, output: Tensor, data: Tensor, opts: Any) -> Work:
        op, data = scaled(opts.reduceOp, in_order(plain(data)))
        output = plain(output)
        out = in_order(output)
        return self._begun("reduce_scatter", opts, output, out, data, out, operation(op, data))

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work:
        """Blocks of several sizes are reduced one after another, each to its rank."""
        output, blocks = only(outputs, "reduce_scatter"), inputs[0]
        if len({block.numel() for block in blocks}) == 1:
            return self.reduce_scatter_single(output, joined(blocks), opts)

        def reduce() -> None:
            kind, all_blocks = scaled(opts.reduceOp, joined(blocks))
            op: Any = operation(kind, output)
            out = in_order(output)
            copies = all_blocks.split([block.numel() for block in blocks])  # the output may share their memory
            for root, block in enumerate(copies):
                self.group.reduce(block, out if root == self.group.rank else None, op, root)
            give_back(output, out)

        return self._done([output], reduce, blocks, opts)

    def reduce_scatter_single_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any
    ) -> Work:  # fmt: skip
        refuse_overlap("reduce_scatter", outputs, inputs)
        works = [self.reduce_scatter_single(*each, opts) for each in zip(outputs, inputs, strict=True)]
        return Work.of_all(works, self._lock)

    def all_to_all_single(
        self, output: Tensor, data: Tensor, take: Sequence[int], give: Sequence[int], opts: Any = None
    ) -> Work:  # fmt: skip
        """Counts are rows of the first dimension."""
        output, data = plain(output), in_order(plain(data))
        out = in_order(output)
        if not take and not give:
            return self._begun("all_to_all", opts, output, out, data, out)
        gives, takes = elements(data, give, self.group.size), elements(output, take, self.group.size)

        def exchange() -> None:
            self.group.all_to_all_v(data, gives, out, takes)
            give_back(output, out)

        return self._done([output], exchange, [data, out], opts)

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        refuse_overlap("all_to_all", outputs)

        def exchange() -> None:
            takes = [each.numel() for each in outputs]
            blocks = outputs[0].new_empty(sum(takes))
            self.group.all_to_all_v(joined(inputs), [each.numel() for each in inputs], blocks, takes)
            share_out(blocks, outputs)

        return self._done(outputs, exchange, inputs, opts)

    def send(self, tensors: list[Tensor], to: int, tag: int) -> Work:
        data = in_order(only(tensors, "send"))
        with self._lock:
            return self._noted(Work([self.group.start_send(data, to, tag)], [], self._lock))

    def recv(self, tensors: list[Tensor], source: int, tag: int) -> Work:
        tensor = only(tensors, "recv")
        data = in_order(tensor)
        with self._lock:
            received = self.group.start_recv(data, source, tag)
            return self._noted(Work([received], [tensor], self._lock, [lambda: give_back(tensor, data)]))

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> Work:
        # A group could, but PyTorch asks a work of C++ for the source.
        raise NotImplementedError("waywiser needs a source rank: recv(..., src=RANK)")

    def start_coalescing(self) -> None:
        with self._lock:
            self._begun_together = []

    def end_coalescing(self) -> Work:
        """One work for all that has begun since start_coalescing."""
        with self._lock:
            works, self._begun_together = self._begun_together or [], None
            return Work.of_all(works, self._lock)

    def async_stream(self, device: Any) -> AsyncStream:
        """The stream of asynchronous operations of a GPU."""
        own = self._async_streams.get(device)
        if own is None:
            own = self._async_streams[device] = AsyncStream(device)
        return own

    def _noted(self, work: Work) -> Work:
        if self._begun_together is not None:
            self._begun_together.append(work)
        return work

    def _begun(self, name: str, opts: Any, result: Tensor, filled: Tensor, *arguments: Any) -> Work:
        """A collective of the group: on a GPU it is enqueued, on the host it goes on in the background. `filled`: the
        argument that it fills, which is `result` or has its values in C order.
        """
        if result.is_cuda:

            def call(stream: Any = None) -> None:
                getattr(self.group, name)(*arguments, stream=stream)
                if filled is not result:
                    with torch.cuda.stream(stream):
                        give_back(result, filled)

            return self._done([result], call, [each for each in arguments if torch.is_tensor(each)], opts, call)
        with self._lock:
            future = getattr(self.group, f"start_{name}")(*arguments)
            return self._noted(Work([future], [result], self._lock, [lambda: give_back(result, filled)]))

    def _done(
        self, result: list[Tensor], call: Callable[[], object], inputs: Sequence[Tensor] = (), opts: Any = None,
        call_on: Callable[[Any], object] | None = None,
    ) -> Work:  # fmt: skip
        """On a GPU an asynchronous operation is enqueued in a stream of its own, so that the program's kernels run
        beside it; others, and those in a graph that is being captured, are in the current stream. `call_on`: the call
        in a given stream.
        """
        with self._lock:
            device = device_of([*result, *inputs])
            if device is None or not getattr(opts, "asyncOp", True) or torch.cuda.is_current_stream_capturing():
                call()
                return self._noted(Work([], result, self._lock))
            own = self.async_stream(device)
            event = own.enqueue(call, call_on, {id(each): each for each in (*result, *inputs)}.values())
            return self._noted(Work([], result, self._lock, enqueued=event, stream=own.stream))

    # The names of PyTorch before 2.13.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
