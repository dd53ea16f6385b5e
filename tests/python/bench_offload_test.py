"""`waywiser bench offload`: seven points, both overheads, verified sums, one clock."""

from __future__ import annotations

import contextlib
import csv
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import COMMAND, runtime_folder
from remote_gpu import PATIENCE, Server

import waywiser as ww
from waywiser.bench.offload import LOCAL, LOCAL_PINNED, Case, LocalSide, Run, added, cases, median, remote_road
from waywiser.bench.offload_rows import Rows
from waywiser.bench.outcome import JSON, TABLE
from waywiser.offload.client import DATA_ROADS, POINTS

__all__ = ["runtime_folder"]
REMOTE = remote_road("pinned")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
SMALL = ("bench", "offload", "--backend", "virtual_gpu", "--sizes", "4000,40000", "--times", "1,3", "--budget", "0.2")


def run(*words: str) -> tuple[int, str, str]:
    """Exit code, output and errors of `waywiser`."""
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout, done.stderr


def run_of(whole: float) -> Run:
    return Run((10.0, 9.0, 8.0, 4.0, 3.0, 2.0, 20.0), whole)


def test_the_overhead_is_that_of_the_published_experiment() -> None:
    assert run_of(50).overhead == 10 + 3 + 20 - 4
    assert median([run_of(5), run_of(1), run_of(3)]).whole == 3
    written: list[str] = []
    rows = Rows(TABLE, "virtual_gpu", "made up", [REMOTE, "x"], written.append)
    rows.add(Case(REMOTE, 1000, 2, run_of(50), 3))
    assert written[0] == "# c: as the client sees it, s: as the server does, MADE UP\n"
    assert written[2].startswith(f"{REMOTE} ")
    words = written[2].removeprefix(REMOTE).split()
    assert words[:2] == ["1000", "2"] and words[-6:] == ["50.0", "s", "29.0", "s", "47.0", "s"]


def test_json_is_whole_with_any_number_of_rows() -> None:
    for count in range(3):
        written: list[str] = []
        rows = Rows(JSON, "cuda", "", [REMOTE], written.append)
        for times in range(count):
            rows.add(Case(REMOTE, 1000, times, run_of(50), 3))
        rows.end()
        told = json.loads("".join(written))
        assert [row["times"] for row in told["rows"]] == list(range(count))
        assert (told["schema"], told["version"], told["left_out"]) == ("waywiser.offload", 1, {})


