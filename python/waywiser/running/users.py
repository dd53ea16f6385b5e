"""Which of the libraries that a job has loaded are known to be used, by what ranks share and set."""

from __future__ import annotations

from waywiser.look.processes import Process
from waywiser.running.evidence import Evidence
from waywiser.running.settings import OURS as OUR_FILES
from waywiser.running.settings import Found, names_in

OPEN_MPI, OTHER_MPI, UCX, NCCL, OURS = "Open MPI", "MPI", "UCX", "NCCL", "waywiser"
_FILES = {
    OPEN_MPI: r"libopen-pal\.so.*",
    UCX: r"libucp\.so.*",
    NCCL: r"libnccl\.so.*",
    "RCCL": r"librccl\.so.*",
    "NVSHMEM": r"libnvshmem_host\.so.*",
    "libfabric": r"libfabric\.so.*",
    "PyTorch": r"libtorch_cpu\.so",
    OURS: OUR_FILES,
}
PLUG_INS = (
    r"libnccl-(net|tuner|profiler|env)[-\w]*\.so.*|lib(uct|ucm|ucc_tl)_\w+\.so.*|mca_(pml|btl|mtl|smsc|coll)_\w+\.so"
)
# Names of shared memory -> who makes it.
MEMORY = {
    "sm_segment": "Open MPI's btl sm",
    "vader_segment": "Open MPI's btl vader",
    "ucx_shm_posix": "UCX's posix",
    "SYSV": "System V memory, as UCX's sysv and others have",
    "nccl-": "NCCL's SHM",
    "memfd:waywiser": "the rings of waywiser",
    "mpich_": "MPICH",
    "Intel_MPI": "Intel MPI",
    "psm3_shm": "PSM3",
}


def libraries(process: Process) -> dict[str, str]:
    """Library -> its file in this process. An Open MPI of several files is one."""
    found = {name: files[0] for name, pattern in _FILES.items() if (files := process.loaded(pattern))}
    if OPEN_MPI not in found and (files := process.loaded(r"libmpi\w*\.so.*")):
        found[OTHER_MPI] = files[0]
    return found


def has(seen: Evidence, library: str) -> bool:
    """Whether a rank has loaded it."""
    return any(library in libraries(rank.process) for rank in seen.job.ranks)


def maker_of(name: str) -> str:
    """Who makes shared memory of this name; nothing if it is not known."""
    return next((maker for start, maker in MEMORY.items() if name.startswith(start)), "")


def by_ucx(seen: Evidence, found: Found) -> bool:
    """Whether UCX carries messages of the job, as far as this can be seen: its memory is there, Open MPI is told so, or
    the job's groups say so."""
    pml = found.get("OMPI_MCA_pml", ("", ""))[0].strip()
    named = "ucx" in names_in(pml) and not pml.startswith("^")
    memory = any(one.name.startswith("ucx_shm_posix") for rank in seen.job.ranks for one in rank.process.mapped)
    groups = any(mechanism.startswith("UCX") and count for rank in seen.ours for mechanism, count in rank.sent.items())
    return named or memory or groups
