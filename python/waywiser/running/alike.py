"""Fall-backs of a job as a whole: plug-ins that are not loaded, ranks that differ, settings that take a path away."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.doctor.fast_paths import switched_off
from waywiser.look import machine
from waywiser.running.evidence import Evidence
from waywiser.running.settings import deciding, differing, said
from waywiser.running.users import NCCL, OPEN_MPI, OTHER_MPI, OURS, UCX, by_ucx, has, libraries

_PLUG_INS = {
    "NCCL_NET_PLUGIN": "net", "NCCL_TUNER_PLUGIN": "tuner", "NCCL_PROFILER_PLUGIN": "profiler",
    "NCCL_ENV_PLUGIN": "env",
}  # fmt: skip
# Of copies in one place ranks may have several; different files are another version for some ranks.
_ONE_COPY = (OPEN_MPI, OTHER_MPI, UCX, NCCL, OURS)
_USERS = {"NCCL_": (NCCL,), "OMPI_MCA_": (OPEN_MPI,), "UCX_": (UCX, OPEN_MPI, OURS)}


def plug_in_not_loaded(seen: Evidence) -> str:
    """A plug-in of NCCL that a variable names and no rank has in memory."""
    if not has(seen, NCCL):
        return ""
    found = deciding(seen)
    lost = [
        said(found, name)
        for name, kind in _PLUG_INS.items()
        if name in found and not any(_is_loaded(seen, kind, one) for one in _named(found[name][0]))
    ]
    return f"not loaded by any rank: {machine.named(lost)}; NCCL goes on without" if lost else ""


def _named(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _is_loaded(seen: Evidence, kind: str, name: str) -> bool:
    """NCCL tries the name itself, then libnccl-KIND-NAME.so. "none" and what is built in are no files."""
    if name.lower() in ("none", "static_plugin"):
        return True
    last = name.rpartition("/")[2].removesuffix(".so")
    files = (one.name for rank in seen.job.ranks for one in rank.process.mapped)
    starts = (f"{last}.so", f"lib{last}.so", f"libnccl-{kind}-{last}.so")
    return any(file.startswith(starts) for file in files)


def other_copies(seen: Evidence) -> str:
    """Ranks that have loaded other files of a library than the rest."""
    lines = []
    for library in _ONE_COPY:
        files: dict[str, list[str]] = {}
        for rank in seen.job.ranks:
            if file := libraries(rank.process).get(library):
                files.setdefault(file, []).append(str(rank.number))
        if len(files) > 1:
            told = "; ".join(f"{file} at rank {machine.named(ranks)}" for file, ranks in files.items())
            lines.append(f"{library} is {told}")
    return machine.named(lines)


def other_settings(seen: Evidence) -> str:
    """Ranks that set variables of a library differently."""
    lines = [line for line in differing(seen) if not line.startswith(("WAYWISER_", "NCCL_DEBUG"))]
    return f"ranks differ: {machine.named(lines)}" if lines else ""


def switched(seen: Evidence, named: Sequence[str]) -> str:
    """Settings that take a fast path away, apart from those that another line has named."""
    found = {
        name: one
        for name, one in deciding(seen).items()
        if any(name.startswith(start) and any(has(seen, each) for each in users) for start, users in _USERS.items())
    }
    if not by_ucx(seen, found) and not has(seen, OURS):
        found = {name: one for name, one in found.items() if not name.startswith("UCX_")}
    lines = [line for line in switched_off(seen.root, found) if not any(line.split()[0] in text for text in named)]
    return machine.named(lines)
