"""Where programs of tests come from."""

from __future__ import annotations

from pathlib import Path

import consumers
import prebuilt
import pytest


def test_a_program_that_was_built_before_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "BUILD", tmp_path / "nothing")
    monkeypatch.setenv("PATH", str(tmp_path))
    for make, name in ((prebuilt.driver_program, "driver_program"), (prebuilt.axpy_fatbin, "axpy.fatbin")):
        with pytest.raises(pytest.skip.Exception, match="there is no nvcc"):
            make(tmp_path)
        monkeypatch.setenv("WAYWISER_TEST_PROGRAMS", str(tmp_path))
        (tmp_path / name).write_text("built")
        assert make(tmp_path / "elsewhere") == tmp_path / name
        (tmp_path / name).unlink()
        with pytest.raises(pytest.skip.Exception, match="there is no nvcc"):
            make(tmp_path)
