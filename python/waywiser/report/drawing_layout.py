"""Lays out the drawing of a machine. A pure function from a topology to boxes and wires; one unit is one inch.

Packages stand at the outside with their memories, below them root complexes, PCIe switches, then GPUs and NICs in a
row. Big machines of two packages have the second one upside down, so that the GPUs face each other and NVLink runs
between the two rows.
"""

from __future__ import annotations

from typing import Any

from waywiser.report.drawing_fabric import Fabric
from waywiser.report.drawing_parts import Box, Layout, Tree, Wire
from waywiser.report.drawing_text import device_lines, link_label, link_warning

_LEAF = {"gpu": 1.0, "nic": 0.86, "nvme": 0.86}
_NARROW_LEAF, _NARROW_FROM = 0.8, 11  # width, for rows of at least this many endpoints
_LEAF_HEIGHT = 0.62
_NODE_HEIGHT = {"switch": 0.34, "bridge": 0.34, "root": 0.3}
_NODE_WIDTH = {"switch": 1.15, "bridge": 1.0, "root": 1.25}
_GAP, _GROUP_GAP, _PACKAGE_GAP = 0.14, 0.16, 1.25
_PACKAGE_HEIGHT = 1.2
_LEVEL, _LEAF_DROP = 0.78, 0.82
_MIRROR_FROM = 9  # endpoints, with two packages


class _Row:
    """Packages side by side; `down` is -1 when their devices are below them, +1 when above."""

    def __init__(self, tree: Tree, packages: list[str], layout: Layout, top: float, down: int, levels: int) -> None:
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
        if used < least:  # the package is wider than its devices: centre them below it
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
            warning = link_warning(link)
            if warning and len(children) > 1:
                points = points[1:]  # healthy links share the trunk
            wire = Wire(points, link["kind"], link["count"], warning)
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
    """Places all parts of a topology, given in its JSON form."""
    tree = Tree(topology)
    layout = Layout()
    levels = max((tree.depth(package) for package in tree.packages), default=0)
    packages = [p for p in tree.packages if tree.devices[p]["kind"] == "cpu"]
    if len(packages) == 2 == len(tree.packages) and sum(map(tree.leaves, packages)) >= _MIRROR_FROM:
        _two_rows(tree, layout, levels)
    else:
        row = _Row(tree, tree.packages, layout, 0.0, -1, levels)
        Fabric(tree, layout, [row.edge]).draw()
        _sockets_side_by_side(tree, layout)
    return layout


def _two_rows(tree: Tree, layout: Layout, levels: int) -> None:
    first, second = tree.packages
    top = _Row(tree, [first], layout, 0.0, -1, levels)
    probe = Layout()
    _Row(tree, [second], probe, 0.0, 1, levels)
    lanes = Fabric.room(tree, [list(layout.boxes.values()), list(probe.boxes.values())])
    depth = abs(top.edge)
    bottom = _Row(tree, [second], layout, -(2 * depth + lanes), 1, levels)
    Fabric(tree, layout, [top.edge, bottom.edge]).draw()
    for link in (k for k in tree.links if k["kind"] == "socket"):
        a, b = layout.boxes[first], layout.boxes[second]
        x = min(a.left, b.left) - 0.75
        points = [(a.left, a.y), (x, a.y), (x, b.y), (b.left, b.y)]
        at = (x, (a.y + b.y) / 2)
        layout.wires.append(Wire(points, "socket", link["count"], label=link_label(link), label_at=at))


def _sockets_side_by_side(tree: Tree, layout: Layout) -> None:
    packages = [p for p in tree.packages if tree.devices[p]["kind"] == "cpu"]
    above = 0
    for link in (k for k in tree.links if k["kind"] == "socket"):
        a, b = sorted((layout.boxes[link["a"]], layout.boxes[link["b"]]), key=lambda box: box.x)
        if packages.index(b.id) - packages.index(a.id) == 1:
            points, at = [(a.right, a.y), (b.left, b.y)], ((a.right + b.left) / 2, a.y + 0.24)
        else:
            above += 1
            y = a.y + a.height / 2 + 0.3 * above
            points, at = (
                [(a.x, a.y + a.height / 2), (a.x, y), (b.x, y), (b.x, b.y + b.height / 2)],
                ((a.x + b.x) / 2, y),
            )
        layout.wires.append(Wire(points, "socket", link["count"], label=link_label(link), label_at=at))
