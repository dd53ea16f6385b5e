"""Roads of arrays to a server's GPU: measured by `waywiser tune --remote`, kept in a file, chosen by size."""

from __future__ import annotations

import json
import subprocess
import types
from pathlib import Path
from typing import Any

import made_up
import numpy as np
import pytest
from rank_jobs import COMMAND, runtime_folder
from remote_gpu import Server, server

import waywiser as ww
from waywiser.offload.client import DATA_ROADS
from waywiser.offload.roads import DIRECTIONS, Price, keep, kept, measured, operation, price_line
from waywiser.results import Results

__all__ = ["runtime_folder", "server"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
Times = dict[int, float]


def series(way: str, direction: Any, times: Times, plain: bool = False) -> dict[str, Any]:
    about = {"samples": 1, "cpu_seconds": 0.0, "verified": True}
    of_time = ("seconds", "low", "high", "p50", "p99")
    points = [{"bytes": size, **dict.fromkeys(of_time, seconds), **about} for size, seconds in times.items()]
    return {"operation": operation(direction, plain), "memory": "gpu", "ranks": 2, "way": way, "points": points}


INPUT = [series("direct", "input", {1000: 1.0, 100000: 9.0}), series("pinned", "input", {1000: 2.0, 100000: 5.0})]
SERIES = [*INPUT, series("pageable", "output", {1000: 3.0}), series("pipelined", "output", {1000: 3.5})]
PLAIN = [series("direct", "input", {1000: 0.75}, True), series("pinned", "input", {1000: 0.5}, True)]


def run(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_road_of_each_size_is_the_plans(tmp_path: Path) -> None:
    roads = keep(tmp_path / "plan.json", "a:1", 0, SERIES)
    sizes = (0, 1, 1000, 100000, 1 << 40)
    assert [roads.best("input", nbytes) for nbytes in sizes] == ["direct", "direct", "direct", "pinned", "pinned"]
    row = roads.rows("input")[0]
    assert (row.way, row.runner_up and row.runner_up.way, row.partner) == ("direct", "pinned", "a:1 gpu0")
    assert roads.best("output", 1 << 30) == "pageable" and roads.prices() == []
    with pytest.raises(ww.InputError, match="no road was measured for output"):
        keep(tmp_path / "other.json", "a:1", 0, INPUT)


def test_roads_of_unencrypted_arrays_are_chosen_by_themselves(tmp_path: Path) -> None:
    roads = keep(tmp_path / "plan.json", "a:1", 0, [*SERIES, *PLAIN])
    assert roads.prices() == [Price("input", 1000, 1.0, 0.5)]
    assert price_line(roads.prices()[0]) == "input of 1000 B: 1.00 s encrypted, 500 ms not: 2.00 times"
    assert (roads.best("input", 1000), roads.best("input", 1000, plain=True)) == ("direct", "pinned")
    assert roads.best("output", 1000, plain=True) == "pageable"  # only encrypted ones were measured


def test_what_is_kept_is_of_one_gpu_of_one_server(tmp_path: Path) -> None:
    file = tmp_path / "new" / "plan.json"
    assert kept(file, "a:1", 0) is None
    keep(file, "a:1", 0, SERIES)
    keep(file, "a:1", 1, SERIES)
    other = [series("pinned", "input", {1000: 1.0}), series("direct", "output", {1000: 1.0})]
    keep(file, "a:1", 0, other)
    first, second = kept(file, "a:1", 0), kept(file, "a:1", 1)
    assert first is not None and second is not None and kept(file, "b:1", 0) is None
    assert [roads.best("input", 1000) for roads in (first, second)] == ["pinned", "direct"]
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_the_plan_keeps_its_other_rows_and_a_new_plan_keeps_the_roads(tmp_path: Path) -> None:
    made_up.write(tmp_path, 2)
    before = json.loads((tmp_path / "plan.json").read_text())["rows"]
    keep(tmp_path / "plan.json", "a:1", 0, SERIES)
    rows = json.loads((tmp_path / "plan.json").read_text())["rows"]
    assert rows[: len(before)] == before and len(rows) == len(before) + 3
    again = json.loads((tmp_path / "plan.json").read_text())
    Results(tmp_path).write_plan(json.dumps({**again, "rows": before[:5]}))
    assert json.loads((tmp_path / "plan.json").read_text())["rows"] == [*before[:5], *rows[-3:]]


def test_explain_shows_the_roads(tmp_path: Path) -> None:
    keep(tmp_path / "plan.json", "a:1", 0, [*SERIES, *PLAIN])
    code, out, errors = run("explain", "remote", "a:1", "50K", "--results", str(tmp_path), "--json")
    assert code == 0, errors
    rows = {row["operation"]: row for row in json.loads(out)}
    assert rows.keys() == {"remote_input", "remote_output", "remote_input_plain"}
    of = rows["remote_input"]
    assert of["ways"][0]["way"] == of["chosen"] and of["ways"][1]["ratio"] > 1
    code, out, errors = run("explain", "remote", "a:1", "1000", "--results", str(tmp_path))
    assert code == 0 and "remote input of 1000 B, a:1 gpu0" in out and "1.00 s" in out, errors
    for words in (("b:1", "1000"), ("a:1",)):
        code, out, errors = run("explain", "remote", *words, "--results", str(tmp_path))
        assert (code, out) == (2, "") and errors.count("\n") == 1, errors


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda value: value.update(version=4), '"version" is 4'),
        (lambda value: value.update(version=2), "`waywiser plan` makes one"),
        (lambda value: value.pop("machine"), "'machine' is missing"),
        (lambda value: value["rows"][0].update(ranks=-1), "ranks"),
        (lambda value: value["rows"][0].update(ways=[{"way": "fast", "ratio": 1}]), "'fast' is not one of the roads"),
        (lambda value: value["rows"][0]["expected"][0].update(seconds=0), "seconds"),
        (lambda value: value["rows"].pop(), "no road was measured for output"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(change: Any, why: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    keep(file, "a:1", 0, SERIES)
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))
    with pytest.raises(ww.InputError) as told:
        kept(file, "a:1", 0)
    assert why in str(told.value) and str(file) in str(told.value) and "\n" not in str(told.value)


def test_a_program_uses_what_was_measured(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_RESULTS", str(tmp_path))
    keep(tmp_path / "plan.json", server.address, 0, SERIES)
    small, large = np.arange(100.0), np.arange(50000.0)
    with ww.remote(server.address, key=server.key) as gpu:
        asked: list[str] = []
        core = gpu._core
        monkeypatch.setattr(gpu, "_core", Listening(core, asked))
        arrays = [gpu.array(small), gpu.array(large)]
        for array, values in zip(arrays, (small, large), strict=True):
            np.testing.assert_array_equal(array.get(), values)
        assert asked == ["direct", "pinned", "pageable"]
        np.testing.assert_array_equal(gpu.run("add", *[arrays[0]] * 2).get(), 2 * small)
        gpu.use_road("pipelined")
        assert {gpu.road(direction, 10) for direction in DIRECTIONS} == {"pipelined"}
    with ww.remote(server.address, key=server.key, gpu=1) as gpu:
        assert gpu.road("input", 1 << 20) == "pipelined"


class Listening:
    """The core's GPU, with the roads that it was told."""

    def __init__(self, core: Any, asked: list[str]) -> None:
        self._core, self._asked = core, asked

    def use_road(self, road: str) -> None:
        self._asked.append(road)
        self._core.use_road(road)

    def __enter__(self) -> Listening:
        self._core.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        self._core.__exit__(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)


def test_wrong_bytes_end_the_measurement(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    right = ww.RemoteArray.get

    def wrong(array: ww.RemoteArray) -> Any:
        values = right(array)
        values[-1] ^= 1
        return values

    monkeypatch.setattr(ww.RemoteArray, "get", wrong)
    with ww.remote(server.address, key=server.key) as gpu:
        with pytest.raises(ww.CorruptionError, match="direct: 4096 bytes came back as others"):
            measured(gpu, [4096], 0.1, lambda *_: None)
        with pytest.raises(ww.InputError, match="no road was measured: the server"):
            measured(gpu, [gpu.memory], 0.1, lambda *_: None)


class Counting:
    """A GPU that counts the arrays that it is given."""

    memory, name, _plain = 1 << 30, "made up", False

    def __init__(self) -> None:
        self.given: dict[str, int] = {}

    def use_road(self, road: str) -> None:
        self.road = road

    def array(self, values: Any) -> Any:
        self.given[self.road] = self.given.get(self.road, 0) + 1
        return types.SimpleNamespace(get=lambda: values)

    def synchronize(self) -> None:
        pass


def test_a_transfer_there_and_back_gives_both_times() -> None:
    gpu: Any = Counting()
    found = measured(gpu, [4096], 0.0, lambda *_: None)
    assert {point["samples"] for one in found for point in one["points"]} == {3}
    assert gpu.given == dict.fromkeys(DATA_ROADS, 4), "one turn to warm up, three that count"


def test_tune_remote_measures_all_gpus_of_a_server(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    words = ("tune", "--remote", server.address, "--key", str(server.key), "--results", str(folder), "--budget", "2")
    code, out, errors = run(*words)
    assert code == 0, errors
    lines = out.splitlines()
    assert lines[0].startswith("# virtual") and "VIRTUAL GPUS" in lines[0]
    assert lines[1].split() == ["#", "Bytes", *DATA_ROADS, "chosen"]
    assert all(line.split()[-1] in DATA_ROADS for line in lines[2:10])
    assert lines[-1] == f"plan: {folder / 'plan.json'}"
    for gpu in range(2):
        roads = kept(folder / "plan.json", server.address, gpu)
        assert roads is not None and {row.way for row in roads.rows("input")} <= set(DATA_ROADS)
        assert all("Virtual GPUs: not a measurement of any GPU" in row.why for row in roads.rows("output"))
    code, out, errors = run(*words, "--json")
    assert code == 0, errors
    gpus = json.loads(out)["gpus"]
    assert len(gpus) == 2 and all(set(row["seconds"]) == set(DATA_ROADS) for row in gpus[0]["rows"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--remote", "nowhere", "--machine", "hse-a"), "--machine is not for --remote"),
        (("--key", "file"), "--key and --data-plain are for --remote"),
        (("--remote", "nowhere", "--key", "/none"), "/none"),
    ],
)
def test_bad_options_are_one_line(words: tuple[str, ...], why: str) -> None:
    code, out, errors = run("tune", *words)
    assert (code, out) == (2, "") and why in errors.splitlines()[-1], errors
