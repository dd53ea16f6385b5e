"""Reduction in InfiniBand's switches (SHARP), by NCCL's CollNet and UCC's `sharp`: doctor's D53 looks for its parts.

For a simulated cluster whose switches add, all-reduce over one tree of switches for each rail is compared with the
algorithms that NCCL has without them. Nothing on one node can prove it, so on a machine that has it the setting is left
out, with the command that proves it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from waywiser.apply.facts import Machine
from waywiser.apply.nccl_network import COLLECTIVES, SIZES
from waywiser.apply.setting import LeftOut, Setting
from waywiser.apply.simulated_times import NotTimed, collective_times
from waywiser.apply.trials import Trial, compared, judged
from waywiser.look import in_network
from waywiser.look.finding import Unknown
from waywiser.look.root import Root

NAME, IN_NETWORK = "NCCL_COLLNET_ENABLE", "in_network_reduction"
MOST_NODES = 16  # of the cluster: more take long to simulate, and change the comparison little
_OPERATION = "all_reduce"


def proposed(machine: Machine) -> Iterator[Setting | LeftOut]:
    """For machines of a cluster whose switches add."""
    cluster = machine.cluster
    if not machine.is_simulated or cluster is None or not cluster.network.get(IN_NETWORK):
        return
    nodes = max(2, min(cluster.nodes, MOST_NODES))
    try:
        trials = reduction_trials(machine, nodes)
    except NotTimed as error:
        yield LeftOut("nccl", NAME, "1", f"not known whether it gains: {error}")
        return
    best = judged(trials, "0", machine.purpose)
    told = compared(trials, {"0": "by default", "1": "with switches that add"})
    why = f"one tree of switches for each rail on {nodes} nodes, bounded by its links; {told}"
    if best.value == "1":
        why += f"; {best.gain:.2f} times the speed for {machine.purpose}; needs sharp_am and the plug-in (doctor D53)"
        yield Setting("nccl", NAME, "1", "0", why, NAME, False)
    else:
        yield LeftOut("nccl", NAME, "1", f"{why}: the default is right")


_BY_NCCL = f"no benchmark of ours runs NCCL between nodes: waywiser verify --try {NAME}=1 -- srun -N 2 PROGRAM"
_BY_UCC = (
    "only with another node it can be proved: waywiser verify --with openmpi --hosts FILE --try"
    " 'OMPI_MCA_coll_ucc_enable=1 OMPI_MCA_coll_ucc_priority=100 UCC_CL_BASIC_TLS=ucp,sharp'"
)
# By the library that `apply` is for: variable, value, how its plug-in is found, what proves it.
_HERE = {
    "nccl": (NAME, "1", in_network.nccl_plug_in, _BY_NCCL),
    "openmpi": ("UCC_CL_BASIC_TLS", "ucp,sharp", in_network.ucc_plug_in, _BY_UCC),
}


def here(root: Root, targets: Collection[str]) -> Iterator[LeftOut]:
    """For the machine itself: whether the fabric and a plug-in of NCCL or UCC have it, which nothing here can prove."""
    for target, (name, value, plug_in_of, proof) in _HERE.items():
        if target not in targets:
            continue
        try:
            ports = in_network.infiniband(root)
            plug_in = plug_in_of(root) if ports else ""
        except Unknown:
            continue
        if not plug_in:
            continue
        then = f"{proof} proves it, doctor D53 says what is there"
        try:
            if in_network.manager(root, ports[0]):
                yield LeftOut(target, name, value, f"sharp_am and {plug_in} are there, but {then}")
        except Unknown as error:
            yield LeftOut(target, name, value, f"not known whether sharp_am serves {ports[0].name}: {error}; {then}")


def reduction_trials(machine: Machine, nodes: int) -> dict[str, Trial]:
    """Simulated times of all-reduce without ("0") and with ("1") the switches: NCCL then still has its own algorithms,
    and is taken to choose the fastest one at each size. Raises NotTimed."""
    algorithms = COLLECTIVES[_OPERATION]
    found: dict[str, Trial] = {}
    for value, without in (("0", (IN_NETWORK,)), ("1", ())):
        times = collective_times(machine, _OPERATION, algorithms, SIZES, ("near",), True, nodes, without)["near"]
        found[value] = {_OPERATION: times}
    return found
