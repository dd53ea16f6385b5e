"""`--require gdr,nvlink`: the paths that a run needs, each with the checks that must be ok before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.doctor.check import looked
from waywiser.doctor.checks import CHECKS
from waywiser.errors import InputError
from waywiser.look.finding import Status
from waywiser.look.root import Root

# Kind of path -> alternatives. Each alternative is a list of checks, all of which must be ok.
ROADS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gdr": (("D01", "D02"), ("D03",)),
    "nvlink": (("D13",),),
    "fabric": (("D14",),),
    "p2p": (("D11", "D16"),),
    "gdrcopy": (("D06",),),
    "rdma": (("D22", "D23"),),
    "roce": (("D22", "D23", "D24"),),
    "cma": (("D19",),),
    "shm": (("D20",),),
    "imex": (("D15",),),
}


def required(text: str) -> list[str]:
    """ "gdr,nvlink" -> ["gdr", "nvlink"]. Raises InputError with the list of words."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in ROADS:
            raise InputError(f"--require {word!r}: write some of {', '.join(ROADS)}")
    return words


def missing(roads: Sequence[str], root: Root) -> list[str]:
    """A line for each path that is unavailable or could not be checked; none if the run may start."""
    checks = {check.id: check for check in CHECKS}
    lines = []
    for road in roads:
        reasons = []
        for alternative in ROADS[road]:
            found = [(id_, looked(checks[id_], root)) for id_ in alternative]
            bad = [f"{id_}: {finding.text}" for id_, finding in found if finding.status is not Status.ok]
            if not bad:
                break
            reasons.append("; ".join(bad))
        else:
            lines.append(f"{road} is unavailable: {'; or '.join(reasons)}")
    return lines


def required_here(text: str) -> list[str]:
    """The required paths, if all are available here. Raises InputError that names each missing one."""
    roads = required(text)
    lines = missing(roads, Root())
    if lines:
        raise InputError("; ".join(lines))
    return roads
