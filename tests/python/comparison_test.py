"""`waywiser compare` reports only changes beyond the intervals."""

from __future__ import annotations

import json
from pathlib import Path

import made_up
import pytest

from waywiser.cli import run


def _write(folder: Path, profile: made_up.Json) -> str:
    folder.mkdir()
    (folder / "profile.json").write_text(json.dumps(profile))
    (folder / "plan.json").write_text(json.dumps(made_up.plan(profile)))
    return str(folder)


def _compare(capsys: pytest.CaptureFixture[str], old: str, new: str) -> made_up.Json:
    assert run(["compare", old, new, "--json"]) == 0
    answer: made_up.Json = json.loads(capsys.readouterr().out)
    return answer


def test_the_same_is_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = (_write(tmp_path / name, made_up.profile(0)) for name in "ab")
    assert not any(_compare(capsys, old, new).values())
    assert run(["compare", old, new]) == 0
    assert capsys.readouterr().out.strip() == "no difference beyond the intervals"


def test_rows_of_a_rail_and_of_jobs_that_encrypt_are_compared_with_their_like(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [_write(tmp_path / name, made_up.profile(0)) for name in "ab"]
    for folder in folders:
        file = Path(folder) / "plan.json"
        plan = json.loads(file.read_text())
        row = next(row for row in plan["rows"] if "pairs" in row)
        others = [
            {**row, "encrypted": True, "ways": made_up.ways("tls")},
            {**row, "rail": "a", "ways": made_up.ways("ucx")},
        ]
        file.write_text(json.dumps({**plan, "rows": [*plan["rows"], *others]}))
    assert not any(_compare(capsys, *folders).values())


def test_inside_the_intervals_is_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = _write(tmp_path / "a", made_up.profile(0))
    assert _compare(capsys, old, _write(tmp_path / "b", made_up.profile(0, slower=1.01)))["changes"] == []


def test_slower_paths_are_told_once_for_their_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured, later = made_up.profile(0), made_up.profile(0)
    for point in later["series"][0]["points"]:
        if point["bytes"] >= 1 << 20:
            for key in ("seconds", "low", "high", "p50", "p99"):
                point[key] *= 2
    found = _compare(capsys, _write(tmp_path / "a", measured), _write(tmp_path / "b", later))["changes"]
    assert [(one["what"], one["from_bytes"], one["to_bytes"]) for one in found] == [("slower", 1 << 20, 1 << 30)]
    assert found[0]["ratio"] == pytest.approx(2)


def test_two_machines_are_said_to_be_two_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write(tmp_path / "a", 4)
    made_up.write(tmp_path / "b", 0)
    assert run(["compare", "recorded-4xh200", str(tmp_path / "a")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("These are two different machines")
    assert any("fingerprint" in line for line in lines[:8])
    assert len(lines) < 250 and any("more: --json shows all" in line for line in lines)
    assert run(["compare", str(tmp_path / "a"), str(tmp_path / "a")]) == 0
    assert "two different machines" not in capsys.readouterr().out


def test_paths_choices_and_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured, later = made_up.profile(0), made_up.profile(0)
    gone = measured["series"][0]["path"]
    later["series"] = [one for one in later["series"] if one["path"] != gone]
    later["state"]["versions"]["ucx"] = "1.23.0"
    old, new = _write(tmp_path / "a", measured), _write(tmp_path / "b", later)
    found = _compare(capsys, old, new)
    assert found["vanished"] == [f"host0>host0 {made_up.label(gone)}"]
    assert found["appeared"] == []
    assert found["state"] == [{"what": "versions.ucx", "old": "1.22.0", "new": "1.23.0"}]
    assert found["choices"][0]["old"] == made_up.label(gone)
    assert run(["compare", old, f"{new}/profile.json"]) == 0
    printed = capsys.readouterr().out
    assert "vanished: host0>host0" in printed
    assert "versions.ucx" in printed
