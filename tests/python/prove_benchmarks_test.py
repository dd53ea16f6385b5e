"""The benchmarks that prove settings: their output, what they need, one real run."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from made_up_benchmark import JOBS, MPI

from waywiser.apply.job_libraries import JobMpi, find_mpi
from waywiser.bench import ucx_perftest
from waywiser.bench.team import NotOffered, TeamError
from waywiser.errors import InputError
from waywiser.prove import benchmarks, nccl_benchmarks, ucx_benchmark
from waywiser.run.clean_environment import clean_environment


def test_output_of_the_benchmarks() -> None:
    text = 'noise\n{"library": "x", "tests": {"ping-pong": {"24": 1e-6}, "one way": {"24": 2e-6}}}\n'
    assert benchmarks.read_mpi4py(text) == ({("ping-pong", 24): 1e-6, ("one way", 24): 2e-6}, "")
    osu = "# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n24                      0.53\n48      0.60\n"
    assert benchmarks.read_osu("ping-pong", osu, 2, (24,)) == {("ping-pong", 24): pytest.approx(0.53e-6)}
    assert benchmarks.read_osu("one way", "1536   3072.00\n", 2, (1536,)) == {("one way", 1536): pytest.approx(0.5e-6)}
    nccl = "# size count type redop root time\n 1048576 262144 float sum -1 28.7 36.5 54.8 0 27.9 37.5 56.3 0\n"
    assert nccl_benchmarks.read_nccl_tests(nccl) == {("all-reduce", 1048576): pytest.approx(28.7e-6)}
    with pytest.raises(InputError, match="wrong results"):
        nccl_benchmarks.read_nccl_tests(nccl.replace("54.8 0", "54.8 17"))
    for read in (
        benchmarks.read_mpi4py,
        nccl_benchmarks.read_nccl_tests,
        lambda text: benchmarks.read_osu("one way", text, 2, ()),
    ):
        with pytest.raises(InputError, match="no figures"):
            read("mpirun: something went wrong")


OLDER = """#                                                     out-of-place                    in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144   float     sum    35.10   29.87   52.27  5e-07    34.90   30.05   52.58  5e-07
# Out of bounds values : 0 OK
"""
NEWER = """#       size       count    type  redop  root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576      262144   float    sum     -1    35.10   29.87   52.27      0    34.90   30.05   52.58    N/A
# Out of bounds values : 0 OK
"""
UNCHECKED = NEWER.replace("52.27      0", "52.27    N/A")
MORE_COLUMNS = NEWER.replace("root ", "root stream ").replace("-1    35.10", "-1  7    35.10")


@pytest.mark.parametrize(
    "text",
    [OLDER, NEWER, UNCHECKED, MORE_COLUMNS, OLDER.splitlines()[3], NEWER.splitlines()[1]],
)
def test_tables_of_all_versions_of_nccl_tests(text: str) -> None:
    """Before 2.12 there was no column `root`, and the last one was the largest error."""
    assert nccl_benchmarks.read_nccl_tests(text) == {("all-reduce", 1048576): pytest.approx(35.1e-6)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (OLDER.replace("5e-07    34", "3e-01    34"), "wrong results at 1048576 bytes: an error of 3e-01"),
        (OLDER.replace("5e-07    34", "nan    34"), "wrong results at 1048576 bytes: an error of nan"),
        (OLDER.replace("0 OK", "3 FAILED"), "its summary says FAILED"),
        (NEWER.replace("52.27      0", "52.27     17"), "17 wrong results at 1048576 bytes"),
        (" 1048576 262144 float sum 35.10 29.87 52.27 0 34.90 30.05", "10 columns .* is not understood"),
        (" 1048576 262144 float sum", "4 columns .* is not understood"),
        (NEWER.replace("    N/A", ""), "a line of 12 columns below a head of 13"),
        (NEWER.replace("    N/A", "    N/A   1"), "a line of 14 columns below a head of 13"),
        (NEWER.replace("    N/A", "      3"), "3 wrong results at 1048576 bytes"),
        (NEWER.replace("    N/A", "      x"), "'x' in the column '#wrong' is not understood"),
        (OLDER.replace("5e-07\n", "x\n"), "'x' in the column 'error' is not understood"),
        (NEWER.replace("35.10", "-35.1"), "a time of -35.1 us"),
        (NEWER.replace("35.10", "nan"), "a time of nan us"),
        (NEWER.replace("35.10", "0.00"), "a time of 0.00 us"),
        (NEWER.replace("35.10", "3.51"), "1048576 bytes in 3.51 us are not 29.87 GB/s"),
        (NEWER.replace("35.10", "fast"), "'fast' in the column 'time' is not understood"),
    ],
)
def test_other_tables_of_nccl_tests_are_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        nccl_benchmarks.read_nccl_tests(text)


def test_benchmarks_say_what_they_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(InputError, match="needs mpirun"):
        find_mpi(None)
    with pytest.raises(InputError, match="needs ucx_perftest, and there is no UCX"):
        ucx_benchmark.ucx(JOBS, 0, (24,))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs mpi4py \(pip install mpi4py\) or the OSU"):
        benchmarks.openmpi(MPI, 2, (24,))


def test_an_mpi_of_this_machine_is_timed_and_steered() -> None:
    """A short form of the real thing: two ranks, three tests, two sizes."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    environment = {**clean_environment(os.environ), "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    environment["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    mpi = find_mpi(None)
    run = benchmarks.openmpi(mpi, 2, (24, 12288), environment)
    times = run({"OMPI_MCA_mpi_yield_when_idle": "1"})  # other tests want the CPUs, too
    assert set(times) == {(test, size) for test in ("ping-pong", "one way", "all-reduce") for size in (24, 12288)}
    assert all(1e-9 < seconds < 1 for seconds in times.values())


def test_a_benchmark_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "mpirun"
    program.write_text("#!/bin/sh\necho ------\necho There are not enough slots >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with pytest.raises(InputError, match=r"mpirun python failed \(3\): There are not enough slots"):
        benchmarks.openmpi(JobMpi(str(program), "1.0.0", "", ""), 2, (24,))({})


def test_a_perftest_that_cannot_be_started_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ucx_perftest"
    file.write_text("not to be run")
    monkeypatch.setattr(ucx_perftest, "find_perftest", lambda: ucx_perftest.Program(str(file), {}, "made up"))
    with pytest.raises(TeamError, match=r"cannot start .*ucx_perftest: Permission denied"):
        ucx_perftest.UcxPerftest(False).slice("latency host host 8 1 1 1 1 0 blocking", 10)
    with pytest.raises(NotOffered, match="UCX enqueues nothing"):
        ucx_perftest.UcxPerftest(True).slice("latency gpu gpu 8 1 1 1 1 0 graph", 10)
