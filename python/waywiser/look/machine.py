"""Facts about the whole machine that several checks ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from waywiser.errors import InputError
from waywiser.files import check_json_bounds, read_bytes
from waywiser.look import pci, rdma
from waywiser.look.finding import Unknown
from waywiser.look.job import local_rank, started
from waywiser.look.root import Root

_SYS_PTRACE = 19


def kernel(root: Root) -> tuple[int, int]:
    """Major and minor version of the running kernel. Raises Unknown."""
    text = root.needed("/proc/sys/kernel/osrelease")
    found = re.match(r"(\d{1,3})\.(\d{1,4})", text)
    if not found:
        raise Unknown(f"needs a kernel version, /proc/sys/kernel/osrelease says {text[:40]!r}")
    return int(found[1]), int(found[2])


def in_vm(root: Root) -> bool:
    """Whether the CPU reports a hypervisor. Raises Unknown."""
    return bool(re.search(r"^flags\s*:.*\bhypervisor\b", root.needed("/proc/cpuinfo")[:20_000], re.MULTILINE))


def in_container(root: Root) -> bool:
    """Whether this root belongs to a container, by the marks that container engines leave."""
    marked = root.exists("/.dockerenv") or root.exists("/run/.containerenv")
    words = ("docker", "kubepods", "containerd", "libpod", "enroot", "lxc")
    return marked or any(word in (root.text("/proc/1/cgroup") or "") for word in words)


def module(root: Root, name: str) -> bool:
    """Whether a kernel module is loaded or built in."""
    return root.exists(f"/sys/module/{name}")


def numa_nodes(root: Root) -> list[int]:
    """The NUMA nodes of the machine."""
    names = (re.fullmatch(r"node(\d{1,4})", name) for name in root.names("/sys/devices/system/node"))
    return sorted(int(found[1]) for found in names if found)


def cpus(text: str) -> set[int]:
    """ "0-3,8" -> {0, 1, 2, 3, 8}; invalid parts are skipped."""
    found: set[int] = set()
    for part in text.split(",")[:1024]:
        ends = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if ends:
            found.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return found


def status_field(root: Root, name: str) -> str:
    """A line of /proc/self/status. Raises Unknown."""
    found = re.search(rf"^{name}:\s*(\S+)", root.needed("/proc/self/status"), re.MULTILINE)
    if not found:
        raise Unknown(f"needs {name} in /proc/self/status")
    return found[1]


def may_trace(root: Root) -> bool:
    """Whether this process has CAP_SYS_PTRACE. Raises Unknown."""
    return bool(int(status_field(root, "CapEff"), 16) >> _SYS_PTRACE & 1)


def limit(root: Root, name: str) -> int | None:
    """A soft limit of this process, such as "Max open files"; None if there is no limit. Raises Unknown."""
    found = re.search(rf"^{name}\s+(\S+)", root.needed("/proc/self/limits"), re.MULTILINE)
    if not found:
        raise Unknown(f"needs {name!r} in /proc/self/limits")
    return None if found[1] == "unlimited" else int(found[1])


def memlock(root: Root) -> int | None:
    """The soft limit on locked memory in bytes; None if there is no limit. Raises Unknown."""
    return limit(root, "Max locked memory")


def in_job(root: Root) -> bool:
    """Whether a launcher of parallel programs started this process."""
    return started(root.environment).launcher != "none"


def local_size(root: Root) -> int:
    """Ranks of the job on this machine; 1 outside a job."""
    return local_rank(root.environment)[1]


def gpudirect_pairs(root: Root) -> str:
    """Why GPUDirect RDMA does not apply here; empty if there are a GPU and an RDMA device."""
    if not pci.gpus(root):
        return "no NVIDIA GPU"
    return "" if rdma.devices(root) else "no RDMA device"


def kernel_messages(root: Root, pattern: str) -> list[str]:
    """Lines of the kernel log that match. Raises Unknown without the right to read it."""
    found = re.compile(pattern, re.IGNORECASE)
    return [line[:300] for line in root.run("dmesg").splitlines()[-20_000:] if found.search(line[:1000])]


def named(names: Iterable[str], most: int = 4) -> str:
    """ "a, b, c and 7 more"."""
    listed = list(names)
    rest = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {rest} more" if rest > 0 else "")


def json_file(root: Root, name: str) -> dict[str, object] | None:
    """A JSON object of the results folder; None if the file does not exist."""
    if root.results is None or not (root.results / name).is_file():
        return None
    try:
        data = read_bytes(root.results / name, 16 << 20)
        check_json_bounds(data, name)
        value = json.loads(data)
    except (InputError, ValueError, RecursionError) as error:
        raise Unknown(f"needs {name} in the results, which cannot be read") from error
    return value if isinstance(value, dict) else None
