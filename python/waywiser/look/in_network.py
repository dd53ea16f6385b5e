"""What the network does in place of processors: reduction in InfiniBand's switches (SHARP), tag matching in cards."""

from __future__ import annotations

import re

from waywiser.look import nccl_log, rdma
from waywiser.look.finding import Unknown
from waywiser.look.installed_libraries import for_programs, installed
from waywiser.look.root import Root

_MANAGER = "SHArP.AggregationManager"  # the service that sharp_am registers, as NVIDIA's own scripts look for it
_OF_NCCL = b"ncclCollNetPlugin_v"  # what NCCL looks for in a plug-in


def infiniband(root: Root) -> list[rdma.Port]:
    """The active InfiniBand ports."""
    return [one for one in rdma.ports(root) if one.state == "ACTIVE" and one.layer == "InfiniBand"]


def manager(root: Root, port: rdma.Port) -> bool:
    """Whether an aggregation manager (sharp_am) serves the fabric of a port. Raises Unknown."""
    return _MANAGER in root.run("saquery", "-C", port.device, "-P", port.number, "SR")


def offers_collnet(root: Root, file: str) -> bool:
    """Whether a plug-in of NCCL has collective operations of the network. Raises Unknown."""
    return root.contains(file, _OF_NCCL)


def nccl_plug_in(root: Root) -> str:
    """The first plug-in of NCCL that offers collective operations of the network; nothing if there is none. Raises
    Unknown."""
    return next((file for file in for_programs(root, r"libnccl-net(-\w{1,32})?") if offers_collnet(root, file)), "")


def why_no_collnet(root: Root) -> str:
    """What NCCL's CollNet lacks here; nothing if port, plug-in and daemon are there. Raises Unknown."""
    ports = infiniband(root)
    if not ports:
        return "no active InfiniBand port"
    if not nccl_plug_in(root):
        return "no libnccl-net with CollNet is found"
    return "" if manager(root, ports[0]) else f"no sharp_am serves {ports[0].name}"


def ucc_plug_in(root: Root) -> str:
    """The part of UCC that uses SHARP; nothing if there is none. Raises Unknown."""
    files = [f"{file.rpartition('/')[0]}/ucc/libucc_tl_sharp.so" for file in installed(root, "libucc")]
    return next((file for file in files if root.exists(file)), "")


def taken(root: Root, file: str) -> tuple[int, str] | None:
    """Connections through the network's own collectives in a log of NCCL, and by what; None if it is no such log.
    Raises Unknown."""
    found = nccl_log.transports(root, file)
    if found is None:
        return None
    named = [way for way in found if way.startswith("COLLNET")]
    return sum(found[way] for way in named), named[0].partition("/")[2] if named else ""


def tags(root: Root) -> dict[str, int]:
    """RDMA device -> how many tags its card matches, 0 for none. Raises Unknown."""
    found = {}
    for part in re.split(r"^hca_id:\s*", root.run("ibv_devinfo", "-v"), flags=re.MULTILINE)[1:]:
        most = re.search(r"^\s*max_num_tags:\s*(\d{1,9})$", part, re.MULTILINE)
        reliable = "IBV_TM_CAP_RC" in part
        if not most and "tag matching not supported" not in part:
            raise Unknown("needs tag matching in 'ibv_devinfo -v', which does not name it")
        found[part.split(None, 1)[0]] = int(most[1]) if most and reliable else 0
    return found
