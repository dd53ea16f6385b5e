"""Parts of a drawing of a machine: boxes, wires, and the tree of devices below their packages."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

Point = tuple[float, float]

ENDPOINTS = ("gpu", "nic", "nvme")
BETWEEN = ("root", "switch", "bridge")
LABEL_WIDTH = 1.05  # of a label with words and rate on one line


@dataclass
class Box:
    """A device: its centre, its size and its text, the first line in bold."""

    id: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    lines: list[str]

    @property
    def left(self) -> float:
        """Coordinate of the left edge."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """Coordinate of the right edge."""
        return self.x + self.width / 2


@dataclass
class Wire:
    """A link, or several similar links that share a label."""

    points: list[Point]
    kind: str
    count: int = 1
    warning: bool = False
    label: str = ""
    label_at: Point = (0.0, 0.0)


@dataclass
class Layout:
    """Everything to draw; `bounds` are left, bottom, right and top."""

    boxes: dict[str, Box] = field(default_factory=dict)
    wires: list[Wire] = field(default_factory=list)

    def bounds(self) -> tuple[float, float, float, float]:
        """The smallest rectangle around all parts."""
        xs = [b.left for b in self.boxes.values()] + [b.right for b in self.boxes.values()]
        ys = [b.y + s * b.height / 2 for b in self.boxes.values() for s in (-1, 1)]
        for wire in self.wires:
            xs += [x for x, _ in wire.points]
            ys += [y for _, y in wire.points]
            xs += [wire.label_at[0] + s * LABEL_WIDTH / 2 for s in (-1, 1) if wire.label]
        return min(xs, default=0), min(ys, default=0), max(xs, default=1), max(ys, default=1)


class Tree:
    """The parents of devices: packages, then the devices reached from them."""

    def __init__(self, topology: dict[str, Any]) -> None:
        self.devices: dict[str, dict[str, Any]] = {d["id"]: d for d in topology["devices"]}
        self.links: list[dict[str, Any]] = topology["links"]
        self.children: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        self.parent_link: dict[str, dict[str, Any]] = {}
        self.packages = [id_ for id_, d in self.devices.items() if d["kind"] == "cpu"]
        near: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        for link in self.links:
            near[link["a"]].append((link["b"], link))
            near[link["b"]].append((link["a"], link))
        seen = set(self.packages)
        frontier = list(self.packages) + [
            i for i, d in self.devices.items() if d["kind"] in ("root", "gpu", "nic", "nvme")
        ]
        for here in frontier:  # grows while it is walked
            if here not in seen:
                seen.add(here)
                self.packages.append(here)  # not on a package: drawn alone
            for other, link in near[here] if self.devices[here]["kind"] not in ("gpu", "nic", "nvme") else []:
                if other not in seen and self._hangs(here, other, link):
                    seen.add(other)
                    self.parent_link[other] = link
                    self.children[here].append((other, link))
                    frontier.insert(frontier.index(here) + 1, other)
        order = {"switch": 0, "bridge": 0, "root": 0, "gpu": 1, "nic": 2, "nvme": 3}
        for below in self.children.values():
            below.sort(key=lambda item: (order.get(self.devices[item[0]]["kind"], 9), _number(item[0])))

    def _hangs(self, here: str, other: str, link: dict[str, Any]) -> bool:
        kind = self.devices[other]["kind"]
        if kind not in ("root", "switch", "bridge", "gpu", "nic", "nvme"):
            return False
        return link["kind"] in ("pcie", "internal", "c2c") or (
            link["kind"] == "nvlink" and self.devices[here]["kind"] == "cpu"
        )

    def memories(self, package: str) -> list[str]:
        ends = [(k["a"], k["b"]) for k in self.links if k["kind"] == "memory"]
        found = [a if b == package else b for a, b in ends if package in (a, b)]
        return sorted(found, key=_number)

    def depth(self, id_: str) -> int:
        """Levels of root complexes and switches below a device."""
        inner = [c for c, _ in self.children[id_] if self.devices[c]["kind"] in BETWEEN]
        return 1 + max(map(self.depth, inner)) if inner else 0

    def leaves(self, id_: str) -> int:
        """GPUs, NICs and drives below a device, or the device itself."""
        return 1 if self.devices[id_]["kind"] in ENDPOINTS else sum(self.leaves(c) for c, _ in self.children[id_])


def _number(id_: str) -> int:
    digits = re.search(r"\d+$", id_)
    return int(digits[0]) if digits else 0
