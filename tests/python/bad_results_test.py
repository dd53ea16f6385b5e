"""Bad input to the verbs: one line on standard error, exit code 2, old files as they were."""

from __future__ import annotations

import copy
import errno
import gzip
import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import made_up
import pytest
from fake_core import FakeCore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from waywiser.cli import run

pytestmark = pytest.mark.slow


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    fake = FakeCore(gpus=0)
    fake.install(monkeypatch)
    return fake


def _one_line(capsys: pytest.CaptureFixture[str]) -> str:
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("waywiser:")]
    assert len(error) == 1
    return error[0]


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def _edit(**fields: Any) -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))

    return edit


def _directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _bomb(file: Path) -> None:
    file.unlink()
    file.with_name("profile.json.gz").write_bytes(gzip.compress(b"[" + b" " * (257 << 20), 1))


def _cut_gzip(file: Path) -> None:
    whole = gzip.compress(file.read_bytes())
    file.unlink()
    file.with_name("profile.json.gz").write_bytes(whole[: len(whole) // 2])


def _many(file: Path) -> None:
    """Zipped 100 kB, plain 100 MB."""
    file.unlink()
    file.with_name("profile.json.gz").write_bytes(gzip.compress(b'{"series":[' + b"{}," * (33 << 20) + b"{}]}", 1))


def _many_keys(file: Path) -> None:
    file.write_text("{" + ",".join(f'"{number}":0' for number in range(30_000)) + "}")


def _twice(file: Path) -> None:
    value = json.loads(file.read_text())
    file.write_text(json.dumps({**value, "series": [*value["series"], value["series"][0]]}))


def _outside(file: Path) -> None:
    value = json.loads(file.read_text())
    value["series"][0]["points"][0]["low"] = 1.0
    file.write_text(json.dumps(value))


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (lambda file: file.write_text(file.read_text()[:2000]), "not valid JSON"),
    "empty": (lambda file: file.write_text(""), "not valid JSON"),
    "binary": (lambda file: file.write_bytes(b"\xff\xfe\x00"), "not valid JSON"),
    "deep": (lambda file: file.write_text("[" * 200_000), "nested deeper than 64"),
    "digits": (lambda file: file.write_text('{"version": ' + "9" * 6000 + "}"), "not valid JSON"),
    "list": (lambda file: file.write_text("[]"), "must be a JSON object"),
    "infinite": (lambda file: file.write_text('{"schema": Infinity}'), "not valid JSON"),
    "schema": (_edit(schema="nccl"), '"schema"'),
    "version": (_edit(version=99), '"version" is 99'),
    "directory": (_directory, "directory"),
    "fields": (_edit(series=[{}]), "series[0]"),
    "negative": (
        _edit(classes=[{"name": "a", "members": [["gpu0", "gpu-1"]], "processes": 1}]),
        "profile.json: 'gpu-1' is not a place",
    ),
    "not for a terminal": (
        _edit(classes=[{"name": "a", "members": [["gpu0", "g\x7fp\u202eu1"]], "processes": 1}]),
        "profile.json: 'g p u1' is not a place",
    ),
    "outside its interval": (_outside, "series[0]: 'seconds' must lie between 'low' and 'high'"),
    "missing": (lambda file: file.unlink(), "no profile.json"),
    "gzip bomb": (_bomb, "larger than 256 MiB"),
    "cut gzip": (_cut_gzip, "ends in the middle"),
    "many values": (_many, "more than 5000000 values"),
    "many keys": (_many_keys, "an object has too many keys"),
    "twice": (_twice, "is there twice for"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("verb", [["plan"], ["explain", "host0", "host0", "1K"], ["report"], ["calibrate"]])
def test_broken_profile(
    verb: list[str], name: str, core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up.write(tmp_path, gpus=0)
    BROKEN[name][0](tmp_path / "profile.json")
    before = _bytes(tmp_path)
    where = [] if verb == ["calibrate"] else ["--results"]
    assert run([*verb, *where, str(tmp_path)]) == 2
    assert BROKEN[name][1] in _one_line(capsys)
    assert _bytes(tmp_path) == before


@pytest.mark.parametrize("stem", ["plan", "verification", "topology"])
def test_broken_neighbours(stem: str, core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write(tmp_path, gpus=0)
    (tmp_path / f"{stem}.json").write_text(f'{{"schema": "waywiser.{stem}", "version": 1, "rows": 3}}')
    assert run(["report", "--results", str(tmp_path)]) == 2
    assert f"{stem}.json" in _one_line(capsys)


def test_measuring_refuses_a_broken_profile(core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write(tmp_path, gpus=0)
    (tmp_path / "profile.json").write_text("{")
    before = _bytes(tmp_path)
    assert run(["measure", "--results", str(tmp_path)]) == 2
    assert "--fresh" in _one_line(capsys)
    assert _bytes(tmp_path) == before
    assert not core.calls


@pytest.mark.parametrize("verb", ["tune", "measure", "plan", "report"])
def test_output_that_cannot_be_written(
    verb: str, core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up.write(tmp_path / "from", gpus=0)
    (tmp_path / "file").write_text("mine")
    source = {"plan": ["--profile", f"{tmp_path}/from/profile.json"], "report": ["--results", f"{tmp_path}/from"]}
    for target in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/1/nowhere")):
        where = "--output" if verb == "report" else "--results"
        assert run([verb, where, str(target), *source.get(verb, [])]) == 2
        assert str(target) in _one_line(capsys)
    assert (tmp_path / "file").read_text() == "mine"
    assert not core.calls


def test_full_disk_leaves_old_files(
    core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up.write(tmp_path, gpus=0)
    before = _bytes(tmp_path)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for verb in (["measure", "--fresh", "-r"], ["tune", "-r"], ["plan", "-r"], ["report", "--results"]):
        assert run([*verb, str(tmp_path)]) == 2
        assert "No space left" in _one_line(capsys)
    assert _bytes(tmp_path) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB; needs the right to mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("cannot mount a tmpfs here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_really_full_disk(core: FakeCore, small_disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write(small_disk, gpus=0)
    before = _bytes(small_disk)
    assert run(["report", "--results", str(small_disk)]) == 2
    assert "No space left" in _one_line(capsys)
    after = _bytes(small_disk)
    assert before.items() <= after.items()
    assert not (small_disk / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["measure", "--pairs", "some"], "--pairs 'some'"),
        (["measure", "--operations", "latency,dance"], "'dance'"),
        (["measure", "--format", "xml"], "'xml'"),
        (["measure", "--backend", "rocm"], "'rocm'"),
        (["measure", "--budget", "-3"], "--budget"),
        (["tune", "--budget", "soon"], "--budget"),
        (["compare", "nowhere.json", "nowhere.json"], "nowhere.json"),
        (["report", "--machine", "dgx-9"], "dgx-9"),
    ],
)
def test_bad_options(
    arguments: list[str],
    word: str,
    core: FakeCore,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    assert word in _one_line(capsys)
    assert list(tmp_path.iterdir()) == []


# ---- mutations of good files ----

_WORTH = [None, True, -1, 0, 1e308, -0.0, 1 << 70, "", "gpu99999", "host0", "\ud800", "\x1b[2J", [], {}, [[]], 0.5]


def _places_in(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value inside."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        found += [(value, key), *_places_in(value[key])]
    return found


def _mutate(document: Any, seed: int) -> str:
    chance = random.Random(seed)
    document = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        container, key = chance.choice(_places_in(document))
        if chance.random() < 0.3:
            del container[key]
        else:
            container[key] = chance.choice(_WORTH)
    text = json.dumps(document)
    if chance.random() < 0.15:
        cut = chance.randrange(len(text))
        text = text[:cut] + chance.choice(["", "}", '"', "\x00", "1e999"]) + text[cut + chance.randint(0, 3) :]
    return text


def _small(gpus: int) -> dict[str, Any]:
    profile = made_up.profile(gpus)
    plan = made_up.plan(profile)
    plan["rows"] = plan["rows"][:6]
    verification = made_up.verification(plan)
    profile["series"] = [{**one, "points": one["points"][::5]} for one in profile["series"][:6]]
    return {"profile": profile, "plan": plan, "verification": verification, "topology": made_up.topology(gpus)}


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(stem=st.sampled_from(["profile", "profile", "plan", "verification", "topology"]), seed=st.integers(0, 1 << 30))
def test_mutated_files_end_in_0_or_one_line(
    stem: str, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waywiser.report.page._plotly", lambda: b"")
    documents = _small(0)
    for name, value in documents.items():
        text = _mutate(value, seed) if name == stem else json.dumps(value)
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    (tmp_path / "other.json").write_text(json.dumps(documents["profile"]))
    folder, profile = str(tmp_path), str(tmp_path / "profile.json")
    for verb in (
        ["report", "--no-pictures", "--results", folder],
        ["compare", profile, str(tmp_path / "other.json")],
        ["compare", str(tmp_path / "other.json"), folder],
    ):
        capsys.readouterr()
        code = run(verb)
        printed = capsys.readouterr()
        assert code in (0, 2), (verb, printed.err)
        assert "Traceback" not in printed.err
        assert len(printed.err.splitlines()) == (1 if code == 2 else 0)
        assert "\x1b" not in printed.err
