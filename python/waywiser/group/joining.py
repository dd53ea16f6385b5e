"""How a process becomes a rank of a group: started by a launcher, or beside MPI or torch.distributed."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from waywiser.errors import InputError, InputTypeError
from waywiser.group.gpus import Gpus
from waywiser.group.group import Group
from waywiser.group.types import OnFailure

if TYPE_CHECKING:
    from waywiser import _core


def join(
    timeout: float | None = None, *, gpus: Gpus | None = None, on_failure: OnFailure | None = None,
    encrypt: bool | None = None, progress_thread: bool | None = None, threads: bool = False,
    max_ctas: int | None = None, allow_pickle: bool = True,
) -> Group:  # fmt: skip
    """The group of all ranks that the launcher has started; without a launcher, a group of one rank.

    `timeout`: the longest wait of any call, in seconds; default WAYWISER_TIMEOUT, or 60. `gpus`: default cuda_gpus(),
    opened with the first array on a GPU; virtual_gpus() for tests. `on_failure`: after a failed operation on this
    rank's GPU a line is printed, and every later call on the GPU raises ("trap"), or the GPU goes on, the operation's
    results are NaN (integers: all bits 1), and later calls of the group raise ("raise"), or the process ends ("abort");
    default WAYWISER_ON_FAILURE, or "trap". `encrypt`: whether to encrypt traffic to other machines; must be equal in
    all ranks; default WAYWISER_ENCRYPT=1, or no. `progress_thread`: whether started operations (start_...) progress
    while the program computes; default WAYWISER_PROGRESS_THREAD=on, or no. `threads`: whether threads of this program
    may use different groups, made by split, at once; without it one thread at a time may be in a call, and each thread
    may join by itself. `max_ctas`: the most blocks of a kernel that carries out a collective of GPU arrays, so that the
    program's kernels have the other multiprocessors; 0: no limit; the least of all ranks counts; default
    WAYWISER_MAX_CTAS, or 0. `allow_pickle`: whether this rank sends and receives objects (send_object and so on), which
    are pickled.

    Raises InputError for wrong options and variables, ranks of different versions and a wrong secret; DeadlineError if
    not all ranks come in time; UnavailableError if this machine cannot do it; TransferError if a rank ends meanwhile.
    """
    from waywiser import _core

    return Group(
        _core.join(timeout, _core_of(gpus), on_failure, encrypt, progress_thread, threads, max_ctas), allow_pickle
    )


class Communicator(Protocol):
    """The part of an mpi4py communicator that is used."""

    def Get_rank(self) -> int: ...
    def Get_size(self) -> int: ...
    def bcast(self, obj: Any, root: int = 0) -> Any: ...
    def allgather(self, sendobj: Any) -> list[Any]: ...


class Store(Protocol):
    """The part of a torch.distributed store that is used."""

    def set(self, key: str, value: str) -> None: ...
    def get(self, key: str) -> bytes: ...
    def add(self, key: str, amount: int) -> int: ...


def from_mpi4py(
    comm: Communicator, timeout: float | None = None, *, root: str | None = None, gpus: Gpus | None = None,
    on_failure: OnFailure | None = None, encrypt: bool | None = None, progress_thread: bool | None = None,
    threads: bool = False, max_ctas: int | None = None,
    allow_pickle: bool = True,
) -> Group:  # fmt: skip
    """A group of the ranks of an mpi4py communicator, in its order; all of them call it.

    The secret and rank 0's address travel over MPI. `root`: an address of rank 0's machine that the others can reach,
    if the automatically chosen one does not work. The other options are as for join(). Raises as join; InputError if
    there is no address for rank 0.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    machines = comm.allgather((_network(), socket.gethostname()))
    words = _Words(
        tell=lambda text: comm.bcast(text, root=0),
        hear=lambda: str(comm.bcast(None, root=0)),
        host=lambda: root or _address_for(machines),
    )
    options = _Options(timeout, gpus, on_failure, encrypt, progress_thread, threads, max_ctas, allow_pickle)
    return _form(_Seat("mpi4py", rank, size), words, options)


def unique_id(towards: str = "") -> bytes:
    """What ranks need to meet without a launcher: one process makes it, and the program gives it to all others.

    They pass it to from_unique_id(). `towards`: "" if all ranks are on this machine; otherwise this process will be
    rank 0, and listens from now on: on its address towards this host of another machine, or on this address of its own.
    It holds the job's secret: whoever has it can become a rank. Raises InputError for a name that is no such host;
    TransferError if this machine cannot listen.
    """
    from waywiser import _core

    return bytes(_core.new_unique_id(towards))


def from_unique_id(
    id: bytes, rank: int, size: int, timeout: float | None = None, *, gpus: Gpus | None = None,
    on_failure: OnFailure | None = None, encrypt: bool | None = None, progress_thread: bool | None = None,
    threads: bool = False, max_ctas: int | None = None,
    allow_pickle: bool = True,
) -> Group:  # fmt: skip
    """A group of `size` ranks that have the same unique_id(); all of them call it, once with each id.

    The options are as for join(). Raises as join; InputError for other bytes and for a rank that there is not.
    """
    from waywiser import _core

    core = _core.join_by_id(
        id, rank, size, timeout, _core_of(gpus), on_failure, encrypt, progress_thread, threads, max_ctas
    )
    return Group(core, allow_pickle)


