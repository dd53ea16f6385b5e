"""What the simulator says of each variable that `apply` may set: a check by `waywiser simulate`, or why there is none.

A check gets the value that `apply` has set, None where it left the default, and fails if the simulated times with and
without it say otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from verb_runs import Run

from waywiser.apply import nccl_network, ucx_rails
from waywiser.apply.nearest import LEVELS
from waywiser.apply.node_switches import NAMES, SIZES, NodePath, NodePaths, wins
from waywiser.apply.trials import Trial, judged
from waywiser.look.ucx import rates
from waywiser.topology import load_topology

VERBS = {"latency": "latency", "streaming": "bandwidth", "bidirectional": "bidirectional"}
MIB = 1 << 20
_TOLD: dict[tuple[str, ...], dict[int, float]] = {}  # what was simulated before, by command line


@dataclass
class Asked:
    """A node type, or two of them in a cluster file, and the purpose; runs `waywiser simulate`."""

    run: Run
    machine: str
    purpose: str
    words: Sequence[str]  # --machine NAME, or --cluster FILE
    gpus: Sequence[str] = ("gpu0",)

    def times(self, verb: str, sizes: Sequence[int], *words: str) -> dict[int, float]:
        """The least time of all curves at each size."""
        key = (verb, *self.words, *words, *map(str, sizes))
        if key not in _TOLD:
            text = ",".join(map(str, sizes))
            status, out, err = self.run("simulate", verb, *self.words, "--sizes", text, *words, "--json")
            assert status == 0, err
            told = json.loads(out)
            known = [
                {point["bytes"]: point["seconds"] for point in one["points"]} for one in told.get("curves", [])
            ] + [{one["size"]: one["seconds"]} for one in told.get("cases", [])]
            _TOLD[key] = {size: min(one[size] for one in known if size in one) for size in sizes}
        return _TOLD[key]

    def paths(self) -> NodePaths:
        """The paths between GPUs, with all settings of GPUDirect RDMA and GDRCopy."""
        found = []
        for gpu in self.gpus:
            settings = {one: ("--set", f"gdr={one[0]}", "--set", f"gdrcopy={one[1]}") for one in NAMES}
            pair = ("--pair", f"{gpu}-to-{gpu}")
            times = {
                name: {one: self.times(verb, SIZES, *pair, *words) for one, words in settings.items()}
                for name, verb in VERBS.items()
            }
            found.append(NodePath(gpu, f"other:{gpu}", "", times))
        return NodePaths(tuple(found))


Check = Callable[[Asked, "str | None"], None]


def rails(asked: Asked, value: str | None) -> None:
    trials: dict[str, dict[str, dict[int, float]]] = {}
    for count in ("1", "2", "4", "8"):
        for verb in ucx_rails.OPERATIONS[asked.purpose]:
            for place in (*asked.gpus, "host0"):
                vary = ("--vary", "gdr,gdrcopy") if place != "host0" else ()
                words = ("--pair", f"{place}-to-{place}", "--set", f"nics={count}", *vary)
                trials.setdefault(count, {})[f"{place} {verb}"] = asked.times(verb, ucx_rails.SIZES, *words)
    gpus = [kind for kind in trials["2"] if kind.startswith("gpu")]
    best = judged(trials, "2", asked.purpose, gpus)
    assert best.value == (value or "2"), best
    large = {count: sum(trials[count][kind][max(ucx_rails.SIZES)] for kind in gpus) for count in trials}
    assert large[value or "2"] <= 1.05 * min(large.values()), large  # never a value that halves the bandwidth


def nccl_level(asked: Asked, value: str | None) -> None:
    assert _nccl(asked).get(nccl_network.LEVEL) == value


def nccl_read(asked: Asked, value: str | None) -> None:
    assert _nccl(asked).get(nccl_network.READ) == value


def _nccl(asked: Asked) -> dict[str, str]:
    """The variables that collectives on two nodes of this type ask for."""
    topology = load_topology(asked.machine)
    nearest = [
        min((topology.relation(gpu, nic) for nic in topology.ids("nic")), key=LEVELS.index)
        for gpu in topology.ids("gpu")
    ]
    far = max(nearest, key=LEVELS.index)
    trials: dict[str, Trial] = {
        gdr: {
            what: asked.times(
                what, nccl_network.SIZES, "--algorithms", ",".join(algorithms), "--set", f"gdr={gdr}", "--set", "pxn=on"
            )
            for what, algorithms in nccl_network.COLLECTIVES.items()
        }
        for gdr in ("near", "on", "write", "off")
    }
    best = judged(trials, "near", asked.purpose)
    wanted = nccl_network.values_of(best.value, far) if best.value != "near" else {}
    if wanted and asked.purpose != "latency":  # the sum over the sizes, large ones included
        assert sum(trials[best.value]["all_reduce"].values()) < sum(trials["near"]["all_reduce"].values())
    return wanted


def collnet(asked: Asked, value: str | None) -> None:
    """Only for clusters whose switches add: their words are --cluster FILE."""
    if "--machine" in asked.words:
        assert value is None
        return
    sizes = ",".join(map(str, nccl_network.SIZES))
    words = ("--sizes", sizes, "--set", "gdr=near", "--set", "pxn=on", "--algorithms", "nccl", "--json")
    status, out, err = asked.run("simulate", "all_reduce", *asked.words, *words)
    assert status == 0, err

    def least(case: dict[str, Any], left_out: str) -> float:
        tried = case["chosen"]["tried"]
        return min(one["seconds"] for one in tried if "seconds" in one and one["algorithm"] != left_out)

    trials: dict[str, Trial] = {
        setting: {"all_reduce": {case["size"]: least(case, left_out) for case in json.loads(out)["cases"]}}
        for setting, left_out in (("0", "nccl_collnet"), ("1", ""))
    }
    assert judged(trials, "0", asked.purpose).value == (value or "0")


def distance(asked: Asked, value: str | None) -> None:
    """GPUDirect RDMA by size: wins at some sizes and loses at others, and the rate is that of its large messages."""
    paths = asked.paths()
    by_size = bool(wins(paths, 0, "on") and wins(paths, 0, "off"))
    topology = load_topology(asked.machine)
    relations = {topology.relation(gpu, nic) for gpu in asked.gpus for nic in topology.ids("nic")}
    beside = bool(relations & {"PIX", "PXB"})  # then the other end is what slows, and has a setting of its own
    assert value is None or by_size
    assert value is not None or not by_size or beside
    if value is not None:
        told = max(rates(value).values())
        large = [
            max(size / path.times["latency"]["on", "on"][size] for size in SIZES if size >= MIB) for path in paths.paths
        ]
        assert any(abs(told / rate - 1) < 0.01 for rate in large), (told, large)


def gpu_direct(asked: Asked, value: str | None) -> None:
    """One switch for all sizes; off only where staging wins somewhere and nowhere loses what counts."""
    single = asked.paths().single(asked.purpose)
    assert single is not None
    if value is not None:
        assert value == "n" and single.switches[0] == "off"
    elif not (wins(asked.paths(), 0, "on") and wins(asked.paths(), 0, "off")):
        assert single.switches[0] == "on"


def transports(asked: Asked, value: str | None) -> None:
    single = asked.paths().single(asked.purpose)
    assert single is not None
    assert (value == "^gdr_copy") == (single.switches[1] == "off" and bool(wins(asked.paths(), 1, "off")))


def hmem(asked: Asked, value: str | None) -> None:
    single = asked.paths().single(asked.purpose)
    assert single is not None and (value == "1") == (single.switches[0] == "on")


def rate_of(paths: dict[str, tuple[str, str]], asked: Asked, value: str | None) -> None:
    """Each word of the list (path and pair by word) is the rate of large transfers, where it is not UCX's default."""
    if value is None:
        return
    found = rates(value)
    for word, (path, pair) in paths.items():
        sizes = [MIB << power for power in range(7)]
        times = [asked.times(verb, sizes, "--path", path, "--pair", pair) for verb in ("latency", "bandwidth")]
        rate = max(size / one[size] for one in times for size in sizes)
        assert abs(found[word] / rate - 1) < 0.03 or abs(found[word] / rate - 1) > 0.2, (word, found[word], rate)
        assert 1 / 1.27 < found[word] / rate < 1.27, (word, found[word], rate)


