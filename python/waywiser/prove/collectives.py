"""`apply --collectives`: times the algorithms of every library that can be timed here and writes its rules."""

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
from waywiser.look.installed_libraries import installed
from waywiser.look.root import Root
from waywiser.prove import benchmarks
from waywiser.prove.algorithms import TEST, TUNING_SIZES, nccl_choices, openmpi_algorithms, openmpi_rules
from waywiser.prove.nccl_benchmarks import nccl
from waywiser.prove.prove import Tell
from waywiser.run.clean_environment import clean_environment

_ROUNDS = 6


def timed_rules(settings: Settings, output: Path, ranks: int, gpus: int, jobs: JobLibraries, tell: Tell) -> Settings:
    """The settings and the results; a library that cannot be timed is left out with the reason."""
    file = file_of(output, settings.fingerprint)
    found: list[Setting | LeftOut] = []
    for target, rules in (("openmpi", _openmpi(file, ranks, jobs, tell)), ("nccl", _nccl(file, gpus, tell))):
        if target in settings.versions:
            try:
                found += rules
            except (InputError, Unknown) as error:
                found.append(LeftOut(target, "rules of collectives", "", str(error)))
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


def _nccl(settings_file: Path, gpus: int, tell: Tell) -> Iterator[Setting | LeftOut]:
    if gpus < 2:
        return
    file = settings_file.with_suffix(".nccl-tuner.csv")
    benchmark, _, _ = nccl(gpus, TUNING_SIZES, clean_environment(os.environ), (TEST,))
    plugin = next(iter(installed(Root(), "libnccl-tuner-example")), "")
    found, text = nccl_choices(benchmark, gpus, _ROUNDS, file, plugin, tell)
    if text:
        write_text_atomically(file, text)
    yield from found
    if not found:
        yield LeftOut("nccl", "tuner table", "", "nothing beats NCCL's own choices")
