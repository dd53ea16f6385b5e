"""Ranks of a module of this package, started for a measurement, and the one line in which they answer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from waywiser.errors import TransferError

STARTING = 60.0  # seconds for ranks to meet and to set up
_PATIENCE = 60.0  # beside the time of the measurement and STARTING
_COMMAND = "import sys; from waywiser.cli import run; sys.exit(run(sys.argv[1:]))"
_REASON = re.compile(r"^(?:[\w.]+\.)?(\w+Error: .{1,300})", re.MULTILINE)


def reason_in(problems: str) -> str:
    """Of what ranks have said, the error of the first one that says why; else the beginning. Raises nothing."""
    told = _REASON.search(problems)
    return told[1] if told else " ".join(problems.split())[:300]


def answer_of(
    module: str, ranks: int, order: Mapping[str, Any], environment: Mapping[str, str], seconds: float, first: str
) -> dict[str, Any]:
    """Starts `ranks` ranks of `module` with the order, and returns the object that one of them prints, whose first key
    is `first`. `seconds`: of the measurement. Raises TransferError."""
    words = ["run", "--plain", "-n", str(ranks), sys.executable, "-m", module, json.dumps(order)]
    with subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *words], env=dict(environment),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
    ) as process:  # fmt: skip
        try:
            out, problems = process.communicate(timeout=4 * seconds + STARTING + _PATIENCE)
        except BaseException as error:
            process.terminate()  # it ends its ranks
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise TransferError("the ranks did not end in time") from error
            raise
    lines = [line for line in out.splitlines() if line.startswith(f'{{"{first}": ')]
    if process.returncode or len(lines) != 1:
        raise TransferError(reason_in(problems) or f"exit code {process.returncode}")
    found: dict[str, Any] = json.loads(lines[0])
    return found
