"""Files are written whole or not at all, and files from outside are checked."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from waywiser import files
from waywiser.errors import InputError


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "folder/value.json"
    files.write_text_atomically(path, json.dumps({"schema": "s", "version": 1, "text": "é"}, ensure_ascii=False))
    assert files.read_json(path, "s", 1)["text"] == "é"
    assert [entry.name for entry in path.parent.iterdir()] == ["value.json"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "value.txt"
    files.write_text_atomically(path, "old")

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        files.write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/value\.txt: cannot write"):
        files.write_text_atomically(tmp_path / "file/value.txt", "text")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[1]", "must be a JSON object"),
        ('{"schema": "s"', "not valid JSON"),
        ('{"schema": "t", "version": 1}', '"schema" is "t", not "s"'),
        ('{"schema": "s", "version": 2}', '"version" is 2; this program reads 1'),
        ('{"schema": "s", "version": true}', '"version" is true'),
        ('{"schema": "s", "version": NaN}', "NaN is not a JSON number"),
        ("[" * 100000, "nested deeper than 64"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "value.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        files.read_json(path, "s", 1)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: cannot read: No such file"):
        files.read_json(tmp_path / "none.json", "s", 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_an_input_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "value.json"
    path.write_bytes(data)
    with pytest.raises(InputError):
        files.read_json(path, "s", 1)


def test_pipes_are_read_but_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PATIENCE", 0.05)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(InputError, match=r"fifo: cannot read: nothing came for"):
        files.read_bytes(fifo)
    ours, theirs = os.pipe()
    os.write(theirs, b"through a pipe")
    os.close(theirs)
    assert files.read_bytes(f"/dev/fd/{ours}") == b"through a pipe"
    os.close(ours)


def test_a_pipe_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LONGEST", 0.05)
    ours, theirs = os.pipe()
    with subprocess.Popen(["yes"], stdout=theirs) as writer, pytest.raises(InputError, match=r"its end did not come"):
        try:
            files.read_bytes(f"/dev/fd/{ours}", 1 << 40)
        finally:
            writer.kill()
    os.close(ours)
    os.close(theirs)


def test_no_name_and_no_bytes_end_in_a_traceback(tmp_path: Path) -> None:
    for name in (tmp_path, "a\0b", tmp_path / "none"):
        with pytest.raises(InputError, match="cannot read"):
            files.read_bytes(name)
    with pytest.raises(InputError, match="larger than 1 MiB"):
        files.read_bytes("/dev/zero", 1 << 20)
    (tmp_path / "text").write_bytes(b"abc\xff")
    with pytest.raises(InputError, match=r"text: not text in UTF-8 \(byte 3\)"):
        files.read_text(tmp_path / "text")
