"""The NICs with RDMA, and those nearest to each GPU."""

from __future__ import annotations

from waywiser.apply.facts import Machine

# Relations of GPU and NIC, near first.
LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")


def rdma_nics(machine: Machine) -> list[str]:
    """The NICs with RDMA."""
    return [nic for nic in machine.topology.ids("nic") if machine.topology.has_rdma(nic)]


def near_nics(machine: Machine) -> dict[str, list[str]]:
    """GPU -> ids of its nearest NICs."""
    topology = machine.topology
    order = {word: number for number, word in enumerate(LEVELS)}
    nics, found = rdma_nics(machine), {}
    for gpu in topology.ids("gpu"):
        near = {nic: order.get(topology.relation(gpu, nic), len(order)) for nic in nics}
        found[gpu] = [nic for nic in nics if near[nic] == min(near.values(), default=0)]
    return found
