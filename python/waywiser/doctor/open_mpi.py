"""Settings of Open MPI that do harm on this machine, and those that Debian delivers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from waywiser.look import pci, rdma
from waywiser.look.finding import Finding, problem
from waywiser.look.root import Root

_SHARED_MEMORY = {"vader", "sm", "smcuda"}
_FILE = "/etc/openmpi/openmpi-mca-params.conf"
# In Debian's package; without RDMA and GPUs UCX would win nothing.
_DELIVERED = {
    "OMPI_MCA_btl_base_warn_component_unused": "0",
    "OMPI_MCA_mtl": "^ofi",
    "OMPI_MCA_btl": "^uct,openib,ofi",
    "OMPI_MCA_pml": "^ucx",
    "OMPI_MCA_osc": "^ucx,pt2pt",
}
_MATCHING = re.compile(r"hfi1|opa|efa|usnic|psm|gni|cxi")  # devices with a transport for pml cm


def delivered(root: Root, name: str, value: str, origin: str) -> bool:
    """Whether a setting is as Debian delivers it and does no harm on this machine."""
    stock = origin == _FILE and _DELIVERED.get(name) == value.replace(" ", "")
    return stock and not pci.gpus(root) and not rdma.devices(root)


def trap(root: Root, found: Mapping[str, tuple[str, str]]) -> Finding | None:
    """A finding if the settings switch shared memory off, or ask for a layer that has no device here."""
    pml, origin = found.get("OMPI_MCA_pml", ("", ""))
    if pml.strip() == "cm" and not any(_MATCHING.match(name) for name in rdma.devices(root)):
        text = f"OMPI_MCA_pml=cm ({origin}): needs a network with matching in hardware, which is not here"
        return problem(f"{text}: programs do not start")
    text, origin = found.get("OMPI_MCA_btl", ("", ""))
    names = {word.strip() for word in text.lstrip("^").split(",")} - {""}
    left_out = names & _SHARED_MEMORY if text.startswith("^") else {"vader"} if not names & _SHARED_MEMORY else set()
    if text and left_out and pml.strip() != "ucx":
        return problem(f"OMPI_MCA_btl={text} ({origin}) leaves out shared memory: ranks of this node talk over sockets")
    return None
