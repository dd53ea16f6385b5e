"""The text in the drawing of a machine: short names of devices, labels of links."""

from __future__ import annotations

import re
from typing import Any

_KINDS = {"socket": "CPU link", "c2c": "C2C", "network": "network", "memory": "memory"}


def rate_text(rate: float | None) -> str:
    """Bytes per second for people: "15.8 GB/s"; empty when unknown."""
    if rate is None:
        return ""
    if rate >= 1e12:
        return f"{rate / 1e12:.2f} TB/s"
    return f"{rate / 1e9:.0f} GB/s" if rate >= 99.95e9 else f"{rate / 1e9:.3g} GB/s"


def size_text(size: int) -> str:
    """Bytes of a memory for people: "32 GiB"; empty when unknown."""
    return f"{size / 2**30:.0f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB" if size else ""


def short_model(name: str) -> str:
    """ "Tesla V100-SXM2-32GB" -> "V100"."""
    name = re.sub(r"\b(NVIDIA|Tesla|AMD|Intel\(R\)|Intel|Graphics|GeForce)\b", "", name)
    return re.sub(r"\s+", " ", re.sub(r"[- ](SXM\d?|PCIE|PCIe|\d+GB|HBM\de?)\b", "", name)).strip()[:12]


def link_warning(link: dict[str, Any]) -> bool:
    """Whether the link trained below the abilities of both ends."""
    return bool(
        link.get("width", 0) < link.get("max_width", 0) or link.get("generation", 0) < link.get("max_generation", 0)
    )


def trained_words(link: dict[str, Any]) -> str:
    """The label of a PCIe link that trained below the abilities of both ends: "PCIe 4 ×8 of ×16"."""
    now, most = link.get("generation", 0), link.get("max_generation", 0)
    better = f" of {most}" if now < most else ""
    lanes = f" of ×{link['max_width']}" if link["width"] < link["max_width"] else ""
    return f"PCIe {now}{better} ×{link['width']}{lanes}"


def link_label(link: dict[str, Any]) -> str:
    """Two lines: the kind of link and its nominal rate per direction."""
    kind, count, generation = link["kind"], link["count"], link.get("generation", 0)
    if kind == "pcie":
        words = f"PCIe {generation} ×{link['width']}" if generation and link.get("width") else "PCIe"
        if link_warning(link):
            words = trained_words(link)
    elif kind in ("nvlink", "xgmi"):
        words = f"{'NV' if kind == 'nvlink' else 'XGMI'}{count}"
    else:
        words = f"{count} × {_KINDS.get(kind, kind)}" if count > 1 else _KINDS.get(kind, kind)
    rate = rate_text(link.get("nominal"))
    return f"{words}\n{rate}" if rate else words


def device_lines(device: dict[str, Any], links: list[dict[str, Any]], devices: dict[str, Any]) -> list[str]:
    """The text in a device's box, the first line in bold."""
    kind, id_ = device["kind"], device["id"]
    attributes = device.get("attributes", {})
    if kind == "gpu":
        memory = size_text(device.get("memory_bytes", 0))
        return [f"GPU {id_[3:]}", short_model(device["name"]), *([memory] if memory else [])]
    if kind == "nic":
        rates = [k["nominal"] for k in links if k["kind"] == "network" and id_ in (k["a"], k["b"]) and k["nominal"]]
        return [device["name"][:12], *([f"{sum(rates) * 8 / 1e9:g} Gb/s"] if rates else ["NIC"])]
    if kind == "nvme":
        return ["NVMe " + id_[4:], device["name"][:12]]
    if kind == "host":
        rate = next((k["nominal"] for k in links if k["kind"] == "memory" and id_ in (k["a"], k["b"])), None)
        facts = " · ".join(text for text in (size_text(device.get("memory_bytes", 0)), rate_text(rate)) if text)
        cores = device.get("cores", "")
        return [
            f"memory, NUMA {device['numa']}",
            *([facts] if facts else []),
            *([f"CPUs {cores[:18]}"] if cores else []),
        ]
    if kind == "nvswitch":
        count = attributes.get("switches", "")
        return [f"{count} × {device['name']}" if count and count != "1" else device["name"]]
    if kind == "cpu":
        return [re.sub(r"\(R\)|\(TM\)|CPU @.*$", "", device["name"]).strip()[:40]]
    if kind == "root":
        return [re.sub(r"^root complex (?=\d)", "root ", device["name"])[:18] or "root complex"]
    return [device["name"][:18]]
