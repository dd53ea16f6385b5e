"""Sets where the kernel puts new memory of this thread and of the processes that it starts."""

from __future__ import annotations

import ctypes
import platform

_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}
_DEFAULT, _PREFERRED = 0, 1
_MOST_NODES = 1024


def prefer_memory(node: int | None) -> bool:
    """Prefers memory of this NUMA node; None restores the kernel's default. Returns False if the kernel refuses."""
    call = _SET_MEMPOLICY.get(platform.machine())
    if call is None or (node is not None and not 0 <= node < _MOST_NODES):
        return False
    mask = (ctypes.c_ulong * (_MOST_NODES // 64))()
    if node is not None:
        mask[node // 64] = 1 << node % 64
    policy = _DEFAULT if node is None else _PREFERRED
    nodes = None if node is None else mask
    return int(ctypes.CDLL(None).syscall(call, policy, nodes, _MOST_NODES if nodes else 0)) == 0
