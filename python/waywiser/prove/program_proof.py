"""Whether the proved settings help a person's own program: it runs with the defaults, with the settings and with the
defaults again, in turns; then once more with each, to see what it sends."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from waywiser.apply.job_libraries import find_job_libraries
from waywiser.apply.setting import Settings
from waywiser.apply.store import keep
from waywiser.errors import InputError
from waywiser.files import write_text_atomically
from waywiser.look.machine import named
from waywiser.prove.benchmarks import Benchmark, Times, run_benchmark
from waywiser.prove.program_sent import Sent, record
from waywiser.prove.prove import WORTH, Proof, Tell, Variant, against
from waywiser.prove.trial import settings_to_prove
from waywiser.prove.try_option import tried
from waywiser.run.clean_environment import clean_environment

OURS = "proved settings"
SCHEMA, VERSION, FOLDER = "waywiser.program", 1, "programs"
FASTER, NO_VERDICT = "faster", "no verdict"
_CASE = ("program", 0)
_PATIENCE = 24 * 3600.0
_ASKED = 20.0  # seconds


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


def settings_for(results: Path, options: Sequence[str] = ()) -> Settings:
    """What was proved for this machine, and the settings of `--try`, which have no proof yet. Raises InputError if that
    is nothing, and as tried()."""
    found = settings_to_prove(results, True).only_proved()
    if options:
        found = tried(found, "PROGRAM", options, find_job_libraries(None))
    if not found.environment():
        raise InputError(
            f"{results}: no setting is proved for this machine: waywiser apply, waywiser verify --with ..., or --try"
        )
    return found


def of_program(command: Sequence[str], metric: Metric, environment: Mapping[str, str] = os.environ) -> Benchmark:
    """Runs the program once; variables that steer libraries are only those given. Raises InputError."""
    if shutil.which(command[0]) is None:
        raise InputError(f"there is no program '{command[0]}'")
    clean = clean_environment(environment)

    def run(variables: Mapping[str, str]) -> Times:
        begin = time.monotonic()
        output = run_benchmark(launched(command, variables), {**clean, **variables}, command[0], _PATIENCE)
        return {_CASE: metric.cost(metric.value(output, time.monotonic() - begin))}

    return run


def launched(command: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """The command that passes the variables on to ranks of other machines: Open MPI's mpirun does it for those that -x
    names; srun and torchrun by themselves. Raises InputError if srun is told not to."""
    name = Path(command[0]).name
    for word, after in zip(command, [*command[1:], ""], strict=True):
        if name == "srun" and word.startswith("--export") and word != "--export-file":
            told = word.partition("=")[2] or after
            if "ALL" not in told.split(","):
                raise InputError(f"srun --export={told} keeps the settings from the ranks: write --export=ALL,...")
    if name not in ("mpirun", "mpiexec") or not variables:
        return list(command)
    said = subprocess.run([command[0], "--version"], capture_output=True, text=True, timeout=_ASKED, check=False).stdout
    if "Open MPI" not in said:
        return list(command)
    passed = (one for one in variables if not one.startswith("OMPI_MCA_"))  # these it passes on by itself
    return [command[0], *(word for one in passed for word in ("-x", one)), *command[1:]]


def record_program(
    command: Sequence[str], variables: Mapping[str, str], tell: Tell, environment: Mapping[str, str] = os.environ
) -> dict[str, Sent]:
    """What the program sends with the defaults, and with the variables. A run that fails is told, no more."""
    clean = clean_environment(environment)
    found: dict[str, Sent] = {}
    for name, told in (("default", {}), (OURS, dict(variables))):
        try:
            found[name] = record(launched(command, told), clean, told, _PATIENCE)
        except InputError as error:
            tell(f"{name}: what it sends is not known: {error}")
    return found


def prove_program(benchmark: Benchmark, variables: Mapping[str, str], rounds: int, tell: Tell) -> Proof:
    return against(Variant("default", {}), Variant(OURS, variables), benchmark, rounds, tell)


def judgement(proof: Proof, lost: Sequence[int] = ()) -> str:
    """ "faster", "slower", or "no difference beyond the noise". `lost`: ranks that did not have the settings."""
    if lost:
        return f"{NO_VERDICT}: rank {named(map(str, lost))} did not get the settings"
    found = proof.verdicts[OURS]
    if found.wins:
        return FASTER
    is_slower = found.worse > found.better and 1 / found.gain >= max(WORTH, found.noise**2)
    return "slower" if is_slower else "no difference beyond the noise"


@dataclass(frozen=True)
class ProgramProof:
    """What `verify` says of a program. `name`: by which a table of jobs knows it; `sent`: by variant."""

    name: str
    command: Sequence[str]
    metric: Metric
    settings: Settings
    proof: Proof
    sent: Mapping[str, Sent]

    @property
    def verdict(self) -> str:
        """As judgement()."""
        return judgement(self.proof, self.sent[OURS].lost if OURS in self.sent else ())

    def as_json(self) -> str:
        """A document of schema waywiser.program: every run, gain, noise and verdict, and what was sent. Runs are in
        seconds, or what the metric has found."""
        found, metric = self.proof.verdicts[OURS], self.metric
        runs = {one.name: [metric.cost(cost) for cost in one.times(_CASE)] for one in self.proof.variants}
        about = {"command": list(self.command), "metric": metric.pattern.pattern if metric.pattern else "wall-clock"}
        judged = {"gain": found.gain, "noise": found.noise, "verdict": self.verdict}
        settings = self.settings
        head = {"schema": SCHEMA, "version": VERSION, "fingerprint": settings.fingerprint, "machine": settings.machine}
        sent = {name: one.as_json() for name, one in self.sent.items()}
        body = {"name": self.name, **about, "variables": settings.environment(), **judged, "runs": runs, "sent": sent}
        return json.dumps({**head, **body}, indent=1)

    def lines(self) -> list[str]:
        """For people: the median of each variant; gain, noise and verdict; what each sends."""
        found, unit = self.proof.verdicts[OURS], "" if self.metric.pattern else " s"
        told = [f"{one.name:<16}{self.metric.cost(median(one.times(_CASE))):.6g}{unit}" for one in self.proof.variants]
        told.append(f"{OURS}: {self.verdict}; gain {found.gain:.3f} x, noise {found.noise:.3f} x")
        for name, one in self.sent.items():
            told += [f"{name}: what it sends", *(f"    {line}" for line in one.lines())]
        return told


def keep_program(results: Path, one: ProgramProof) -> Path:
    """Keeps it for `report --savings`, beside those of other programs."""
    file = results / FOLDER / f"{one.name}.json"
    write_text_atomically(file, one.as_json())
    return file


def keep_tried(results: Path, one: ProgramProof) -> list[str]:
    """Keeps what was tried as proved, if the program is faster with it; the names."""
    new = [each for each in one.settings.settings if not each.proof]
    if one.verdict != FASTER or not new:
        return []
    before, proof = settings_to_prove(results, True), f"{one.proof.verdicts[OURS].gain:.2f} x in {one.name}"
    names = {each.name for each in new}
    others = tuple(each for each in before.settings if each.name not in names)
    proved = tuple(replace(each, proof=proof) for each in new)
    keep(results, replace(before, settings=others + proved))
    return sorted(names)


def name_of(command: Sequence[str], told: str, environment: Mapping[str, str] = os.environ) -> str:
    """The name that is told, else that of the batch job, else of the program's file. Raises InputError."""
    files = [Path(word).name for word in command[1:] if Path(word).is_file()]
    name = told or environment.get("SLURM_JOB_NAME", "") or next(iter(files), Path(command[0]).name)
    if not re.fullmatch(r"[\w.+-]{1,60}", name) or name.startswith("."):
        raise InputError(f"--name {name!r}: at most 60 letters, digits and . _ + -")
    return name
