"""Checks of GPUs: driver, NVLink, fabric, sharing, clocks."""

from __future__ import annotations

import re

from waywiser.doctor.gpu_clocks import slowed
from waywiser.doctor.gpu_memory import held_back, memory_problems
from waywiser.doctor.measured import unverified_pairs
from waywiser.look import machine, nvidia, pci, probes
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, warning
from waywiser.look.root import Root

_NO_GPU = "no NVIDIA GPU"
_VERSION = re.compile(r"\b(\d{3}\.\d{2,3}(?:\.\d{2,3})?)\b")

# Knob -> (its default, what another value does).
_KNOBS = {
    "EnableResizableBar": ("0", "the driver resizes the GPU's BAR1"),
    "EnablePCIERelaxedOrderingMode": ("0", "GPU traffic may be reordered on PCIe"),
    "GrdmaPciTopoCheckOverride": ("0", "GPUDirect RDMA even if the driver would reject the PCIe path"),
    "DmaRemapPeerMmio": ("1", "peer memory is not mapped through the IOMMU"),
    "RmNvlinkBandwidthLinkCount": ("0", "the number of NVLinks in use is limited"),
    "NvLinkDisable": ("0", "NVLink is switched off"),
}

# Faults in a program and what follows: 13 an exception of a kernel, 31 an invalid address, 43 and 45 clean-up.
_PROGRAM_XIDS = (13, 31, 43, 45)
_LITTLE_SXID = re.compile(r"\bSXid\b.*\bNon-fatal\b", re.IGNORECASE)


def driver_version(root: Root) -> str:
    """The version of the loaded driver; empty if none is loaded."""
    found = _VERSION.search(root.text("/proc/driver/nvidia/version") or "")
    return found[1] if found else ""


def driver_is_open(root: Root) -> bool:
    """Whether the loaded driver is the open flavour."""
    return "Open Kernel Module" in (root.text("/proc/driver/nvidia/version") or "")


def flavour(root: Root) -> Finding:
    """D04."""
    if not pci.gpus(root):
        return absent(_NO_GPU)
    version = driver_version(root)
    if not version:
        return problem("there is a GPU, but no NVIDIA driver is loaded")
    if lost := _not_taken(root):
        return problem(f"the driver does not have {machine.named(lost)}, which the bus has: see the kernel log")
    if driver_is_open(root):
        return ok(f"open kernel modules {version}")
    if not machine.gpudirect_pairs(root):
        return warning(f"proprietary kernel modules {version}: no dma-buf, so GPUDirect RDMA needs nvidia_peermem")
    return ok(f"proprietary kernel modules {version}; no RDMA device that could use dma-buf")


def _not_taken(root: Root) -> list[str]:
    """GPUs on the bus that are bound to NVIDIA's driver or to none, and that the driver does not list."""
    have = {nvidia.bus_address(name) for name in root.names("/proc/driver/nvidia/gpus")}
    if not have or machine.in_container(root):
        return []
    left = [one for one in pci.gpus(root) if one.address not in have]
    bound = {one.address: (root.link(f"{one.folder}/driver") or "nvidia").rsplit("/", 1)[-1] for one in left}
    return [address for address, name in bound.items() if name == "nvidia"]


def knobs(root: Root) -> Finding:
    """D05."""
    text = root.text("/proc/driver/nvidia/params")
    if not pci.gpus(root):
        return absent(_NO_GPU)
    if text is None:
        raise Unknown("needs /proc/driver/nvidia/params: the driver is not loaded")
    values = dict(re.findall(r"^(\w{1,64}): (.{0,200})$", text, re.MULTILINE))
    changed = [
        f"{name}={values[name]} ({effect})"
        for name, (default, effect) in _KNOBS.items()
        if name in values and values[name].strip() != default
    ]
    extra = values.get("RegistryDwords", '""').strip().strip('"')
    if extra:
        changed.append(f"RegistryDwords={extra}")
    return warning("; ".join(changed)) if changed else ok("all knobs that matter here have their defaults")


def nvlink(root: Root) -> Finding:
    """D13."""
    if not pci.gpus(root):
        return absent(_NO_GPU)
    links = nvidia.nvlinks(root)
    if not links:
        return absent("these GPUs have no NVLink")
    most = max(total for _, total in links.values())
    down = [f"GPU {i}: {active} of {max(total, most)}" for i, (active, total) in links.items() if active < most]
    if down:
        return problem(f"NVLinks are down: {machine.named(down)}")
    errors = re.findall(r"(?:Replay|Recovery|CRC)[A-Za-z ]*Errors?: ([1-9]\d*)", root.run("nvidia-smi", "nvlink", "-e"))
    if errors:
        return warning(f"all {most} NVLinks are up, but {len(errors)} error counters are not zero")
    return ok(f"all {most} NVLinks of {len(links)} GPUs are up, no errors counted")


def fabric(root: Root) -> Finding:
    """D14."""
    if not pci.gpus(root):
        return absent(_NO_GPU)
    switched = pci.has_nvswitch(root) or bool(root.names("/proc/driver/nvidia-nvswitch/devices"))
    head, gpus = nvidia.query(root)
    states = {(nvidia.value(gpu, "Fabric", "State"), nvidia.value(gpu, "Fabric", "Status")) for gpu in gpus.values()}
    named = {state for state, _ in states} - {"", "N/A"}
    if not named and not switched:
        return absent("no NVSwitch fabric")
    if not named:
        return problem("there is an NVSwitch, but the GPUs are not registered with a fabric")
    if states != {("Completed", "Success")}:
        bad = sorted(states - {("Completed", "Success")})
        return problem(f"fabric registration: {'; '.join(f'{state} ({status})' for state, status in bad)}")
    return _fabric_manager(root, nvidia.value(head, "Driver Version") or driver_version(root), switched)


