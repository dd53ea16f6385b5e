"""The back end as PyTorch 2.14 and later have it: a process group chooses it by the device of the tensors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch.distributed as dist

from waywiser.group import Group
from waywiser.torch_backend.calls import NAME, Calls

_Base: Any = getattr(dist, "BackendBase", None) or dist.distributed_c10d.C10DBackend


class Backend(Calls, _Base):  # type: ignore[misc]
    """A group as a back end: also one of several in a process group, as in "cpu:gloo,cuda:waywiser"."""

    # Without these, PyTorch's own properties ask this class, which asks them.
    supports_splitting = supports_coalescing = supports_shrinking = False
    supports_reconfigure = supports_window = _supports_time_estimate = False

    def __init__(self, group: Group) -> None:
        _Base.__init__(self, group.rank, group.size)
        self.attach(group)

    @property
    def options(self) -> Any:
        """The name and the timeout that PyTorch shows."""
        return _Base.Options(NAME, timedelta(seconds=self.group.timeout))
