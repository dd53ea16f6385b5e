"""The time of each path of a made-up machine, by formulas. No figure in them was measured."""

from __future__ import annotations

import math
from typing import Any

Json = dict[str, Any]
# mechanism, parameters, latency (s), bandwidth (B/s), from this size on slower by the last factor
Shape = tuple[str, dict[str, str], float, float, int, float]

_HOST = [
    ("host_copy", {"stores": "temporal", "threads": "1"}, 60e-9, 18e9, 1 << 25, 1.6),
    ("host_copy", {"stores": "nontemporal", "threads": "1"}, 160e-9, 15e9, 1 << 40, 1.0),
    ("host_copy", {"stores": "nontemporal", "threads": "2"}, 2.4e-6, 22e9, 1 << 40, 1.0),
]
_HOST_TWO: list[Shape] = [
    ("host_copy", {"stores": "temporal", "threads": "1"}, 210e-9, 12e9, 1 << 25, 1.4),
    ("ucx", {"transports": "posix"}, 180e-9, 9e9, 1 << 40, 1.0),
    ("ucx", {"transports": "sysv"}, 190e-9, 8.8e9, 1 << 40, 1.0),
    ("ucx", {"transports": "cma"}, 1.9e-6, 11e9, 1 << 40, 1.0),
    ("ucx", {"transports": "tcp"}, 9e-6, 3.1e9, 1 << 40, 1.0),
]
_HOST_GPU: list[Shape] = [
    ("copy_engine", {}, 5.3e-6, 55.5e9, 1 << 40, 1.0),
    ("sm_copy", {"blocks": "8", "direction": "pull", "threads": "512"}, 9.0e-6, 51.4e9, 1 << 40, 1.0),
    ("host_staged", {"variant": "pageable"}, 4.9e-6, 10.6e9, 1 << 40, 1.0),
    ("courier", {"slots": "4"}, 2.2e-6, 3e9, 1 << 40, 1.0),
]
_GPU_GPU: list[Shape] = [
    ("copy_engine", {}, 6.6e-6, 396e9, 1 << 40, 1.0),
    ("sm_copy", {"blocks": "32", "direction": "push", "threads": "512"}, 8.2e-6, 353e9, 1 << 40, 1.0),
    ("sm_copy", {"blocks": "132", "direction": "push", "threads": "512"}, 8.4e-6, 369e9, 1 << 40, 1.0),
    ("sm_copy", {"blocks": "16", "direction": "pull", "threads": "512"}, 8.1e-6, 365e9, 1 << 40, 1.0),
    ("host_staged", {"chunk": "512K", "depth": "2", "variant": "pipelined"}, 19e-6, 41e9, 1 << 40, 1.0),
    ("host_staged", {"chunk": "8M", "depth": "4", "variant": "pipelined"}, 34e-6, 52e9, 1 << 40, 1.0),
    ("host_staged", {"variant": "whole"}, 14e-6, 27.5e9, 1 << 40, 1.0),
    ("host_staged", {"variant": "pageable"}, 16e-6, 6.9e9, 1 << 40, 1.0),
    ("relay", {"chunk": "4M", "depth": "3", "via": "gpu2"}, 22e-6, 360e9, 1 << 40, 1.0),
    ("split", {"share": "0.9", "ways": "copy_engine+sm_copy"}, 12e-6, 379e9, 1 << 40, 1.0),
    ("courier", {"slots": "4"}, 3.4e-6, 2e9, 1 << 40, 1.0),
]
_GPU_GPU_TWO: list[Shape] = [
    (name, {**parameters, "handle": "cuda_ipc"}, latency * 1.1, bandwidth * 0.99, cliff, factor)
    for name, parameters, latency, bandwidth, cliff, factor in _GPU_GPU[:5]
] + [("ucx", {"transports": "cuda_ipc"}, 7.6e-6, 387e9, 1 << 40, 1.0)]

OPERATIONS = {"latency": (1.0, 1.0), "streaming": (0.35, 1.0), "bidirectional": (0.4, 1.08), "loaded": (0.5, 1.6)}
SIZES = [1 << power for power in range(0, 31, 2)]


def wobble(*key: object) -> float:
    """The same small deviation from 1 each time."""
    return 1 + 0.03 * math.sin(sum(ord(c) * (i + 1) for i, c in enumerate(repr(key))))


def _seconds(shape: Shape, operation: str, size: int) -> float:
    _, _, latency, bandwidth, cliff, factor = shape
    share, slower = OPERATIONS[operation]
    return latency * share + size / bandwidth * slower * (factor if size >= cliff else 1)


def path_of(shape: Shape, source: str, destination: str, processes: int) -> Json:
    return {
        "mechanism": shape[0],
        "source": source,
        "destination": destination,
        "processes": processes,
        "parameters": dict(sorted(shape[1].items())),
    }


def point_of(shape: Shape, operation: str, size: int) -> Json:
    seconds = _seconds(shape, operation, size) * wobble(shape[:2], operation, size)
    spread = 1.012 if size > 4096 else 1.035
    return {
        "bytes": size,
        "seconds": seconds,
        "low": seconds / spread,
        "high": seconds * spread,
        "p50": seconds,
        "p99": seconds * 1.3,
        "samples": 31,
        "cpu_seconds": seconds * 0.4,
        "verified": True,
    }


def groups(gpus: int) -> list[tuple[Json, list[Shape], float, str]]:
    names = [f"gpu{index}" for index in range(gpus)]
    found: list[tuple[Json, list[Shape], float, str]] = [
        ({"name": "host>host same node", "members": [["host0", "host0"]], "processes": 1}, list(_HOST), 30e9, "memory"),
        ({"name": "host>host same node", "members": [["host0", "host0"]], "processes": 2}, _HOST_TWO, 30e9, "memory"),
    ]
    if gpus:
        out = [["host0", name] for name in names]
        back = [[name, "host0"] for name in names]
        pairs = [[a, b] for a in names for b in names if a != b]
        link, pcie = "18 x NVLink, achievable", "PCIe 5.0 x16, achievable"
        found += [
            ({"name": "host>gpu PHB", "members": out, "processes": 1}, _HOST_GPU, 57e9, pcie),
            ({"name": "gpu>host PHB", "members": back, "processes": 1}, _HOST_GPU, 57e9, pcie),
            ({"name": "gpu>gpu NV18", "members": pairs, "processes": 1}, _GPU_GPU, 478e9, link),
            ({"name": "gpu>gpu NV18", "members": pairs, "processes": 2}, _GPU_GPU_TWO, 478e9, link),
        ]
    return found
