"""Measures into a folder of results; `waywiser measure` and `waywiser tune` share this."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import waywiser._core as _core
from waywiser import stages
from waywiser.errors import InputError
from waywiser.files import write_text_atomically
from waywiser.profile import NO_PAIRS, OPERATIONS, Profile
from waywiser.profile_reader import read_profile
from waywiser.progress import bar, say
from waywiser.results import Results
from waywiser.simulator.costs import costs_json
from waywiser.topology import load_topology

if TYPE_CHECKING:
    from waywiser.simulator.cluster import Cluster

_SIMULATED_BUDGET = (
    1e5  # seconds of the simulated clock: more than a campaign takes, even with paths to many types of node
)
BACKENDS = ("auto", "cuda", "host", "virtual_gpu")


@dataclass
class Request:
    """What to measure. `budget` in seconds, None for the core's own. With `machine` (a name or a file) all times are
    simulated, unless the back end is virtual_gpu."""

    quick: bool = False
    budget: float | None = None
    all_pairs: bool = False
    operations: list[str] = field(default_factory=list)
    backend: str = "auto"
    machine: str | None = None
    fresh: bool = False
    costs_file: Path | None = None  # from `waywiser calibrate`
    other_machine: _core.OtherMachine | None = None  # rank 1 of this job: paths to it are measured too
    cluster: Cluster | None = None  # for a simulated machine: also the paths to its other nodes
    places: list[str] = field(default_factory=list)  # if given, only pairs of these memories of this node
    processes: list[int] = field(default_factory=list)  # if given, only paths of 1 or 2 processes
    max_bytes: int | None = None  # None: the core's own

    def check(self) -> None:
        """Raises InputError for an impossible request, before measuring."""
        if self.backend not in BACKENDS:
            raise InputError(f"--backend {self.backend!r}: write one of {', '.join(BACKENDS)}")
        for operation in self.operations:
            if operation not in OPERATIONS:
                raise InputError(f"--operations {operation!r}: write some of {','.join(OPERATIONS)}")
        if self.machine is not None and self.backend not in ("auto", "virtual_gpu"):
            raise InputError(
                f"--backend {self.backend} measures this machine: it cannot measure --machine {self.machine}"
            )

        if self.cluster is not None and self.kind != "simulated":
            raise InputError("--nodes and --cluster are for a simulated machine: write --machine too")
        if self.costs_file is not None and self.kind != "simulated":
            raise InputError(f"--costs {self.costs_file}: is for a simulated machine: write --machine too")

    def check_pairs(self, topology: Any) -> None:
        """Raises InputError if `loaded` alone is asked for, and each class of this machine has one pair."""
        classes = [one.members for one in topology.pair_classes(True)]
        if self.backend == "host":
            classes = [members for members in classes if "gpu" not in str(members)]
        if self.operations == ["loaded"] and all(len(members) < 2 for members in classes):
            raise InputError(NO_PAIRS)

    @property
    def kind(self) -> str:
        """The source of the times: "real", "virtual" (virtual GPUs) or "simulated"."""
        if self.backend == "virtual_gpu":
            return "virtual"
        return "real" if self.machine is None else "simulated"

    def simulation(self, topology: Any) -> stages.Simulation | None:
        """The simulator's input in addition to the topology; None if times are not simulated."""
        if self.kind != "simulated":
            return None
        values = self.cluster.costs if self.cluster else {}
        network = json.dumps(self.cluster.network) if self.cluster and self.cluster.nodes > 1 else ""
        others = [load_topology(machine) for machine in self.cluster.others] if self.cluster else []
        more = [(one, costs_json(values, one.name)) for one in others]
        return stages.Simulation(costs_json(values, topology.name, self.costs_file), network, more)

    def options(self) -> dict[str, Any]:
        """The options for the core."""
        found: dict[str, Any] = {"backend": self.backend, "quick": self.quick, "all_pairs": self.all_pairs}
        if self.kind == "simulated":
            found["budget_seconds"] = _SIMULATED_BUDGET
            found["survey"] = False  # pairs of a class are simulated alike
        if self.budget is not None:
            found["budget_seconds"] = self.budget
        if self.operations:
            found["operations"] = self.operations
        if self.places:
            found["places"] = self.places
        if self.processes:
            found["processes"] = self.processes
        if self.max_bytes is not None:
            found["max_bytes"] = self.max_bytes
        return found

    def topology(self) -> Any:
        """This machine; with virtual GPUs the machine whose name or file is `machine`."""
        if self.machine is None:
            return _core.discover()
        return load_topology(self.machine)


def operations_in(text: str) -> list[str]:
    """ "latency,streaming" -> ["latency", "streaming"]."""
    return [word for word in re.split(r"[,\s]+", text) if word]


def kind_of(profile: Profile) -> str:
    """Like `Request.kind`."""
    if profile.backend == "virtual_gpu":
        return "virtual"
    return "simulated" if profile.simulated else "real"


def _previous(results: Results, request: Request) -> str | None:
    """The profile to continue. Raises InputError if this would mix measurements with simulated or virtual times."""
    if request.fresh or results.file("profile") is None:
        return None
    try:
        profile = results.needed_profile()
    except InputError as error:
        raise InputError(f"{error}; --fresh measures everything again") from error
    if request.kind != kind_of(profile):
        held = profile.warning() or "measurements of a real machine"
        raise InputError(f"{results.folder}: holds {held}: choose another folder with --results")
    return results.text("profile")


def _set_aside(results: Results, previous: str, old: Profile, new: Profile) -> None:
    """Keeps the profile of another machine under its fingerprint instead of overwriting it."""
    if old.fingerprint == new.fingerprint:
        return
    name = re.sub(r"[^A-Za-z0-9]", "", old.fingerprint)[:16] or "unknown"
    file = results.folder / f"profile-{name}.json"
    write_text_atomically(file, previous)
    say(f"the old profile is of another machine or driver; it is kept as {file}")


def _disturbed(profile: dict[str, Any]) -> int:
    """The number of points with half of their samples or more disturbed from outside."""
    points = (point for series in profile["series"] for point in series["points"] if point.get("disturbed"))
    return sum(2 * point["disturbed"] >= point["samples"] for point in points)


def measure_into(results: Results, topology: Any, request: Request) -> Profile:
    """Measures missing points and writes profile.json, repeatedly and at the end.

    Raises stages.Stopped after Ctrl-C, SIGTERM or SIGHUP; profile.json then holds the measurements so far.
    """
    previous = _previous(results, request)
    old = results.needed_profile() if previous else None
    results.write("topology", topology.to_json())

    def keep(text: str) -> None:
        if old is None or json.loads(text).get("fingerprint") == old.fingerprint:
            results.write("profile", text)

    simulation = request.simulation(topology)
    with bar("measuring" if simulation is None else "simulating", simulation is not None) as show:
        watch = stages.Watch(show, keep)
        text = stages.measure(topology, request.options(), previous, watch, simulation, request.other_machine)
    value = json.loads(text)
    profile = read_profile(text.encode("utf-8"), "the core's profile")
    if doubtful := _disturbed(value):
        say(f"{doubtful} points were disturbed during their measurement; the same command measures them again")
    if previous and old:
        _set_aside(results, previous, old, profile)
    file = results.write("profile", text)
    if watch.stop:
        raise stages.Stopped(
            f"interrupted: the measurements so far are kept in {file}; the same command continues from there",
            watch.stop,
        )
    return profile
