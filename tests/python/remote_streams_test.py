"""Streams and events of a remote GPU, and limits of its clients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rank_jobs import finish, runtime_folder, start
from remote_gpu import FUNCTIONS, Server, server

import waywiser as ww

__all__ = ["runtime_folder", "server"]
pytestmark = pytest.mark.usefixtures("runtime_folder")


def test_calls_are_ordered_in_streams_and_by_events(server: Server) -> None:
    a = np.arange(20000.0)
    with ww.remote(server.address, key=server.key) as gpu:
        x = gpu.array(a)
        one, two = gpu.stream(), gpu.stream()
        begun, summed = gpu.event(), gpu.event()
        one.record(begun)
        total = x
        for _ in range(50):
            total = one.run("add", total, x)
        one.record(summed)
        two.wait(summed)
        half = two.run("scale", total, factor=0.5)
        np.testing.assert_array_equal(two.get(half), 51 * a / 2)
        assert summed.seconds_since(begun) > 0
        assert begun.seconds_since(begun) == 0
        summed.synchronize()
        after = gpu.run("add", half, total)  # in no stream: behind both
        np.testing.assert_array_equal(after.get(), 51 * a * 1.5)
        one.synchronize()
        np.testing.assert_array_equal(one.run("add", after, after).get(), 51 * a * 3)


def test_an_error_is_told_by_the_next_wait_and_names_the_call(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu, ww.remote(server.address, key=server.key) as other:
        x = gpu.array(np.ones(4))
        one, two, event = gpu.stream(), gpu.stream(), gpu.event()
        one.run("nothing", x)
        lost = two.run("add", x, x)
        with pytest.raises(ww.InputError, match=r"virtual GPU 0 of .*: nothing: this server has no function 'nothing'"):
            two.synchronize()
        two.synchronize()
        with pytest.raises(ww.InputError, match="there is no array"):
            lost.get()
        with pytest.raises(ww.InputError, match=r"event .* was not recorded"):
            event.synchronize()
        two.wait(event)
        with pytest.raises(ww.InputError, match=r"wait: event .* was not recorded"):
            gpu.synchronize()
        for call in (
            lambda: other.stream().record(event),
            lambda: other.stream().wait(event),
            lambda: other.stream().get(x),
            lambda: other.event().seconds_since(event),
            lambda: other.stream().run("add", x, x),
        ):
            with pytest.raises(ww.InputError, match="of another remote GPU"):
                call()


def test_streams_are_given_back(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu:
        x = gpu.array(np.ones(4))
        for _ in range(200):
            gpu.stream().run("add", x, x)
        kept = [gpu.stream() for _ in range(65)]
        gpu.synchronize()
        for stream in kept:
            stream.run("add", x, x)
        with pytest.raises(ww.InputError, match="stream: a client has at most 64 streams"):
            gpu.synchronize()
        np.testing.assert_array_equal(kept[0].run("add", x, x).get(), np.full(4, 2.0))


def test_an_array_speaks_dlpack(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu:
        values = np.arange(6, dtype=np.int32).reshape(2, 3)
        np.testing.assert_array_equal(np.from_dlpack(gpu.array(values)), values)


def test_a_client_has_limits(tmp_path: Path) -> None:
    server = Server(tmp_path, "--requests", "5", "--seconds", "3600")
    with ww.remote(server.address, key=server.key) as gpu:
        for _ in range(5):
            gpu.synchronize()
        with pytest.raises(ww.UnavailableError, match="request: this server carries out 5 requests of one client"):
            gpu.synchronize()
    assert server.wait_for("left")["why"] == ""
    assert server.close() == (0, "")
    short = Server(tmp_path, "--seconds", "0.001")
    words = "request: this server serves one client for 1"
    with ww.remote(short.address, key=short.key) as gpu, pytest.raises(ww.UnavailableError, match=words):
        while True:
            gpu.synchronize()
    assert short.close() == (0, "")


@pytest.mark.slow
def test_the_end_of_a_clients_time_ends_a_function_that_never_does(tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(FUNCTIONS)
    server = Server(tmp_path, "--functions", str(tmp_path / "more.py"), "--seconds", "1")
    gpu = ww.remote(server.address, key=server.key)
    gpu.run("never_ends", gpu.array(np.ones(1)))
    with pytest.raises(ww.TransferError, match="rank 0"):
        gpu.synchronize()  # its process is killed 5 s later
    gpu.close()
    assert server.close() == (0, "")


def test_the_list_shows_gpus_and_the_server(tmp_path: Path) -> None:
    server = Server(tmp_path)
    words = ("serve", "--list", "--virtual", "2", "--key", str(server.key))
    code, lines, errors = finish(start(*words, "--listen", server.address))
    assert (code, errors) == (0, "")
    roads = "roads of arrays: direct, pageable, pinned, pipelined"
    about = (f"at {server.address}:", "  virtual GPU 0: 0 clients, 0 B in use")
    assert {"GPU 0: virtual", "GPU 1: virtual", roads, *about} <= set(lines)
    assert server.close() == (0, "")
    code, lines, errors = finish(start(*words, "--listen", server.address))
    assert (code, errors) == (0, "")
    assert any(line.startswith(f"no server at {server.address}: no server of GPUs") for line in lines)
