"""The bindings of measure and policy, on the memory of this host."""

from __future__ import annotations

import json
from typing import Any

import pytest

from waywiser import _core

OPTIONS = {
    "backend": "host",
    "quick": True,
    "budget_seconds": 2.0,
    "max_bytes": 65536,
    "processes": [1],
    "operations": ["latency"],
}


@pytest.fixture(scope="module")
def topology() -> Any:
    return _core.discover()


@pytest.fixture(scope="module")
def profile(topology: Any) -> str:
    return str(_core.measure(topology, json.dumps(OPTIONS), None, None))


def test_profile_plan_chooser_and_explanation_agree(profile: str) -> None:
    value = json.loads(profile)
    assert value["schema"] == "waywiser.profile"
    assert value["backend"] == "host" and not value["simulated"]
    assert all(point["verified"] for series in value["series"] for point in series["points"])
    plan = _core.choose(profile, "{}")
    label = _core.Chooser(plan).choose("host0", "host0", 1, "latency", 4096)
    assert label is not None and label.startswith("host_copy(")
    answer = json.loads(_core.explain(profile, plan, "host0", "host0", 1, "latency", 4096))
    assert answer["chosen"] == label
    assert _core.Chooser(plan).choose("gpu0", "host0", 1, "latency", 4096) is None


def test_verification_uses_other_sizes(topology: Any, profile: str) -> None:
    plan = _core.choose(profile, "{}")
    answer = json.loads(_core.verify_plan(topology, profile, plan, json.dumps(OPTIONS), None))
    measured = {point["bytes"] for series in json.loads(profile)["series"] for point in series["points"]}
    assert answer["cases"] == len(answer["rows"]) > 0
    assert not measured & {row["bytes"] for row in answer["rows"]}


def test_stopping_returns_what_there_is(topology: Any) -> None:
    value = json.loads(_core.measure(topology, json.dumps(OPTIONS), None, lambda _: False))
    assert value["state"]["interrupted"] is True


def test_ctrl_c_in_the_progress_function_is_a_stop(topology: Any) -> None:
    def progress(_: str) -> bool:
        raise KeyboardInterrupt

    assert json.loads(_core.measure(topology, json.dumps(OPTIONS), None, progress))["state"]["interrupted"] is True


def test_errors_of_the_progress_function_come_back(topology: Any) -> None:
    def progress(text: str) -> bool:
        assert json.loads(text)["total"] > 0
        raise ValueError("from the progress function")

    with pytest.raises(ValueError, match="from the progress function"):
        _core.measure(topology, json.dumps(OPTIONS), None, progress)


def test_a_finished_profile_is_not_measured_again(topology: Any, profile: str) -> None:
    again = json.loads(_core.measure(topology, json.dumps(OPTIONS), profile, None))
    assert again["state"]["resumed"] is True
    before = {(json.dumps(s["path"]), p["bytes"]): p for s in json.loads(profile)["series"] for p in s["points"]}
    after = {(json.dumps(s["path"]), p["bytes"]): p for s in again["series"] for p in s["points"]}
    calm = {key: point for key, point in before.items() if 2 * point.get("disturbed", 0) < point["samples"]}
    assert all(after[key] == point for key, point in calm.items())


@pytest.mark.parametrize(
    "options",
    [
        "[]",
        "{",
        '{"backend": "tpu"}',
        '{"budget_seconds": 0}',
        '{"processes": [3]}',
        '{"operations": ["teleport"]}',
        '{"places": ["gpux"]}',
        '{"max_bytes": 0}',
        '{"places": ["gpu77"]}',
    ],
)
def test_bad_options_are_one_line(topology: Any, options: str) -> None:
    with pytest.raises(_core.Error) as caught:
        _core.measure(topology, options, None, None)
    assert caught.value.kind == "invalid input"
    assert "\n" not in str(caught.value)
