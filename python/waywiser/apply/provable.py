"""What a benchmark on one node can decide: a setting that it does not touch would only be dropped by it."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.apply.setting import Setting

_NETWORK = (
    "UCX_MAX_RNDV_RAILS", "UCX_NET_DEVICES", "UCX_TCP_", "UCX_IB_", "UCX_DISTANCE_", "UCX_RNDV_FRAG_",
    "NCCL_IB_", "NCCL_NET", "NCCL_TOPO_FILE",
)  # fmt: skip
_GPU = ("UCX_CUDA_", "UCX_GDR_COPY_")


def why_not_tried(one: Setting, library: str, gpus: int) -> str:
    """Why the benchmark of `library` ("openmpi", "nccl", "ucx") says nothing about this setting; empty when it does."""
    if one.name.startswith(_NETWORK):
        return "about the network, and the benchmark stays within this node"
    if one.name.startswith(_GPU) and library == "openmpi":
        return "about GPU memory: waywiser verify --with ucx tries it"
    if one.name.startswith(_GPU) and not gpus:
        return "about GPU memory, and there is no GPU"
    return ""


def not_proved(one: Setting) -> str:
    """What to say of a setting without a proof: how to get one, or why not on one node."""
    library = {"openmpi": "openmpi", "nccl": "nccl", "ucx": "ucx"}.get(one.target, "")
    if not library:
        return "not proved: there is no benchmark for it"
    why = why_not_tried(one, library, 1)
    return f"not proved: {why}" if why else f"not yet proved: waywiser verify --with {library}"


def split(groups: Sequence[list[Setting]], library: str, gpus: int) -> tuple[list[list[Setting]], dict[str, str]]:
    """The groups to try, and why not for each of the others, by name."""
    why = {group[0].group: next((text for one in group if (text := why_not_tried(one, library, gpus))), "")
           for group in groups}  # fmt: skip
    return [group for group in groups if not why[group[0].group]], {name: text for name, text in why.items() if text}
