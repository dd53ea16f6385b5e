"""Settings of NCCL between nodes: distance limit of GPUDirect RDMA, and whether NICs also read GPU memory.

NCCL decides once for each connection, not by size, so the purpose decides. Transfers from host memory to a GPU of
another node show how NICs write GPU memory; transfers from a GPU to host memory there show how they read it. The times
are those of UCX.
"""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.apply.facts import Machine
from waywiser.apply.node_switches import Single, Switches, between_nodes
from waywiser.apply.setting import LeftOut, Setting

# Relations of GPU and NIC, near first. By default NCCL goes as far as PXB.
_LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
_ONE_WAY = ("latency", "streaming")
_ON_AND_OFF: tuple[Switches, Switches] = (("on", "on"), ("off", "on"))  # NCCL does not use GDRCopy here


def proposed(machine: Machine, nics: dict[str, list[str]]) -> Iterator[Setting | LeftOut]:
    """`nics`: those nearest to each GPU."""
    writes = _single(machine, "host", "gpu")
    reads = _single(machine, "gpu", "host")
    relations = [machine.topology.relation(gpu, nic) for gpu, near in nics.items() for nic in near[:1]]
    known = [one for one in relations if one in _LEVELS]
    if writes is None or reads is None or not known:
        return
    far = max(known, key=_LEVELS.index)
    name, by_default = "NCCL_NET_GDR_LEVEL", _LEVELS.index(far) <= _LEVELS.index("PXB")
    why = f"GPU and NIC are {far} apart, by default NCCL goes as far as PXB; NICs write GPU memory: {_told(writes)}"
    wanted = writes.switches[0] == "on"
    if wanted == by_default:
        yield LeftOut("nccl", name, "", f"the default is right; {why}")
    else:
        yield Setting("nccl", name, far if wanted else "LOC", "", why, name, not machine.label)
    if not wanted:
        return
    name, why = "NCCL_NET_GDR_READ", f"NICs read GPU memory: {_told(reads)}"
    if reads.switches[0] == "on":
        yield LeftOut("nccl", name, "1", f"the default where GPUs have NVLinks; {why}")
    else:
        yield Setting("nccl", name, "0", "1", why, name, not machine.label)


def _single(machine: Machine, source: str, destination: str) -> Single | None:
    roads = between_nodes(machine.profile, source, destination, _ONE_WAY)
    return roads.deciding.single(machine.purpose, _ON_AND_OFF)


def _told(single: Single) -> str:
    told = "yes" if single.switches[0] == "on" else "no"
    if single.worst_loss < 1.02:
        return f"{told}, faster at every size"
    return f"{told} for {single.purpose}, at worst {single.worst_loss:.1f} times the time ({single.worst.text})"
