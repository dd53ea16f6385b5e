"""`waywiser tune --storage`, and what explains its rows."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from verb_runs import Run

import waywiser as ww
from waywiser import _core
from waywiser.errors import CorruptionError, InputError
from waywiser.plan import read_plan
from waywiser.tune import storage_tuning
from waywiser.tune.storage_tuning import measured, room_in
from waywiser.tune.storage_ways import CACHED, GPU, HOST, MANY, READ, WORKS, WRITE, Why, ways_of

NONE: Why = {
    **dict.fromkeys(("buffered", "io_uring", "direct"), (HOST, None, None)),
    "mmap": (HOST, None, "only to read"),
    "cufile": (GPU, None, None),
}


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 1 MiB."""
    monkeypatch.setattr(storage_tuning, "_MOST_BYTES", 1 << 20)
    monkeypatch.setattr(storage_tuning, "_LEAST_BYTES", 1 << 20)


def quiet(*_: object) -> None:
    """Shows no progress."""


def test_ways_that_do_not_serve_are_left_out() -> None:
    assert ways_of(HOST, READ, 4096, NONE, 4) == ["buffered", "io_uring", "direct", "mmap"]
    assert ways_of(GPU, READ, 4096, NONE, 4) == ["buffered", "io_uring", "direct", "mmap", "cufile"]
    larger = [way for way in ways_of(GPU, READ, 8 << 20, NONE, 4) if "bounce=" in way]
    assert larger and not set(larger) & set(ways_of(HOST, READ, 8 << 20, NONE, 4))
    assert not [way for way in ways_of(HOST, WRITE, 8 << 20, NONE, 4) if way.startswith("mmap")]
    assert {way.split("(")[0] for way in ways_of(HOST, MANY, 4096, {**NONE, "direct": (HOST, "no", "no")}, 4)} == {
        "buffered",
        "io_uring",
        "mmap",
    }


@pytest.mark.parametrize("work", [READ, CACHED, WRITE])
def test_threads_that_copy_are_no_more_than_the_processors(work: str) -> None:
    few, many = (ways_of(GPU, work, 64 << 20, NONE, processors) for processors in (2, 16))
    assert "buffered(threads=2)" in few and "direct(chunk=1M,threads=16)" in few, "its threads wait for the device"
    assert not {"buffered(threads=4)", "buffered(bounce=1M,lanes=8)", "mmap(chunk=1M,threads=4)"} & set(few)
    assert {"buffered(threads=16)", "buffered(bounce=1M,lanes=16)"} <= set(many) and set(few) < set(many)


@pytest.mark.usefixtures("little")
def test_a_short_measurement_gives_rows_for_each_work_and_leaves_nothing(tmp_path: Path, run: Run) -> None:
    times = measured(tmp_path, 0, quiet, sizes=(4096, 65536))
    assert list(tmp_path.iterdir()) == []
    found = {one["operation"] for one in times.series}
    assert found == set(WORKS) or times.notes
    assert all(point["verified"] for one in times.series for point in one["points"])
    file = tmp_path / "plan.json"
    rows = storage_tuning.keep(file, times)
    assert {row.operation for row in rows} == found
    again = storage_tuning.keep(file, times)
    assert len(again) == len(read_plan(file.read_bytes(), "plan").rows) == len(rows)
    with ww.File(tmp_path / "a", "w", plan=file) as written:
        written.write(np.ones(100_000))
        assert written.way(4096) == next(row.way for row in rows if row.operation == WRITE and row.from_bytes == 0)
    results = ("-r", str(tmp_path))
    _, told, _ = run("explain", "read", str(tmp_path / "a"), "64K", *results, "--json")
    assert {one["operation"] for one in json.loads(told)} == found - {WRITE}
    assert "file write of 64 KiB, storage" in run("explain", "write", str(tmp_path / "new"), "64K", *results)[1]


