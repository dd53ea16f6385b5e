"""The result of every call if one rank has a fault: the cells of docs/faults.md for host arrays."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from host_fault_jobs import BLOCKING, STARTED, WINDOWS
from rank_jobs import run

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
Seen = list[str | None]
Jobs = Callable[[str, str], dict[str, Seen]]
CALLS = [("blocking", name) for name in [*BLOCKING, *WINDOWS]] + [("started", name) for name in STARTED]
EVERY = pytest.mark.parametrize(("mode", "name"), CALLS, ids=[f"{name}-{mode}" for mode, name in CALLS])
ALL_BLOCKING = pytest.mark.parametrize("name", [*BLOCKING, *WINDOWS])
# The memory that rank 1 needs exists before: the call makes nothing.
MAKE_NOTHING = {"barrier", "short recv", "put, flush, signal and wait"}
# Rank 1 needs nothing from the other ranks, which may come later.
GIVEN_AT_ONCE = {"short recv", "broadcast", "scatter"}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """Fault and mode -> each rank's result of each call; all calls of a pair are tried at once."""

    @cache
    def seen(fault: str, mode: str) -> dict[str, Seen]:
        folder = tmp_path_factory.mktemp("ranks")
        variables = {**os.environ, "WAYWISER_RUNTIME_DIR": str(folder / "runtime")}
        command = [sys.executable, str(HERE / "fault_jobs.py"), fault, mode]
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, done.stderr
        found: dict[str, Seen] = json.loads(done.stdout)
        return found

    return seen


def others(seen: Seen) -> list[str]:
    """The results of rank 0 and rank 2."""
    assert seen[0] is not None and seen[2] is not None
    return [seen[0], seen[2]]


def kinds(seen: Seen) -> set[str]:
    """The classes of the errors."""
    found = [re.match(r"(?:then )?(\w+): ", words) for words in seen if words is not None]
    return {each[1] for each in found if each is not None}


def gone(name: str, words: str) -> bool:
    """A one-sided call may find that a rank's memory is no longer there before it hears why."""
    return name in WINDOWS and re.search(r"UCX cannot (put|get|signal|connect) .* rank [012]", words) is not None


@EVERY
@pytest.mark.faults("host D")
def test_dead(jobs: Jobs, mode: str, name: str) -> None:
    seen = jobs("dead", mode)[name]
    assert seen[1] is None, seen
    for words in others(seen):
        assert ("rank 1 (process " in words and "is gone" in words) or gone(name, words)


@EVERY
@pytest.mark.faults("host S")
def test_stopped(jobs: Jobs, mode: str, name: str) -> None:
    seen = jobs("stopped", mode)[name]
    assert seen[1] is None, seen
    assert all("waited 3.00 s in" in words for words in others(seen)) and kinds(seen) == {"DeadlineError"}
    if name not in WINDOWS:  # windows wait for any rank that sets the flag
        # Rank 0 waits for rank 1.
        assert any(re.search(r"(from|to|for) (rank [01]|any rank)", words) for words in others(seen))


@EVERY
@pytest.mark.faults("host L", "forming L")
def test_late(jobs: Jobs, mode: str, name: str) -> None:
    assert jobs("late", mode)[name] == ["right"] * 3


@pytest.mark.parametrize("name", BLOCKING)
@pytest.mark.faults("host W")
def test_wrong_call(jobs: Jobs, name: str) -> None:
    seen = jobs("wrong call", "blocking")[name]
    assert kinds(seen) == {"InputError"}, seen
    for words in seen:
        assert words is not None
        assert " is in " in words or (" sent " in words and " were expected" in words)


@pytest.mark.faults("host S")
def test_an_all_to_all_v_says_how_many_numbers_it_gives(jobs: Jobs) -> None:
    for words in others(jobs("stopped", "blocking")["all_to_all_v"]):
        assert re.search(r"waited 3.00 s in all_to_all_v #\d+ of 180000 float64", words)


@EVERY
@pytest.mark.faults("host R")
def test_raises(jobs: Jobs, mode: str, name: str) -> None:
    seen = jobs("raises", mode)[name]
    assert seen[1] == "ValueError: a bug of the user"
    assert all("rank 1: ValueError: a bug of the user" in words or gone(name, words) for words in others(seen))


@ALL_BLOCKING
@pytest.mark.faults("host M")
def test_no_memory(jobs: Jobs, name: str) -> None:
    seen = jobs("no memory", "blocking")[name]
    if name in MAKE_NOTHING:
        assert seen == ["right"] * 3
        return
    for words in seen:
        assert words is not None
        assert "Unable to allocate" in words or "Out of memory" in words
    assert all("rank 1: " in words for words in others(seen))


@EVERY
@pytest.mark.faults("host I")
def test_interrupted(jobs: Jobs, mode: str, name: str) -> None:
    seen = jobs("interrupt", mode)[name]
    assert seen[1] is not None and seen[1].startswith("KeyboardInterrupt")
    told = [re.search(r"rank 1: (interrupted in |KeyboardInterrupt)", words) is not None for words in others(seen)]
    assert any(told) or name in WINDOWS
    for words, hears in zip(others(seen), told, strict=True):
        # Rank 1 sends at once and was in the barrier: a rank that has received its part misses nothing.
        assert hears or gone(name, words) or (name in GIVEN_AT_ONCE and words == "right")


@pytest.mark.faults("forming M")
def test_join_without_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
        import resource
        if rank == "1":
            resource.setrlimit(resource.RLIMIT_AS, (1 << 20, resource.RLIM_INFINITY))
        try: ww.join(timeout=3)
        except (ww.Error, MemoryError) as error: print(rank, error)
        """
    program = "import os, numpy, waywiser as ww\nfrom waywiser import _core, join\nrank = os.environ['WAYWISER_RANK']\n"
    monkeypatch.setenv("WAYWISER_RUNTIME_DIR", str(tmp_path / "runtime"))
    ended, lines, errors = run(2, code, "--plain", program=program)
    assert ended == 0 and len(lines) == 2, errors
    assert re.match(r"0 1 of 2 ranks did not come to .* in time: 1; WAYWISER_SIZE=2 says that ", lines[0]), lines
    assert "did not come" not in lines[1], lines


@ALL_BLOCKING
@pytest.mark.faults("host H")
def test_a_signal_with_a_handler(jobs: Jobs, name: str) -> None:
    assert jobs("signal", "blocking")[name] == ["right"] * 3
