"""The back end as a process group: for PyTorch before 2.14, where a back end cannot be written in Python."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch.distributed as dist

from waywiser.group import Group
from waywiser.torch_backend.calls import Calls
from waywiser.torch_backend.work import Tensor, Work


class ProcessGroup(Calls, dist.ProcessGroup):  # type: ignore[misc]
    """A group whose calls reach torch.distributed through the process group itself."""

    def __init__(self, group: Group, store: Any) -> None:
        try:
            super().__init__(store, group.rank, group.size)  # symmetric memory needs it
        except TypeError:
            super().__init__(group.rank, group.size)
            _refuse_symmetric_memory()
        self.attach(group)
        self._name = ""

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def getGroupName(self) -> str:
        return self._name

    # torch.distributed asks the back end of a device, if the program names one, whether it can be split.
    supports_splitting = False

    def _start_coalescing(self, device: Any) -> None:
        self.start_coalescing()

    def _end_coalescing(self, device: Any) -> Work:
        return self.end_coalescing()

    def _get_backend(self, device: Any) -> ProcessGroup:
        return self

    def getRank(self) -> int:
        return self.group.rank

    def getSize(self) -> int:
        return self.group.size


def _refuse_symmetric_memory() -> None:
    """In this PyTorch, process groups made in Python have no store, but symmetric memory reads one."""
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
