"""PCI devices below /sys: class, place in the tree, link, configuration space."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waywiser.look.finding import Unknown
from waywiser.look.root import Root

_FOLDER = "/sys/bus/pci/devices"
_BUS_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NVIDIA, _DISPLAY, _NVSWITCH = 0x10DE, 0x03, 0x0680
_EXPRESS, _LINK_CONTROL = 0x10, 0x10
_FIRST_EXTENDED, _MOST_CAPABILITIES = 0x100, 64


@dataclass(frozen=True)
class Link:
    """GT/s and lanes of a PCIe link, current and maximum; 0 if not reported."""

    speed: float
    width: int
    most_speed: float
    most_width: int


@dataclass(frozen=True)
class Device:
    """One device; `above` are the bus addresses of the bridges between it and the root, nearest first."""

    address: str
    above: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Its folder below /sys."""
        return f"{_FOLDER}/{self.address}"


def device(root: Root, address: str) -> Device:
    """The device at `address` with the bridges above it."""
    parts = [part for part in root.real(f"{_FOLDER}/{address}").split("/") if _BUS_ID.fullmatch(part)]
    return Device(address, tuple(reversed(parts[:-1])))


def gpus(root: Root) -> list[Device]:
    """NVIDIA GPUs on the PCI bus, by address."""
    found = []
    for address in root.names(_FOLDER):
        folder = f"{_FOLDER}/{address}"
        kind = root.number(f"{folder}/class") or 0
        if _BUS_ID.fullmatch(address) and kind >> 16 == _DISPLAY and root.number(f"{folder}/vendor") == _NVIDIA:
            found.append(device(root, address))
    return found


def has_nvswitch(root: Root) -> bool:
    """Whether an NVSwitch is on the bus."""
    for address in root.names(_FOLDER):
        folder = f"{_FOLDER}/{address}"
        if (root.number(f"{folder}/class") or 0) >> 8 == _NVSWITCH and root.number(f"{folder}/vendor") == _NVIDIA:
            return True
    return False


def link(root: Root, address: str) -> Link:
    """The PCIe link of a device."""
    folder = f"{_FOLDER}/{address}"
    return Link(
        _speed(root.text(f"{folder}/current_link_speed")),
        root.number(f"{folder}/current_link_width") or 0,
        _speed(root.text(f"{folder}/max_link_speed")),
        root.number(f"{folder}/max_link_width") or 0,
    )


def _speed(text: str | None) -> float:
    found = re.match(r"\s*(\d{1,3}(?:\.\d)?) GT/s", text or "")
    return float(found[1]) if found else 0.0


def _config(root: Root, address: str) -> bytes:
    data = root.data(f"{_FOLDER}/{address}/config", 4096)
    if data is None or len(data) <= 64:
        raise Unknown("needs root: other users see only the start of the configuration space of PCI devices")
    return data


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "little") if 0 <= at <= len(data) - 2 else 0


def capability(root: Root, address: str, wanted: int) -> tuple[bytes, int] | None:
    """Configuration space and offset of a standard capability. Raises Unknown without the right to read it."""
    data = _config(root, address)
    at = data[0x34] & 0xFC
    for _ in range(_MOST_CAPABILITIES):
        if at < 0x40 or at + 2 > len(data):
            return None
        if data[at] == wanted:
            return data, at
        at = data[at + 1] & 0xFC
    return None


def extended_capability(root: Root, address: str, wanted: int) -> tuple[bytes, int] | None:
    """Configuration space and offset of an extended capability. Raises Unknown without the right to read it."""
    data = _config(root, address)
    if len(data) < 4096:
        raise Unknown(f"needs the extended configuration space of {address}, which this kernel does not provide")
    at = _FIRST_EXTENDED
    for _ in range(_MOST_CAPABILITIES):
        head = int.from_bytes(data[at : at + 4], "little")
        if head in (0, 0xFFFFFFFF):
            return None
        if head & 0xFFFF == wanted:
            return data, at
        at = (head >> 20) & 0xFFC
        if at < _FIRST_EXTENDED:
            return None
    return None


def sleeps(root: Root, address: str) -> bool:
    """Whether the device may put its link to sleep (ASPM). Raises Unknown without the right to see it."""
    told = [root.number(f"{_FOLDER}/{address}/link/{state}_aspm") for state in ("l0s", "l1")]
    if any(value is not None for value in told):
        return any(told)
    found = capability(root, address, _EXPRESS)
    return bool(found and register(found, _LINK_CONTROL) & 3)


def errors(root: Root, address: str, kind: str) -> int:
    """Errors counted by the kernel (AER): `kind` is "fatal", "nonfatal" or "correctable"; 0 if unknown."""
    text = root.text(f"{_FOLDER}/{address}/aer_dev_{kind}") or ""
    total = re.search(r"^TOTAL_ERR_\w+ (\d{1,18})$", text, re.MULTILINE)
    return int(total[1]) if total else 0


def register(found: tuple[bytes, int], offset: int) -> int:
    """The 16-bit register at `offset` of a capability."""
    return _word(found[0], found[1] + offset)
