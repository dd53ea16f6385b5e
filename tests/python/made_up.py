"""Made-up results for tests: a machine with 4 GPUs and one without, from formulas. No figure in them was measured."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

LABEL = "made-up machine"
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

_OPERATIONS = {"latency": (1.0, 1.0), "streaming": (0.35, 1.0), "bidirectional": (0.4, 1.08), "loaded": (0.5, 1.6)}
_SIZES = [1 << power for power in range(0, 31, 2)]


def _wobble(*key: object) -> float:
    """The same small deviation from 1 each time."""
    return 1 + 0.03 * math.sin(sum(ord(c) * (i + 1) for i, c in enumerate(repr(key))))


def _seconds(shape: Shape, operation: str, size: int) -> float:
    _, _, latency, bandwidth, cliff, factor = shape
    share, slower = _OPERATIONS[operation]
    return latency * share + size / bandwidth * slower * (factor if size >= cliff else 1)


def _path(shape: Shape, source: str, destination: str, processes: int) -> Json:
    return {
        "mechanism": shape[0],
        "source": source,
        "destination": destination,
        "processes": processes,
        "parameters": dict(sorted(shape[1].items())),
    }


def _point(shape: Shape, operation: str, size: int) -> Json:
    seconds = _seconds(shape, operation, size) * _wobble(shape[:2], operation, size)
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


def _groups(gpus: int) -> list[tuple[Json, list[Shape], float, str]]:
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


def profile(gpus: int = 4, slower: float = 1.0) -> Json:
    """A profile; `slower` multiplies every time."""
    series, first_use = [], []
    for group, shapes, limit, source in _groups(gpus):
        pair = group["members"][0]
        for shape in shapes:
            path = _path(shape, pair[0], pair[1], group["processes"])
            first_use.append({"path": path, "seconds": shape[2] * 40})
            for operation in _OPERATIONS:
                points = [_point(shape, operation, size) for size in _SIZES]
                for point in points:
                    for key in ("seconds", "low", "high", "p50", "p99"):
                        point[key] *= slower
                series.append(
                    {"path": path, "operation": operation, "points": points, "limit": limit, "limit_source": source}
                )
                if operation == "loaded" and len(group["members"]) > 1:
                    series[-1]["pairs"] = min(len(group["members"]), 8)
    return {
        "schema": "waywiser.profile",
        "version": 1,
        "fingerprint": f"made-up-{gpus}",
        "machine": f"{LABEL}: {gpus} GPUs" if gpus else f"{LABEL} without GPUs",
        "backend": "cuda" if gpus else "host",
        "simulated": False,
        "created": "2001-02-03T04:05:06Z",
        "state": {
            "seconds": 212.5,
            "load": [0.4, 0.3, 0.2],
            "clocks": {"gpu0": {"sm_mhz": 1980, "memory_mhz": 3201}},
            "versions": {"driver": "0.0", "ucx": "1.22.0"},
        },
        "classes": [group for group, *_ in _groups(gpus)],
        "series": series,
        "first_use": first_use,
        "unavailable": _unavailable(gpus),
        "rejected": [
            {
                "path": series[0]["path"],
                "operation": "streaming",
                "bytes": 65536,
                "reason": "41.0 GB/s is above the limit of 30.0 GB/s of the slowest hop",
            }
        ],
    }


def _unavailable(gpus: int) -> list[Json]:
    reasons = [("ucx", "host0", "host0", 1, "ucx: within one process bytes are copied directly")]
    for index in range(gpus):
        reasons.append(("bar_copy", "host0", f"gpu{index}", 1, "bar_copy: libgdrapi.so.2: cannot open"))
        reasons.append(("bar_copy", f"gpu{index}", "host0", 1, "bar_copy: libgdrapi.so.2: cannot open"))
    keys = ("mechanism", "source", "destination", "processes", "reason")
    return [dict(zip(keys, values, strict=True)) for values in reasons]


def plan(of: Json) -> Json:
    """The fastest path for each size of `of`, equal neighbours joined."""
    rows = []
    for group in of["classes"]:
        for operation in _OPERATIONS:
            mine = [
                one
                for one in of["series"]
                if one["operation"] == operation
                and [one["path"]["source"], one["path"]["destination"]] in group["members"]
                and one["path"]["processes"] == group["processes"]
            ]
            rows += _rows(group, operation, mine)
    keep = ("fingerprint", "machine", "backend", "simulated")
    kept = {key: of[key] for key in keep}
    return {"schema": "waywiser.plan", "version": 3, **kept, "other_nodes": [], "rows": [*rows, _collective()]}


def _collective() -> Json:
    row = {"operation": "all_reduce", "memory": "gpu", "ranks": 4, "from_bytes": 0, "to_bytes": 1 << 20}
    row |= {"ways": ways("fused_one_shot", "nccl", 3.25), "why": "nccl takes 3.25 times as long"}
    return {**row, "expected": [{"bytes": 8, "seconds": 2.5e-6}, {"bytes": 1 << 20, "seconds": 1.4e-5}]}


def ways(chosen: str, second: str = "", ratio: float = 0.0) -> list[Json]:
    """The ways of a plan's row."""
    return [{"way": chosen, "ratio": 1.0}, *([{"way": second, "ratio": ratio}] if second else [])]


