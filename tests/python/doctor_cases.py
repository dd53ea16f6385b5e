"""A good and a bad machine for every check: id, parts of the machine, the answer, and words that it must contain."""

from __future__ import annotations

from doctor_gpu_cases import GPU_CASES, PCIE_CASES
from doctor_looked_cases import LOOKED
from doctor_machines import BRIDGE0, GPU0, GPU1, STATUS, bridge_of, cma, cuda, gpu, link_files, nic, numa, nvlinks, smi
from doctor_network_cases import NIC_CASES, RDMA_CASES
from doctor_parts import (
    ABSENT,
    ACS_ON,
    HOST,
    LIMITS,
    METAL,
    OK,
    PAIR,
    PROBLEM,
    SYMBOL,
    TWO,
    UNKNOWN,
    VM,
    WARNING,
    WHOLE_LINKS,
    Case,
)
from doctor_software_cases import CONTAINER_CASES, ENVIRONMENT_CASES, LIBRARY_CASES

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
