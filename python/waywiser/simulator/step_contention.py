"""What a collective and the kernels of a training step take from each other while both run on a GPU.

NCCL holds multiprocessors, and copies through the GPU's memory. Products of matrices then take `nccl.beside_products`
times as long, and NCCL `nccl.by_products` times as long as alone; kernels that move memory, and NCCL beside them,
`nccl.beside_memory` and `nccl.by_memory` times. These are measured with kernels and all-reduces of their own, not in a
step. Between nodes NCCL waits for the network, and takes as long as alone. While a GPU waits for its host, neither
changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from waywiser import _core
from waywiser.simulator.step_timeline import ALONE, Beside
from waywiser.simulator.traced import Kernels

Costs = Mapping[str, float]


def costs_of(topology: Any, costs: str) -> Costs:
    """Those that hold for a machine; `costs`: JSON, as the core takes them."""
    found: dict[str, float] = json.loads(_core.simulator_costs(topology, costs))
    return found


def memory_rate(topology: Any, costs: Costs) -> float:
    """Bytes per second that copies reach of a GPU's memory; 0: not known."""
    gpu = topology.device(topology.ids("gpu")[0])
    return float(gpu.attributes.get("memory_bandwidth", 0)) * costs["gpu.memory_share"]


def beside(kernels: Kernels, costs: Costs, within_node: bool) -> Beside:
    """How many times as long kernels take beside a collective, and it beside them."""
    if kernels.seconds <= 0:
        return ALONE
    products = kernels.products * costs["nccl.beside_products"]
    others = kernels.others * costs["nccl.beside_memory"]
    took = products + others + kernels.waits
    # In that time the collective does as much as in so much time of its own.
    done = products / costs["nccl.by_products"] + others / costs["nccl.by_memory"] + kernels.waits
    return Beside(took / kernels.seconds, took / done if within_node else 1.0)