def from_torch(
    store: Store, rank: int, size: int, timeout: float | None = None, *, root: str | None = None,
    gpus: Gpus | None = None, on_failure: OnFailure | None = None, encrypt: bool | None = None,
    progress_thread: bool | None = None, threads: bool = False, max_ctas: int | None = None,
    allow_pickle: bool = True,
) -> Group:  # fmt: skip
    """A group of `size` ranks that share a store of torch.distributed; all of them call it.

    The secret and rank 0's address travel through the store: keep it within a network that you trust. `root`: an
    address of rank 0's machine that the others can reach, if the store's own host does not work. The other options are
    as for join(). Raises as join.
    """
    key = f"waywiser/{store.add(f'waywiser/{rank}/groups', 1)}"
    words = _Words(
        tell=lambda text: store.set(key, text),
        hear=lambda: store.get(key).decode(),
        host=lambda: root or _host_of(store),
    )
    options = _Options(timeout, gpus, on_failure, encrypt, progress_thread, threads, max_ctas, allow_pickle)
    return _form(_Seat("torch store", rank, size), words, options)


class _Options(NamedTuple):
    """As for join()."""

    timeout: float | None
    gpus: Gpus | None
    on_failure: OnFailure | None
    encrypt: bool | None
    progress_thread: bool | None
    threads: bool
    max_ctas: int | None
    allow_pickle: bool


class _Seat(NamedTuple):
    """A process that asks to be a certain rank."""

    launcher: str
    rank: int
    size: int


class _Words(NamedTuple):
    """How rank 0 tells the others where it listens, and on which address."""

    tell: Callable[[str], object]
    hear: Callable[[], str]
    host: Callable[[], str]


def _form(seat: _Seat, words: _Words, options: _Options) -> Group:
    if not 0 <= seat.rank < seat.size:
        raise InputError(f"rank {seat.rank} of {seat.size}: ranks are 0 to {seat.size - 1}")
    if seat.rank == 0:
        return _form_as_root(seat, words, options)
    meeting = json.loads(words.hear())
    if "problem" in meeting:
        raise InputError(f"rank 0: {meeting['problem']}")
    return _join_at(seat, meeting, None, options)


def _form_as_root(seat: _Seat, words: _Words, options: _Options) -> Group:
    """Always tells the others something, even if it cannot begin: they wait for it."""
    told = seat.size == 1
    meeting: dict[str, Any] = {"job": secrets.token_hex(8), "secret": secrets.token_hex(32), "port": 0}

    def announce(port: int) -> None:
        nonlocal told
        told = True
        words.tell(json.dumps(meeting | {"port": port}))

    try:
        meeting["host"] = words.host()
        return _join_at(seat, meeting, announce, options)
    except BaseException as error:
        if not told:
            words.tell(json.dumps({"problem": f"{type(error).__name__}: {error}"}))
        raise


def _join_at(
    seat: _Seat, meeting: dict[str, Any], announce: Callable[[int], None] | None, options: _Options
) -> Group:  # fmt: skip
    from waywiser import _core

    job = f"{seat.launcher}-{meeting['job']}"
    where = (str(meeting["host"]), int(meeting["port"]), str(meeting["secret"]))
    gpus = _core_of(options.gpus)
    core = _core.join_at(
        (seat.launcher, seat.rank, seat.size), job, where, announce, options.timeout, gpus, *options[2:7]
    )
    return Group(core, options.allow_pickle)


def _core_of(gpus: Gpus | None) -> _core.Gpus | None:
    if gpus is not None and not isinstance(gpus, Gpus):
        raise InputTypeError(f"gpus is cuda_gpus() or virtual_gpus(), not {type(gpus).__name__}")
    return None if gpus is None else gpus._core


def _network() -> tuple[str, str]:
    """Equal in two processes that reach each other by the loopback address."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return boot, os.readlink("/proc/self/ns/net")


def _address_for(machines: list[tuple[tuple[str, str], str]]) -> str:
    """Rank 0's address towards the first rank of another machine."""
    here, _ = machines[0]
    others = [host for network, host in machines if network != here]
    if not others:
        return "127.0.0.1"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((others[0], 9))
            address = str(probe.getsockname()[0])
    except OSError as error:
        raise InputError(f"no way to {others[0]} ({error}): give root=, an address of this machine") from error
    if address.startswith("127."):
        raise InputError(f"{others[0]} has a loopback address here: give root=, an address of this machine")
    return address


def _host_of(store: Any) -> str:
    """The host of a TCP store; other stores serve one machine unless `root` says where rank 0 is."""
    while (inner := getattr(store, "underlying_store", None)) is not None:
        store = inner
    return str(getattr(store, "host", "127.0.0.1"))
