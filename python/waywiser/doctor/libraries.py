"""Checks of the libraries that move data: which are installed, how many copies, and their build options."""

from __future__ import annotations

import re

from waywiser.look import machine, pci, probes, ucx
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, warning
from waywiser.look.installed_libraries import FOLDERS, for_programs, in_wheels, installed, mapped
from waywiser.look.root import Root
from waywiser.ucx_library import find_libucp

_LIBRARIES = ("libucp", "libnccl", "libmpi")


def copies(root: Root) -> Finding:
    """D33."""
    several, single, wheels = [], [], []
    for library in _LIBRARIES:
        loaded = mapped(root, library)
        if len(loaded) > 1:
            return problem(f"two copies of {library} in one process: {machine.named(loaded)}")
        found = for_programs(root, library)
        if len(found) > 1:
            several.append(f"{library}: {machine.named(found)}")
        single += found
        wheels += in_wheels(root, library)
    if not single and not wheels:
        return absent("no UCX, NCCL or MPI library is installed")
    if several:
        return warning(f"several copies, the first one found is used: {'; '.join(several)}{_ours(root)}")
    found_here = machine.named(single) or f"only in this Python's wheels: {machine.named(wheels)}"
    return ok(f"{found_here}{_ours(root)}")


def _ours(root: Root) -> str:
    """Which UCX programs with Waywiser take, in every language."""
    ours = find_libucp() if root.live else None
    return f"; Waywiser takes {ours.path} ({ours.origin})" if ours and ours.path else ""


def crypto(root: Root) -> Finding:
    """D45."""
    if root.live:
        from waywiser import _core

        path, why = _core.libcrypto_path(), _core.why_no_crypto()
        ssl_path, why_no_ssl = _core.libssl_path(), _core.why_no_tls()
    else:
        if not any(root.names(folder) for folder in FOLDERS):
            raise Unknown("needs the folders of libraries")
        path, ssl_path = _openssl(root, "libcrypto"), _openssl(root, "libssl")
        why, why_no_ssl = (f"{name}.so.3 is not in the system's folders" for name in ("libcrypto", "libssl"))
    if not path or (root.live and why):
        return problem(f"ranks of several machines cannot prove that they belong to one job: {why}")
    if not ssl_path or (root.live and why_no_ssl):
        return warning(f"jobs of several machines cannot encrypt (waywiser run --encrypt): {why_no_ssl}")
    return ok(f"{path}: ranks of several machines can prove that they belong to one job; {ssl_path}: jobs can encrypt")


def _openssl(root: Root, library: str) -> str:
    return next((path for end in ("so.3", "so.1.1") for path in _named(root, f"{library}.{end}")), "")


def _named(root: Root, name: str) -> list[str]:
    return [f"{folder}/{name}" for folder in FOLDERS if name in root.names(folder)]


def gpu_aware(root: Root) -> Finding:
    """D32."""
    if not pci.gpus(root):
        return absent("no NVIDIA GPU")
    try:
        told = root.run("ompi_info", "--parsable", "--all")
    except Unknown:
        if not installed(root, "libmpi"):
            return absent("no MPI is installed")
        raise
    built = re.search(r"(?:mpi|opal)_built_with_cuda_support:value:(true|false)", told)
    if not built:
        raise Unknown("needs 'built_with_cuda_support' from ompi_info")
    if built[1] == "true":
        return ok("Open MPI is built with CUDA; 'waywiser verify --with openmpi' shows the path that it takes")
    if re.search(r"^mca:pml:ucx:", told, re.MULTILINE) and ucx.built_with(root, "--with-cuda"):
        return ok("Open MPI uses a UCX that is built with CUDA; 'waywiser verify --with openmpi' shows the path")
    return problem(
        "neither Open MPI nor its UCX is built with CUDA: a GPU pointer crashes, or data is copied through the host"
    )


def strided(root: Root) -> Finding:
    """D40."""
    if not pci.gpus(root):
        return absent("no NVIDIA GPU")
    if not installed(root, "libmpi"):
        return absent("no MPI is installed")
    if "tempi" in root.environment.get("LD_PRELOAD", "").lower():
        return ok("a packer for strided types is loaded in front of MPI")
    return warning("MPI copies a strided type in GPU memory row by row, with one driver call per row")


def memory_kind(root: Root) -> Finding:
    """D38."""
    if not pci.gpus(root):
        return absent("no NVIDIA GPU")
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        text = root.environment.get(name, "")
        if "cudaMallocAsync" in text or re.search(r"expandable_segments:\s*True", text):
            return warning(f"{name}={text}: such memory has no CUDA IPC handle, so older libraries stage it")
    if not all(probes.gpu_attributes(root, "posix_handles")):
        return warning("the driver exports no file descriptors of GPU memory: only cudaMalloc memory can be shared")
    return ok("no allocator that forbids CUDA IPC is set; the driver also exports memory as file descriptors")
