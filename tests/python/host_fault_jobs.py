"""The calls with arrays in host memory that fault_jobs.py tries: mode -> call -> function of a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import waywiser as ww

RANKS, VICTIM = 3, 1
LONG, SHORT = 60_000, 100  # float64: by both ranks or by UCX; in one piece of the shared ring

Group = ww.Group

Call = Callable[[Group], bool]


def mine(group: Group, count: int = LONG) -> Any:
    return np.full(count, group.rank + 1.0)


def full(array: Any, value: float) -> bool:
    return bool((np.asarray(array) == value).all())


def each(array: Any) -> bool:
    """Whether it is ones, twos and threes, in thirds."""
    parts = np.asarray(array).reshape(RANKS, -1)
    return all(full(parts[rank], rank + 1) for rank in range(RANKS))


def messages(group: Group, count: int, send: bool) -> bool:
    """Rank 1 has messages for the others, or gets one of each."""
    to_others = [rank for rank in range(RANKS) if rank != VICTIM]
    if group.rank != VICTIM:
        if send:
            group.send(mine(group, count), VICTIM)
            return True
        return full(group.recv(np.empty(count), VICTIM), VICTIM + 1)
    for rank in to_others:
        if send and not full(group.recv(np.empty(count), rank), rank + 1):
            return False
        if not send:
            group.send(mine(group, count), rank)
    return True


def started_messages(group: Group, send: bool) -> bool:
    if group.rank == VICTIM:
        return messages(group, LONG, send)
    if send:
        group.start_send(mine(group), VICTIM).wait()
        return True
    return full(group.start_recv(np.empty(LONG), VICTIM).wait(), VICTIM + 1)


def from_any_rank(group: Group, started: bool = False, probed: bool = False) -> bool:
    """Rank 1 has messages for the others, which do not say that they want them from it."""
    if group.rank == VICTIM:
        return messages(group, LONG, send=False)
    if probed and group.probe().source != VICTIM:
        return False
    if started:
        return full(group.start_recv(np.empty(LONG), ww.ANY_SOURCE).wait(), VICTIM + 1)
    return full(group.recv(np.empty(LONG), ww.ANY_SOURCE), VICTIM + 1)


def around(group: Group) -> bool:
    right, left = (group.rank + 1) % RANKS, (group.rank + 2) % RANKS
    return full(group.sendrecv(mine(group), right, np.empty(LONG), left), left + 1)


def exchange(group: Group) -> bool:
    right, left = (group.rank + 1) % RANKS, (group.rank + 2) % RANKS
    from_left, from_right = np.empty(LONG), np.empty(LONG)
    group.neighbor_exchange(
        [ww.Exchange(left, mine(group), from_left, 1, 2), ww.Exchange(right, mine(group), from_right, 2, 1)]
    )
    return full(from_left, left + 1) and full(from_right, right + 1)


def prepared(group: Group) -> bool:
    right, left = (group.rank + 1) % RANKS, (group.rank + 2) % RANKS
    from_left = np.empty(LONG)
    to_right = ww.Exchange(right, mine(group), np.empty(0))
    again = group.prepare_exchange([to_right, ww.Exchange(left, np.empty(0), from_left)])
    again()
    again()
    return full(from_left, left + 1)


def prepared_sum(group: Group) -> bool:
    found = np.empty(LONG)
    again = group.prepare_collective("all_reduce", mine(group), found)
    again()
    again()
    return full(found, 6)


def scanned(group: Group, started: bool = False) -> bool:
    found = group.start_scan(mine(group)).wait() if started else group.scan(mine(group))
    return full(found, (group.rank + 1) * (group.rank + 2) / 2)


def scanned_below(group: Group, started: bool = False) -> bool:
    found = group.start_exscan(mine(group)).wait() if started else group.exscan(mine(group))
    return found is None if group.rank == 0 else full(found, group.rank * (group.rank + 1) / 2)


def only(group: Group, root: int, array: Any, right: Callable[[Any], bool]) -> bool:
    return right(array) if group.rank == root else array is None


def thirds() -> Any:
    return np.repeat(np.arange(1.0, RANKS + 1), LONG)


def flagged(group: Group, window: ww.Window) -> bool:
    """Each rank puts into the next one's memory, says so, and waits to hear it of the one before."""
    group.put(mine(group, SHORT), window, (group.rank + 1) % RANKS, 8)
    group.flush()
    group.signal(window, (group.rank + 1) % RANKS, 0, 1)
    group.wait(window, 0, 1)
    return full(np.asarray(window.array)[1 : SHORT + 1], (group.rank + 2) % RANKS + 1)


def together(group: Group) -> bool:
    group.barrier()
    return True


