"""Versions of libraries with a defect that harms programs with GPUs."""

from __future__ import annotations

import re
import sys

from waywiser.look import pci, ucx
from waywiser.look.finding import Finding, Unknown, absent, ok, warning
from waywiser.look.root import Root

_WHEEL = re.compile(r"libucx_cu\d{2}-(\d{1,3}\.\d{1,3}\.\d{1,3})\.dist-info")
# Copies between GPU memory of one process by cuda_ipc can fill the GPU's memory; 1.22 is mended.
_DEFECTIVE = (1, 21)


def _versions(root: Root) -> dict[str, str]:
    """Where a UCX comes from -> its version. Raises Unknown if there is none that tells it."""
    found = {}
    for folder in sys.path:
        for name in root.names(folder) if folder.endswith("-packages") else ():
            wheel = _WHEEL.fullmatch(name)
            if wheel:
                found["the libucx wheel"] = wheel[1]
    try:
        found["ucx_info"] = ".".join(map(str, ucx.version(root)))
    except Unknown:
        if not found:
            raise
    return found


def ucx_with_gpus(root: Root) -> Finding:
    """D46."""
    if not pci.gpus(root):
        return absent("no NVIDIA GPU")
    versions = _versions(root)
    told = ", ".join(f"UCX {version} ({where})" for where, version in versions.items())
    if any(tuple(map(int, version.split(".")[:2])) == _DEFECTIVE for version in versions.values()):
        return warning(f"{told}: copies within one process by cuda_ipc can fill the GPU's memory in 1.21")
    return ok(f"{told}: no known defect with GPUs")
