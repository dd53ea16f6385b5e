"""Decides whether to build with CUDA, and finds the compiler."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .messages import SetupError
from .system_packages import library_exists


@dataclass(frozen=True)
class Toolkit:
    option: str  # for -DWAYWISER_CUDA
    from_index: bool  # the compiler comes from the package index


_WORDS = {"": "AUTO", "AUTO": "AUTO", "ON": "ON", "1": "ON", "TRUE": "ON", "OFF": "OFF", "0": "OFF", "FALSE": "OFF"}


def choose():
    """Reads WAYWISER_CUDA (AUTO, ON, OFF) and looks for a driver and a compiler."""
    word = os.environ.get("WAYWISER_CUDA", "")
    option = _WORDS.get(word.upper())
    if option is None:
        raise SetupError(f"WAYWISER_CUDA is AUTO, ON or OFF, not {word!r}", code=2)
    wanted = option == "ON" or (option == "AUTO" and _driver_present())
    return Toolkit(option, from_index=wanted and not _usable_nvcc())


def _driver_present():
    return Path("/proc/driver/nvidia/version").exists() or library_exists("libcuda.so.1")


def _usable_nvcc():
    """Whether the system has an nvcc with C++20, which is 12.0 and newer."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        return False
    answer = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    release = re.search(r"release (\d+)\.", answer)
    return release is not None and int(release.group(1)) >= 12