def part(group: Group) -> bool:
    found = group.split(0)
    return found is not None and full(found.all_reduce(mine(group)), 6)


def fetched(group: Group, window: ww.Window) -> bool:
    left = (group.rank + 2) % RANKS
    return full(group.get(np.empty(LONG), window, left, 8), left + 1)


BLOCKING: dict[str, Call] = {
    "barrier": together,
    "all_reduce": lambda g: full(g.all_reduce(mine(g)), 6),
    "reduce": lambda g: only(g, 0, g.reduce(mine(g), root=0), lambda a: full(a, 6)),
    "broadcast": lambda g: full(g.broadcast(mine(g), root=VICTIM), VICTIM + 1),
    "all_gather": lambda g: each(g.all_gather(mine(g))),
    "gather": lambda g: only(g, 0, g.gather(mine(g), root=0), each),
    "scatter": lambda g: full(g.scatter(thirds(), np.empty(LONG), root=VICTIM), g.rank + 1),
    "reduce_scatter": lambda g: full(g.reduce_scatter(thirds(), np.empty(LONG)), RANKS * (g.rank + 1)),
    "all_to_all": lambda g: each(g.all_to_all(np.repeat(mine(g, 1), RANKS * LONG))),
    "all_to_all_v": lambda g: each(
        g.all_to_all_v(np.repeat(mine(g, 1), RANKS * LONG), [LONG] * RANKS, np.empty(RANKS * LONG), [LONG] * RANKS)
    ),
    "scan": scanned,
    "exscan": scanned_below,
    "neighbor_exchange": exchange,
    "prepare_exchange, start and wait": prepared,
    "prepare_collective, start and wait": prepared_sum,
    "split": part,
    "send": lambda g: messages(g, LONG, send=True),
    "recv": lambda g: messages(g, LONG, send=False),
    "short recv": lambda g: messages(g, SHORT, send=False),
    "recv from any rank": from_any_rank,
    "probe, then recv": lambda g: from_any_rank(g, probed=True),
    "sendrecv": around,
    "expose": lambda g: len(g.expose(mine(g)).array) == LONG,
}
STARTED: dict[str, Call] = {
    "barrier": lambda g: g.start_barrier().wait() is None,
    "all_reduce": lambda g: full(g.start_all_reduce(mine(g)).wait(), 6),
    "reduce": lambda g: only(g, 0, g.start_reduce(mine(g), root=0).wait(), lambda a: full(a, 6)),
    "broadcast": lambda g: full(g.start_broadcast(mine(g), VICTIM).wait(), VICTIM + 1),
    "all_gather": lambda g: each(g.start_all_gather(mine(g)).wait()),
    "gather": lambda g: only(g, 0, g.start_gather(mine(g), root=0).wait(), each),
    "scatter": lambda g: full(g.start_scatter(thirds(), np.empty(LONG), VICTIM).wait(), g.rank + 1),
    "reduce_scatter": lambda g: full(g.start_reduce_scatter(thirds(), np.empty(LONG)).wait(), RANKS * (g.rank + 1)),
    "all_to_all": lambda g: each(g.start_all_to_all(np.repeat(mine(g, 1), RANKS * LONG)).wait()),
    "scan": lambda g: scanned(g, started=True),
    "exscan": lambda g: scanned_below(g, started=True),
    "send": lambda g: started_messages(g, send=True),
    "recv": lambda g: started_messages(g, send=False),
    "recv from any rank": lambda g: from_any_rank(g, started=True),
}
# Their windows are open before anything happens.
WINDOWS: dict[str, Callable[[Group, ww.Window], bool]] = {"put, flush, signal and wait": flagged, "get": fetched}
MODES: dict[str, dict[str, Call]] = {"blocking": BLOCKING, "started": STARTED}


def other_call(name: str, group: Group) -> bool:
    """A call that differs from the others': messages of other lengths, or another collective."""
    right, left = (group.rank + 1) % RANKS, (group.rank + 2) % RANKS
    half = LONG // 2
    if name in ("send", "recv", "short recv", "recv from any rank", "probe, then recv"):
        return messages(group, half, send=name == "send")
    if name == "sendrecv":
        return full(group.sendrecv(mine(group, half), right, np.empty(half), left), left + 1)
    if name == "neighbor_exchange":
        to_left = ww.Exchange(left, np.empty(half), np.empty(half), 1, 2)
        to_right = ww.Exchange(right, np.empty(half), np.empty(half), 2, 1)
        group.neighbor_exchange([to_left, to_right])
        return True
    if name.startswith("prepare_exchange"):
        group.prepare_exchange([ww.Exchange(right, mine(group, half), np.empty(half))])
        return True
    if name == "barrier":
        return full(group.all_reduce(mine(group)), 6)
    return together(group)
