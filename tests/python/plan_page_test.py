"""docs/howto-plan.md and the tables of docs/simulator.md beside recordings: the commands print what the pages show."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from quoted import cells
from verb_runs import Run

from waywiser.simulator.cluster import Cluster
from waywiser.simulator.collectives import Collective
from waywiser.topology import load_topology

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto-plan.md").read_text(encoding="utf-8")
SIMULATOR = (ROOT / "docs/simulator.md").read_text(encoding="utf-8")
LAUNCH = 6.5e-6  # kernel.issue and kernel.finish
LL_STEP = 0.6e-6  # nccl.ll_start


def plain(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("page", "lines"), [(PAGE.split("\n## 5")[0], 12), pytest.param(PAGE, 20, marks=pytest.mark.long)]
)
def test_the_commands_print_what_the_page_shows(
    page: str, lines: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed: list[str] = []
    shown = 0
    for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        if language == "text":
            at = 0
            for line in plain(text):  # in this order
                assert line in printed[at:], f"{line!r} is not among the lines after {at}"
                at += printed[at:].index(line) + 1
                shown += 1
            continue
        if language == "yaml":
            (tmp_path / text.split()[1]).write_text(text)  # "# NAME" is its first line
            continue
        printed = []
        for command in text.splitlines():
            code, out, err = run(*shlex.split(command)[1:])
            assert code == 0, err
            printed += plain(out)
    assert shown == lines


def row(name: str) -> list[float]:
    """The numbers of a row of the table beside NCCL."""
    (line,) = re.findall(rf"^\| {name} \|.*$", SIMULATOR, re.MULTILINE)
    return [float(cell.removesuffix(" %")) for cell in cells(line)[1:]]


def test_nccl_beside_a_recording() -> None:
    told = json.loads((ROOT / "benchmarks/results/group-4xh200.json").read_text())["rows"]
    ways = {"operation": "all_reduce", "how": "graph", "by": "nccl"}
    recorded = {one["bytes"]: one["us"] for one in told if ways.items() <= one.items()}
    machine = "recorded-4xh200"
    asked = Collective(load_topology(machine), Cluster(machine, {"nodes": 1}), "all_reduce", sorted(recorded), ["nccl"])
    two = json.loads((ROOT / "benchmarks/results/group-2xh200.json").read_text())["rows"]
    (call,) = (one["us"] for one in two if ways.items() <= one.items() and one["bytes"] == 8)
    launch = call * 1e-6 - 2 * LL_STEP  # of the same program on two GPUs
    found = {case.size: (case.seconds - LAUNCH + launch) * 1e6 for case in asked.run(lambda *_: None)}
    assert row("recorded, us") == pytest.approx([recorded[size] for size in sorted(recorded)], rel=5e-3)
    assert row("simulated, us") == pytest.approx([found[size] for size in sorted(found)], rel=5e-3)
    errors = [100 * (found[size] / recorded[size] - 1) for size in sorted(recorded)]
    assert row("error") == pytest.approx(errors, abs=0.6) and max(map(abs, errors)) < 40
