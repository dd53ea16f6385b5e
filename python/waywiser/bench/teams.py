"""Starts the teams: our own ranks, and those of each library that is timed beside them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from waywiser.bench.nvshmem_kernels import compiled_for_nvshmem
from waywiser.bench.nvshmem_library import look_for_nvshmem
from waywiser.bench.team import Team, TeamError, Timed
from waywiser.bench.ucx_perftest import UcxPerftest
from waywiser.look.nccl_library import find_libnccl, look_for_nccl
from waywiser.run.clean_environment import clean_environment
from waywiser.run.job import Job, outside_jobs
from waywiser.run.start_rank import command_for
from waywiser.stages import PEER_PROGRAM

RANK_PROGRAM = PEER_PROGRAM.with_name("waywiser-rank")
_PATIENCE = 60.0
_HERE = Path(__file__).parent
_UCX_EVERYWHERE = ("--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any")


@dataclass(frozen=True)
class Setup:
    """The configuration of all teams. `gpus`: the number of virtual GPUs, with that back end."""

    ranks: int
    backend: str
    gpus: int
    results: Path
    folder: Path  # for sockets and compiled programs
    bind: bool = True
    by_kernel: bool = False  # kernels make the calls

    @property
    def on_gpu(self) -> bool:
        return self.backend == "cuda"


def our_team(setup: Setup) -> Team:
    """Our ranks, bound and set up as `waywiser run` does. Raises TeamError."""
    team = Team("waywiser", setup.ranks, setup.folder)
    program = [str(RANK_PROGRAM), team.path, setup.backend, str(setup.gpus)]
    command = command_for(setup.results, program, setup.bind)
    job = Job(command, setup.ranks)
    for rank in range(setup.ranks):
        variables = job.variables(rank) | {"WAYWISER_SECRET": job.secret}
        team.launch(command, outside_jobs(os.environ) | variables)
    return _met(team)


def _met(team: Team) -> Team:
    try:
        team.meet(_PATIENCE)
    except BaseException:
        team.close()
        raise
    return team


def compiled_for_mpi(folder: Path) -> Path:
    """`mpi_rank.c`, compiled by mpicc. Raises TeamError."""
    program = folder / "mpi_rank"
    if program.exists():
        return program
    compiler = shutil.which("mpicc")
    if compiler is None:
        raise TeamError("no mpicc in PATH")
    done = subprocess.run(
        [compiler, "-O2", str(_HERE / "mpi_rank.c"), "-o", str(program)], capture_output=True, text=True, timeout=60
    )
    if done.returncode != 0:
        raise TeamError(f"mpicc cannot compile: {' '.join(done.stderr.split())[:200]}")
    return program


def mpirun(setup: Setup, options: tuple[str, ...] = ()) -> list[str]:
    """The start of Open MPI's command line. Raises TeamError."""
    launcher = shutil.which("mpirun")
    if launcher is None:
        raise TeamError("no mpirun in PATH")
    crowded = ["--oversubscribe"] if setup.ranks > len(os.sched_getaffinity(0)) else []
    return [launcher, *options, *crowded, "-n", str(setup.ranks)]


def mpi_environment() -> dict[str, str]:
    """The environment without variables that steer libraries, so that their defaults are timed."""
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    return clean_environment(os.environ) | root


def _openmpi(setup: Setup, name: str, options: tuple[str, ...]) -> Team:
    if setup.on_gpu:
        raise TeamError("it is compared only for host memory")
    start = mpirun(setup, options)
    try:
        program = [str(compiled_for_mpi(setup.folder))]
    except TeamError as error:
        if importlib.util.find_spec("mpi4py") is None:
            raise TeamError(f"{error}, and no mpi4py") from error
        program = [sys.executable, "-m", "waywiser.bench.mpi4py_rank"]
    team = Team(name, setup.ranks, setup.folder)
    team.launch([*start, *program, team.path], mpi_environment())
    return _met(team)


def _openmpi_default(setup: Setup) -> Team:
    return _openmpi(setup, "openmpi", ())


def _openmpi_ucx(setup: Setup) -> Team:
    return _openmpi(setup, "openmpi+ucx", ("--mca", "pml", "ucx", *_UCX_EVERYWHERE))


