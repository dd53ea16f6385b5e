"""The set-up of a program's rank on this node: variables, and the CPUs, GPU and NIC that are near each other.

`waywiser run` calls `setup_for` for each rank, applies the result and starts the program unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from waywiser import _core
from waywiser.apply.facts import Machine
from waywiser.apply.hand_out import ACCEPT, hand_out, is_prediction
from waywiser.apply.nearest import rdma_nics
from waywiser.apply.setting import SIMULATED, TARGETS, Settings
from waywiser.doctor.variables import harmful, overruled
from waywiser.look.machine import cpus
from waywiser.look.root import Root
from waywiser.look.visible_gpus import ORDER, VISIBLE, DriverGpu, visible, visible_here
from waywiser.profile import Pair
from waywiser.units import format_rate

Driver = Callable[[Mapping[str, str]], Root]  # the machine as a program with these variables sees it


@dataclass(frozen=True)
class RankSetup:
    """`variables` to set, `removed` ones with the reason, CPUs to bind to; `gpu` and `nic` by id, "" for none.

    `memory`: the preferred NUMA node; None if there is only one, or if it is unknown.
    `why` has a line for each decision; `changes` are the lines about variables that the user has set. `predicted`:
    NAME=VALUE of variables without a measurement. If nothing is `known`, the first line of `why` says so.
    """

    variables: Mapping[str, str]
    removed: Mapping[str, str]
    cpus: tuple[int, ...]
    gpu: str
    nic: str
    why: tuple[str, ...]
    memory: int | None = None
    predicted: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    known: bool = True

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment for the program."""
        kept = {name: value for name, value in given.items() if name not in self.removed}
        return {**kept, **self.variables}


def setup_for(
    topology: _core.Topology,
    settings: Settings | None,
    local_rank: int,
    local_size: int,
    environment: Mapping[str, str],
    allowed: set[int],
    targets: tuple[str, ...] = TARGETS,
    bind: bool = True,
    measured: Mapping[Pair, float] | None = None,
    accept_simulated: bool = False,
    driver: Driver | None = None,
) -> RankSetup:
    """The set-up of one of `local_size` ranks of this node. Variables of the user stay, unless harmful.

    Without `bind`, CPUs, memory and NIC are left alone. `measured`: bytes per second from GPU to GPU. If a pair is
    slower than similar pairs and there are more GPUs than ranks, all ranks see only GPUs that avoid this pair.
    Without settings (the machine was never tuned), ranks are only bound. Only settings that `hand_out` returns are
    set; without `accept_simulated`, settings of a simulation are ignored. `driver`: the machine of `topology`, whose
    NVIDIA driver is asked about UUIDs and MIG; None: only the topology is known.
    """
    why: list[str] = []
    settings = _given(topology, settings, accept_simulated, why)
    removed = harmful(Root(environment=environment)) if settings else {}
    changes = [f"{name} is removed: {reason}" for name, reason in removed.items()]
    variables: dict[str, str] = {}
    predicted: list[str] = []
    for one in settings.settings if settings else ():
        if one.target not in targets:
            continue
        if one.name in environment and one.name not in removed:
            why.append(f"{one.name}={environment[one.name]} is kept as you set it")
            continue
        variables[one.name] = one.value
        predicted += [f"{one.name}={one.value}"] if is_prediction(one) else []
    if settings:
        left = {name: value for name, value in environment.items() if name not in removed}
        for name, (value, reason) in overruled(Root(environment=left)).items():
            if name not in variables:
                variables[name] = value
                changes.append(f"{name}={value} overrules a file: {reason}")
        why += changes
    if topology.ids("gpu") and ORDER not in environment:
        variables[ORDER] = "PCI_BUS_ID"
    gpus = _seen_gpus(topology, {**environment, **variables}, driver, why)
    free = bind and VISIBLE not in environment and environment.get(ORDER, "PCI_BUS_ID") == "PCI_BUS_ID"
    if better := _better_gpus(topology, local_size, measured or {}, free, why):
        gpus = better
        variables[VISIBLE] = ",".join(one[3:] for one in gpus)
    gpu, nic, near = _place(topology, gpus, local_rank, why)
    rest = tuple(predicted), tuple(changes), settings is not None
    if not bind:
        why.append("binding is off")
        return RankSetup(variables, removed, (), gpu, "", tuple(why), None, *rest)
    if nic and settings and "UCX_NET_DEVICES" not in environment:
        variables.setdefault("UCX_NET_DEVICES", f"{topology.device(nic).name}:1")
    bound = _share(topology, near & allowed or allowed, local_rank, local_size, gpus)
    return RankSetup(variables, removed, bound, gpu, nic, tuple(why), _memory(topology, bound), *rest)


