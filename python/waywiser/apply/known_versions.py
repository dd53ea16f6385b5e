"""What a version of UCX or NCCL knows, for a machine whose libraries cannot be asked: from their sources."""

from __future__ import annotations

import re

from waywiser.apply.installed import Installed
from waywiser.apply.ucx import USUAL
from waywiser.errors import InputError

_Version = tuple[int, int, int]
# From this version on, what differs from the one before: variable -> default. None has gone since.
_UCX: tuple[tuple[_Version, dict[str, str]], ...] = (
    ((1, 12, 0), {
        "UCX_CUDA_COPY_BW": "10000MBps",
        "UCX_POSIX_BW": "12179MBps",
        "UCX_SYSV_BW": "12179MBps",
        "UCX_CMA_BW": "11145MBps",
        "UCX_MAX_RNDV_RAILS": "2",
        "UCX_TLS": "all",
        "UCX_RNDV_FRAG_SIZE": "host:512K,cuda:4M",
        "UCX_RNDV_MEMTYPE_DIRECT_SIZE": "inf",
        "UCX_PROTO_ENABLE": "n",
        "UCX_IB_GPU_DIRECT_RDMA": "try",
    }),
    ((1, 14, 0), {"UCX_CUDA_IPC_BW": "auto", "UCX_POSIX_BW": "15360MBps", "UCX_SYSV_BW": "15360MBps"}),
    ((1, 14, 1), {"UCX_TCP_MAX_BW": "2200MBps"}),
    ((1, 16, 0), {"UCX_PROTO_ENABLE": "y"}),
    ((1, 18, 0), {name: USUAL[name] for name in ("UCX_GDR_COPY_BW", "UCX_DISTANCE_BW")}),
    ((1, 18, 1), {"UCX_CUDA_COPY_BW": USUAL["UCX_CUDA_COPY_BW"]}),
)  # fmt: skip
_LAST_UCX = (1, 22)
# Before 2.6 NCCL read distances as numbers and no topology file.
_FIRST_NCCL, _LAST_NCCL = (2, 6), (2, 32)
_NCCL = ("P2P_DISABLE", "P2P_LEVEL", "IB_HCA", "NET_GDR_LEVEL", "NET_GDR_READ", "TOPO_FILE", "COLLNET_ENABLE")


def told_libraries(ucx: str, nccl: str) -> dict[str, Installed]:
    """The libraries of told versions ("": not told). Raises InputError."""
    found = {}
    if ucx:
        found["ucx"] = Installed(f"{ucx} (told)", ucx_variables(_version(ucx, "--ucx-version")))
    if nccl:
        number = _version(nccl, "--nccl-version")
        if not _FIRST_NCCL <= number[:2] <= _LAST_NCCL:
            raise InputError(f"--nccl-version {nccl}: known are {_text(_FIRST_NCCL)} to {_text(_LAST_NCCL)}")
        found["nccl"] = Installed(f"{nccl} (told)", {f"NCCL_{name}": "" for name in _NCCL})
    return found


def ucx_variables(version: _Version) -> dict[str, str]:
    """Variable -> default, of those that settings are proposed for. Raises InputError for a version that is unknown."""
    if not _UCX[0][0] <= version or version[:2] > _LAST_UCX:
        told = _text(version)
        raise InputError(f"--ucx-version {told}: known are {_text(_UCX[0][0])} to {_text(_LAST_UCX)}")
    return {name: text for since, more in _UCX if since <= version for name, text in more.items()}


def _version(text: str, option: str) -> _Version:
    found = re.fullmatch(r"(\d{1,2})\.(\d{1,3})(?:\.(\d{1,3}))?(?:-\d{1,2})?", text, re.ASCII)
    if not found:
        raise InputError(f"{option} {text[:40]!r}: write a version like 1.14.1")
    return int(found[1]), int(found[2]), int(found[3] or 0)


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
