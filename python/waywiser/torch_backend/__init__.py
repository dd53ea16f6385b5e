"""A back end of torch.distributed: `import waywiser.torch_backend`, then `init_process_group("waywiser")`.

Tensors in host memory and on GPUs. On the host an operation is complete when `wait()` returns, and nothing moves
unless a process is inside a call, so asynchronous operations go on in `wait()`. On GPUs collectives are enqueued in the
current stream, asynchronous ones (`async_op=True`, and those of DistributedDataParallel) in a stream of the group that
waits for it, so that the program's kernels run beside them; `wait()` makes the current stream wait.

If the peer of an operation on a GPU is late, gone or in another call, the operation never counts as done: a line on
stderr says why, and every later call of CUDA raises. `init_process_group("waywiser",
pg_options=Options(on_failure="abort"))`, or the environment variable WAYWISER_ON_FAILURE=abort, ends the process
instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch.distributed as dist

from waywiser.group import from_torch
from waywiser.torch_backend.calls import NAME

__all__ = ["Options"]


@dataclass
class Options:
    """The `pg_options` of init_process_group and new_group: options of from_torch."""

    on_failure: Literal["raise", "abort"] | None = None
    encrypt: bool | None = None
    max_ctas: int | None = None


def _create(about: Any, options: Options | None) -> Any:
    options = options or Options()
    rank, size, seconds = about.group_rank, about.group_size, about.timeout.total_seconds()
    group = from_torch(about.store, rank, size, seconds, on_failure=options.on_failure, encrypt=options.encrypt,
                       max_ctas=options.max_ctas)  # fmt: skip
    if hasattr(dist, "get_backend_impl"):  # PyTorch 2.14: a back end can be written in Python
        from waywiser.torch_backend.backend import Backend

        return Backend(group)
    from waywiser.torch_backend.process_group import ProcessGroup

    return ProcessGroup(group, about.store)


dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu", "cuda"])
