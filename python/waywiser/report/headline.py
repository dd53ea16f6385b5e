"""A machine in its owner's words: "4 x H200, NVSwitch, driver 580"; without GPUs its CPUs and sockets."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from waywiser.json_fields import clean

_CPU_NOISE = re.compile(r"\((?:R|TM)\)|\bCPU\b|\bProcessor\b|@.*$|\b\d+-Core\b", re.IGNORECASE)
_GPU_MAKER = re.compile(r"\b(?:NVIDIA|Tesla|GeForce|AMD|Intel\(R\)|Intel)\b\s*")
_LINKS = (("nvlink", "NVLink"), ("xgmi", "xGMI"), ("c2c", "NVLink-C2C"))


def headline(topology: dict[str, Any] | None, otherwise: str) -> str:
    """One line from the topology's JSON; `otherwise` if there is no topology or no device in it."""
    devices = _objects(topology, "devices")
    gpus = _counted(_gpu_name(one) for one in devices if one.get("kind") == "gpu")
    if gpus:
        return ", ".join([*gpus, *_fabric(topology, devices), *_driver(topology)])
    cpus = [_cpu_name(one) for one in devices if one.get("kind") == "cpu"]
    if not cpus:
        return otherwise
    sockets = f"{len(cpus)} socket{'s' if len(cpus) > 1 else ''}"
    return ", ".join([*dict.fromkeys(cpus), sockets, "no GPU"])


def _objects(topology: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    value = (topology or {}).get(key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _counted(names: Any) -> list[str]:
    return [f"{count} x {name}" for name, count in Counter(names).items()]


def _name(device: dict[str, Any]) -> str:
    return clean(str(device.get("name") or ""))[:60]


def _gpu_name(device: dict[str, Any]) -> str:
    return " ".join(_GPU_MAKER.sub("", _name(device)).split()) or "GPU"


def _cpu_name(device: dict[str, Any]) -> str:
    return " ".join(_CPU_NOISE.sub(" ", _name(device)).split()) or "CPU"


def _fabric(topology: dict[str, Any] | None, devices: list[dict[str, Any]]) -> list[str]:
    if any(one.get("kind") == "nvswitch" for one in devices):
        return ["NVSwitch"]
    kinds = {one.get("kind") for one in _objects(topology, "links")}
    return [word for kind, word in _LINKS if kind in kinds]


def _driver(topology: dict[str, Any] | None) -> list[str]:
    software = (topology or {}).get("software")
    version = software.get("driver") if isinstance(software, dict) else None
    return [f"driver {clean(version).split('.')[0][:12]}"] if isinstance(version, str) and version else []
