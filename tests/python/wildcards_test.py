"""Receives from any rank and of any tag, and probes, in Python; the rules of matching are tested in C++."""

from __future__ import annotations

import pytest
from rank_jobs import run, runtime_folder

import waywiser as ww
from waywiser import _core

__all__ = ["runtime_folder"]

SERVER = """
parts, workers = 20, group.size - 1
if group.rank == 0:
    status, result, done = ww.MessageStatus(), np.empty(100), []
    for part in range(parts + workers):
        group.recv(result, ww.ANY_SOURCE, ww.ANY_TAG, status=status)
        done += [] if status.tag == 0 else [float(result[: status.count].sum())]
        group.send(np.full(1 + part % 7, part, np.int32) if part < parts else np.empty(0, np.int32), status.source)
    print(len(done), sum(done))
else:
    group.send(np.empty(0), 0, tag=0)
    while (found := group.probe(0)).count:
        assert found.type == "int32" and found.tag == 0
        part = group.recv(np.empty(found.count, found.type), found.source)
        group.send(part * 1.0, 0, tag=5)
    group.recv(np.empty(0, np.int32), 0)
"""
CALLS = """
right, left, status = (group.rank + 1) % 3, (group.rank + 2) % 3, ww.MessageStatus()
assert group.iprobe() is None and group.iprobe(left, patience=0.001) is None
group.barrier()
assert (status.source, status.tag, status.count) == (ww.ANY_SOURCE, ww.ANY_TAG, 0)

future = group.start_recv(np.empty(10, np.int16), ww.ANY_SOURCE, 3, status=status)
group.send(np.arange(4, dtype=np.int16), right, 3)
assert future.wait()[:4].tolist() == [0, 1, 2, 3]
assert (status.source, status.tag, status.type, status.count) == (left, 3, "int16", 4)
assert repr(status) == f"<waywiser.MessageStatus: 4 int16 from rank {left}, tag 3>"

assert group.sendrecv(np.full(2, group.rank), right, np.empty(2, int), ww.ANY_SOURCE).tolist() == [left] * 2

for obj in ({"a": [1]}, "x" * 5000):
    group.send_object(obj, right, 9)
    assert group.probe().source == left
    assert group.recv_object(ww.ANY_SOURCE, ww.ANY_TAG, status=status) == obj
    assert (status.source, status.tag, status.type) == (left, 9, "uint8") and status.count >= 12

for call in (group.recv, group.start_recv):
    call(np.empty(1), ww.PROC_NULL, status=status)
    assert (status.source, status.tag, status.count) == (ww.PROC_NULL, ww.ANY_TAG, 0)
assert group.recv_object(ww.PROC_NULL, status=status) is None
assert group.probe(ww.PROC_NULL).source == group.iprobe(ww.PROC_NULL).source == ww.PROC_NULL

def refused(call, words, kind=ww.InputError):
    try: call()
    except kind as error: assert words in str(error), error
    else: raise AssertionError(words)

refused(lambda: group.recv(np.empty(1), right, status="?"), "status is a MessageStatus, not str", ww.InputTypeError)
refused(lambda: group.recv(np.empty(1), -1), "rank -1")
refused(lambda: group.send(np.empty(1), ww.ANY_SOURCE), "send to rank")
refused(lambda: group.send(np.empty(1), right, ww.ANY_TAG), "is not in 0 to 32767")
refused(lambda: group.iprobe(patience=-1), "patience")
refused(lambda: group.iprobe(patience="long"), "patience")
group.barrier()
group.send(np.ones(3, np.uint8), right, 1)
refused(lambda: group.recv_object(ww.ANY_SOURCE, 1), "sent 3 bytes where the size of an object", ww.Error)
"""


def test_a_server_takes_whoever_comes() -> None:
    status, out, err = run(4, SERVER)
    assert (status, err) == (0, "")
    assert out == [f"20 {float(sum(part * (1 + part % 7) for part in range(20)))}"]


def test_every_call_takes_wildcards() -> None:
    status, out, err = run(3, CALLS)
    assert (status, out) == (0, []), err


@pytest.mark.parametrize("name", ["ANY_SOURCE", "ANY_TAG"])
def test_the_core_has_the_same_numbers(name: str) -> None:
    assert getattr(ww, name) == getattr(_core, name) != ww.PROC_NULL
