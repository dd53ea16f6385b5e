"""What the ranks of a job are started with."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from waywiser import _core


@dataclass
class Job:
    """The configuration of one job's ranks. `places`: the host of each; None: all are here.

    `results`: the folder of settings; each rank gets those of its node and is bound to its CPUs; None: ranks start
    unchanged. `bind`: whether ranks are bound. `trust_network`: whether libraries may use unauthenticated connections
    between machines. `accept_simulated`: whether ranks also get settings that were not measured. `encrypt`: whether
    traffic between machines is encrypted. `keep_going`: the others go on after a rank has failed.
    """

    command: Sequence[str]
    count: int
    places: Sequence[str] | None = None
    results: Path | None = None
    port: int | None = None
    ssh: Sequence[str] = ("ssh", "-o", "BatchMode=yes")
    secret: str = field(default_factory=lambda: secrets.token_hex(32))
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    bind: bool = True
    trust_network: bool = False
    accept_simulated: bool = False
    encrypt: bool = False
    keep_going: bool = False

    def variables(self, rank: int) -> dict[str, str]:
        """The environment of a rank, the secret left out."""
        places = self.places or [""] * self.count
        here = [other for other in range(self.count) if places[other] == places[rank]]
        values = {
            "WAYWISER_RANK": str(rank),
            "WAYWISER_SIZE": str(self.count),
            "WAYWISER_LOCAL_RANK": str(here.index(rank)),
            "WAYWISER_LOCAL_SIZE": str(len(here)),
            "WAYWISER_JOB": self.name,
        }
        if self.trust_network:
            values["WAYWISER_TRUST_NETWORK"] = "1"
        if self.encrypt:
            values["WAYWISER_ENCRYPT"] = "1"
        if len(set(places)) > 1:
            if self.port is None:
                self.port = 20000 + secrets.randbelow(12000)
            values["WAYWISER_ROOT"] = f"{_bracketed(places[0])}:{self.port}"
        return values


def outside_jobs(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a new job, without variables in which a launcher describes the job around this process."""
    return {name: value for name, value in environment.items() if not _core.tells_of_a_job(name)}


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
