"""A case of the doctor's tests, and parts of machines that cases are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import made_up
from doctor_machines import BRIDGE0, BRIDGE1, GPU0, GPU1, NIC1, OPEN, Files, config, gpu, link, nic, pci

Json = dict[str, Any]
OK, WARNING, PROBLEM, UNKNOWN, ABSENT = "ok", "warning", "problem", "unknown", "not applicable"


@dataclass(frozen=True)
class Case:
    """`results` are files of the results folder; the other fields are arguments of `doctor_machines.build`."""

    check: str
    status: str
    words: str
    files: Files = field(default_factory=dict)
    commands: Mapping[str, str | None] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    spaces: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    user: int = 0
    results: Mapping[str, Json] = field(default_factory=dict)


VERSION = "/proc/driver/nvidia/version"
RELEASE = "/proc/sys/kernel/osrelease"
PAIR = gpu() | nic() | {RELEASE: "6.1.0-1-amd64\n", VERSION: OPEN}
TWO = gpu() | gpu(GPU1, BRIDGE1)
STATES = {"eth0": "up", "docker0": "up", "lo": "unknown"}
UP = {f"/sys/class/net/{name}/operstate": state for name, state in STATES.items()}
SYMBOL = {"/proc/kallsyms": "ffffffffc0 T ib_register_peer_memory_client\t[ib_core]\n"}
PEERMEM = {"/sys/module/nvidia_peermem/version": "580.95.05\n"}
GDRDRV = {"/sys/module/gdrdrv/version": "2.5\n", "/dev/gdrdrv": "", "/usr/lib64/libgdrapi.so.2.5": ""}
HOST = "/sys/devices/pci0000:00"
VM = {"/proc/cpuinfo": "flags\t\t: fpu hypervisor lm\n"}
METAL = {"/proc/cpuinfo": "flags\t\t: fpu lm\n"}
IOMMU = {"/sys/class/iommu/dmar0/x": "", f"{HOST}/{BRIDGE0}/{GPU0}/iommu_group": link("/sys/kernel/iommu_groups/7")}
PORT = "/sys/class/infiniband/mlx5_0/ports/1"
MLX5_1 = nic("mlx5_1", NIC1, BRIDGE1, uverbs="uverbs1")
UCX_V = "# Library version: 1.22.0\n# Configured with: --enable-mt --with-cuda=/usr/local/cuda\n"
UCX_PLAIN = "# Version 1.13.1\n# Configured with: --enable-mt --without-cuda\n"
UCX_C = "UCX_TLS=all\nUCX_NET_DEVICES=all\nUCX_RNDV_THRESH=auto\nUCX_TCP_MAX_BW=2200.00MBps\nUCX_CMA_BW=11145.00MBps\n"
UCX_D = "".join(f"#      Transport: {name}\n" for name in ("self", "tcp", "sysv", "posix", "cma"))
UCX = {"ucx_info -v": UCX_V, "ucx_info -c": UCX_C, "ucx_info -d": UCX_D}
OMPI = 'mca:opal:base:param:opal_built_with_cuda_support:value:{}\nmca:pml:ucx:version:"mca:2.1.0"\n'
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         {} {} bytes\n"
)
NAMESPACES = {f"/proc/self/ns/{name}": link(f"/ns/{name}") for name in ("pid", "ipc", "user", "net")}
CAPPED = {"GPU_Power_Readings__Current_Power_Limit": "300.00 W", "GPU_Power_Readings__Default_Power_Limit": "700.00 W"}
ECC_CHANGES = {"ECC_Mode__Current": "Enabled", "ECC_Mode__Pending": "Disabled"}
# As nvidia-smi 580.159 says it of an H100.
WELL = {
    "Persistence_Mode": "Enabled", "GPU_Recovery_Action": "None", "ECC_Errors__Volatile__DRAM_Uncorrectable": "0",
    "Remapped_Rows__Pending": "No", "Retired_Pages__Pending_Page_Blacklist": "N/A",
    "GPU_Power_Readings__Current_Power_Limit": "700.00 W", "GPU_Power_Readings__Default_Power_Limit": "700.00 W",
}  # fmt: skip
UNTAKEN = gpu() | pci(GPU1, "0x10de", "0x030200")
VFIO = {f"/sys/devices/pci0000:00/{GPU1}/driver": ("link", "/sys/bus/pci/drivers/vfio-pci")}
INACTIVE = "GPU 0: NVIDIA H100 (UUID: GPU-x)\nNVML: Unable to retrieve NVLink information as all links are inActive\n"
ODD_LINKS = """GPU 0: NVIDIA (UUID: GPU-x)
GPU 1: NVIDIA (UUID: GPU-y)
\t Link 0: 25 GB/s
\t Link 1: 25 GB/s
GPU 2: NVIDIA (UUID: GPU-z)
\t Link 0: 25 GB/s
\t Link 1: <inactive>
"""
PROGRAM_XID = "[ 1.2] NVRM: Xid (PCI:0000:17:00): 13, pid=7, name=x, Graphics SM Warp Exception on (GPC 0, TPC 0)\n"
SXID = "[ 1.2] nvidia-nvswitch0: SXid (PCI:0000:85:00.0): {}, Link 28 error\n"
XID = "[  12.3] NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.\n"
GOOD_PROFILE = {"profile.json": made_up.profile(2)}
HOST_PROFILE = {"profile.json": made_up.profile(0)}
ACS_OFF = {f"{HOST}/{bridge}/config": config({0x0D: {6: 0x00}}) for bridge in (BRIDGE0, BRIDGE1)}
ACS_ON = {**ACS_OFF, f"{HOST}/{BRIDGE0}/config": config({0x0D: {6: 0x1D}})}
WHOLE_LINKS = "|".join(["26.562 GB/s"] * 12)


def spoiled(change: Callable[[Json], None]) -> dict[str, Json]:
    """The made-up profile with something wrong in it."""
    value = made_up.profile(2)
    change(value)
    return {"profile.json": value}


def unverify(value: Json) -> None:
    one = next(s for s in value["series"] if s["path"]["source"] == "gpu0" and s["path"]["destination"] == "gpu1")
    one["points"][0]["verified"] = False


def cliff(value: Json) -> None:
    one = next(s for s in value["series"] if s["path"]["mechanism"] == "ucx" and s["operation"] == "latency")
    for point in one["points"][8:]:
        for key in ("seconds", "low", "high", "p50", "p99"):
            point[key] *= 20


def slow_bar(value: Json) -> None:
    for rate, pair in ((0.4e9, ("host0", "gpu0")),):
        path = {"mechanism": "bar_copy", "source": pair[0], "destination": pair[1], "processes": 1, "parameters": {}}
        point = {**value["series"][0]["points"][-1], "bytes": 1 << 20, "seconds": (1 << 20) / rate}
        point |= {"low": point["seconds"], "high": point["seconds"], "p50": point["seconds"], "p99": point["seconds"]}
        value["series"].append({**value["series"][0], "path": path, "operation": "latency", "points": [point]})


def fast_bar(value: Json) -> None:
    slow_bar(value)
    for key in ("seconds", "low", "high", "p50", "p99"):
        value["series"][-1]["points"][0][key] /= 20


def measured_with(driver: str, kind: str = "discovered") -> dict[str, Json]:
    """The topology of a results folder: two GPUs with peer access both ways."""
    value = made_up.topology(2)
    for index, device in enumerate(one for one in value["devices"] if one["kind"] == "gpu"):
        device["attributes"] = {f"peer:gpu{1 - index}": "ok"}
    return {"topology.json": {**value, "kind": kind, "software": {"driver": driver}}}
