"""What `waywiser simulate` is asked: a cluster, settings, and a transfer or a collective on them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from waywiser.errors import InputError
from waywiser.lists import sizes_in, words_in
from waywiser.progress import say
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.cluster_file import read_cluster
from waywiser.simulator.cluster_words import MOST_NODES
from waywiser.simulator.collectives import COMPARED, FURTHER, GDR, PROTOCOLS, Collective
from waywiser.simulator.costs import settings_in
from waywiser.simulator.placement import PLACEMENTS, places_of
from waywiser.simulator.step import Step
from waywiser.simulator.step_speed import speed_in
from waywiser.simulator.sweep import INSIDE, VARIED, Sweep
from waywiser.simulator.training import layout_in, model_in
from waywiser.simulator.variants import AXES, variants_of
from waywiser.topology import load_topology

STEP = "step"


def cluster_of(machine: str | None, nodes: int, file: Path | None) -> Cluster:
    if (machine is None) == (file is None):
        raise InputError("which cluster? write --machine NAME, such as hse-e, for two nodes of it, or --cluster FILE")
    if not 1 <= nodes <= MOST_NODES:
        raise InputError(f"--nodes {nodes}: a cluster has 1 to {MOST_NODES} nodes")
    return read_cluster(file) if file is not None else Cluster(str(machine), {"nodes": nodes})


def _say_port(spec: Cluster, topology: Any) -> None:
    if note := spec.port_note(topology):
        say(note)


def settings_of(spec: Cluster, texts: list[str], collective: bool) -> dict[str, str]:
    """Adds costs and ports of `--set` to `spec`; returns the settings of the path."""
    fixed, known = {}, {**VARIED, "pxn": ("off", "on")}
    if collective:
        known |= {"gdr": GDR, "protocol": PROTOCOLS, "placement": PLACEMENTS}
    for text in texts:
        name, equals, value = text.partition("=")
        if name in known and equals:
            if value not in known[name] and not (name == "nics" and re.fullmatch(r"[1-9]\d?", value)):
                raise InputError(f"--set {text!r}: {name} is one of {', '.join(known[name])}")
            fixed[name] = value
    values, port = settings_in([text for text in texts if text.split("=")[0] not in known])
    spec.costs.update(values)
    if port is not None:
        spec.network["port_rate"] = port
    return fixed


def sweep_of(
    spec: Cluster, what: str, sizes: str, vary: list[str], fixed: dict[str, str], pair: str, path: str
) -> Sweep:
    """One transfer, or several at once, between the first and the last node; of one node alone: within it."""
    pairs = place_pairs(pair)
    if len(pairs) > 1 and what != "bandwidth":
        raise InputError(f"--pair {pair!r}: several at once are for bandwidth; each direction is a pair of its own")
    topology = load_topology(spec.machine)
    _say_port(spec, topology)
    spec.check_size(max(1, len(topology.ids("gpu"))))
    others = [load_topology(machine) for machine in spec.others]
    last = [topology, *others][spec.network["types"][-1]] if others else topology
    for place, machine in [end for one in pairs for end in zip(one, (topology, last), strict=True)]:
        if place not in machine.places():
            raise InputError(f"--pair {pair!r}: {place!r} is not in {machine.name}: {', '.join(machine.places())}")
    if "nodes" in vary:
        raise InputError("--vary nodes is for collectives: a transfer is between the first and the last node")
    if "pxn" in fixed:
        raise InputError("--set pxn is for collectives: a transfer takes the NICs beside its GPUs")
    network = {**spec.network, "nodes": max(2, spec.network["nodes"])}
    sweep = Sweep(topology, network, what, sizes_in(sizes), vary, fixed, *pairs[0], spec.costs)
    sweep.others, sweep.beside = others, pairs[1:]
    sweep.way = path or (INSIDE if spec.nodes == 1 else "")
    return sweep


def place_pairs(text: str) -> list[tuple[str, str]]:
    """ "gpu0-to-gpu1,gpu2>gpu3" -> places. Raises InputError."""
    found = [one.replace("-to-", ">").split(">") for one in words_in(text)]
    if not found or any(len(one) != 2 for one in found):
        raise InputError(f"--pair {text!r}: write two places, such as gpu0-to-gpu0, or several such pairs")
    pairs = [(source, destination) for source, destination in found]
    if len(set(pairs)) < len(pairs):
        raise InputError(f"--pair {text!r}: a pair is there twice")
    return pairs


def collective_of(
    spec: Cluster,
    what: str,
    sizes: str,
    vary: list[str],
    algorithms: list[str],
    fixed: dict[str, str],
    order: list[int],
) -> Collective:
    """The collective `what`, by every algorithm and setting that is asked for."""
    if spec.others and "nodes" in vary:
        raise InputError("--vary nodes is for nodes of one type")
    machines = [load_topology(machine) for machine in spec.machines]
    if not order and len({len(one.ids("gpu")) for one in machines}) > 1:
        each = ", ".join(f"{one.name} {len(one.ids('gpu'))}" for one in machines)
        raise InputError(spec.located(f"a collective needs as many GPUs of each node: write --order, as {each}"))
    if spec.second:
        raise InputError(spec.located(f"a second_job with a model is for {STEP}"))
    for name in [*vary, *fixed]:
        if name not in AXES and name not in fixed.keys() & {"protocol"}:
            raise InputError(f"{name!r} does not vary for {what}: write some of {','.join(AXES)}")
    if both := set(vary) & fixed.keys():
        raise InputError(f"{min(both)} is in --vary and in --set: write it once")
    if order and "ranks" in vary:
        raise InputError("--vary ranks takes the GPUs of a node by number: leave out --order")
    if algorithms and "algorithm" in vary:
        raise InputError("--vary algorithm takes all algorithms: leave out --algorithms")
    every = [*COMPARED[what], *(FURTHER.get(what, ()) if "algorithm" in vary else ())]
    left_out = {*(() if spec.network.get("in_network_reduction") else ("in_network",))}
    chosen = algorithms or [name for name in every if name not in left_out]
    counts = [1 << power for power in range(1, 18) if 1 << power < spec.nodes]
    nodes = [*counts, spec.nodes] if "nodes" in vary else [spec.nodes]
    direct = ("off", "on") if "gdr" in vary else (fixed.get("gdr", "best"),)
    topology = load_topology(spec.machine)
    _say_port(spec, topology)
    gpus = max(1, len(topology.ids("gpu")))
    spec.check_size(gpus)
    run = Collective(topology, spec, what, sizes_in(sizes), chosen, nodes, direct)
    run.machines = machines[1:]
    run.order, run.pxn, run.protocol = order, fixed.get("pxn") == "on", fixed.get("protocol", PROTOCOLS[0])
    run.placement = fixed.get("placement", "")
    run.variants = variants_of(vary, spec.network, gpus)
    return run


def step_of(spec: Cluster, model: str, parallel: str, gpu: str, fixed: dict[str, str]) -> Step:
    """A training step on all GPUs of a cluster."""
    spec.of_one_type()
    if unknown := sorted(fixed.keys() - {"gdr"}):
        raise InputError(f"--set {unknown[0]} is not for {STEP}: write gdr, nic or a cost")
    topology = load_topology(spec.machine)
    _say_port(spec, topology)
    gpus = len(topology.ids("gpu"))
    if not gpus:
        raise InputError(f"{STEP}: {topology.name} has no GPU")
    spec.check_size(gpus)
    asked = model_in(model)
    layout = layout_in(parallel, asked, spec.nodes * gpus, gpus)
    return Step(topology, spec, asked, layout, speed_in(gpu, topology, asked, layout), fixed.get("gdr", "best"))


def second_step_of(spec: Cluster, first: Step) -> Step:
    """Of the second job, on nodes that the first one does not have."""
    job = spec.second
    assert job is not None
    taken = first.cluster.places_in(first.cluster.nodes)
    places = tuple(places_of(job.placement, job.nodes, int(spec.network["nodes"]), taken))
    cluster = replace(spec, job=job.nodes, places=places, placement="", second=None)
    gpus = len(first.topology.ids("gpu"))
    asked = model_in(job.model)
    layout = layout_in(job.parallel, asked, job.nodes * gpus, gpus)
    return Step(first.topology, cluster, asked, layout, speed_in(job.gpu, first.topology, asked, layout), first.direct)


def gpus_in(text: str) -> list[int]:
    words = words_in(text)
    if not all(re.fullmatch(r"\d{1,3}", word) for word in words):
        raise InputError(f"--order {text!r}: write the numbers of GPUs, such as 0,3,2,1")
    return [int(word) for word in words]
