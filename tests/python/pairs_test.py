"""One slowed link between GPUs that are alike: the page shows it, `place` and binding avoid it, both name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import made_up
import pytest

from waywiser import _core, cli
from waywiser.pair_rates import pair_rates
from waywiser.plan import read_plan
from waywiser.report.matrices import matrices
from waywiser.report.sections import heat_map
from waywiser.report.summary import to_do
from waywiser.results import Results
from waywiser.run.rank_setup import setup_for

SLOW = ("gpu1", "gpu0")
GPUS = [f"gpu{number}" for number in range(4)]
PAIRS = [(a, b) for a in GPUS for b in GPUS if a != b]


def topology() -> _core.Topology:
    return _core.Topology.from_json(json.dumps(made_up.topology(4)))


def surveyed(slow: float = 4.0, pairs: list[tuple[str, str]] = PAIRS) -> dict[str, Any]:
    """The made-up profile with a survey of `pairs`, in which one takes `slow` times as long."""
    value = made_up.profile(4) | {"fingerprint": topology().fingerprint}
    value["survey"] = []
    for number, (a, b) in enumerate(pairs):
        for operation, size, seconds in (("streaming", 64 << 20, 1.7e-4), ("latency", 8, 6e-6)):
            took = seconds * (1 + 0.01 * (number % 3)) * (slow if (a, b) == SLOW else 1)
            times = dict.fromkeys(("seconds", "low", "high", "p50", "p99"), took)
            point = {"bytes": size, **times, "samples": 5, "cpu_seconds": 0.0, "verified": True}
            path = {"mechanism": "copy_engine", "source": a, "destination": b, "processes": 1, "parameters": {}}
            series = {"path": path, "operation": operation, "points": [point], "limit": 478e9, "limit_source": "x"}
            value["survey"].append(series)
    return value


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "topology.json").write_text(json.dumps(made_up.topology(4)))
    (tmp_path / "profile.json").write_text(json.dumps(surveyed()))
    return tmp_path


def test_place_avoids_the_slow_link_and_names_it(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["place", "--from", str(results / "topology.json"), "--results", str(results), "--gpus"]
    assert cli.run([*command, "2"]) == 0
    out = capsys.readouterr().out
    assert "CUDA_VISIBLE_DEVICES=0,2" in out
    assert "gpu0 - gpu1 is odd: 98.7 GB/s measured, pairs like it 3" in out and "avoided" in out
    assert cli.run([*command, "4", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(one["a"], one["b"]) for one in answer["odd_pairs"]] == [("gpu0", "gpu1")]
    assert answer["slowest_pair"] == answer["odd_pairs"][0]["rate"] < 1e11
    command[4] = str(results / "nothing")  # without measurements: by the links, which are alike
    assert cli.run([*command, "2"]) == 0
    out = capsys.readouterr().out
    assert "CUDA_VISIBLE_DEVICES=0,1" in out and "odd" not in out


def test_measurements_of_another_machine_do_not_count(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "profile.json").write_text(json.dumps(surveyed() | {"fingerprint": "another"}))
    assert cli.run(["place", "--from", str(results / "topology.json"), "--results", str(results), "--gpus", "2"]) == 0
    assert "CUDA_VISIBLE_DEVICES=0,1" in capsys.readouterr().out


def test_what_is_not_a_measurement_does_not_count() -> None:
    assert pair_rates(made_up.read(surveyed()))[SLOW] < 1e11
    for label in ({"simulated": True}, {"backend": "virtual_gpu"}):
        assert pair_rates(made_up.read(surveyed() | label)) == {}


def test_ranks_are_bound_to_gpus_that_avoid_it() -> None:
    rates = pair_rates(made_up.read(surveyed()))
    setups = [setup_for(topology(), None, rank, 2, {}, set(range(8)), measured=rates) for rank in range(2)]
    assert [one.gpu for one in setups] == ["gpu0", "gpu2"]
    assert all(one.variables["CUDA_VISIBLE_DEVICES"] == "0,2" for one in setups)  # all see the same: CUDA IPC works
    assert any("gpu0 - gpu1 is odd: 98.7 GB/s measured, pairs like it 3" in line for line in setups[0].why)
    assert not set(setups[0].cpus) & set(setups[1].cpus)
    for given, ranks in (({}, 4), ({"CUDA_VISIBLE_DEVICES": "0,1"}, 2), ({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, 2)):
        setup = setup_for(topology(), None, 1, ranks, given, set(range(8)), measured=rates)
        assert setup.gpu == "gpu1" and "CUDA_VISIBLE_DEVICES" not in setup.variables
    usual = setup_for(topology(), None, 1, 2, {}, set(range(8)), measured=pair_rates(made_up.read(surveyed(1.0))))
    assert usual.gpu == "gpu1" and "CUDA_VISIBLE_DEVICES" not in usual.variables


def test_the_page_shows_each_pair_by_its_own_figure() -> None:
    value = surveyed()
    found = {
        one.title: one
        for one in matrices(made_up.read(value), read_plan(json.dumps(made_up.plan(value)).encode(), "x"), 1)
    }
    one_way = found["Bandwidth one way"]
    gpus = {pair: cell for pair, cell in one_way.cells.items() if set(pair) <= set(GPUS)}
    assert len(gpus) == 12 and all(cell.measured for cell in gpus.values())
    assert [pair for pair, cell in gpus.items() if cell.odd] == [SLOW]
    assert one_way.odd()[0].startswith("gpu1 to gpu0 is odd: 98.7 GB/s, pairs like it 3")
    assert "64 MiB" in one_way.about
    latency = found["Latency"]
    assert latency.cells[SLOW].odd and latency.cells["gpu0", "gpu1"].measured
    both = found["Bandwidth both ways"]  # was not surveyed
    assert both.cells["gpu0", "gpu1"].measured and not both.cells["gpu2", "gpu3"].measured
    page = str(heat_map(both))
    assert "≈" in page and "not measured: gpu0 to gpu1 stands for it" in page and 'class="legend"' in page
    page = str(heat_map(one_way))
    assert "gpu1 to gpu0 is odd" in page and "odd" in page and "; measured; pairs like it" in page


def test_pairs_that_were_not_reached_stand_for_the_others() -> None:
    few = [pair for pair in PAIRS if pair != ("gpu2", "gpu3")]
    one_way = matrices(made_up.read(surveyed(pairs=few)), None, 1)[0]
    cell = one_way.cells["gpu2", "gpu3"]
    assert not cell.measured and cell.of in few and cell.of != SLOW
    assert one_way.copies == 1 + 6  # and host to GPU, GPU to host: one of four was measured


def test_the_end_of_tune_names_it(results: Path) -> None:
    first, odd, command, *_ = str(to_do(Results(results))).splitlines()
    assert (first, command) == ("what to do:", f"    waywiser place --gpus 2 --results {results}")
    assert odd.startswith("- slow or broken: gpu1 to gpu0 is odd: ")
