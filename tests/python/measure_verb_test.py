"""`waywiser measure`: what it prints of operations that were not measured, and of CPU time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_core import FakeCore

from waywiser.cli import run

ALONE = "loaded: no class of this machine has several pairs that could move at once; streaming is the same for one pair"


def core(monkeypatch: pytest.MonkeyPatch, gpus: int, *operations: str) -> FakeCore:
    """A machine whose profile has these operations alone."""
    fake = FakeCore(gpus=gpus)
    fake.profile["series"] = [one for one in fake.profile["series"] if one["operation"] in operations]
    fake.install(monkeypatch)
    monkeypatch.setenv("COLUMNS", "160")
    return fake


@pytest.mark.parametrize("form", [[], ["--format", "table"], ["--backend", "host"]])
def test_loaded_without_several_pairs_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    fake = core(monkeypatch, 0)
    assert run(["measure", "--operations", "loaded", "--results", str(tmp_path), *form]) == 2
    assert capsys.readouterr() == ("", f"waywiser: {ALONE}\n")
    assert fake.calls == [] and not (tmp_path / "profile.json").exists()


def test_loaded_of_hosts_alone_is_refused_beside_gpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = core(monkeypatch, 4, "loaded")
    asked = ["measure", "--operations", "loaded", "--results", str(tmp_path)]
    assert run([*asked, "--backend", "host"]) == 2
    assert capsys.readouterr() == ("", f"waywiser: {ALONE}\n") and fake.calls == []
    assert run(asked) == 0


@pytest.mark.parametrize("form", [[], ["--format", "csv"], ["--format", "json"]])
def test_loaded_beside_other_operations_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    """To programs on standard error."""
    core(monkeypatch, 0)
    assert run(["measure", "--operations", "streaming,loaded", "--results", str(tmp_path), *form]) == 0
    out, err = capsys.readouterr()
    assert ALONE in (err if form else out).splitlines() and (not form or "loaded:" not in out)
    assert "json" not in form or json.loads(out)["series"] == []


def test_loaded_alone_is_in_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    core(monkeypatch, 4, "loaded")
    assert run(["measure", "--operations", "loaded", "--results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "GPU to GPU, NV18, two processes, loaded (8 of 12 pairs at once)" in out and "loaded: no" not in out


def test_what_was_left_out_of_several_operations_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    core(monkeypatch, 4, "streaming")
    assert run(["measure", "--operations", "streaming,loaded", "--results", str(tmp_path)]) == 0
    assert "loaded: nothing was measured" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("form", [[], ["--format", "table"]])
def test_cpu_time_for_a_gigabyte(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    fake = core(monkeypatch, 0, "latency", "streaming", "bidirectional")
    for one in fake.profile["series"]:
        for point in one["points"]:
            point["cpu_seconds"] = 0.25e-9 * point["bytes"]
    assert run(["measure", "--results", str(tmp_path), *form]) == 0
    assert " 250 ms " in capsys.readouterr().out
    # By the real core, which takes a minute for all operations of a large machine.
    simulated = ["--machine", "remote-t4", "--quick", "--operations", "streaming"]
    assert run(["measure", *simulated, "--results", str(tmp_path / "simulated"), *form]) == 0
    assert " 250 ms " not in capsys.readouterr().out