def _fabric_manager(root: Root, driver: str, switched: bool) -> Finding:
    if not switched:
        return ok("all GPUs are registered with the fabric; its manager runs outside this machine")
    try:
        found = _VERSION.search(root.run("nv-fabricmanager", "--version"))
    except Unknown:
        return ok("all GPUs are registered with the fabric")
    if found and driver and found[1] != driver:
        return problem(f"fabric manager {found[1]}, driver {driver}: the versions must be the same")
    return ok(f"all GPUs are registered with the fabric; fabric manager {found[1] if found else ''}")


def imex(root: Root) -> Finding:
    """D15."""
    if not pci.gpus(root):
        return absent(_NO_GPU)
    if "nvidia-caps-imex-channels" not in (root.text("/proc/devices") or ""):
        return absent("the driver offers no IMEX channels")
    folder = "/dev/nvidia-caps-imex-channels"
    channels = root.names(folder)
    if not channels:
        return warning("no IMEX channel: memory cannot be shared by fabric handles, only by file descriptors")
    closed = [name for name in channels if not root.may_open(f"{folder}/{name}")]
    if len(closed) == len(channels):
        return problem(f"IMEX channels exist ({machine.named(channels)}), but this user may not open them")
    return ok(f"IMEX: {machine.named(name for name in channels if name not in closed)} can be opened")


def sharing(root: Root) -> Finding:
    """D16."""
    if not pci.gpus(root):
        return absent(_NO_GPU)
    _, gpus = nvidia.query(root)
    mig = [bus for bus, gpu in gpus.items() if nvidia.value(gpu, "MIG Mode", "Current") == "Enabled"]
    if mig:
        return problem(f"MIG is on at {machine.named(mig)}: no peer access and no CUDA IPC there")
    modes = {nvidia.value(gpu, "Compute Mode") for gpu in gpus.values()} - {"", "Default"}
    if modes:
        return warning(f"compute mode {', '.join(sorted(modes))}: a second process on the GPU is refused")
    pipe = root.environment.get("CUDA_MPS_PIPE_DIRECTORY", "")
    if pipe and not root.exists(pipe):
        return problem(f"CUDA_MPS_PIPE_DIRECTORY={pipe} is not there: CUDA programs fail or run without MPS")
    return ok("no MIG, default compute mode" + (f", MPS at {pipe}" if pipe else ""))


def peers(root: Root) -> Finding:
    """D11."""
    if len(pci.gpus(root)) < 2:
        return absent("fewer than two GPUs")
    matrix = probes.peer_matrix(root)
    count = len(matrix)
    refused = [f"{a}>{b}" for a in range(count) for b in range(count) if not matrix[a][b]]
    wrong, verified = unverified_pairs(root)
    if wrong:
        return problem(f"data did not arrive intact: {machine.named(wrong)}")
    if refused:
        return warning(
            f"no peer access between {len(refused)} of {count * (count - 1)} pairs: {machine.named(refused)}"
        )
    if not verified:
        raise Unknown("the driver reports peer access between all GPUs; needs 'waywiser measure' to verify the data")
    return ok(f"all {count} GPUs reach each other; data verified on {verified} paths")


def state(root: Root) -> Finding:
    """D41."""
    if not pci.gpus(root):
        return absent(_NO_GPU)
    _, gpus = nvidia.query(root)
    counted = _counted_errors(root, "fatal", "nonfatal")
    if counted:
        return problem(f"uncorrected PCIe errors counted at {machine.named(counted)}")
    if harmed := memory_problems(gpus):
        return problem(machine.named(harmed))
    told = machine.kernel_messages(root, r"NVRM: Xid|SXid|(AER|PCIe Bus Error).*(Uncorrect|Fatal)")
    of_programs = [line for line in told if _xid(line) in _PROGRAM_XIDS]
    errors = [line for line in told if line not in of_programs and not _LITTLE_SXID.search(line)]
    if errors:
        return problem(f"{len(errors)} Xid, SXid or AER messages in the kernel log, the last: {errors[-1]}")
    if slow := slowed(gpus):
        return warning(f"the GPU is slowed down: {machine.named(slow)}")
    if little := [line for line in told if _LITTLE_SXID.search(line)]:
        return warning(f"{len(little)} SXid messages of the NVSwitches, not fatal, the last: {little[-1]}")
    if held := held_back(gpus):
        return warning(machine.named(held))
    mended = _counted_errors(root, "correctable")
    if mended:
        return warning(f"corrected PCIe errors counted at {machine.named(mended)}: each costs a repetition")
    logged = machine.kernel_messages(root, r"(AER|PCIe Bus Error).*\bCorrected")
    if logged:
        return warning(f"{len(logged)} corrected PCIe errors in the kernel log, the last: {logged[-1]}")
    if of_programs:
        numbers = machine.named(sorted({str(_xid(line)) for line in of_programs}))
        return ok(f"no slow-down active; {len(of_programs)} Xid messages that programs cause ({numbers}), no others")
    return ok("no slow-down active, no Xid or AER message in the kernel log")


def _xid(line: str) -> int:
    """The number of an Xid message; 0 for another line."""
    found = re.search(r"NVRM: Xid \([^()]{1,60}\): (\d{1,4})\b", line)
    return int(found[1]) if found else 0


def _counted_errors(root: Root, *kinds: str) -> list[str]:
    """GPUs and the bridges above them at which the kernel counted PCIe errors, with the number."""
    addresses = dict.fromkeys(a for device in pci.gpus(root) for a in (device.address, *device.above))
    counts = {address: sum(pci.errors(root, address, kind) for kind in kinds) for address in addresses}
    return [f"{address} ({count})" for address, count in counts.items() if count]
