"""Settings of NCCL between nodes: up to which distance NICs use GPU memory, and whether they also read it.

NCCL decides once for each pair of GPU and NIC, by their distance, not by size. For a simulated machine the times are
those of collectives on two of its nodes, each as NCCL would choose it (broadcast: one chain, all_to_all: all pairs);
for a measured one those of messages between GPUs, one way.
"""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.apply.facts import Machine
from waywiser.apply.nearest import LEVELS
from waywiser.apply.node_switches import NodePath, between_nodes
from waywiser.apply.setting import LeftOut, Setting
from waywiser.apply.simulated_times import NotTimed, collective_times
from waywiser.apply.trials import Trial, compared, judged
from waywiser.simulator.collectives import NCCL

LEVEL, READ = "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ"
COLLECTIVES = {
    "all_reduce": (NCCL,),
    "all_gather": (NCCL,),
    "reduce_scatter": (NCCL,),
    "broadcast": ("chain",),
    "all_to_all": ("direct",),
}
SIZES = tuple(1 << power for power in range(10, 29, 3))  # 1 KiB to 256 MiB
_MESSAGES = (64 << 10, 64 << 20)
_WORDS = {"NODE": "PHB"}  # NCCL has no host bridges: all devices of a NUMA node are at its one CPU
_NEAR = LEVELS[: LEVELS.index("PXB") + 1]  # as far as NCCL goes by default


def proposed(machine: Machine, nics: dict[str, list[str]]) -> Iterator[Setting | LeftOut]:
    """`nics`: those nearest to each GPU."""
    relations = [machine.topology.relation(gpu, nic) for gpu, near in nics.items() for nic in near[:1]]
    known = [one for one in relations if one in LEVELS]
    if not known:
        return
    far = max(known, key=LEVELS.index)
    default = "near" if 0 < sum(one in _NEAR for one in known) < len(known) else "on" if far in _NEAR else "off"
    try:
        trials = collective_trials(machine, default) if machine.is_simulated else _messages(machine, default)
    except NotTimed as error:
        yield LeftOut("nccl", LEVEL, "", f"the best distance is not known: {error}")
        return
    if trials:
        yield from _chosen(machine, trials, default, far)


def _chosen(machine: Machine, trials: dict[str, Trial], default: str, far: str) -> Iterator[Setting | LeftOut]:
    best = judged(trials, default, machine.purpose)
    names = {"off": "through host memory", "near": "with GPUDirect RDMA up to PXB", "on": f"with it up to {far}"}
    names |= {"write": f"with NICs that only write GPU memory, up to {far}"}
    told = compared(trials, {value: names[value] for value in trials})
    why = f"GPU and NIC are up to {far} apart, by default NCCL goes as far as PXB; {told}"
    wanted = values_of(best.value, far) if best.value != default else {}
    why += f"; {best.gain:.2f} times the speed for {machine.purpose}" if wanted else ": the default is right"
    for name in (LEVEL, READ):
        usual = "1" if name == READ else ""
        if name in wanted:
            yield Setting("nccl", name, wanted[name], usual, why, LEVEL, not machine.label)
        elif name == LEVEL or best.value in ("on", "near"):
            yield LeftOut("nccl", name, usual, why if name == LEVEL else "the default where GPUs have NVLinks")


def values_of(direct: str, far: str) -> dict[str, str]:
    """The variables, in NCCL's words, for a setting of the simulator's collectives and a distance of GPU and NIC."""
    level = {LEVEL: "LOC"} if direct == "off" else {LEVEL: _WORDS.get(far, far)} if far not in _NEAR else {}
    return level | ({READ: "0"} if direct == "write" else {})


def collective_trials(machine: Machine, default: str) -> dict[str, Trial]:
    """Simulated, by the setting of GPUDirect RDMA. Raises NotTimed."""
    settings = tuple(dict.fromkeys((default, "on", "write", "off")))
    trials: dict[str, dict[str, dict[int, float]]] = {one: {} for one in settings}
    for operation, algorithms in COLLECTIVES.items():
        for setting, times in collective_times(machine, operation, algorithms, SIZES, settings, True).items():
            trials[setting][operation] = dict(times)
    return dict(trials)


def _messages(machine: Machine, default: str) -> dict[str, Trial]:
    """Measured, of the sizes in which NCCL cuts its data; nothing if GPUs of some distances are near, of others not."""
    paths = between_nodes(machine.profile, operations=("streaming",)).deciding.paths
    if default == "near" or not paths:
        return {}
    return {one: {_name(path): _one_way(path, one) for path in paths} for one in ("on", "off")}


def _name(path: NodePath) -> str:
    return f"{path.source} to {path.destination}, one way"


def _one_way(path: NodePath, gdr: str) -> dict[int, float]:
    cases = [case for case in path.cases(("streaming",)) if _MESSAGES[0] <= case.bytes <= _MESSAGES[1]]
    return {case.bytes: seconds for case in cases if (seconds := path.seconds(case, (gdr, "off")))}
