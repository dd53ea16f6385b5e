"""Runs the benchmarks of other libraries with given variables; the result is (test, size) -> seconds."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from waywiser.apply.job_libraries import JobMpi, linked
from waywiser.apply.setting import Setting
from waywiser.errors import InputError
from waywiser.run.clean_environment import KEPT
from waywiser.run.hosts import Host
from waywiser.signals import ended_by_signals

Case = tuple[str, int]  # test, bytes
Times = dict[Case, float]
Benchmark = Callable[[Mapping[str, str]], Times]
# Three times a power of two: profiles are measured at powers of two.
SIZES = (24, 1536, 12288, 98304, 786432, 6291456)
_SECONDS = 180.0
_FIRST_LOOK, _BETWEEN_LOOKS = 0.1, 5.0  # seconds
_OSU = {"ping-pong": "osu_latency", "one way": "osu_bw", "all-reduce": "osu_allreduce"}


@ended_by_signals()
def run_benchmark(
    command: Sequence[str],
    environment: Mapping[str, str],
    what: str,
    seconds: float = _SECONDS,
    during: Callable[[int], None] | None = None,
) -> str:
    """Standard output. If the command fails or does not end, ends all its processes and raises InputError. `during` is
    called with its process id while it runs, again and again."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            out = _output(process, seconds, during)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
            if isinstance(error, subprocess.TimeoutExpired):
                raise InputError(f"{what} did not end within {seconds:.0f} s") from error
            raise
        said.seek(0)
        lines = [line.strip() for line in (out + said.read(10_000)).splitlines() if line.strip(" -")]
    if process.returncode != 0:
        why = " ".join(lines[:3])[:300]
        raise InputError(f"{what} failed ({process.returncode})" + (f": {why}" if why else ""))
    return out


def _output(process: subprocess.Popen[str], seconds: float, during: Callable[[int], None] | None) -> str:
    """Raises TimeoutExpired after so many seconds."""
    end_by, pause = time.monotonic() + seconds, seconds if during is None else _FIRST_LOOK
    while True:
        left = end_by - time.monotonic()
        try:
            return process.communicate(timeout=max(0.0, min(pause, left)))[0]
        except subprocess.TimeoutExpired:
            if during is None or left <= pause:
                raise
        during(process.pid)
        pause = min(1.1 * pause, _BETWEEN_LOOKS)


def openmpi(
    mpi: JobMpi,
    ranks: int,
    sizes: Sequence[int],
    environment: Mapping[str, str] = os.environ,
    tests: Sequence[str] = tuple(_OSU),
    hosts: Sequence[Host] = (),
) -> Benchmark:
    """The benchmark of this Open MPI: mpi4py, else the OSU Micro-Benchmarks. Raises InputError with what is missing.

    Ranks go to `hosts` in turn; without hosts all ranks run here. If the ranks map another libmpi than that of `mpi`,
    this is an error: the verdict would be about another library.
    """
    osu = not importlib.util.find_spec("mpi4py")
    if osu and not all(shutil.which(name) for name in _OSU.values()):
        raise InputError("verify --with openmpi needs mpi4py (pip install mpi4py) or the OSU Micro-Benchmarks in PATH")
    if osu and (other := _another(mpi, linked(str(shutil.which(_OSU["ping-pong"])), "libmpi", environment))):
        raise InputError(f"the OSU Micro-Benchmarks in PATH are built with {other}")
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    base = {**mpi.environment(environment), **root, **({"MPI4PY_LIBMPI": mpi.libmpi} if mpi.libmpi else {})}

    told_elsewhere = [name for name in ("MPI4PY_LIBMPI", "LD_LIBRARY_PATH", *KEPT) if hosts and name in base]
    where = ["--host", ",".join(f"{one.name}:{one.slots}" for one in hosts), "--map-by", "node"] if hosts else []

    def launched(variables: Mapping[str, str], *program: str) -> str:
        names = dict.fromkeys((*variables, *told_elsewhere))
        told = [word for name in names if not name.startswith("OMPI_") for word in ("-x", name)]
        command = [mpi.mpirun, "-n", str(ranks), *where, *told, *program]
        return run_benchmark(command, {**base, **variables}, f"mpirun {Path(program[0]).name}")

    def by_mpi4py(variables: Mapping[str, str]) -> Times:
        script = str(Path(__file__).with_name("mpi_benchmark.py"))
        text = launched(variables, sys.executable, script, ",".join(map(str, sizes)), ",".join(tests))
        times, libmpi = read_mpi4py(text)
        if other := _another(mpi, libmpi):
            raise InputError(f"mpi4py opens {other}")
        return times

    def by_osu(variables: Mapping[str, str]) -> Times:
        found: Times = {}
        for test in tests:
            found |= read_osu(test, launched(variables, _OSU[test], "-m", f"{min(sizes)}:{max(sizes)}"), ranks, sizes)
        return found

    return by_osu if osu else by_mpi4py


