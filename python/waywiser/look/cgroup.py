"""How much memory the control groups of this process leave it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from waywiser.look.finding import Unknown
from waywiser.look.root import Root

_NO_LIMIT = 1 << 60  # version 1 writes almost 2^63


@dataclass(frozen=True)
class MemoryLimit:
    """The tightest limit; `left` is what is not in use, where the kernel can drop the inactive pages of files. `killed`
    processes have met the limit."""

    bytes: int
    left: int
    killed: int


@dataclass(frozen=True)
class _Version:
    mount: str
    limit: str
    used: str
    inactive: str
    events: str


_V1 = _Version(
    "/sys/fs/cgroup/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
    "memory.oom_control",
)
_V2 = _Version("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "memory.events")


def memory_limit(root: Root) -> MemoryLimit | None:
    """The limit that is reached first; None without a limit. Raises Unknown."""
    version, group = _group(root)
    found = [_limit(root, version, folder) for folder in _folders(version, group)]
    limits = [one for one in found if one]
    return min(limits, key=lambda one: one.left) if limits else None


def _group(root: Root) -> tuple[_Version, str]:
    """Which version controls memory, and the path of this process's group there. Raises Unknown."""
    lines = [line.split(":", 2) for line in root.needed("/proc/self/cgroup").splitlines()[:100]]
    groups = {controllers: path for _, controllers, path in (line for line in lines if len(line) == 3)}
    for controllers, path in groups.items():
        if "memory" in controllers.split(",") and root.exists(_V1.mount):
            return _V1, path
    if "" in groups and "memory" in (root.text(f"{_V2.mount}/cgroup.controllers") or "").split():
        return _V2, groups[""]
    raise Unknown("needs the memory controller below /sys/fs/cgroup, which is not there")


def _folders(version: _Version, group: str) -> list[str]:
    """The folders of a group and of all above it. A container sees its own group in place of the root."""
    above = [one for one in (PurePosixPath(group), *PurePosixPath(group).parents) if ".." not in one.parts]
    return [f"{version.mount}{one}".rstrip("/") for one in above if one.is_absolute()]


def _limit(root: Root, version: _Version, folder: str) -> MemoryLimit | None:
    limit = root.number(f"{folder}/{version.limit}")  # "max" is no number
    if limit is None or limit >= _NO_LIMIT:
        return None
    used = root.number(f"{folder}/{version.used}")
    if used is None:
        raise Unknown(f"needs {folder}/{version.used}, which is not there")
    kept = max(0, used - _field(root, f"{folder}/memory.stat", version.inactive))
    return MemoryLimit(limit, max(0, limit - kept), _field(root, f"{folder}/{version.events}", "oom_kill"))


def _field(root: Root, path: str, name: str) -> int:
    found = re.search(rf"^{name} (\d{{1,18}})$", root.text(path) or "", re.MULTILINE)
    return int(found[1]) if found else 0
