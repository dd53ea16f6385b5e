"""A benchmark with known factors, and settings that it proves, for tests."""

from __future__ import annotations

import math
from collections.abc import Mapping

from waywiser.apply.job_libraries import JobLibraries, JobMpi
from waywiser.apply.setting import Setting, Settings
from waywiser.prove import benchmarks
from waywiser.prove.prove import Variant

FAST = Setting("openmpi", "OMPI_MCA_fast", "1", "", "measured", "fast")
SLOW = Setting("openmpi", "OMPI_MCA_slow", "1", "", "measured", "slow")
SAME = Setting("openmpi", "OMPI_MCA_same", "1", "", "measured", "same")
FAST2 = Setting("openmpi", "OMPI_MCA_fast", "2", "", "measured", "fast2")
SETTINGS = Settings("abcd1234", "node", settings=(FAST, SLOW, SAME))
BASE = Variant("default", {})
MPI = JobMpi("/opt/mpi/bin/mpirun", "4.1.4", "/opt/mpi/lib/libmpi.so.40", "")
JOBS = JobLibraries(MPI, "", "", "nobody")


class Made:
    """A benchmark with known factors and a noise of some percent that is the same in every run of the test."""

    def __init__(self, noise: float = 0.02, drift: float = 0.0) -> None:
        self.runs: list[dict[str, str]] = []
        self._noise = noise
        self._drift = drift

    def __call__(self, variables: Mapping[str, str]) -> benchmarks.Times:
        self.runs.append(dict(variables))
        factor = (0.6 if "OMPI_MCA_fast" in variables else 1.0) * (1.7 if "OMPI_MCA_slow" in variables else 1.0)
        number = len(self.runs)
        found = {}
        for index, size in enumerate((24, 1536, 98304)):
            wobble = 1 + self._noise * math.sin(12.9 * number + 7.3 * index) + self._drift * number
            found["ping-pong", size] = 1e-6 * (index + 1) * factor * wobble
        return found


def quiet(text: str) -> None:
    pass