def _given(
    topology: _core.Topology, settings: Settings | None, accept_simulated: bool, why: list[str]
) -> Settings | None:
    """The settings that this node may get; None with the reason if there are none."""
    if settings is None:
        why.append(f"nothing is known about this machine ({topology.fingerprint}): binding only")
        return None
    given, withheld = hand_out(settings, accept_simulated)
    if settings.source == SIMULATED and not accept_simulated and not given.settings:
        told = f"only a simulation of this machine ({topology.fingerprint}) is known: binding only"
        why.append(f"{told}; {ACCEPT} takes its settings")
        return None
    why += [f"{one.name}={one.value} is withheld: {one.why}" for one in withheld]
    return given


def _seen_gpus(
    topology: _core.Topology, environment: Mapping[str, str], driver: Driver | None, why: list[str]
) -> list[str]:
    """The GPUs that the program sees, as it numbers them; none if that cannot be known."""
    devices = [topology.device(id_) for id_ in topology.ids("gpu")]
    gpus = [DriverGpu(one.id, one.bus_id, one.name, one.attributes.get("uuid", "")) for one in devices]
    seen = visible_here(driver(environment), gpus) if driver and gpus else visible(environment, gpus)
    if seen.why and gpus:
        why.append(f"{seen.why}; ranks are bound near no GPU" if not seen.gpus else seen.why)
    return list(seen.gpus or ())


def _better_gpus(
    topology: _core.Topology, ranks: int, measured: Mapping[Pair, float], free: bool, why: list[str]
) -> list[str]:
    """The GPUs that avoid a pair with an odd measurement; none if there is no such pair, or no `free` choice."""
    gpus: list[str] = topology.ids("gpu")
    if not gpus or not measured:
        return []
    placement = topology.place(min(ranks, len(gpus)), False, dict(measured))
    for odd in placement.odd:
        rates = f"{format_rate(odd.rate)} measured, pairs like it {format_rate(odd.typical)}"
        why.append(f"{odd.a} - {odd.b} is odd: {rates}")
    chosen = [one.gpu for one in placement.gpus]
    if not free or not placement.odd or ranks >= len(gpus) or {*chosen} == {*gpus[:ranks]}:
        return []
    why.append(f"the ranks get {', '.join(chosen)}, which avoid it as far as possible")
    return chosen


def _place(topology: _core.Topology, gpus: Sequence[str], local_rank: int, why: list[str]) -> tuple[str, str, set[int]]:
    """GPU number `local_rank` of `gpus`, as programs number them, its nearest NIC, and its near CPUs."""
    if not gpus:
        return "", "", set()
    gpu = gpus[local_rank % len(gpus)]
    placed = next((one for one in topology.place(len(topology.ids("gpu")), True).gpus if one.gpu == gpu), None)
    rdma = rdma_nics(Machine(topology))
    nic = placed.nic if placed and placed.nic in rdma and len(rdma) > 1 else ""
    near = cpus(placed.cores) if placed else set()
    if not near:
        why.append(f"the CPUs near to {gpu} are unknown")
    return gpu, nic, near


def _memory(topology: _core.Topology, bound: tuple[int, ...]) -> int | None:
    """The NUMA node of all these CPUs; None if the machine has only one node."""
    nodes = [topology.device(name) for name in topology.ids("host")]
    found = [node.numa for node in nodes if set(bound) <= cpus(node.cores)]
    return int(found[0]) if len(nodes) > 1 and len(found) == 1 and bound else None


def _share(
    topology: _core.Topology, near: set[int], local_rank: int, local_size: int, gpus: Sequence[str]
) -> tuple[int, ...]:
    """This rank's part of the CPUs, as even as possible; all of them if there are fewer CPUs than ranks."""
    mates = list(range(local_size))
    if gpus:
        cores = {one.gpu: one.cores for one in topology.place(len(topology.ids("gpu")), False).gpus}
        own = cores.get(gpus[local_rank % len(gpus)])
        mates = [rank for rank in mates if cores.get(gpus[rank % len(gpus)]) == own]
    ordered = _by_core(sorted(near))
    index, count = mates.index(local_rank), len(mates)
    if len(ordered) < count:
        return tuple(sorted(ordered))
    return tuple(sorted(ordered[index * len(ordered) // count : (index + 1) * len(ordered) // count]))


def _by_core(numbers: list[int]) -> list[int]:
    """CPUs ordered so that the threads of a core are adjacent: kernels number second threads in a second range."""
    half = len(numbers) // 2
    first, second = numbers[:half], numbers[half:]
    ranges = all(part and part[-1] - part[0] == len(part) - 1 for part in (first, second))
    if len(numbers) % 2 or not ranges or second[0] == first[-1] + 1:
        return numbers
    return [cpu for pair in zip(first, second, strict=True) for cpu in pair]
