"""NCCL's CollNet: reduction in InfiniBand's switches (SHARP). It needs daemon and plug-in: doctor's D53 looks for them.

For a simulated cluster whose switches add, all-reduce over one tree of switches for each rail is compared with the
algorithms that NCCL has without them. No benchmark of ours runs NCCL between nodes, so on a machine that has it the
setting is left out, with the command by which a program proves it.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def here(root: Root) -> Iterator[LeftOut]:
    """For the machine itself: whether the fabric and a plug-in of NCCL have it, which nothing here can prove."""
    try:
        ports = in_network.infiniband(root)
        plug_in = in_network.nccl_plug_in(root) if ports else ""
    except Unknown:
        return
    if not plug_in:
        return
    then = f"waywiser verify --try {NAME}=1 -- srun -N 2 PROGRAM proves it by your own, doctor D53 says if it is taken"
    try:
        if in_network.manager(root, ports[0]):
            why = f"sharp_am and {plug_in} are there, but no benchmark of ours runs NCCL between nodes: {then}"
            yield LeftOut("nccl", NAME, "1", why)
    except Unknown as error:
        yield LeftOut("nccl", NAME, "1", f"not known whether sharp_am serves {ports[0].name}: {error}; {then}")


def reduction_trials(machine: Machine, nodes: int) -> dict[str, Trial]:
    """Simulated times of all-reduce without ("0") and with ("1") the switches: NCCL then still has its own algorithms,
    and is taken to choose the fastest one at each size. Raises NotTimed."""
    algorithms = COLLECTIVES[_OPERATION]
    found: dict[str, Trial] = {}
    for value, without in (("0", (IN_NETWORK,)), ("1", ())):
        times = collective_times(machine, _OPERATION, algorithms, SIZES, ("near",), True, nodes, without)["near"]
        found[value] = {_OPERATION: times}
    return found
