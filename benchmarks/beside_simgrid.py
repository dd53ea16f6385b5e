"""The same random flow problem in this simulator and in SimGrid: completion times and the time both take.

Needs SimGrid's Python module (Debian: python3-simgrid) and waywiser in the same interpreter. SimGrid's model is set to
plain max-min sharing: no TCP window, no correction factors, no cross traffic.
Run: python3 benchmarks/beside_simgrid.py [FLOWS]
"""

import json
import random
import sys
import time

import simgrid

from waywiser import _core

CONFIG = [
    "network/model:CM02",
    "network/TCP-gamma:0",
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/weight-S:0",
    "network/crosstraffic:0",
    "contexts/stack-size:16",
]


def problem(flows: int, seed: int) -> dict:
    """Some links, and flows over up to four of them."""
    chance = random.Random(seed)
    links = max(8, flows // 4)
    capacities = [chance.uniform(1e8, 1e10) for _ in range(links)]
    chosen = []
    for _ in range(flows):
        over = chance.sample(range(links), chance.randint(1, 4))
        chosen.append({"links": over, "bytes": chance.uniform(1e6, 1e9), "begin": chance.uniform(0, 0.5)})
    return {"capacities": capacities, "flows": chosen}


def with_simgrid(what: dict) -> tuple[list[float], float]:
    engine = simgrid.Engine(["beside", *(f"--cfg={entry}" for entry in CONFIG), "--log=root.thres:error"])
    zone = simgrid.NetZone.create_full_zone("all")
    links = [zone.create_link(f"l{i}", rate).set_latency(0).seal() for i, rate in enumerate(what["capacities"])]
    ends = [0.0] * len(what["flows"])

    def send(index: int, source, target, flow: dict) -> None:
        simgrid.this_actor.sleep_for(flow["begin"])
        simgrid.Comm.sendto(source, target, int(flow["bytes"]))
        ends[index] = simgrid.Engine.clock

    hosts = []
    for index, flow in enumerate(what["flows"]):
        source, target = zone.create_host(f"s{index}", 1e9).seal(), zone.create_host(f"t{index}", 1e9).seal()
        route = [simgrid.LinkInRoute(links[link]) for link in flow["links"]]
        zone.add_route(source.netpoint, target.netpoint, None, None, route, False)
        hosts.append((source, target))
    zone.seal()
    for index, (flow, (source, target)) in enumerate(zip(what["flows"], hosts, strict=True)):
        simgrid.Actor.create(f"a{index}", source, send, index, source, target, flow)
    start = time.perf_counter()
    engine.run()
    return ends, time.perf_counter() - start


def with_waywiser(what: dict) -> tuple[list[float], float]:
    text = json.dumps(what)
    start = time.perf_counter()
    ends = json.loads(_core.simulate_flows(text))
    return ends, time.perf_counter() - start


def main() -> None:
    flows = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    what = problem(flows, 1)
    ours, our_seconds = with_waywiser(what)
    theirs, their_seconds = with_simgrid(what)
    worst = max(abs(a / b - 1) for a, b in zip(ours, theirs, strict=True))
    print(
        f"{flows} flows over {len(what['capacities'])} links: "
        f"waywiser {our_seconds:.3f} s, SimGrid {their_seconds:.3f} s"
    )
    print(f"largest difference of a completion time: {100 * worst:.4f} %")
    sys.exit(0 if worst < 0.01 and our_seconds <= their_seconds else 1)


if __name__ == "__main__":
    main()
