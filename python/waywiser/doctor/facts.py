"""Facts that should be the same on all nodes of a kind: versions, firmware, settings, variables."""

from __future__ import annotations

import re
from collections.abc import Callable

from waywiser.doctor import gpu, variables
from waywiser.json_fields import clean
from waywiser.look import machine, nvidia, rdma, ucx
from waywiser.look.cpu_clock import cpu_clocks
from waywiser.look.finding import Unknown
from waywiser.look.installed_libraries import installed
from waywiser.look.root import Root

# These differ between ranks by design.
_OWN = re.compile(r"RANK|LOCALID|PROCID|NODEID|CUDA_VISIBLE_DEVICES")
NOT_KNOWN = "unknown"


def _cmdline(root: Root) -> str:
    words = re.findall(
        r"\b(?:iommu|intel_iommu|amd_iommu|pci|mitigations|hugepages|isolcpus)=\S+", root.text("/proc/cmdline") or ""
    )
    return " ".join(words)


def _firmware(root: Root) -> str:
    told = (
        f"{root.text(f'{rdma.FOLDER}/{name}/fw_ver')} ({root.text(f'{rdma.FOLDER}/{name}/board_id')})"
        for name in rdma.devices(root)
    )
    return ", ".join(sorted(set(told)))


def _gpus(root: Root) -> str:
    if not root.names("/proc/driver/nvidia/gpus"):
        return "none"
    _, found = nvidia.query(root)
    names = [nvidia.value(one, "Product Name") for one in found.values()]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def _vbios(root: Root) -> str:
    if not root.names("/proc/driver/nvidia/gpus"):
        return "none"
    _, found = nvidia.query(root)
    return ", ".join(sorted({nvidia.value(one, "VBIOS Version") for one in found.values()}))


def _mtus(root: Root) -> str:
    sizes = (root.text(f"/sys/class/net/{name}/mtu") for name in root.names("/sys/class/net") if name != "lo")
    return ", ".join(sorted({size for size in sizes if size}))


def _gids(root: Root) -> str:
    told = []
    for port in rdma.active_roce_ports(root):
        good = [gid for gid in rdma.gids(root, port) if gid.routable]
        told.append(f"{port.name} {min(good, key=lambda gid: not gid.ipv4).index if good else 'none'}")
    return ", ".join(told)


def _limit(root: Root, name: str) -> str:
    limit = machine.limit(root, name)
    return "unlimited" if limit is None else str(limit)


def _namespaces(root: Root) -> str:
    names = ("pid", "ipc", "user", "net")
    return " ".join(root.link(f"/proc/self/ns/{name}") or NOT_KNOWN for name in names)


_FACTS: dict[str, Callable[[Root], str]] = {
    "kernel": lambda root: root.text("/proc/sys/kernel/osrelease") or "",
    "kernel options": _cmdline,
    "BIOS": lambda root: root.text("/sys/class/dmi/id/bios_version") or "",
    "product": lambda root: root.text("/sys/class/dmi/id/product_name") or "",
    "driver": lambda root: gpu.driver_version(root) or "none",
    "driver flavour": lambda root: "open" if gpu.driver_is_open(root) else "not open",
    "GPUs": _gpus,
    "VBIOS": _vbios,
    "NIC firmware": _firmware,
    "OFED": lambda root: root.text("/sys/module/mlx5_core/version") or "inbox",
    "RoCE address": _gids,
    "MTU": _mtus,
    "UCX": lambda root: ".".join(map(str, ucx.version(root))),
    "UCX library": lambda root: ", ".join(installed(root, "libucp")),
    "NCCL library": lambda root: ", ".join(installed(root, "libnccl")),
    "MPI library": lambda root: ", ".join(installed(root, "libmpi")),
    "locked memory": lambda root: _limit(root, "Max locked memory"),
    "open files": lambda root: _limit(root, "Max open files"),
    "CPU governor": lambda root: ", ".join(sorted({one.governor for one in cpu_clocks(root)})),
    "NUMA balancing": lambda root: root.needed("/proc/sys/kernel/numa_balancing"),
    "boot": lambda root: root.text("/proc/sys/kernel/random/boot_id") or "",
    "namespaces": _namespaces,
}


def facts_of(root: Root) -> dict[str, str]:
    """Name -> value; "unknown" if it could not be read. Variables are "$NAME"."""
    found = {}
    for name, look in _FACTS.items():
        try:
            found[name] = look(root)
        except (Unknown, ValueError, LookupError, OSError):
            found[name] = NOT_KNOWN
    for name, (value, origin) in _assignments(root).items():
        if not _OWN.search(name):
            found[f"${name}"] = f"{value} ({origin})"
    return {name: clean(value)[:400] for name, value in found.items()}


def _assignments(root: Root) -> dict[str, tuple[str, str]]:
    try:
        return variables.assignments(root)
    except Unknown:
        return {}
