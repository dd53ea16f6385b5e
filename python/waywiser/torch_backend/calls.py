"""Implements torch.distributed's calls with those of a Group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch

from waywiser.group import Group
from waywiser.torch_backend.work import (
    Tensor,
    Work,
    elements,
    give_back,
    in_order,
    joined,
    only,
    operation,
    plain,
    refuse_overlap,
    share_out,
)

NAME = "waywiser"


class Calls:
    """The methods that PyTorch calls, for a class that also derives from one of PyTorch's."""

    group: Group

    def attach(self, group: Group) -> None:
        self.group = group
        self._lock = threading.RLock()  # autograd has threads of its own

    def getBackendName(self) -> str:
        return NAME

    def shutdown(self) -> None:
        """Waits until all ranks have called it."""
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
        tensor = only(tensors, "broadcast")
        data = in_order(tensor)
        return self._begun("broadcast", tensor, data, data, opts.rootRank)

    def allreduce(self, tensors: list[Tensor], opts: Any) -> Work:
        tensor = only(tensors, "all_reduce")
        data = in_order(tensor)
        return self._begun("all_reduce", tensor, data, data, data, operation(opts.reduceOp, data))

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any) -> Work:
        refuse_overlap("all_reduce", tensors)
        return self._together([self.allreduce([each], opts) for each in tensors])

    def reduce(self, tensors: list[Tensor], opts: Any) -> Work:
        tensor = only(tensors, "reduce")
        data = in_order(tensor)
        is_root = self.group.rank == opts.rootRank
        op = operation(opts.reduceOp, data)
        filled = tensor if is_root else data
        return self._begun("reduce", filled, data, data, data if is_root else None, op, opts.rootRank)

    def all_gather_single(self, output: Tensor, data: Tensor, opts: Any = None) -> Work:
        output = plain(output)
        out = in_order(output)
        return self._begun("all_gather", output, out, in_order(plain(data)), out)

    def allgather(self, outputs: list[list[Tensor]], tensors: list[Tensor], opts: Any = None) -> Work:
        data, targets = in_order(only(tensors, "all_gather")), outputs[0]
        refuse_overlap("all_gather", targets)

        def gather() -> None:
            sizes = [each.numel() for each in targets]
            share_out(self.group.all_gather(data, counts=None if len(set(sizes)) == 1 else sizes), targets)

        return self._done(targets, gather)

    def all_gather_single_coalesced(
        self, outputs: list[Tensor], tensors: list[Tensor], opts: Any = None
    ) -> Work:  # fmt: skip
        refuse_overlap("all_gather", outputs, tensors)
        return self._together([self.all_gather_single(*each) for each in zip(outputs, tensors, strict=True)])

    def gather(self, outputs: list[list[Tensor]], tensors: list[Tensor], opts: Any) -> Work:
        data = in_order(only(tensors, "gather"))
        targets = outputs[0] if outputs else []
        refuse_overlap("gather", targets)

        def gather() -> None:
            blocks = self.group.gather(data, root=opts.rootRank)
            if blocks is not None:
                share_out(blocks, targets)

        return self._done(targets, gather)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work:
        output = only(outputs, "scatter")

        def scatter() -> None:
            blocks = joined(inputs[0]) if self.group.rank == opts.rootRank else None
            out = in_order(output)
            self.group.scatter(blocks, out, opts.rootRank)
            give_back(output, out)

        return self._done([output], scatter)

    def reduce_scatter_single(self, output: Tensor, data: Tensor, opts: Any) -> Work:
        op = operation(opts.reduceOp, data)
        output = plain(output)
        out = in_order(output)
        return self._begun("reduce_scatter", output, out, in_order(plain(data)), out, op)

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work:
        """Blocks of several sizes are reduced one after another, each to its rank."""
        output, blocks = only(outputs, "reduce_scatter"), inputs[0]
        if len({block.numel() for block in blocks}) == 1:
            return self.reduce_scatter_single(output, joined(blocks), opts)

        def reduce() -> None:
            op: Any = operation(opts.reduceOp, output)
            out = in_order(output)
            copies = joined(blocks).split([block.numel() for block in blocks])  # the output may share their memory
            for root, block in enumerate(copies):
                self.group.reduce(block, out if root == self.group.rank else None, op, root)
            give_back(output, out)

        return self._done([output], reduce)

    def reduce_scatter_single_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any
    ) -> Work:  # fmt: skip
        refuse_overlap("reduce_scatter", outputs, inputs)
        return self._together([self.reduce_scatter_single(*each, opts) for each in zip(outputs, inputs, strict=True)])

    def all_to_all_single(
        self, output: Tensor, data: Tensor, take: Sequence[int], give: Sequence[int], opts: Any = None
    ) -> Work:  # fmt: skip
        """Counts are rows of the first dimension."""
        output, data = plain(output), in_order(plain(data))
        out = in_order(output)
        if not take and not give:
            return self._begun("all_to_all", output, out, data, out)
        gives, takes = elements(data, give, self.group.size), elements(output, take, self.group.size)

        def exchange() -> None:
            self.group.all_to_all_v(data, gives, out, takes)
            give_back(output, out)

        return self._done([output], exchange)

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        refuse_overlap("all_to_all", outputs)

        def exchange() -> None:
            takes = [each.numel() for each in outputs]
            blocks = outputs[0].new_empty(sum(takes))
            self.group.all_to_all_v(joined(inputs), [each.numel() for each in inputs], blocks, takes)
            share_out(blocks, outputs)

        return self._done(outputs, exchange)

    def send(self, tensors: list[Tensor], to: int, tag: int) -> Work:
        data = in_order(only(tensors, "send"))
        with self._lock:
            return Work([self.group.start_send(data, to, tag)], [], self._lock)

    def recv(self, tensors: list[Tensor], source: int, tag: int) -> Work:
        tensor = only(tensors, "recv")
        data = in_order(tensor)
        with self._lock:
            received = self.group.start_recv(data, source, tag)
            return Work([received], [tensor], self._lock, [lambda: give_back(tensor, data)])

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> Work:
        # A group could, but PyTorch asks a work of C++ for the source.
        raise NotImplementedError("waywiser needs a source rank: recv(..., src=RANK)")

    def _begun(self, name: str, result: Tensor, filled: Tensor, *arguments: Any) -> Work:
        """A collective of the group: on a GPU it is enqueued, on the host it goes on in the background. `filled`: the
        argument that it fills, which is `result` or has its values in C order.
        """
        with self._lock:
            if result.is_cuda:
                getattr(self.group, name)(*arguments)
                give_back(result, filled)
                return Work([], [result], self._lock)
            future = getattr(self.group, f"start_{name}")(*arguments)
            return Work([future], [result], self._lock, [lambda: give_back(result, filled)])

    def _together(self, works: list[Work]) -> Work:
        futures = [future for work in works for future in work._futures]
        then = [each for work in works for each in work._then]
        return Work(futures, [tensor for work in works for tensor in work._result], self._lock, then)

    def _done(self, result: list[Tensor], call: Callable[[], object]) -> Work:
        with self._lock:
            call()
        return Work([], result, self._lock)

    # The names of PyTorch before 2.13.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
