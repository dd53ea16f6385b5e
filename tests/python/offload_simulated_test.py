"""`waywiser bench offload --machine`: the points of the experiment with a remote GPU between two simulated nodes."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from verb_runs import Run

WORDS = ("bench", "offload", "--machine", "remote-t4", "--sizes", "400000000")
NETWORKS = ("InfiniBand", "RoCE", "IP over InfiniBand", "Ethernet")


def rows(run: Run, *words: str) -> list[dict[str, Any]]:
    code, out, err = run(*WORDS, *words, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["backend"], told["simulated"]) == ("simulated", True)
    found: list[dict[str, Any]] = told["rows"]
    return found


def test_the_findings_of_the_experiment(run: Run) -> None:
    """InfiniBand and RoCE alike, 2 to 3 times faster than TCP over InfiniBand; the pinned buffer helps."""
    whole = {row["road"]: row["whole_us"] for row in rows(run, "--times", "1")}
    assert {road.split(",")[0] for road in whole} == {"local", *NETWORKS}
    for part in ("pageable", "pinned", "direct, gdr on", "direct, gdr off"):
        assert whole[f"InfiniBand, {part}"] == pytest.approx(whole[f"RoCE, {part}"], rel=0.01)
    assert 2 <= whole["IP over InfiniBand, pageable"] / whole["InfiniBand, pageable"] <= 3
    for network in NETWORKS:
        assert whole[f"{network}, pinned"] < whole[f"{network}, pageable"]
        assert whole[f"{network}, pageable"] > whole["local, pageable"]
    assert whole["InfiniBand, direct, gdr on"] < whole["InfiniBand, pinned"]
    assert whole["Ethernet, pinned"] > whole["IP over InfiniBand, pinned"]


def test_the_points_belong_together(run: Run) -> None:
    by_times = {(row["road"], row["times"]): row for row in rows(run, "--times", "1,10")}
    for (road, times), row in by_times.items():
        parts = [row[f"client_{what}_us"] for what in ("input", "compute", "output")]
        assert row["whole_us"] == pytest.approx(sum(parts))
        for what in ("input", "compute", "output"):
            assert row[f"client_{what}_us"] >= row[f"server_{what}_us"] >= 0
        assert row["device_us"] == pytest.approx(times * by_times[road, 1]["device_us"])
        # Three accesses to 100 million numbers each, at most at the 320 GB/s of a T4.
        assert row["device_us"] >= times * 3 * 400e6 / 320e9 * 1e6


def test_forms_say_that_they_are_simulated(run: Run) -> None:
    code, out, _ = run(*WORDS, "--times", "1")
    assert code == 0 and "SIMULATED: NOT A MEASUREMENT" in out and "not known for Tesla T4" in out
    code, out, _ = run(*WORDS, "--times", "1", "--csv")
    (label,) = {row["label"] for row in csv.DictReader(io.StringIO(out))}
    assert code == 0 and label == "Simulated: not a measurement"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--remote", "10.0.0.5:7421"), "--remote is not for offload --machine"),
        (("--budget", "5"), "--budget is not for offload --machine"),
        (("-n", "2"), "is not for offload --machine"),
    ],
)
def test_bad_input_is_one_line(run: Run, words: tuple[str, ...], said: str) -> None:
    code, out, err = run(*WORDS, *words)
    assert (code, out) == (2, "") and said in err.strip().splitlines()[-1]
