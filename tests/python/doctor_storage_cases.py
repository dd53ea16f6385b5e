"""D57 and D58: made-up machines whose files go past the page cache and into GPUs, and others."""

from __future__ import annotations

import json

from doctor_machines import OPEN, PROPRIETARY, gpu
from doctor_parts import ABSENT, OK, PROBLEM, RELEASE, UNKNOWN, VERSION, WARNING, Case

NEW = {RELEASE: "6.1.0-1-amd64\n"}
SWITCH = "/proc/sys/kernel/io_uring_disabled"
LATER = {RELEASE: "6.8.0-1-amd64\n"}
MULTIPATH, PARAMS = "/sys/module/nvme_core/parameters/multipath", "/proc/driver/nvidia/params"
STATIC = 'RegistryDwords: "RMForceStaticBar1=1;RmForceDisableIomapWC=1;"\n'
CUFILE = gpu() | {"/usr/lib64/libcufile.so.0": ""}


DIRECT = CUFILE | LATER | {VERSION: OPEN, "/sys/class/nvme/nvme0/model": "a drive\n"}


def tried(io_uring: str = "", direct: str = "") -> dict[str, str]:
    return {"waywiser-probe storage": json.dumps({"io_uring": io_uring, "direct": direct})}


STORAGE_CASES = [
    Case("D57", OK, "has direct access", NEW, tried()),
    Case("D57", OK, "io_uring is allowed", NEW | {SWITCH: "1\n"}, tried()),  # to root and to its group
    Case("D57", PROBLEM, "io_uring_disabled is 2", NEW | {SWITCH: "2\n"}, tried("EPERM")),
    Case("D57", WARNING, "io_uring_group", NEW | {SWITCH: "1\n"}, tried("EPERM")),
    Case("D57", WARNING, "EPERM: a container's rules", NEW | {SWITCH: "0\n"}, tried("EPERM")),
    Case("D57", WARNING, "no direct access: EINVAL", NEW, tried(direct="EINVAL")),
    Case("D57", PROBLEM, "kernel 5.4", {RELEASE: "5.4.0-1-amd64\n"}, tried()),
    Case("D57", UNKNOWN, "a trial", NEW),
    Case("D58", ABSENT, "no NVIDIA GPU", NEW),
    Case("D58", WARNING, "no libcufile.so.0", gpu()),
    Case("D58", WARNING, "without nvidia_fs and PCI P2PDMA (kernel 6.1", CUFILE | NEW),
    Case("D58", WARNING, "the driver is not loaded", CUFILE | LATER),
    Case("D58", WARNING, "the driver is 535.104.05, and NVIDIA's open one", CUFILE | LATER | {VERSION: PROPRIETARY}),
    Case("D58", WARNING, "there is no NVMe device", CUFILE | LATER | {VERSION: OPEN}),
    Case("D58", WARNING, "multipath=Y", DIRECT | {MULTIPATH: "Y\n"}),
    Case("D58", WARNING, "without NVreg_RegistryDwords=RMForceStaticBar1=1", DIRECT | {MULTIPATH: "N\n"}),
    Case("D58", OK, "NVMe devices can go by PCI P2PDMA", DIRECT | {PARAMS: STATIC}),
    Case("D58", OK, "nvidia_fs 2.24.3", CUFILE | {"/sys/module/nvidia_fs/version": "2.24.3\n"}),
]
