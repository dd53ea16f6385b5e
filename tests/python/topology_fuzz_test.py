"""Whatever a file holds, reading it gives a machine or one line, and never anything else."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology import load_topology, read_topology
from waywiser.topology.hwloc_writer import write_hwloc
from waywiser.topology.load import read_topology_file
from waywiser.topology.matrix import write_matrix
from waywiser.topology.nccl_writer import write_nccl

_MACHINES = [load_topology(name) for name in ("hse-a", "lassen", "remote-a10", "dgx-1v")]
_TEXTS = [text for m in _MACHINES for text in (m.to_json(), write_nccl(m), write_hwloc(m), write_matrix(m))]
_quick = settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def _machine_or_one_line(text: str) -> None:
    try:
        machine = read_topology(text, "file")
    except InputError as error:
        assert "\n" not in str(error)
        return
    except _core.Error as error:
        assert error.kind == "invalid input"
        assert "\n" not in str(error)
        return
    assert _core.Topology.from_json(machine.to_json()).fingerprint == machine.fingerprint
    machine.matrix()


@_quick
@given(st.text())
def test_any_text(text: str) -> None:
    _machine_or_one_line(text)


@_quick
@given(st.sampled_from(_TEXTS), st.data())
def test_truncated_files(text: str, data: st.DataObject) -> None:
    _machine_or_one_line(text[: data.draw(st.integers(0, len(text)))])


@_quick
@given(st.sampled_from(_TEXTS), st.data())
def test_files_with_changes(text: str, data: st.DataObject) -> None:
    piece = st.sampled_from(
        ['"', "<", ">", "{", "}", "0", "-1", "999999999999", "gpu0", "null", "NV9", "\t", "é", "\0"]
    )
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 6)))
        text = text[:start] + data.draw(piece) + text[end:]
    _machine_or_one_line(text)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@_quick
@given(st.sampled_from(_MACHINES), st.data(), _VALUES)
def test_json_with_another_value_somewhere(machine: _core.Topology, data: st.DataObject, value: object) -> None:
    tree = json.loads(machine.to_json())
    group = data.draw(st.sampled_from(["devices", "links"]))
    entry = data.draw(st.sampled_from(tree[group]))
    entry[data.draw(st.sampled_from([*entry, "attributes", "a", "id"]))] = value
    if data.draw(st.booleans()):
        tree[data.draw(st.sampled_from(list(tree)))] = value
    _machine_or_one_line(json.dumps(tree))


@_quick
@given(st.binary(max_size=400))
def test_any_bytes_in_a_file(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "topology-fuzz"
    path.write_bytes(content)
    try:
        read_topology_file(path)
    except (InputError, _core.Error) as error:
        assert "\n" not in str(error)


@_quick
@given(st.text("packcorenuma:0123456789[]() ", min_size=3, max_size=40))
def test_any_description(text: str) -> None:
    try:
        load_topology(text)
    except (InputError, _core.Error) as error:
        assert "\n" not in str(error)
