"""Settings of NCCL: distance limit of peer copies, NICs, a topology file if the machine hides its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from waywiser.apply import nccl_network, nccl_reduction
from waywiser.apply.facts import Machine
from waywiser.apply.nearest import near_nics, rdma_nics
from waywiser.apply.setting import LeftOut, Setting
from waywiser.apply.trials import MARGIN
from waywiser.units import format_rate

TOPOLOGY_FILE = "nccl-topology.xml"


def proposed(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting | LeftOut]:
    """All settings that may be useful on this machine."""
    if not machine.topology.ids("gpu"):
        yield LeftOut("nccl", "NCCL_*", "", "this machine has no GPU")
        return
    yield from _peers(machine)
    yield from _nics(machine)
    yield from nccl_network.proposed(machine, near_nics(machine))
    yield from nccl_reduction.proposed(machine)
    yield from _topology(machine)


def _peers(machine: Machine) -> Iterator[Setting]:
    """Allows peer copies across the CPUs if they beat staging there; forbids them if data does not arrive intact."""
    broken = [one for one in (machine.profile.rejected if machine.profile else ()) if "intact" in one.reason]
    if any(one.path.source.startswith("gpu") and one.path.destination.startswith("gpu") for one in broken):
        yield Setting("nccl", "NCCL_P2P_DISABLE", "1", "0", broken[0].reason, "NCCL_P2P_DISABLE")
        return
    gpus = machine.topology.ids("gpu")
    far = [(a, b) for a in gpus for b in gpus if machine.topology.relation(a, b) in ("SYS", "NODE", "PHB")]
    rates = [(machine.rate("copy_engine", *pair), machine.rate("host_staged", *pair)) for pair in far]
    both = [(direct, staged) for direct, staged in rates if direct and staged]
    if both and all(direct.rate > MARGIN * staged.rate for direct, staged in both):
        direct, staged = min(both, key=lambda one: one[0].rate / one[1].rate)
        why = f"{direct.text}, staged {format_rate(staged.rate)}: NCCL stages such pairs by itself"
        yield Setting("nccl", "NCCL_P2P_LEVEL", "SYS", "", why, "NCCL_P2P_LEVEL", direct.measured)


def _nics(machine: Machine) -> Iterator[Setting]:
    """Only the NICs nearest to a GPU, if the machine also has others."""
    topology = machine.topology
    wanted = sorted({nic for nics in near_nics(machine).values() for nic in nics})
    if wanted and len(wanted) < len(rdma_nics(machine)):
        names = ",".join(topology.device(nic).name for nic in wanted)
        why = "nearest to a GPU; the other NICs share no bridge with one"
        yield Setting("nccl", "NCCL_IB_HCA", f"={names}", "", why, "NCCL_IB_HCA", False)


def _topology(machine: Machine) -> Iterator[Setting]:
    """A topology file if all GPUs and NICs are directly below one root, so that NCCL cannot see distances."""
    topology = machine.topology
    switches, nics = topology.ids("switch"), rdma_nics(machine)
    if nics and not switches and any("flat" in note for note in topology.notes):
        why = "the PCI tree of this virtual machine is flat"
        yield Setting("nccl", "NCCL_TOPO_FILE", TOPOLOGY_FILE, "", why, "NCCL_TOPO_FILE", False)