def peer_rate(asked: Asked, value: str | None) -> None:
    """Between the rates of the slowest and the fastest pair of GPUs."""
    if value is not None:
        gpus = load_topology(asked.machine).ids("gpu")
        sizes = [64 * MIB]
        pairs = [("copy_engine" if _peers(asked, gpu) else "host_staged variant=pipelined chunk=4M depth=4", gpu)
                 for gpu in gpus[1:]]  # fmt: skip
        told = [64 * MIB / asked.times("bandwidth", sizes, "--path", path, "--pair", f"gpu0-to-{gpu}")[64 * MIB]
                for path, gpu in pairs]  # fmt: skip
        (rate,) = rates(value).values()
        assert min(told) / 1.05 < rate < max(told) * 1.05, (rate, told)


def _peers(asked: Asked, gpu: str) -> bool:
    return load_topology(asked.machine).relation("gpu0", gpu).startswith("NV")


def peers_across(asked: Asked, value: str | None) -> None:
    """Peer copies between some GPUs across a CPU beat staging."""
    topology = load_topology(asked.machine)
    gpus = topology.ids("gpu")
    far = [(a, b) for a in gpus for b in gpus if topology.relation(a, b) in ("PHB", "NODE", "SYS")]
    if value is not None:
        pair = ("--pair", f"{far[0][0]}-to-{far[0][1]}", "--path")
        staged = asked.times("bandwidth", [64 * MIB], *pair, "host_staged variant=pipelined chunk=4M depth=4")
        assert asked.times("bandwidth", [64 * MIB], *pair, "copy_engine")[64 * MIB] < staged[64 * MIB]