def python_ranks(
    setup: Setup, name: str, environment: Mapping[str, str] = os.environ, module: str = "", variant: Sequence[str] = ()
) -> Team:
    """Ranks in Python, MODULE_rank.py of this folder, which find each other through a file. Raises TeamError."""
    team = Team(name, setup.ranks, setup.folder)
    meeting = setup.folder / f"{name}.store"
    for rank in range(setup.ranks):
        told = (str(rank), str(setup.ranks), str(meeting), "gpu" if setup.on_gpu else "host", *variant)
        team.launch([sys.executable, "-m", f"waywiser.bench.{module or name}_rank", team.path, *told], environment)
    return _met(team)


def _need_torch() -> None:
    if importlib.util.find_spec("torch") is None:
        raise TeamError("the Python package torch is not installed")


def _need_gpu_memory(setup: Setup) -> None:
    if not setup.on_gpu:
        raise TeamError("moves GPU memory only: write --memory gpu on a machine with GPUs")


def _torch(setup: Setup) -> Team:
    _need_torch()
    return python_ranks(setup, "torch")


def _torch_symmetric(setup: Setup, variant: str) -> Team:
    _need_gpu_memory(setup)
    _need_torch()
    if why := look_for_nccl().too_few(setup.ranks):
        raise TeamError(why)
    return python_ranks(setup, f"torch-{variant}", module="torch_symmetric", variant=[variant])


def _torch_one_shot(setup: Setup) -> Team:
    return _torch_symmetric(setup, "one-shot")


def _torch_two_shot(setup: Setup) -> Team:
    return _torch_symmetric(setup, "two-shot")


def _nccl(setup: Setup) -> Team:
    _need_gpu_memory(setup)
    if why := look_for_nccl().why_not(setup.ranks):
        raise TeamError(why)
    return python_ranks(setup, "nccl")


def _nvshmem(setup: Setup, name: str, environment: Mapping[str, str]) -> Team:
    _need_gpu_memory(setup)
    if why := look_for_nvshmem().why_not(setup.ranks):
        raise TeamError(why)
    variant = [str(compiled_for_nvshmem(setup.folder))] if setup.by_kernel else []
    return python_ranks(setup, name, environment, module="nvshmem", variant=variant)


def _nvshmem_alone(setup: Setup) -> Team:
    return _nvshmem(setup, "nvshmem", os.environ | {"NVSHMEM_DISABLE_NCCL": "1"})


def _nvshmem_nccl(setup: Setup) -> Team:
    """NVSHMEM with collectives by NCCL, its default if it finds NCCL."""
    _need_gpu_memory(setup)
    if setup.by_kernel:
        raise TeamError("in kernels it has its own collectives: timed as nvshmem")
    if why := look_for_nccl().why_not(setup.ranks):
        raise TeamError(why)
    folders = (os.path.dirname(find_libnccl()), os.environ.get("LD_LIBRARY_PATH", ""))
    told = {"NVSHMEM_DISABLE_NCCL": "0", "LD_LIBRARY_PATH": os.pathsep.join(filter(None, folders))}
    return _nvshmem(setup, "nvshmem+nccl", os.environ | told)


def _ucx(setup: Setup) -> Timed:
    return UcxPerftest(setup.on_gpu)


# Name on the command line -> its contenders.
PEERS: Mapping[str, Mapping[str, Callable[[Setup], Timed]]] = {
    "openmpi": {"openmpi": _openmpi_default, "openmpi+ucx": _openmpi_ucx},
    "nccl": {"nccl": _nccl},
    "ucx": {"ucx": _ucx},
    "torch": {"torch": _torch},
    "torch-symmetric": {"torch-one-shot": _torch_one_shot, "torch-two-shot": _torch_two_shot},
    "nvshmem": {"nvshmem": _nvshmem_alone, "nvshmem+nccl": _nvshmem_nccl},
}


def peer_teams(setup: Setup, names: Sequence[str], tell: Callable[[str, str], None]) -> dict[str, Timed]:
    """The available teams; calls `tell` with the reason for each other team."""
    teams: dict[str, Timed] = {}
    for name in names:
        for contender, start in PEERS[name].items():
            try:
                teams[contender] = start(setup)
            except TeamError as error:
                tell(contender, str(error))
    return teams
