"""Where each part of a machine goes in its drawing. Pure: a topology in, boxes and wires out; one unit is one inch.

Packages stand at the outside with their memories, below them root complexes, PCIe switches, then GPUs and NICs in a
row. Big machines of two packages have the second one upside down, so that the GPUs face each other and NVLink runs
between the two rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from waywiser.report.drawing_text import device_lines, link_label, link_warning

Point = tuple[float, float]

_LEAF = {"gpu": 1.0, "nic": 0.86, "nvme": 0.86}
_NARROW_LEAF, _NARROW_FROM = 0.8, 11  # for rows of that many endpoints
_LEAF_HEIGHT = 0.62
_NODE_HEIGHT = {"switch": 0.34, "bridge": 0.34, "root": 0.3}
_NODE_WIDTH = {"switch": 1.15, "bridge": 1.0, "root": 1.25}
_GAP, _GROUP_GAP, _PACKAGE_GAP = 0.14, 0.16, 1.25
_PACKAGE_HEIGHT = 1.2
_LEVEL, _LEAF_DROP = 0.78, 0.82
_LANE, _SWITCH_BAR = 0.3, 0.46
_LABEL_WIDTH = 1.05  # of one with words and rate in a line
_MIRROR_FROM = 9  # endpoints, with two packages


@dataclass
class Box:
    """A device: its centre, its size and what is written in it, the first line in bold."""

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
    """A link, or several alike that share a label."""

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
        """The smallest rectangle around all of it."""
        xs = [b.left for b in self.boxes.values()] + [b.right for b in self.boxes.values()]
        ys = [b.y + s * b.height / 2 for b in self.boxes.values() for s in (-1, 1)]
        for wire in self.wires:
            xs += [x for x, _ in wire.points]
            ys += [y for _, y in wire.points]
            xs += [wire.label_at[0] + s * _LABEL_WIDTH / 2 for s in (-1, 1) if wire.label]
        return min(xs, default=0), min(ys, default=0), max(xs, default=1), max(ys, default=1)


class _Tree:
    """Who hangs on whom: packages, then what is reached from them."""

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
        frontier = list(self.packages) + [i for i, d in self.devices.items() if d["kind"] in ("root", "gpu", "nic", "nvme")]
        for here in frontier:  # grows while it is walked
            if here not in seen:
                seen.add(here)
                self.packages.append(here)  # on no package: stands alone
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
        inner = [c for c, _ in self.children[id_] if self.devices[c]["kind"] in _NODE_HEIGHT]
        return 1 + max(map(self.depth, inner)) if inner else 0

    def leaves(self, id_: str) -> int:
        """GPUs, NICs and drives below a device, or the device itself."""
        return 1 if self.devices[id_]["kind"] in _LEAF else sum(self.leaves(c) for c, _ in self.children[id_])


def _number(id_: str) -> int:
    digits = re.search(r"\d+$", id_)
    return int(digits[0]) if digits else 0


class _Row:
    """Packages side by side; `down` is -1 when their devices are below them, +1 when above."""

    def __init__(self, tree: _Tree, packages: list[str], layout: Layout, top: float, down: int, levels: int) -> None:
        self._tree, self._layout, self._top, self._down = tree, layout, top, down
        self._leaf_depth = _PACKAGE_HEIGHT + 0.5 + max(0, levels - 1) * _LEVEL + 0.15 + _LEAF_DROP + _LEAF_HEIGHT / 2
        self.edge = self.y(self._leaf_depth + _LEAF_HEIGHT / 2)  # where NVLinks leave the GPUs
        self._x = 0.0
        self._narrow = sum(map(tree.leaves, packages)) >= _NARROW_FROM
        for package in packages:
            self._place_package(package)

    def y(self, depth: float) -> float:
        return self._top + self._down * depth

    def _box(self, id_: str, x: float, depth: float, width: float, height: float) -> None:
        device = self._tree.devices[id_]
        lines = device_lines(device, self._tree.links, self._tree.devices)
        self._layout.boxes[id_] = Box(id_, device["kind"], x, self.y(depth), width, height, lines)

    def _place_package(self, package: str) -> None:
        start = self._x
        if self._tree.devices[package]["kind"] in _LEAF:
            self._place(package, 0)
            self._x += _GROUP_GAP
            return
        for child, _ in self._tree.children[package]:
            self._place(child, 0)
            self._x += _GROUP_GAP
        memories = self._tree.memories(package)
        least = max(2.3, 1.25 * len(memories) + 0.2)
        used = self._x - start - _GAP - _GROUP_GAP if self._tree.children[package] else 0.0
        if used < least:  # centre the devices below a package that is wider than they are
            self._shift(package, (least - used) / 2)
            used = least
        self._box(package, start + used / 2, _PACKAGE_HEIGHT / 2, used, _PACKAGE_HEIGHT)
        width = min(3.4, (used - 0.2) / max(1, len(memories)))
        for i, memory in enumerate(memories):
            x = start + used / 2 + width * (i + 0.5 - len(memories) / 2)
            self._box(memory, x, _PACKAGE_HEIGHT / 2 - self._down * 0.2, width - 0.1, 0.64)
        self._wire_children(package)
        self._x = start + used + _PACKAGE_GAP

    def _shift(self, id_: str, by: float) -> None:
        for child, _ in self._tree.children[id_]:
            box = self._layout.boxes[child]
            box.x += by
            for wire in self._layout.wires:
                if getattr(wire, "owner", None) == child:
                    wire.points = [(x + by, y) for x, y in wire.points]
                    wire.label_at = (wire.label_at[0] + by, wire.label_at[1])
            self._shift(child, by)

    def _place(self, id_: str, level: int) -> None:
        kind = self._tree.devices[id_]["kind"]
        if kind in _LEAF:
            width = _NARROW_LEAF if self._narrow else _LEAF[kind]
            self._box(id_, self._x + width / 2, self._leaf_depth, width, _LEAF_HEIGHT)
            self._x += width + _GAP
            return
        start = self._x
        children = self._tree.children[id_]
        for number, (child, _) in enumerate(children):
            if number and self._tree.devices[child]["kind"] not in _LEAF:
                self._x += _GROUP_GAP
            self._place(child, level + 1)
        used = self._x - start - _GAP
        own = _NODE_WIDTH[kind]
        if used < own:
            self._shift(id_, (own - max(used, 0.0)) / 2)
            used = own
            self._x = start + used + _GAP
        depth = _PACKAGE_HEIGHT + 0.5 + level * _LEVEL
        self._box(id_, start + used / 2, depth, own, _NODE_HEIGHT[kind])
        self._wire_children(id_)

    def _wire_children(self, id_: str) -> None:
        children = self._tree.children[id_]
        parent = self._layout.boxes[id_]
        below = parent.y + self._down * parent.height / 2
        labels = {link_label(link) for _, link in children if link["kind"] != "internal"}
        alike = all(link["kind"] != "internal" and not link_warning(link) for _, link in children)
        shared = len(labels) == 1 and len(children) > 1 and alike
        for child, link in children:
            box = self._layout.boxes[child]
            end = box.y - self._down * box.height / 2
            turn = below + self._down * (0.3 if link["kind"] != "internal" else 0.17)
            x = min(max(box.x, parent.left + 0.1), parent.right - 0.1) if parent.kind == "cpu" else parent.x
            points = [(x, below), (x, turn), (box.x, turn), (box.x, end)]
            wire = Wire(points, link["kind"], link["count"], link_warning(link))
            wire.owner = id_  # type: ignore[attr-defined]
            if link["kind"] != "internal" and not shared:
                wire.label, wire.label_at = link_label(link), (box.x, end - self._down * 0.2)
            self._layout.wires.append(wire)
        if shared:
            label = Wire([], children[0][1]["kind"], label=labels.pop(), label_at=(parent.x, below + self._down * 0.16))
            label.label = label.label.replace("\n", " · ")
            label.owner = id_  # type: ignore[attr-defined]
            self._layout.wires.append(label)


def lay_out(topology: dict[str, Any]) -> Layout:
    """Places everything of a topology, given in its JSON form."""
    tree = _Tree(topology)
    layout = Layout()
    levels = max((tree.depth(package) for package in tree.packages), default=0)
    packages = [p for p in tree.packages if tree.devices[p]["kind"] == "cpu"]
    if len(packages) == 2 == len(tree.packages) and sum(map(tree.leaves, packages)) >= _MIRROR_FROM:
        _two_rows(tree, layout, levels)
    else:
        row = _Row(tree, tree.packages, layout, 0.0, -1, levels)
        _Fabric(tree, layout, [row.edge]).draw()
        _sockets_side_by_side(tree, layout)
    return layout


def _two_rows(tree: _Tree, layout: Layout, levels: int) -> None:
    first, second = tree.packages
    top = _Row(tree, [first], layout, 0.0, -1, levels)
    probe = Layout()
    _Row(tree, [second], probe, 0.0, 1, levels)
    lanes = _Fabric.room(tree, [[b for b in layout.boxes.values()], [b for b in probe.boxes.values()]])
    depth = abs(top.edge)
    bottom = _Row(tree, [second], layout, -(2 * depth + lanes), 1, levels)
    _Fabric(tree, layout, [top.edge, bottom.edge]).draw()
    for link in (k for k in tree.links if k["kind"] == "socket"):
        a, b = layout.boxes[first], layout.boxes[second]
        x = min(a.left, b.left) - 0.75
        points = [(a.left, a.y), (x, a.y), (x, b.y), (b.left, b.y)]
        at = (x, (a.y + b.y) / 2)
        layout.wires.append(Wire(points, "socket", link["count"], label=link_label(link), label_at=at))


def _sockets_side_by_side(tree: _Tree, layout: Layout) -> None:
    packages = [p for p in tree.packages if tree.devices[p]["kind"] == "cpu"]
    above = 0
    for link in (k for k in tree.links if k["kind"] == "socket"):
        a, b = sorted((layout.boxes[link["a"]], layout.boxes[link["b"]]), key=lambda box: box.x)
        if packages.index(b.id) - packages.index(a.id) == 1:
            points, at = [(a.right, a.y), (b.left, b.y)], ((a.right + b.left) / 2, a.y + 0.24)
        else:
            above += 1
            y = a.y + a.height / 2 + 0.3 * above
            points, at = [(a.x, a.y + a.height / 2), (a.x, y), (b.x, y), (b.x, b.y + b.height / 2)], ((a.x + b.x) / 2, y)
        layout.wires.append(Wire(points, "socket", link["count"], label=link_label(link), label_at=at))


class _Fabric:
    """NVLinks between GPUs and to NVSwitches, beside one row of GPUs or between two."""

    def __init__(self, tree: _Tree, layout: Layout, edges: list[float]) -> None:
        self._tree, self._layout, self._edges = tree, layout, edges
        fabric = ("gpu", "nvswitch")
        self._links = [k for k in tree.links if k["kind"] == "nvlink"
                       and all(tree.devices[k[end]]["kind"] in fabric for end in ("a", "b"))]  # fmt: skip
        self._direct = [k for k in self._links if all(tree.devices[k[e]]["kind"] == "gpu" for e in ("a", "b"))]
        self._slots: dict[str, list[str]] = {}

    @staticmethod
    def room(tree: _Tree, rows: list[list[Box]]) -> float:
        """Height of the space between two rows that their NVLinks need."""
        fabric = _Fabric(tree, Layout({b.id: b for row in rows for b in row}), [0.0, -1.0])
        switches = sum(d["kind"] == "nvswitch" for d in tree.devices.values())
        row_of = {b.id: i for i, row in enumerate(rows) for b in row}
        within: list[list[dict[str, Any]]] = [[], []]
        for link in fabric._direct:
            if row_of[link["a"]] == row_of[link["b"]]:
                within[row_of[link["a"]]].append(link)
        lanes = sum(len(fabric._lanes(links)) for links in within)
        crossing = 0.55 if any(row_of[k["a"]] != row_of[k["b"]] for k in fabric._direct) else 0.0
        return max(0.7, (lanes + 1) * _LANE + crossing + switches * (_SWITCH_BAR + 0.5) + (0.5 if switches > 1 else 0))

    def draw(self) -> None:
        self._draw_switches()
        rows = [[k for k in self._direct if self._row(k["a"]) == self._row(k["b"]) == r] for r in range(len(self._edges))]
        self._assign_slots()
        for row, links in enumerate(rows):
            self._draw_lanes(row, links)
        crossing = [k for k in self._direct if self._row(k["a"]) != self._row(k["b"])]
        ends = [(len(self._lanes(links)) + 0.5) * _LANE for links in rows]
        for number, link in enumerate(crossing):
            self._draw_crossing(link, number, len(crossing), ends)
        self._clear_labels([wire for wire in self._layout.wires if wire.kind == "nvlink" and wire.points])

    @staticmethod
    def _clear_labels(wires: list[Wire]) -> None:
        """Moves labels along their horizontals to where no vertical of another link crosses."""
        for wire in wires:
            if len(wire.points) != 4 or not wire.label:
                continue
            (left, _), (right, y) = sorted(wire.points[1:3])
            half = _LABEL_WIDTH / 2 if "\n" not in wire.label else 0.3
            verticals = [a[0] for o in wires if o is not wire for a, b in zip(o.points, o.points[1:], strict=False)
                         if a[0] == b[0] and min(a[1], b[1]) < y + 0.05 and max(a[1], b[1]) > y - 0.05]  # fmt: skip
            middle = (left + right) / 2
            steps = [step * sign * 0.1 for step in range(40) for sign in (1, -1)]
            places = [x for x in (middle + step for step in steps) if left + half + 0.05 < x < right - half - 0.05]
            free = (x for x in places if all(abs(x - vertical) > half + 0.04 for vertical in verticals))
            wire.label_at = (next(free, wire.label_at[0]), wire.label_at[1])

    def _row(self, gpu: str) -> int:
        box = self._layout.boxes[gpu]
        return min(range(len(self._edges)), key=lambda row: abs(box.y - self._edges[row]))

    def _away(self, row: int) -> int:
        return -1 if row == 0 else 1

    def _ends(self, link: dict[str, Any]) -> tuple[Box, Box]:
        a, b = self._layout.boxes[link["a"]], self._layout.boxes[link["b"]]
        return (a, b) if a.x <= b.x else (b, a)

    def _lanes(self, links: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """Links that can lie at one height without touching; short ones nearest to the GPUs."""
        lanes: list[list[dict[str, Any]]] = []
        length = {id(k): self._ends(k)[1].x - self._ends(k)[0].x for k in links}
        for link in sorted(links, key=lambda k: (length[id(k)], self._ends(k)[0].x)):
            left, right = self._ends(link)
            free = (lane for lane in lanes
                    if all(right.x <= self._ends(o)[0].x or left.x >= self._ends(o)[1].x for o in lane))  # fmt: skip
            lane = next(free, None)
            if lane is None:
                lanes.append(lane := [])
            lane.append(link)
        return lanes

    def _assign_slots(self) -> None:
        """Where along its edge a GPU's links leave: to the left, across, to the right; long ones innermost."""
        for gpu, box in self._layout.boxes.items():
            if box.kind != "gpu":
                continue
            others = [self._layout.boxes[k["b"] if k["a"] == gpu else k["a"]] for k in self._direct if gpu in (k["a"], k["b"])]
            here = [o for o in others if self._row(o.id) == self._row(gpu)]
            left = sorted((o for o in here if o.x < box.x), key=lambda o: -o.x)
            right = sorted((o for o in here if o.x > box.x), key=lambda o: -o.x)
            across = sorted((o for o in others if o not in here), key=lambda o: o.x)
            self._slots[gpu] = [o.id for o in [*left, *across, *right]]

    def _x(self, box: Box, other: str) -> float:
        slots = self._slots[box.id]
        return box.left + box.width * (slots.index(other) + 1) / (len(slots) + 1)

    def _draw_lanes(self, row: int, links: list[dict[str, Any]]) -> None:
        for number, lane in enumerate(self._lanes(links)):
            y = self._edges[row] + self._away(row) * (number + 1) * _LANE
            for link in lane:
                left, right = self._ends(link)
                a, b = self._x(left, right.id), self._x(right, left.id)
                points = [(a, self._edges[row]), (a, y), (b, y), (b, self._edges[row])]
                label = link_label(link)
                if b - a > _LABEL_WIDTH + 0.1:
                    label = label.replace("\n", " · ")
                self._layout.wires.append(Wire(points, "nvlink", link["count"], label=label, label_at=((a + b) / 2, y)))

    def _draw_crossing(self, link: dict[str, Any], number: int, total: int, ends: list[float]) -> None:
        upper, lower = sorted((self._layout.boxes[link["a"]], self._layout.boxes[link["b"]]), key=lambda box: -box.y)
        a, b = self._x(upper, lower.id), self._x(lower, upper.id)
        top, bottom = self._edges[0] - ends[0], self._edges[1] + ends[1]
        if abs(upper.x - lower.x) < 0.05:
            a = b = (a + b) / 2
        y = (top + bottom) / 2 if a == b else bottom + (top - bottom) * (number + 1) / (total + 1)
        points = [(a, self._edges[0]), (a, y), (b, y), (b, self._edges[1])]
        wire = Wire(points, "nvlink", link["count"], label=link_label(link), label_at=((a + b) / 2, y))
        self._layout.wires.append(wire)

    def _draw_switches(self) -> None:
        switches = [id_ for id_, d in self._tree.devices.items() if d["kind"] == "nvswitch"]
        members = {s: [self._layout.boxes[k["a"] if k["b"] == s else k["b"]] for k in self._links
                       if s in (k["a"], k["b"]) and (k["a"] if k["b"] == s else k["b"]) in self._layout.boxes]
                   for s in switches}  # fmt: skip
        for number, switch in enumerate(s for s in switches if members[s]):
            self._draw_switch(switch, members[switch], number, len(switches))
        for link in self._links:
            ends = [self._layout.boxes.get(link[end]) for end in ("a", "b")]
            if all(box is not None and box.kind == "nvswitch" for box in ends):
                self._draw_trunk(link, [box for box in ends if box is not None])

    def _draw_switch(self, switch: str, gpus: list[Box], number: int, total: int) -> None:
        rows = {self._row(box.id) for box in gpus}
        lanes = len(self._lanes([k for k in self._direct]))
        first = min(rows)
        if len(rows) == 2:
            y = sum(self._edges) / 2
        else:
            y = self._edges[first] + self._away(first) * (0.62 + _SWITCH_BAR / 2 + lanes * _LANE)
        if len(self._edges) == 1 and any(abs(b.y - y) < 0.1 and b.left < max(g.right for g in gpus)
                                         and b.right > min(g.left for g in gpus)
                                         for b in self._layout.boxes.values()):  # fmt: skip
            y += self._away(first) * number * (_SWITCH_BAR + 0.4)
        left, right = min(b.left for b in gpus), max(b.right for b in gpus)
        device = self._tree.devices[switch]
        links = [k for k in self._links if switch in (k["a"], k["b"])
                 and any(g.id in (k["a"], k["b"]) for g in gpus)]  # fmt: skip
        labels = {link_label(k) for k in links}
        lines = device_lines(device, self._tree.links, self._tree.devices)
        if len(labels) == 1:
            words = "each GPU " + next(iter(labels)).replace("\n", " · ")
            lines = [lines[0], words]
        self._layout.boxes[switch] = Box(switch, "nvswitch", (left + right) / 2, y, max(right - left, 2.6), _SWITCH_BAR, lines)
        for link in links:
            box = next(g for g in gpus if g.id in (link["a"], link["b"]))
            row = self._row(box.id)
            x = box.x + (number - (total - 1) / 2) * 0.25
            end = y - self._away(row) * _SWITCH_BAR / 2
            wire = Wire([(x, self._edges[row]), (x, end)], "nvlink", link["count"])
            if len(labels) > 1:
                wire.label, wire.label_at = link_label(link), (x, (self._edges[row] + end) / 2)
            self._layout.wires.append(wire)

    def _draw_trunk(self, link: dict[str, Any], ends: list[Box]) -> None:
        a, b = sorted(ends, key=lambda box: (box.x, -box.y))
        if abs(a.y - b.y) < 0.1:
            points, at = [(a.right, a.y), (b.left, b.y)], ((a.right + b.left) / 2, a.y)
        else:
            upper, lower = sorted(ends, key=lambda box: -box.y)
            x = (max(a.left, b.left) + min(a.right, b.right)) / 2
            points = [(x, upper.y - upper.height / 2), (x, lower.y + lower.height / 2)]
            at = (x, (upper.y + lower.y) / 2)
        self._layout.wires.append(Wire(points, "nvlink", link["count"], label=link_label(link), label_at=at))
