"""Builds a topology from a foreign file and numbers the devices as our own format requires."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology.gpu_models import is_amd

MOST_DEVICES = 4096
_MOST_CPUS = 65536
_MOST_KINDS_LEFT_OUT = 32
# In addition, attribute "gpu_links" of a GPU is "unknown" if the file does not say how it is linked to others.
_AMD_NOTE = "AMD GPUs: xGMI links are shown, their rates are unknown; only NVIDIA GPUs are measured"


class TopologyBuilder:
    """Collects devices and links; in `finish` the core checks them and fills in derived rates."""

    def __init__(self, what: str) -> None:
        """`what` names the file in messages."""
        self.what = what
        self.devices: list[dict[str, Any]] = []
        self.links: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.software: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._left_out: Counter[str] = Counter()

    def leave_out(self, what: str, count: int = 1) -> None:
        """Counts parts of the file that the topology lacks; `finish` lists them in a note."""
        if what not in self._left_out and len(self._left_out) >= _MOST_KINDS_LEFT_OUT:
            what = "other elements"
        self._left_out[what] += count

    def links_unknown(self, gpus: Iterable[str], why: str) -> None:
        """Notes that the file does not say which NVLinks or xGMI links these GPUs have."""
        gpus = list(gpus)
        for gpu in gpus:
            self.device(gpu).setdefault("attributes", {})["gpu_links"] = "unknown"
        if gpus:
            self.notes.append(f"links between GPUs are not known for {spell(gpus)}: {why}")

    def add(self, kind: str, name: str = "", number: int | None = None, /, **facts: Any) -> str:
        """Adds a device with the given or the next number, and returns its id.

        Facts are fields of the format: bus_id, numa, cores, memory_bytes, attributes.
        """
        if len(self.devices) >= MOST_DEVICES:
            raise InputError(f"{self.what}: more than {MOST_DEVICES} devices")
        if number is None:
            number = self._numbers.get(kind, 0)
        self._numbers[kind] = max(self._numbers.get(kind, 0), number + 1)
        id_ = f"{kind}{number}"
        self.devices.append({"id": id_, "kind": kind, "name": name, **{k: v for k, v in facts.items() if v != ""}})
        return id_

    def link(self, a: str, b: str, kind: str, source: str = "", /, **facts: Any) -> None:
        """Joins two devices; facts are fields of the format (generation, width, count, nominal...)."""
        self.links.append({"a": a, "b": b, "kind": kind, "source": source, **facts})

    def device(self, id_: str) -> dict[str, Any]:
        """The device with this id, to be completed."""
        return next(device for device in self.devices if device["id"] == id_)

    def finish(self, name: str, kind: str, source: str) -> _core.Topology:
        """The checked topology. Raises `_core.Error` (invalid input) with one line."""
        notes = self.notes + [
            f"left out: {what}" + (f" ({n} of them)" if n > 1 else "") for what, n in self._left_out.items()
        ]
        if any(d["kind"] == "gpu" and is_amd(d.get("attributes", {})) for d in self.devices):
            notes.append(_AMD_NOTE)
        value = {
            "schema": "waywiser.topology",
            "version": 1,
            "name": name,
            "kind": kind,
            "source": source,
            "notes": notes,
            "software": self.software,
            "devices": self.devices,
            "links": self.links,
        }
        return _core.Topology.from_json(json.dumps(value), self.what)


def name_of_file(what: str, otherwise: str) -> str:
    """The name of a machine that its file does not name: that of the file, "ndv5-topo"; `otherwise` if it is none."""
    return Path(what).stem[:200] if "." in what and " " not in what and not what.startswith("-") else otherwise


def spell(ids: list[str]) -> str:
    """["gpu0", "gpu1", "gpu2", "gpu5"] -> "gpu0-2, gpu5"."""
    kind = ids[0].rstrip("0123456789")
    return ", ".join(kind + part for part in cpulist([int(id_[len(kind) :]) for id_ in ids]).split(","))


def cpus_of_mask(mask: str, what: str) -> list[int]:
    """CPU numbers of a mask as Linux writes it: hexadecimal words of 32 bits, "0000ffff,f00000ff" or "0x..,0x.."."""
    words = [word.strip().removeprefix("0x") or "0" for word in mask.split(",")]
    if len(words) > _MOST_CPUS // 32 or any(len(word) > 16 for word in words):
        raise InputError(f"{what}: the CPU mask is too long")
    try:
        bits = 0
        for word in words:
            bits = (bits << 32) | int(word, 16)
    except ValueError:
        raise InputError(f"{what}: {mask[:40]!r} is not a CPU mask") from None
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def mask_of_cpus(cpus: list[int], prefix: str = "") -> str:
    """The inverse of `cpus_of_mask`."""
    bits = sum(1 << cpu for cpu in set(cpus))
    words = []
    while True:
        words.append(f"{prefix}{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
        if not bits:
            return ",".join(reversed(words))


def cpulist(cpus: list[int]) -> str:
    """[0, 1, 2, 8] -> "0-2,8"."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and parts[-1][1] + 1 == cpu:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def cpus_of_list(text: str) -> list[int]:
    """The inverse of `cpulist`; parts that are not numbers are left out."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last.isdecimal() or not last) and len(first) < 6 and len(last) < 6:
            cpus.update(range(int(first), min(int(last or first), _MOST_CPUS) + 1))
    return sorted(cpus)


# Rates of a lane in GB/s, by PCIe generation, with the values of hwloc and NCCL.
_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.5625}
_TRANSFERS = {"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32": 5, "32.0": 5, "64": 6, "64.0": 6}


def pcie_generation(speed: str) -> int:
    """ "16.0 GT/s PCIe" -> 4; 0 if unknown."""
    return _TRANSFERS.get(speed.split(" ", 1)[0], 0)


def pcie_speed(generation: int) -> str:
    """4 -> "16.0 GT/s PCIe"; empty for 0."""
    words = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
    return f"{words[generation]} GT/s PCIe" if generation in words else ""


def pcie_of_rate(gigabytes: float) -> tuple[int, int]:
    """Generation and lanes of a link with this rate in GB/s; the widest if several fit, (0, 0) if none."""
    for width in (32, 16, 8, 4, 2, 1):
        for generation, lane in _LANE.items():
            if width <= 16 and abs(gigabytes - lane * width) < 0.01 * lane * width:
                return generation, width
    return 0, 0


def pcie_rate(generation: int, width: int) -> float:
    """GB/s of a link; 0.0 when unknown."""
    return _LANE.get(generation, 0.0) * width
