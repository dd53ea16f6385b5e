"""`benchmarks/nccl_tuner_gain.py` with made-up ranks: its file is whole after each row."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rank_jobs import ROOT

from waywiser.bench.team import TeamError


class MadeUpTeam:
    """With its plan 0.9 times as long, with a wrong plan four times; gone after `most` requests."""

    version, adapts = "NCCL 2.27.5", False

    def __init__(self, factor: float, most: int = 1 << 30) -> None:
        self.factor, self.left = factor, most

    def slice(self, request: str, patience: float) -> list[list[float]]:
        self.left -= 1
        if self.left < 0:
            raise TeamError("a rank is gone")
        words = request.split()
        seconds = self.factor * (1e-5 + int(words[3]) / 1e11)
        return [[seconds * (1 + 1e-4 * n) for n in range(int(words[6]))] for _ in range(2)]

    def close(self) -> None: ...


def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nccl_tuner_gain", ROOT / "benchmarks/nccl_tuner_gain.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("most", [1 << 30, 300])
def test_each_row_is_kept_as_it_comes(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, out = program(), tmp_path / "rows.json"
    factors = {made.PLAIN: 1.0, made.TUNED: 0.9, made.AGAIN: 1.0, made.WRONG: 4.0, made.FOREIGN: 1.1}
    monkeypatch.setattr(made, "teams", lambda *_: {name: MadeUpTeam(one, most) for name, one in factors.items()})
    monkeypatch.setattr(sys, "argv", ["x", "--results", str(tmp_path), "--out", str(out), "--modes", "graph"])
    if most == 1 << 30:
        assert made.main() == 0
    else:
        with pytest.raises(TeamError):
            made.main()
    found = json.loads(out.read_text())
    whole = len(found["rows"]) == found["cases"] == 5 * 24
    assert whole if most == 1 << 30 else 0 < len(found["rows"]) < found["cases"]
    assert found["means"][made.TUNED] == pytest.approx(0.9, abs=0.01) and found["good"]
    assert found["means"][made.FOREIGN] == pytest.approx(1.1, abs=0.01)
    sizes = [row["bytes"] for row in found["rows"][:: len(made.COLLECTIVES)]]
    assert min(sizes[:4]) < 1 << 10 and max(sizes[:4]) > 1 << 20, "small and large ones in turns"
