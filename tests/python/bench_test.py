"""`waywiser bench`: order of the timed libraries, meaning of the figures, output."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from waywiser.bench.conduct import Case, Conductor
from waywiser.bench.operations import OPERATIONS, operations_named, window_of
from waywiser.bench.row import Figures, Row, figures_of
from waywiser.bench.run import Wanted, timed
from waywiser.bench.table import tables
from waywiser.bench.team import NotOffered, TeamError
from waywiser.errors import InputError

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-c", "from waywiser.cli import main; main()", "bench"]


class MadeUp:
    """A team whose calls take `seconds`; from slice number `fails_at` on it fails."""

    version = "made up"
    adapts = False

    def __init__(self, seconds: float, log: list[str], name: str, fails_at: int = 10**9) -> None:
        self.seconds, self.log, self.name, self.fails_at = seconds, log, name, fails_at
        self.closed = False
        self.asked: list[tuple[str, str, int, str]] = []

    def slice(self, request: str, patience: float) -> list[list[float]]:
        operation, given, taken, _, window, calls, samples, _, compute, mode = request.split()
        self.log.append(self.name)
        self.asked.append((given, taken, int(calls), mode))
        if operation == "get":
            raise NotOffered("has no get")
        if len(self.log) >= self.fails_at:
            raise TeamError("a rank has died")
        seconds = max(self.seconds * int(window), int(compute) * 1e-9)
        return [[seconds] * int(samples), [2 * seconds] * int(samples)]

    def close(self) -> None:
        self.closed = True


def test_slices_take_turns_and_ratios_are_of_medians() -> None:
    log: list[str] = []
    teams = {"peer": MadeUp(2e-6, log, "peer")}
    row = Conductor(MadeUp(4e-6, log, "ours"), teams, 2, print).time(Case(OPERATIONS["latency"], "host", 8), 0)
    assert row is not None
    assert row.ours.median == pytest.approx(2e-6)  # half a round trip
    assert row.ratio("peer") == pytest.approx(2.0)
    turns = "".join(name[0] for name in log)
    assert turns.startswith("oopp"), "each warms up"
    assert [sorted(turns[at : at + 2]) for at in (4, 6, 8)] == [["o", "p"]] * 3 and len(turns) == 10
    assert row.as_json()["peers"] == {"peer": 1.0}


def test_streams_divide_by_the_window_and_collectives_take_the_mean_of_the_ranks() -> None:
    log: list[str] = []
    conductor = Conductor(MadeUp(1e-6, log, "ours"), {}, 2, print)
    streaming = conductor.time(Case(OPERATIONS["bidirectional"], "host", 1000), 0)
    assert streaming is not None and streaming.ours.median == pytest.approx(1e-6)
    assert streaming.rate(streaming.ours) == pytest.approx(2e9)  # both ways
    together = conductor.time(Case(OPERATIONS["all_reduce"], "host", 1000), 0)
    assert together is not None and together.ours.median == pytest.approx(1.5e-6)
    assert together.ours.spread == (pytest.approx(1e-6), pytest.approx(2e-6))


def test_calls_in_graphs_come_in_whole_graphs_and_peers_know_of_no_exposed_memory() -> None:
    ours, peer = MadeUp(3e-6, [], "ours"), MadeUp(1e-4, [], "peer")
    case = Case(OPERATIONS["all_reduce"], "gpu>exposed", 64, "graph")
    row = Conductor(ours, {"peer": peer}, 2, print).time(case, 0)
    assert row is not None and row.as_json()["mode"] == "graph" and row.memory == "gpu>exposed"
    assert {asked[:2] for asked in ours.asked} == {("gpu", "exposed")}
    assert {asked[:2] for asked in peer.asked} == {("gpu", "gpu")}
    assert {asked[3] for asked in ours.asked + peer.asked} == {"graph"}
    assert ours.asked[-1][2] == 200 and peer.asked[-1][2] == 5  # 1 ms is 167 calls of 6 us: four graphs of 50
    title = tables([row], "", full=False)[1]
    assert "gpu in, exposed out, replayed in a CUDA graph" in title


def test_only_calls_on_gpu_memory_are_enqueued() -> None:
    wanted = Wanted(operations_named(["latency"]), ["host", "gpu"], [8], 2, 0.0, ["blocking", "stream", "graph"])
    found = [(case.memory, case.mode) for case in wanted.cases()]
    assert found == [("host", "blocking"), ("gpu", "blocking"), ("gpu", "stream"), ("gpu", "graph")]


def test_overlap_is_what_computing_hides() -> None:
    row = Conductor(MadeUp(1e-5, [], "ours"), {}, 2, print).time(Case(OPERATIONS["overlap"], "host", 8), 0)
    assert row is not None
    hidden = Figures(3e-6, 3e-6, 3e-6, (0, 0), 1, 1, compute=2e-6, alone=2e-6)
    assert hidden.overlap == pytest.approx(0.5)
    assert 0 <= row.ours.overlap <= 1


def test_a_peer_that_fails_or_has_no_such_operation_is_told_of_and_left_out() -> None:
    told: list[tuple[str, str]] = []
    log: list[str] = []
    dying = MadeUp(1e-6, log, "peer", fails_at=5)
    conductor = Conductor(MadeUp(1e-6, [], "ours"), {"peer": dying}, 2, lambda *words: told.append(words))
    for size in (8, 16):
        row = conductor.time(Case(OPERATIONS["latency"], "host", size), 0)
        assert row is not None and row.peers == {}
    assert dying.closed and len(told) == 1 and "a rank has died" in told[0][1]
    assert conductor.time(Case(OPERATIONS["get"], "host", 8), 0) is None


def test_rows_come_in_the_order_of_the_command_line() -> None:
    wanted = Wanted(operations_named(["barrier", "osu_latency"]), ["host", "gpu"], [8, 64], 2, 0.0)
    rows = list(timed(wanted, MadeUp(1e-6, [], "ours"), {}, lambda *_: None, print))
    assert [(row.operation.name, row.memory, row.bytes) for row in rows] == [
        ("barrier", "host", 0), ("latency", "host", 8), ("latency", "host", 64), ("latency", "gpu", 8),
        ("latency", "gpu", 64),
    ]  # fmt: skip


def test_operations_have_the_names_that_people_know() -> None:
    assert [one.name for one in operations_named(["bibw", "osu_allreduce"])] == ["bidirectional", "all_reduce"]
    every = {name for name, one in OPERATIONS.items() if not one.from_kernel}
    assert {one.name for one in operations_named(["all"])} == every
    with pytest.raises(InputError, match="'nothing' is not a benchmark"):
        operations_named(["nothing"])
    assert window_of(OPERATIONS["bandwidth"], 8) == 64
    assert window_of(OPERATIONS["bandwidth"], 64 << 20) == 4
    assert window_of(OPERATIONS["latency"], 8) == 1


def made_up_rows() -> list[Row]:
    half = figures_of(OPERATIONS["latency"], [[4e-6, 8e-6, 4e-6], [1, 1, 1]], 1, 7)
    row = Row(OPERATIONS["latency"], "host", 2, 8, half, {"openmpi": half})
    return [row, Row(OPERATIONS["all_reduce"], "host>gpu", 2, 8, half)]


def test_a_ratio_to_a_peer_that_is_stopped_for_long_is_not_nought() -> None:
    """As where more ranks that spin than CPUs share a machine."""
    ours, peer = (figures_of(OPERATIONS["latency"], [[time, time], [1, 1]], 1, 7) for time in (2e-6, 2e-2))
    row = Row(OPERATIONS["latency"], "host", 2, 8, ours, {"openmpi": peer})
    assert row.as_json()["ratios"] == {"openmpi": pytest.approx(1e-4)}
    assert tables([row], "", full=False)[4].split()[-1] == "0.0001"


def test_tables_have_the_columns_of_osu() -> None:
    lines = tables(made_up_rows(), ", SIMULATED", full=False)
    assert "# Size          Latency (us)          p99 (us)           openmpi             ratio" in lines
    assert lines[4].split()[:2] == ["8", "2.00"] and lines[4].split()[-1] == "1.00"
    assert "# 2 ranks, host in, gpu out, SIMULATED; medians" in lines
    full = tables(made_up_rows(), "", full=True)
    assert any("Avg Latency(us)   Min Latency(us)   Max Latency(us)" in line and "Iterations" in line for line in full)


def bench(*arguments: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, *COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing",), "'nothing' is not a benchmark"),
        (("--memory", "disk"), "--memory 'disk'"),
        (("--against", "mvapich"), "--against 'mvapich'"),
        (("--sizes", "8..x"), "'x' is not a size"),
        (("-n", "1"), "-n"),
        (("--budget", "0"), "--budget"),
        (("--machine", "hse-e", "--against", "openmpi"), "leave out --machine"),
        (("--memory", "gpu", "--backend", "host"), "--backend host has no GPU memory"),
        (("--memory", "gpu", "--mode", "eager"), "--mode 'eager': write some of blocking,stream,graph"),
        (("--mode", "stream"), "only calls on GPU memory can be enqueued"),
    ],
)
def test_bad_arguments_are_one_line(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    from waywiser.cli import run

    assert run(["bench", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_own_ranks_and_a_peer_in_one_run() -> None:
    peer = "openmpi" if shutil.which("mpirun") and shutil.which("mpicc") else "nccl"
    done = bench("latency", "all_reduce", "--sizes", "8,100", "--budget", "0.5", "--json", "--against", peer)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    rows = told["rows"]
    assert [(row["operation"], row["bytes"]) for row in rows] == [
        ("latency", 8), ("latency", 100), ("all_reduce", 8), ("all_reduce", 100),
    ]  # fmt: skip
    for row in rows:
        assert row["memory"] == "host" and row["ranks"] == 2
        assert 0 < row["us"] <= row["p99_us"] and row["gb_per_s"] > 0
        if peer == "openmpi":
            assert row["peers"]["openmpi"] > 0 and row["ratios"]["openmpi"] > 0
    if peer == "nccl":
        assert "GPU memory only" in told["left_out"]["nccl"]


def test_as_a_rank_of_a_job_and_on_virtual_gpus() -> None:
    launcher = [*COMMAND[:3], "run", "--plain", "-n", "2"]
    words = ("put", "barrier", "--sizes", "64", "--memory", "gpu", "--backend", "virtual_gpu", "--budget", "0.2")
    done = bench(*words, before=launcher)
    assert done.returncode == 0, done.stderr
    assert "VIRTUAL GPUS: NOT A MEASUREMENT OF ANY GPU" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith("64")] == ["64"]


def test_who_is_ended_shows_what_there_is() -> None:
    command = [*COMMAND, "latency", "--sizes", "8..1M", "--budget", "600", "--json"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    for line in running.stderr:
        if "step 1 of" in line or "latency host 16" in line:
            break
    running.terminate()
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 128 + signal.SIGTERM
    assert json.loads(out)["rows"][0]["bytes"] == 8


def test_calls_on_streams_and_into_exposed_memory() -> None:
    words = ("latency", "all_reduce", "--sizes", "64", "--memory", "gpu>exposed", "--backend", "virtual_gpu")
    done = bench(*words, "--mode", "blocking,stream,graph", "--budget", "0.4", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [(row["operation"], row["mode"]) for row in told["rows"]] == [
        (operation, mode) for operation in ("latency", "all_reduce") for mode in ("blocking", "stream", "graph")
    ]
    assert told["left_out"] == {}


def test_a_machine_that_is_not_here_is_labelled() -> None:
    done = bench("bandwidth", "broadcast", "put", "--machine", "hse-e", "--sizes", "1M", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["simulated"] and all(row["simulated"] for row in told["rows"])
    assert [row["operation"] for row in told["rows"]] == ["bandwidth", "broadcast"]
    assert "put, gpu: is not simulated" in told["left_out"]["simulator"]


def test_every_peer_program_reads_what_the_conductor_writes(tmp_path: Path) -> None:
    """The C program for MPI compiles where there is a compiler for it."""
    if shutil.which("mpicc") is None:
        pytest.skip("no mpicc")
    from waywiser.bench.teams import compiled_for_mpi

    assert os.access(compiled_for_mpi(tmp_path), os.X_OK)
