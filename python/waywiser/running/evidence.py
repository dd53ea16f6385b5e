"""What can be seen of a running job: its connections, shared memory, devices and counters, at two moments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from waywiser.errors import InputError
from waywiser.look.finding import Unknown
from waywiser.look.root import Root
from waywiser.look.sockets import Connection, Routes, bytes_of_sockets, connections
from waywiser.monitor.counters import Sample, moved_between, read_counters
from waywiser.run.rank_status import RankStatus
from waywiser.running.ranks import RunningJob, find_job

NOTICED = 1 << 20  # bytes: less is what ranks tell each other to meet
_SHARED = ("/dev/shm/", "/memfd:", "/SYSV")


@dataclass(frozen=True)
class Flow:
    """One TCP connection of a rank. `peer`: the rank at its other end, None for others; `here`: that end is on this
    machine. Bytes since the connection was opened (None: not counted), and bytes per second between the two looks."""

    rank: int
    peer: int | None
    here: bool
    there: str
    port: int
    interface: str
    sent: int | None
    received: int | None
    rate: float

    @property
    def is_noticed(self) -> bool:
        """Whether it carried more than ranks tell each other to meet."""
        return (self.sent or 0) + (self.received or 0) >= NOTICED


@dataclass(frozen=True)
class Evidence:
    """`moved`: bytes by kind of link of the whole machine between the looks; `ours`: what the ranks of a group say;
    `unknown`: what may not be read, or is not counted."""

    root: Root
    job: RunningJob
    seconds: float
    flows: tuple[Flow, ...]
    moved: dict[str, int]
    ours: tuple[RankStatus, ...] = ()
    unknown: tuple[str, ...] = ()
    sample: Sample = field(default_factory=Sample)

    @cached_property
    def shared(self) -> dict[str, set[int]]:
        """Memory that two ranks or more have mapped -> these ranks, by the name of the file."""
        by_file: dict[tuple[str, str], set[int]] = {}
        for rank in self.job.ranks:
            for one in rank.process.mapped:
                if one.shared and one.path.startswith(_SHARED):
                    by_file.setdefault((one.identity, one.name), set()).add(rank.number)
        found: dict[str, set[int]] = {}
        for (_, name), ranks in by_file.items():
            if len(ranks) > 1:
                found[name] = found.get(name, set()) | ranks
        return found

    def loaded(self, pattern: str) -> dict[str, list[int]]:
        """File -> the ranks that have loaded it."""
        found: dict[str, list[int]] = {}
        for rank in self.job.ranks:
            for file in rank.process.loaded(pattern):
                found.setdefault(file, []).append(rank.number)
        return found

    def devices(self, prefix: str) -> set[str]:
        """The device files with this prefix that ranks have open or mapped."""
        paths = (path for rank in self.job.ranks for path in (*rank.process.open, *self._mapped_paths(rank.number)))
        return {path for path in paths if path.startswith(prefix)}

    def _mapped_paths(self, rank: int) -> list[str]:
        return [one.path for each in self.job.ranks if each.number == rank for one in each.process.mapped]


def watch(
    look: Callable[[], Root],
    process: int,
    seconds: float,
    wait: Callable[[float], None],
    ask: Callable[[int], Sequence[RankStatus]],
) -> Evidence:
    """Looks twice, `seconds` apart. `ask`: what the ranks of a group say, if a process is one of them. Raises
    InputError if there is no such process."""
    root = look()
    job = find_job(root, process)
    before, counted_before, _ = _counts(root)
    wait(seconds)
    root = look()
    after, counted, why = _counts(root)
    with contextlib.suppress(InputError):  # it has ended: what was seen before stays
        job = find_job(root, process)  # with the connections that were made meanwhile
    unknown = [f"rank {rank.number}: {text}" for rank in job.ranks for text in rank.process.missing]
    unknown += [why] if why else []
    mine = root.link("/proc/self/ns/net")
    for rank in job.ranks:
        if mine and rank.process.namespaces.get("net", mine) != mine:
            unknown.append(f"rank {rank.number}: bytes of its connections: ask in its network namespace (nsenter -n)")
    try:
        flows = _flows(root, job, counted_before, counted, max(seconds, 1e-9))
    except Unknown as error:
        flows = ()
        unknown.append(str(error))
    if job.size > len(job.ranks) and job.launcher != "none":
        unknown.append(f"{job.size - len(job.ranks)} of {job.size} ranks run on other machines: ask there too")
    ours = next((told for rank in job.ranks if (told := ask(rank.process.number))), ())
    return Evidence(root, job, seconds, flows, moved_between(before, after), tuple(ours), tuple(unknown), after)


def _counts(root: Root) -> tuple[Sample, dict[int, tuple[int, int]], str]:
    try:
        return read_counters(root), bytes_of_sockets(root), ""
    except Unknown as error:
        return read_counters(root), {}, str(error)


def _flows(
    root: Root,
    job: RunningJob,
    before: dict[int, tuple[int, int]],
    after: dict[int, tuple[int, int]],
    seconds: float,
) -> tuple[Flow, ...]:
    """The connections of all ranks. Ranks in one network namespace see the same."""
    owners = {inode: rank.number for rank in job.ranks for inode in rank.process.sockets}
    seen: dict[str, tuple[list[Connection], Routes]] = {}
    found = []
    for rank in job.ranks:
        space = rank.process.namespaces.get("net", "")
        if space not in seen:
            number = rank.process.number
            seen[space] = connections(root, number), Routes(root, number)
        all_, routes = seen[space]
        at = {one.here + one.there: one for one in all_}
        for one in all_:
            if owners.get(one.inode) != rank.number or one.inode not in rank.process.sockets:
                continue
            other = at.get(one.there + one.here)
            peer = owners.get(other.inode) if other else None
            sent, received = after.get(one.inode, (None, None))
            earlier = before.get(one.inode)
            more = sent - earlier[0] if earlier and sent is not None else 0
            here, interface = routes.is_here(one.there[0]), routes.interface(one.there[0])
            address, port = str(one.there[0]), one.there[1]
            rate = max(more, 0) / seconds
            found.append(Flow(rank.number, peer, here, address, port, interface, sent, received, rate))
    return tuple(found)
