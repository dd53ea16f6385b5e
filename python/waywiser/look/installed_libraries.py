"""Where a library is installed, and which copies of it this process has mapped."""

from __future__ import annotations

import re
import sys

from waywiser.look.root import Root

FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
    "/opt/hpcx/ucx/lib",
    "/opt/hpcx/ompi/lib",
    "/opt/hpcx/ucc/lib",
    "/opt/hpcx/nccl_rdma_sharp_plugin/lib",
    "/usr/mpi/gcc/openmpi/lib",
)
_WHEELS = {
    "libucp": "libucx/lib",
    "libnccl": "nvidia/nccl/lib",
    "libmpi": "mpi.libs",
    "libcufile": "nvidia/cufile/lib",
    "libnvshmem_host": "nvidia/nvshmem/lib",
}


def installed(root: Root, library: str) -> list[str]:
    """Real paths of the copies of a library: LD_LIBRARY_PATH first, then the system's folders, then wheels."""
    return list(dict.fromkeys([*for_programs(root, library), *in_wheels(root, library)]))


def for_programs(root: Root, library: str) -> list[str]:
    """The copies that any program finds: in LD_LIBRARY_PATH and the system's folders."""
    told = [folder for folder in root.environment.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    return _copies(root, library, [*told, *FOLDERS])


def in_wheels(root: Root, library: str) -> list[str]:
    """The copies in wheels beside this interpreter, which only Python packages load."""
    inside = _WHEELS.get(library)
    folders = [f"{folder}/{inside}" for folder in sys.path if inside and "site-packages" in folder and root.live]
    return _copies(root, library, folders)


def _copies(root: Root, library: str, folders: list[str]) -> list[str]:
    """One path for each folder: libucp.so and libucp.so.0 beside each other are one copy."""
    found: dict[str, str] = {}
    for folder in folders:
        for name in root.names(folder):
            if re.fullmatch(rf"{library}\.so(\.\d{{1,3}})?", name):
                real = root.real(f"{folder}/{name}")
                found[real.rpartition("/")[0]] = real
    return list(found.values())


def mapped(root: Root, library: str) -> list[str]:
    """The copies that this process has mapped."""
    text = root.text("/proc/self/maps") or ""
    return sorted(set(re.findall(rf"(/\S*/{library}\.so\S*)$", text, re.MULTILINE)))
