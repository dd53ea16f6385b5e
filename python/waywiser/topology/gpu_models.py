"""Facts about a GPU from its PCI ids, for files with nothing else: driver's name, architecture, NVLinks.

Names are those of NVIDIA's list of supported products (README of its open kernel modules) and, for older ones and
AMD's, of the PCI ID database, spelled as the driver does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NVIDIA, AMD = "10de", "1002"

_NVIDIA_NAMES = {
    "102d": "Tesla K80",
    "13f2": "Tesla M60",
    "15f7": "Tesla P100-PCIE-12GB",
    "15f8": "Tesla P100-PCIE-16GB",
    "15f9": "Tesla P100-SXM2-16GB",
    "1b38": "Tesla P40",
    "1bb3": "Tesla P4",
    "1db1": "Tesla V100-SXM2-16GB",
    "1db4": "Tesla V100-PCIE-16GB",
    "1db5": "Tesla V100-SXM2-32GB",
    "1db6": "Tesla V100-PCIE-32GB",
    "1db8": "Tesla V100-SXM3-32GB",
    "1df5": "Tesla V100-SXM2-16GB",
    "1df6": "Tesla V100S-PCIE-32GB",
    "1eb8": "Tesla T4",
    "20b0": "NVIDIA A100-SXM4-40GB",
    "20b1": "NVIDIA A100-PCIE-40GB",
    "20b2": "NVIDIA A100-SXM4-80GB",
    "20b3": "NVIDIA A100-SXM-64GB",
    "20b5": "NVIDIA A100 80GB PCIe",
    "20b7": "NVIDIA A30",
    "20bd": "NVIDIA A800-SXM4-40GB",
    "20f1": "NVIDIA A100-PCIE-40GB",
    "20f3": "NVIDIA A800-SXM4-80GB",
    "20f5": "NVIDIA A800 80GB PCIe",
    "2230": "NVIDIA RTX A6000",
    "2235": "NVIDIA A40",
    "2236": "NVIDIA A10",
    "2237": "NVIDIA A10G",
    "25b6": "NVIDIA A16",
    "26b1": "NVIDIA RTX 6000 Ada Generation",
    "26b5": "NVIDIA L40",
    "26b9": "NVIDIA L40S",
    "26ba": "NVIDIA L20",
    "27b6": "NVIDIA L2",
    "27b8": "NVIDIA L4",
    "230e": "NVIDIA H20 NVL16",
    "2321": "NVIDIA H100 NVL",
    "2322": "NVIDIA H800 PCIe",
    "2324": "NVIDIA H800",
    "2329": "NVIDIA H20",
    "232c": "NVIDIA H20-3e",
    "2330": "NVIDIA H100 80GB HBM3",
    "2331": "NVIDIA H100 PCIe",
    "2335": "NVIDIA H200",
    "2339": "NVIDIA H100",
    "233a": "NVIDIA H800 NVL",
    "233b": "NVIDIA H200 NVL",
    "2342": "NVIDIA GH200 480GB",
    "2348": "NVIDIA GH200 144G HBM3e",
    "2901": "NVIDIA B200",
    "2941": "NVIDIA GB200",
    "2bb5": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "2e12": "NVIDIA GB10",
    "3182": "NVIDIA B300 SXM6 AC",
    "31c2": "NVIDIA GB300",
}
_AMD_NAMES = {
    "66a0": "AMD Radeon Instinct MI60",
    "66a1": "AMD Radeon Instinct MI50",
    "7388": "AMD Instinct MI100",
    "738c": "AMD Instinct MI100",
    "738e": "AMD Instinct MI100",
    "7408": "AMD Instinct MI250X",
    "740c": "AMD Instinct MI250X",
    "740f": "AMD Instinct MI210",
    "74a0": "AMD Instinct MI300A",
    "74a1": "AMD Instinct MI300X",
    "74a5": "AMD Instinct MI325X",
    "74b5": "AMD Instinct MI300X VF",
    "75a0": "AMD Instinct MI350X",
    "75a3": "AMD Instinct MI355X",
}
_FIRST_WITH_NVLINK = "15f0"  # of NVIDIA: the ids of P100
# Words of names; the architecture in the form of `sm`, and the generation of NVLink (0: the model has none).
_FAMILIES = [
    ("K80", 37, 0),
    ("M60", 52, 0),
    ("P100-SXM2", 60, 1),
    ("P100", 60, 0),
    ("P40|P4", 61, 0),
    ("V100S?-PCIE|V100S", 70, 0),
    ("V100", 70, 2),
    ("T4", 75, 0),
    ("A100|A30|A800", 80, 3),
    ("A40|A6000", 86, 3),
    ("A10|A10G|A16|A2", 86, 0),
    ("L2|L4|L20|L40|L40S|Ada", 89, 0),
    ("H100|H200|H800|H20|GH200", 90, 4),
    ("B100|B200|GB200", 100, 5),
    ("B300|GB300", 103, 5),
    ("GB10", 121, 0),
    ("RTX PRO 6000", 120, 0),
]


def pci_id(text: str | None) -> str:
    """ "0x10DE" -> "10de"; empty for an invalid id, and for 0000 and ffff, which mean nothing."""
    word = (text or "").strip().lower().removeprefix("0x")
    return word if re.fullmatch("[0-9a-f]{4}", word) and word not in ("0000", "ffff") else ""


def is_gpu(class_: str, vendor: str) -> bool:
    """Whether a PCI class ("0302") is a GPU; display controllers count only from vendors of compute GPUs."""
    if class_[:4] == "0302":
        return True
    return (class_[:4] == "0300" and vendor == NVIDIA) or (class_[:4] in ("0380", "1200") and vendor == AMD)


def is_amd(attributes: Mapping[str, str]) -> bool:
    """Whether a GPU is AMD's, by its attributes in a topology."""
    return attributes.get("pci", "").startswith(f"{AMD}:")


def gpu_name(vendor: str, device: str) -> str:
    """The driver's name of the GPU with these PCI ids; a description if the tables lack the ids."""
    if known := {NVIDIA: _NVIDIA_NAMES, AMD: _AMD_NAMES}.get(vendor, {}).get(device):
        return known
    maker = {NVIDIA: "NVIDIA ", AMD: "AMD "}.get(vendor, "")
    return f"{maker}GPU {device}".strip() if maker else "GPU"


def _family(name: str) -> tuple[int, int] | None:
    for words, sm, nvlink in _FAMILIES:
        if re.search(rf"(?<![A-Za-z0-9])({words})(?![A-Za-z0-9])", name):
            return sm, nvlink
    return None


def compute_capability(name: str) -> int:
    """The architecture of an NVIDIA GPU by its name, in the form of NCCL's `sm`; 0 if unknown."""
    family = _family(name)
    return family[0] if family else 0


def nvlink_generation(name: str) -> int:
    """NVLink generation of a GPU by its name; 0 if it has none or is unknown."""
    family = _family(name)
    return family[1] if family else 0


def has_no_nvlink(name: str, ids: str) -> bool:
    """Whether this model is known to have no NVLinks; `ids` are its PCI ids, "10de:1db1" or empty."""
    family, (vendor, _, device) = _family(name), ids.partition(":")
    if family is not None:
        return family[1] == 0
    return vendor == NVIDIA and bool(device) and device < _FIRST_WITH_NVLINK
