"""A verb of the command line, run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from waywiser import cli

# Words of the command line -> exit code, standard output, standard error. The fixture `run` is one.
Run = Callable[..., tuple[int, str, str]]


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The answer of `waywiser simulate ARGUMENT... --json`."""
    assert cli.run(["simulate", *arguments, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert answer["simulated"] is True
    return answer
