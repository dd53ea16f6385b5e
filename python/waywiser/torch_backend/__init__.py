"""A back end of torch.distributed: `import waywiser.torch_backend`, then `init_process_group("waywiser")`.

Tensors in host memory and on GPUs. On the host an operation is complete when `wait()` returns, and nothing moves
unless a process is inside a call, so asynchronous operations go on in `wait()`. On GPUs collectives are enqueued in the
current stream, asynchronous ones (`async_op=True`, and those of DistributedDataParallel) in a stream of the group that
waits for it, so that the program's kernels run beside them; `wait()` makes the current stream wait.

If the peer of an operation on a GPU is late, gone or in another call, the operation never counts as done: a line on
stderr says why, and every later call of CUDA raises. With `init_process_group("waywiser",
pg_options=Options(on_failure="raise"))`, or the environment variable WAYWISER_ON_FAILURE=raise, CUDA goes on, the
operation's results are NaN (integers: all bits 1), and every later operation raises; with "abort" the process ends.

The back end has two forms, of the same calls, which ranks may mix. The one in Python is always there. The one in C++,
whose frequent calls take less time of the host, is used once `python -m waywiser.torch_backend` has compiled it, which
needs a compiler of C++. WAYWISER_TORCH_FORM=python switches it off; =cpp compiles it if needed, one process at a time,
and is an error if that fails. `why_python()` says which form is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch.distributed as dist

from waywiser.group import from_torch
from waywiser.torch_backend import compiled
from waywiser.torch_backend.calls import NAME

__all__ = ["Options", "why_python"]


@dataclass
class Options:
    """The `pg_options` of init_process_group and new_group: options of from_torch."""

    on_failure: Literal["trap", "raise", "abort"] | None = None
    encrypt: bool | None = None
    max_ctas: int | None = None


def why_python() -> str:
    """Why the back end of new groups is the one in Python: one line; empty if it is the one in C++. Raises
    UnavailableError if WAYWISER_TORCH_FORM=cpp cannot be done, InputError for another value.
    """
    return compiled.chosen()[1]


def _create(about: Any, options: Options | None) -> Any:
    options = options or Options()
    module, _ = compiled.chosen()
    rank, size, seconds = about.group_rank, about.group_size, about.timeout.total_seconds()
    group = from_torch(about.store, rank, size, seconds, on_failure=options.on_failure, encrypt=options.encrypt,
                       max_ctas=options.max_ctas)  # fmt: skip
    if module is not None:
        return compiled.make(module, group)
    if hasattr(dist, "get_backend_impl"):  # PyTorch 2.14: a back end can be written in Python
        from waywiser.torch_backend.backend import Backend

        return Backend(group)
    from waywiser.torch_backend.process_group import ProcessGroup

    return ProcessGroup(group, about.store)


dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu", "cuda"])
