"""Places NVLinks and NVSwitches in the drawing of a machine."""

from __future__ import annotations

from typing import Any

from waywiser.report.drawing_parts import LABEL_WIDTH, Box, Layout, Tree, Wire
from waywiser.report.drawing_text import device_lines, link_label

_LANE, _SWITCH_BAR = 0.3, 0.46
_KINDS = ("nvlink", "xgmi")


class Fabric:
    """NVLinks between GPUs and to NVSwitches, beside one row of GPUs or between two."""

    def __init__(self, tree: Tree, layout: Layout, edges: list[float]) -> None:
        self._tree, self._layout, self._edges = tree, layout, edges
        fabric = ("gpu", "nvswitch")
        self._links = [
            k
            for k in tree.links
            if k["kind"] in _KINDS and all(tree.devices[k[end]]["kind"] in fabric for end in ("a", "b"))
        ]
        self._direct = [k for k in self._links if all(tree.devices[k[e]]["kind"] == "gpu" for e in ("a", "b"))]
        self._slots: dict[str, list[str]] = {}

    @staticmethod
    def room(tree: Tree, rows: list[list[Box]]) -> float:
        """Height that NVLinks need between two rows."""
        fabric = Fabric(tree, Layout({b.id: b for row in rows for b in row}), [0.0, -1.0])
        switches = len([d for d in tree.devices.values() if d["kind"] == "nvswitch"])
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
        rows = [
            [k for k in self._direct if self._row(k["a"]) == self._row(k["b"]) == r] for r in range(len(self._edges))
        ]
        self._assign_slots()
        for row, links in enumerate(rows):
            self._draw_lanes(row, links)
        crossing = [k for k in self._direct if self._row(k["a"]) != self._row(k["b"])]
        ends = [(len(self._lanes(links)) + 0.5) * _LANE for links in rows]
        for number, link in enumerate(crossing):
            self._draw_crossing(link, number, len(crossing), ends)
        self._clear_labels([wire for wire in self._layout.wires if wire.kind in _KINDS and wire.points])

    @staticmethod
    def _clear_labels(wires: list[Wire]) -> None:
        """Moves labels along their horizontal lines so that no vertical line of another link crosses them."""
        for wire in wires:
            if len(wire.points) != 4 or not wire.label:
                continue
            (left, _), (right, y) = sorted(wire.points[1:3])
            half = 0.47 if "\n" not in wire.label else 0.3
            verticals = [
                a[0]
                for o in wires
                if o is not wire
                for a, b in zip(o.points, o.points[1:], strict=False)
                if a[0] == b[0] and min(a[1], b[1]) < y + 0.05 and max(a[1], b[1]) > y - 0.05
            ]
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
        """Groups of links that can share a height without touching; short ones nearest to the GPUs."""
        lanes: list[list[dict[str, Any]]] = []
        length = {id(k): self._ends(k)[1].x - self._ends(k)[0].x for k in links}
        for link in sorted(links, key=lambda k: (length[id(k)], self._ends(k)[0].x)):
            left, right = self._ends(link)
            free = (
                lane
                for lane in lanes
                if all(right.x <= self._ends(o)[0].x or left.x >= self._ends(o)[1].x for o in lane)
            )
            lane = next(free, None)
            if lane is None:
                lanes.append(lane := [])
            lane.append(link)
        return lanes

    def _assign_slots(self) -> None:
        """The order of links along a GPU's edge: to the left, across, to the right; long ones innermost."""
        for gpu, box in self._layout.boxes.items():
            if box.kind != "gpu":
                continue
            others = [
                self._layout.boxes[k["b"] if k["a"] == gpu else k["a"]] for k in self._direct if gpu in (k["a"], k["b"])
            ]
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
                if b - a > LABEL_WIDTH + 0.1:
                    label = label.replace("\n", " · ")
                self._layout.wires.append(
                    Wire(points, link["kind"], link["count"], label=label, label_at=((a + b) / 2, y))
                )

    def _draw_crossing(self, link: dict[str, Any], number: int, total: int, ends: list[float]) -> None:
        upper, lower = sorted((self._layout.boxes[link["a"]], self._layout.boxes[link["b"]]), key=lambda box: -box.y)
        a, b = self._x(upper, lower.id), self._x(lower, upper.id)
        top, bottom = self._edges[0] - ends[0], self._edges[1] + ends[1]
        if abs(upper.x - lower.x) < 0.05:
            a = b = (a + b) / 2
        y = (top + bottom) / 2 if a == b else bottom + (top - bottom) * (number + 1) / (total + 1)
        points = [(a, self._edges[0]), (a, y), (b, y), (b, self._edges[1])]
        wire = Wire(points, link["kind"], link["count"], label=link_label(link), label_at=((a + b) / 2, y))
        self._layout.wires.append(wire)

    def _draw_switches(self) -> None:
        switches = [id_ for id_, d in self._tree.devices.items() if d["kind"] == "nvswitch"]
        members = {
            s: [
                self._layout.boxes[k["a"] if k["b"] == s else k["b"]]
                for k in self._links
                if s in (k["a"], k["b"]) and (k["a"] if k["b"] == s else k["b"]) in self._layout.boxes
            ]
            for s in switches
        }
        for number, switch in enumerate(s for s in switches if members[s]):
            self._draw_switch(switch, members[switch], number, len(switches))
        for link in self._links:
            ends = [self._layout.boxes.get(link[end]) for end in ("a", "b")]
            if all(box is not None and box.kind == "nvswitch" for box in ends):
                self._draw_trunk(link, [box for box in ends if box is not None])

    def _draw_switch(self, switch: str, gpus: list[Box], number: int, total: int) -> None:
        rows = {self._row(box.id) for box in gpus}
        lanes = len(self._lanes(list(self._direct)))
        first = min(rows)
        if len(rows) == 2:
            y = sum(self._edges) / 2
        else:
            y = self._edges[first] + self._away(first) * (0.62 + _SWITCH_BAR / 2 + lanes * _LANE)
        if len(self._edges) == 1 and any(
            abs(b.y - y) < 0.1 and b.left < max(g.right for g in gpus) and b.right > min(g.left for g in gpus)
            for b in self._layout.boxes.values()
        ):
            y += self._away(first) * number * (_SWITCH_BAR + 0.4)
        left, right = min(b.left for b in gpus), max(b.right for b in gpus)
        device = self._tree.devices[switch]
        links = [k for k in self._links if switch in (k["a"], k["b"]) and any(g.id in (k["a"], k["b"]) for g in gpus)]
        labels = {link_label(k) for k in links}
        lines = device_lines(device, self._tree.links, self._tree.devices)
        if len(labels) == 1:
            words = "each GPU " + next(iter(labels)).replace("\n", " · ")
            lines = [lines[0], words]
        self._layout.boxes[switch] = Box(
            switch, "nvswitch", (left + right) / 2, y, max(right - left, 2.6), _SWITCH_BAR, lines
        )
        for link in links:
            box = next(g for g in gpus if g.id in (link["a"], link["b"]))
            row = self._row(box.id)
            x = box.x + (number - (total - 1) / 2) * 0.25
            end = y - self._away(row) * _SWITCH_BAR / 2
            wire = Wire([(x, self._edges[row]), (x, end)], link["kind"], link["count"])
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
        self._layout.wires.append(Wire(points, link["kind"], link["count"], label=link_label(link), label_at=at))