def message_row(pair: tuple[str, str], processes: int, sizes: tuple[int, int], ways_of: list[Json]) -> Json:
    """A plan's row for the latency of messages."""
    key = {"operation": "latency", "pairs": [list(pair)], "processes": processes, "rail": "", "encrypted": False}
    return {**key, "from_bytes": sizes[0], "to_bytes": sizes[1], "ways": ways_of, "expected": [], "why": "made up"}


def _rows(group: Json, operation: str, mine: list[Json]) -> list[Json]:
    rows: list[Json] = []
    for index, size in enumerate(_SIZES):
        ranked = sorted(mine, key=lambda one: one["points"][index]["seconds"])
        best, second = ranked[0], ranked[1]
        seconds = best["points"][index]["seconds"]
        if rows and rows[-1]["ways"][0]["way"] == label(best["path"]):
            rows[-1]["expected"].append({"bytes": size, "seconds": seconds})
            continue
        if rows:
            rows[-1]["to_bytes"] = size - 1
        rows.append(
            {
                "pairs": group["members"],
                "processes": group["processes"],
                "operation": operation,
                "from_bytes": size,
                "to_bytes": (1 << 64) - 1,
                "rail": "",
                "encrypted": False,
                "ways": ways(label(best["path"]), label(second["path"]), second["points"][index]["seconds"] / seconds),
                "expected": [{"bytes": size, "seconds": seconds}],
                "why": "fastest of the paths that were measured",
            }
        )
    return rows


def verification(of: Json) -> Json:
    """Cases beside the measured sizes: nearly all choices are the fastest."""
    rows = []
    for row in (row for row in of["rows"] if "pairs" in row):
        size, seconds = row["expected"][0]["bytes"] * 3, row["expected"][0]["seconds"] * 2
        ratio = max(1.0, 1 + (_wobble(size, row["operation"], row["processes"]) - 1) * 1.7)
        chosen, second = (one["way"] for one in row["ways"])
        rows.append(
            {
                "source": row["pairs"][0][0],
                "destination": row["pairs"][0][1],
                "processes": row["processes"],
                "operation": row["operation"],
                "bytes": size,
                "chosen": chosen,
                "chosen_seconds": seconds,
                "best": chosen if ratio == 1 else second,
                "best_seconds": seconds / ratio,
                "ratio": ratio,
                "equal": 1 < ratio < 1.01,
            }
        )
    return {
        "schema": "waywiser.verification",
        "version": 1,
        "fingerprint": of["fingerprint"],
        "cases": len(rows),
        "within_5_percent": sum(row["ratio"] <= 1.05 for row in rows),
        "worst_ratio": max(row["ratio"] for row in rows),
        "rows": rows,
    }


def label(path: Json) -> str:
    """Mechanism and parameters, as everywhere."""
    inside = ",".join(f"{name}={value}" for name, value in sorted(path["parameters"].items()))
    return f"{path['mechanism']}({inside})" if inside else str(path["mechanism"])


def topology(gpus: int = 4) -> Json:
    """The machine of `profile(gpus)`."""
    devices: list[Json] = [{"id": "host0", "kind": "host", "name": "NUMA node 0", "numa": 0}]
    devices += [{"id": f"gpu{index}", "kind": "gpu", "name": "Made-up GPU", "numa": 0} for index in range(gpus)]
    devices += [{"id": "nvswitch0", "kind": "nvswitch", "name": "NVSwitch", "numa": -1}] if gpus else []
    links: list[Json] = [{"a": f"gpu{index}", "b": "nvswitch0", "kind": "nvlink", "count": 18} for index in range(gpus)]
    links += [
        {"a": f"gpu{index}", "b": "host0", "kind": "pcie", "generation": 5, "max_generation": 5, "width": 16}
        for index in range(gpus)
    ]
    return {
        "schema": "waywiser.topology",
        "version": 1,
        "name": f"{LABEL}: {gpus} GPUs" if gpus else f"{LABEL} without GPUs",
        "kind": "synthetic",
        "devices": devices,
        "links": links,
    }


def write(folder: Path, gpus: int = 4) -> Path:
    """A folder of results as `waywiser tune` leaves it, without the report."""
    folder.mkdir(parents=True, exist_ok=True)
    measured = profile(gpus)
    chosen = plan(measured)
    documents = {
        "topology": topology(gpus),
        "profile": measured,
        "plan": chosen,
        "verification": verification(chosen),
    }
    for name, value in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder
