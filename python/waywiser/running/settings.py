"""The settings that steer the libraries of a job: each rank's variables, and the files that the libraries read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from waywiser.doctor.variables import assignments
from waywiser.json_fields import clean
from waywiser.look import machine
from waywiser.running.evidence import Evidence

Found = Mapping[str, tuple[str, str]]
OURS = r"libwaywiser\.so.*|_core\.(cpython|abi3).*\.so"
_SECRET = {"WAYWISER_SECRET"}
# Ranks of one job differ in these.
_OF_RANK = re.compile(r"UCX_NET_DEVICES|NCCL_IB_HCA|NCCL_(TOPO|GRAPH)_DUMP.*|OMPI_MCA_PREFIXES")
_OF_LAUNCHER = re.compile(
    r"WAYWISER_(RANK|SIZE|JOB|LOCAL_.*|ROOT|RUNTIME_DIR)"
    r"|OMPI_MCA_(PREFIXES|num_procs|cpu_type|initial_wdir|ess.*|orte_.*|pmix.*)"
)


def settings_of(seen: Evidence, rank: int) -> dict[str, tuple[str, str]]:
    """Variable -> (value, where it comes from) of one rank, without what its launcher tells it."""
    process = next(one.process for one in seen.job.ranks if one.number == rank)
    environment = process.environment
    found = assignments(seen.root.of(environment), process.folder)
    if process.loaded(OURS):
        found |= {name: (value, "environment") for name, value in environment.items() if name.startswith("WAYWISER_")}
    return {name: one for name, one in found.items() if not _OF_LAUNCHER.fullmatch(name) and name not in _SECRET}


def deciding(seen: Evidence) -> dict[str, tuple[str, str]]:
    """Those of all ranks; of a variable that ranks set differently, the value of the first."""
    found: dict[str, tuple[str, str]] = {}
    for rank in reversed(seen.job.ranks):
        found |= settings_of(seen, rank.number)
    return found


def differing(seen: Evidence) -> Iterator[str]:
    """A line for each variable that ranks of the job set differently, apart from what names a rank's own device."""
    by_rank = {rank.number: settings_of(seen, rank.number) for rank in seen.job.ranks}
    for name in sorted({name for found in by_rank.values() for name in found}):
        values: dict[str, list[str]] = {}
        for rank, found in by_rank.items():
            values.setdefault(found.get(name, ("not set", ""))[0], []).append(str(rank))
        if len(values) > 1 and not _OF_RANK.fullmatch(name):
            told = "; ".join(f"{value} at rank {machine.named(ranks)}" for value, ranks in values.items())
            yield f"{name}: {told}"


def names_in(text: str) -> set[str]:
    """The names of a list of UCX or Open MPI, without "^" and UCX's marks."""
    return set(re.split(r"[,\s]+", text.strip().lstrip("^").replace("\\", ""))) - {""}


def allows(text: str, *names: str) -> bool:
    """Whether a list such as UCX_TLS ("all", "tcp,self", "^cma") leaves at least one of the names in."""
    listed = names_in(text)
    if text.strip().startswith("^"):
        return not set(names) <= listed
    return not listed or bool(listed & {"all", *names})


def leaves_out_cma(text: str, aliases: Collection[str]) -> bool:
    """Whether such a list leaves out CMA, which the aliases stand for, too."""
    listed = names_in(text)
    if text.strip().startswith("^"):
        return bool(listed & {"cma", *aliases})
    return bool(listed) and not listed & {"all", "cma", *aliases}


def said(found: Found, name: str) -> str:
    """ "NAME=value", with its file if it stands in one."""
    value, origin = found[name]
    return clean(f"{name}={value}" + ("" if origin == "environment" else f" ({origin})"))