def fast_copy(pair: str, asked: Asked, value: str | None) -> None:
    """Copies by the CPU are faster up to this size, and the copy engine is at four times the size."""
    if value is not None:
        sizes = [int(value), 4 * int(value)]
        cpu = asked.times("latency", sizes, "--path", "bar_copy", "--pair", pair)
        engine = asked.times("latency", sizes, "--path", "copy_engine", "--pair", pair)
        assert cpu[sizes[0]] < engine[sizes[0]] and cpu[sizes[1]] > engine[sizes[1]], (cpu, engine)


INTO, OUT = "host0-to-gpu0", "gpu0-to-host0"
WITHIN = {name: f"ucx transports={name.lower()}" for name in ("POSIX", "SYSV", "CMA")}
SIMULATED: dict[str, Check] = {
    "UCX_MAX_RNDV_RAILS": rails,
    "UCX_DISTANCE_BW": distance,
    "UCX_IB_GPU_DIRECT_RDMA": gpu_direct,
    "UCX_TLS": transports,
    "UCX_CUDA_COPY_BW": partial(rate_of, {"h2d": ("copy_engine", INTO), "d2h": ("copy_engine", OUT)}),
    "UCX_GDR_COPY_BW": partial(rate_of, {"get_dedicated": ("bar_copy", OUT), "put_shared": ("bar_copy", INTO)}),
    "UCX_CUDA_IPC_BW": peer_rate,
    **{f"UCX_{name}_BW": partial(rate_of, {"": (path, "host0-to-host0")}) for name, path in WITHIN.items()},
    "UCX_TCP_MAX_BW": partial(rate_of, {"": ("ucx transports=network-tcp", "host0-to-host0")}),
    "NCCL_NET_GDR_LEVEL": nccl_level,
    "NCCL_NET_GDR_READ": nccl_read,
    "NCCL_COLLNET_ENABLE": collnet,
    "NCCL_P2P_LEVEL": peers_across,
    "MPIR_CVAR_CH4_OFI_ENABLE_HMEM": hmem,
    "MPIR_CVAR_GPU_FAST_COPY_MAX_SIZE_H2D": partial(fast_copy, INTO),
    "MPIR_CVAR_GPU_FAST_COPY_MAX_SIZE_D2H": partial(fast_copy, OUT),
}
_BY_SIZE = "only of versions that no machine of the package has; limit_for of the same simulated times"
_WITHIN = "from two processes of this machine, measured; simulated as paths of UCX, not as layers of Open MPI"
NOT_SIMULATED = {
    "UCX_RNDV_FRAG_SIZE": "UCX's own fragment is one of the model's costs; other sizes are ucx_staged, another program",
    "UCX_RNDV_MEMTYPE_DIRECT_SIZE": _BY_SIZE,
    "OMPI_MCA_btl_openib_want_cuda_gdr": _BY_SIZE,
    "OMPI_MCA_btl_openib_cuda_rdma_limit": _BY_SIZE,
    "OMPI_MCA_pml": _WITHIN,
    "OMPI_MCA_pml_ucx_tls": _WITHIN,
    "OMPI_MCA_pml_ucx_devices": _WITHIN,
    "OMPI_MCA_btl_vader_eager_limit": _WITHIN,
    "OMPI_MCA_btl_vader_single_copy_mechanism": _WITHIN,
    "OMPI_MCA_btl_sm_eager_limit": _WITHIN,
    "OMPI_MCA_btl_sm_single_copy_mechanism": _WITHIN,
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "timed with Open MPI's own algorithms on this machine",
    "OMPI_MCA_coll_tuned_dynamic_rules_filename": "timed with Open MPI's own algorithms on this machine",
    "OMPI_MCA_coll_tuned_allreduce_algorithm": "only while algorithms are timed",
    "NCCL_TUNER_PLUGIN": "timed with NCCL's own algorithms on this machine",
    "WAYWISER_NCCL_PLAN": "timed with NCCL's own algorithms on this machine",
    "NCCL_P2P_DISABLE": "damaged data, which a simulator does not have",
    "NCCL_IB_HCA": "the simulator's collectives take the nearest NICs by themselves",
    "NCCL_TOPO_FILE": "what NCCL cannot see in a virtual machine, the simulator is told",
    "UCX_PROTO_ENABLE": "read, never set",
}