@pytest.mark.usefixtures("little")
def test_arrays_of_gpus_have_rows_of_their_own(tmp_path: Path) -> None:
    gpus = ww.virtual_gpus(1)
    times = measured(tmp_path, 0, quiet, sizes=(65536,), gpus=gpus)
    assert {one["memory"] for one in times.series} == {HOST, GPU}
    assert any(note.startswith("cufile does not serve it: libcufile") for note in times.notes)
    file = tmp_path / "plan.json"
    rows = storage_tuning.keep(file, times)
    (chosen,) = (row.way for row in rows if (row.memory, row.operation) == (GPU, WRITE))
    with ww.File(tmp_path / "a", "w", plan=file, gpus=gpus) as written:
        written.write(gpus.array(np.ones(100_000)))
        assert written.way(65536, to_gpu=True) == chosen


def test_how_cufile_moves_bytes_is_said_where_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "cufile_state", lambda: (None, "compatibility mode"))
    assert storage_tuning.how_cufile_moves((HOST, GPU), NONE) == ["cufile moves bytes by: compatibility mode"]
    assert storage_tuning.how_cufile_moves((HOST,), NONE) == []
    refused: Why = {**NONE, "cufile": (GPU, "no libcufile", "no libcufile")}
    assert storage_tuning.how_cufile_moves((HOST, GPU), refused) == []


class Usage:
    """What shutil.disk_usage returns."""

    def __init__(self, free: int) -> None:
        self.free = free


def test_a_disk_without_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_tuning.shutil, "disk_usage", lambda _: Usage(100 << 20))
    with pytest.raises(InputError, match="104857600 bytes are free"):
        room_in(tmp_path)
    monkeypatch.setattr(storage_tuning.shutil, "disk_usage", lambda _: Usage(400 << 20))
    assert room_in(tmp_path) == 20 << 20


@pytest.mark.usefixtures("little")
def test_a_file_system_that_keeps_its_pages_has_no_reads_from_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_tuning.Turns, "can_be_cold", lambda _: False)
    times = measured(tmp_path, 0, quiet, sizes=(4096,))
    assert {one["operation"] for one in times.series} == {"file_read_cached", "file_write"}
    assert any("keeps its pages" in note for note in times.notes)


def test_other_bytes_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = storage_tuning.Turns(tmp_path, 1 << 20)
    turns._bytes[5000] ^= 1
    with pytest.raises(CorruptionError, match="came back as others"):
        turns.take(HOST, "file_read_cached", "buffered", (1 << 20) - 4096)
        turns.take(HOST, "file_read_cached", "buffered", 1 << 20)


def test_an_interrupted_measurement_removes_its_files(tmp_path: Path) -> None:
    program = f"""if True:
        import os, pathlib, signal
        from waywiser.tune.storage_tuning import measured
        def show(done, *_):
            if done == 1:
                os.kill(os.getpid(), signal.SIGINT)
        measured(pathlib.Path({str(tmp_path)!r}), 0, show, sizes=(4096,))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "KeyboardInterrupt" in done.stderr and done.returncode in (-signal.SIGINT, 130)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tune", "--storage", "/none"), "--storage /none: is no folder"),
        (("tune", "--storage", ".", "--machine", "dgx-2"), "--storage '.': dgx-2 has nvme-gen3"),
        (("tune", "--storage", ".", "--nodes", "2"), "--nodes is not for --storage"),
        (("explain", "read", "a"), "write read FILE SIZE"),
        (("explain", "write", "/none/a", "4K"), "/none/a: No such file"),
    ],
)
def test_wrong_words_are_one_line(tmp_path: Path, run: Run, words: tuple[str, ...], said: str) -> None:
    storage_tuning.keep(tmp_path / "plan.json", made_up())
    code, out, error = run(*words, "-r", str(tmp_path))
    assert (code, out) == (2, "") and said in error and error.count("\n") == 1, error


def made_up() -> storage_tuning.StorageTimes:
    """Times of one way."""
    point = json.loads(_core.contest(1, lambda *_: [1.0], least=1, most=1)[0].point(4096))
    row = {"operation": WRITE, "way": "buffered", "points": [point], "memory": "host", "ranks": 2}
    return storage_tuning.StorageTimes("storage made up", [{**row, "partner": "storage made up"}])


def test_the_file_system_of_a_file_that_is_not_there_is_its_folders(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    name = _core.storage_of(str(tmp_path / "a"))
    assert name.startswith("storage ")
    for path in (tmp_path / "a", tmp_path / "b", tmp_path):
        assert storage_tuning.storage_of_path(path) == name
