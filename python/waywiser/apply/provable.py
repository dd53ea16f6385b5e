"""Finds the settings that a benchmark can decide: it would drop every setting that it does not exercise."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.apply.setting import Setting

# Between nodes: settings that Open MPI's benchmark with host memory exercises, and settings that none exercises.
_NETWORK = ("UCX_MAX_RNDV_RAILS", "UCX_NET_DEVICES", "UCX_TCP_", "UCX_IB_")
_NOT_TIMED = (
    "UCX_IB_GPU_DIRECT_RDMA", "UCX_RNDV_MEMTYPE_", "UCX_RNDV_FRAG_", "UCX_DISTANCE_", "NCCL_IB_", "NCCL_NET",
    "NCCL_TOPO_FILE", "NCCL_COLLNET_", "OMPI_MCA_btl_openib_",
)  # fmt: skip
_GPU = ("UCX_CUDA_", "UCX_GDR_COPY_")
_WITHIN_NODE = ("UCX_POSIX_", "UCX_SYSV_", "UCX_CMA_", "OMPI_MCA_btl_vader_", "OMPI_MCA_btl_sm_")
_BETWEEN_NODES = "waywiser verify --with openmpi --hosts"


def why_not_tried(one: Setting, library: str, gpus: int, between_nodes: bool = False) -> str:
    """Why the benchmark of `library` ("openmpi", "nccl", "ucx") cannot decide this setting; empty if it can."""
    if one.name.startswith(_NOT_TIMED) and one.group != "tuner":  # a tuner's are about ranks of one node
        return "no benchmark between nodes exercises it"
    if one.name.startswith(_NETWORK) and not between_nodes:
        return f"about the network, and the benchmark stays within this node: {_BETWEEN_NODES} tries it"
    if between_nodes and (one.name.startswith(_WITHIN_NODE) or (one.name, one.value) == ("UCX_TLS", "^cma")):
        return "about ranks of one node, and here each is on another: leave out --hosts"
    about_gpus = one.name.startswith(_GPU) or (one.name == "UCX_TLS" and "gdr_copy" in one.value)
    if about_gpus and library == "openmpi":
        return "about GPU memory: waywiser verify --with ucx tries it"
    if about_gpus and not gpus:
        return "about GPU memory, and there is no GPU"
    return ""


def why_never_proved(one: Setting) -> str:
    """Why no benchmark can decide this setting; empty if one can."""
    if one.target == "mpich":
        return "cannot be proved: there is no benchmark for MPICH"
    why = why_not_tried(one, one.target, 1) and why_not_tried(one, "openmpi", 1, between_nodes=True)
    return f"cannot be proved: {why}" if why else ""


def not_proved(one: Setting) -> str:
    """The message about an unproved setting: how to prove it, or why this is impossible."""
    if why := why_never_proved(one):
        return why
    command = _BETWEEN_NODES if one.name.startswith(_NETWORK) else f"waywiser verify --with {one.target}"
    return f"not yet proved: {command}"


def split(
    groups: Sequence[list[Setting]], library: str, gpus: int, between_nodes: bool = False
) -> tuple[list[list[Setting]], dict[str, str]]:
    """The groups to try, and for each other group the reason, by name."""
    why = {
        group[0].group: next((text for one in group if (text := why_not_tried(one, library, gpus, between_nodes))), "")
        for group in groups
    }
    return [group for group in groups if not why[group[0].group]], {name: text for name, text in why.items() if text}
