"""Times NCCL with nccl-tests, else with our own ranks that call libnccl, else with torch.distributed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from waywiser.apply.job_libraries import linked
from waywiser.bench.team import Team
from waywiser.bench.teams import Setup, python_ranks
from waywiser.errors import InputError
from waywiser.look.nccl_library import find_libnccl, look_for_nccl
from waywiser.prove.benchmarks import Benchmark, Times, run_benchmark
from waywiser.prove.team_benchmark import timed_by

# Three times a power of two, as `benchmarks.SIZES`: links between GPUs need more bytes to fill.
SIZES = (24, 1536, 98304, 786432, 6291456, 25165824)
TESTS = {"ping-pong": "latency", "one way": "bandwidth", "all-reduce": "all_reduce"}
# What a tuner decides.
COLLECTIVES = {"all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter"}
COLLECTIVES |= {"broadcast": "broadcast", "reduce": "reduce"}


def nccl(
    gpus: int,
    sizes: Sequence[int],
    environment: Mapping[str, str] = os.environ,
    tests: Sequence[str] = tuple(TESTS),
) -> tuple[Benchmark, str, str]:
    """The benchmark, its description and its libnccl (empty: unknown). Raises InputError with what is missing."""
    if program := shutil.which("all_reduce_perf"):
        library = linked(program, "libnccl", environment)
        return _by_nccl_tests(gpus, sizes, environment), f"nccl-tests with {library or 'an NCCL of its own'}", library
    found = look_for_nccl()
    if why := found.too_few(gpus):
        raise InputError(f"NCCL cannot be timed: {why}")
    if not found.no_library:
        library = os.path.realpath(find_libnccl())
        return _by_ranks("nccl", gpus, sizes, environment, tests), f"{library}, a process for each GPU", library
    if importlib.util.find_spec("torch"):
        what = f"torch.distributed of {sys.executable}, a process for each GPU"
        return _by_ranks("torch", gpus, sizes, environment, tests), what, ""
    raise InputError(f"NCCL cannot be timed: no nccl-tests in PATH, no PyTorch, and {found.no_library}")


def _by_ranks(
    name: str, gpus: int, sizes: Sequence[int], environment: Mapping[str, str], tests: Sequence[str]
) -> Benchmark:
    """Starts new ranks for each call; the data of every sample is checked."""

    def start(folder: Path, variables: Mapping[str, str]) -> Team:
        setup = Setup(gpus, "cuda", 0, folder, folder)
        return python_ranks(setup, name, {**environment, **variables})

    return timed_by(start, [("gpu", test, (TESTS | COLLECTIVES)[test]) for test in tests], sizes)


def _by_nccl_tests(gpus: int, sizes: Sequence[int], environment: Mapping[str, str]) -> Benchmark:
    def run(variables: Mapping[str, str]) -> Times:
        least, most = str(min(sizes)), str(max(sizes))
        command = ["all_reduce_perf", "-b", least, "-e", most, "-f", "2", "-g", str(gpus), "-n", "50", "-w", "10"]
        found = read_nccl_tests(run_benchmark(command, {**environment, **variables}, "all_reduce_perf"))
        return {(test, size): seconds for (test, size), seconds in found.items() if size in sizes}

    return run


# Columns of a version without a head line, by their number: before 2.12 there was no `root`.
_TIMES = ["time", "algbw", "busbw"]
_UNNAMED = {
    13: ["size", "count", "type", "redop", "root", *[*_TIMES, "#wrong"] * 2],
    12: ["size", "count", "type", "redop", *[*_TIMES, "error"] * 2],
}
_NEEDED = {"size", "type", "time"}
_LARGEST_ERROR = 1e-5  # of float, as older versions judged
_LARGEST_TIME = 1e10  # microseconds
_ROUNDED = 0.05  # share by which printed figures of one line may disagree


def read_nccl_tests(text: str) -> Times:
    """The table of all_reduce_perf: out-of-place time in microseconds; a wrong result is an error.

    Columns are found by the head line: their number differs by version. A line that does not fit it, and figures that
    contradict each other, are refused.
    """
    found: Times = {}
    head: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["#", "size"] and {"#wrong", "error"} & set(words):
            head = words[1:]
        elif len(words) >= 4 and words[0].isdecimal() and words[1].isdecimal():
            row = _row(words, head or _UNNAMED.get(len(words), []))
            _check(row)
            if row["type"][0] == "float":
                found["all-reduce", int(row["size"][0])] = float(row["time"][0]) * 1e-6
    if re.search(r"Out of bounds values\s*:\s*\d+\s+FAILED", text):
        raise InputError("all_reduce_perf: wrong results: its summary says FAILED")
    if not found:
        raise InputError("all_reduce_perf printed no figures")
    return found


def _row(words: list[str], names: list[str]) -> dict[str, list[str]]:
    """A line by the names of its columns. A name that occurs twice is first out of place, then in place."""
    if not names:
        raise InputError(f"all_reduce_perf: a table of {len(words)} columns without its head line is not understood")
    if not set(names) >= _NEEDED or len(words) != len(names):
        raise InputError(f"all_reduce_perf: a line of {len(words)} columns below a head of {len(names)}")
    row: dict[str, list[str]] = {}
    for name, word in zip(names, words, strict=True):
        row.setdefault(name, []).append(word)
    return row


def _check(row: Mapping[str, list[str]]) -> None:
    """Raises InputError for impossible figures, and for wrong results: a number of them, in older versions the largest
    error."""
    size = row["size"][0]
    for text in row["time"]:
        if text != "N/A" and not 0 < _number(text, "time") < _LARGEST_TIME:
            raise InputError(f"all_reduce_perf: a time of {text[:20]} us at {size} bytes")
    for time, rate in zip(row["time"], row.get("algbw", ()), strict=False):
        if "N/A" not in (time, rate) and not _agree(float(time), _number(rate, "algbw"), float(size)):
            raise InputError(f"all_reduce_perf: {size} bytes in {time} us are not {rate[:20]} GB/s")
    for wrong in row.get("#wrong", ()):
        if wrong != "N/A" and _number(wrong, "#wrong") != 0:
            raise InputError(f"all_reduce_perf: {wrong} wrong results at {size} bytes")
    for error in row.get("error", ()):
        if error != "N/A" and row["type"][0] == "float" and not 0 <= _number(error, "error") <= _LARGEST_ERROR:
            raise InputError(f"all_reduce_perf: wrong results at {size} bytes: an error of {error}")


def _number(text: str, column: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"all_reduce_perf: {text[:20]!r} in the column '{column}' is not understood") from None


def _agree(time: float, rate: float, size: float) -> bool:
    """Whether a rate in GB/s is that of so many bytes in so many microseconds, as far as they are printed."""
    wanted = size / time * 1e-3
    return abs(rate - wanted) <= 0.02 + _ROUNDED * wanted
