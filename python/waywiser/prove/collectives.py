"""`apply --collectives`: times the algorithms of Open MPI and writes its rules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from waywiser.apply.job_libraries import JobLibraries
from waywiser.apply.setting import LeftOut, Setting, Settings
from waywiser.apply.store import file_of
from waywiser.errors import InputError
from waywiser.files import write_text_atomically
from waywiser.look.finding import Unknown
from waywiser.prove import benchmarks
from waywiser.prove.algorithms import TEST, TUNING_SIZES, openmpi_algorithms, openmpi_rules
from waywiser.prove.prove import Tell
from waywiser.run.clean_environment import clean_environment

_ROUNDS = 6


def timed_rules(settings: Settings, output: Path, ranks: int, jobs: JobLibraries, tell: Tell) -> Settings:
    """The settings and the results; if it cannot be timed, it is left out with the reason."""
    file = file_of(output, settings.fingerprint)
    found: list[Setting | LeftOut] = []
    if "openmpi" in settings.versions:
        try:
            found += _openmpi(file, ranks, jobs, tell)
        except (InputError, Unknown) as error:
            found.append(LeftOut("openmpi", "rules of collectives", "", str(error)))
    return replace(
        settings,
        settings=(*settings.settings, *(one for one in found if isinstance(one, Setting))),
        left_out=(*settings.left_out, *(one for one in found if isinstance(one, LeftOut))),
    )


def _openmpi(settings_file: Path, ranks: int, jobs: JobLibraries, tell: Tell) -> Iterator[Setting | LeftOut]:
    if jobs.mpi is None:
        raise InputError(jobs.no_mpi)
    file = settings_file.with_suffix(".coll-rules.conf")
    clean = clean_environment(os.environ)
    benchmark = benchmarks.openmpi(jobs.mpi, ranks, TUNING_SIZES, clean, (TEST,))
    found, text = openmpi_rules(openmpi_algorithms(jobs.root()), benchmark, ranks, _ROUNDS, file, tell)
    if text:
        write_text_atomically(file, text)
    yield from found
    if not found:
        yield LeftOut("openmpi", "coll_tuned rules", "", "nothing beats Open MPI's own choices")
