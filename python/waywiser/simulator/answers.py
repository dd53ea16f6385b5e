"""What commands of this program answer in JSON, as rows of published findings read it."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

Run = Callable[[Sequence[str]], int]  # runs a command line that prints, and returns its exit code


class Answer:
    """The output of a command: times by size, for each setting or algorithm."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._curves = told.get("curves", [])
        self._cases = told.get("cases", [])
        self._rows = told.get("rows", [])

    def times(self, **setting: str) -> dict[int, float]:
        """Size -> seconds, of the curve with these settings."""
        found = [c for c in self._curves if all(c["setting"].get(name) == value for name, value in setting.items())]
        (curve,) = found
        return {int(point["bytes"]): float(point["seconds"]) for point in curve["points"]}

    def rates(self) -> dict[str, float]:
        """GB/s by way, of a merge."""
        return {str(row["way"]): float(row["gb_per_s"]) for row in self._rows}

    def only(self, **setting: str) -> float:
        """The time, for a command with one size."""
        (seconds,) = self.times(**setting).values()
        return seconds

    def rate(self) -> float:
        """GB/s of the only curve and size."""
        ((size, seconds),) = self.times().items()
        return size / seconds / 1e9

    def bus_bandwidth(self) -> float:
        """GB/s of the only collective."""
        (case,) = self._cases
        return float(case["bus_bandwidth"]) / 1e9

    def seconds(self) -> float:
        """The time of the only collective."""
        (case,) = self._cases
        return float(case["seconds"])


def _ran(run: Run, command: str, *more: str) -> str:
    """What a command line of this program prints."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = run([*shlex.split(command)[1:], *more])
    if code != 0:
        raise RuntimeError(f"{command}: exit code {code}: {errors.getvalue()}")
    return out.getvalue()


@contextmanager
def answers_of(run: Run, before: Sequence[str] = ()) -> Iterator[Callable[[str], Answer]]:
    """A function that runs a command line of this program, once, and returns its JSON.

    Before that, in a folder of its own, the commands of `before`, which write files: `-o NAME`.
    """
    with TemporaryDirectory(prefix="waywiser-published-") as folder:

        def there(command: str) -> str:
            return re.sub(r"(?<= )[\w-]+\.json(?= |$)", lambda name: shlex.quote(f"{folder}/{name[0]}"), command)

        for command in before:
            _ran(run, there(command))
        yield cache(lambda command: Answer(json.loads(_ran(run, there(command), "--json"))))
