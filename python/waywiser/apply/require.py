"""`--require gdr,nvlink`: the roads that a run insists on, each with the checks that must be ok before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.doctor.check import looked
from waywiser.doctor.checks import CHECKS
from waywiser.doctor.finding import Status
from waywiser.doctor.root import Root
from waywiser.errors import InputError

# Road -> alternatives, each a list of checks that must all be ok (a warning passes where the road still works).
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
    """ "gdr,nvlink" -> the two. Raises InputError that lists the words."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in ROADS:
            raise InputError(f"--require {word!r}: write some of {', '.join(ROADS)}")
    return words


def missing(roads: Sequence[str], root: Root) -> list[str]:
    """A line for each road that cannot be taken, or that nobody could look at; none when the run may start."""
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
            lines.append(f"{road} cannot be taken: {'; or '.join(reasons)}")
    return lines