# Each form and each signal once for every change; all pairs in the lane `machines`.
@pytest.mark.parametrize(
    ("form", "sent"),
    [
        pytest.param(form, sent, marks=() if at == of else pytest.mark.long)
        for at, form in enumerate(["", "--json", "--csv"])
        for of, sent in enumerate([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    ],
)
def test_each_row_is_printed_as_soon_as_it_is_measured(form: str, sent: signal.Signals) -> None:
    """The sums of the second row take the CPU alone half a minute: nobody waits for them."""
    words = ["bench", "offload", "--backend", "virtual_gpu", "--sizes", "4M", "--times", "1,100000", "--road", "pinned"]
    bench = subprocess.Popen([*COMMAND, *words, *form.split()], stdout=subprocess.PIPE, text=True)
    assert bench.stdout is not None
    out = ""
    while "local, pinned" not in out:  # the last of the first rows
        line = bench.stdout.readline()
        assert line, "it has ended"
        out += line
    bench.send_signal(sent)
    out += bench.stdout.read()
    assert bench.wait(60) == 128 + sent
    if form == "--json":
        assert [row["road"] for row in json.loads(out)["rows"]] == [REMOTE, LOCAL, LOCAL_PINNED]


def test_the_server_of_a_killed_benchmark_ends_too(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from waywiser.bench.own_server import own_server
with own_server(Path({str(tmp_path)!r}), True, 1 << 20) as (address, key):
    print(address, flush=True)
    input()
"""
    bench = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert bench.stdout is not None
    host, port = bench.stdout.readline().strip().split(":")
    socket.create_connection((host, int(port)), PATIENCE).close()
    bench.kill()
    bench.wait(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    with pytest.raises(ConnectionRefusedError):
        while time.monotonic() < deadline:
            with contextlib.suppress(ConnectionResetError):  # it ends while it has not taken the connection yet
                socket.create_connection((host, int(port)), PATIENCE).close()


def test_a_wrong_sum_ends_the_run() -> None:
    class Wrong(LocalSide):
        def add(self, a, b, times):  # type: ignore[no-untyped-def]
            result, run = super().add(a, b, times)
            result[-1] = np.nextafter(result[-1], 9, dtype=np.float32)
            return result, run

    side = Wrong(ww.virtual_gpus(1))
    with pytest.raises(ww.CorruptionError, match="local, pageable: the sum of 1000 elements is not that of the CPU"):
        list(cases({LOCAL: side}, [4000], [2], 0.1, lambda *_: None))


@pytest.mark.parametrize("pinned", [False, True])
def test_the_gpu_adds_as_the_cpu_does(pinned: bool) -> None:
    draw = np.random.default_rng(3)
    side = LocalSide(ww.virtual_gpus(1), pinned)
    for count in (1001, 7, 30_001):
        a, b = draw.random(count, np.float32), draw.random(count, np.float32)
        result, run = side.add(a, b, 7)
        np.testing.assert_array_equal(result, added(a, b, 7))
        assert 0 < run.at("device") <= run.at("client_compute") < run.whole


def test_figures_of_a_server_and_of_this_machine() -> None:
    code, out, errors = run(*SMALL, "--json")
    assert code == 0, errors
    told = json.loads(out)
    assert told["backend"] == "virtual_gpu" and "Virtual GPUs" in told["warning"]
    assert told["left_out"] == {}
    rows = told["rows"]
    assert [(row["road"], row["elements"], row["times"]) for row in rows] == [
        (road, elements, times)
        for elements in (1000, 10000)
        for times in (1, 3)
        for road in (*map(remote_road, DATA_ROADS), LOCAL, LOCAL_PINNED)
    ]
    for row in rows:
        assert all(row[f"{point}_us"] > 0 for point in POINTS)
        expected = row["client_input_us"] + row["device_us"] + row["client_output_us"] - row["server_compute_us"]
        assert row["overhead_us"] == pytest.approx(expected)
        assert row["whole_less_device_us"] == pytest.approx(row["whole_us"] - row["device_us"])
        assert row["device_us"] <= row["server_compute_us"] and row["rounds"] >= 3
    for row in (row for row in rows if not row["road"].startswith("local")):
        spans, error = row["spans_us"], row["clock_error_us"]
        assert set(spans) == set(POINTS) - {"device"}
        for point, (begin, end) in spans.items():  # on one clock, within its error
            assert -error <= begin <= end <= row["whole_us"] + error + 1e6 * point.startswith("server_output")
        assert spans["client_compute"][0] <= spans["server_compute"][0] + error
        assert spans["server_compute"][1] <= spans["client_compute"][1] + error
        assert spans["client_output"][0] <= spans["server_output"][0] + error


def test_csv_of_another_server_and_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    server = Server(tmp_path)
    options = ("--remote", server.address, "--key", str(server.key), "--csv", "--plot", str(tmp_path / "times.svg"))
    options += ("--road", "pinned")
    code, out, errors = run(*SMALL, *options)
    assert code == 0, errors
    found = list(csv.DictReader(out.splitlines()))
    assert len(found) == 12 and all("Virtual" in row["label"] and float(row["whole_us"]) > 0 for row in found)
    assert (tmp_path / "times.svg").read_text().startswith("<?xml")
    assert server.close()[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("offload", "latency"), "offload: time it alone"),
        (("offload", "-n", "2"), "--ranks is not for offload, which times one client of a server"),
        (("offload", "--sizes", "5"), "--sizes are the bytes of one array of float32 numbers"),
        (("offload", "--times", "0"), "--times '0': write numbers from 1 to 100000"),
        (("offload", "--backend", "host"), "write --backend auto|cuda|virtual_gpu"),
        (("offload", "--json", "--csv"), "--json and --csv: write one of them"),
        (("offload", "--backend", "virtual_gpu", "--remote", "nowhere", "--key", "/none"), "/none"),
        (
            ("latency", "--times", "3"),
            "--remote, --key, --times, --road, --network and --data-plain are for `waywiser bench offload`",
        ),
        (("offload", "--road", "pined"), "pined"),
    ],
)
def test_what_does_not_fit_is_one_line(words: tuple[str, ...], says: str) -> None:
    code, out, errors = run("bench", *words)
    assert (code, out) == (2, "") and says in errors.splitlines()[-1], errors
