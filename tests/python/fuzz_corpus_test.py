"""Inputs that once led fuzzers to new code or broke something: each target passes all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"
sys.path.insert(0, str(FUZZ))

from python_targets import TARGETS  # noqa: E402


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_keeps_the_promises(name: str) -> None:
    inputs = sorted((FUZZ / "corpus" / name).iterdir())
    assert inputs
    for file in inputs:
        try:
            TARGETS[name](file.read_bytes())
        except Exception as error:
            pytest.fail(f"{file}: {type(error).__name__}: {error}")
