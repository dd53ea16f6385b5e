"""Objects, scalars and the rank that is not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rank_jobs import finish, run, runtime_folder
from two_machines import TwoMachines

from waywiser import _core

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow


def ok(ranks: int, code: str, *options: str) -> None:
    status, _, err = run(ranks, code, *options)
    assert (status, err) == (0, ""), err


def test_objects() -> None:
    code = """
    rank, size = group.rank, group.size
    value = {"rank": rank, "data": np.arange(rank + 1), "text": "é" * rank}
    found = group.all_gather_objects(value)
    assert [one["rank"] for one in found] == [0, 1, 2] and found[2]["data"].tolist() == [0, 1, 2]
    assert found[2]["text"] == "éé"
    gathered = group.gather_objects((rank,), root=1)
    assert gathered == ([(0,), (1,), (2,)] if rank == 1 else None)
    assert group.broadcast_object("told" if rank == 2 else None, root=2) == "told"
    if rank == 0:
        group.send_object([1, None], 1, tag=7)
        group.send_object("second", 1, tag=7)
        group.send_object("other tag", 1, tag=8)
    if rank == 1:
        assert group.recv_object(0, tag=8) == "other tag"
        assert [group.recv_object(0, tag=7) for _ in range(2)] == [[1, None], "second"]
    part = group.split(0 if rank else -1)
    if part is not None: assert part.all_gather_objects(rank) == [1, 2]
    assert group.send_object(1, ww.PROC_NULL) is None and group.recv_object(ww.PROC_NULL) is None
    """
    ok(3, code)


def test_a_large_object_arrives_whole() -> None:
    code = """
    data = np.random.default_rng(1).integers(0, 255, 9 << 20, np.uint8)
    if group.rank == 0: group.send_object(data, 1)
    else: assert (group.recv_object(0) == data).all()
    assert (group.broadcast_object(data if group.rank == 0 else None) == data).all()
    """
    ok(2, code)


def test_pickles_are_refused_where_a_rank_says_so() -> None:
    code = """
    for call in (lambda: group.send_object(1, 0), lambda: group.recv_object(0), lambda: group.gather_objects(1),
                 lambda: group.broadcast_object(1), lambda: group.all_gather_objects(1)):
        try: call()
        except ww.InputError as error: assert "allow_pickle=False" in str(error)
        else: raise AssertionError("not refused")
    assert group.split(0)._allow_pickle is False
    assert group.all_reduce(1) == 1
    """
    program = "import numpy as np, waywiser as ww\ngroup = ww.join(allow_pickle=False)\n"
    status, _, err = run(1, code, program=program)
    assert (status, err) == (0, ""), err


def test_objects_have_a_largest_size() -> None:
    code = """
    from waywiser.group import objects
    objects.LARGEST_OBJECT = 1000
    for call in (lambda: group.send_object(bytes(2000), 0), lambda: group.all_gather_objects(bytes(2000))):
        try: call()
        except ww.InputError as error: assert "more than 1000: send arrays" in str(error)
        else: raise AssertionError("not refused")
    if group.rank == 0: group.send((1 << 62).to_bytes(8, "little"), 1)
    else:
        try: group.recv_object(0)
        except ww.CorruptionError as error: assert "announces an object of 4611686018427387904 bytes" in str(error)
        else: raise AssertionError("not refused")
    try: group.all_gather_objects(bytes(600))
    except ww.InputError as error: assert "the pickled objects have" in str(error)
    else: raise AssertionError("not refused")
    """
    ok(2, code)


@pytest.fixture
def machines() -> Iterator[TwoMachines]:
    two = TwoMachines()
    try:
        yield two
    finally:
        two.close()


PROGRAM = """
import waywiser as ww
group = ww.join()
try: print(group.rank, group.broadcast_object("told"))
except ww.InputError as error: print(group.rank, str(error)[:57])
"""


@pytest.mark.parametrize("encrypted", [True, False])
def test_objects_between_machines_need_encryption(machines: TwoMachines, encrypted: bool) -> None:
    if encrypted and _core.why_no_tls():
        pytest.skip(_core.why_no_tls())
    more = {"WAYWISER_ENCRYPT": "1"} if encrypted else {}
    ranks = [machines.start(rank, 2, ["-c", PROGRAM], **more) for rank in range(2)]
    wanted = "told" if encrypted else "the ranks are on several machines and do not encrypt, so "
    for rank, process in enumerate(ranks):
        status, out, err = finish(process)
        assert (status, [line.strip() for line in out]) == (0, [f"{rank} {wanted}".strip()]), err


def test_scalars() -> None:
    code = """
    rank = group.rank
    for value, wanted in ((3.5, 7.0), (2, 4), (True, True), (1 + 2j, 2 + 4j), (np.float32(1.5), 3.0), (np.int16(4), 8)):
        found = group.all_reduce(value)
        assert type(found) is type(value) and found == wanted, (value, found)
    assert group.all_reduce(rank, op="max") == 1 and group.all_reduce(float(rank), op="avg") == 0.5
    assert group.reduce(rank + 1, root=1) == (3 if rank == 1 else None)
    assert group.broadcast(rank + 0.25, root=1) == 1.25
    try: group.all_reduce(1 << 80)
    except ww.InputError as error: assert "does not fit into 64 bits" in str(error)
    else: raise AssertionError("not refused")
    """
    ok(2, code)


def test_types_of_scalars_must_agree() -> None:
    status, _, err = run(2, "group.all_reduce(1 if group.rank else 1.0)")
    assert status != 0 and "int64" in err and "float64" in err, err


def test_messages_to_nobody() -> None:
    """A chain whose ends have neighbours that are not there."""
    code = """
    rank, last = group.rank, group.size - 1
    left, right = rank - 1 if rank else ww.PROC_NULL, rank + 1 if rank < last else ww.PROC_NULL
    mine, from_left, from_right = np.array([rank + 1.0]), np.array([-1.0]), np.array([-1.0])
    wanted = (rank if rank else -1.0, rank + 2.0 if rank < last else -1.0)
    group.sendrecv(mine, right, from_left, left)
    group.sendrecv(mine, left, from_right, right)
    assert (from_left[0], from_right[0]) == wanted
    from_left[:] = from_right[:] = -1
    group.neighbor_exchange([(left, mine, from_left, 1, 2), (right, mine, from_right, 2, 1)])
    assert (from_left[0], from_right[0]) == wanted
    from_left[:] = from_right[:] = -1
    halo = group.prepare_exchange([(left, mine, from_left, 1, 2), (right, mine, from_right, 2, 1)])
    halo.start(); halo.wait()
    assert (from_left[0], from_right[0]) == wanted
    from_left[:] = -1
    futures = [group.start_send(mine, right), group.start_recv(from_left, left)]
    assert futures[1].wait() is from_left and futures[0].wait() is None and from_left[0] == wanted[0]
    group.send(mine, right); group.recv(from_left, left)
    assert group.start_send(mine, ww.PROC_NULL).done()
    try: group.send(mine, -1)
    except ww.InputError: pass
    else: raise AssertionError("-1 is no rank")
    """
    ok(3, code)
