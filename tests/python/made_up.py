"""Made-up results for tests: a machine with 4 GPUs and one without, from formulas. No figure in them was measured."""

from __future__ import annotations

import json
from pathlib import Path

from made_up_times import OPERATIONS, SIZES, Json, groups, path_of, point_of, wobble

from waywiser.profile import Profile
from waywiser.profile_reader import read_profile

LABEL = "made-up machine"


def profile(gpus: int = 4, slower: float = 1.0) -> Json:
    """A profile; `slower` multiplies every time."""
    series, first_use = [], []
    for group, shapes, limit, source in groups(gpus):
        pair = group["members"][0]
        for shape in shapes:
            path = path_of(shape, pair[0], pair[1], group["processes"])
            first_use.append({"path": path, "seconds": shape[2] * 40})
            for operation in OPERATIONS:
                points = [point_of(shape, operation, size) for size in SIZES]
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
        "classes": [group for group, *_ in groups(gpus)],
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
    return [{**dict(zip(keys, values, strict=True)), "parameters": {}} for values in reasons]


def plan(of: Json) -> Json:
    """The fastest path for each size of `of`, equal neighbours joined."""
    rows = []
    for group in of["classes"]:
        for operation in OPERATIONS:
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
    for index, size in enumerate(SIZES):
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
                "to_bytes": (1 << 63) - 1,
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
        ratio = max(1.0, 1 + (wobble(size, row["operation"], row["processes"]) - 1) * 1.7)
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


def read(value: Json) -> Profile:
    """A profile as the package reads it from a file."""
    return read_profile(json.dumps(value).encode(), "made up")