def _another(mpi: JobMpi, libmpi: str) -> str:
    """The message if `libmpi` is not that of `mpi`; empty if it is, or if one of them is unknown."""
    if not libmpi or not mpi.libmpi or os.path.realpath(libmpi) == mpi.libmpi:
        return ""
    return f"{libmpi}, not {mpi.libmpi} of {mpi.mpirun}"


def read_mpi4py(text: str) -> tuple[Times, str]:
    """The last line of JSON, which is of `mpi_benchmark.py`: times, and the libmpi that rank 0 has mapped."""
    try:
        told = json.loads([line for line in text.splitlines() if line.startswith("{")][-1])
        found = {(test, int(size)): float(s) for test, times in told["tests"].items() for size, s in times.items()}
        return found, str(told.get("libmpi", ""))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"the MPI benchmark printed no figures: {text[-200:]!r}") from error


def read_osu(test: str, text: str, ranks: int, sizes: Sequence[int]) -> Times:
    """Lines by the names of their head, "# Size  Avg Latency(us)": microseconds, or MB/s for the bandwidth.

    Versions differ in the columns after the first figure. Without a head the second column counts.
    """
    found: Times = {}
    column, columns = 1, 0
    for line in text.splitlines():
        if line.startswith("# Size"):
            column, columns = _osu_column(test, line)
            continue
        words = line.split()
        if len(words) < 2 or not (words[0].isdecimal() and re.fullmatch(r"\d{1,12}\.\d{1,6}", words[1])):
            continue
        value = float(words[column]) if len(words) == (columns or len(words)) else 0.0
        if not 0 < value < 1e12:
            raise InputError(f"{_OSU[test]}: not understood: {line[:80]!r}")
        if int(words[0]) in sizes:
            found[test, int(words[0])] = int(words[0]) / (value * 1e6) if test == "one way" else value * 1e-6
    if not found:
        raise InputError(f"{_OSU[test]} printed no figures")
    return found


def _osu_column(test: str, head: str) -> tuple[int, int]:
    """The number of the column of the figure, and of all columns: names are apart by two blanks or more, or by a unit
    in brackets."""
    names = re.split(r"\s{2,}|(?<=\))\s+", re.sub(r"\s+\(", "(", head.lstrip("# ").rstrip()))
    wanted = ("Bandwidth",) if test == "one way" else ("Avg Latency", "Latency")
    fits = [names.index(one) for word in wanted for one in names if one.startswith(word)]
    if not fits:
        raise InputError(f"{_OSU[test]}: no column of {' or '.join(wanted)} in {head[:80]!r}")
    return fits[0], len(names)


def groups_of(settings: Sequence[Setting], target: str) -> list[list[Setting]]:
    """The settings of one library by group."""
    groups: dict[str, list[Setting]] = {}
    for one in settings:
        if one.target == target:
            groups.setdefault(one.group, []).append(one)
    return list(groups.values())
