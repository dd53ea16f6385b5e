"""A good and a bad machine for every check: id, parts of the machine, the answer, and words that it must contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import made_up
from doctor_machines import (
    BRIDGE0,
    BRIDGE1,
    GPU0,
    GPU1,
    IPV4,
    LINK_LOCAL,
    NIC0,
    NIC1,
    OPEN,
    PROPRIETARY,
    STATUS,
    Files,
    bridge_of,
    cma,
    config,
    cuda,
    gpu,
    link,
    link_files,
    nic,
    numa,
    nvlinks,
    pci,
    roce,
    smi,
    verbs,
)

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


def widths(text: str) -> dict[str, str]:
    """What ibportstate says about the lanes of a port."""
    told = f"LinkWidthSupported:..............{text}\nLinkWidthEnabled:................{text}\n"
    return {"ibportstate -C mlx5_0 -P 1 -D 0 1": f"CA PortInfo:\n# Port info: DR path slid 65535\n{told}"}


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


DRIVEN = TWO | {VERSION: OPEN}

GPU_CASES = [
    Case("D04", OK, "open kernel modules 580.95.05", gpu() | {VERSION: OPEN}),
    Case("D04", WARNING, "no dma-buf", gpu() | nic() | {VERSION: PROPRIETARY}),
    Case("D04", PROBLEM, "no NVIDIA driver is loaded", gpu()),
    Case("D05", OK, "defaults", gpu() | {"/proc/driver/nvidia/params": 'EnableResizableBar: 0\nRegistryDwords: ""\n'}),
    Case("D05", WARNING, "NvLinkDisable=1", gpu() | {"/proc/driver/nvidia/params": "NvLinkDisable: 1\n"}),
    Case("D05", UNKNOWN, "/proc/driver/nvidia/params", gpu()),
    Case("D47", OK, "driver 580.95.05", DRIVEN, cuda(2), results=measured_with("580.95.05")),
    Case("D47", WARNING, "changed from 570.1.2 to 580.95.05", DRIVEN, cuda(2), results=measured_with("570.1.2")),
    Case(
        "D47",
        PROBLEM,
        "lost since the driver changed from 570.1.2 to 580.95.05",
        DRIVEN,
        cuda(2, [[True, False], [True, True]]),
        results=measured_with("570.1.2"),
    ),
    Case(
        "D47",
        PROBLEM,
        "gpu0>gpu1; see D09",
        DRIVEN,
        cuda(2, [[True, False], [True, True]]),
        results=measured_with("580.95.05"),
    ),
    Case("D47", UNKNOWN, "more GPUs", DRIVEN, cuda(1), results=measured_with("580.95.05")),
    Case("D47", UNKNOWN, "not this machine", DRIVEN, cuda(2), results=measured_with("1.2", "published")),
    Case("D47", UNKNOWN, "--results", DRIVEN, cuda(2)),
    Case("D47", ABSENT, "fewer than two", gpu()),
    Case("D11", OK, "data verified", TWO, cuda(2), results=GOOD_PROFILE),
    Case("D11", PROBLEM, "gpu0>gpu1", TWO, cuda(2), results=spoiled(unverify)),
    Case("D11", WARNING, "no peer access", TWO, cuda(2, [[True, False], [True, True]]), results=GOOD_PROFILE),
    Case("D11", UNKNOWN, "waywiser measure", TWO, cuda(2)),
    Case("D13", OK, "all 12 NVLinks of 2", TWO, nvlinks(WHOLE_LINKS, WHOLE_LINKS)),
    Case("D13", WARNING, "error counters", gpu(), nvlinks(WHOLE_LINKS, errors="\t Link 0: Replay Errors: 4\n")),
    Case("D13", ABSENT, "no NVLink", gpu(), nvlinks("")),
    Case("D13", UNKNOWN, "names no GPU", gpu(), {"nvidia-smi nvlink -s": ""}),
    Case("D13", UNKNOWN, "all links are inActive", gpu(), {"nvidia-smi nvlink -s": INACTIVE}),
    Case("D13", PROBLEM, "GPU 2: 1 of 2", TWO, {"nvidia-smi nvlink -s": ODD_LINKS}),
    Case("D14", OK, "registered", gpu(), smi(Fabric__State="Completed", Fabric__Status="Success")),
    Case("D14", PROBLEM, "In Progress", gpu(), smi(Fabric__State="In Progress", Fabric__Status="N/A")),
    Case("D14", ABSENT, "no NVSwitch", gpu(), smi(Fabric__State="N/A", Fabric__Status="N/A")),
    Case("D14", PROBLEM, "not registered", gpu() | pci("0000:c0:00.0", "0x10de", "0x068000"), smi()),
    Case(
        "D14",
        PROBLEM,
        "versions must be the same",
        gpu() | pci("0000:c0:00.0", "0x10de", "0x068000"),
        {**smi(Fabric__State="Completed", Fabric__Status="Success"), "nv-fabricmanager --version": "Version 570.10.01"},
    ),
    Case(
        "D15",
        OK,
        "channel0",
        gpu() | {"/proc/devices": "234 nvidia-caps-imex-channels\n", "/dev/nvidia-caps-imex-channels/channel0": ""},
    ),
    Case("D15", WARNING, "file descriptors", gpu() | {"/proc/devices": "234 nvidia-caps-imex-channels\n"}),
    Case(
        "D15",
        PROBLEM,
        "may not open",
        gpu() | {"/proc/devices": "234 nvidia-caps-imex-channels\n", "/dev/nvidia-caps-imex-channels/channel0": ""},
        user=12345,
    ),
    Case("D16", OK, "no MIG", gpu(), smi(MIG_Mode__Current="Disabled", Compute_Mode="Default")),
    Case("D16", WARNING, "Exclusive Process", gpu(), smi(Compute_Mode="Exclusive Process")),
    Case("D16", PROBLEM, "/nowhere", gpu(), smi(), {"CUDA_MPS_PIPE_DIRECTORY": "/nowhere"}),
    Case("D38", OK, "file descriptors", gpu(), cuda()),
    Case("D38", WARNING, "expandable", gpu(), cuda(), {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    Case("D38", WARNING, "cudaMalloc", gpu(), cuda(posix_handles=0)),
    Case("D41", OK, "no Xid", gpu(), {**smi(), "dmesg": "all is well\n"}),
    Case("D41", PROBLEM, "79", gpu(), {**smi(), "dmesg": XID}),
    Case("D41", OK, "that programs cause (13)", gpu(), {**smi(), "dmesg": 2 * PROGRAM_XID}),
    Case("D41", PROBLEM, "79", gpu(), {**smi(), "dmesg": XID + PROGRAM_XID}),
    Case("D41", PROBLEM, "SXid", gpu(), {**smi(), "dmesg": SXID.format("20034, Fatal")}),
    Case("D41", WARNING, "not fatal", gpu(), {**smi(), "dmesg": SXID.format("12028, Non-fatal")}),
    *[
        Case("D41", PROBLEM, words, gpu(), {**smi(**{name: value}), "dmesg": ""})
        for name, value, words in (
            ("Remapped_Rows__Pending", "Yes", "row remap waits"),
            ("Remapped_Rows__Remapping_Failure_Occurred", "Yes", "could not be remapped"),
            ("ECC_Errors__Volatile__DRAM_Uncorrectable", "2", "DRAM Uncorrectable 2"),
            ("ECC_Errors__Aggregate__SRAM_Threshold_Exceeded", "Yes", "SRAM"),
            ("GPU_Recovery_Action", "Reset", "asks for 'Reset'"),
        )
    ],
    Case("D41", WARNING, "300 of 700 W", gpu(), {**smi(**CAPPED), "dmesg": ""}),
    Case("D41", WARNING, "persistence mode is off", gpu(), {**smi(Persistence_Mode="Disabled"), "dmesg": ""}),
    Case("D41", WARNING, "ECC will be disabled", gpu(), {**smi(**ECC_CHANGES), "dmesg": ""}),
    Case("D41", OK, "no Xid", gpu(), {**smi(**WELL), "dmesg": ""}),
    Case("D04", PROBLEM, f"does not have {GPU1}", UNTAKEN | {"/proc/driver/nvidia/version": OPEN}),
    Case("D04", OK, "open", UNTAKEN | VFIO | {"/proc/driver/nvidia/version": OPEN}),
    Case(
        "D41",
        WARNING,
        "HW Thermal Slowdown",
        gpu(),
        {**smi(Clocks_Event_Reasons__HW_Thermal_Slowdown="Active"), "dmesg": ""},
    ),
]

# One machine each that was once called ok without a look, or never ok.
BUS_ERROR = "[  9.1] {}: PCIe Bus Error: severity={}, type=Data Link Layer, (Transmitter ID)\n"
DELIVERED = "btl_base_warn_component_unused=0\nmtl = ^ofi\nbtl = ^uct,openib,ofi\npml = ^ucx\nosc = ^ucx,pt2pt\n"
STOCK = {"/etc/openmpi/openmpi-mca-params.conf": DELIVERED}
LOOKED = [
    Case("D09", UNKNOWN, "iommu_group", gpu() | {"/sys/class/iommu/dmar0/x": ""}),
    Case(
        "D41",
        PROBLEM,
        "Uncorrected (Fatal)",
        gpu(),
        {**smi(), "dmesg": BUS_ERROR.format("nvidia 0000:17:00.0", "Uncorrected (Fatal)")},
    ),
    Case(
        "D41",
        WARNING,
        "30 corrected",
        gpu(),
        {**smi(), "dmesg": 30 * BUS_ERROR.format("pcieport 0000:16:00.0", "Corrected")},
    ),
    Case("D41", PROBLEM, f"{GPU0} (3)", gpu(aer_dev_fatal="Undefined 0\nTOTAL_ERR_FATAL 3\n"), smi()),
    Case(
        "D41",
        WARNING,
        f"{GPU0} (7)",
        gpu(aer_dev_correctable="RxErr 7\nTOTAL_ERR_COR 7\n"),
        {**smi(), "dmesg": ""},
    ),
    Case("D26", WARNING, "link_downed 12", nic() | {f"{PORT}/counters/link_downed": "12"}),
    Case(
        "D26",
        WARNING,
        "symbol_error 65535",
        nic() | {f"{PORT}/counters/symbol_error": "65535", f"{PORT}/hw_counters/out_of_sequence": "0"},
    ),
    Case(
        "D26",
        OK,
        "no significant",
        nic() | {f"{PORT}/counters/link_downed": "1", f"{PORT}/hw_counters/out_of_sequence": "0"},
    ),
    Case("D23", UNKNOWN, "made for PCIe of 512 Gb/s, its ports carry 100", nic(rate="100 Gb/sec (4X EDR)")),
    Case("D34", PROBLEM, "shared memory", environment={"OMPI_MCA_btl": "tcp,self"}),
    Case("D34", PROBLEM, "shared memory", environment={"OMPI_MCA_btl": "^vader"}),
    Case("D34", OK, "OMPI_MCA_btl=vader,self", environment={"OMPI_MCA_btl": "vader,self"}),
    Case("D34", OK, "OMPI_MCA_btl=^openib", environment={"OMPI_MCA_btl": "^openib"}),
    Case("D34", PROBLEM, "do not start", environment={"OMPI_MCA_pml": "cm"}),
    Case("D34", PROBLEM, "no such device here", nic(), UCX, {"UCX_NET_DEVICES": "mlx5_7:1"}),
    Case("D34", OK, "mlx5_0:1", nic(), UCX, {"UCX_NET_DEVICES": "mlx5_0:1"}),
    Case("D34", WARNING, "a line for each message", environment={"NCCL_DEBUG": "TRACE"}),
    Case("D34", WARNING, "NCCL_P2P_DISABLE=1 switches off peer", environment={"NCCL_P2P_DISABLE": "1"}),
    Case("D34", OK, "NCCL_P2P_DISABLE=0", environment={"NCCL_P2P_DISABLE": "0"}),
    Case("D34", WARNING, "shared memory", environment={"NCCL_SHM_DISABLE": "1"}),
    Case("D34", WARNING, "NCCL_NET=Socket switches off RDMA", environment={"NCCL_NET": "Socket", "NCCL_DEBUG": "INFO"}),
    Case("D34", OK, "NCCL_NET_GDR_LEVEL=SYS", environment={"NCCL_NET_GDR_LEVEL": "SYS"}),
    Case(
        "D34",
        WARNING,
        "a line for each message",
        {},
        {**UCX, "ucx_info -c": f"{UCX_C}UCX_LOG_LEVEL=warn\n"},
        {"UCX_LOG_LEVEL": "trace"},
    ),
    Case("D34", OK, "NCCL_DEBUG=INFO", environment={"NCCL_DEBUG": "INFO"}),
    Case(
        "D34",
        PROBLEM,
        "has; no such variable: UCX_TSL; /etc/nccl.conf sets",
        {"/etc/nccl.conf": "NCCL_ALGO=Ring\n"},
        UCX,
        {"UCX_TLS": "tcp", "UCX_TSL": "x"},
    ),
    Case("D34", OK, "OMPI_MCA_pml=^ucx", STOCK),
    Case("D34", WARNING, "OMPI_MCA_pml=^ucx", STOCK | nic()),
    Case("D33", OK, "/usr/lib64/libucp.so.0", {"/usr/lib64/libucp.so.0": "", "/usr/lib64/libucp.so": ""}),
    Case("D19", PROBLEM, "ptrace_scope is 2", {"/proc/sys/kernel/yama/ptrace_scope": "2"}),
    Case("D19", UNKNOWN, "needs a trial on the machine itself"),
    Case("D36", WARNING, "times the time", results=spoiled(cliff)),
]

RDMA_CASES = [
    Case(
        "D01", OK, "nvidia_peermem", PAIR | PEERMEM | {"/proc/modules": "ib_core 1 2 nvidia_peermem,ib_uverbs, Live\n"}
    ),
    Case("D01", PROBLEM, "not attached", PAIR | PEERMEM | {"/proc/modules": "ib_core 1 1 ib_uverbs, Live\n"}),
    Case("D01", WARNING, "without dma-buf support", PAIR),
    Case("D01", PROBLEM, "do not offer dma-buf", PAIR | {VERSION: PROPRIETARY}),
    Case("D02", OK, "fit together", PAIR | PEERMEM | SYMBOL),
    Case("D02", PROBLEM, "has no effect", PAIR | PEERMEM | {"/proc/kallsyms": "0 T nothing\n"}),
    Case(
        "D02",
        PROBLEM,
        "disagrees about version",
        PAIR | SYMBOL,
        {"dmesg": "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client\n"},
    ),
    Case("D02", ABSENT, "dma-buf", PAIR | {"/proc/kallsyms": "0 T nothing\n"}, {"dmesg": ""}),
    Case("D03", OK, "both support dma-buf", PAIR, {**cuda(), **verbs(mlx5_0="yes")}),
    Case("D03", PROBLEM, "5.12", PAIR | {RELEASE: "5.4.0-generic"}),
    Case("D03", PROBLEM, "exports no dma-buf", PAIR, cuda(dma_buf=0)),
    Case("D03", PROBLEM, "EOPNOTSUPP", PAIR, {**cuda(), **verbs(mlx5_0="EOPNOTSUPP")}),
    Case("D06", OK, "libgdrapi 2.5", gpu() | GDRDRV, smi()),
    Case("D06", PROBLEM, "/dev/gdrdrv is not there", gpu() | {"/sys/module/gdrdrv/version": "2.5\n"}),
    Case("D06", WARNING, "not loaded", gpu()),
    Case("D06", PROBLEM, "do not match", gpu() | GDRDRV | {"/sys/module/gdrdrv/version": "2.3\n"}, smi()),
    Case("D06", WARNING, "GDRCOPY_USE_DMABUF_MMAP", gpu() | GDRDRV, smi(head="CUDA Version    : 13.4\n")),
    Case("D06", PROBLEM, "may not open", gpu() | GDRDRV, smi(), user=12345),
    Case("D07", OK, "put", gpu() | GDRDRV, results=spoiled(fast_bar)),
    Case("D07", WARNING, "not write-combined", gpu() | GDRDRV, results=spoiled(slow_bar)),
    Case("D07", UNKNOWN, "bar_copy", gpu() | GDRDRV, results=GOOD_PROFILE),
    Case(
        "D08",
        OK,
        "covers",
        gpu(),
        smi(FB_Memory_Usage__Total="81559 MiB", BAR1_Memory_Usage__Total="131072 MiB", BAR1_Memory_Usage__Used="1 MiB"),
    ),
    Case(
        "D08",
        PROBLEM,
        "nearly full",
        gpu(),
        smi(FB_Memory_Usage__Total="15360 MiB", BAR1_Memory_Usage__Total="256 MiB", BAR1_Memory_Usage__Used="250 MiB"),
    ),
    Case(
        "D08",
        WARNING,
        "smaller than the memory",
        gpu(),
        smi(FB_Memory_Usage__Total="15360 MiB", BAR1_Memory_Usage__Total="256 MiB", BAR1_Memory_Usage__Used="5 MiB"),
    ),
    Case("D08", WARNING, "256 MiB or less", gpu(resource="0x0 0x0 0x0\n0x10000000 0x1fffffff 0x14220c\n"[:60])),
    Case("D39", OK, "no flush needed", PAIR, cuda()),
    Case("D39", WARNING, "need a flush", PAIR, cuda(writes_ordering=0)),
    Case("D39", PROBLEM, "stale data", PAIR, cuda(writes_ordering=0, flush_options=0)),
]

PCIE_CASES = [
    Case("D09", OK, "no IOMMU", gpu() | METAL),
    Case("D09", OK, "passes", gpu() | IOMMU | {"/sys/kernel/iommu_groups/7/type": "identity\n"}),
    Case("D09", PROBLEM, GPU0, gpu() | IOMMU | {"/sys/kernel/iommu_groups/7/type": "DMA-FQ\n"}),
    Case("D10", OK, "none of 2 bridges", TWO | ACS_OFF | METAL),
    Case("D12", OK, "full width", TWO),
    Case(
        "D12",
        PROBLEM,
        "2.5 of 16 GT/s",
        nic() | link_files(f"{HOST}/{BRIDGE0}/{NIC0}", "2.5", "16", "16.0", "16"),
    ),
    Case("D12", UNKNOWN, "under load", gpu() | link_files(f"{HOST}/{BRIDGE0}/{GPU0}", "2.5", "16", "32.0", "16")),
    Case(
        "D12",
        PROBLEM,
        "under load",
        gpu() | link_files(f"{HOST}/{BRIDGE0}/{GPU0}", "2.5", "16", "32.0", "16"),
        smi(Performance_State="P0"),
    ),
    Case("D30", OK, "512 bytes or more", nic(config=config(express={8: 0x5010}))),
    Case("D30", WARNING, "relaxed ordering off", nic(config=config(express={8: 0x5000}))),
    Case("D30", WARNING, "at most 128", nic(config=config(express={8: 0x0010}))),
    Case("D30", WARNING, "switches relaxed ordering off", nic(), environment={"UCX_IB_PCI_RELAXED_ORDERING": "n"}),
    Case("D31", ABSENT, "not a virtual machine", PAIR | METAL),
    Case("D31", OK, "translation service is on", PAIR | VM | nic(config=config({0x0F: {6: 0x8000}}))),
    Case("D31", PROBLEM, "(ATS) is off", PAIR | VM | nic(config=config({0x0F: {6: 0}}))),
    Case("D28", OK, "is known", TWO | numa(2)),
    Case("D28", WARNING, "contradict", gpu(cpus="4-7") | numa(2)),
    Case("D29", OK, "near to", gpu() | numa(2) | {"/proc/self/status": STATUS.format("0-3")}),
    Case("D29", PROBLEM, "all far", gpu() | numa(2) | {"/proc/self/status": STATUS.format("4-7")}),
    Case(
        "D29",
        WARNING,
        "not bound to a NUMA node",
        gpu() | numa(2) | {"/proc/self/status": STATUS.format("0-7")},
        environment={"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1"},
    ),
]

NIC_CASES = [
    Case("D22", OK, "can be opened", nic()),
    Case("D22", PROBLEM, "uverbs1", nic() | {k: v for k, v in MLX5_1.items() if k != "/dev/infiniband/uverbs1"}),
    Case("D22", PROBLEM, "may not open", nic(), user=12345),
    Case("D23", OK, "400 Gb/s", nic()),
    Case("D23", PROBLEM, "no port is active", nic(state="1: DOWN")),
    Case("D23", PROBLEM, "1X", nic(rate="100 Gb/sec (1X NDR)")),
    Case("D23", UNKNOWN, "2 lanes, as NDR200", nic(rate="200 Gb/sec (2X NDR)", device="0x1021")),
    Case("D23", OK, "200 Gb/s", nic(rate="200 Gb/sec (2X NDR)", device="0x1021"), widths("1X or 2X")),
    Case("D23", WARNING, "2 of 4 lanes", nic(rate="200 Gb/sec (2X NDR)", device="0x1021"), widths("1X or 4X or 2X")),
    Case("D23", PROBLEM, "mlx5_0:1 1X", nic(rate="25 Gb/sec (1X EDR)")),
    Case("D23", OK, "200 Gb/s Ethernet", nic(rate="200 Gb/sec (2X NDR)", layer="Ethernet")),
    Case("D23", UNKNOWN, "carry 100", nic(rate="100 Gb/sec (1X NDR)", layer="Ethernet")),
    Case("D23", WARNING, "50 Gb/s a lane, ConnectX-7 has 100", nic(rate="200 Gb/sec (4X HDR)", device="0x1021")),
    Case("D23", OK, "400 Gb/s", nic(device="0x1021")),
    Case("D23", WARNING, "200 of 400", MLX5_1 | nic(rate="200 Gb/sec (4X HDR)")),
    Case("D23", WARNING, "mlx5_0:1 DOWN", MLX5_1 | nic(state="1: DOWN")),
    Case("D24", OK, "index 3", roce({0: (LINK_LOCAL, "RoCE v2"), 3: (IPV4, "RoCE v2")})),
    Case("D24", PROBLEM, "no routable", roce({0: (LINK_LOCAL, "RoCE v2"), 2: (IPV4, "IB/RoCE v1")})),
    Case("D24", PROBLEM, "NCCL_IB_GID_INDEX=0", roce({3: (IPV4, "RoCE v2")}), environment={"NCCL_IB_GID_INDEX": "0"}),
    Case("D25", OK, "uses 4096", roce({3: (IPV4, "RoCE v2")})),
    Case("D25", WARNING, "1024 of 4096", roce({3: (IPV4, "RoCE v2")}, mtu=1500)),
    Case("D25", WARNING, "active MTU 2048", nic(), {"ibv_devinfo": "\t\tactive_mtu:\t\t2048 (4)\n"}),
    Case("D25", OK, "active MTU 4096", nic(), {"ibv_devinfo": "\t\tactive_mtu:\t\t4096 (5)\n"}),
    Case("D26", OK, "no significant packet loss", nic() | {f"{PORT}/hw_counters/out_of_sequence": "0"}),
    Case("D26", WARNING, "local_ack_timeout_err 9", nic() | {f"{PORT}/hw_counters/local_ack_timeout_err": "9"}),
    Case("D26", UNKNOWN, "hw_counters", nic()),
    Case("D27", OK, f"{GPU0}: mlx5_0", PAIR | gpu(GPU1, BRIDGE1) | MLX5_1),
    Case("D27", WARNING, "no GPU is nearest to mlx5_1", PAIR | gpu("0000:19:00.0", BRIDGE0) | MLX5_1),
    Case("D27", PROBLEM, "mlx5_7", PAIR, environment={"UCX_NET_DEVICES": "mlx5_7:1"}),
    Case("D27", PROBLEM, "mlx5_7", PAIR, environment={"NCCL_IB_HCA": "=mlx5_0,mlx5_7"}),
    Case("D27", PROBLEM, "names mlx, which", PAIR, environment={"NCCL_IB_HCA": "=mlx"}),
    Case("D27", WARNING, "leaves NCCL no NIC", PAIR, environment={"NCCL_IB_HCA": "^mlx5"}),
    Case("D27", OK, f"{GPU0}: mlx5_0", PAIR, environment={"NCCL_IB_HCA": "^=mlx5"}),
    Case("D27", OK, f"{GPU0}: mlx5_0", PAIR, environment={"NCCL_IB_HCA": "mlx5:1"}),
    Case("D27", OK, f"{GPU0}: mlx5_0", PAIR, environment={"NCCL_IB_HCA": "=mlx5_0:01"}),
    Case("D27", WARNING, "leaves NCCL no NIC", PAIR, environment={"NCCL_IB_HCA": "mlx5_0:2"}),
    Case("D27", WARNING, "leaves NCCL no NIC", PAIR, environment={"NCCL_IB_HCA": "mlx5_0:"}),
    Case("D27", WARNING, "leaves NCCL no NIC", PAIR, environment={"NCCL_IB_HCA": "^mlx5_0:1"}),
    Case("D27", OK, f"{GPU0}: mlx5_0", PAIR, environment={"NCCL_IB_HCA": "^mlx5_0:2"}),
    Case("D27", OK, f"{GPU0}: mlx5_0", PAIR, environment={"NCCL_IB_HCA": ","}),
    Case("D37", OK, "nothing through the NIC", nic(), results={"watch.json": {"nodes": 1, "nic_bytes": 0}}),
    Case("D37", PROBLEM, "2 MiB", nic(), results={"watch.json": {"nodes": 1, "nic_bytes": 2 << 20}}),
    Case("D37", UNKNOWN, "--watch", nic()),
    Case("D44", OK, "eth0 up", {"/sys/class/net/eth0/operstate": "up"}),
    Case("D44", WARNING, "docker0", {f"/sys/class/net/{name}/operstate": "up" for name in ("eth0", "docker0")}),
    Case(
        "D44",
        PROBLEM,
        "NCCL_SOCKET_IFNAME=ib0",
        {"/sys/class/net/eth0/operstate": "up"},
        environment={"NCCL_SOCKET_IFNAME": "ib0"},
    ),
    Case("D44", PROBLEM, "only docker0, eth0 is up", UP, environment={"NCCL_SOCKET_IFNAME": "=eth"}),
    Case("D44", PROBLEM, "only docker0, eth0 is up", UP, environment={"NCCL_SOCKET_IFNAME": "^eth,docker,lo"}),
    Case("D44", WARNING, "docker0", UP, environment={"NCCL_SOCKET_IFNAME": "^lo"}),
    Case("D44", OK, "eth0", UP, environment={"NCCL_SOCKET_IFNAME": "eth"}),
    Case("D44", OK, "eth0 up", UP, environment={"NCCL_SOCKET_IFNAME": "lo"}),
    Case(
        "D44",
        WARNING,
        "datagram",
        {
            "/sys/class/net/ib0/operstate": "up",
            "/sys/class/net/ib0/type": "32",
            "/sys/class/net/ib0/mode": "datagram",
            "/sys/class/net/ib0/mtu": "2044",
        },
    ),
]

TORCHRUN = {"RANK": "0", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "MASTER_PORT": "29500"}
CONTAINER_CASES = [
    Case("D17", OK, "all 2 GPUs", TWO),
    Case("D17", WARNING, "1 of 2", TWO, environment={"CUDA_VISIBLE_DEVICES": "0"}),
    Case(
        "D17",
        PROBLEM,
        "1 of 2",
        TWO,
        environment={
            "CUDA_VISIBLE_DEVICES": "0",
            "OMPI_COMM_WORLD_RANK": "0",
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        },
    ),
    Case("D17", PROBLEM, "can open 1", TWO | {"/dev/nvidia0": "", "/dev/nvidiactl": ""}),
    Case("D18", OK, "not in a container", NAMESPACES),
    Case("D18", UNKNOWN, "other ranks", NAMESPACES | {"/.dockerenv": ""}),
    Case("D19", OK, "tried", {"/proc/sys/kernel/yama/ptrace_scope": "0"}, cma()),
    Case("D19", WARNING, "prctl", {"/proc/sys/kernel/yama/ptrace_scope": "1"}, cma("EPERM")),
    Case("D19", PROBLEM, "seccomp", {}, cma("EPERM")),
    Case("D20", OK, "512 GiB free", spaces={"/dev/shm": (512 << 30, 512 << 30)}),
    Case("D20", WARNING, "8 ranks", environment=TORCHRUN, spaces={"/dev/shm": (1 << 30, 1 << 30)}),
    Case("D21", OK, "no limit", nic() | {"/proc/self/limits": LIMITS.format("unlimited", "unlimited")}),
    Case("D21", WARNING, "2 GiB", nic() | {"/proc/self/limits": LIMITS.format(2 << 30, 2 << 30)}),
]

LIBRARY_CASES = [
    Case("D32", OK, "built with CUDA", gpu(), {"ompi_info --parsable --all": OMPI.format("true")}),
    Case("D32", OK, "a UCX that is built", gpu(), {"ompi_info --parsable --all": OMPI.format("false"), **UCX}),
    Case(
        "D32",
        PROBLEM,
        "neither",
        gpu(),
        {"ompi_info --parsable --all": OMPI.format("false"), "ucx_info -v": UCX_PLAIN},
    ),
    Case("D32", ABSENT, "no MPI", gpu()),
    Case("D32", UNKNOWN, "ompi_info", gpu() | {"/usr/lib64/libmpi.so.40": ""}),
    Case("D33", OK, "/usr/lib64/libucp.so.0", {"/usr/lib64/libucp.so.0": ""}),
    Case("D33", WARNING, "/opt/hpcx", {"/usr/lib64/libucp.so.0": "", "/opt/hpcx/ucx/lib/libucp.so.0": ""}),
    Case(
        "D33",
        PROBLEM,
        "two copies",
        {"/proc/self/maps": "7f00-7f01 r-xp 0 00:01 1 /a/libucp.so.0\n7f02-7f03 r-xp 0 00:01 2 /b/libucp.so.0\n"},
    ),
    Case("D33", ABSENT, "no UCX"),
    Case("D35", WARNING, "UCX_TCP_MAX_BW 2.31 GB/s", {}, UCX, results=HOST_PROFILE),
    Case("D35", OK, "within 25 %", {}, {"ucx_info -c": "UCX_TCP_MAX_BW=3100.00MBps\n"}, results=HOST_PROFILE),
    Case("D35", UNKNOWN, "waywiser measure", {}, UCX),
    Case("D36", OK, "no step", results=HOST_PROFILE),
    Case("D36", WARNING, "posix", results=spoiled(cliff)),
    Case("D40", WARNING, "row by row", gpu() | {"/usr/lib64/libmpi.so.40": ""}),
    Case(
        "D40",
        OK,
        "packer",
        gpu() | {"/usr/lib64/libmpi.so.40": ""},
        environment={"LD_PRELOAD": "/opt/lib/libtempi.so"},
    ),
    Case("D40", ABSENT, "no MPI", gpu()),
    Case("D45", OK, "jobs can encrypt", {"/usr/lib64/libcrypto.so.3": "", "/usr/lib64/libssl.so.3": ""}),
    Case("D45", OK, "libcrypto.so.1.1", {"/usr/lib64/libcrypto.so.1.1": "", "/usr/lib64/libssl.so.1.1": ""}),
    Case("D45", WARNING, "cannot encrypt", {"/usr/lib64/libcrypto.so.3": ""}),
    Case("D46", OK, "UCX 1.22.0 (ucx_info): no known defect", gpu(), {"ucx_info -v": UCX_V}),
    Case("D46", WARNING, "UCX 1.21.3", gpu(), {"ucx_info -v": UCX_V.replace("1.22.0", "1.21.3")}),
    Case("D46", UNKNOWN, "ucx_info", gpu()),
    Case("D46", ABSENT, "no NVIDIA GPU", {}, {"ucx_info -v": UCX_V.replace("1.22.0", "1.21.0")}),
    Case("D45", PROBLEM, "cannot prove", {"/usr/lib64/libz.so.1": ""}),
]

ENVIRONMENT_CASES = [
    Case("D34", OK, "no UCX_*"),
    Case("D34", OK, "UCX_NET_DEVICES=all", {}, UCX, {"UCX_NET_DEVICES": "all"}),
    Case("D34", PROBLEM, "leaves out", {}, UCX, {"UCX_TLS": "tcp"}),
    Case("D34", PROBLEM, "has; UCX_RNDV_THRESH=inf", {}, UCX, {"UCX_TLS": "tcp", "UCX_RNDV_THRESH": "inf"}),
    Case("D34", PROBLEM, "NCCL_IB_HCA?", {}, UCX, {"UCX_TLS": "tcp", "NCCL_IB_HCAS": "mlx5_0"}),
    Case("D34", PROBLEM, "cuda_copy", gpu(), UCX, {"UCX_TLS": "rc,sm"}),
    Case("D34", PROBLEM, "copied twice", {}, UCX, {"UCX_RNDV_THRESH": "inf"}),
    Case("D34", PROBLEM, "round trip", {}, UCX, {"UCX_RNDV_THRESH": "intra:auto,inter:1"}),
    Case("D34", PROBLEM, "not a size", {}, UCX, {"UCX_RNDV_THRESH": "lots"}),
    Case("D34", WARNING, "UCX_TSL", {}, UCX, {"UCX_TSL": "tcp"}),
    Case("D34", WARNING, "NCCL_IB_HCA?", environment={"NCCL_IB_HCAS": "mlx5_0"}),
    Case("D34", WARNING, "/etc/nccl.conf", {"/etc/nccl.conf": "# old\nNCCL_P2P_DISABLE=1\n"}),
    Case("D34", WARNING, "OMPI_MCA_pml=ob1", {"/etc/openmpi/openmpi-mca-params.conf": "pml = ob1\n"}),
    Case("D34", UNKNOWN, "ucx_info", environment={"UCX_NET_DEVICES": "all"}),
    Case("D42", ABSENT, "one node"),
    Case("D43", OK, "nvlink", gpu(), results={"watch.json": {"fell_back": [], "roads": ["nvlink"]}}),
    Case("D43", PROBLEM, "gdr", gpu(), results={"watch.json": {"fell_back": ["gdr"], "roads": ["tcp"]}}),
    Case("D43", UNKNOWN, "--watch", gpu()),
]

# Problems from practice: each machine once made a program slow or wrong.
TRAPS = [
    Case("D10", PROBLEM, BRIDGE0, TWO | ACS_ON | METAL),
    Case("D10", WARNING, "use ATS", TWO | ACS_ON | VM),
    Case("D10", UNKNOWN, "needs root", TWO | {f"{HOST}/{BRIDGE0}/config": bytes(64)}),
    Case("D30", UNKNOWN, "needs root", nic(config=bytes(64))),
    Case("D28", PROBLEM, "gpu0", gpu(numa=-1) | numa(2)),
    Case("D28", OK, "nothing can be far", gpu(numa=-1) | numa(1)),
    Case("D31", WARNING, "flat", gpu(bridge=None) | gpu(GPU1, None) | VM),
    Case("D10", ABSENT, "flat", gpu(bridge=None) | gpu(GPU1, None)),
    Case(
        "D27",
        WARNING,
        "two ports of one card",
        PAIR | nic("mlx5_1", "0000:18:00.1", uverbs="uverbs1"),
        environment={"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1"},
    ),
    Case("D16", PROBLEM, "MIG is on", gpu(), smi(MIG_Mode__Current="Enabled")),
    Case("D13", PROBLEM, "4 of 12", TWO, nvlinks("|".join(["26 GB/s"] * 4 + ["<inactive>"] * 8), WHOLE_LINKS)),
    Case("D12", PROBLEM, "x8 of x16", gpu() | link_files(f"{HOST}/{BRIDGE0}/{GPU0}", "32.0", "8", "32.0", "16")),
    Case(
        "D12",
        OK,
        "bridges",
        bridge_of(BRIDGE0)
        | gpu()
        | link_files(f"{HOST}/{BRIDGE0}", "32.0", "8", "32.0", "8")
        | link_files(f"{HOST}/{BRIDGE0}/{GPU0}", "32.0", "8", "32.0", "16"),
    ),
    Case("D20", PROBLEM, "too little", spaces={"/dev/shm": (65536, 65536)}),
    Case("D20", PROBLEM, "64 MiB", spaces={"/dev/shm": (64 << 20, 64 << 20)}),
    Case("D21", PROBLEM, "64 KiB", nic() | {"/proc/self/limits": LIMITS.format(65536, 65536)}),
    Case(
        "D19",
        PROBLEM,
        "ptrace_scope is 2",
        {"/proc/sys/kernel/yama/ptrace_scope": "2", "/proc/self/status": STATUS.format("0")},
        cma(),
    ),
    Case("D02", UNKNOWN, "dmesg", PAIR | SYMBOL),
    Case("D41", UNKNOWN, "dmesg", gpu(), smi()),
    Case("D13", UNKNOWN, "nvidia-smi", gpu()),
    Case("D03", UNKNOWN, "libibverbs", PAIR, {**cuda(), "waywiser-probe verbs": '{"error": "libibverbs.so.1: no"}'}),
]

CASES = [
    *GPU_CASES,
    *LOOKED,
    *RDMA_CASES,
    *PCIE_CASES,
    *NIC_CASES,
    *CONTAINER_CASES,
    *LIBRARY_CASES,
    *ENVIRONMENT_CASES,
    *TRAPS,
]
