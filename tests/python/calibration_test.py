"""`waywiser calibrate`, and the calibrated costs in the package."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from waywiser.cli import run
from waywiser.errors import InputError
from waywiser.results import recorded
from waywiser.simulator.calibration_errors import by_kind, errors, straight_lines
from waywiser.simulator.costs import calibrated, read_costs
from waywiser.simulator.fit import FITTED, fit
from waywiser.simulator.measured import Measured, key_of
from waywiser.simulator.ratio_curves import curves, ratio_at
from waywiser.topology import load_topology

MACHINE = "recorded-4xh200"


def some(mechanism: str, pair: str) -> Measured:
    profile = recorded(MACHINE).needed_profile()
    chosen = tuple(s for s in profile.series if s.path.mechanism == mechanism and s.path.pair_text == pair)
    return Measured(load_topology(MACHINE), dataclasses.replace(profile, series=chosen))


def test_fitting_half_of_the_sizes_helps_for_the_other_half() -> None:
    measured = some("copy_engine", "gpu0>gpu1")
    start = dict.fromkeys(FITTED["copy_engine"], 2e-06) | {"pcie.share": 0.5, "copy.peer_rate": 0}
    bad = {"copy.issue_peer": 2e-5, "copy.hold_peer": 2e-5}
    values = fit(measured, start | bad, 0, lambda *_: None)
    before = errors(measured, measured.predict(bad), 1)
    after = errors(measured, measured.predict(values), 1)
    assert after["median"] < 0.15 < before["median"]


def test_curves_take_what_the_costs_leave() -> None:
    measured = some("sm_copy", "gpu0>gpu1")
    predicted = measured.predict({"kernel.issue": 1e-6})
    kept = curves(measured, predicted, 0)
    left = errors(measured, predicted, 1)["median"]
    assert errors(measured, predicted, 1, kept)["median"] < min(0.1, left)


def test_ratio_at() -> None:
    curve = [(16, 2.0), (256, 1.0)]
    found = [ratio_at(curve, size) for size in (1, 16, 64, 256, 1 << 20)]
    assert found == pytest.approx([2, 2, 2**0.5, 1, 1])


def test_a_point_that_was_disturbed_does_not_bend_its_curve() -> None:
    ratios = [(1, 1.0), (2, 1.1), (4, 9.0), (8, 1.3), (16, 1.2)]
    measured = some("courier", "host0>gpu0")
    series = measured.series[0]
    points = tuple(dataclasses.replace(series.points[i], bytes=s, seconds=r) for i, (s, r) in enumerate(ratios))
    measured.series = [dataclasses.replace(series, points=points)]
    key = key_of(series)
    found = curves(measured, {key: {size: 1.0 for size, _ in ratios}}, None)
    assert found[key] == [(1, 1.0), (2, 1.1), (4, 1.3), (8, 1.3), (16, 1.2)]


def test_errors_are_told_by_kind_of_path() -> None:
    measured = some("sm_copy", "gpu0>gpu1")
    predicted = measured.predict({})
    kinds = by_kind(measured, predicted, 1, curves(measured, predicted, 0))
    assert list(kinds) == ["sm_copy gpu0>gpu1"]
    assert kinds["sm_copy gpu0>gpu1"]["points"] == errors(measured, predicted, 1)["points"]
    assert straight_lines(measured, 1)["points"] == kinds["sm_copy gpu0>gpu1"]["points"]


def test_recorded_machine_is_predicted(tmp_path: Path) -> None:
    file = calibrated(MACHINE)
    assert file["fingerprint"] == load_topology(MACHINE).fingerprint
    tested = file["errors"]["costs and curves, on the other sizes"]
    assert tested["median"] < 0.1 and tested["p90"] < 0.25 and tested["points"] > 3000
    folder = tmp_path / "r"
    arguments = ["--machine", MACHINE, "--results", str(folder), "--operations", "latency", "--quick"]
    assert run(["measure", *arguments]) == 0
    simulated = json.loads((folder / "profile.json").read_text())
    assert simulated["simulated"] is True
    series_of = recorded(MACHINE).needed_profile().series
    wanted = [s for s in series_of if s.path.pair_text == "gpu0>gpu1" and s.operation == "latency"]
    measured = {s.path.label: s for s in wanted}
    for series in simulated["series"]:
        path = series["path"]
        if (path["source"], path["destination"], path["mechanism"]) == ("gpu0", "gpu1", "copy_engine"):
            real = {point.bytes: point.seconds for point in measured["copy_engine"].points}
            for point in series["points"]:
                if path["processes"] == 1 and point["bytes"] in real:
                    assert point["seconds"] == pytest.approx(real[point["bytes"]], rel=0.25)


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "not valid JSON"), ('{"schema": "waywiser.costs", "version": 1}', "'values' must be an object")],
)
def test_bad_costs(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "costs.json"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        read_costs(file)


def test_calibrate_wants_measurements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "r")
    assert run(["measure", "--machine", "remote-t4", "--results", folder, "--operations", "latency", "--quick"]) == 0
    assert run(["calibrate", folder]) == 2
    assert "it cannot be used for calibration" in capsys.readouterr().err
