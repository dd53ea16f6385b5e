"""The machines that come with the package, as read by the core."""

from __future__ import annotations

import json

import pytest

from waywiser import _core
from waywiser.topology import load_topology, machine_names

PUBLISHED = ["dgx-1v", "dgx-2", "dgx-a100", "dgx-h100", "hse-a", "hse-c", "hse-e", "lassen", "remote-a10", "remote-t4"]

# NVLinks between the GPUs of a DGX-1 with V100, as published; 0: only PCIe.
DGX_1V = [
    [0, 1, 1, 2, 2, 0, 0, 0],
    [1, 0, 2, 1, 0, 2, 0, 0],
    [1, 2, 0, 2, 0, 0, 1, 0],
    [2, 1, 2, 0, 0, 0, 0, 1],
    [2, 0, 0, 0, 0, 1, 1, 2],
    [0, 2, 0, 0, 1, 0, 2, 1],
    [0, 0, 1, 0, 1, 2, 0, 2],
    [0, 0, 0, 1, 2, 1, 2, 0],
]


def test_every_published_machine_is_there() -> None:
    assert set(PUBLISHED) <= set(machine_names())


@pytest.mark.parametrize("name", machine_names())
def test_a_machine_file_is_complete(name: str) -> None:
    machine = load_topology(name)
    assert machine.name == name
    assert machine.kind in ("published", "recorded")
    assert machine.source and machine.notes
    for link in machine.links:
        assert link.source, f"{link.a} - {link.b}"
        assert link.nominal is None or link.achievable <= link.nominal
    for a in machine.places():
        for b in machine.places():
            assert machine.route(a, b).limit_source
    assert json.loads(machine.to_json())["fingerprint"] == machine.fingerprint


@pytest.mark.parametrize("name", machine_names())
def test_a_machine_file_is_what_the_core_writes(name: str) -> None:
    from importlib import resources

    text = resources.files("waywiser").joinpath("machines").joinpath(f"{name}.json").read_text(encoding="utf-8")
    assert text == load_topology(name).to_json() + "\n"


def test_the_mesh_of_dgx_1v_is_the_published_one() -> None:
    machine = load_topology("dgx-1v")
    for i, row in enumerate(DGX_1V):
        for j, count in enumerate(row):
            words = machine.relation(f"gpu{i}", f"gpu{j}")
            assert words == ("X" if i == j else f"NV{count}" if count else _without_nvlink(i, j))


def _without_nvlink(i: int, j: int) -> str:
    return "SYS" if i // 4 != j // 4 else "PIX" if i // 2 == j // 2 else "PHB"


@pytest.mark.parametrize(
    ("name", "a", "b", "words"),
    [
        ("hse-a", "gpu0", "gpu3", "NV2"),
        ("hse-a", "gpu0", "nic0", "PHB"),
        ("hse-c", "gpu0", "nic0", "PHB"),
        ("hse-e", "gpu0", "gpu7", "NV12"),
        ("hse-e", "gpu0", "nic0", "PIX"),
        ("dgx-2", "gpu0", "gpu15", "NV6"),
        ("dgx-2", "gpu2", "nic1", "PIX"),
        ("dgx-a100", "gpu7", "nic7", "PIX"),
        ("lassen", "gpu0", "gpu1", "NV3"),
        ("lassen", "gpu0", "gpu2", "SYS"),
        ("remote-t4", "gpu0", "nic0", "PHB"),
        ("recorded-4xh200", "gpu0", "gpu3", "NV18"),
    ],
)
def test_relations(name: str, a: str, b: str, words: str) -> None:
    assert load_topology(name).relation(a, b) == words
    assert load_topology(name).relation(b, a) == words


@pytest.mark.parametrize(
    ("name", "a", "b", "limit"),
    [
        ("dgx-1v", "gpu0", "gpu3", 50e9),
        ("dgx-1v", "gpu0", "gpu1", 25e9),
        ("dgx-1v", "gpu0", "host0", 15.75e9),
        ("dgx-1v", "gpu0", "gpu7", 15.75e9),
        ("lassen", "gpu0", "host0", 75e9),
        ("lassen", "gpu0", "gpu2", 32e9),
        ("hse-e", "host0", "gpu0", 31.5e9),
        ("recorded-4xh200", "gpu0", "gpu1", 18 * 26.562e9),
        ("dgx-2", "gpu0", "gpu15", 150e9),
    ],
)
def test_the_limit_of_a_route_is_its_slowest_hop(name: str, a: str, b: str, limit: float) -> None:
    assert load_topology(name).route(a, b).limit == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize("count", [2, 4])
def test_place_on_dgx_1v_gives_no_pair_without_nvlink(count: int) -> None:
    placement = load_topology("dgx-1v").place(count)
    assert placement.pairs_without_nvlink == 0
    indexes = [gpu.index for gpu in placement.gpus]
    assert all(DGX_1V[i][j] for i in indexes for j in indexes if i != j)


def test_place_prefers_the_fast_pair() -> None:
    placement = load_topology("dgx-1v").place(2)
    assert placement.cuda_visible_devices == "0,3"
    assert placement.slowest_pair == 50e9


def test_peer_access_of_dgx_1v_needs_nvlink_between_the_packages() -> None:
    machine = load_topology("dgx-1v")
    assert machine.why_no_peer_access("gpu0", "gpu4") is None
    assert (
        machine.why_no_peer_access("gpu0", "gpu5") == "no peer access between gpu0 and gpu5: different root complexes"
    )


def test_pair_classes_of_a_symmetric_machine_are_few() -> None:
    names = [group.name for group in load_topology("recorded-4xh200").pair_classes()]
    assert names == ["host>gpu PHB", "gpu>host PHB", "gpu>gpu NV18"]
    groups = load_topology("dgx-1v").pair_classes()
    assert sum(len(group.members) for group in groups) == 10 * 9
    assert groups[0].members[0] == ("host0", "host1")


def test_this_machine_can_be_discovered() -> None:
    machine = _core.discover()
    assert "host0" in machine.places()
    assert _core.Topology.from_json(machine.to_json()).fingerprint == machine.fingerprint


def test_a_missing_nvml_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_LIBNVML", "/nowhere/libnvidia-ml.so.1")
    notes = _core.discover().notes
    assert any(note.startswith("NVML cannot be opened: /nowhere/libnvidia-ml.so.1") for note in notes)
