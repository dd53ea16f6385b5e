"""scripts/lint: a clang-tidy that ends without a word has not passed."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    loader = importlib.machinery.SourceFileLoader("lint", str(SCRIPTS / "lint"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint", loader))  # type: ignore[arg-type]
    bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    sys.dont_write_bytecode = bytecode
    monkeypatch.setattr(module, "PASSED", tmp_path)
    return module


@pytest.mark.parametrize(("code", "said"), [(0, ""), (-15, "ended with -15")])
def test_a_killed_clang_tidy_has_not_passed(
    lint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    source = tmp_path / "source.cpp"
    source.write_text("int one();\n")
    entry = {"file": str(source), "command": "c++ -c source.cpp"}
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], code, "", ""))
    found = lint.tidy_one(entry, tmp_path)
    assert found.endswith(said) and bool(found) == bool(said)
    assert len([one for one in tmp_path.iterdir() if one != source]) == (code == 0)
