"""Both forms of the back end of torch.distributed: tests that use `form` run with each."""

from __future__ import annotations

import functools
import subprocess
import sys

import pytest

VARIABLE = "WAYWISER_TORCH_FORM"


@functools.cache
def why_no_cpp() -> str:
    """Compiles the form in C++ once for all; why it cannot be."""
    command = [sys.executable, "-m", "waywiser.torch_backend"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    return done.stderr if done.returncode else ""


@pytest.fixture(params=["python", "cpp"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    chosen = str(request.param)
    if chosen == "cpp" and "is found" in why_no_cpp():
        pytest.skip("there is no compiler of C++")
    monkeypatch.setenv(VARIABLE, chosen)
    return chosen
