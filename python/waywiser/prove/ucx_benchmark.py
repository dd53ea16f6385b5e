"""UCX's own benchmark, `ucx_perftest`: a client and a server for each set of variables, all cases in one batch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from waywiser import _core
from waywiser.apply.job_libraries import JobLibraries
from waywiser.bench.team import TeamError
from waywiser.bench.ucx_perftest import Program, Row, batch, program_at
from waywiser.errors import InputError
from waywiser.look.finding import Unknown
from waywiser.progress import say
from waywiser.prove.benchmarks import Benchmark, Case, Times
from waywiser.run.rank_setup import setup_for

# Name -> its test, and the memory of sender and receiver.
_HOST = {"ping-pong": ("tag_lat", "host,host"), "one way": ("tag_bw", "host,host")}
_GPU = {
    "ping-pong, GPUs": ("tag_lat", "cuda,cuda"),
    "one way, GPUs": ("tag_bw", "cuda,cuda"),
    "one way, GPU to host": ("tag_bw", "cuda,host"),
    "one way, host to GPU": ("tag_bw", "host,cuda"),
}
_BYTES = 64 << 20  # to move in a block, but
_LEAST, _MOST = 10, 500  # messages
_BLOCKS = 5  # per one-way test; the best block counts
_RANK = "10"  # per cent: this percentile of a ping-pong's messages counts
_SECONDS = 180.0


def ucx(
    jobs: JobLibraries, gpus: int, sizes: Sequence[int], environment: Mapping[str, str] = os.environ
) -> tuple[Benchmark, str]:
    """The benchmark between two processes with the UCX of jobs; with `gpus` also between GPUs, one per process.

    Raises InputError.
    """
    try:
        program = program_at(*jobs.ucx_program("ucx_perftest"))
    except Unknown as error:
        raise InputError(f"UCX cannot be timed: {error}") from error
    no_gpus = _why_no_gpus(program, environment) if gpus else ""
    if no_gpus:
        say(f"{program.path} times host memory only: {no_gpus}")
    tests = {**_HOST, **_GPU} if gpus and not no_gpus else _HOST
    cases = [(test, size) for test in tests for size in sizes]
    lines = [line for index, (test, size) in enumerate(cases) for line in _lines(index, *tests[test], size)]

    topology, allowed = _core.discover(), os.sched_getaffinity(0)
    cpus = [setup_for(topology, None, rank, 2, {}, allowed).cpus for rank in range(2)]

    def run(variables: Mapping[str, str]) -> Times:
        try:
            rows = _rows(program, lines, {**environment, **variables}, cpus)
        except TeamError as error:
            raise InputError(str(error)) from error
        return {case: _best(rows, index, case) for index, case in enumerate(cases)}

    return run, f"ucx_perftest of {program.version}"


def _rows(
    program: Program, lines: Sequence[str], environment: Mapping[str, str], cpus: Sequence[Sequence[int]]
) -> list[tuple[str, Row]]:
    with tempfile.TemporaryDirectory(prefix="waywiser-verify-") as folder:
        file = Path(folder) / "batch"
        file.write_text("\n".join(lines) + "\n", encoding="ascii")
        return batch(program, file, environment, cpus, _SECONDS)


def _why_no_gpus(program: Program, environment: Mapping[str, str]) -> str:
    """Why a message between GPUs fails with this UCX; empty if it arrives."""
    try:
        _rows(program, [_lines(0, *_GPU["ping-pong, GPUs"], 8)[0]], environment, ((), ()))
        return ""
    except TeamError as error:
        return str(error)


def _best(rows: Sequence[tuple[str, Row]], index: int, case: Case) -> float:
    ping_pong = case[0].startswith("ping-pong")
    found = [row.typical if ping_pong else row.overall for name, row in rows if name == f"case{index}"]
    if not found:
        raise InputError(f"ucx_perftest printed no figure for {case[0]} of {case[1]} bytes")
    return min(found)


def _lines(index: int, test: str, memory: str, size: int) -> list[str]:
    count = max(_LEAST, min(_MOST, _BYTES // size))
    line = f"case{index} -t {test} -s {size} -n {count} -w {count // 10} -m {memory}"
    return [f"{line} -R {_RANK}"] if test == "tag_lat" else [line] * _BLOCKS
