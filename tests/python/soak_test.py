"""The soak in short: a job with each fault, on hosts and on virtual GPUs."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parents[2] / "scripts"
SECONDS = 1.5


def load_soak() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    loader = importlib.machinery.SourceFileLoader("soak", str(SCRIPTS / "soak"))
    spec = importlib.util.spec_from_loader("soak", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


soak = load_soak()


def seed_of(kind: str, gpus: bool) -> int:
    """The first seed whose job has this fault."""
    return next(seed for seed in range(1000) if soak.draw(seed, SECONDS, gpus)[0] == kind)


@pytest.mark.parametrize("kind", sorted(set(soak.FAULTS)))
def test_a_job_on_hosts(kind: str) -> None:
    soak.one_job(seed_of(kind, False), SECONDS, False)


def test_a_job_on_virtual_gpus() -> None:
    _, _, operations = soak.one_job(seed_of("none", True), SECONDS, True)
    assert operations > 0


LINE = "waywiser: rank 0: rank 1 did not send within 3.00 s in all_reduce #28 of 21 uint8, sum\n"
GIVEN_UP = "waywiser: rank 0 has given up all_reduce #46 of 2 int32, sum while it waited for rank 1: rank 1 is gone\n"


@pytest.mark.parametrize(
    ("gpus", "output", "named"),
    [
        (True, LINE, True),
        (True, GIVEN_UP, True),
        (False, LINE, False),
        (True, LINE.replace("rank 1", "rank 10"), False),
        (True, "", False),
    ],
)
def test_a_kernel_that_stops_has_named_the_culprit(gpus: bool, output: str, named: bool) -> None:
    told = {"gpus": gpus, "fault": {"rank": 1}}
    reports = [[{"end": "error", "words": "DeviceError: work on gpu0: unspecified launch failure"}], []]
    if named:
        soak.check("hang", told, 1, reports, output)
    else:
        with pytest.raises(soak.Failure, match="nobody names it"):
            soak.check("hang", told, 1, reports, output)


@pytest.mark.parametrize(("kind", "good"), [("hang", True), ("raise", False)])
def test_a_rank_may_end_its_process_if_a_stopped_one_can_reach_its_memory(kind: str, good: bool) -> None:
    told = {"gpus": False, "fault": {"rank": 1}}
    output = "waywiser: rank 0 ends: rank 1 (process 7 on vm) can still reach the memory of broadcast #93\n"
    if good:
        soak.check(kind, told, 70, [[], []], output)
    else:
        with pytest.raises(soak.Failure, match="ranks ended with"):
            soak.check(kind, told, 70, [[], []], output)
