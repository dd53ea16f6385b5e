"""Each verb on each machine of the package, alone and as two nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from verb_runs import Run

from waywiser.profile import OPERATIONS
from waywiser.simulator.collectives import COMPARED
from waywiser.simulator.sweep import OPERATIONS as TRANSFERS
from waywiser.topology import load_topology
from waywiser.topology.load import machine_names

SMALL, ALONE = "remote-t4", ("recorded-4xh100", "recorded-4xh200")  # these have no port with a known rate


def lane(name: str, nodes: int) -> list[pytest.MarkDecorator]:
    """Of a whole tuning: in each run of the tests, in the slow ones, or only where there is time."""
    if (name, nodes) == (SMALL, 1):
        return []
    return [pytest.mark.slow] if (name, nodes) == (SMALL, 2) else [pytest.mark.long, pytest.mark.timeout(1800)]


EVERY = [
    pytest.param(name, nodes, marks=lane(name, nodes))
    for name in machine_names()
    for nodes in ((1,) if name in ALONE else (1, 2))
]


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes seconds, and says nothing of the verbs."""
    monkeypatch.setattr("waywiser.report.pictures.write_pictures", lambda *_: [])


def works(run: Run, *words: str) -> str:
    status, out, err = run(*words)
    assert status == 0, (words, err)
    return out


@pytest.mark.parametrize(("name", "nodes"), EVERY)
def test_what_follows_a_tuning(name: str, nodes: int, run: Run, tmp_path: Path) -> None:
    results = str(tmp_path / "results")
    shown = works(run, "tune", "--quick", "--machine", name, "--nodes", str(nodes), "--results", results)
    assert "not known for " in shown or name in ALONE
    works(run, "plan", "--results", results)
    works(run, "report", "--no-pictures", "--results", results)
    if nodes == 2:
        works(run, "apply", "--machine", name, "--results", results)
    works(run, "compare", results, results)
    gpus = load_topology(name).ids("gpu")
    pairs = [("host0", "gpu0"), ("gpu0", "host0"), ("gpu0", gpus[-1])]
    for operation in OPERATIONS:
        for pair in pairs:
            works(run, "explain", *pair, "64K", "--operation", operation, "--results", results)
        if nodes == 2 and operation != "loaded":
            works(run, "explain", "gpu0", f"{name}:gpu0", "64K", "--operation", operation, "--results", results)


@pytest.mark.parametrize(
    "name",
    [pytest.param(SMALL, marks=pytest.mark.slow)]
    + [pytest.param(one, marks=pytest.mark.long) for one in ("dgx-a100", "dgx-2")],
)
def test_one_question(name: str, run: Run) -> None:
    """Of a machine for which nothing is there yet."""
    there = [] if name in ALONE else [("gpu0", f"{name}:gpu0", "latency")]
    for source, destination, operation in [("gpu0", "host0", "loaded"), *there]:
        words = ["explain", source, destination, "64K", "--machine", name, "--operation", operation]
        assert "SIMULATED" in works(run, *words)


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[] if one == SMALL else pytest.mark.slow) for one in machine_names()]
)
def test_what_needs_no_tuning(name: str, run: Run) -> None:
    works(run, "topology", "--machine", name)
    works(run, "place", "--gpus", "1", "--machine", name)
    works(run, "explain", "--binding", "--machine", name)
    nodes = "1" if name in ALONE else "2"
    for what in COMPARED:
        works(run, "simulate", what, "--machine", name, "--nodes", nodes, "--sizes", "8,64K")
    for what in TRANSFERS if name not in ALONE else ():
        works(run, "simulate", what, "--machine", name, "--sizes", "8,64K", "--vary", "gdr,gdrcopy,nics")
        works(run, "bench", what, "--machine", name, "--sizes", "8")
