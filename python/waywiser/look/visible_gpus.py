"""The GPUs that a CUDA program sees and their numbers: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, as CUDA reads them.

The reading is that of driver 580 on two H100, kept in tests/python/visible_gpus_test.py; that of MIG is NVIDIA's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from waywiser.look import pci
from waywiser.look.finding import Unknown
from waywiser.look.nvidia import bus_address
from waywiser.look.probes import gpu_addresses
from waywiser.look.root import Root

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
_ORDERS = ("PCI_BUS_ID", "FASTEST_FIRST")
_GPUS = "/proc/driver/nvidia/gpus"
_CAPABILITIES = "/proc/driver/nvidia/capabilities"
_NUMBER = re.compile(r"\s*([+-]?)0*(\d+)")
_UUID_LENGTH = 40  # of "GPU-" and 36 characters; CUDA ignores what follows
_LISTED = re.compile(r"GPU (\d{1,4}): .{0,200}?\(UUID: (GPU-[0-9A-Fa-f-]{36})\)")
_INSTANCE = re.compile(r"\s+MIG .{0,200}?\(UUID: (MIG-[0-9A-Za-z/-]{1,80})\)")


@dataclass(frozen=True)
class DriverGpu:
    """A GPU of the driver. `uuid`: "" if unknown; `instances`: UUIDs of its MIG instances, None if unknown."""

    name: str
    address: str = ""
    model: str = ""
    uuid: str = ""
    instances: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Visible:
    """GPUs by CUDA's number; None if unknown. `count`: how many, None if unknown. `why`: what is unknown or wrong."""

    gpus: tuple[str, ...] | None
    count: int | None
    why: str = ""


def visible(environment: Mapping[str, str], gpus: Sequence[DriverGpu]) -> Visible:
    """What a program with these variables sees of `gpus`, which are in bus order."""
    order, text = environment.get(ORDER, _ORDERS[1]), environment.get(VISIBLE)
    if order not in _ORDERS:
        return Visible((), 0, f"{ORDER}={order[:40]!r} is neither {' nor '.join(_ORDERS)}: CUDA does not start")
    if text is not None and text.startswith("GPU-"):
        return _by_uuid(text, gpus)
    if text is not None and text.startswith("MIG-"):
        return _by_instance(text, gpus)
    chosen, why = (range(len(gpus)), "") if text is None else _numbers(text, len(gpus))
    if order == _ORDERS[1] and len(gpus) > 1 and len({gpu.model or gpu.name for gpu in gpus}) > 1:
        unlike = f"{ORDER} is {_ORDERS[1]} and the GPUs are not known to be alike: their numbers are unknown"
        return Visible(None, len(chosen), unlike) if chosen else Visible((), 0, why)
    return _one_instance([gpus[number] for number in chosen], why)


def _one_instance(chosen: Sequence[DriverGpu], why: str) -> Visible:
    """If a GPU has MIG instances, CUDA shows one instance and nothing else."""
    divided = [gpu for gpu in chosen if gpu.instances]
    if divided and len(chosen) > 1:
        why = f"MIG is on at {divided[0].name}: CUDA shows one of its instances and no other GPU"
    names = tuple(gpu.name for gpu in divided[:1] or chosen)
    return Visible(names, len(names), why)


def _numbers(text: str, count: int) -> tuple[list[int], str]:
    """Numbers up to the first that is invalid. One that occurs twice before it leaves no GPU."""
    found: list[int] = []
    for part in text.split(","):
        number = _number(part)
        if not 0 <= number < count:
            return found, _stops(text, part)
        if number in found:
            return [], _repeated(text)
        found.append(number)
    return found, ""


def _number(text: str) -> int:
    """As strtol reads it, in 32 bits: "1gpu" is 1, "0x1" is 0; -1 for what does not begin with a number."""
    found = _NUMBER.match(text[:64])
    if not found or len(found[2]) > 18:
        return -1
    low = int(found[1] + found[2]) & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _stops(text: str, part: str) -> str:
    if not text.strip():
        return f"{VISIBLE} is empty: no GPU"
    return f"{VISIBLE}={text[:80]}: CUDA stops at {part.strip()[:40]!r}, which names no GPU"


def _repeated(text: str) -> str:
    return f"{VISIBLE}={text[:80]} names a GPU twice: CUDA then shows none"


