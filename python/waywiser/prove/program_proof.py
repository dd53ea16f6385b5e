"""Whether the proved settings help a person's own program: it runs with the defaults, with the settings and with the
defaults again, in turns."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import waywiser._core as _core
from waywiser.apply.store import kept
from waywiser.errors import InputError
from waywiser.prove.benchmarks import Benchmark, Times, run_benchmark
from waywiser.prove.prove import WORTH, Proof, Tell, Variant, against
from waywiser.run.clean_environment import clean_environment

OURS = "proved settings"
_CASE = ("program", 0)
_PATIENCE = 24 * 3600.0


@dataclass(frozen=True)
class Metric:
    """How a run is judged: by the last match of `pattern` in its output, its first group as a number; by the seconds
    that it takes if there is no pattern."""

    pattern: re.Pattern[str] | None
    more_is_better: bool

    @staticmethod
    def of(text: str, more_is_better: bool) -> Metric:
        """Raises InputError."""
        if not text and more_is_better:
            raise InputError("--more-is-better is for --metric")
        try:
            pattern = re.compile(text, re.MULTILINE) if text else None
        except re.error as error:
            raise InputError(f"--metric {text!r}: {error}") from error
        if pattern and pattern.groups != 1:
            raise InputError(f"--metric {text!r}: needs one group, around the number")
        return Metric(pattern, more_is_better)

    def value(self, output: str, seconds: float) -> float:
        """Raises InputError if the program has not printed a positive number."""
        if self.pattern is None:
            return seconds
        found = self.pattern.findall(output)
        try:
            value = float(found[-1])
        except (IndexError, ValueError):
            raise InputError(f"the program printed no number for --metric {self.pattern.pattern!r}") from None
        if not 0 < value < float("inf"):
            raise InputError(f"--metric found {value:g}: it must be a positive number")
        return value

    def cost(self, value: float) -> float:
        """Less is better; its own inverse."""
        return 1 / value if self.more_is_better else value


def proved_variables(results: Path) -> dict[str, str]:
    """What was proved for this machine. Raises InputError if that is nothing."""
    settings = kept(results, _core.discover().fingerprint)
    found = settings.only_proved().environment() if settings else {}
    if not found:
        raise InputError(
            f"{results}: no setting is proved for this machine: waywiser apply, waywiser verify --with ..."
        )
    return found


def of_program(command: Sequence[str], metric: Metric, environment: Mapping[str, str] = os.environ) -> Benchmark:
    """Runs the program once; variables that steer libraries are only those given. Raises InputError."""
    if shutil.which(command[0]) is None:
        raise InputError(f"there is no program '{command[0]}'")
    clean = clean_environment(environment)

    def run(variables: Mapping[str, str]) -> Times:
        begin = time.monotonic()
        output = run_benchmark(command, {**clean, **variables}, command[0], _PATIENCE)
        return {_CASE: metric.cost(metric.value(output, time.monotonic() - begin))}

    return run


def prove_program(benchmark: Benchmark, variables: Mapping[str, str], rounds: int, tell: Tell) -> Proof:
    return against(Variant("default", {}), Variant(OURS, variables), benchmark, rounds, tell)


def judgement(proof: Proof) -> str:
    """ "faster", "slower", or "no difference beyond the noise"."""
    found = proof.verdicts[OURS]
    if found.wins:
        return "faster"
    is_slower = found.worse > found.better and 1 / found.gain >= max(WORTH, found.noise**2)
    return "slower" if is_slower else "no difference beyond the noise"


def program_json(proof: Proof, command: Sequence[str], variables: Mapping[str, str], metric: Metric) -> str:
    """Every run, gain, noise and verdict. Runs are in seconds, or what the metric has found."""
    found = proof.verdicts[OURS]
    runs = {one.name: [metric.cost(cost) for cost in one.times(_CASE)] for one in proof.variants}
    about = {"command": list(command), "metric": metric.pattern.pattern if metric.pattern else "wall-clock"}
    judged = {"gain": found.gain, "noise": found.noise, "verdict": judgement(proof)}
    return json.dumps({**about, "variables": dict(variables), **judged, "runs": runs}, indent=1)


def program_lines(proof: Proof, metric: Metric) -> list[str]:
    """For people: the median of each variant, then gain, noise and verdict."""
    found, unit = proof.verdicts[OURS], "" if metric.pattern else " s"
    told = [f"{one.name:<16}{metric.cost(median(one.times(_CASE))):.6g}{unit}" for one in proof.variants]
    return [*told, f"{OURS}: {judgement(proof)}; gain {found.gain:.3f} x, noise {found.noise:.3f} x"]
