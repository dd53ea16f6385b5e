"""Roads of arrays to a server's GPU: measured by `waywiser tune --remote`, kept in a file, chosen by size."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_jobs import COMMAND, runtime_folder
from remote_gpu import Server, server

import waywiser as ww
from waywiser.offload.client import DATA_ROADS
from waywiser.offload.roads import DIRECTIONS, Price, Roads, RoadTime, keep, kept, measured, price_line

__all__ = ["runtime_folder", "server"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
TIMES = [
    RoadTime("input", 1000, "direct", 1.0),
    RoadTime("input", 1000, "pinned", 2.0),
    RoadTime("input", 100000, "direct", 9.0),
    RoadTime("input", 100000, "pinned", 5.0),
    RoadTime("output", 1000, "pageable", 3.0),
    RoadTime("output", 1000, "pipelined", 3.0),
]


def run(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_fastest_road_at_the_nearest_size_is_chosen() -> None:
    roads = Roads(TIMES)
    assert [roads.best("input", nbytes) for nbytes in (0, 1, 1000, 9999, 10001, 1 << 40)] == [
        "direct", "direct", "direct", "direct", "pinned", "pinned",
    ]  # fmt: skip
    assert roads.best("output", 1 << 30) == "pageable"  # of equal ones the first
    with pytest.raises(ww.InputError, match="no road was measured for output"):
        Roads(TIMES[:4])


def test_roads_of_unencrypted_arrays_are_chosen_by_themselves(tmp_path: Path) -> None:
    plain = [RoadTime("input", 1000, "direct", 0.75, True), RoadTime("input", 1000, "pinned", 0.5, True)]
    roads = Roads([*TIMES, *plain])
    assert roads.prices() == [Price("input", 1000, 1.0, 0.5)]
    assert price_line(roads.prices()[0]) == "input of 1000 B: 1.00 s encrypted, 500 ms not: 2.00 times"
    assert (roads.best("input", 1000), roads.best("input", 1000, plain=True)) == ("direct", "pinned")
    assert roads.best("output", 1000, plain=True) == "pageable"  # only encrypted ones were measured
    assert Roads(TIMES).prices() == []
    keep(tmp_path / "file", "a:1", 0, "one", roads)
    again = kept(tmp_path / "file", "a:1", 0)
    assert again is not None and again.times == roads.times


def test_what_is_kept_is_of_one_gpu_of_one_server(tmp_path: Path) -> None:
    file = tmp_path / "new" / "remote_roads.json"
    assert kept(file, "a:1", 0) is None
    keep(file, "a:1", 0, "one", Roads(TIMES))
    keep(file, "a:1", 1, "two", Roads(TIMES))
    other = [RoadTime(each.direction, each.nbytes, each.road, 10 - each.seconds) for each in TIMES]
    keep(file, "a:1", 0, "one", Roads(other))
    first, second = kept(file, "a:1", 0), kept(file, "a:1", 1)
    assert first is not None and second is not None and kept(file, "b:1", 0) is None
    assert (first.times, second.times) == (other, TIMES)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda value: value.update(version=2), '"version" is 2; this program reads 1'),
        (lambda value: value.pop("servers"), '"servers" is missing'),
        (lambda value: value["servers"][0].update(gpu=-1), "gpu"),
        (lambda value: value["servers"][0]["times"][0].update(road="fast"), "road"),
        (lambda value: value["servers"][0]["times"][0].update(seconds=0), "seconds"),
        (lambda value: value["servers"][0]["times"].pop(), "no road was measured for output"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(change: Any, why: str, tmp_path: Path) -> None:
    file = tmp_path / "remote_roads.json"
    keep(file, "a:1", 0, "one", Roads(TIMES[:5]))
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))
    with pytest.raises(ww.InputError) as told:
        kept(file, "a:1", 0)
    assert why in str(told.value) and str(file) in str(told.value) and "\n" not in str(told.value)


def test_a_program_uses_what_was_measured(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYWISER_RESULTS", str(tmp_path))
    keep(tmp_path / "remote_roads.json", server.address, 0, "one", Roads(TIMES))
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
        with pytest.raises(ww.InputError, match="no road was measured for input"):
            measured(gpu, [gpu.memory], 0.1, lambda *_: None)


def test_tune_remote_measures_all_gpus_of_a_server(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    words = ("tune", "--remote", server.address, "--key", str(server.key), "--results", str(folder), "--budget", "2")
    code, out, errors = run(*words)
    assert code == 0, errors
    lines = out.splitlines()
    assert lines[0].startswith("# virtual") and "VIRTUAL GPUS" in lines[0]
    assert lines[1].split() == ["#", "Bytes", *DATA_ROADS, "chosen"]
    assert all(line.split()[-1] in DATA_ROADS for line in lines[2:10])
    assert lines[-1] == f"roads: {folder / 'remote_roads.json'}"
    for gpu in range(2):
        roads = kept(folder / "remote_roads.json", server.address, gpu)
        assert roads is not None and {each.road for each in roads.times} == set(DATA_ROADS)
    code, out, errors = run(*words, "--json")
    assert code == 0, errors
    gpus = json.loads(out)["gpus"]
    assert len(gpus) == 2 and all(
        min(row["seconds"].values()) == row["seconds"][row["chosen"]] for row in gpus[0]["rows"]
    )


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
