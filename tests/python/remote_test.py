"""Programs use GPUs of a server: the same results as here, errors that say what was wrong, nothing left behind."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import runtime_folder
from remote_gpu import PATIENCE, Server, server, start_client
from two_machines import TwoMachines

import waywiser as ww
from waywiser import _core
from waywiser.offload import server as serving
from waywiser.offload.client import DATA_ROADS
from waywiser.offload.keys import make_key

__all__ = ["runtime_folder", "server"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]


def test_arrays_come_back_as_they_went(server: Server) -> None:
    draw = np.random.default_rng(1)
    with ww.remote(server.address, key=server.key, gpu=1) as gpu:
        for dtype in (np.float64, np.float32, np.float16, np.int8, np.uint64, np.complex64, np.bool_):
            for shape in ((), (0,), (3,), (7, 5, 2), (100001,)):
                values = np.asarray(draw.integers(0, 100, shape)).astype(dtype)
                array = gpu.array(values)
                assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
                got = array.get()
                assert got.dtype == values.dtype and got.shape == shape
                np.testing.assert_array_equal(got, values)
        np.testing.assert_array_equal(gpu.zeros((2, 3), np.int32), np.zeros((2, 3), np.int32))
        big_endian = np.arange(3, dtype=">f8")
        np.testing.assert_array_equal(gpu.array(big_endian), big_endian)
        with pytest.raises(ww.InputError, match="no type of numbers that travels"):
            gpu.array(np.array(["text"]))
        with pytest.raises(ww.InputError, match="no shape"):
            gpu.zeros((3, -1))
        columns = np.arange(12.0).reshape(3, 4)[:, ::2]  # not contiguous
        np.testing.assert_array_equal(gpu.array(columns), columns)
        assert gpu.encrypted_by == ""


@pytest.mark.parametrize("closes", [True, False])
def test_a_gpu_that_nothing_destroys_is_no_matter_at_the_end(server: Server, closes: bool) -> None:
    code = """
