"""Which kinds of network this machine has: InfiniBand, RoCE, iWARP, EFA, Slingshot, IP over InfiniBand, TCP."""

from __future__ import annotations

from waywiser.look import rdma
from waywiser.look.root import Root

INFINIBAND, ROCE1, ROCE2, IWARP, EFA = "InfiniBand", "RoCE v1", "RoCE v2", "iWARP", "EFA"
SLINGSHOT, IPOIB, TCP = "Slingshot", "IP over InfiniBand", "TCP over Ethernet"
_CXI = "/sys/class/cxi"  # cards of Slingshot
_LINKS = {1: TCP, 32: IPOIB}  # ARPHRD_ETHER, ARPHRD_INFINIBAND


def networks(root: Root) -> list[tuple[str, str]]:
    """(name, kind) of each active RDMA port, each card of Slingshot, each interface that is up. Raises Unknown."""
    found = [(port.name, kind) for port in rdma.ports(root) if port.state == "ACTIVE" and (kind := _kind(root, port))]
    found += [(name, SLINGSHOT) for name in root.names(_CXI)]
    for name in root.names("/sys/class/net"):
        kind = _LINKS.get(root.number(f"/sys/class/net/{name}/type") or 0, "")
        if kind and root.text(f"/sys/class/net/{name}/operstate") == "up":
            found.append((name, kind))
    return found


def _kind(root: Root, port: rdma.Port) -> str:
    folder = f"{rdma.FOLDER}/{port.device}"
    if (root.link(f"{folder}/device/driver") or "").rpartition("/")[2] == "efa":
        return EFA
    if "RNIC" in (root.text(f"{folder}/node_type") or ""):
        return IWARP
    if port.layer == "InfiniBand":
        return INFINIBAND
    if port.layer != "Ethernet":
        return ""
    return ROCE2 if any(gid.type == "RoCE v2" for gid in rdma.gids(root, port)) else ROCE1
