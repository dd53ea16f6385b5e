"""Laws that simulated times keep on machines by chance, made from the table of parts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from waywiser import _core
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.collectives import Collective
from waywiser.simulator.costs import costs_json
from waywiser.topology.new_machine import NewMachine

SLACK = 1 + 1e-9
SIZES = [1, 64, 2048, 8191, 8192, 16384, 32768, 131072, 1 << 20, 64 << 20]
CPUS = {"gen3": "2x6152", "gen4": "2xEPYC 7742", "gen5": "2x8480C"}
A_FEW = settings(
    derandomize=True, max_examples=6, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)

machines = st.builds(
    NewMachine,
    cpus=st.sampled_from(sorted(CPUS.values())),
    gpus=st.sampled_from(["1xL4", "2xA100-PCIE", "4xV100-PCIE", "4xA100", "8xH100", "8xB200"]),
    nics=st.sampled_from(["2xCX5", "4xCX6", "8xCX7", "4xCX7@200"]),
    nvlinks=st.just(""),
    switches=st.sampled_from([0, 2, 4]),
    roots=st.just(4),
)


def made(asked: NewMachine) -> _core.Topology:
    """GPUs that have more NVLinks than they can share out equally get NVSwitches."""
    shared = asked.gpus not in ("8xH100", "8xB200")
    return (asked if shared else replace(asked, nvlinks="nvswitch")).topology()


def times(
    topology: _core.Topology, what: str, ends: tuple[str, str], network: dict[str, Any] | None = None, **path: str
) -> dict[int, float]:
    """Seconds by size between two nodes, by UCX over RDMA."""
    parameters = {"transports": "ib", "gdr": "on", "gdrcopy": "on", "nics": "1", **path}
    way = {"mechanism": "ucx", "source": ends[0], "destination": ends[1], "processes": 1, "parameters": parameters}
    request = {
        "cluster": {"nodes": 2, **(network or {})},
        "paths": [{"path": way, "from_node": 0, "to_node": 1}],
        "operations": [what],
        "sizes": SIZES,
    }
    answer = json.loads(_core.simulate(topology, costs_json({}), json.dumps(request), lambda *_: True, []))
    (result,) = answer["results"]
    return {int(point["bytes"]): float(point["seconds"]) for point in result["points"]}


def collective(topology: _core.Topology, algorithm: str, nodes: int = 2) -> dict[int, float]:
    cluster = Cluster(topology.name, {"nodes": nodes})
    run = Collective(topology, cluster, "all_reduce", [8, 65536, 64 << 20], [algorithm])
    return {case.size: case.seconds for case in run.run(lambda *_: None)}


def no_slower(better: dict[int, float], other: dict[int, float], slack: float = SLACK) -> None:
    assert better.keys() == other.keys() and better
    for size, seconds in better.items():
        assert seconds <= other[size] * slack, size


ends = st.sampled_from([("gpu0", "gpu0"), ("host0", "host0"), ("gpu0", "host0"), ("host0", "gpu0")])
switched = st.sampled_from(["off", "on"])


@given(machines, ends, switched, switched)
@A_FEW
def test_more_bytes_take_no_less_time(asked: NewMachine, pair: tuple[str, str], gdr: str, gdrcopy: str) -> None:
    """Rates may jump where UCX changes its protocol: a rendezvous overlaps copies that a shorter message waits for."""
    found = list(times(made(asked), "latency", pair, gdr=gdr, gdrcopy=gdrcopy).values())
    assert found == sorted(found)


@given(machines, ends, st.sampled_from(["latency", "streaming"]))
@A_FEW
def test_more_nics_are_never_slower(asked: NewMachine, pair: tuple[str, str], what: str) -> None:
    """A second one was up to 1.97 times slower: each had a handshake and a message of its own."""
    by_nics = [times(made(asked), what, pair, nics=count) for count in ("1", "2", "4")]
    no_slower(by_nics[1], by_nics[0])
    no_slower(by_nics[2], by_nics[1])


@given(machines, ends, switched)
@A_FEW
def test_faster_links_are_never_slower(asked: NewMachine, pair: tuple[str, str], gdr: str) -> None:
    """One way: with both directions at once, copies may meet in a worse order, which took 2.1 % more."""
    port = {"port_rate": 12.5e9}
    for what in ("latency", "streaming"):
        slow = times(made(asked), what, pair, port, gdr=gdr)
        no_slower(times(made(asked), what, pair, {"port_rate": 25e9}, gdr=gdr), slow)
        no_slower(slow, times(made(replace(asked, pcie="gen3")), what, pair, port, gdr=gdr))


@given(machines)
@A_FEW
def test_more_cores_are_never_slower(asked: NewMachine) -> None:
    """Of copies in host memory by 64 threads."""
    found = []
    for cpus in ("1x7452", "1x7742"):  # 32 and 64 cores of one kind
        way = {"mechanism": "host_copy", "source": "host0", "destination": "host0", "processes": 1}
        path = {**way, "parameters": {"stores": "temporal", "threads": "64"}}
        request = {"cluster": {"nodes": 1}, "paths": [{"path": path}], "operations": ["latency"], "sizes": SIZES[6:]}
        machine = made(replace(asked, cpus=cpus, pcie=""))
        answer = json.loads(_core.simulate(machine, costs_json({}), json.dumps(request), lambda *_: True, []))
        found.append({point["bytes"]: point["seconds"] for point in answer["results"][0]["points"]})
    no_slower(found[1], found[0])


@given(machines, st.sampled_from([1, 2, 4]))
@A_FEW
def test_nccl_is_the_fastest_and_more_bytes_take_no_less_time(asked: NewMachine, nodes: int) -> None:
    found = collective(made(replace(asked, gpus="4xA100")), "nccl", nodes)
    for algorithm in ("nccl_ring", "nccl_tree"):
        no_slower(found, collective(made(replace(asked, gpus="4xA100")), algorithm, nodes))
    assert list(found.values()) == sorted(found.values())


@given(machines, st.sampled_from(["ring", "nccl_ring", "nccl_tree", "double_tree"]))
@A_FEW
def test_collectives_with_faster_or_more_nics_are_never_slower(asked: NewMachine, algorithm: str) -> None:
    count = int(asked.gpus[0])
    nics = [replace(asked, nics=f"{few}xCX6@{rate}") for few, rate in ((1, 100), (1, 200), (count, 200))]
    found = [collective(made(one), algorithm) for one in nics]
    # 5 %: the pieces of trees may meet in a worse order where they share a NIC.
    no_slower(found[1], found[0], SLACK if algorithm.endswith("ring") else 1.05)
    if algorithm == "nccl_ring":  # 1 %: a message to the NIC of its rail passes one more NVLink
        no_slower(found[2], found[1], 1.01)


KINDS = (NewMachine("2x6152", "4xV100-PCIE", "2xCX5"), NewMachine("2xEPYC 7742", "4xA100", "4xCX6"))


@given(machines, st.sampled_from(KINDS), st.sampled_from(["streaming", "bidirectional"]))
@A_FEW
def test_two_types_of_node_are_no_slower_than_the_slower_one(asked: NewMachine, other: NewMachine, what: str) -> None:
    """The messages of the faster end kept the CPU of the slower one from sending its own: up to 1.46 times slower.

    One message may take longer than between equal nodes: it has the slow copy of one end and the slow port of the
    other. Of many messages the slowest part counts; 10 % is what filling and draining takes.
    """
    ways = {"transports": "ib", "gdr": "on", "gdrcopy": "on", "nics": "1"}
    path = {"mechanism": "ucx", "source": "gpu0", "destination": "gpu0", "processes": 1, "parameters": ways}
    types = [made(asked), made(other)]

    def seconds(first: int, last: int) -> dict[int, float]:
        request = {
            "cluster": {"nodes": 2, **({"types": [0, 1]} if first != last else {})},
            "paths": [{"path": path, "from_node": 0, "to_node": 1}],
            "operations": [what],
            "sizes": SIZES,
        }
        others = [(types[last], costs_json({}))] if first != last else []
        answer = json.loads(_core.simulate(types[first], costs_json({}), json.dumps(request), lambda *_: True, others))
        return {point["bytes"]: point["seconds"] for point in answer["results"][0]["points"]}

    pure = [seconds(0, 0), seconds(1, 1)]
    slower = {size: max(pure[0][size], pure[1][size]) for size in SIZES}
    for ends_of_both in ((0, 1), (1, 0)):
        no_slower(seconds(*ends_of_both), slower, 1.1)
