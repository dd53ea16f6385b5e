"""Files as ends of paths: what programs call."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import waywiser as ww
from waywiser import _core

WAYS = ("", "buffered", "buffered(threads=2)", "direct", "io_uring", "mmap")


def values(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8)


def serves(path: Path, way: str) -> bool:
    why = {name: read for name, _, read, _ in _core.storage_mechanisms(str(path))}
    return not way or why[way.split("(")[0]] is None


@pytest.mark.parametrize("way", WAYS)
def test_arrays_and_slices_come_as_they_were_written(tmp_path: Path, way: str) -> None:
    path, wanted = tmp_path / "a", values(1_000_003)
    with ww.File(path, "w", way="" if way == "mmap" else way) as file:
        file.write(wanted[:4096])
        file.write_many([(offset, wanted[offset : offset + 99_991]) for offset in range(4096, len(wanted), 99_991)])
    assert np.array_equal(np.fromfile(path, np.uint8), wanted)
    if not serves(path, way):
        pytest.skip(f"{way} does not serve this file")
    with ww.File(path, way=way) as file:
        assert file.size == len(wanted)
        assert np.array_equal(file.read_into(np.empty_like(wanted)), wanted)
        parts = np.zeros((64, 1000), np.uint8)
        file.read_many([(7 * i * 1000 + 5, row) for i, row in enumerate(parts)])
        assert all(np.array_equal(row, wanted[7 * i * 1000 + 5 :][:1000]) for i, row in enumerate(parts))
        numbers = np.zeros(10, np.float64)
        file.read_into(numbers[2:5], 80)
        assert np.array_equal(numbers[2:5], wanted[80:104].view(np.float64))
        assert not numbers[:2].any() and not numbers[5:].any()


def test_futures_complete_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with ww.File(path, "w") as file:
        started = [file.start_write(values(5000, seed), 5000 * seed) for seed in range(4)]
        assert [each.result(60) for each in started] == [None] * 4
    with ww.File(path) as file:
        found = [file.start_read(np.empty(5000, np.uint8), 5000 * seed) for seed in range(4)]
        assert all(np.array_equal(each.result(60), values(5000, seed)) for seed, each in enumerate(found))


@pytest.mark.parametrize("started", [False, True])
def test_what_is_enqueued_on_the_stream_of_an_array_comes_before_its_bytes_move(tmp_path: Path, started: bool) -> None:
    gpus, path, wanted = ww.virtual_gpus(1), tmp_path / "a", values(30_000_000)
    stream, old, new = ww.GpuStream(gpus, 0), gpus.array(values(30_000_000, 1)), gpus.array(wanted)
    with ww.File(path, "w", gpus=gpus) as file:
        for _ in range(4):  # it takes longer than the call that follows
            stream.copy(old, new)
        if started:
            file.start_write(old, stream=stream).result(60)
        else:
            file.write(old, stream=stream)
    assert np.array_equal(np.fromfile(path, np.uint8), wanted)
    kept = gpus.empty(30_000_000, np.uint8)
    with ww.File(path, gpus=gpus) as file:
        for _ in range(4):
            stream.copy(kept, new)
        into = file.start_read(new, stream=stream).result(60) if started else file.read_into(new, stream=stream)
        assert into is new
    assert np.array_equal(kept.numpy(), wanted)


@pytest.mark.parametrize("way", ["buffered", ""])
def test_arrays_of_gpus_go_through_host_memory(tmp_path: Path, way: str) -> None:
    gpus, path, wanted = ww.virtual_gpus(2), tmp_path / "a", values(40_000_007)  # more than all buffers hold
    with ww.File(path, "w", way=way, gpus=gpus) as file:
        file.write(gpus.array(wanted[:30_000_001]))
        file.write(gpus.array(wanted[30_000_001:], 1), 30_000_001)
    assert np.array_equal(np.fromfile(path, np.uint8), wanted)
    with ww.File(path, way=way, gpus=gpus) as file:
        array, here = gpus.empty(39_000_000, np.uint8, 1), np.empty(5000, np.uint8)
        file.read_many([(77, array), (3, here)])
        assert np.array_equal(array.numpy(), wanted[77:39_000_077]) and np.array_equal(here, wanted[3:5003])
        with pytest.raises(ww.TransferError, match="ends at 40000007"):
            file.read_into(array, 2_000_000)
        assert np.array_equal(file.read_into(gpus.empty(10, np.uint8)).numpy(), wanted[:10])
    with ww.File(path) as file, pytest.raises(ww.UnavailableError, match="gpus="):
        file.read_into(array)


def test_what_cannot_be_read_is_an_error_with_path_and_offset(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(bytes(100))
    for way in WAYS:
        if serves(path, way):
            with ww.File(path, way=way) as file, pytest.raises(ww.TransferError, match=f"{path}: .*ends at 100$"):
                file.read_into(np.empty(101, np.uint8))
    with pytest.raises(ww.TransferError, match="No such file"):
        ww.File(tmp_path / "none")
    with ww.File(path) as file:
        with pytest.raises(ww.InputError, match="open to be read"):
            file.write(values(1))
        with pytest.raises(ww.InputError, match="not contiguous"):
            file.read_into(np.empty((4, 4), np.uint8)[:, 1])
    with pytest.raises(ww.InputError, match="is closed"):
        file.read_into(np.empty(1, np.uint8))
    with pytest.raises(ww.InputError, match="mode 'a'"):
        ww.File(path, "a")  # type: ignore[arg-type]
    with pytest.raises(ww.InputError, match="buffered, io_uring, direct, mmap"):
        ww.File(path, way="tape")
    for way in ("io_uring(depth=0)", "buffered(depth=2)"):
        with pytest.raises(ww.InputError, match="a way to a file has"):
            ww.File(path, way=way)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), ww.File(path, "w") as file:
        file.write(values(10))
        raise ZeroDivisionError
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_of_the_current_folder_keeps_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ww.File("a", "w") as file:
        file.write(values(10))
        monkeypatch.chdir("/")
    assert np.array_equal(np.fromfile(tmp_path / "a", np.uint8), values(10))


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    program = f"""if True:
        import resource, signal, sys
        import numpy as np
        import waywiser as ww
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for way in ("buffered", "direct", "io_uring"):
            try:
                with ww.File({str(tmp_path / "a")!r}, "w", way=way) as file:
                    file.write(np.ones(200_000, np.uint8))
            except ww.UnavailableError:
                print(way, "unavailable")
            except ww.TransferError as error:
                print(way, error)
    """
    (tmp_path / "a").write_bytes(b"before")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    lines = said.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["buffered", "direct", "io_uring"]
    assert all("cannot write" in line or "unavailable" in line for line in lines), said.stdout
    assert (tmp_path / "a").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_full_file_system_leaves_what_was_there(tmp_path: Path) -> None:
    program = f"""if True:
        import os, pathlib
        import numpy as np
        import waywiser as ww
        path = pathlib.Path({str(tmp_path)!r}) / "a"
        path.write_bytes(b"before")
        for way in ("buffered", "direct", "io_uring"):
            try:
                with ww.File(path, "w", way=way) as file:
                    file.write(np.ones(1 << 20, np.uint8))
            except (ww.TransferError, ww.UnavailableError) as error:
                print(way, error)
            print(path.read_bytes(), os.listdir(path.parent))
    """
    alone = ["unshare", *(["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"])]
    small = [*alone, "sh", "-ec", 'mount -t tmpfs -o size=256k small "$1"; shift; exec "$@"', "sh", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run([*small, "true"], capture_output=True, timeout=60).returncode:
        pytest.skip("no file system of its own can be mounted here")
    said = subprocess.run([*small, sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    lines = said.stdout.splitlines()
    assert len(lines) == 6, said.stdout + said.stderr
    assert set(lines[1::2]) == {"b'before' ['a']"}
    assert all("No space left on device" in line or "does not serve it" in line for line in lines[::2]), said.stdout
    assert f"{tmp_path / 'a'}: cannot write" in lines[0]


def test_the_plan_chooses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(5000))
    row = {"operation": "file_read_cached", "memory": "host", "ranks": 1, "from_bytes": 0, "to_bytes": 2**62}
    row |= {"partner": _core.storage_of(str(path)), "ways": [{"way": "buffered(threads=3)", "ratio": None}]}
    head = {"schema": "waywiser.plan", "version": 3, "fingerprint": "x", "machine": "m", "backend": "host"}
    rows = [{**row, "expected": [], "why": "made up"}]
    (tmp_path / "plan.json").write_text(json.dumps({**head, "simulated": False, "other_nodes": [], "rows": rows}))
    monkeypatch.delenv("WAYWISER_PLAN", raising=False)
    monkeypatch.setenv("WAYWISER_RESULTS", str(tmp_path / "none"))
    path.read_bytes()  # it is cached
    assert ww.File(path).way(100) == "buffered"
    monkeypatch.setenv("WAYWISER_RESULTS", str(tmp_path))
    assert ww.File(path).way(100) == "buffered(threads=3)"
    assert ww.File(path, way="mmap").way(100) == "mmap"
    with pytest.raises(ww.Error):
        ww.File(path, plan=tmp_path / "gone.json")
