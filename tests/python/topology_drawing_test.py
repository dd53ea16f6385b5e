"""The drawing of a machine: everything is in it, nothing lies on anything else."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from waywiser import _core
from waywiser.report.drawing import drawing_bytes
from waywiser.report.drawing_layout import lay_out
from waywiser.report.drawing_parts import Box
from waywiser.report.drawing_text import link_warning
from waywiser.topology import load_topology, machine_names

DRAWN = ("cpu", "host", "root", "switch", "bridge", "gpu", "nic", "nvme", "nvswitch")


def _value(machine: _core.Topology) -> dict[str, Any]:
    value = json.loads(machine.to_json())
    assert isinstance(value, dict)
    return value


def _machines() -> list[dict[str, Any]]:
    machines = [_value(load_topology(name)) for name in machine_names()]
    four = {"schema": "waywiser.topology", "version": 1, "name": "four packages", "kind": "synthetic"}
    devices = [{"id": f"cpu{i}", "kind": "cpu"} for i in range(4)]
    devices += [{"id": f"host{i}", "kind": "host", "numa": i} for i in range(4)]
    devices += [{"id": f"gpu{i}", "kind": "gpu"} for i in range(3)] + [{"id": "gpu7", "kind": "gpu"}]
    links = [{"a": f"cpu{i}", "b": f"cpu{j}", "kind": "socket"} for i, j in combinations(range(4), 2)]
    links += [{"a": f"host{i}", "b": f"cpu{i}", "kind": "memory"} for i in range(4)]
    links += [{"a": f"cpu{i}", "b": f"gpu{i}", "kind": "c2c"} for i in range(3)]
    text = json.dumps({**four, "devices": devices, "links": links})
    return [*machines, _value(_core.Topology.from_json(text)), _value(_core.discover())]


@pytest.mark.parametrize("machine", _machines(), ids=lambda machine: str(machine["name"]))
def test_every_device_is_drawn_once_and_apart_from_others(machine: dict[str, Any]) -> None:
    boxes = lay_out(machine).boxes
    assert set(boxes) == {device["id"] for device in machine["devices"] if device["kind"] in DRAWN}
    for a, b in combinations(boxes.values(), 2):
        inside = {a.kind, b.kind} == {"cpu", "host"}
        assert inside or not _overlap(a, b), f"{a.id} lies on {b.id}"


def _overlap(a: Box, b: Box) -> bool:
    across = min(a.right, b.right) - max(a.left, b.left)
    along = (a.height + b.height) / 2 - abs(a.y - b.y)
    return across > 1e-9 and along > 1e-9


@pytest.mark.parametrize("machine", _machines(), ids=lambda machine: str(machine["name"]))
def test_every_link_between_drawn_devices_has_a_wire(machine: dict[str, Any]) -> None:
    wires = [wire for wire in lay_out(machine).wires if wire.points]
    links = [link for link in machine["links"] if link["kind"] not in ("memory", "network")]
    assert len(wires) == len(links)
    assert sorted(wire.kind for wire in wires) == sorted(link["kind"] for link in links)


def test_drawings_are_the_same_each_time() -> None:
    machine = _value(load_topology("dgx-1v"))
    for form in ("svg", "png"):
        assert drawing_bytes(machine, format=form) == drawing_bytes(machine, format=form)


def test_a_link_with_half_its_lanes_is_marked() -> None:
    machine = _value(load_topology("hse-a"))
    link = next(link for link in machine["links"] if link["b"] == "gpu2")
    link["width"] = 8
    assert link_warning(link)
    marked = [wire for wire in lay_out(machine).wires if wire.warning]
    assert [wire.label for wire in marked] == ["PCIe 3 ×8 of ×16\n15.8 GB/s"]