def _by_uuid(text: str, gpus: Sequence[DriverGpu]) -> Visible:
    """UUIDs, or beginnings of one GPU's UUID, up to the first that is invalid."""
    found: list[DriverGpu] = []
    for part in text.split(","):
        wanted = part[:_UUID_LENGTH].lower()
        fits = [gpu for gpu in gpus if gpu.uuid and gpu.uuid.lower().startswith(wanted)]
        sure = len(wanted) == _UUID_LENGTH and fits
        if part.startswith("GPU-") and not sure and not all(gpu.uuid for gpu in gpus):
            return Visible(None, None, f"{VISIBLE}={text[:80]}: the UUIDs of the GPUs are unknown")
        if not part.startswith("GPU-") or len(fits) != 1:
            return _one_instance(found, _stops(text, part))
        if fits[0] in found:
            return Visible((), 0, _repeated(text))
        found += fits
    return _one_instance(found, "")


def _by_instance(text: str, gpus: Sequence[DriverGpu]) -> Visible:
    """The GPU of the first MIG instance: CUDA shows no more than one. Older drivers: "MIG-GPU-<UUID>/1/0"."""
    part = text.split(",")[0]
    parent = part.removeprefix("MIG-").partition("/")[0].lower()
    for gpu in gpus:
        of_parent = bool(gpu.uuid) and gpu.uuid.lower() == parent and gpu.instances is None
        if of_parent or any(one.lower().startswith(part.lower()) for one in gpu.instances or () if part != "MIG-"):
            return Visible((gpu.name,), 1)
    if any(gpu.instances is None for gpu in gpus):
        return Visible(None, 1, f"{VISIBLE}={text[:80]}: the MIG instances of the GPUs are unknown")
    return Visible((), 0, _stops(text, part))


def visible_here(root: Root, gpus: Iterable[DriverGpu]) -> Visible:
    """The same on this machine, with what the driver says about its GPUs; it decides where the variables do not."""
    known = _as_the_driver_says(root, list(gpus))
    found = visible(root.environment, known)
    if found.gpus is not None:
        return found
    try:
        by_address = {gpu.address: gpu.name for gpu in known}
        return Visible(tuple(by_address[one] for one in gpu_addresses(root)), found.count)
    except (Unknown, KeyError):
        return found


def _as_the_driver_says(root: Root, gpus: list[DriverGpu]) -> list[DriverGpu]:
    """The GPUs that the driver has, with UUIDs and MIG instances as far as the variables need them."""
    have = {bus_address(name) for name in root.names(_GPUS)}
    known = sorted((gpu for gpu in gpus if not have or not gpu.address or gpu.address in have), key=_bus_order)
    folders = [f"{_CAPABILITIES}/{name}/mig" for name in root.names(_CAPABILITIES) if name.startswith("gpu")]
    divided = any(one.startswith("gi") for folder in folders for one in root.names(folder))
    by_uuid = root.environment.get(VISIBLE, "").startswith(("GPU-", "MIG-"))
    return _listed(root, known) if by_uuid or divided else known


def _bus_order(gpu: DriverGpu) -> tuple[str, int]:
    return gpu.address, int(re.sub(r"\D", "", gpu.name) or 0)


def _listed(root: Root, gpus: list[DriverGpu]) -> list[DriverGpu]:
    """With the UUIDs that `nvidia-smi -L` names; without it, with those in /proc."""
    try:
        lines = root.run("nvidia-smi", "-L").splitlines()[:20_000]
    except Unknown:
        return [replace(gpu, uuid=gpu.uuid or _uuid(root, gpu.address)) for gpu in gpus]
    found, number = list(gpus), -1
    for line in lines:
        if listed := _LISTED.match(line):
            number = int(listed[1])
            if number < len(found):
                found[number] = replace(found[number], uuid=listed[2], instances=())
        elif (instance := _INSTANCE.match(line)) and 0 <= number < len(found):
            found[number] = replace(found[number], instances=(*(found[number].instances or ()), instance[1]))
    return found


def _uuid(root: Root, address: str) -> str:
    found = re.search(r"^GPU UUID:\s*(GPU-[0-9A-Fa-f-]{36})\s*$", _information(root, address), re.MULTILINE)
    return found[1] if found else ""


def _information(root: Root, address: str) -> str:
    return (root.text(f"{_GPUS}/{address}/information") or "") if address else ""


def gpus_on_bus(root: Root) -> list[DriverGpu]:
    """The GPUs on the bus, named by their number there."""
    found = []
    for number, device in enumerate(pci.gpus(root)):
        model = re.search(r"^Model:\s*(.{1,80})$", _information(root, device.address), re.MULTILINE)
        found.append(DriverGpu(f"gpu{number}", device.address, model[1].strip() if model else ""))
    return found
