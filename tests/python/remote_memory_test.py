"""Arrays of a client in memory that is pinned for its transfers."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import numpy as np
import pytest
from encryption_test import needs_tls
from rank_jobs import runtime_folder
from remote_gpu import PATIENCE, Server, server, start_client
from two_machines import TwoMachines

import waywiser as ww

__all__ = ["runtime_folder", "server"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]


def test_pinned_arrays_are_arrays_as_any_other(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu:
        for shape, dtype in (((), "f4"), (5, "f8"), ((3, 0), "i4"), ((3, 7), bool), ((2, 1_500_000), "c8")):
            here = gpu.pinned(shape, dtype)
            assert here.shape == np.empty(shape).shape and here.dtype == np.dtype(dtype) and not here.any()
            assert gpu.pinned_by(here) == "server" and here.flags.writeable and here.flags.c_contiguous
            here[...] = np.ones(shape, dtype)
            a = gpu.array(here)
            here[...] = 0
            assert a.get(out=here) is here
            np.testing.assert_array_equal(here, np.ones(shape, dtype))
        whole = gpu.pinned((4, 1000))
        whole[...] = np.arange(4000.0).reshape(4, 1000)
        total = gpu.run("add", gpu.array(whole[1]), gpu.array(np.ones(1000)))  # a part of it
        stream = gpu.stream()
        assert stream.get(total, out=whole[3]).base is not None
        np.testing.assert_array_equal(whole[3], np.arange(1000.0, 2000.0) + 1)
        np.testing.assert_array_equal(whole[2], np.arange(2000.0, 3000.0))
        assert gpu.account()["server_input"] > 0
    whole[...] = 1  # it outlives the GPU
    assert gpu.pinned_by(np.ones(3)) == ""


def test_results_come_into_any_array_that_fits(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu:
        a = gpu.array(np.arange(6.0).reshape(2, 3))
        room = np.empty((2, 3))
        assert a.get(out=room) is room
        np.testing.assert_array_equal(room, np.arange(6.0).reshape(2, 3))
        for out in (np.empty(6), np.empty((2, 3), np.int64), gpu.pinned((2, 3), "f4"), gpu.pinned(6)):
            with pytest.raises(ww.InputError, match=r"\(2, 3\) of float64 for room of"):
                a.get(out=out)
        with pytest.raises(ww.InputError, match="not contiguous"):
            a.get(out=np.empty((3, 2)).T)
        readonly = np.empty((2, 3))
        readonly.flags.writeable = False
        with pytest.raises(ww.InputError, match="written"):
            a.get(out=readonly)
        for out in (np.empty(5), gpu.pinned(5)):
            with pytest.raises(ww.InputError, match="an array of 6 float64 for room of 5 float64"):
                gpu.run("add", a, a).get(out=out)  # of a shape that is not known yet
        for out in (np.empty(6), gpu.pinned(6)):
            with pytest.raises(ww.InputError, match=r"an array of the shape \(2, 3\) for room of the shape \(6,\)"):
                gpu.run("add", a, a).get(out=out)
        with pytest.raises(ww.InputError, match="is no shape"):
            gpu.pinned(-1)
        gpu.run("nothing", a)
        with pytest.raises(ww.InputError, match="no function 'nothing'"):
            gpu.pinned(1)
        np.testing.assert_array_equal(a.get(out=gpu.pinned((2, 3))), room)


def test_arrays_larger_than_the_gpus_memory_go_in_pieces(server: Server) -> None:
    count = 4_000_000  # three arrays of 32 MB, and the server gives 64 MiB
    x, y = np.arange(float(count)), np.full(count, 0.5)
    with ww.remote(server.address, key=server.key) as gpu:
        with pytest.raises(ww.DeviceError, match="above this server's limit"):
            gpu.run("add", gpu.array(x), gpu.array(y)).get()
        total = gpu.run_in_pieces("add", x, y, piece=3_000_000)
        np.testing.assert_array_equal(total, x + 0.5)
        held = gpu.pinned((20, 1000), np.float32)
        held[...] = 3
        twice = gpu.run_in_pieces("scale", held, out=held, factor=2, piece=4 * 999)
        assert twice is held and (held == 6).all()
        assert gpu.run_in_pieces("add", [1, 2], [3, 4], piece=1).tolist() == [4, 6]
        empty = gpu.run_in_pieces("add", np.ones((0, 3)), np.ones((0, 3)))
        assert empty.shape == (0, 3) and empty.dtype == float
        assert gpu.run_in_pieces("add", 1.5, 2.5).shape == ()


def test_what_cannot_go_in_pieces_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text("functions = {'total': lambda x: x.sum().reshape(1)}\n")
    server = Server(tmp_path, "--functions", str(tmp_path / "sums.py"))
    with ww.remote(server.address, key=server.key) as gpu:
        for values, more, says in (
            ((), {}, "one or more arrays of one shape"),
            ((np.ones(2), np.ones(3)), {}, "one or more arrays of one shape"),
            ((np.ones(2), np.ones(2)), {"piece": 0}, "piece=0"),
            ((np.ones(2), np.ones(2)), {"out": np.ones(3)}, r"of the shape \(2,\)"),
            ((np.ones((2, 3)), np.ones((2, 3))), {"out": np.ones((3, 2)).T}, "contiguous"),
            ((np.ones(2), np.ones(2)), {"out": np.ones(2, np.float32)}, "for room of 2 float32"),
        ):
            with pytest.raises(ww.InputError, match=says):
                gpu.run_in_pieces("add", *values, **more)  # type: ignore[arg-type]
        with pytest.raises(ww.InputError, match=r"4 elements have become an array of the shape \(1,\)"):
            gpu.run_in_pieces("total", np.ones(4))
        with pytest.raises(ww.InputError, match="for room of 4 float64"):
            gpu.run_in_pieces("total", np.ones(4), out=np.ones(4))
        with pytest.raises(ww.InputError, match="no function 'nothing'"):
            gpu.run_in_pieces("nothing", np.ones(4))
        np.testing.assert_array_equal(gpu.run_in_pieces("add", np.ones(4), np.ones(4)), np.full(4, 2.0))
    assert server.close() == (0, "")


def test_pieces_of_pinned_arrays_wait_for_their_result_alone(server: Server) -> None:
    """Of six pieces two arrays go up while the result before comes back; no other call waits for the server."""
    count, pieces = 600_000, 6
    with ww.remote(server.address, key=server.key) as gpu:
        x, y, z = (gpu.pinned(count) for _ in range(3))
        x[:], y[:] = np.arange(float(count)), 0.5
        core, called = gpu._core, []

        class Counted:
            def __enter__(self) -> Counted:
                core.__enter__()
                return self

            def __exit__(self, *args: object) -> None:
                core.__exit__(*args)

            def __getattr__(self, name: str) -> object:
                called.append(name)
                return getattr(core, name)

        gpu._core = Counted()  # type: ignore[assignment]
        gpu.run_in_pieces("add", x, y, out=z, piece=8 * count // pieces)
        gpu._core = core
        np.testing.assert_array_equal(z, np.arange(float(count)) + 0.5)
        counts = {name: called.count(name) for name in ("begin_put", "array", "put", "get", "get_into", "zeros", "run")}
        assert counts["begin_put"] == 2 * pieces and counts["run"] == pieces and counts["zeros"] == 4
        assert counts["array"] + counts["put"] == 0 and counts["get"] + counts["get_into"] == pieces
        x[:] = 1  # nothing reads it any more
        gpu.run_in_pieces("add", x, y, out=z, piece=7_777 * 8)  # the last piece is a shorter one
        np.testing.assert_array_equal(z, np.full(count, 1.5))


def test_beyond_the_servers_limit_memory_is_as_any_other(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu:
        first = gpu.pinned(gpu.memory // 2, np.uint8)
        second = gpu.pinned(gpu.memory // 2, np.uint8)
        third = gpu.pinned(1000)
        assert [gpu.pinned_by(each) for each in (first, second)] == ["server"] * 2
        assert gpu.pinned_by(third) in ("lock", "")
        third[...] = 3
        np.testing.assert_array_equal(gpu.array(third).get(out=third), np.full(1000, 3.0))
        del second
        gc.collect()
        assert gpu.pinned_by(gpu.pinned(1000)) == "server"


@needs_tls
@pytest.mark.parametrize("locks", [True, False])
def test_for_a_server_elsewhere_it_is_locked_here_as_far_as_the_system_lets(tmp_path: Path, locks: bool) -> None:
    machines = TwoMachines()
    on_a, on_b = (("ip", "netns", "exec", name) for name in machines.names)
    if not locks:
        on_b = (*on_b, "prlimit", f"--memlock={resource.getpagesize()}", "setpriv", "--bounding-set=-ipc_lock")
    try:
        server = Server(tmp_path, before=on_a, at="10.99.7.1:0")
        code = """
here = gpu.pinned((1000, 100))
print(repr(gpu.pinned_by(here)))
here[...] = 7
a = gpu.array(here)
here[...] = 0
assert (a.get(out=here) == 7).all() and (here == 7).all()
gpu.close()
"""
        client = start_client(code, server, on_b)
        out, errors = client.communicate(timeout=PATIENCE)
        assert (client.returncode, errors) == (0, "")
        assert out == ("'lock'\n" if locks else "''\n")
        server.close()
    finally:
        machines.close()
