"""The result of calls with arrays on GPUs if one rank has a fault: cells of docs/faults.md, on virtual GPUs."""

from __future__ import annotations

import re

import pytest
from faults_test import Jobs, jobs, others
from gpu_fault_jobs import APART, CALLS, LAST, WINDOW

__all__ = ["jobs"]
pytestmark = pytest.mark.slow

EVERY = pytest.mark.parametrize(("mode", "name"), [(mode, name) for mode in CALLS for name in CALLS[mode]])
MAKES_AN_ARRAY = "all_reduce on a stream into a new array"


@EVERY
@pytest.mark.faults("gpus G O")
def test_dead(jobs: Jobs, mode: str, name: str) -> None:
    seen = jobs("dead", mode)[name]
    assert seen[1] is None, seen
    for words in others(seen):
        assert "rank 1 (process " in words and "is gone" in words


@pytest.mark.parametrize(("mode", "name"), [("gpus", WINDOW), (APART, "sendrecv on a stream"), (APART, "sendrecv")])
@pytest.mark.faults("gpus G O")
def test_stopped(jobs: Jobs, mode: str, name: str) -> None:
    seen = jobs("stopped", mode)[name]
    assert seen[1] is None, seen
    assert all("waited 3.00 s in" in words for words in others(seen))


@EVERY
@pytest.mark.faults("gpus L")
def test_late(jobs: Jobs, mode: str, name: str) -> None:
    assert jobs("late", mode)[name] == ["right"] * 3


@EVERY
@pytest.mark.faults("gpus R")
def test_raises(jobs: Jobs, mode: str, name: str) -> None:
    seen = jobs("raises", mode)[name]
    assert seen[1] == "ValueError: a bug of the user"
    assert all("rank 1: ValueError: a bug of the user" in words for words in others(seen))


@EVERY
@pytest.mark.faults("gpus M")
def test_no_memory(jobs: Jobs, mode: str, name: str) -> None:
    """The GPU of rank 1 is full."""
    seen = jobs("no memory", mode)[name]
    if name != MAKES_AN_ARRAY:
        assert seen == ["right"] * 3
        return
    assert seen[1] is not None and re.match(r"DeviceError: gpu1: cannot allocate .*: 0 of its memory are free", seen[1])
    assert all("rank 1: DeviceError: gpu1: cannot allocate" in words for words in others(seen))


@EVERY
@pytest.mark.faults("gpus I")
def test_interrupted(jobs: Jobs, mode: str, name: str) -> None:
    """While rank 1 waits for its GPU, or for the others.

    A rank that has the right result, because the GPU of rank 1 has given its part, may have closed its group before it
    hears of the interruption.
    """
    seen = jobs("interrupt", mode)[name]
    assert seen[1] is not None and seen[1].startswith("KeyboardInterrupt")
    for words in others(seen):
        told = re.search(r"rank 1: (interrupted in |KeyboardInterrupt)", words) is not None
        assert told or (name == LAST and words == "right"), seen


@EVERY
@pytest.mark.faults("gpus H")
def test_a_signal_with_a_handler(jobs: Jobs, mode: str, name: str) -> None:
    assert jobs("signal", mode)[name] == ["right"] * 3
