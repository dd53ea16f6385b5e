"""`waywiser explain`: the candidates of one transfer, the reason for the choice, what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import made_up
import pytest
from fake_core import FakeCore, gpu_core

from waywiser.cli import run
from waywiser.units import format_bytes

__all__ = ["gpu_core"]


def test_explain(gpu_core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write(tmp_path)
    assert run(["explain", "gpu0", "gpu3", "64K", "--operation", "streaming", "--results", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert gpu_core.calls[-1] == ("explain", ("gpu0", "gpu3", 1, "streaming", 65536))
    assert re.search(r"^\* +copy_engine", printed, re.MULTILINE)
    assert "libgdrapi" in printed


def test_the_reason_is_for_the_size_of_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = {}
    for size in ("64K", "1G"):
        assert run(["explain", "gpu0", "gpu1", size, "--machine", "recorded-4xh200", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        chosen, second = answer["candidates"][:2]
        assert chosen["why"] == answer["why"] and second["label"] in answer["why"]
        assert f"takes {second['ratio']:.2f} times as long at {format_bytes(answer['bytes'])}" in answer["why"]
        reasons[size] = answer["why"]
    assert reasons["64K"] != reasons["1G"]


def test_wrapped_paths_stay_in_their_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["explain", "gpu0", "gpu1", "64K", "--machine", "recorded-4xh200"]) == 0
    rows = capsys.readouterr().out.splitlines()[3:]
    assert len(rows) > 20 and any("direction=push" in row for row in rows)
    assert all(row[0] in "* " and row[1] == " " for row in rows if not row.startswith("unavailable"))
    monkeypatch.delenv("COLUMNS")
    assert run(["explain", "gpu0", "gpu1", "64K", "--machine", "recorded-4xh200"]) == 0
    assert " ways=copy_engine+host_staged) " in capsys.readouterr().out  # a parameter is not broken


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["gpu0", "gpu4", "64K"], "'gpu4' is not in"),
        (["nowhere", "gpu0", "64K"], "'nowhere' is not in"),
        (["gpu0", "gpu1", "64Q"], "'64Q' is not a size"),
        (["gpu0", "gpu1", "99999999T"], "is not a size"),
        (["gpu0", "gpu1", "1K", "--operation", "sing"], "'sing'"),
        (["gpu0", "gpu1", "1K", "--processes", "3"], "processes"),
        (["gpu0", "gpu1", "1K", "--machine", "../../nowhere"], "../../nowhere: "),
    ],
)
def test_explain_refuses(
    arguments: list[str], word: str, gpu_core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up.write(tmp_path)
    assert run(["explain", *arguments, "--results", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert len(error.splitlines()) == 1
