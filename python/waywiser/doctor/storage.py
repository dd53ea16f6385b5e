"""Checks of the ways to files: past the page cache, and straight into GPU memory."""

from __future__ import annotations

from waywiser.look import machine, pci, probes
from waywiser.look.finding import Finding, absent, ok, problem, warning
from waywiser.look.installed_libraries import installed
from waywiser.look.root import Root

_SWITCH = "/proc/sys/kernel/io_uring_disabled"
_ALL, _GROUP = "0", "1"
_FIRST = (5, 6)  # kernel whose io_uring reads and writes
_NVIDIA_FS = ("/sys/module/nvidia_fs/version", "/proc/driver/nvidia-fs/version")


def past_the_cache(root: Root) -> Finding:
    """D57."""
    version, switch = machine.kernel(root), (root.text(_SWITCH) or _ALL).strip()
    if version < _FIRST:
        return problem(f"kernel {version[0]}.{version[1]}: io_uring reads files since 5.6; threads take its place")
    tried = probes.probe(root, "storage")
    why, direct = str(tried.get("io_uring") or ""), str(tried.get("direct") or "")
    if why and switch not in (_ALL, _GROUP):
        return problem(f"kernel.io_uring_disabled is {switch}: nobody may use io_uring; threads take its place")
    if why and switch == _GROUP:
        return warning("kernel.io_uring_disabled is 1: only the group of kernel.io_uring_group may use io_uring")
    if why:
        return warning(f"io_uring: {why}: a container's rules (seccomp) forbid it; threads take its place")
    if direct:
        return warning(f"io_uring is allowed; the file system of the current folder has no direct access: {direct}")
    return ok("io_uring is allowed, and the file system of the current folder has direct access (O_DIRECT)")


def into_gpus(root: Root) -> Finding:
    """D58."""
    if not pci.gpus(root):
        return absent("no NVIDIA GPU")
    if not installed(root, "libcufile"):
        return warning("no libcufile.so.0: bytes of files reach GPUs through pinned host memory")
    module = next((text for path in _NVIDIA_FS if (text := root.text(path))), None)
    if module is None:
        return warning("nvidia_fs is not loaded: cuFile runs in its compatibility mode, by host memory")
    return ok(f"libcufile and nvidia_fs {module.split()[-1]} are there")