import ctypes
gpu.zeros(3)
gpu.synchronize()
for each in (gpu, gpu._core):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
"""
    client = start_client(code + "gpu.close()" * closes, server)
    assert client.communicate(timeout=PATIENCE) == ("", "")
    assert client.returncode == 0 and server.wait_for("left")["why"] == ""


def test_arrays_are_the_same_by_every_road(server: Server) -> None:
    values = np.random.default_rng(2).integers(0, 256, (17 << 20) + 3).astype(np.uint8)  # pieces have 8 MiB
    for road in DATA_ROADS:
        with ww.remote(server.address, key=server.key, road=road) as gpu:
            np.testing.assert_array_equal(gpu.array(values), values)
            np.testing.assert_array_equal(gpu.array(values[:5]), values[:5])
    with ww.remote(server.address, key=server.key) as gpu:
        kept = gpu.array(values)
        for road in reversed(DATA_ROADS):
            gpu.use_road(road)
            np.testing.assert_array_equal(kept.get(), values)
        with pytest.raises(ww.InputError, match=r"^'pined' is no road of arrays; there are direct, pageable, pinned"):
            gpu.use_road("pined")  # type: ignore[arg-type]


def test_functions_run_there_and_results_stay_there(server: Server) -> None:
    a, b = np.arange(50000.0), np.linspace(0, 1, 50000)
    with ww.remote(server.address, key=server.key) as gpu:
        x, y = gpu.array(a), gpu.array(b)
        total = gpu.run("add", x, gpu.run("scale", y, factor=3))
        np.testing.assert_array_equal(total.get(), a + b * 3)
        np.testing.assert_array_equal(gpu.run("repeat_add", x, y, times=4).get(), a + b + b + b + b)
        partial = gpu.run("add", y, x)
        gpu.flush()
        np.testing.assert_array_equal(partial.get(), a + b)
        seconds = gpu.account()
        assert set(seconds) == {
            "client_input", "server_input", "client_compute", "server_compute", "device", "server_output",
            "client_output",
        }  # fmt: skip
        assert all(value > 0 for value in seconds.values())
        assert seconds["device"] <= seconds["server_compute"]


def test_a_failed_request_is_told_by_the_next_answer(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu:
        x = gpu.array(np.ones(4))
        lost = gpu.run("nothing", x)
        gpu.run("scale", lost)
        with pytest.raises(ww.InputError, match=r"virtual GPU 0 of .*: nothing: this server has no function 'nothing'"):
            gpu.synchronize()
        gpu.synchronize()  # told once
        with pytest.raises(ww.InputError, match=r"there is no array"):
            lost.get()
        gpu.run("add", x, gpu.zeros(3))
        with pytest.raises(ww.InputError, match=r"add: arrays of unlike shapes or types: "):
            gpu.synchronize()
        gpu.run("raises", x)
        with pytest.raises(ww.InputError, match=r"raises: ValueError: not this one"):
            x.get()
        np.testing.assert_array_equal(x.get(), np.ones(4))


def test_memory_has_a_limit_and_is_given_back(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu:
        half = gpu.zeros(32 << 20, np.uint8)
        values = np.ones(40 << 20, np.uint8)
        gpu.array(values)
        with pytest.raises(ww.DeviceError, match=r"above this server's limit of 67108864"):
            gpu.synchronize()
        with pytest.raises(ww.DeviceError, match=r"67108865 bytes are above this server's limit"):
            gpu.zeros((64 << 20) + 1, np.uint8)
        del half
        np.testing.assert_array_equal(gpu.array(values).get(), values)


def test_clients_do_not_see_each_others_arrays(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as one, ww.remote(server.address, key=server.key) as other:
        mine = one.array(np.full(1000, 7.0))
        np.testing.assert_array_equal(other.zeros(1000).get(), np.zeros(1000))
        with pytest.raises(ww.InputError, match="another remote GPU"):
            other.run("scale", mine)
        state = server.wait_until(lambda state: len(state["clients"]) == 2)
        assert [each["clients"] for each in state["gpus"]] == [2, 0]


def test_a_client_that_dies_gives_everything_back(server: Server) -> None:
    client = start_client(
        "x = gpu.array(np.ones(1000000))\ngpu.synchronize()\nprint('there', flush=True)\ninput()", server
    )
    assert client.stdout is not None and client.stdout.readline() == "there\n"
    server.wait_until(lambda state: len(state["clients"]) == 1)
    client.kill()
    left = server.wait_for("left")
    assert "is gone" in left["why"] or "closed" in left["why"], left
    assert server.wait_until(lambda state: state["clients"] == [])["gpus"][0]["memory"] == 0
    client.wait(PATIENCE)


def test_a_server_that_dies_is_an_error_that_names_it(tmp_path: Path) -> None:
    server = Server(tmp_path)
    gpu = ww.remote(server.address, key=server.key)
    x = gpu.array(np.ones(10))
    gpu.synchronize()
    server.process.kill()
    server.process.wait(PATIENCE)
    with pytest.raises(ww.TransferError, match=rf"{server.address}, .*: .*rank 0"):
        while True:
            x.get()
    gpu.close()
    with pytest.raises(ww.TransferError, match=rf"no server of GPUs at {server.address}"):
        ww.remote(server.address, key=server.key)
    again = Server(tmp_path, at=server.address)
    with ww.remote(again.address, key=again.key) as another:
        np.testing.assert_array_equal(another.array(np.ones(10)).get(), np.ones(10))
    assert again.close()[0] == 0


def test_a_server_that_stops_has_told_the_end_of_each_client(tmp_path: Path) -> None:
    """Python aborts if one of its threads still writes while it ends."""
    key = tmp_path / "key"
    make_key(key)
    told = []
    server = serving.Server(
        ("127.0.0.1", 0),
        key,
        serving.Offer((0, 1), 2, 1 << 20, 4, ""),
        lambda event, _: told.append(event),
        ww.__version__,
    )
    threading.Thread(target=server.serve, daemon=True).start()
    gpus = [ww.remote(f"127.0.0.1:{server.port}", key=key) for _ in range(3)]
    for gpu in gpus:
        gpu.close()
    server.stop()
    assert told.count("joined") == told.count("left") == 3, told


@pytest.mark.parametrize(("function", "error"), [("never_ends", ww.DeadlineError), ("dies", ww.TransferError)])
def test_a_function_costs_its_own_client_only(server: Server, function: str, error: type[ww.Error]) -> None:
    with ww.remote(server.address, key=server.key) as other:
        x = other.array(np.ones(3))
        gpu = ww.remote(server.address, key=server.key, timeout=3)
        gpu.run(function, gpu.array(np.ones(1)))
        with pytest.raises(error, match=rf"{server.address}, synchronize: "):
            gpu.synchronize()
        gpu.close()
        server.wait_for("left")
        np.testing.assert_array_equal(x.get(), np.ones(3))


def test_limits_and_wrong_numbers_are_refused(server: Server) -> None:
    with pytest.raises(ww.InputError, match="this server has no GPU 2: it offers 2"):
        ww.remote(server.address, key=server.key, gpu=2)
    gpus = [ww.remote(server.address, key=server.key) for _ in range(3)]
    with pytest.raises(ww.InputError, match="this server has 3 clients, and takes no more"):
        ww.remote(server.address, key=server.key)
    for gpu in gpus:
        gpu.close()
    with pytest.raises(ww.InputError, match="write HOST:PORT"):
        ww.remote("nowhere", key=server.key)
    closed = gpus[0]
    with pytest.raises(ww.InputError, match="is closed"):
        closed.synchronize()


@pytest.mark.skipif(bool(_core.why_no_tls()), reason=_core.why_no_tls())
def test_between_machines_all_is_encrypted(tmp_path: Path) -> None:
    machines = TwoMachines()
    on_a, on_b = (("ip", "netns", "exec", name) for name in machines.names)
    try:
        server = Server(tmp_path, before=on_a, at="10.99.7.1:0")
        code = "x = np.arange(300000.)\nassert (gpu.run('scale', gpu.array(x), factor=2).get() == 2 * x).all()\n"
        client = start_client(code + "print(gpu.encrypted_by)\ngpu.close()", server, on_b)
        out, errors = client.communicate(timeout=PATIENCE)
        assert (client.returncode, errors) == (0, "") and out in ("openssl\n", "kernel\n")
        assert machines.bytes_over_the_link() > 300000 * 8
        assert "clients on other machines can run the functions" in server.close()[1]
    finally:
        machines.close()
