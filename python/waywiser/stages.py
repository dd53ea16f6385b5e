"""The stages of the flow, each a call of the core: JSON in, JSON out. Progress and Ctrl-C are handled here."""

from __future__ import annotations

import datetime
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import waywiser._core as _core
from waywiser.signals import ENDING, end_at_once, handle, restore
from waywiser.units import format_bytes
from waywiser.verification import SCHEMA as VERIFICATION_SCHEMA
from waywiser.verification import VERSION as VERIFICATION_VERSION

PEER_PROGRAM = Path(__file__).with_name("bin") / "waywiser-peer"

# Called with (done, total, seconds left, what is being measured).
Show = Callable[[int, int, float, str], None]


class Stopped(Exception):
    """The user pressed Ctrl-C, or a batch system ends the job (SIGTERM). The measurements are kept; the message says
    how to continue."""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.exit_code = 128 + number


@dataclass(frozen=True)
class Simulation:
    """Input of a simulation instead of a measurement: costs of the simulator; for a cluster also its network and its
    other node types, each a topology with its costs."""

    costs: str
    cluster: str = ""
    others: Sequence[tuple[Any, str]] = ()


@dataclass
class Watch:
    """Turns the core's progress into calls of `show`, keeps partial profiles, and stops the core on a signal."""

    show: Show
    keep: Callable[[str], None] | None = None
    stop: int = 0  # the number of the signal

    def progress(self, text: str) -> bool:
        """The core's callback; False asks it to return with its present results."""
        told = json.loads(text)
        if self.keep and isinstance(told.get("profile"), dict):
            self.keep(json.dumps(told["profile"]))
        done, total = int(told.get("done", 0)), int(told.get("total", 0))
        self.show(done, total, float(told.get("seconds_left", 0.0)), str(told.get("label", "")))
        return not self.stop


@contextmanager
def stopping_on_interrupt(watch: Watch, numbers: Sequence[signal.Signals] = (signal.SIGINT, *ENDING)) -> Iterator[None]:
    """While inside, the first Ctrl-C, SIGTERM or SIGHUP sets `watch.stop`; a second one ends the program at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        if watch.stop:
            end_at_once(number, frame)
        watch.stop = number

    previous = handle(numbers, stop)
    try:
        yield
    finally:
        restore(previous)


def peer_program() -> str:
    """The program of the second process; empty if the package was built without it."""
    return str(PEER_PROGRAM) if PEER_PROGRAM.is_file() else ""


def measure(
    topology: Any,
    options: dict[str, Any],
    previous: str | None,
    watch: Watch,
    simulation: Simulation | None = None,
    other_machine: _core.OtherMachine | None = None,
) -> str:
    """Measures points that are missing in `previous` (a profile as JSON) and returns the whole profile as JSON.

    With a `simulation` nothing is measured: the times are simulated, and the profile says so. With
    `other_machine`, the paths to the machine of rank 1 are measured too.
    """
    text = json.dumps({"peer_program": peer_program(), **options})
    with stopping_on_interrupt(watch):
        if simulation is not None:
            given = (simulation.cluster, list(simulation.others))
            return str(_core.measure_simulated(topology, simulation.costs, text, previous, watch.progress, *given))
        return str(_core.measure(topology, text, previous, watch.progress, other_machine))


def choose(profile: str) -> str:
    """The plan, as JSON, for a profile."""
    return str(_core.choose(profile, "{}"))


def explain(
    profile: str, plan: str, source: str, destination: str, processes: int, operation: str, size: int, rail: str = ""
) -> dict[str, Any]:
    """Every candidate for one transfer with its cost, and unavailable mechanisms; with `rail`, only over that NIC."""
    asked = (source, destination, processes, operation, size, rail)
    answer: dict[str, Any] = json.loads(_core.explain(profile, plan, *asked))
    for one in answer["candidates"]:
        if one["label"] == answer["chosen"]:
            answer["why"] = one["why"] = _reason_here(answer, str(one["why"]))
    return answer


def _reason_here(answer: dict[str, Any], planned: str) -> str:
    """Why the chosen path is taken at the size of the question; the plan's reason is for the middle of its range."""
    size = format_bytes(answer["bytes"])
    others = [one for one in answer["candidates"] if one["label"] != answer["chosen"] and one["ratio"] is not None]
    others = [one for one in others if "encrypt" not in one["why"] and not one["why"].startswith("not measured")]
    note = f"; {planned.partition('; ')[2]}" if "; " in planned else ""
    if not others:
        return f"the only path at {size}{note}"
    second, ratio = others[0]["label"], others[0]["ratio"]
    if others[0]["why"].startswith("equal"):
        return f"equal to {second} at {size} within the confidence intervals{note}"
    if ratio < 1:
        return f"within {100 * (1 / ratio - 1):.1f} % of {second} at {size}: not worth a switch{note}"
    return f"fastest: {second} takes {ratio:.2f} times as long at {size}{note}"


def verify(
    topology: Any,
    profile: str,
    plan: str,
    options: dict[str, Any],
    watch: Watch,
    simulation: Simulation | None = None,
    other_machine: _core.OtherMachine | None = None,
) -> str:
    """Compares the chosen path with every other at other sizes, measured or simulated; returns JSON."""
    text = json.dumps({"peer_program": peer_program(), **options})
    with stopping_on_interrupt(watch):
        if simulation is not None:
            given = (simulation.cluster, list(simulation.others))
            told = _core.verify_simulated(topology, simulation.costs, profile, plan, text, watch.progress, *given)
            answer = json.loads(told)
        else:
            answer = json.loads(_core.verify_plan(topology, profile, plan, text, watch.progress, other_machine))
    planned = json.loads(plan)
    head = {
        "schema": VERIFICATION_SCHEMA,
        "version": VERIFICATION_VERSION,
        "fingerprint": planned.get("fingerprint"),
        "other_nodes": planned.get("other_nodes", []),
    }
    return json.dumps({**head, "created": now(), **answer}, indent=1)


def peer_report(topology: Any, options: dict[str, Any], watch: Watch) -> str:
    """The classic peer report of the GPUs, as JSON."""
    with stopping_on_interrupt(watch):
        answer = json.loads(_core.peer_report(topology, json.dumps(options), watch.progress))
    return json.dumps({"schema": "waywiser.peers", "version": 1, "created": now(), **answer}, indent=1)


def now() -> str:
    """This moment in UTC, ISO 8601."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
