"""Every call of a group with every overlap of its arrays: the result is right, or one error says so before anything has
moved. `tests/group/overlap_test.cpp` has more shapes; this is how arrays of Python get there."""

from __future__ import annotations

import pytest
from rank_jobs import run, runtime_folder

__all__ = ["runtime_folder"]

RANKS = 3
# `place` is "host" or "gpu".
PROGRAM = """
import os, sys, numpy as np, waywiser as ww
place = os.environ["TEST_PLACE"]
gpus = ww.virtual_gpus(3) if place == "gpu" else None
group = ww.join(gpus=gpus)
me, n, k, root = group.rank, group.size, 4, 1
everyone = range(n)


class View:
    # Elements first, ... of an array on a GPU.
    def __init__(self, whole, first, count):
        self.whole, self.first, self.count = whole, first, count

    @property
    def __cuda_array_interface__(self):
        interface = self.whole.__cuda_array_interface__
        address = interface["data"][0] + self.first * 8 if self.count else 0
        return interface | {"data": (address, False), "shape": (self.count,)}


def had(rank):
    return np.arange(20.0 * k) + 1000 * rank


whole = gpus.empty(20 * k, float, me) if gpus else np.empty(20 * k)


def part(first, count):
    return View(whole, first, count) if gpus else whole[first : first + count]


def fill():
    if gpus: whole.fill(had(me))
    else: whole[:] = had(me)


def seen():
    return whole.numpy() if gpus else whole.copy()


# What the ranks give: `count` elements from `at` on.
AT = 8 * k
def given(rank, count): return had(rank)[AT : AT + count]
def total(count): return sum(given(rank, count) for rank in everyone)
def gathered(counts): return np.concatenate([given(rank, counts[rank]) for rank in everyone])

uneven = [k + rank for rank in everyone]
first = [sum(uneven[:rank]) for rank in everyone]
gives = [[k + (2 * rank + to) % 3 for to in everyone] for rank in everyone]
takes = [[gives[source][rank] for source in everyone] for rank in everyone]


def exchanged(rank, counts):
    ends = [(sum(each[:rank]), sum(each[: rank + 1])) for each in counts]
    return np.concatenate([given(q, sum(counts[q]))[ends[q][0] : ends[q][1]] for q in everyone])


# Call: elements of input and output, where its own block is, kind, the call, the result.
# Kinds: same, own, copied (the same, if the call waits and is of the host), apart.
CALLS = {
    "all_reduce": (k, k, 0, "same", lambda x, y: group.all_reduce(x, y), lambda: total(k)),
    "start_all_reduce": (k, k, 0, "same", lambda x, y: group.start_all_reduce(x, y).wait(), lambda: total(k)),
    "reduce": (k, k, 0, "same", lambda x, y: group.reduce(x, y, root=root), lambda: total(k)),
    "start_reduce": (k, k, 0, "same", lambda x, y: group.start_reduce(x, y, root=root).wait(), lambda: total(k)),
    "reduce_scatter": (n * k, k, me * k, "own", lambda x, y: group.reduce_scatter(x, y),
                       lambda: total(n * k)[me * k : me * k + k]),
    "start_reduce_scatter": (n * k, k, me * k, "own", lambda x, y: group.start_reduce_scatter(x, y).wait(),
                             lambda: total(n * k)[me * k : me * k + k]),
    "all_gather": (k, n * k, -me * k, "own", lambda x, y: group.all_gather(x, y), lambda: gathered([k] * n)),
    "start_all_gather": (k, n * k, -me * k, "own", lambda x, y: group.start_all_gather(x, y).wait(),
                         lambda: gathered([k] * n)),
    "all_gather with counts": (uneven[me], sum(uneven), -first[me], "own",
                               lambda x, y: group.all_gather(x, y, uneven), lambda: gathered(uneven)),
    "gather": (k, n * k, -me * k, "own", lambda x, y: group.gather(x, y, root), lambda: gathered([k] * n)),
    "start_gather": (k, n * k, -me * k, "own", lambda x, y: group.start_gather(x, y, root).wait(),
                     lambda: gathered([k] * n)),
    "gather with counts": (uneven[me], sum(uneven), -first[me], "own", lambda x, y: group.gather(x, y, root, uneven),
                           lambda: gathered(uneven)),
    "scatter": (n * k, k, me * k, "own", lambda x, y: group.scatter(x, y, root),
                lambda: given(root, n * k)[me * k : me * k + k]),
    "start_scatter": (n * k, k, me * k, "own", lambda x, y: group.start_scatter(x, y, root).wait(),
                      lambda: given(root, n * k)[me * k : me * k + k]),
    "scatter with counts": (sum(uneven), uneven[me], first[me], "own", lambda x, y: group.scatter(x, y, root, uneven),
                            lambda: given(root, sum(uneven))[first[me] : first[me] + uneven[me]]),
    "all_to_all": (n * k, n * k, 0, "copied", lambda x, y: group.all_to_all(x, y),
                   lambda: exchanged(me, [[k] * n] * n)),
    "start_all_to_all": (n * k, n * k, 0, "apart", lambda x, y: group.start_all_to_all(x, y).wait(),
                         lambda: exchanged(me, [[k] * n] * n)),
    "all_to_all_v": (sum(gives[me]), sum(takes[me]), 0, "copied",
                     lambda x, y: group.all_to_all_v(x, gives[me], y, takes[me]), lambda: exchanged(me, gives)),
    "sendrecv": (k, k, 0, "same", lambda x, y: group.sendrecv(x, (me + 1) % n, y, (me - 1) % n),
                 lambda: given((me - 1) % n, k)),
    "neighbor_exchange": (k, k, 0, "apart", lambda x, y: group.neighbor_exchange(around(x, y)),
                          lambda: given((me - 1) % n, k)),
    "prepare_exchange": (k, k, 0, "apart", lambda x, y: prepared(x, y), lambda: given((me - 1) % n, k)),
    "put": (k, k, 0, "apart", lambda x, y: group.put(x, window, me, where * 8), lambda: given(me, k)),
    "get": (k, k, 0, "apart", lambda x, y: group.get(y, window, me, AT * 8), lambda: given(me, k)),
}


def around(x, y):
    nothing = part(0, 0)
    return [ww.Exchange((me + 1) % n, x, nothing, 0, 1), ww.Exchange((me - 1) % n, nothing, y, 1, 0)]


def prepared(x, y):
    exchange = group.prepare_exchange(around(x, y))
    exchange.start()
    exchange.wait()


def may(name, rank, where, length, to, own_at, kind):
    to_root = "gather" in name and "all_" not in name or name.endswith("reduce") and "all_" not in name
    if rank != root and (to_root or name.startswith(("scatter", "start_scatter"))): return True
    if AT + length <= where or where + to <= AT: return True
    if kind == "copied": return place == "host" and where == AT and length == to
    return where == own_at and kind in ("same", "own")


window = group.expose(whole)
problems = []
for name, (length, to, own, kind, call, result) in CALLS.items():
    for shift in sorted({sign * apart for sign in (-1, 1) for apart in (0, 1, k - 1, k, k + 1, n * k, n * k + n)}):
        fill()
        where = AT + own + shift
        allowed = group.all_gather(np.array([may(name, me, where, length, to, AT + own, kind)]))
        want, called = had(me), bool(allowed.all())
        if called:
            to_root = ("gather" in name or "reduce" in name) and "all_" not in name and "scatter" not in name
            if not to_root or me == root: want[where : where + to] = result()
        try:
            if called or not allowed.ravel()[me]: call(part(AT, length), part(where, to))
            if not called and not allowed.ravel()[me]: problems.append(f"{name} by {shift}: no error")
        except ww.InputError as error:
            if called or "overlap" not in str(error): problems.append(f"{name} by {shift}: {error}")
        group.flush()
        if not np.array_equal(seen(), want): problems.append(f"{name} by {shift}: wrong")
        group.barrier()
print(f"{len(CALLS)} calls", *problems[:5], sep="; ")
"""


@pytest.mark.parametrize("place", ["host", "gpu"])
def test_every_call_is_right_or_refuses_its_arrays(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_PLACE", place)
    code, lines, errors = run(RANKS, "", program=PROGRAM)
    assert (code, lines) == (0, ["23 calls"] * RANKS), errors
