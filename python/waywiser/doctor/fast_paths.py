"""Which variables of NCCL, UCX and Open MPI take a fast path away, by which values; and which nothing is known of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from waywiser.look import pci, rdma
from waywiser.look.root import Root

Found = Mapping[str, tuple[str, str]]  # variable -> its value, and where it was set


@dataclass(frozen=True)
class Switch:
    """`off`: the values, as the library reads them, that take `what` away."""

    name: str
    off: str
    what: str


_ONE, _ON, _ZERO = r"0*1", r"-?0*[1-9]\d*", r"0+"  # NCCL's numbers
_NO = r"(?i)n|no|off|0|false|f|disabled?"  # of UCX and Open MPI
_NEVER = r"LOC|0+"  # NCCL's distances are words in capitals, or the older numbers
_ONE_STEP = "copies between processes in one step"

# fmt: off
SWITCHES = (
    Switch("NCCL_P2P_DISABLE", _ONE, "peer access between GPUs"),
    Switch("NCCL_P2P_LEVEL", _NEVER, "peer access between GPUs"),
    Switch("NCCL_P2P_DIRECT_DISABLE", _ON, "direct peer access within a process"),
    Switch("NCCL_SHM_DISABLE", _ONE, "shared memory between processes"),
    Switch("NCCL_IB_DISABLE", _ON, "RDMA"),
    Switch("NCCL_NET", "(?i)socket", "RDMA"),
    Switch("NCCL_NET_PLUGIN", "(?i)none", "plug-ins for the network (libfabric, SHARP)"),
    Switch("NCCL_NET_GDR_LEVEL", _NEVER, "GPUDirect RDMA"),
    Switch("NCCL_DMABUF_ENABLE", _ZERO, "GPUDirect RDMA by dma-buf"),
    Switch("NCCL_NET_GDR_READ", _ZERO, "GPUDirect RDMA for what a GPU sends"),
    Switch("NCCL_IB_PCI_RELAXED_ORDERING", _ZERO, "relaxed ordering of the NIC's writes"),
    Switch("NCCL_IB_ADAPTIVE_ROUTING", _ZERO, "adaptive routing in the fabric"),
    Switch("NCCL_IB_MERGE_NICS", _ZERO, "both ports of a card as one device"),
    Switch("NCCL_NVLS_ENABLE", _ZERO, "reductions in NVSwitches"),
    Switch("NCCL_CUMEM_ENABLE", _ZERO, "memory that NVSwitches reduce in"),
    Switch("NCCL_MNNVL_ENABLE", _ZERO, "NVLink between machines"),
    Switch("NCCL_NVB_DISABLE", _ON, "the way by NVLink through another GPU"),
    Switch("NCCL_PXN_DISABLE", _ON, "the way by NVLink to the GPU next to a NIC"),
    Switch("NCCL_P2P_PXN_LEVEL", _ZERO, "the way by NVLink to the GPU next to a NIC, in messages"),
    Switch("NCCL_LOCAL_REGISTER", _ZERO, "transfers from registered buffers without a copy"),
    Switch("NCCL_GRAPH_REGISTER", _ZERO, "transfers from registered buffers without a copy, in graphs"),
    Switch("NCCL_WIN_ENABLE", _ZERO, "symmetric memory"),
    Switch("NCCL_PROTO", r"(?i)\s*simple\s*", "the protocols LL and LL128 for small messages"),
    Switch("UCX_IB_GPU_DIRECT_RDMA", _NO, "GPUDirect RDMA"),
    Switch("UCX_IB_PCI_RELAXED_ORDERING", _NO, "relaxed ordering of the NIC's writes"),
    Switch("UCX_MEMTYPE_CACHE", _NO, "the cache that tells GPU memory from host memory"),
    Switch("UCX_RCACHE_ENABLE", _NO, "the cache of registered memory"),
    Switch("UCX_MEM_EVENTS", _NO, "the caches of memory, which need its events"),
    Switch("UCX_RNDV_SCHEME", "am", "transfers without a copy of large messages"),
    Switch("OMPI_MCA_btl_smcuda_use_cuda_ipc", _NO, "peer access between GPUs"),
    Switch("OMPI_MCA_opal_cuda_support", _NO, "GPU memory in messages"),
    Switch("OMPI_MCA_mpi_cuda_support", _NO, "GPU memory in messages"),
    Switch("OMPI_MCA_accelerator", r"null|\^(?:.*,)?cuda(?:,.*)?", "GPU memory in messages"),
    Switch("OMPI_MCA_btl_vader_single_copy_mechanism", "none", _ONE_STEP),
    Switch("OMPI_MCA_btl_sm_single_copy_mechanism", "none", _ONE_STEP),
    Switch("OMPI_MCA_smsc", r"\^(?:.*,)?cma(?:,.*)?", _ONE_STEP),
    Switch("OMPI_MCA_mpi_leave_pinned", _NO, "buffers that stay registered"),
    Switch("OMPI_MCA_opal_leave_pinned", _NO, "buffers that stay registered"),
    Switch("OMPI_MCA_coll", r"\^(?:.*,)?(?:tuned|han|hcoll|ucc|cuda|accelerator)(?:,.*)?", "faster collectives"),
    Switch("OMPI_MCA_coll_hcoll_enable", _NO, "collectives of hcoll"),
    Switch("OMPI_MCA_hwloc_base_binding_policy", "none", "binding of ranks to cores"),
)
# fmt: on
# Other checks judge these, or they cost no time.
_JUDGED = {
    *("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX", "UCX_NET_DEVICES"),  # D24, D27, D44
    *("UCX_TLS", "UCX_RNDV_THRESH", "OMPI_MCA_btl", "OMPI_MCA_pml"),
    *("NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE"),
    *("UCX_LOG_LEVEL", "UCX_LOG_FILE", "UCX_WARN_UNUSED_ENV_VARS", "UCX_HANDLE_ERRORS", "UCX_ERROR_SIGNALS"),
    "OMPI_MCA_btl_base_warn_component_unused",
}
_LEVELS = ("NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL")
_LEVEL = re.compile(r"LOC|NVL|NVB|C2C|PIX|PXB|P2C|PXN|PHB|SYS|\d.*")
# UCX's transports of a kind, and names that stand for several.
_RDMA = re.compile(r"ib|(?:rc|dc|ud)(?:_x|_v|_mlx5|_verbs)?")
_SHARED = {"sm", "shm", "mm", "posix", "sysv", "xpmem", "cma", "knem"}


def switched_off(root: Root, found: Found) -> list[str]:
    """A line for each variable that takes a fast path away, and for each distance that NCCL does not know."""
    lines = [
        f"{one.name}={found[one.name][0]} switches off {one.what}"
        for one in SWITCHES
        if one.name in found and re.fullmatch(one.off, found[one.name][0].strip())
    ]
    lines += [
        f"{name}={found[name][0]} is no distance that NCCL knows (LOC, PIX, PXB, PHB, SYS): it takes its default"
        for name in _LEVELS
        if name in found and not _LEVEL.fullmatch(found[name][0])
    ]
    return lines + _of_ucx(root, found) + _of_open_mpi(root, found)


def _of_ucx(root: Root, found: Found) -> list[str]:
    text = found.get("UCX_TLS", ("all", ""))[0]
    names = _words(text)
    said = f"UCX_TLS={text} switches off"
    gpus, cards = pci.gpus(root), rdma.devices(root)
    none = [not names & {"cuda_ipc", "cuda"}, not names & {"gdr_copy", "cuda"}, not any(map(_RDMA.fullmatch, names))]
    if text.startswith("^"):
        all_cards = "ib" in names or {"rc", "dc", "ud"} <= names
        none = [not none[0], not none[1], all_cards]
    elif "all" in names:
        none = [False, False, False]
    lines = [f"{said} peer access between GPUs"] if none[0] and len(gpus) > 1 else []
    lines += [f"{said} GDRCopy"] if none[1] and gpus and root.exists("/dev/gdrdrv") else []
    lines += [f"{said} RDMA"] if none[2] and cards else []
    if text.startswith("^") and (names & {"sm", "shm"} or {"posix", "sysv"} <= names):
        lines.append(f"{said} shared memory")
    devices = found.get("UCX_NET_DEVICES", ("all", ""))[0]
    listed = {name.split(":")[0] for name in _words(devices)}
    here = listed & set(root.names("/sys/class/net"))
    if cards and here and not devices.startswith("^") and "all" not in listed and not listed & set(cards):
        lines.append(f"UCX_NET_DEVICES={devices} switches off RDMA")
    return lines


def _of_open_mpi(root: Root, found: Found) -> list[str]:
    pml = found.get("OMPI_MCA_pml", ("", ""))[0].strip()
    if not pml or not (pci.gpus(root) or rdma.devices(root)):
        return []
    has_ucx = "ucx" in _words(pml) if not pml.startswith("^") else "ucx" not in _words(pml)
    return [] if has_ucx or pml == "cm" else [f"OMPI_MCA_pml={pml} switches off UCX, which has RDMA and GPU memory"]


def _words(text: str) -> set[str]:
    """The names of a list, without "^" and the marks of UCX ("\\rc_x": not as an auxiliary transport)."""
    return set(re.split(r"[,\s]+", text.strip().lstrip("^").replace("\\", ""))) - {""}


def not_judged(found: Found) -> list[str]:
    """Variables of which nothing here tells what they do to speed."""
    known = _JUDGED | {one.name for one in SWITCHES}
    strange = [f"{name}={value}" for name, (value, _) in found.items() if name not in known]
    excluded = found.get("UCX_TLS", ("", ""))[0]
    known_transports = _SHARED | {"ib", "rc", "dc", "ud", "cuda", "cuda_ipc", "gdr_copy", "tcp"}
    if excluded.startswith("^") and not _words(excluded) <= known_transports:
        strange.append(f"UCX_TLS={excluded}")
    return strange
