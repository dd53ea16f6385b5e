"""Checks of GPUDirect RDMA and of GDRCopy."""

from __future__ import annotations

import re

from waywiser.doctor.gpu import driver_is_open
from waywiser.look import machine, nvidia, pci, probes
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, unknown, warning
from waywiser.look.root import Root

_CLIENTS = (
    "/sys/module/nvidia_peermem/version",
    "/sys/kernel/mm/memory_peers/nv_mem/version",
    "/sys/module/nv_peer_mem/version",
)
_SYMBOL = b"ib_register_peer_memory_client"
_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib",
)
_SMALL_BAR = 256 << 20


def peer_client(root: Root) -> str:
    """The loaded peer-memory client; empty if there is none."""
    return next((path.split("/")[-2] for path in _CLIENTS if root.exists(path)), "")


def client(root: Root) -> Finding:
    """D01."""
    why = machine.gpudirect_pairs(root)
    if why:
        return absent(why)
    client = peer_client(root)
    if client:
        users = re.search(r"^ib_core \d+ \d+ (\S+)", root.text("/proc/modules") or "", re.MULTILINE)
        if users and client == "nvidia_peermem" and client not in users[1].split(","):
            return problem("nvidia_peermem is loaded, but not attached to ib_core: the two do not match")
        return ok(f"{client} is loaded")
    if machine.kernel(root) < (5, 12) or not driver_is_open(root):
        return problem("no peer-memory client is loaded, and this kernel and driver do not offer dma-buf either")
    return warning("no peer-memory client is loaded: programs without dma-buf support stage through the host")


def abi(root: Root) -> Finding:
    """D02."""
    why = machine.gpudirect_pairs(root)
    if why:
        return absent(why)
    has_symbol, client = root.contains("/proc/kallsyms", _SYMBOL), peer_client(root)
    if client and not has_symbol:
        return problem(f"{client} is loaded, but the RDMA stack has no {_SYMBOL.decode()}: it has no effect")
    if client:
        return ok(f"{client} and the RDMA stack fit together")
    lines = machine.kernel_messages(root, r"(nvidia_peermem|nv_peer_mem).*(disagrees about version|Unknown symbol)")
    if lines:
        return problem(f"the kernel refused peermem: {lines[-1]}")
    if not has_symbol:
        return absent("the RDMA stack of this kernel has no peer-memory clients; it uses dma-buf (D03)")
    return ok("the kernel has refused no peermem")


def dmabuf(root: Root) -> Finding:
    """D03."""
    why = machine.gpudirect_pairs(root)
    if why:
        return absent(why)
    version = machine.kernel(root)
    if version < (5, 12):
        return problem(f"kernel {version[0]}.{version[1]}: dma-buf for RDMA came with 5.12")
    without = [str(i) for i, value in enumerate(probes.gpu_attributes(root, "dma_buf")) if not value]
    if without:
        return problem(f"the driver exports no dma-buf of GPU {machine.named(without)}")
    answers = probes.probe(root, "verbs").get("devices")
    if not isinstance(answers, dict) or not answers:
        raise Unknown("needs an RDMA device that can be opened")
    refused = [f"{name} ({answer})" for name, answer in answers.items() if answer != "yes"]
    if refused:
        return problem(f"no dma-buf registration at {machine.named(refused)}")
    return ok(f"GPU and {machine.named(answers)} both support dma-buf (queried; no buffer was registered)")


def bar1(root: Root) -> Finding:
    """D08."""
    devices = pci.gpus(root)
    if not devices:
        return absent("no NVIDIA GPU")
    try:
        _, gpus = nvidia.query(root)
    except Unknown:
        return _bar1_of_pci(root, devices)
    low, windows = [], []
    for bus, gpu in gpus.items():
        total = nvidia.mebibytes(nvidia.value(gpu, "BAR1 Memory Usage", "Total"))
        used = nvidia.mebibytes(nvidia.value(gpu, "BAR1 Memory Usage", "Used"))
        memory = nvidia.mebibytes(nvidia.value(gpu, "FB Memory Usage", "Total"))
        if not total or used is None or not memory:
            raise Unknown(f"needs the BAR1 memory of {bus}, which nvidia-smi does not report")
        if used > 0.9 * total:
            low.append(f"{bus}: {used} of {total} MiB used")
        elif total < memory:
            windows.append(f"{bus}: {total} MiB for {memory} MiB")
    if low:
        return problem(f"BAR1 is nearly full: {machine.named(low)}")
    if windows:
        return warning(f"BAR1 is smaller than the memory: {machine.named(windows)}")
    return ok("BAR1 covers the memory of every GPU")


def _bar1_of_pci(root: Root, devices: list[pci.Device]) -> Finding:
    small = []
    for device in devices:
        lines = root.needed(f"{device.folder}/resource").splitlines()
        ends = [int(word, 16) for word in lines[1].split()[:2]]
        if 0 < ends[1] - ends[0] < _SMALL_BAR:
            small.append(device.address)
    if small:
        return warning(f"BAR1 of 256 MiB or less at {machine.named(small)}")
    return unknown("BAR1 is larger than 256 MiB; needs nvidia-smi to know how much of it is free")


def ordering(root: Root) -> Finding:
    """D39."""
    why = machine.gpudirect_pairs(root)
    if why:
        return absent(why)
    orders, flushes = probes.gpu_attributes(root, "writes_ordering"), probes.gpu_attributes(root, "flush_options")
    if all(order >= 100 for order in orders):
        return ok("writes of a NIC are ordered for their GPU; no flush needed there")
    if all(flushes):
        return warning("writes of a NIC need a flush before the GPU reads them; the driver offers one")
    return problem("writes of a NIC are not ordered and the driver offers no flush: stale data is possible")


def gdrcopy(root: Root) -> Finding:
    """D06."""
    if not pci.gpus(root):
        return absent("no NVIDIA GPU")
    loaded, node = machine.module(root, "gdrdrv"), root.exists("/dev/gdrdrv")
    if loaded and not node:
        return problem("gdrdrv is loaded, but /dev/gdrdrv is not there")
    if not loaded:
        return warning(
            "gdrdrv is not loaded: the CPU cannot write into GPU memory, so small messages take a slower path"
        )
    if not root.may_open("/dev/gdrdrv"):
        return problem("this user may not open /dev/gdrdrv")
    return _gdrcopy_versions(root)


def _gdrcopy_versions(root: Root) -> Finding:
    version = root.text("/sys/module/gdrdrv/version") or ""
    names = (name for folder in _LIBRARY_FOLDERS for name in root.names(folder))
    library = [found[1] for name in names if (found := re.fullmatch(r"libgdrapi\.so\.(\d+\.\d+(?:\.\d+)?)", name))]
    if not library:
        return warning(f"gdrdrv {version} is loaded, but no libgdrapi is installed")
    if version and library[0].split(".")[:2] != version.split(".")[:2]:
        return problem(f"gdrdrv {version} and libgdrapi {library[0]} do not match")
    head, _ = nvidia.query(root)
    cuda = re.match(r"(\d{1,3})\.(\d{1,3})", nvidia.value(head, "CUDA Version"))
    if cuda and (int(cuda[1]), int(cuda[2])) >= (13, 3) and root.environment.get("GDRCOPY_USE_DMABUF_MMAP") != "1":
        return warning(f"CUDA {cuda[0]}: GDRCopy needs GDRCOPY_USE_DMABUF_MMAP=1, which is not set")
    return ok(f"gdrdrv {version}, libgdrapi {library[0]}, /dev/gdrdrv can be opened")
