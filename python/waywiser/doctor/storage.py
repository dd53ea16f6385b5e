"""Checks of the ways to files: past the page cache, and straight into GPU memory."""

from __future__ import annotations

from waywiser.doctor import gpu
from waywiser.look import machine, pci, probes
from waywiser.look.finding import Finding, absent, ok, problem, warning
from waywiser.look.installed_libraries import installed
from waywiser.look.root import Root

_SWITCH = "/proc/sys/kernel/io_uring_disabled"
_ALL, _GROUP = "0", "1"
_FIRST = (5, 6)  # kernel whose io_uring reads and writes
_P2PDMA_KERNEL, _P2PDMA_DRIVER, _STATIC_BAR = (6, 2), 565, "RMForceStaticBar1=1"
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
    if module is not None:
        return ok(f"libcufile and nvidia_fs {module.split()[-1]} are there")
    missing = _missing_for_p2pdma(root)
    if missing is not None:
        without = f"without nvidia_fs and PCI P2PDMA ({missing})"
        return warning(f"{without} cuFile runs in its compatibility mode, by host memory")
    return ok("libcufile is there, and NVMe devices can go by PCI P2PDMA; a RAID 0 and NVMe over fabrics cannot")


def _missing_for_p2pdma(root: Root) -> str | None:
    """The first condition of NVIDIA's list (GPUDirect Storage, NVMe P2PDMA) that is not met."""
    version, driver = machine.kernel(root), gpu.driver_version(root)
    if version < _P2PDMA_KERNEL:
        return f"kernel {version[0]}.{version[1]}, and files go so since 6.2"
    if not gpu.driver_is_open(root) or int(driver.split(".")[0] or 0) < _P2PDMA_DRIVER:
        return f"the driver is {driver or 'not loaded'}, and NVIDIA's open one of {_P2PDMA_DRIVER} or later is needed"
    if not root.names("/sys/class/nvme"):
        return "there is no NVMe device"
    if (root.text("/sys/module/nvme_core/parameters/multipath") or "").strip() == "Y":
        return "nvme_core has multipath=Y"
    if _STATIC_BAR not in (root.text("/proc/driver/nvidia/params") or ""):
        return f"the driver is loaded without NVreg_RegistryDwords={_STATIC_BAR}"
    return None
